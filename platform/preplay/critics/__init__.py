"""Critics learned from logged decisions: IQL, CQL, AWR and BC on pools of candidates, and the plain classifier."""

from preplay.critics._chunks import ChunkBank, ChunkConfig, split_text
from preplay.critics._classifier import ClassifierKind, RewardClassifier, train_classifier
from preplay.critics._config import Algorithm, CriticConfig
from preplay.critics._critic import Critic, Scores, load_critic, save_critic, saved_encoder
from preplay.critics._decisions import Decisions, decision_texts, decisions_from_turns, split_groups
from preplay.critics._distill import distill, rank_agreement
from preplay.critics._encoder import ActionEncoder, DecisionState, EncodedPools
from preplay.critics._ensemble import join_critics
from preplay.critics._evaluate import (
    CriticMetrics,
    Scorer,
    action_correlation,
    auc,
    calibration_error,
    evaluate_critic,
    returns_to_go,
)
from preplay.critics._features import DENSE, pool_features
from preplay.critics._losses import advantage_weights, bootstrap_target, cql_penalty, expectile_loss, td_loss
from preplay.critics._store import load_scorer, save_scorer
from preplay.critics._summary import ActionSummary, summarize
from preplay.critics._train import train_critic

__all__ = [
    "DENSE",
    "ActionEncoder",
    "ActionSummary",
    "Algorithm",
    "ChunkBank",
    "ChunkConfig",
    "ClassifierKind",
    "Critic",
    "CriticConfig",
    "CriticMetrics",
    "DecisionState",
    "Decisions",
    "EncodedPools",
    "RewardClassifier",
    "Scorer",
    "Scores",
    "action_correlation",
    "advantage_weights",
    "auc",
    "bootstrap_target",
    "calibration_error",
    "cql_penalty",
    "decision_texts",
    "decisions_from_turns",
    "distill",
    "evaluate_critic",
    "expectile_loss",
    "join_critics",
    "load_critic",
    "load_scorer",
    "pool_features",
    "rank_agreement",
    "returns_to_go",
    "save_critic",
    "save_scorer",
    "saved_encoder",
    "split_groups",
    "split_text",
    "summarize",
    "td_loss",
    "train_classifier",
    "train_critic",
]
