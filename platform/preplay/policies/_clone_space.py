"""The space in which a clone looks for similar states, and how it is chosen on held-out sessions.

A state is a point made of weighted blocks: newest observation, task, previous action, turn, and the action that
a ridge regression predicts from these (which makes states close where the target acts alike).
"""

import itertools
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

NEIGHBOURS = 32
TURN_SCALE = 4.0
"""Turns t and t' are log((4 + t') / (4 + t)) apart: early turns differ more than late ones."""
_FOLDS = 5
_MAX_QUERIES = 200
_CLUSTERS = 16
_FLOOR = 0.15
"""Share of the overall frequencies mixed in, so that one unseen cluster does not decide."""
_RIDGE = 3.0
_PREVIOUS, _TURN, _PREDICTED = (0.0, 0.3, 1.0), (0.0, 0.5), (0.0, 1.0, 3.0)
_TEMPERATURES = (0.02, 0.06, 0.2, 0.6, 2.0)


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
    """The space that predicts the cluster of the logged action best on sessions left out of the fit.

    Actions are compared by cluster because two texts that do the same are rarely equal; a score on raw
    embeddings rewards spread over wordings instead of finding the right states.

    Args:
        states: [R] logged states.
        actions: float32 [R, D] embeddings of the logged actions.
        session: int64 [R] session numbers; folds are cut between sessions.
    """
    fold = session % min(_FOLDS, int(session.max()) + 1)
    cluster = _clusters(actions)
    losses: dict[tuple[float, float, float, float], float] = dict.fromkeys(
        itertools.product(_PREVIOUS, _TURN, _PREDICTED, _TEMPERATURES), 0.0
    )
    for held_out in range(int(fold.max()) + 1):
        kept, asked = np.flatnonzero(fold != held_out), _thinned(np.flatnonzero(fold == held_out))
        ridge = _fit_ridge(states.select(kept), actions[kept])
        usual = np.bincount(cluster[kept], minlength=cluster.max() + 1)[cluster[asked]] / len(kept)
        for weights in itertools.product(_PREVIOUS, _TURN, _PREDICTED):
            space = CloneSpace(*weights, 1.0, *ridge)
            points, queries = space.points(states.select(kept)), space.points(states.select(asked))
            rows, distance = _nearest(_squared_distances(queries, points))
            agree = cluster[kept][rows] == cluster[asked][:, None]
            for temperature in _TEMPERATURES:
                found = (_softmin(distance, temperature) * agree).sum(axis=1)
                losses[*weights, temperature] -= float(
                    np.log((1 - _FLOOR) * found + _FLOOR * usual + 1e-9).sum()
                )
    best = min(losses, key=lambda choice: losses[choice])
    return CloneSpace(*best, *_fit_ridge(states, actions))


def _clusters(actions: np.ndarray) -> np.ndarray:
    """Cluster of each action, int64 [R]."""
    count = max(1, min(_CLUSTERS, len(actions) // 4, len(np.unique(actions, axis=0))))
    return KMeans(count, random_state=0).fit_predict(actions).astype(np.int64)


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


def _thinned(rows: np.ndarray) -> np.ndarray:
    """At most ``_MAX_QUERIES`` of the rows, evenly spread."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MAX_QUERIES)).astype(np.int64))]
