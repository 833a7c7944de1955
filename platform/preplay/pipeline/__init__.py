"""The steps put together: configuration, training, evaluation of policies, the demo."""

from preplay.pipeline._config import (
    PRESETS,
    EvaluationConfig,
    PreplayConfig,
    StructureConfig,
    config_yaml,
    load_config,
)
from preplay.pipeline._context import EvaluationRequest
from preplay.pipeline._demo import run_demo, write_logs
from preplay.pipeline._evaluate import evaluate_policies, policy_key
from preplay.pipeline._logged import ValueFeatures, value_features
from preplay.pipeline._models import clone_policy, train_models
from preplay.pipeline._shadow import ShadowResult, evaluate_shadow

__all__ = [
    "PRESETS",
    "EvaluationConfig",
    "EvaluationRequest",
    "PreplayConfig",
    "ShadowResult",
    "StructureConfig",
    "ValueFeatures",
    "clone_policy",
    "config_yaml",
    "evaluate_policies",
    "evaluate_shadow",
    "load_config",
    "policy_key",
    "run_demo",
    "train_models",
    "value_features",
    "write_logs",
]
