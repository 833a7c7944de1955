"""Secrets and e-mail addresses in turns: found by pattern, counted, and masked on request."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

PATTERNS = {
    "email": r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b",
    "private_key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]*-----END [A-Z ]*PRIVATE KEY-----)?",
    "aws_key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "api_key": r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b",
    "github_token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})\b",
    "slack_token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "jwt": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    "bearer": r"\bBearer [A-Za-z0-9._~+/-]{20,}=*",
}
"""Name and RE2 pattern of what is looked for."""

TEXTS = ("task", "observation", "action", "proposed_action", "next_observation", "extras")


def count_secrets(turns: pa.Table) -> Counter[str]:
    """Turns in which each kind of secret occurs (in what the agent saw or did, each place counted once)."""
    found: Counter[str] = Counter()
    for name, pattern in PATTERNS.items():
        hits = None
        for column in ("observation", "action", "next_observation"):
            match = pc.call_function(
                "match_substring_regex", [turns[column]], pc.MatchSubstringOptions(pattern)
            )
            hits = match if hits is None else pc.call_function("or", [hits, match])
        found[name] = pc.call_function("sum", [hits]).as_py() or 0
    return +found


def redact(turns: pa.Table) -> pa.Table:
    """The turns with every secret replaced by ``[name]``."""
    for column in TEXTS:
        turns = turns.set_column(
            turns.schema.get_field_index(column), turns.schema.field(column), redact_texts(turns[column])
        )
    return turns


def redact_texts(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts with every secret replaced by ``[name]``."""
    for name, pattern in PATTERNS.items():
        options = pc.ReplaceSubstringOptions(pattern, f"[{name}]")
        texts = pc.call_function("replace_substring_regex", [texts], options)
    return texts
