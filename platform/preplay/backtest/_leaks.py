"""What in the logs gives the outcome away without the action having earned it; each is named and kept out."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from preplay.actions import StructuredTurns

_TELLS = 0.65
_STALE = 0.3
_FINGERPRINT = 0.02


@dataclass(frozen=True)
class Leaks:
    """Leaks found, each with a sentence for the data card.

    Args:
        stops_at_success: Sessions end when they are solved: their length is not used, survival is modelled.
        stale_result: The observation after the last action is missing or repeats the one before: own results
            are not used.
        sentences: What to tell the user.
    """

    stops_at_success: bool
    stale_result: bool
    sentences: tuple[str, ...] = ()


def find_leaks(turns: StructuredTurns, success: np.ndarray, ended: np.ndarray, table: pa.Table) -> Leaks:
    """Look for session length, stale last observations, step counters, fingerprints and copied tasks."""
    first = np.flatnonzero(turns.turn == 0)
    last = np.append(first[1:], len(turns)) - 1
    solved = np.maximum.reduceat(success, first) > 0
    auc = roc_auc_score(solved, -turns.turn[last]) if 0 < solved.sum() < len(solved) else 0.5
    failed_early = ended[last][~solved].mean() if (~solved).any() else 0.0
    stops = bool(solved.any() and success[last][solved].mean() > 0.9 and (auc > _TELLS or failed_early < 0.5))
    stale = _stale(turns, table, last)
    said = []
    if stops:
        said.append(
            f"Session length gives the outcome away (AUC {auc:.2f}): sessions stop at success. Not a feature."
        )
    if stale:
        said.append(
            "The last observation is missing or a copy of the one before: own results are not features."
        )
    if turns.harness.templates:
        shown = "; ".join(sorted(turns.harness.templates)[:2])
        said.append(f"The harness counts steps in the observations ({shown}): stripped.")
    return Leaks(stops, stale, (*said, *_fingerprints(turns, table), *_copies(turns)))


def _stale(turns: StructuredTurns, table: pa.Table, last: np.ndarray) -> bool:
    """Whether last turns, more than others, are followed by nothing new."""
    seen, after = table["observation"].to_pylist(), table["next_observation"].to_pylist()
    same = np.array([not b.strip() or a == b for a, b in zip(seen, after, strict=True)])
    inner = np.ones(len(turns), bool)
    inner[last] = False
    usual = same[inner].mean() if inner.any() else 0.0
    return bool(same[last].mean() > max(_STALE, usual + _STALE))


def _fingerprints(turns: StructuredTurns, table: pa.Table) -> list[str]:
    """A way of printing values that only one run has (``b'7'`` where others print ``'7'``)."""
    marks = np.array(["b'" in text[:2000] for text in table["next_observation"].to_pylist()])
    share = np.bincount(turns.policy, marks) / np.bincount(turns.policy)
    with_it = [n for n, s in zip(turns.policies, share, strict=True) if s > _FINGERPRINT]
    if not with_it or len(with_it) == len(turns.policies):
        return []
    return [
        f"Only {', '.join(with_it)} print bytes (b'…') in observations: a run's fingerprint, not a feature."
    ]


def _copies(turns: StructuredTurns) -> list[str]:
    """Tasks that stand in several environments: they would be on both sides of a split."""
    pairs = np.unique(np.stack([turns.question, turns.environment]), axis=1)
    twice = int((np.bincount(pairs[0]) > 1).sum())
    return [f"{twice} tasks appear in several environments: duplicates across splits."] if twice else []
