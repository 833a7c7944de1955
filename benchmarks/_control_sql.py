"""SQL shell, one choice: the seven logged models propose, a critic chooses, the choice is executed.

Whole databases are held out: in each seed every database is judged once by critics that have not seen it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._control_arms import ARMS, ENSEMBLE, abstaining, best_of_each, coverage_curve, train_arms
from benchmarks._control_cells import Cell, cells, summarize
from preplay.critics import (
    ActionEncoder,
    ChunkConfig,
    Critic,
    Decisions,
    DecisionState,
    EncodedPools,
    Scorer,
    distill,
    rank_agreement,
)
from preplay.embedding import CachedEncoder
from preplay.environments.sql_shell import LoggedModels, Moment, QuestionPool, SqlPools
from preplay.seeding import numpy_rng

NAMES: dict[Moment, str] = {"first": "sql, first action", "final": "sql, final answer"}
CALIBRATION_SHARE = 0.25


@dataclass(frozen=True)
class SqlSettings:
    """Folds of databases, sizes of training, arms; with a sentence encoder critics see embeddings, too."""

    folds: int = 2
    steps: int = 400
    members: int = 3
    arms: tuple[str, ...] = ARMS
    encoder: CachedEncoder | None = None


def sql_choices(
    models: LoggedModels, moment: Moment, seeds: int, folder: Path | None, settings: SqlSettings
) -> dict[str, float]:
    """All arms at one moment."""
    name = f"sql-{moment}" + ("-embedded" if settings.encoder else "")
    loaded: list[_Fold] = []  # encoded once, and only if a cell is missing

    def run(seed: int) -> Cell:
        if not loaded:
            loaded.append(_Fold.of(models.pools(moment), settings.encoder))
        return _one_seed(seed, loaded[0].pools, loaded[0].data, settings)

    return summarize(cells(folder, name, seeds, run), "best single model", "oracle-K")


class _Fold:
    """The pools of a moment and their decisions as arrays."""

    def __init__(self, pools: SqlPools, data: Decisions):
        self.pools, self.data = pools, data

    @classmethod
    def of(cls, pools: SqlPools, encoder: CachedEncoder | None) -> "_Fold":
        whole = ChunkConfig(parts=1)  # a query is short
        own = ActionEncoder(horizon=10, evidence=pools.evidence, chunks=whole, encoder=encoder)
        return cls(pools, full_feedback(pools.pools, own))


def full_feedback(pools: Sequence[QuestionPool], encoder: ActionEncoder) -> Decisions:
    """One decision per candidate: each model's own action was executed, so its reward is known."""
    states = [DecisionState(pool.question.text, "") for pool in pools]
    encoded = encoder.encode(states, [p.candidates for p in pools], [p.evidence for p in pools])
    sizes = np.diff(encoded.offsets)
    repeated, _ = encoded.select(np.repeat(np.arange(len(pools)), sizes))
    place = np.arange(len(encoded.features)) - encoded.offsets[encoded.owner]
    solved = np.concatenate([np.array(pool.solved) for pool in pools])
    n = len(solved)
    return Decisions(
        pools=repeated,
        chosen=repeated.offsets[:-1] + place,
        reward=solved[:, None].astype(np.float64),
        success=solved,
        following=np.full(n, -1),
        terminated=np.ones(n, bool),
        truncated=np.zeros(n, bool),
        session=np.arange(n),
        group=np.repeat(np.array([pool.question.database for pool in pools], object), sizes),
    )


def folds_of(databases: Sequence[str], folds: int, seed: int) -> dict[str, int]:
    """Fold of each database."""
    names = np.unique(np.array(databases, str))
    return {str(name): i % folds for i, name in enumerate(numpy_rng(seed, "folds").permutation(names))}


def _one_seed(seed: int, pools: SqlPools, data: Decisions, settings: SqlSettings) -> Cell:
    """Cross-validation over databases; success over all questions."""
    fold_of = folds_of([pool.question.database for pool in pools.pools], settings.folds, seed)
    own = np.array([fold_of[pool.question.database] for pool in pools.pools])
    choices = _Choices(pools)
    for fold in range(settings.folds):
        test = np.flatnonzero(own == fold)
        train = data.select(np.array([fold_of[g] != fold for g in data.group]))
        held = pools_of(data, pools, test)
        sizes = {"steps": settings.steps, "members": settings.members}
        arms = train_arms(train, seed, only=settings.arms, **sizes)
        for arm, scorer in arms.items():
            choices.add(arm, scorer, held, test)
        for arm in {"classifier (logistic)", ENSEMBLE} & set(arms):
            threshold = _threshold(arm, train, seed, settings)
            choices.thresholds.setdefault(arm, np.zeros(len(pools.pools)))[test] = threshold
        choices.put("best single model", test, _best_single(pools, own != fold, test))
        if ENSEMBLE in arms:
            choices.agreement.append(_distilled(arms[ENSEMBLE], train, held, seed))
    places = [
        int(numpy_rng(seed, "random", i).integers(len(p.candidates))) for i, p in enumerate(pools.pools)
    ]
    everything = np.arange(len(pools.pools))
    choices.put("random-K", everything, places)
    choices.put("execution vote", everything, [int(np.argmax(p.votes)) for p in pools.pools])
    choices.put("first candidate", everything, [0] * len(pools.pools))
    choices.put("oracle-K", everything, [int(np.argmax(p.solved)) for p in pools.pools])
    return choices.cell()


