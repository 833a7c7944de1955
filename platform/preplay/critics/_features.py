"""Numbers from structure: F features of an action in its state and its pool. Legend: n actions of one pool."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from preplay.critics._summary import ActionSummary, summarize

_KINDS = ("python", "tool", "sql", "text")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?")
DENSE = (
    *(f"kind_{kind}" for kind in _KINDS),
    *("parses", "functions", "calls", "steps", "lines", "depth", "loops", "literals", "length"),
    *("calls_distinct", "ignores_inputs"),
    *("literals_in_state", "words_in_state", "same_as_state", "overlap_with_state"),
    *("agreement", "similarity", "agreement_rank", "duplicate_share"),
)
"""Names of the dense features; the hashed ones follow."""


def pool_features(pool: Sequence[str], state: str, hashed: int) -> np.ndarray:
    """Features float32 [n, len(DENSE) + hashed] of the candidates of one pool.

    ``agreement`` is the share of the *other* candidates with the same normal form, ``similarity`` the mean overlap of
    tokens with them: what a majority vote knows, as numbers among others.
    """
    summaries = [summarize(action) for action in pool]
    counts = [Counter(s.tokens) for s in summaries]
    words = _state_words(state)
    rows = [[*_own(s, a), *_against_state(s, a, state, words)] for s, a in zip(summaries, pool, strict=True)]
    dense = np.concatenate([np.array(rows, np.float32), _against_pool(summaries, counts)], axis=1)
    return np.concatenate([dense, np.stack([_hashed(c, hashed) for c in counts])], axis=1).astype(np.float32)


def _own(s: ActionSummary, action: str) -> list[float]:
    sizes = (len(s.functions), len(s.calls), s.steps, s.lines, s.depth, s.loops, len(s.literals), len(action))
    return [
        *(float(s.kind == kind) for kind in _KINDS),
        float(s.parses),
        *np.log1p(sizes).tolist(),
        float(np.log1p(len(set(s.calls)))),
        float(s.ignores_inputs),
    ]


def _against_state(s: ActionSummary, action: str, state: str, words: frozenset[str]) -> list[float]:
    """How the action relates to what the agent sees: copied answers, names it knows, the code it has."""
    literals = [x for x in s.literals if len(x) > 1]
    own = set(_WORD.findall(action))
    return [
        sum(x in state for x in literals) / len(literals) if literals else 0.0,
        len(own & words) / len(own) if own else 0.0,
        float(bool(action.strip()) and s.normal_form in _state_forms(state)),
        len(own & words) / len(own | words) if own | words else 0.0,
    ]


@lru_cache(maxsize=4096)
def _state_words(state: str) -> frozenset[str]:
    return frozenset(_WORD.findall(state))


@lru_cache(maxsize=4096)
def _state_forms(state: str) -> frozenset[str]:
    """Normal forms of the blocks of the state, so that a repetition of what was just tried is seen."""
    blocks = re.split(r"^[A-Z][A-Za-z ]*:\n", state, flags=re.M)
    return frozenset(summarize(block).normal_form for block in blocks)


def _against_pool(summaries: list[ActionSummary], counts: list[Counter[str]]) -> np.ndarray:
    n = len(summaries)
    forms = Counter(s.normal_form for s in summaries)
    others = max(1, n - 1)
    agreement = np.array([(forms[s.normal_form] - 1) / others for s in summaries])
    similarity = np.array([sum(_overlap(a, b) for b in counts if b is not a) / others for a in counts])
    rank = np.array([float((agreement > a).mean()) for a in agreement])
    return np.stack([agreement, similarity, rank, np.full(n, 1 - len(forms) / n)], axis=1).astype(np.float32)


def _overlap(a: Counter[str], b: Counter[str]) -> float:
    total = sum((a | b).values())
    return sum((a & b).values()) / total if total else 1.0


def _hashed(counts: Counter[str], size: int) -> np.ndarray:
    """Signed feature hashing of token counts, log-scaled."""
    out = np.zeros(size, np.float32)
    for token, count in counts.items():
        place, sign = _slot(token, size)
        out[place] += sign * np.log1p(count)
    return out


@lru_cache(maxsize=1 << 16)
def _slot(token: str, size: int) -> tuple[int, float]:
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest[:6], "big") % size, 1.0 if digest[7] & 1 else -1.0
