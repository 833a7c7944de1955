"""The space in which a clone looks for similar states, and how it is chosen on held-out sessions.

A state is a point made of weighted blocks: newest observation, task, previous action, turn, and the action that
a ridge regression predicts from these (which makes states close where the target acts alike).
"""

import itertools
from dataclasses import dataclass

import numpy as np

NEIGHBOURS = 32
TURN_SCALE = 4.0
"""Turns t and t' are log((4 + t') / (4 + t)) apart: early turns differ more than late ones."""
_FOLDS = 5
_MAX_QUERIES = 400
_RIDGE = 3.0
_PREVIOUS, _TURN, _PREDICTED = (0.3, 1.0), (0.0, 0.5), (0.0, 1.0, 3.0)
_TEMPERATURES = (0.005, 0.02, 0.06, 0.2, 0.6)


@dataclass(frozen=True)
class StateBlocks:
    """B states: embeddings float32 [B, D] of observation, previous action (zero at the start) and task (zero
    when there is none), and the turn float32 [B]."""

    observation: np.ndarray
    previous: np.ndarray
    task: np.ndarray
    turn: np.ndarray

    def select(self, rows: np.ndarray) -> "StateBlocks":
        """The given rows (indices or mask)."""
        return StateBlocks(self.observation[rows], self.previous[rows], self.task[rows], self.turn[rows])


@dataclass(frozen=True)
class CloneSpace:
    """Weights of the blocks, the ridge coefficients [F, D] and mean action [D], and the temperature.

    A neighbour at squared distance d² is drawn with probability proportional to ``exp(-d² / temperature)``.
    """

    previous_weight: float
    turn_weight: float
    predicted_weight: float
    temperature: float
    coefficients: np.ndarray
    mean_action: np.ndarray

    def points(self, states: StateBlocks) -> np.ndarray:
        """Where the states lie, float32 [B, P]."""
        predicted = _features(states) @ self.coefficients + self.mean_action
        return np.concatenate(
            [
                states.observation,
                states.task,
                self.previous_weight * states.previous,
                self.turn_weight * _turn_column(states),
                self.predicted_weight * predicted,
            ],
            axis=1,
            dtype=np.float32,
        )


def neighbours(queries: np.ndarray, points: np.ndarray, space: CloneSpace) -> tuple[np.ndarray, np.ndarray]:
    """The nearest points int64 [B, K] of queries [B, P], and their probabilities float64 [B, K]."""
    rows, distance = _nearest(_squared_distances(queries, points))
    return rows, _softmin(distance, space.temperature)


def choose_space(states: StateBlocks, actions: np.ndarray, session: np.ndarray) -> CloneSpace:
    """The space with the lowest energy score of the drawn actions on sessions left out of the fit.

    Args:
        states: [R] logged states.
        actions: float32 [R, D] embeddings of the logged actions.
        session: int64 [R] session numbers; folds are cut between sessions.
    """
    fold = session % min(_FOLDS, int(session.max()) + 1)
    queries = _spread(len(session), _MAX_QUERIES)
    fitted = [_fit_ridge(states.select(fold != f), actions[fold != f]) for f in range(int(fold.max()) + 1)]
    scores: dict[tuple[float, float, float, float], float] = dict.fromkeys(
        itertools.product(_PREVIOUS, _TURN, _PREDICTED, _TEMPERATURES), 0.0
    )
    for weights in itertools.product(_PREVIOUS, _TURN, _PREDICTED):
        for f, (coefficients, mean) in enumerate(fitted):
            space = CloneSpace(*weights, 1.0, coefficients, mean)
            for temperature, score in _fold_scores(space, states, actions, fold, f, queries).items():
                scores[*weights, temperature] += score
    best = min(scores, key=lambda choice: scores[choice])
    coefficients, mean = _fit_ridge(states, actions)
    return CloneSpace(*best, coefficients, mean)


def energy_score(drawn: np.ndarray, probability: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """``E|X - y| - E|X - X'| / 2`` of weighted draws, float64 [B]: least in the mean for the true distribution.

    Args:
        drawn: [B, K, D] possible values. probability: [B, K]. actual: [B, D].
    """
    to_actual = np.linalg.norm(drawn - actual[:, None], axis=2)
    gram = drawn @ drawn.transpose(0, 2, 1)
    square = np.einsum("bkk->bk", gram)
    between = np.sqrt(np.maximum(square[:, :, None] + square[:, None] - 2 * gram, 0.0))
    spread = np.einsum("bk,bkl,bl->b", probability, between, probability)
    return (probability * to_actual).sum(axis=1) - spread / 2


def _fold_scores(
    space: CloneSpace,
    states: StateBlocks,
    actions: np.ndarray,
    fold: np.ndarray,
    held_out: int,
    queries: np.ndarray,
) -> dict[float, float]:
    """Summed energy score of each temperature on the queries of one fold."""
    asked = queries[fold[queries] == held_out]
    kept = np.flatnonzero(fold != held_out)
    if not len(asked):
        return dict.fromkeys(_TEMPERATURES, 0.0)
    rows, distance = _nearest(
        _squared_distances(space.points(states.select(asked)), space.points(states.select(kept)))
    )
    drawn = actions[kept][rows].astype(np.float64)
    actual = actions[asked].astype(np.float64)
    return {t: float(energy_score(drawn, _softmin(distance, t), actual).sum()) for t in _TEMPERATURES}


def _fit_ridge(states: StateBlocks, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of the action embedding on the state, in its dual form when there are few turns."""
    features = _features(states).astype(np.float64)
    mean = actions.mean(axis=0, dtype=np.float64)
    target = actions - mean
    if len(features) <= features.shape[1]:
        dual = np.linalg.solve(features @ features.T + _RIDGE * np.eye(len(features)), target)
        coefficients = features.T @ dual
    else:
        gram = features.T @ features + _RIDGE * np.eye(features.shape[1])
        coefficients = np.linalg.solve(gram, features.T @ target)
    return coefficients.astype(np.float32), mean.astype(np.float32)


def _features(states: StateBlocks) -> np.ndarray:
    return np.concatenate([states.observation, states.task, states.previous, _turn_column(states)], axis=1)


def _turn_column(states: StateBlocks) -> np.ndarray:
    return np.log1p(states.turn / TURN_SCALE)[:, None]


def _squared_distances(queries: np.ndarray, points: np.ndarray) -> np.ndarray:
    cross = queries @ points.T
    square = (queries**2).sum(axis=1)[:, None] + (points**2).sum(axis=1)
    return np.maximum(square - 2 * cross, 0.0)


def _nearest(distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the nearest points in order, int64 [B, K], and their squared distances float64 [B, K]."""
    count = min(NEIGHBOURS, distance.shape[1])
    rows = np.argpartition(distance, count - 1, axis=1)[:, :count]
    order = np.take_along_axis(distance, rows, axis=1).argsort(axis=1, kind="stable")
    rows = np.take_along_axis(rows, order, axis=1)
    return rows, np.take_along_axis(distance, rows, axis=1).astype(np.float64)


def _softmin(distance: np.ndarray, temperature: float) -> np.ndarray:
    weights = np.exp(-(distance - distance[:, :1]) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def _spread(total: int, wanted: int) -> np.ndarray:
    """At most ``wanted`` row numbers, evenly spread over ``total``."""
    return np.unique(np.linspace(0, total - 1, min(total, wanted)).astype(np.int64))