class _Choices:
    """What every arm chose on every question."""

    def __init__(self, pools: SqlPools):
        self._pools, self._n = pools.pools, len(pools.pools)
        self._chosen: dict[str, np.ndarray] = {}
        self._confidence: dict[str, np.ndarray] = {}
        self._times: dict[str, list[float]] = {}
        self.thresholds: dict[str, np.ndarray] = {}
        self.agreement: list[float] = []

    def add(self, arm: str, scorer: Scorer, held: EncodedPools, test: np.ndarray) -> None:
        """Choose by a scorer."""
        scores = scorer.score(held).mean
        best = best_of_each(scores, held.offsets)
        self.put(arm, test, best - held.offsets[:-1])
        self._confidence.setdefault(arm, np.zeros(self._n))[test] = scores[best]
        self._times.setdefault(arm, []).extend(_latencies(scorer, held))

    def put(self, arm: str, test: np.ndarray, places: Sequence[int] | np.ndarray) -> None:
        """Choose these places."""
        self._chosen.setdefault(arm, np.zeros(self._n, int))[test] = places

    def cell(self) -> Cell:
        """Executed success and the other columns per arm."""
        out: Cell = {}
        for arm, chosen in self._chosen.items():
            right = np.array([p.solved[c] for p, c in zip(self._pools, chosen, strict=True)])
            tokens = [-(-sum(map(len, p.candidates)) // 4) for p in self._pools]
            out[arm] = {
                "success": float(right.mean()),
                "turns": 1.0,
                "tokens": float(np.mean(tokens)),
                "dangerous": 0.0,
            }
            if arm in self._confidence:
                out[arm] |= coverage_curve(self._confidence[arm], right)
                out[arm] |= {f"p{q}_ms": float(np.quantile(self._times[arm], q / 100)) for q in (50, 99)}
            if arm in self.thresholds:
                answered = self._confidence[arm] >= self.thresholds[arm]
                success = float(right[answered].mean()) if answered.any() else float("nan")
                out[f"{arm}, abstains"] = {"success": success, "coverage": float(answered.mean())}
        if self.agreement:
            out["IQL ensemble, distilled"] = {"rank agreement": float(np.mean(self.agreement))}
        return out


def _threshold(arm: str, train: Decisions, seed: int, settings: SqlSettings) -> float:
    """Calibrated on training databases that a twin of the arm, trained without them, has not seen."""
    groups = np.unique(train.group.astype(str))
    kept = numpy_rng(seed, "calibration").permutation(groups)[
        : max(1, round(CALIBRATION_SHARE * len(groups)))
    ]
    apart = np.isin(train.group.astype(str), kept)
    sizes = {"steps": settings.steps, "members": settings.members}
    twin = train_arms(train.select(~apart), seed, only=(arm,), **sizes)[arm]
    held = train.select(apart)
    first = np.flatnonzero(held.chosen == held.pools.offsets[:-1])  # each pool once
    pools, _ = held.pools.select(first)
    return abstaining(twin, pools, _pool_outcomes(held, first))


def _pool_outcomes(held: Decisions, first: np.ndarray) -> np.ndarray:
    """Outcomes of all candidates of the pools that begin at these decisions: one decision per candidate, in order."""
    sizes = np.diff(held.pools.offsets)[first]
    return np.concatenate([held.success[f : f + n] for f, n in zip(first, sizes, strict=True)])


def _distilled(ensemble: Scorer, train: Decisions, held: EncodedPools, seed: int) -> float:
    assert isinstance(ensemble, Critic)
    small = distill(ensemble, train.pools, seed=seed)
    return rank_agreement(ensemble.score(held).mean, small.score(held).mean, held)


def _latencies(scorer: Scorer, held: EncodedPools, decisions: int = 50) -> list[float]:
    """Milliseconds to score one pool that is already encoded."""
    out = []
    for i in range(min(decisions, len(held.state))):
        one, _ = held.select(np.array([i]))
        started = time.perf_counter()
        scorer.score(one)
        out.append(1000 * (time.perf_counter() - started))
    return out


def pools_of(data: Decisions, pools: SqlPools, questions: np.ndarray) -> EncodedPools:
    """Each question's pool once (in ``data`` it stands once per candidate)."""
    sizes = np.array([len(pool.candidates) for pool in pools.pools])
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return data.pools.select(first[questions])[0]


def _best_single(pools: SqlPools, train: np.ndarray, test: np.ndarray) -> list[int]:
    """Place of the model that is best on the training databases (the first candidate where it said nothing)."""
    rates = {
        m: [
            p.solved[p.models.index(m)]
            for p, t in zip(pools.pools, train, strict=True)
            if t and m in p.models
        ]
        for m in pools.models
    }
    best = max(rates, key=lambda m: float(np.mean(rates[m])))
    return [pools.pools[i].models.index(best) if best in pools.pools[i].models else 0 for i in test]
