"""One training loop for every network here: resumable bit by bit, early-stopped, guarded against NaN.

Every draw of a step comes from a stream named by the step, so a run that is killed and resumed takes exactly
the path of one that was not.
"""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from preplay.artifacts import atomic_write
from preplay.errors import PreplayError
from preplay.seeding import torch_generator
from preplay.world_model._config import OptimiserConfig

CHECKPOINT_EVERY = 200

LossFunction = Callable[[nn.Module, Tensor, torch.Generator], Tensor]
"""Loss of a module on the given training rows (int64 [batch])."""


@dataclass
class TrainingTrace:
    """What happened: held-out loss per evaluation, the best one, and where training stopped."""

    steps: int = 0
    best_step: int = 0
    best: float = math.inf
    held_out: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class _Run:
    module: nn.Module
    average: nn.Module
    best: dict[str, Tensor]
    optimiser: torch.optim.AdamW
    trace: TrainingTrace
    parameters: list[nn.Parameter]
    averaged: list[nn.Parameter]


def optimise(
    module: nn.Module,
    loss: LossFunction,
    held_out_loss: Callable[[nn.Module], float],
    rows: Tensor,
    config: OptimiserConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    until: int | None = None,
    progress: Callable[[int, float], None] = lambda step, value: None,
) -> TrainingTrace:
    """Train ``module`` in place and leave the averaged weights with the lowest held-out loss in it.

    Args:
        rows: Training rows int64 [N] that batches are drawn from.
        checkpoint: File that holds the state every 200 steps and at the end; training goes on from it when it exists.
        until: Step to stop at, of the ``config.steps`` that the learning rate is planned for; the checkpoint goes on.
        progress: Called after each evaluation with step and held-out loss.

    Raises:
        PreplayError: When a loss or gradient is not finite, with a diagnosis.
    """
    run = _start(module, config)
    if checkpoint and checkpoint.exists():
        _restore(run, checkpoint)
    device = next(module.parameters()).device
    last = min(config.steps, until or config.steps)
    while run.trace.steps < last and not _out_of_patience(run.trace, config):
        step = run.trace.steps
        generator = torch_generator(seed, "step", step)
        batch = rows[torch.randint(len(rows), (config.batch,), generator=generator)]
        _gradient_step(run, loss, batch, generator, config, step, device)
        run.trace.steps = step + 1
        if run.trace.steps % config.evaluate_every == 0 or run.trace.steps == last:
            _evaluate(run, held_out_loss)
            progress(run.trace.steps, run.trace.held_out[-1][1])
        if checkpoint and run.trace.steps % CHECKPOINT_EVERY == 0:
            _save(run, checkpoint)
    if checkpoint:
        _save(run, checkpoint)
    module.load_state_dict(run.best)
    module.eval()
    return run.trace


def learning_rate(step: int, config: OptimiserConfig) -> float:
    """Linear warm-up to the peak, then half a cosine down to zero."""
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def _start(module: nn.Module, config: OptimiserConfig) -> _Run:
    module.train()
    average = copy.deepcopy(module).eval()
    for parameter in average.parameters():
        parameter.requires_grad_(False)
    optimiser = torch.optim.AdamW(
        module.parameters(), config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    parameters, averaged = list(module.parameters()), list(average.parameters())
    return _Run(module, average, _cloned_state(average), optimiser, TrainingTrace(), parameters, averaged)


def _gradient_step(
    run: _Run,
    loss: LossFunction,
    batch: Tensor,
    generator: torch.Generator,
    config: OptimiserConfig,
    step: int,
    device: torch.device,
) -> None:
    # Dropout masks come from the global stream; it is seeded per step so that resuming cannot shift it.
    torch.default_generator.manual_seed(generator.initial_seed())
    with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
        value = loss(run.module, batch, generator)
    run.optimiser.zero_grad(set_to_none=True)
    value.backward()
    norm = nn.utils.clip_grad_norm_(run.parameters, config.clip)
    if not (torch.isfinite(value) and torch.isfinite(norm)):
        raise _diverged(run.trace, step, float(value.detach()), float(norm), learning_rate(step, config))
    for group in run.optimiser.param_groups:
        group["lr"] = learning_rate(step, config)
    run.optimiser.step()
    # The average follows closely at first, so that its start does not linger.
    decay = min(config.ema, (1 + step) / (10 + step))
    with torch.no_grad():
        torch._foreach_lerp_(run.averaged, run.parameters, 1 - decay)  # pyright: ignore


def _evaluate(run: _Run, held_out_loss: Callable[[nn.Module], float]) -> None:
    with torch.no_grad():
        value = held_out_loss(run.average)
    run.trace.held_out.append((run.trace.steps, value))
    if value < run.trace.best:
        run.trace.best, run.trace.best_step = value, run.trace.steps
        run.best = _cloned_state(run.average)


def _out_of_patience(trace: TrainingTrace, config: OptimiserConfig) -> bool:
    return bool(trace.held_out) and trace.steps - trace.best_step >= config.patience * config.evaluate_every


def _diverged(trace: TrainingTrace, step: int, loss: float, norm: float, rate: float) -> PreplayError:
    last = (
        f"the last held-out loss was {trace.held_out[-1][1]:.4g}" if trace.held_out else "none was finite yet"
    )
    return PreplayError(
        f"training diverged at step {step}: loss {loss}, gradient norm {norm}, learning rate {rate:.2g}; {last}.",
        fix="Lower the learning rate, or check the logs for extreme rewards with `preplay inspect`.",
    )


def _cloned_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def _save(run: _Run, file: Path) -> None:
    tensors = {f"module.{k}": v for k, v in run.module.state_dict().items()}
    tensors |= {f"average.{k}": v for k, v in run.average.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in run.best.items()}
    for index, state in run.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{k}": torch.as_tensor(v) for k, v in state.items()}
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    atomic_write(file, save(tensors, {"trace": json.dumps(vars(run.trace))}))


def _restore(run: _Run, file: Path) -> None:
    with safe_open(file, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        trace = json.loads(stored.metadata()["trace"])
    run.trace = TrainingTrace(**trace | {"held_out": [(int(s), float(v)) for s, v in trace["held_out"]]})

    def part(prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    run.module.load_state_dict(part("module."))
    run.average.load_state_dict(part("average."))
    run.best = part("best.")
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in part("optimiser.").items():
        index, key = name.split(".")
        state.setdefault(int(index), {})[key] = value
    groups = run.optimiser.state_dict()["param_groups"]
    run.optimiser.load_state_dict({"state": state, "param_groups": groups})
