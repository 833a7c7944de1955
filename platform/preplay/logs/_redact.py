"""Secrets and e-mail addresses in turns: found by pattern, counted, and masked on request."""

from collections import Counter
from collections.abc import Sequence

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

HINTS = r"@|PRIVATE KEY|AKIA|ASIA|[spr]k[-_]|gh[pousr]_|github_pat_|xox|eyJ|Bearer "
"""What every pattern needs to match at all: most texts are done with after one look."""

TEXTS = ("task", "observation", "action", "proposed_action", "next_observation", "extras")


def count_secrets(texts: Sequence[pa.ChunkedArray]) -> Counter[str]:
    """Texts in which each kind of secret occurs."""
    found: Counter[str] = Counter()
    for column in texts:
        suspects = column.filter(match_regex(column, HINTS))
        for name, pattern in PATTERNS.items():
            found[name] += pc.call_function("sum", [match_regex(suspects, pattern)]).as_py() or 0
    return +found


def match_regex(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Which texts hold something that an RE2 pattern matches."""
    return pc.call_function("match_substring_regex", [texts], pc.MatchSubstringOptions(pattern))


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
