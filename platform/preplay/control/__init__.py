"""A critic in the driver's seat: choose, stop, fall back or ask - and learn from what came of it."""

from preplay.control._analyze import FailureAnalysis, analyze_failures
from preplay.control._async import BatchingController
from preplay.control._audit import AUDIT_VERSION, AuditLog
from preplay.control._calibration import (
    RiskCoverage,
    Threshold,
    calibrate_threshold,
    risk_coverage,
    upper_bound,
)
from preplay.control._commands import (
    analyze_audit,
    encoder_for,
    evaluate_on_dataset,
    record_noisy_expert,
    retrain_from_audit,
    train_from_dataset,
)
from preplay.control._controller import Controller, ControllerConfig
from preplay.control._decision import Decision
from preplay.control._goals import Goals, PromptChooser, prompt_action
from preplay.control._pool_size import PoolSizePoint, choose_pool_size, pool_size_curve
from preplay.control._retrain import RetrainResult, compare_critics, decisions_turns, replace_critic, retrain
from preplay.control._review import ReviewPair, ReviewSheet, review_sheet
from preplay.control._rules import DEFAULT_RULES, RISKS, Rule, judge, risks_of
from preplay.control._simulate import simulate_code_repair, simulate_conversations
from preplay.critics import DecisionState

__all__ = [
    "AUDIT_VERSION",
    "DEFAULT_RULES",
    "RISKS",
    "AuditLog",
    "BatchingController",
    "Controller",
    "ControllerConfig",
    "Decision",
    "DecisionState",
    "FailureAnalysis",
    "Goals",
    "PoolSizePoint",
    "PromptChooser",
    "RetrainResult",
    "ReviewPair",
    "ReviewSheet",
    "RiskCoverage",
    "Rule",
    "Threshold",
    "analyze_audit",
    "analyze_failures",
    "calibrate_threshold",
    "choose_pool_size",
    "compare_critics",
    "decisions_turns",
    "encoder_for",
    "evaluate_on_dataset",
    "judge",
    "pool_size_curve",
    "prompt_action",
    "record_noisy_expert",
    "replace_critic",
    "retrain",
    "retrain_from_audit",
    "review_sheet",
    "risk_coverage",
    "risks_of",
    "simulate_code_repair",
    "simulate_conversations",
    "train_from_dataset",
    "upper_bound",
]
