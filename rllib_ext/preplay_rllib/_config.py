"""The part of an AlgorithmConfig that is the same for all rehearsal algorithms."""

from typing import Any

import torch
from pydantic import ValidationError
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from preplay.errors import PreplayError
from preplay_rllib._grid_model import GridModule
from preplay_rllib._grid_tracker import GridTracker
from preplay_rllib._latent_model import LatentModule
from preplay_rllib._latent_tracker import LatentTracker
from preplay_rllib._minigrid import MiniGrid
from preplay_rllib._model import WORLD_MODEL, EnsembleModule, Tracker
from preplay_rllib._recent import Recent
from preplay_rllib._settings import RehearsalSettings
from preplay_rllib._vector_model import VectorModule, VectorTracker

_MODELS: dict[str, type[EnsembleModule]] = {
    "grid": GridModule,
    "vector": VectorModule,
    "latent": LatentModule,
}


class RehearsalConfigMixin:
    """Adds ``.rehearsal(...)`` and the world model's RLModule to an AlgorithmConfig."""

    def _begin_rehearsal(self, **defaults: Any) -> None:
        self.rehearsal_options: dict[str, Any] = defaults  # a plain dict, so that Tune can search in it

    def rehearsal(self, **options: Any):
        """Set fields of ``RehearsalSettings``, for example ``.rehearsal(real_ratio=0.1, horizon=10)``."""
        unknown = sorted(options.keys() - RehearsalSettings.model_fields.keys())
        if unknown:
            raise PreplayError(
                f"unknown rehearsal setting {', '.join(unknown)}.",
                fix=f"Known are {', '.join(RehearsalSettings.model_fields)}.",
            )
        self.rehearsal_options = self.rehearsal_options | options
        return self

    @property
    def rehearsal_settings(self) -> RehearsalSettings:
        try:
            return RehearsalSettings(**self.rehearsal_options)
        except ValidationError as error:
            raise PreplayError(f"a rehearsal setting is not possible: {error}") from error

    def make_tracker(self) -> Tracker:
        """What follows the real stream for the chosen world model."""
        made = {"grid": GridTracker, "vector": VectorTracker, "latent": lambda: LatentTracker(self._frames)}
        return made[self.rehearsal_settings.world_model]()

    @property
    def _frames(self) -> int:
        """Observations that the policy sees at once."""
        return self.env_config.get("frames", 1) if self.env is Recent else 1  # type: ignore[attr-defined]

    def get_multi_rl_module_spec(self, *, inference_only: bool = False, **kwargs: Any):
        spec = super().get_multi_rl_module_spec(inference_only=inference_only, **kwargs)  # type: ignore[misc]
        if not inference_only:
            policy = spec.rl_module_specs[DEFAULT_MODULE_ID]
            spec.rl_module_specs[WORLD_MODEL] = RLModuleSpec(
                module_class=self._model_class(),
                observation_space=policy.observation_space,
                action_space=policy.action_space,
                learner_only=True,
                model_config=self._world_model_config(),
            )
        return spec

    def _model_class(self) -> type[EnsembleModule]:
        return _MODELS[self.rehearsal_settings.world_model]

    def _world_model_config(self) -> dict[str, Any]:
        settings = self.rehearsal_settings
        config: dict[str, Any] = {"members": settings.model_members, "hidden": settings.model_hidden}
        if settings.world_model == "grid":
            said = {k: v for k, v in self._set_task(settings).items() if v is not None}
            config |= {"memory": settings.memory} | self._known_task() | said
        if settings.world_model == "latent":
            config |= {
                "memory": settings.memory,
                "kind": settings.model_memory,
                "context": settings.model_context,
                "categories": settings.model_latent,
                "frames": self._frames,
                "open_loop": settings.model_open_loop,
            }
        return config

    @staticmethod
    def _set_task(settings: RehearsalSettings) -> dict[str, Any]:
        return {"max_steps": settings.max_steps, "see_through_walls": settings.see_through_walls}

    def _known_task(self) -> dict[str, Any]:
        if self.env is MiniGrid:  # type: ignore[attr-defined]
            task: Any = MiniGrid(self.env_config).unwrapped  # type: ignore[attr-defined]
            return {"max_steps": task.max_steps, "see_through_walls": task.see_through_walls}
        if self.rehearsal_settings.max_steps is None:
            raise PreplayError(
                "the task's time limit is not known, and MiniGrid's reward depends on it.",
                fix="Use preplay_rllib.MiniGrid as the environment, or set .rehearsal(max_steps=...).",
            )
        return {"see_through_walls": False}


class RehearsalLearnerMixin:
    """What a TorchLearner needs to train the world model beside its policy."""

    @classmethod
    def rl_module_required_apis(cls) -> list[type]:
        return []  # the world model has none of the policy's APIs

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        if module_id != WORLD_MODEL:
            super().configure_optimizers_for_module(module_id, config)  # type: ignore[misc]
            return
        params = self.get_parameters(self.module[module_id])  # type: ignore[attr-defined]
        rate = self.config.rehearsal_settings.model_lr  # type: ignore[attr-defined]
        self.register_optimizer(  # type: ignore[attr-defined]
            module_id=module_id, optimizer=torch.optim.Adam(params), params=params, lr_or_lr_schedule=rate
        )
