"""The rehearsal manager: when, what, from where, how far, and what imagination is used for."""

from dataclasses import dataclass, field

import numpy as np
from gymnasium.spaces import Discrete

from preplay.rehearsal._behaviour import action_numbers, uniform_actions
from preplay.rehearsal._experience import Experience
from preplay.rehearsal._horizon import Horizon
from preplay.rehearsal._imagine import Branches, Luck, Reinject, imagine
from preplay.rehearsal._planners import shifted
from preplay.rehearsal._scene import Aim, Proposals, Proposer, Scene
from preplay.rehearsal._starts import Starts
from preplay.rehearsal._triggers import EveryNSteps, Moment, Trigger
from preplay.rehearsal._world import World
from preplay.seeding import numpy_rng


@dataclass(frozen=True)
class Rehearsal:
    """One way to rehearse; every part can be exchanged for another.

    Args:
        proposer: What is done in imagination.
        trigger: When.
        starts: From where (training only; deciding starts where the agent stands).
        horizon: How far.
        aim: What counts as good when candidates are compared.
        branches: Imagined branches per round of training.
    """

    proposer: Proposer
    trigger: Trigger = field(default_factory=lambda: EveryNSteps(512))
    starts: Starts = field(default_factory=Starts)
    horizon: Horizon = field(default_factory=Horizon)
    aim: Aim = field(default_factory=Aim)
    branches: int = 256

    def __post_init__(self):
        if self.branches < 1:
            raise ValueError(f"{self.branches} branches")


@dataclass(frozen=True)
class Decision:
    """What imagination recommends in B states.

    Args:
        action: [B, ...] first action of the best imagined candidate.
        value: float64 [B] its imagined value.
        proposals: All candidates.
        warm: Plans for the next call in the same sessions, [B, H, ...]; None where candidates react.
    """

    action: np.ndarray
    value: np.ndarray
    proposals: Proposals
    warm: np.ndarray | None


class RehearsalManager:
    """Keeps count of real steps and rounds, and imagines when asked.

    Args:
        world: The present world model; assign another one when it has learned more.
        rehearsal: How to rehearse.
        seed: All draws come from streams of (seed, use, round).
        reinject: Brings imagined states back to real ones where the horizon asks for it.
    """

    def __init__(self, world: World, rehearsal: Rehearsal, *, seed: int, reinject: Reinject | None = None):
        if rehearsal.horizon.reinject_every and reinject is None:
            raise ValueError("the horizon asks for re-injection, but there is nothing that does it")
        self.world, self.rehearsal, self.seed, self.reinject = world, rehearsal, seed, reinject
        self.real_steps, self.last_round, self.rounds, self.decisions = 0, 0, 0, 0

    def watch(self, state: np.ndarray, steps: int) -> np.ndarray:
        """Count ``steps`` real steps that led to ``state`` [B, ...]; where it is time to rehearse, bool [B]."""
        self.real_steps += steps
        moment = Moment(
            self.real_steps,
            self.real_steps - self.last_round,
            self.world.observe(state),
            self.uncertainty(state),
        )
        return self.rehearsal.trigger.due(moment)

    def uncertainty(self, state: np.ndarray) -> np.ndarray:
        """Mean uncertainty over all discrete actions (or over one random action vector), float64 [B]."""
        rng, space = numpy_rng(self.seed, "uncertainty", self.real_steps), self.world.action_space
        if isinstance(space, Discrete):
            tried = np.repeat(np.arange(int(space.n)), len(state))
        else:
            tried = uniform_actions(space, rng.random((len(state), action_numbers(space))))
        rows = np.tile(state, (len(tried) // len(state), *[1] * (state.ndim - 1)))
        known = self.world.step(rows, tried, rng.standard_normal((len(rows), self.world.noise_dim)))
        return known.uncertainty.reshape(-1, len(state)).mean(0)

    def train(self, experience: Experience, current: np.ndarray | None = None) -> Branches:
        """Imagined transitions to learn from: one branch per drawn start, ended where the model says so."""
        how, keys = self.rehearsal, ("train", self.rounds)
        rng = numpy_rng(self.seed, *keys, "starts")
        start = how.starts.draw(how.branches, experience, self.world, rng, current)
        steps = how.horizon.at(self.real_steps)
        scene = Scene(self.world, start, steps, how.aim, self.seed, (*keys, "search"))
        self.rounds += 1
        self.last_round = self.real_steps
        return imagine(
            self.world,
            start,
            how.proposer.behaviour(scene),
            steps=steps,
            luck=Luck(self.seed, np.arange(len(start)), keys),
            reinject=self.reinject,
            reinject_every=how.horizon.reinject_every,
        )

    def act(self, state: np.ndarray, *, warm: np.ndarray | None = None) -> Decision:
        """Decide now: the best imagined candidate's first action in every state [B, ...].

        Args:
            warm: ``Decision.warm`` of the step before in the same sessions; leave it out when one begins.
        """
        how, keys = self.rehearsal, ("act", self.decisions)
        steps = how.horizon.at(self.real_steps) if warm is None else warm.shape[1]
        self.decisions += 1
        proposals = how.proposer.propose(Scene(self.world, state, steps, how.aim, self.seed, keys, warm))
        plan = proposals.best_plan
        return Decision(
            proposals.best_action,
            proposals.best_value,
            proposals,
            None if plan is None else shifted(plan),
        )

    def state_dict(self) -> dict[str, int]:
        """Counts that a checkpoint must keep: the same rounds follow after a resume."""
        return {name: getattr(self, name) for name in ("real_steps", "last_round", "rounds", "decisions")}

    def load_state_dict(self, counts: dict[str, int]) -> None:
        """Go on from kept counts."""
        for name in self.state_dict():
            setattr(self, name, counts[name])
