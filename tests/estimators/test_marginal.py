"""Marginal weights on clustered states."""

import numpy as np
import pytest
from benchmarks._known_problems import graph, graph_value, random_batch, stop_go

from preplay.estimators import SessionBatch, clustered_log_ratio, get_estimator

MIS = get_estimator("mis")


def clustered(batch: SessionBatch, cluster: np.ndarray) -> SessionBatch:
    fields = {f: getattr(batch, f) for f in SessionBatch.__dataclass_fields__}
    return SessionBatch(**(fields | {"state_cluster": cluster}))


def value(batch):
    return MIS.value(MIS.statistics(batch))


def test_by_hand():
    """Three one- or two-turn sessions, ratios ρ, clusters c: d_0 = (2/3, 1/3).

    Cell (0, 0): ρ 1.5 → c 1 (r 0), ρ .5 → end (r 2): r̂ = .5·2/2 = .5, P̂(1|0) = 1.5/2 = .75.
    Cell (0, 1): ρ 1 → end (r 4): r̂ = 4. Cell (1, 1): ρ 2, r 3: r̂ = 3.
    γ = .5: V = 2/3·.5 + 1/3·4 + .5·(2/3·.75)·3 = 1/3 + 4/3 + .75 = 2.4166…
    """
    batch = SessionBatch(
        [0, 2, 3, 4],
        [0.0, 3, 2, 4],
        0.5,
        log_ratio=np.log([1.5, 2, 0.5, 1]),
        state_cluster=[0, 1, 0, 1],
    )
    assert value(batch) == pytest.approx(1 / 3 + 4 / 3 + 0.75, abs=1e-12)
    assert MIS.terms(batch).session_values().mean() == pytest.approx(value(batch), abs=1e-12)


def test_stop_go_counts_the_sessions_that_ended():
    batch = stop_go(20_000, np.random.default_rng(0))
    cluster = np.zeros(batch.n_turns, int)  # the turn tells the two states apart
    assert value(clustered(batch, cluster)) == pytest.approx(0.9, abs=0.02)


def test_long_horizon_where_products_fail():
    """Graph with 40 steps: E[w²]^40 ruins trajectory weights, marginal ones stay exact to sampling."""
    batch = graph(2000, np.random.default_rng(1), steps=40, p_log=0.5)
    exact = graph_value(steps=40, slip=False, sparse=False)
    marginal = clustered(batch, np.zeros(batch.n_turns, int))
    assert value(marginal) == pytest.approx(exact, abs=0.7)
    assert get_estimator("wis").statistics(batch).ess()[0] < 20
    error = MIS.influence(marginal).std() / np.sqrt(2000)
    assert error < 0.25
    assert MIS.resampled(marginal, 500, 0).std() == pytest.approx(error, rel=0.15)


def test_shards_merge():
    batch = random_batch(np.random.default_rng(2), 70, 6)
    batch = clustered(batch, np.random.default_rng(3).integers(0, 4, batch.n_turns))
    parts = [MIS.statistics(batch.select(p)) for p in np.array_split(np.arange(70), 5)]
    merged = parts[0] + parts[4] + parts[2] + parts[1] + parts[3]
    assert MIS.value(merged) == pytest.approx(value(batch), abs=1e-12)


def test_same_policy_with_full_clusters_is_the_mean():
    batch = random_batch(np.random.default_rng(4), 50, 5)
    same = clustered(batch, np.zeros(batch.n_turns, int))
    same = SessionBatch(
        same.offsets,
        same.reward,
        same.gamma,
        log_ratio=np.zeros(batch.n_turns),
        state_cluster=same.state_cluster,
    )
    assert value(same) == pytest.approx(same.returns.mean(), abs=1e-12)


def test_clustered_ratio_by_hand():
    """Clusters of 4 target samples; logged cluster 0 hit 2 of 4 times: (2 + .5/2)/(4 + .5) = .5."""
    ratio = clustered_log_ratio(np.array([0]), np.array([[0, 0, 1, 1]]), np.log([0.25]), 2)
    assert ratio == pytest.approx(np.log(0.5 / 0.25))
    never = clustered_log_ratio(np.array([0]), np.array([[1, 1, 1, 1]]), np.log([0.25]), 2, prior=0)
    assert np.isneginf(never[0])


def test_two_texts_for_one_meaning_count_as_one_action():
    """Each meaning has 50 wordings; the target uses other wordings than the log: exact ratios vanish."""
    rng = np.random.default_rng(5)
    n = 4000
    meaning = rng.integers(0, 2, n)
    target_meaning = (rng.random((n, 20)) < 0.8).astype(int)
    ratio = clustered_log_ratio(meaning, target_meaning, np.full(n, np.log(0.5)), 2)
    batch = SessionBatch(np.arange(n + 1), meaning.astype(float), 1.0, log_cluster_ratio=ratio)
    for name in ("mips", "wmips"):
        estimator = get_estimator(name)
        assert estimator.value(estimator.statistics(batch)) == pytest.approx(0.8, abs=0.05)
