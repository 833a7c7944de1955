"""How wrong models and FQE are about policies whose true value is known: what no sweep may look at."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from preplay.artifacts import open_artifact
from preplay.embedding import CachedEncoder, EmbeddedTurns, EmbeddingCache, encoder_config, load_embedded
from preplay.environments import get_environment, truth
from preplay.estimators import FQEConfig, FQEInputs, fit_fqe
from preplay.pipeline._logged import logged_states, sampled_actions
from preplay.policies import Policy
from preplay.rollout import Block, InitialStates, RolloutConfig, rollout_block
from preplay.sweep.trainables._fqe import Shared
from preplay.world_model import LatentWorldModel

ENVIRONMENT = "support_desk"


@dataclass(frozen=True)
class Desk:
    """Logs of the support desk, the target policies and their true values.

    Args:
        starts: Logged first states that imagined sessions start from, at most.
        targets: Target policies to look at, at most.
    """

    data: EmbeddedTurns
    encoder: CachedEncoder
    starts: int
    targets: int
    truth_sessions: int

    @classmethod
    def load(cls, folder: Path, cache: Path, *, starts: int, targets: int, truth_sessions: int) -> "Desk":
        """From an embedded dataset."""
        data = load_embedded(folder)
        config = encoder_config(open_artifact(folder, "embedded"))
        store = EmbeddingCache(str(cache), data.fingerprint)
        encoder = CachedEncoder(config, data.bank, cache=store, expect=data.fingerprint)
        return cls(data, encoder, starts, targets, truth_sessions)

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """Target policies by name, the good and the bad among them."""
        known = list(get_environment(ENVIRONMENT).target_policies().items())
        return dict(known[:: max(1, len(known) // self.targets)][: self.targets])

    @cached_property
    def truths(self) -> np.ndarray:
        """True values, float64 [P]."""
        known = get_environment(ENVIRONMENT)
        return np.array(
            [truth(p, known, sessions=self.truth_sessions, seed=99).value for p in self.policies.values()]
        )

    def model_values(self, model: LatentWorldModel) -> np.ndarray:
        """Values of the policies inside a world model, float64 [P]."""
        rows = self.data.session_starts[:-1][: self.starts]
        initial = InitialStates.from_turns(self.data, rows, history=0)
        config = RolloutConfig(rollouts=2, gamma=model.config.gamma)
        block = Block(0, 0, 0, 2 * len(initial))
        values = []
        for policy in self.policies.values():
            turns = rollout_block(model, policy, self.encoder, initial, config, block)
            step, survival = turns["step"].to_numpy(), turns["survival"].to_numpy()
            returns = config.gamma**step * survival * turns["reward"].to_numpy()
            values.append(returns.sum() / len(block))
        return np.array(values)

    def fqe_values(self, shared: Shared, model: LatentWorldModel, config: FQEConfig, seed: int) -> np.ndarray:
        """Values of the policies by FQE on the features of a world model, float64 [P]."""
        return np.array([self._fqe_value(shared, model, config, p, seed) for p in self.policies.values()])

    def error(self, values: np.ndarray) -> float:
        """Mean absolute error in shares of the range of the truths."""
        return float(np.abs(values - self.truths).mean() / np.ptp(self.truths))

    def _fqe_value(
        self, shared: Shared, model: LatentWorldModel, config: FQEConfig, policy: Policy, seed: int
    ) -> float:
        states = logged_states(self.data, policy.reads)
        before = sampled_actions(model, policy, states.before, self.encoder, count=4, seed=seed)
        behind = sampled_actions(model, policy, states.after_last, self.encoder, count=4, seed=seed)
        following = np.concatenate([before[1:], before[:1]])
        following[shared.offsets[1:] - 1] = behind
        fitted = fit_fqe(
            FQEInputs(
                offsets=shared.offsets,
                state_features=shared.features.state,
                action_features=shared.features.action,
                reward=shared.reward,
                terminated=shared.terminated,
                truncated=shared.truncated,
                next_state_features=shared.features.after,
                next_action_features=following,
                start_action_features=before[shared.offsets[:-1]],
                gamma=shared.gamma,
                horizon=shared.horizon,
            ),
            config,
            seed=seed,
        )
        assert fitted.v_start_members is not None
        return float(fitted.v_start_members.mean())
