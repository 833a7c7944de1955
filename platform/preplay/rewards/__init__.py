"""Rewards of coding agents: composable terms, danger found by syntax tree, and an audit against reward hacking."""

from preplay.rewards._audit import HackingAudit, HackResult, audit_scores
from preplay.rewards._danger import RISK_CLASSES, DangerousCall, dangerous_calls
from preplay.rewards._outcome import ActionOutcome, code_lines
from preplay.rewards._reward import RewardBreakdown, RewardFunction
from preplay.rewards._style import style_violations
from preplay.rewards._terms import DEFAULT_TERMS, Term

__all__ = [
    "DEFAULT_TERMS",
    "RISK_CLASSES",
    "ActionOutcome",
    "DangerousCall",
    "HackResult",
    "HackingAudit",
    "RewardBreakdown",
    "RewardFunction",
    "Term",
    "audit_scores",
    "code_lines",
    "dangerous_calls",
    "style_violations",
]
