"""World models of InterCode-SQL with and without what SQL calls are made of: each policy predicted from the others.

    python -m benchmarks.real_logs_models --preset full

A sixth of the questions (debug: a sixtieth) of the seven models that may take ten turns. For every left-out model:
one-step predictions on its logged turns (the reward follows from the world model's own draw of the next
observation), and the mean return of imagined sessions of its clone against its logged mean return. Rewards of the
left-out model score what was predicted, and choose nothing.
"""

import sys

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from benchmarks._common import bench_main
from benchmarks.real_logs import ONE_TURN, ROOT
from preplay.actions import SessionReader
from preplay.embedding import CachedEncoder, EmbeddedTurns, EncoderConfig, TextBank
from preplay.logs import read_logs
from preplay.policies import fit_clone
from preplay.rollout import Block, InitialStates, RolloutConfig, ToolCalls, rollout_block
from preplay.seeding import numpy_rng, torch_generator
from preplay.world_model import (
    ConditionTable,
    FeatureConfig,
    LatentWorldModel,
    OptimiserConfig,
    WorldModelConfig,
    train_world_model,
    turn_arrays,
)

DRAWS = 4
ARMS = {"texts": False, "structure": True}


def run(preset: str) -> dict[str, float]:
    """Means over the left-out models per kind of dynamics and arm."""
    if not (ROOT / "intercode-sql").is_dir():
        print("intercode-sql is not there: set PREPLAY_SHARED_DATA", file=sys.stderr)
        return {}
    steps, share = (500, 6) if preset == "full" else (60, 60)
    logs = _embedded(share)
    found: dict[str, list[dict[str, float]]] = {}
    for target in np.unique(logs.session_policy).tolist()[: None if preset == "full" else 2]:
        for dynamics in ("knn", "diffusion"):
            for arm, structured in ARMS.items():
                scores = _one(logs, target, _config(dynamics, steps), structured)
                print(target, dynamics, arm, {k: round(v, 3) for k, v in scores.items()}, flush=True)
                found.setdefault(f"{dynamics} {arm}", []).append(scores)
    return {
        f"{arm} {name}": float(np.nanmean([s[name] for s in scores]))
        for arm, scores in found.items()
        for name in scores[0]
    }


def _config(dynamics: str, steps: int) -> WorldModelConfig:
    quick = OptimiserConfig(steps=steps, learning_rate=1e-3, ema=0.99)
    return WorldModelConfig.model_validate(
        {
            "dynamics": dynamics,
            "gamma": 1,
            "split_by": "task",
            "outcome": quick,
            "optimiser": OptimiserConfig(steps=steps),
            "features": FeatureConfig(optimiser=quick),
        }
    )


def _embedded(share: int) -> EmbeddedTurns:
    """The turns of some questions, with embeddings from MiniLM."""
    turns = read_logs([str(ROOT / "intercode-sql")]).turns
    tasks = turns["task"].to_pylist()
    chosen = set(numpy_rng(0, "questions").permutation(np.unique(tasks))[: len(set(tasks)) // share].tolist())
    policies = turns["policy"].to_pylist()
    turns = turns.filter([t in chosen and p != ONE_TURN for t, p in zip(tasks, policies, strict=True)])
    names = ("task", "observation", "action", "next_observation")
    columns = [turns[name].to_pylist() for name in names]
    encoder = CachedEncoder(EncoderConfig())
    task, observation, action, following = (encoder.ids(column) for column in columns)
    bank = TextBank(encoder.texts, encoder.embeddings(np.arange(len(encoder.texts))))
    return EmbeddedTurns(turns, bank, task, observation, action, following, encoder.fingerprint)


def _one(logs: EmbeddedTurns, target: str, config: WorldModelConfig, structured: bool) -> dict[str, float]:
    others, own = (logs.select_sessions((logs.session_policy == target) == mine) for mine in (False, True))
    reader = SessionReader(others.turns) if structured else None
    model = train_world_model(others, config, seed=0, reader=reader).model
    encoder = CachedEncoder(EncoderConfig(), logs.bank, expect=logs.fingerprint)
    clone = fit_clone(own, encoder, target)
    logged = float(np.add.reduceat(own.turns["reward"].to_numpy(), own.session_starts[:-1]).mean())
    imagined = _imagined(model, others, clone, encoder, reader)
    return _one_step(model, logs, own) | {"points of error": 100 * abs(imagined - logged)}


def _imagined(model: LatentWorldModel, others: EmbeddedTurns, clone, encoder, reader) -> float:
    """Mean return of the clone's imagined sessions from the first states of every question, twice each."""
    _, first = np.unique(others.observation_id[others.session_starts[:-1]], return_index=True)
    rows = others.session_starts[first]
    calls = ToolCalls(reader, rows, "bench") if reader else None
    initial = InitialStates.from_turns(others, rows, history=0)
    config, block = RolloutConfig(rollouts=2, gamma=1), Block(0, 0, 0, 2 * len(rows))
    turns = rollout_block(model, clone, encoder, initial, config, block, calls)
    return float((turns["reward"].to_numpy() * turns["survival"].to_numpy()).sum() / (2 * len(rows)))


@torch.inference_mode()
def _one_step(model: LatentWorldModel, logs: EmbeddedTurns, own: EmbeddedTurns) -> dict[str, float]:
    """How well reward, end and class of the observation are told on turns of the left-out model."""
    turns = turn_arrays(own, gamma=1, validation_fraction=0.15, split_by="task", seed=0)
    reader = SessionReader(logs.turns, model.columns)
    mine = np.repeat(logs.session_policy == own.session_policy[0], np.diff(logs.session_starts))
    structure = reader.logged()[mine] if model.columns else None
    bank = torch.tensor(logs.bank.embeddings)
    condition = ConditionTable.build(model, bank, turns, structure)(torch.arange(len(turns)))
    seen = logs.turns["next_observation"].to_pylist()
    outcome = dict(zip(seen, reader.turns.outcome.tolist(), strict=True))
    drawn = np.array([outcome[text] for text in model.texts])
    real = np.array([outcome[text] for text in own.turns["next_observation"].to_pylist()])
    rewards, ends, hits = [], [], []
    for k in range(DRAWS):
        noise = torch.randn(len(turns), model.noise_dim, generator=torch_generator(0, "one step", k))
        text_id, _ = model.decoder(model.metric(model.dynamics.step(condition, noise)))
        reward, ended = model.outcome(condition, model.bank_latents[text_id])
        rewards.append(reward.numpy())
        ends.append(ended.numpy())
        hits.append(float((drawn[text_id.numpy()] == real).mean()))
    return {
        "AUC of success": _auc(turns.reward >= 1, np.mean(rewards, 0)),
        "AUC of the end": _auc(turns.terminated, np.mean(ends, 0)),
        "class of the observation": float(np.mean(hits)),
    }


def _auc(event: np.ndarray, score: np.ndarray) -> float:
    return float(roc_auc_score(event, score)) if 0 < event.sum() < len(event) else float("nan")


if __name__ == "__main__":
    bench_main(run, title="World models of real logs, with and without structure")
