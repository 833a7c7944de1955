"""RehearsalDQN and RehearsalSAC: real and imagined transitions mixed in every batch."""

import functools
from typing import Any

from ray.rllib.algorithms.dqn.dqn import DQN, DQNConfig
from ray.rllib.algorithms.dqn.torch.dqn_torch_learner import DQNTorchLearner
from ray.rllib.algorithms.sac.sac import SAC, SACConfig
from ray.rllib.algorithms.sac.torch.sac_torch_learner import SACTorchLearner

from preplay.seeding import numpy_rng
from preplay_rllib._buffer import MixedReplayBuffer
from preplay_rllib._config import RehearsalConfigMixin, RehearsalLearnerMixin
from preplay_rllib._engine import call_first
from preplay_rllib._model import WORLD_MODEL
from preplay_rllib._run import RehearsalMixin
from preplay_rllib._settings import at
from preplay_rllib._transitions import imagine_off_policy

_BUFFER = "mixed_replay_buffer"
_DEFAULTS = {
    "world_model": "vector",
    "real_ratio": 0.5,
    "horizon": 3,
    "needs_success": False,
    "warmup_steps": 1000,
    "model_updates": 256,
    "success_starts": 0.0,
    "newest_starts": 50_000,
    "bonus": 0.0,
    "uniform_mix": 0.0,
}


class OffPolicyMixin(RehearsalMixin):
    """Swaps the replay buffer and, every ``rehearse_every`` real rows, trains the model and imagines anew."""

    def _begin_off_policy(self) -> None:
        config = self.options
        self._begin_engine(config.gamma, 1.0)
        kept = {k: v for k, v in config.replay_buffer_config.items() if k in ("capacity", "alpha")}
        # The object is swapped, not the configured type: SAC admits RLlib's own type names only.
        self.local_replay_buffer = MixedReplayBuffer(
            imagined_capacity=config.rehearsal_settings.imagined_capacity, **kept
        )

    def training_step(self) -> None:
        self.reseed_processes()
        self.local_replay_buffer.rng = numpy_rng(self.engine.seed, "buffer", self.engine.iteration)
        super().training_step()  # type: ignore[misc]
        if self.local_replay_buffer.fresh_rows >= self.engine.settings.rehearse_every:
            self._rehearse()
        self.engine.iteration += 1

    def _rehearse(self) -> None:
        engine, steps = self.engine, self.real_steps()
        learners = self.learners
        rows = engine.absorb(learners, self.local_replay_buffer.take_fresh(), steps)
        self.log_model_results(engine.train_model(learners, len(rows["episode"]), {}))
        verdict = engine.verdict(steps)
        made = self._imagine(steps) if verdict.open else 0
        if not verdict.open:
            self.local_replay_buffer.imagined.clear()
        self.local_replay_buffer.real_ratio = at(engine.settings.real_ratio, steps) if verdict.open else 1.0
        self.log_rehearsal(verdict, imagined_rows=float(made))

    def _imagine(self, steps: int) -> int:
        engine = self.engine
        starts = engine.starts(engine.settings.branches, "starts")
        task = functools.partial(
            imagine_off_policy,
            starts=starts,
            branching=engine.branching(steps, "off-policy"),
            real_steps=steps,
        )
        made = call_first(self.learners, task)
        config = self.options
        module = self.env_runner.module  # type: ignore[attr-defined]
        spaces = (module.observation_space, module.action_space)
        self.local_replay_buffer.add_imagined(
            made.episodes(spaces, config.rehearsal_settings.imagined_weight)
        )
        return len(made)

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return super().get_state(*args, **kwargs) | {_BUFFER: self.local_replay_buffer.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if _BUFFER in state:
            self.local_replay_buffer.set_state(state[_BUFFER])


class RehearsalDQNLearner(RehearsalLearnerMixin, DQNTorchLearner):
    """DQN's learner, and the world model's."""


class RehearsalDQNConfig(RehearsalConfigMixin, DQNConfig):
    """DQN with rehearsal: imagined rows carry λ in the weights column that DQN's loss reads anyway."""

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or RehearsalDQN)
        self._begin_rehearsal(**_DEFAULTS)
        self.env_runners(num_env_runners=0)

    def get_default_learner_class(self) -> type:
        return RehearsalDQNLearner


class RehearsalDQN(OffPolicyMixin, DQN):
    """DQN on mixed batches."""

    @classmethod
    def get_default_config(cls) -> RehearsalDQNConfig:
        return RehearsalDQNConfig()

    def setup(self, config: Any) -> None:
        super().setup(config)
        self._begin_off_policy()


class RehearsalSACLearner(RehearsalLearnerMixin, SACTorchLearner):
    """SAC's learner, which takes the gradients of its own losses one by one, and the world model's."""

    def compute_gradients(self, loss_per_module: Any, **kwargs: Any) -> Any:
        model = {k: v for k, v in loss_per_module.items() if k == WORLD_MODEL}
        own = {k: v for k, v in loss_per_module.items() if k != WORLD_MODEL}
        gradients: dict[Any, Any] = super().compute_gradients(own, **kwargs) if own else {}
        if model:
            optimizer = self.get_optimizer(WORLD_MODEL)
            optimizer.zero_grad(set_to_none=True)
            model[WORLD_MODEL].backward()
            params = self.filter_param_dict_for_optimizer(self._params, optimizer)
            gradients |= {name: param.grad for name, param in params.items()}
        return gradients


class RehearsalSACConfig(RehearsalConfigMixin, SACConfig):
    """SAC with rehearsal, for discrete and continuous actions: λ weighs the critics."""

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or RehearsalSAC)
        self._begin_rehearsal(**_DEFAULTS)
        self.env_runners(num_env_runners=0)

    def get_default_learner_class(self) -> type:
        return RehearsalSACLearner


class RehearsalSAC(OffPolicyMixin, SAC):
    """SAC on mixed batches."""

    @classmethod
    def get_default_config(cls) -> RehearsalSACConfig:
        return RehearsalSACConfig()

    def setup(self, config: Any) -> None:
        super().setup(config)
        self._begin_off_policy()
