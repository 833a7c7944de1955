"""One YAML file configures every step; the ``debug`` preset runs all of them in seconds."""

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from preplay.backtest import Learner
from preplay.embedding import EncoderConfig
from preplay.errors import PreplayError
from preplay.estimators import FQEConfig
from preplay.rollout import RolloutConfig
from preplay.world_model import FeatureConfig, OptimiserConfig, WorldModelConfig


class StructureConfig(BaseModel):
    """How policies are judged by what their tool calls are made of, where the logs hold tool calls.

    Args:
        enabled: Whether they are.
        solved_at: Reward of a turn from which its session is solved.
        environment_key: Field of ``extras`` that names the environment; found by itself when absent.
        groups: Group of a policy (model family, prompt variant): policies of a group are left out together.
        horizon: Turn budget of the target policies, where it is not that of the logs.
        asked_sessions: Logged sessions in whose states a policy without sessions of its own is asked, at most.
        learners: Models per turn to choose among.
        rows: Training rows per model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    solved_at: float = 1.0
    environment_key: str | None = None
    groups: dict[str, str] = {}
    horizon: int | None = Field(default=None, ge=1)
    asked_sessions: int = Field(default=300, ge=1)
    learners: tuple[Learner, ...] = ("logistic", "boosting")
    rows: int = Field(default=8000, ge=200)


class EvaluationConfig(BaseModel):
    """How target policies are judged.

    Args:
        level: Level of the intervals.
        resamples: Bootstrap resamples of the sessions.
        max_initial_states: Logged first observations that imagined sessions start from, at most.
        sampled_actions: Actions drawn from the policy per logged state for its value there.
        asked_sessions: Logged sessions in whose states a policy without known probabilities is asked for fitted Q
            evaluation, at most.
        fqe: Settings of fitted Q evaluation.
        shown_sessions: Imagined sessions per policy in the report.
        structure: Judging by the structure of tool calls, and backtests of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: float = Field(default=0.95, gt=0, lt=1)
    resamples: int = Field(default=10_000, ge=100)
    max_initial_states: int = Field(default=2000, ge=1)
    sampled_actions: int = Field(default=8, ge=1)
    asked_sessions: int = Field(default=2000, ge=1)
    fqe: FQEConfig = FQEConfig()
    shown_sessions: int = Field(default=4, ge=0)
    structure: StructureConfig = StructureConfig()


class PreplayConfig(BaseModel):
    """The whole configuration. ``gamma`` and ``horizon`` of evaluation are those of the world model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 0
    members: int = Field(default=2, ge=1, description="world models in the ensemble")
    encoder: EncoderConfig = EncoderConfig()
    world_model: WorldModelConfig = WorldModelConfig()
    rollout: RolloutConfig = RolloutConfig(rollouts=4)
    evaluation: EvaluationConfig = EvaluationConfig()


_QUICK = OptimiserConfig(steps=100, warmup=10, evaluate_every=50)
PRESETS: dict[str, PreplayConfig] = {
    "default": PreplayConfig(),
    "debug": PreplayConfig(
        members=1,
        world_model=WorldModelConfig(
            features=FeatureConfig(optimiser=_QUICK), optimiser=_QUICK, outcome=_QUICK
        ),
        rollout=RolloutConfig(rollouts=1),
        evaluation=EvaluationConfig(
            resamples=1000,
            max_initial_states=100,
            sampled_actions=2,
            fqe=FQEConfig(iterations=4, steps=40),
            structure=StructureConfig(asked_sessions=50, learners=("logistic",), rows=2000),
        ),
    ),
}


def load_config(
    file: Path | None = None, preset: Literal["default", "debug"] = "default", seed: int | None = None
) -> PreplayConfig:
    """The preset, changed by a YAML file and a seed.

    Raises:
        PreplayError: With file and field when the YAML is wrong; unknown keys are refused.
    """
    settings = PRESETS[preset].model_dump()
    if file:
        settings = _merged(settings, _read_yaml(file))
    if seed is not None:
        settings["seed"] = seed
    try:
        return PreplayConfig.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise PreplayError(
            f"{first['msg']} (got {first['input']!r}).",
            where=f"{file}, field {field!r}",
            fix="See `preplay config` for every field and its default.",
        ) from error


def config_yaml(config: PreplayConfig) -> str:
    """The configuration as YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PreplayError(f"cannot be read as YAML: {error}", where=str(file)) from error
    if not isinstance(content, dict):
        raise PreplayError("must hold a mapping of fields to values.", where=str(file))
    return content


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, dict) and isinstance(base.get(key), dict)
        result[key] = _merged(base[key], value) if nested else value
    return result
