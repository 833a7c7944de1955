"""Laws that hold whatever the log."""

import subprocess
import sys

import numpy as np
import pytest
from benchmarks._known_problems import random_batch
from hypothesis import given, settings
from hypothesis import strategies as st

from preplay.estimators import SessionBatch, available, evaluate_estimator, get_estimator

ALL = ["mean", "dm", "is", "wis", "pdis", "wpdis", "dr", "wdr"]
batches = st.builds(
    lambda seed, n, longest, spread: random_batch(np.random.default_rng(seed), n, longest, spread),
    st.integers(0, 2**32),
    st.integers(1, 30),
    st.integers(1, 12),
    st.sampled_from([0.1, 1.0, 5.0]),
)


def value(name, batch):
    estimator = get_estimator(name)
    return estimator.value(estimator.statistics(batch))


def with_arrays(batch: SessionBatch, **arrays) -> SessionBatch:
    fields = {f: getattr(batch, f) for f in SessionBatch.__dataclass_fields__}
    return SessionBatch(**(fields | arrays))


def test_an_estimator_of_somebody_else_stays_whenever_it_was_registered():
    code = """
from preplay.estimators import register
class Own:
    id, needs = "wdr/7", ()
own = register(Own())
from preplay.estimators import TermsEstimator, available, get_estimator
assert get_estimator("wdr") is own and "magic" in available() and get_estimator("dr").id == "dr/1"
get_estimator("dr")
late = register(type("Late", (), {"id": "dr/9", "needs": ()})())
assert get_estimator("dr") is late
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_of_them_are_registered():
    assert set(ALL) <= set(available())
    assert available(["v"]) == [n for n in available() if set(get_estimator(n).needs) <= {"v"}]


@given(batches)
@settings(max_examples=60, deadline=None)
def test_same_policy_gives_the_mean_return(batch):
    same = with_arrays(batch, log_ratio=np.zeros(batch.n_turns))
    for name in ("is", "wis", "pdis", "wpdis"):
        assert value(name, same) == pytest.approx(batch.returns.mean(), abs=1e-12)
    assert get_estimator("wpdis").statistics(same).ess() == pytest.approx(batch.n_sessions)


@given(batches)
@settings(max_examples=60, deadline=None)
def test_no_model_turns_doubly_robust_into_importance_sampling(batch):
    zero = np.zeros(batch.n_turns)
    plain = with_arrays(batch, q=zero, v=zero)
    assert value("dr", plain) == pytest.approx(value("pdis", plain), rel=1e-12, abs=1e-12)
    assert value("wdr", plain) == pytest.approx(value("wpdis", plain), rel=1e-12, abs=1e-12)


@given(batches, st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_any_split_into_shards_gives_the_same(batch, shards):
    cut = np.array_split(np.random.default_rng(0).permutation(batch.n_sessions), shards)
    for name in ALL:
        estimator = get_estimator(name)
        parts = [estimator.statistics(batch.select(p)) for p in cut if len(p)]
        total = parts[0]
        for part in parts[1:]:
            total = part + total
        whole = estimator.statistics(batch)
        size = np.abs(estimator.influence(batch)).max() + abs(estimator.value(whole))
        assert estimator.value(total) == pytest.approx(estimator.value(whole), abs=1e-12 * max(size, 1))
        assert total.n_turns == batch.n_turns
        assert total.ess() == pytest.approx(whole.ess(), rel=1e-10)


@given(batches)
@settings(max_examples=40, deadline=None)
def test_a_right_model_leaves_no_error(batch):
    """Deterministic world: V̂ is the return to come, Q̂ = r + γV̂': every difference vanishes."""
    v = np.zeros(batch.n_turns)
    for a, b, after in zip(batch.offsets[:-1], batch.offsets[1:], batch.value_after_end, strict=True):
        for t in range(b - 1, a - 1, -1):
            v[t] = after = batch.reward[t] + batch.gamma * after
    exact = with_arrays(batch, q=v, v=v)
    for name in ("dr", "wdr"):
        terms = get_estimator(name).terms(exact)
        assert np.abs(terms.x).max() < 1e-12
        assert value(name, exact) == pytest.approx(value("mean", exact), rel=1e-9, abs=1e-9)


@given(batches)
@settings(max_examples=40, deadline=None)
def test_influence_is_the_derivative(batch):
    """ψ_i/n is the change of the estimate when session i's weight grows: compare with a small step."""
    if batch.n_sessions < 2:
        return
    step, n = 1e-5, batch.n_sessions
    for name in ("wpdis", "wdr", "wis", "pdis"):
        estimator = get_estimator(name)
        psi = estimator.influence(batch)
        up, down = (_reweighted(estimator, batch, 0, 1 + s) for s in (step, -step))
        scale = max(np.abs(psi).max(), 1.0)
        assert (up - down) / (2 * step) == pytest.approx(psi[0] / n, abs=1e-4 * scale)


def _reweighted(estimator, batch, session, weight):
    """The estimate with one session counted ``weight`` times, by the definition of the sums."""
    terms, counts = estimator.terms(batch), np.ones(batch.n_sessions)
    counts[session] = weight
    by_rank = counts[terms.layout.order]
    rows, rank = terms.log_weight, terms.layout.rank
    total = (counts * terms.base).sum() / counts.sum()
    for t in range(terms.layout.n_steps):
        a, b = terms.layout.starts[t], terms.layout.starts[t + 1]
        w = np.exp(rows[a:b]) * by_rank[rank[a:b]]
        ended = (np.exp(terms.last_log_weight) * by_rank)[b - a :].sum()
        divisor = counts.sum() if terms.normaliser == "count" else w.sum() + ended
        total += terms.factors[t] * (w * terms.x[a:b]).sum() / divisor
    return total


def test_constant_reward_has_a_self_normalised_interval_of_no_width():
    rng = np.random.default_rng(0)
    batch = SessionBatch(np.arange(201), np.full(200, 3.5), 1.0, log_ratio=rng.normal(size=200))
    for name in ("wis", "wpdis"):
        estimate = evaluate_estimator(get_estimator(name), batch, resamples=2000)
        assert estimate.value == pytest.approx(3.5, abs=1e-12)
        assert estimate.interval.width == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_extreme_discounts(gamma):
    batch = with_arrays(
        random_batch(np.random.default_rng(0), 20, 6), gamma=gamma, truncated=None, terminated=None
    )
    first = batch.reward[batch.offsets[:-1]].mean()
    whole = np.add.reduceat(batch.reward, batch.offsets[:-1]).mean()
    assert value("mean", batch) == pytest.approx(whole if gamma else first, abs=1e-12)
    assert np.isfinite(value("wdr", batch))


def test_session_order_does_not_matter():
    batch = random_batch(np.random.default_rng(5), 300, 9)
    shuffled = batch.select(np.random.default_rng(6).permutation(300))
    for name in ALL:
        assert value(name, shuffled) == pytest.approx(value(name, batch), rel=1e-12, abs=1e-12)


def test_float32_input_is_summed_in_float64():
    rng = np.random.default_rng(7)
    reward = rng.normal(1e4, 1, 100_000).astype(np.float32)
    batch = SessionBatch(np.arange(100_001), reward, 1.0, log_ratio=np.zeros(100_000, np.float32))
    assert batch.reward.dtype == np.float64
    assert value("wpdis", batch) == pytest.approx(reward.astype(np.float64).mean(), rel=1e-14)
