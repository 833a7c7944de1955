"""RehearsalPPO: PPO on short real rollouts, and on branches that the newest policy imagines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ray.rllib.algorithms.ppo.ppo import PPO, PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.evaluation.postprocessing import Postprocessing
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, LEARNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from preplay_rllib._config import RehearsalConfigMixin, RehearsalLearnerMixin
from preplay_rllib._engine import update_module
from preplay_rllib._imagine import Batch
from preplay_rllib._module import MixedPPOModule
from preplay_rllib._run import RehearsalMixin


class RehearsalPPOLearner(RehearsalLearnerMixin, PPOTorchLearner):
    """PPO's learner, and the world model's."""


class RehearsalPPOConfig(RehearsalConfigMixin, PPOConfig):
    """PPO with rehearsal. Defaults suit MiniGrid: 16 environments of 32 steps per training step, 16 epochs:
    two thirds of the gradient steps are taken on real rows.

    Example::

        config = (
            RehearsalPPOConfig()
            .environment(MiniGrid, env_config={"id": "MiniGrid-DoorKey-5x5-v0"})
            .rehearsal(real_ratio=1 / 31, horizon=15)
        )
        algorithm = config.build_algo()
    """

    def __init__(self, algo_class: type | None = None):
        super().__init__(algo_class=algo_class or RehearsalPPO)
        self._begin_rehearsal()
        self.training(
            train_batch_size_per_learner=512,
            minibatch_size=256,
            num_epochs=16,
            lr=1e-3,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=0.01,
            use_kl_loss=False,
            clip_param=0.2,
            vf_loss_coeff=0.5,
            grad_clip=0.5,
        )
        self.env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        self.rl_module(
            model_config={"fcnet_hiddens": [64, 64], "fcnet_activation": "tanh", "vf_share_layers": False}
        )

    def get_default_learner_class(self) -> type:
        return RehearsalPPOLearner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        return RLModuleSpec(module_class=MixedPPOModule)

    @property
    def _model_config_auto_includes(self) -> dict[str, Any]:
        return super()._model_config_auto_includes | {"uniform_mix": self.rehearsal_settings.uniform_mix}


class RehearsalPPO(RehearsalMixin, PPO):
    """Each training step: sample, judge the world model, learn from the real rows, train the model, rehearse."""

    @classmethod
    def get_default_config(cls) -> RehearsalPPOConfig:
        return RehearsalPPOConfig()

    def setup(self, config: Any) -> None:
        super().setup(config)
        self._begin_engine(self.options.gamma, self.options.lambda_)

    def training_step(self) -> None:
        self.reseed_processes()
        sampled: Any = synchronous_parallel_sample(
            worker_set=self.runners,
            max_env_steps=self.options.total_train_batch_size,
            sample_timeout_s=self.options.sample_timeout_s,
            _uses_new_env_runners=True,
            _return_metrics=True,
        )
        episodes, results = sampled
        if not episodes:
            return
        self.metrics.aggregate(results, key=ENV_RUNNER_RESULTS)
        self._learn(episodes)
        self.runners.sync_weights(
            from_worker_or_learner_group=self.learners, policies=[DEFAULT_MODULE_ID], inference_only=True
        )
        self.engine.iteration += 1

    def _learn(self, episodes: Sequence[SingleAgentEpisode]) -> None:
        steps, timesteps = self.real_steps(), {NUM_ENV_STEPS_SAMPLED_LIFETIME: self.real_steps()}
        rows = self.engine.absorb(self.learners, episodes, steps)
        verdict = self.engine.verdict(steps)
        learned = self.learners.update(
            episodes=self.engine.bonus.shaped(episodes),
            timesteps=timesteps,
            num_epochs=self.options.num_epochs if verdict.open else self._closed_epochs(len(rows["episode"])),
            minibatch_size=self.options.minibatch_size,
            shuffle_batch_per_epoch=self.options.shuffle_batch_per_epoch,
        )
        self.metrics.aggregate(learned, key=LEARNER_RESULTS)
        count = len(rows["episode"])
        self.log_model_results(self.engine.train_model(self.learners, count, timesteps))
        batches = self._rehearse(count, steps, timesteps) if verdict.open else []
        self.log_rehearsal(
            verdict,
            imagined_rows=sum(len(b.columns[Postprocessing.ADVANTAGES]) for b in batches),
            imagined_success=float(np.mean([b.success_rate for b in batches])) if batches else None,
            disagreement=float(np.mean([b.mean_disagreement for b in batches])) if batches else None,
        )

    def _closed_epochs(self, real_rows: int) -> int:
        """Passes over the real rows while rehearsal is closed: as many gradient steps as with it, so a task whose
        model is no good is learned as it would be without one."""
        settings, options = self.engine.settings, self.options
        imagined = self.engine.rounds * settings.imagined_epochs * settings.imagined_minibatches
        return options.num_epochs + round(imagined * options.minibatch_size / real_rows)

    def _rehearse(self, real_rows: int, steps: int, timesteps: dict[str, Any]) -> list[Batch]:
        """Rounds of branches under the newest policy, each followed by an update on them."""
        settings, engine = self.engine.settings, self.engine
        per_round = settings.imagined_rows(real_rows, steps) / settings.rounds
        branches = max(1, round(per_round / engine.horizon(steps)))
        batches = []
        for index in range(engine.rounds):
            starts = engine.starts(branches, "starts", index)
            batch = engine.branch(self.learners, starts, steps, "round", index)
            if len(batch.columns[Postprocessing.ADVANTAGES]) < settings.min_rows:
                continue
            self._learn_imagined(batch, timesteps, engine.rng("order", index))
            batches.append(batch)
        return batches

    def _learn_imagined(self, batch: Batch, timesteps: dict[str, Any], rng: np.random.Generator) -> None:
        settings = self.engine.settings
        order = rng.permutation(len(batch.columns[Postprocessing.ADVANTAGES]))
        columns = {name: values[order] for name, values in batch.columns.items()}
        columns[Postprocessing.ADVANTAGES] = columns[Postprocessing.ADVANTAGES] * np.float32(
            settings.imagined_weight
        )
        size = -(-len(order) // settings.imagined_minibatches)
        update_module(self.learners, DEFAULT_MODULE_ID, columns, size, settings.imagined_epochs, timesteps)
