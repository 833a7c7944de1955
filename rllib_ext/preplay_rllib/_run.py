"""The part of an Algorithm that is the same for all rehearsal algorithms: seeds, metrics, checkpoints."""

import functools
from typing import Any

import numpy as np
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from preplay.seeding import derive_seed
from preplay_rllib._engine import Engine, reseed
from preplay_rllib._gates import Verdict
from preplay_rllib._model import WORLD_MODEL

REHEARSAL = "rehearsal"
"""Key of everything that rehearsal logs in a training result."""


class RehearsalMixin:
    """Owns the engine and its state. Mixed into RLlib Algorithms."""

    engine: Engine

    @property
    def learners(self) -> Any:
        """RLlib's learner group; it declares it optional, for algorithms without one."""
        return self.learner_group  # type: ignore[attr-defined]

    @property
    def runners(self) -> Any:
        """RLlib's env runner group."""
        return self.env_runner_group  # type: ignore[attr-defined]

    @property
    def options(self) -> Any:
        """The algorithm's configuration, rehearsal included."""
        return self.config  # type: ignore[attr-defined]

    def _begin_engine(self, gamma: float, lambda_: float) -> None:
        config = self.options
        seed = config.seed if config.seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
        self.engine = Engine(config.rehearsal_settings, config.make_tracker(), seed, gamma, lambda_)

    def real_steps(self) -> int:
        """Real environment steps so far."""
        key = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        return int(self.metrics.peek(key, default=0))  # type: ignore[attr-defined]

    def reseed_processes(self) -> None:
        """Give every process the generators of this training step, so that no history is needed to resume one."""
        seed = functools.partial(derive_seed, self.engine.seed, "process", self.engine.iteration)
        reseed(None, seed("driver"))
        if not self.learners.is_local:
            self.learners.foreach_learner(functools.partial(reseed, seed=seed("learner")))
        if self.runners.num_remote_workers():
            self.runners.foreach_env_runner(
                functools.partial(_reseed_runner, seed=seed("runner")), local_env_runner=False
            )

    def restart_episodes(self) -> None:
        """Begin new episodes with seeds of this training step, as a resumed run has to: environments have no state
        that a checkpoint could keep. Called at every checkpoint, both runs go on alike."""
        seed = derive_seed(self.engine.seed, "episodes", self.engine.iteration) % 2**31
        self.runners.foreach_env_runner(functools.partial(_restart_runner, seed=seed))

    def log_model_results(self, results: Any) -> None:
        """The world model's loss; its other counters would be mixed up with the policy's."""
        losses = [float(r[WORLD_MODEL]["model_loss"]) for r in results or [] if WORLD_MODEL in r]
        if losses:
            self._log("model_loss", float(np.mean(losses)))

    def log_rehearsal(self, verdict: Verdict, **values: float | None) -> None:
        """What rehearsal did in this training step, and why it did nothing."""
        self._log("open", float(verdict.open))
        for reason in ("warm-up", "no success yet", "poor model", "exploited model"):
            self._log("closed_" + reason.replace(" ", "_").replace("-", "_"), float(verdict.reason == reason))
        for name, value in (self.engine.gates.metrics() | values).items():
            self._log(name, float("nan") if value is None else value)
        self._log("replay_rows", float(len(self.engine.replay)))

    def _log(self, name: str, value: float) -> None:
        self.metrics.log_value((REHEARSAL, name), value, window=1)  # type: ignore[attr-defined]

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return super().get_state(*args, **kwargs) | {REHEARSAL: self.engine.get_state()}  # type: ignore[misc]

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)  # type: ignore[misc]
        if REHEARSAL in state:
            self.engine.set_state(state[REHEARSAL])


def _reseed_runner(runner: Any, seed: int) -> None:
    reseed(None, derive_seed(seed, runner.worker_index))


def _restart_runner(runner: Any, seed: int) -> None:
    runner._seed = derive_seed(seed, runner.worker_index) % 2**31
    runner._needs_initial_reset = True  # RLlib offers a reset, but none with a seed
