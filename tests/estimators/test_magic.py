"""MAGIC against the definition in the paper, written out session by session."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch, two_sessions
from scipy.optimize import minimize

from preplay.errors import PreplayError
from preplay.estimators import SessionBatch, get_estimator
from preplay.estimators._magic import simplex_minimum

MAGIC = get_estimator("magic")


def parts_by_definition(batch: SessionBatch) -> np.ndarray:
    """g_i^(j), [n, T + 1], from the three terms below equation 4 of the paper (terminated sessions)."""
    n, longest = batch.n_sessions, batch.lengths.max()
    rho = np.zeros((n, longest))
    for i, (a, b) in enumerate(zip(batch.offsets[:-1], batch.offsets[1:], strict=True)):
        rho[i, : b - a] = np.exp(np.cumsum(batch.log_ratio[a:b]))
        rho[i, b - a :] = rho[i, b - a - 1]
    w = rho / rho.sum(0)
    g = np.zeros((n, longest + 1))
    for i, a in enumerate(batch.offsets[:-1]):
        length = batch.lengths[i]
        for j in range(-1, longest):
            for t in range(min(j, length - 1) + 1):
                before = 1 / n if t == 0 else w[i, t - 1]
                g[i, j + 1] += batch.gamma**t * w[i, t] * (batch.reward[a + t] - batch.q[a + t])
                g[i, j + 1] += batch.gamma**t * before * batch.v[a + t]
            if j < length - 1:
                weight = 1 / n if j == -1 else w[i, j]
                g[i, j + 1] += batch.gamma ** (j + 1) * weight * batch.v[a + j + 1]
    return g


def terminated(n: int, seed: int) -> SessionBatch:
    batch = random_batch(np.random.default_rng(seed), n, 6)
    fields = {f: getattr(batch, f) for f in ("offsets", "reward", "gamma", "log_ratio", "q", "v")}
    return SessionBatch(**fields)


def test_partial_returns_and_covariance_follow_the_paper():
    for batch in (two_sessions(), terminated(40, 0)):
        stats, g = MAGIC.statistics(batch), parts_by_definition(batch)
        assert stats.partial_returns() == pytest.approx(g.sum(0), abs=1e-12)
        # n times the sample covariance of the parts: the factor the published code lacked
        assert stats.covariance() == pytest.approx(batch.n_sessions * np.cov(g.T), abs=1e-12)


def test_ends_are_the_direct_method_and_wdr():
    batch = terminated(60, 1)
    returns = MAGIC.statistics(batch).partial_returns()
    for end, name in ((0, "dm"), (-1, "wdr")):
        estimator = get_estimator(name)
        assert returns[end] == pytest.approx(estimator.value(estimator.statistics(batch)), abs=1e-12)


def test_blend_minimises_the_estimated_squared_error():
    stats = MAGIC.statistics(terminated(60, 2))
    returns, omega = stats.partial_returns(), stats.covariance()
    reach = 0.6744897501960817 * np.sqrt(omega[-1, -1])  # half of a normal's mass lies within
    bias = np.sign(returns - returns[-1]) * np.maximum(abs(returns - returns[-1]) - reach, 0)
    matrix = omega + np.outer(bias, bias)
    n = len(matrix)
    found = minimize(
        lambda x: x @ matrix @ x * 1e3,
        np.full(n, 1 / n),
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    x = stats.blend()
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1)
    assert x @ matrix @ x <= found.x @ matrix @ found.x * (1 + 1e-6)
    assert MAGIC.value(stats) == pytest.approx(x @ returns)


def test_simplex_minimum_of_a_diagonal():
    # x_i ∝ 1/a_i: (1/1, 1/2, 1/4)/1.75
    assert simplex_minimum(np.diag([1.0, 2, 4])) == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=1e-6)
    assert simplex_minimum(np.array([[1.0, 2], [2, 5]])) == pytest.approx([1, 0], abs=1e-6)


def test_shards_merge():
    batch = random_batch(np.random.default_rng(3), 90, 12, spread=2.0)
    parts = [MAGIC.statistics(batch.select(p)) for p in np.array_split(np.arange(90), 4)]
    merged = parts[3] + parts[1] + parts[0] + parts[2]
    whole = MAGIC.statistics(batch)
    assert MAGIC.value(merged) == pytest.approx(MAGIC.value(whole), abs=1e-9)
    assert merged.covariance() == pytest.approx(whole.covariance(), rel=1e-9, abs=1e-12)


def test_resamples_hold_the_blend():
    batch = random_batch(np.random.default_rng(4), 800, 5)
    analytic = MAGIC.influence(batch).std() / np.sqrt(800)
    draws = MAGIC.resampled(batch, 2000, 0)
    assert draws.std() == pytest.approx(analytic, rel=0.1)
    assert draws.mean() == pytest.approx(MAGIC.value(MAGIC.statistics(batch)), abs=3 * analytic)


def test_sessions_too_long_are_refused():
    batch = random_batch(np.random.default_rng(5), 2, 1)
    long = SessionBatch(
        [0, 1001], np.ones(1001), 1.0, log_ratio=np.zeros(1001), q=np.ones(1001), v=np.ones(1001)
    )
    assert np.isfinite(MAGIC.value(MAGIC.statistics(batch)))
    with pytest.raises(PreplayError, match="at most 1000, not 1001"):
        MAGIC.statistics(long)
