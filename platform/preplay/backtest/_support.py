"""Can the logs speak for a policy at all? Three measures; what is too much is learned from the logged policies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from preplay.backtest._view import View

FEW = 5
"""Turns of other policies below which a cell counts as unsupported."""
_SKILL = 0.01
_FEW_POLICIES = 3
_LEVEL, _LEAST = 0.99, 0.01
_MOST = {"unsupported": 0.35, "first_actions": 0.9, "outcomes": 0.35}
_SENTENCES = {
    "unsupported": "{value:.0%} of what it does is done by no logged policy (limit {limit:.0%}).",
    "first_actions": "Its first actions are unlike the logged policies' (AUC {value:.2f}, limit {limit:.2f}).",
    "outcomes": "What its actions bring is not what they bring others ({value:.0%} differ, limit {limit:.0%}).",
}


class Skill(BaseModel):
    """Something a policy does that others do not show."""

    what: str
    share: float
    """Of the policy's turns."""
    support: int
    """Turns of other policies in the same cell."""


class Support(BaseModel):
    """Measures of distance from the logs, each in [0, 1]."""

    unsupported: float
    first_actions: float
    outcomes: float
    missing: list[Skill] = []

    def refusal(self, limits: dict[str, float]) -> str | None:
        """One sentence when a limit is passed."""
        for name, sentence in _SENTENCES.items():
            value = getattr(self, name)
            if value > limits.get(name, np.inf):
                return sentence.format(value=value, limit=limits[name])
        return None


@dataclass(frozen=True)
class _Counts:
    here: np.ndarray
    others: np.ndarray


def measure_support(view: View, target: int) -> Support:
    """Compare a policy with the policies that the view does not leave out; rewards are not looked at."""
    problem, cells = view.features.problem, view.cells
    mine = problem.shown_by([target])
    others = ~problem.rows_of(view.without)
    size = len(cells.stages) * len(cells.classes)
    counts = _Counts(*(np.bincount(cells.cell[rows], minlength=size) for rows in (mine, others)))
    share = counts.here / max(counts.here.sum(), 1)
    lacking = np.flatnonzero((counts.others < FEW) & (share >= _SKILL))
    lacking = lacking[np.argsort(-share[lacking])]
    return Support(
        unsupported=float(share[counts.others < FEW].sum()),
        first_actions=_first_actions(view, mine, others),
        outcomes=0.0
        if problem.copied[problem.turns.policy == target].any()
        else _outcome_gap(view, mine, others),
        missing=[
            Skill(what=cells.name(c), share=share[c], support=int(counts.others[c])) for c in lacking.tolist()
        ],
    )


def _first_actions(view: View, mine: np.ndarray, others: np.ndarray) -> float:
    """AUC of telling the target's first actions from the others', on the other half of the environments."""
    problem = view.features.problem
    start = problem.turns.turn == 0
    rows = np.flatnonzero(start & (mine | others))
    x = view.of("grounding")[rows]
    x = (x - x.mean(0)) / np.where(x.std(0) > 1e-9, x.std(0), 1)
    label, half = mine[rows], problem.fold[rows] % 2
    score = np.zeros(len(rows))
    for part in (0, 1):
        train, test = half != part, half == part
        if len(np.unique(label[train])) < 2:
            return 0.5
        model = LogisticRegression(max_iter=200, tol=1e-2, class_weight="balanced").fit(
            x[train], label[train]
        )
        score[test] = model.decision_function(x[test])
    return float(max(0.5, roc_auc_score(label, score))) if len(np.unique(label)) > 1 else 0.5


def _outcome_gap(view: View, mine: np.ndarray, others: np.ndarray) -> float:
    """Total variation between the outcomes the target's actions had and those the same classes bring others."""
    turns, cells = view.features.problem.turns, view.cells
    shape = (len(cells.classes), len(turns.outcomes))
    table = np.zeros(shape)
    np.add.at(table, (cells.action[others], turns.outcome[others]), 1.0)
    overall = table.sum(0) / max(table.sum(), 1)
    chance = (table + 5 * overall) / (table.sum(1, keepdims=True) + 5)
    expected = chance[cells.action[mine]].mean(0)
    observed = np.bincount(turns.outcome[mine], minlength=shape[1]) / max(mine.sum(), 1)
    return float(np.abs(expected - observed).sum() / 2)


def calibrate_limits(seen: Sequence[Support], held: Sequence[Support] = ()) -> dict[str, float]:
    """Limits learned from left-out policies.

    One more policy like the given ones passes a measure's limit with a chance of 1 in 100 (a prediction bound,
    Student's t on the logit scale), and no limit is above ``_MOST``, what holds where nothing was left out. But a
    distance at which a left-out policy *was* predicted within its interval is no reason to refuse.

    Args:
        seen: Of all left-out policies.
        held: Of those whose logged value lay within the interval of their prediction.
    """
    limits = dict(_MOST)
    for name, most in _MOST.items():
        if len(seen) >= _FEW_POLICIES:
            values = logit(np.clip([getattr(s, name) for s in seen], _LEAST, 1 - _LEAST))
            spread = values.std(ddof=1) * np.sqrt(1 + 1 / len(values))
            bound = expit(values.mean() + student.ppf(_LEVEL, len(values) - 1) * spread)
            limits[name] = float(min(most, bound))
        limits[name] = max([limits[name], *(getattr(s, name) for s in held)])
    return limits
