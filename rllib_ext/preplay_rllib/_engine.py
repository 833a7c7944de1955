"""What all rehearsal algorithms share: following the real stream, training the world model, judging it.

One object per Algorithm, on the driver. Everything drawn comes from streams named by the training step, so a resumed
run draws what the uninterrupted one would have drawn.
"""

import functools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from preplay.seeding import derive_seed, numpy_rng
from preplay_rllib._bonus import FirstVisitBonus
from preplay_rllib._gates import Gates, Verdict, known_outcomes
from preplay_rllib._imagine import (
    Batch,
    Branching,
    fit_scales,
    imagine_on_policy,
    imagined_worth,
    model_error,
)
from preplay_rllib._model import WORLD_MODEL, Tracker
from preplay_rllib._replay import Columns, Replay
from preplay_rllib._settings import RehearsalSettings, at

_GAP_ROWS, _FEWEST_GAP_ROWS = 128, 32
_SCALE_ROWS = 2048
_REAL_ROWS_PER_UPDATE_COUNT = 512


class Engine:
    """Replay, tracker, gates and bonus of one run, and the calls that reach its learners."""

    def __init__(
        self, settings: RehearsalSettings, tracker: Tracker, seed: int, gamma: float, lambda_: float
    ):
        self.settings, self.tracker, self.seed = settings, tracker, seed
        self.replay = Replay(
            settings.replay_capacity,
            settings.model_members,
            derive_seed(seed, "bootstrap"),
            settings.model_context if settings.world_model == "latent" else 0,
        )
        self.gates = Gates(settings)
        self.bonus = FirstVisitBonus(settings.bonus)
        self.iteration = 0
        self._gamma, self._lambda = gamma, lambda_

    def absorb(
        self, learners: LearnerGroup, episodes: Sequence[SingleAgentEpisode], real_steps: int
    ) -> Columns:
        """Judge the model on what has just happened, before it may learn from it; then keep it."""
        rows = self.tracker.track(episodes)
        judged = len(self.replay) and self.mixes(real_steps)
        known = self.replay.sample_alone(_SCALE_ROWS, self.rng("unit")) if judged else {}
        self.replay.add(rows)
        if judged:
            fresh = self.replay.newest(len(rows["episode"]))
            self.gates.observe_error(call_first(learners, functools.partial(model_error, rows=fresh)))
            self._observe_gap(learners, fresh, known, real_steps)
        self.gates.observe_ends(int(rows["success"].sum()), sum(e.is_done for e in episodes))
        return rows

    def _observe_gap(self, learners: LearnerGroup, rows: Columns, known: Columns, real_steps: int) -> None:
        """Only where something was at stake: without any success yet, imagination and world agree on nothing."""
        horizon = self.horizon(real_steps)
        pairs = known_outcomes(rows, horizon)
        too_early = self.settings.needs_success and not self.gates.successes
        if too_early or len(pairs.rows) < _FEWEST_GAP_ROWS:
            return
        chosen = self.rng("gap").permutation(pairs.rows)[:_GAP_ROWS]
        starts = {name: values[chosen] for name, values in rows.items()}
        branching = self.branching(real_steps, "gap")
        task = functools.partial(imagined_worth, starts=starts, branching=branching, real_steps=real_steps)
        unit = self.tracker.gap_unit(known, horizon)
        self.gates.observe_gap(call_first(learners, task), pairs.real_worth, unit)

    def train_model(self, learners: LearnerGroup, real_rows: int, timesteps: dict[str, Any]) -> Any:
        """Gradient steps on uniform replay, rare ends oversampled, in proportion to the real rows."""
        size = self.settings.model_batch_size
        updates = round(self.settings.model_updates * real_rows / _REAL_ROWS_PER_UPDATE_COUNT)
        if not updates:
            return None
        rng = self.rng("model")
        scales: Any = functools.partial(
            fit_scales, rows=self.replay.sample_alone(_SCALE_ROWS, self.rng("scales"))
        )
        learners.foreach_learner(scales)
        rows = self.replay.sample(updates * size, self.settings.success_share, rng)
        order = rng.permutation(updates * size)  # the rare rows come first otherwise
        batch = {name: values[order] for name, values in rows.items()}
        return update_module(learners, WORLD_MODEL, batch, size, 1, timesteps)

    def starts(self, branches: int, *stream: str | int) -> Columns:
        """Real rows to branch from."""
        return self.replay.starts(
            branches, self.success_share, self.settings.newest_starts, self.rng(*stream)
        )

    @property
    def success_share(self) -> float:
        """Share of branches that start on the way to a past success."""
        return self.settings.success_starts * (1 - self.gates.success_rate)

    def branch(self, learners: LearnerGroup, starts: Columns, real_steps: int, *stream: str | int) -> Batch:
        """On-policy branches from these rows."""
        branching = self.branching(real_steps, *stream)
        return call_first(learners, functools.partial(imagine_on_policy, starts=starts, branching=branching))

    def branching(self, real_steps: int, *stream: str | int) -> Branching:
        """How branches go after this many real steps, with a seed of their own."""
        return Branching(
            horizon=self.horizon(real_steps),
            max_disagreement=self.settings.max_disagreement,
            gamma=self._gamma,
            lambda_=self._lambda,
            rare_actions=self.settings.rare_actions,
            seed=derive_seed(self.seed, "branch", self.iteration, *stream),
        )

    def horizon(self, real_steps: int) -> int:
        return max(1, round(at(self.settings.horizon, real_steps)))

    def verdict(self, real_steps: int) -> Verdict:
        return self.gates.verdict(real_steps) if self.mixes(real_steps) else Verdict("real_ratio 1")

    @property
    def rounds(self) -> int:
        """Rounds of imagination that belong to this training step, whether or not they may be taken."""
        return self.settings.rounds + round(self.settings.more_rounds * self.gates.success_rate)

    def mixes(self, real_steps: int) -> bool:
        """Whether the schedule has any imagined rows after this many real steps."""
        return at(self.settings.real_ratio, real_steps) < 1

    def rng(self, *stream: str | int) -> np.random.Generator:
        return numpy_rng(self.seed, "engine", self.iteration, *stream)

    def get_state(self) -> dict[str, Any]:
        """All that RLlib leaves out of a checkpoint."""
        parts = {"replay": self.replay, "tracker": self.tracker, "gates": self.gates, "bonus": self.bonus}
        state = {name: part.get_state() for name, part in parts.items()}
        return state | {"iteration": self.iteration, "seed": self.seed}

    def set_state(self, state: dict[str, Any]) -> None:
        self.iteration, self.seed = state["iteration"], state["seed"]
        self.replay.set_state(state["replay"])
        self.tracker.set_state(state["tracker"])
        self.gates.set_state(state["gates"])
        self.bonus.set_state(state["bonus"])


def update_module(
    learners: LearnerGroup,
    module_id: str,
    rows: Columns,
    minibatch_size: int,
    epochs: int,
    timesteps: dict[str, Any],
) -> Any:
    """Train one module on ready-made rows; RLlib shards them over the learners and synchronises the gradients."""
    batch = MultiAgentBatch({module_id: SampleBatch(rows)}, env_steps=len(next(iter(rows.values()))))
    return learners.update(
        batch=batch,
        timesteps=timesteps,
        minibatch_size=minibatch_size,
        num_epochs=epochs,
        shuffle_batch_per_epoch=True,
    )


def call_first(learners: LearnerGroup, function: Any) -> Any:
    """Run a function on one learner (they all hold the same weights) and return what it returned."""
    if learners.is_local:
        return next(iter(learners.foreach_learner(function))).get()
    return next(iter(learners.foreach_learner(function, remote_actor_ids=[0]))).get()


def reseed(_: Any, seed: int) -> None:
    """Set the process-wide generators that RLlib draws actions and minibatch orders from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - RLlib's minibatches shuffle with it
    torch.manual_seed(seed)
