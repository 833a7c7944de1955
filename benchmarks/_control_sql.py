"""SQL shell: the seven logged models propose, a critic chooses, the choice is executed; whole databases held out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._control_arms import Result, best_of_each, summarize, train_arms
from preplay.control import risk_coverage
from preplay.critics import ActionEncoder, Decisions, DecisionState, EncodedPools
from preplay.environments.sql_shell import LoggedModels, QuestionPool, SqlPools, SqlShell
from preplay.seeding import numpy_rng

_COVERAGES = (0.2, 0.5, 0.8, 1.0)


def sql_shell(folder: Path, seeds: int, *, folds: int, steps: int, members: int) -> dict[str, float]:
    """Both moments, all arms; in each seed every database is held out once."""
    shell = SqlShell(folder)
    models = LoggedModels(shell, folder)
    out: dict[str, float] = {}
    for moment in ("first", "final"):
        pools = models.pools(moment)
        encoder = ActionEncoder(horizon=10, evidence=pools.evidence)
        data = full_feedback(pools.pools, encoder)
        rows: dict[str, list[Result]] = {}
        curves: list[list[float]] = []
        for seed in range(seeds):
            results, curve = _one_seed(seed, pools, data, folds, steps, members)
            curves.append(curve)
            for arm, result in results.items():
                rows.setdefault(arm, []).append(result)
        summary = summarize(rows, "best single model", "oracle-K")
        mean = np.mean(curves, axis=0)
        summary |= {
            f"classifier (logistic) | success at coverage {c}": float(s)
            for c, s in zip(_COVERAGES, mean, strict=True)
        }
        out |= {
            f"{moment} action | {name}" if moment == "first" else f"final answer | {name}": v
            for name, v in summary.items()
        }
    return out


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


def _one_seed(
    seed: int, pools: SqlPools, data: Decisions, folds: int, steps: int, members: int
) -> tuple[dict[str, Result], list[float]]:
    """Cross-validation over databases; success over all questions, and the classifier's abstention curve."""
    databases = np.unique(data.group.astype(str))
    fold_of = dict(
        zip(numpy_rng(seed, "folds").permutation(databases), np.arange(len(databases)) % folds, strict=True)
    )
    own = np.array([fold_of[pool.question.database] for pool in pools.pools])
    chosen: dict[str, np.ndarray] = {}
    confidence = np.zeros(len(pools.pools))
    for fold in range(folds):
        test = np.flatnonzero(own == fold)
        train = data.select(np.array([fold_of[g] != fold for g in data.group]))
        held = _pools_of(data, pools, test)
        for arm, scorer in train_arms(train, seed, steps=steps, members=members).items():
            scores = scorer.score(held).mean
            best = best_of_each(scores, held.offsets)
            chosen.setdefault(arm, np.zeros(len(pools.pools), int))[test] = best - held.offsets[:-1]
            if arm == "classifier (logistic)":
                confidence[test] = scores[best]
        chosen.setdefault("best single model", np.zeros(len(pools.pools), int))[test] = _best_single(
            pools, own != fold, test
        )
    chosen["random-K"] = np.array(
        [numpy_rng(seed, "random", i).integers(len(p.candidates)) for i, p in enumerate(pools.pools)]
    )
    chosen["execution vote"] = np.array([int(np.argmax(p.votes)) for p in pools.pools])
    chosen["oracle-K"] = np.array([int(np.argmax(p.solved)) for p in pools.pools])
    solved = {
        arm: np.array([p.solved[c] for p, c in zip(pools.pools, own_, strict=True)])
        for arm, own_ in chosen.items()
    }
    curve = risk_coverage(confidence, solved["classifier (logistic)"])
    at = [float(1 - curve.risk[max(0, round(c * len(curve.risk)) - 1)]) for c in _COVERAGES]
    return {arm: Result(float(values.mean())) for arm, values in solved.items()}, at


def _pools_of(data: Decisions, pools: SqlPools, questions: np.ndarray) -> EncodedPools:
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
