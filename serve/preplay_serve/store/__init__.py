"""What the server knows, in SQL: evaluations, decisions and their outcomes, published artifacts, tokens."""

from preplay_serve.store._artifacts import ArtifactKind, ArtifactRecord, Artifacts
from preplay_serve.store._decisions import (
    DecisionContent,
    DecisionFilter,
    DecisionRecord,
    Decisions,
    OutcomeRecord,
)
from preplay_serve.store._evaluations import Evaluations
from preplay_serve.store._records import (
    FINAL,
    EvaluationRecord,
    EvaluationSpec,
    PartialEstimate,
    Progress,
    Status,
    new_id,
)
from preplay_serve.store._store import Store, open_store
from preplay_serve.store._tokens import SCOPES, Scope, TokenRecord, Tokens

__all__ = [
    "FINAL",
    "SCOPES",
    "ArtifactKind",
    "ArtifactRecord",
    "Artifacts",
    "DecisionContent",
    "DecisionFilter",
    "DecisionRecord",
    "Decisions",
    "EvaluationRecord",
    "EvaluationSpec",
    "Evaluations",
    "OutcomeRecord",
    "PartialEstimate",
    "Progress",
    "Scope",
    "Status",
    "Store",
    "TokenRecord",
    "Tokens",
    "new_id",
    "open_store",
]
