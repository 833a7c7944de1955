"""Actions with structure: what was called, on what, whether the world knows it, and what came back."""

from preplay.actions._blocks import Blocks, Columns, make_blocks
from preplay.actions._grounding import FEATURES, Grounder, Grounding, ground
from preplay.actions._harness import Harness, find_harness
from preplay.actions._knowledge import (
    Fact,
    KnowledgeBase,
    Witnesses,
    build_knowledge,
    load_knowledge,
    save_knowledge,
)
from preplay.actions._live import Past, SessionReader
from preplay.actions._outcomes import GENERAL_RULES, OutcomeClass, OutcomeClassifier
from preplay.actions._registry import (
    ENTRY_POINT_GROUP,
    PLAIN,
    ActionAdapter,
    AdapterShares,
    adapters,
    detect_adapters,
    holds_tool_calls,
    register_adapter,
    use_adapter,
)
from preplay.actions._structure import Pairs, StructuredTurns, structure
from preplay.actions._terms import mention, terms
from preplay.actions._types import STATUSES, Call, OutcomeRule, ParsedAction, Status

__all__ = [
    "ENTRY_POINT_GROUP",
    "FEATURES",
    "GENERAL_RULES",
    "PLAIN",
    "STATUSES",
    "ActionAdapter",
    "AdapterShares",
    "Blocks",
    "Call",
    "Columns",
    "Fact",
    "Grounder",
    "Grounding",
    "Harness",
    "KnowledgeBase",
    "OutcomeClass",
    "OutcomeClassifier",
    "OutcomeRule",
    "Pairs",
    "ParsedAction",
    "Past",
    "SessionReader",
    "Status",
    "StructuredTurns",
    "Witnesses",
    "adapters",
    "build_knowledge",
    "detect_adapters",
    "find_harness",
    "ground",
    "holds_tool_calls",
    "load_knowledge",
    "make_blocks",
    "mention",
    "register_adapter",
    "save_knowledge",
    "structure",
    "terms",
    "use_adapter",
]
