"""Interval arithmetic against worked numbers, and coverage in small."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import (
    ConfidenceSequence,
    WeightedSums,
    asymptotic_sequence,
    combine_errors,
    cressie_read_interval,
    cressie_read_value,
    empirical_likelihood,
    hoeffding,
    maurer_pontil,
    student_t,
    weighted_bounds,
)
from preplay.estimators._intervals import maurer_pontil_reach

HALF = np.repeat([0.0, 1.0], 50)
"""50 zeros and 50 ones: mean .5, unbiased variance 25/99."""


def test_hoeffding_student_and_maurer_pontil():
    assert hoeffding(HALF, (0, 1)).width / 2 == pytest.approx(0.13581015, abs=1e-8)  # sqrt(ln(40)/200)
    assert student_t(HALF).width / 2 == pytest.approx(0.09971065, abs=1e-8)  # t_99 · sqrt(25/99)/10
    assert maurer_pontil_reach(HALF, 0.05) == pytest.approx(0.22343762, abs=1e-8)
    two_sided = maurer_pontil(HALF, (0, 1))
    assert two_sided.width / 2 == pytest.approx(maurer_pontil_reach(HALF, 0.025), abs=1e-12)


@pytest.mark.parametrize("make", [hoeffding, maurer_pontil])
def test_ranges_scale_and_shift(make):
    """Returns from −3 to 1: the interval of 4·x − 3 is four times as wide."""
    plain, scaled = make(HALF, (0, 1)), make(4 * HALF - 3, (-3, 1))
    assert scaled.low == pytest.approx(4 * plain.low - 3)
    assert scaled.high == pytest.approx(4 * plain.high - 3)


@pytest.mark.parametrize("make", [hoeffding, maurer_pontil])
def test_a_range_must_be_declared_and_true(make):
    with pytest.raises(PreplayError, match="needs a declared range"):
        make(HALF, None)
    with pytest.raises(PreplayError, match="leave the declared range"):
        make(HALF - 1, (0, 1))
    with pytest.raises(PreplayError, match="empty or unbounded"):
        make(HALF, (0, np.inf))


def test_width_shrinks_with_more_sessions():
    for make in (
        lambda x: hoeffding(x, (0, 1)),
        lambda x: maurer_pontil(x, (0, 1)),
        student_t,
        empirical_likelihood,
    ):
        assert make(np.tile(HALF, 4)).width < 0.6 * make(HALF).width


def test_one_value_bounds_nothing():
    one = np.array([0.3])
    assert student_t(one).width == np.inf
    assert empirical_likelihood(one).width == np.inf
    assert (maurer_pontil(one, (0, 1)).low, maurer_pontil(one, (0, 1)).high) == (0, 1)


def test_heavy_sessions_widen_t():
    x = np.zeros(200)
    x[0] = 10.0
    # kurtosis ≈ 199: 2n/(κ − 1) ≈ 2 degrees of freedom, t = 4.3 instead of 1.97
    assert student_t(x).width > 2 * 4 * x.std(ddof=1) / np.sqrt(200)


def test_empirical_likelihood_of_a_coin():
    """k of n ones: −2 log R(p) = 2[k ln(k/np) + (n−k) ln((n−k)/n(1−p))] = F_{1,99}(.95) at both ends."""
    from scipy.stats import f

    interval = empirical_likelihood(HALF[:60])  # 50 zeros, 10 ones
    for p in (interval.low, interval.high):
        ratio = 2 * (10 * np.log(10 / (60 * p)) + 50 * np.log(50 / (60 * (1 - p))))
        kurtosis = (1 - 3 * (1 / 6) * (5 / 6)) / ((1 / 6) * (5 / 6))
        assert ratio == pytest.approx(f.ppf(0.95, 1, min(59, 120 / (kurtosis - 1))), rel=1e-6)
    assert interval.high - 1 / 6 > 1 / 6 - interval.low  # leans where the data lean


def test_cressie_read_matches_worked_stream():
    """1000 rows alternating weight .4 with reward 1 and weight 1.6 with reward 0 (vw's own example)."""
    sums = WeightedSums.of(np.tile([0.4, 1.6], 500), np.tile([1.0, 0.0], 500))
    assert cressie_read_value(sums) == pytest.approx(0.1994687, abs=1e-7)
    interval = cressie_read_interval(sums, (0, 1))
    assert (interval.low, interval.high) == pytest.approx((0.189329, 0.242685), abs=1e-6)
    assert cressie_read_value(WeightedSums.of(np.array([2.0]), np.array([1.0]))) == pytest.approx(1.0)


def test_cressie_read_sums_merge():
    rng = np.random.default_rng(0)
    w, r = rng.exponential(size=90), rng.random(90)
    whole = WeightedSums.of(w, r)
    merged = WeightedSums.of(w[:20], r[:20]) + WeightedSums.of(w[20:], r[20:])
    a, b = (cressie_read_interval(s, (0, 1), (0, 10)) for s in (whole, merged))
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-12)


def test_weighted_bounds_hold_without_support():
    """The logs lack half of what the target does (returns 1 there): the truth .5·.2 + .5·1 stays inside."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(100):
        supported = rng.random(400) < 0.5
        weights = np.where(supported, 1.0, 0.0)  # E[w] = .5: the rest of the target's mass is unseen
        returns = np.where(supported, (rng.random(400) < 0.2).astype(float), 0.0)
        interval = weighted_bounds(weights, returns, (0, 1))
        misses += not interval.contains(0.6)
        assert interval.high > 0.55
    assert misses == 0


def test_confidence_sequence_does_not_depend_on_the_cuts():
    x = np.random.default_rng(2).random(500)
    whole = ConfidenceSequence((0, 1)).update(x)
    pieces = ConfidenceSequence((0, 1))
    for part in np.array_split(x, 7):
        pieces = pieces.update(part)
    assert pieces.interval.low == pytest.approx(whole.interval.low, abs=1e-12)
    assert pieces.interval.high == pytest.approx(whole.interval.high, abs=1e-12)
    assert whole.interval.width < 0.2
    assert ConfidenceSequence((-1, 1)).interval.width == 2


def test_confidence_sequence_by_hand():
    """One value x = 1 at level .95: μ̂_0 = σ̂²_0... λ = min(sqrt(2 ln 40/(.25·ln 2)), .5) = .5.

    ψ(.5) = (ln 2 − .5)/4 = .0482868 and v = 4(1 − .5)² = 1, so the centre is 1 and the reach
    (ln 40 + .0482868)/.5 = 7.47: clipped to [0, 1].
    """
    sequence = ConfidenceSequence((0, 1)).update(np.array([1.0]))
    assert sequence.rates == pytest.approx(0.5)
    assert sequence.penalty == pytest.approx((np.log(2) - 0.5) / 4)
    assert (sequence.interval.low, sequence.interval.high) == (0, 1)


def test_confidence_sequences_hold_at_every_look():
    """Looking after each of 400 values: a fixed-n interval fails for about half of the streams."""
    rng, streams = np.random.default_rng(3), 200
    failed_sequence, failed_normal, failed_asymptotic = 0, 0, 0
    for _ in range(streams):
        x = (rng.random(400) < 0.3).astype(float)
        sequence, seen = ConfidenceSequence((0, 1)), False
        for part in x.reshape(40, 10):
            sequence = sequence.update(part)
            seen |= not sequence.interval.contains(0.3)
        failed_sequence += seen
        counts = np.arange(10, 401, 10)
        means = np.cumsum(x)[9::10] / counts
        spread = np.sqrt(means * (1 - means))
        failed_normal += bool((abs(means - 0.3) > 1.96 * spread / np.sqrt(counts)).any())
        looks = [
            asymptotic_sequence(n, m, s, tightest_at=200)
            for n, m, s in zip(counts[5:], means[5:], spread[5:], strict=True)
        ]
        failed_asymptotic += not all(i.contains(0.3) for i in looks)
    assert failed_sequence <= 0.05 * streams
    assert failed_asymptotic <= 0.08 * streams
    assert failed_normal > 0.2 * streams


def test_a_value_outside_the_range_is_refused():
    with pytest.raises(PreplayError, match="leaves the declared range"):
        ConfidenceSequence((0, 1)).update(np.array([1.5]))


def test_errors_combine_as_a_root_sum_of_squares():
    epistemic, total = combine_errors(0.3, np.array([1.0, 1.8, 1.4]))
    assert epistemic == pytest.approx(0.4)
    assert total == pytest.approx(0.5)
    assert combine_errors(0.3, np.array([1.0])) == (None, 0.3)
