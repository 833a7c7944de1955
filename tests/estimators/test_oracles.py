"""Other people's implementations, where they are right."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch

from preplay.estimators import (
    SessionBatch,
    WeightedSums,
    cressie_read_interval,
    cressie_read_value,
    get_estimator,
)


def value(name: str, batch: SessionBatch) -> float:
    estimator = get_estimator(name)
    return estimator.value(estimator.statistics(batch))


@pytest.fixture(scope="module")
def vw():
    return pytest.importorskip(
        "estimators.bandits", reason="pip install vw-estimators==0.2.2 for this oracle"
    )


def stream(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logged, target = rng.uniform(0.1, 1, 300), rng.uniform(0, 1, 300)
    return logged, (rng.random(300) < 0.4).astype(float), target


@pytest.mark.parametrize("seed", range(5))
def test_vw_ips_and_snips(vw, seed):
    from estimators.bandits import ips, snips

    logged, reward, target = stream(seed)
    batch = SessionBatch(np.arange(301), reward, 1.0, log_ratio=np.log(target / logged))
    for oracle, name in ((ips.Estimator(), "is"), (snips.Estimator(), "wis")):
        for p, r, q in zip(logged, reward, target, strict=True):
            oracle.add_example(p, r, q)
        assert value(name, batch) == pytest.approx(oracle.get(), abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*returned non-float:DeprecationWarning")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("largest", [20.0, np.inf])
def test_vw_cressie_read(vw, seed, largest):
    from estimators.bandits import cressieread

    logged, reward, target = stream(seed)
    point, interval = cressieread.Estimator(0, largest), cressieread.Interval(0, largest)
    for p, r, q in zip(logged, reward, target, strict=True):
        point.add_example(p, r, q)
        interval.add_example(p, r, q)
    sums = WeightedSums.of(target / logged, reward)
    assert cressie_read_value(sums, (0, largest)) == pytest.approx(point.get(), abs=1e-10)
    made = cressie_read_interval(sums, (0, 1), (0, largest))
    assert (made.low, made.high) == pytest.approx(tuple(interval.get()), abs=1e-9)


def test_rllib_importance_sampling():
    """RLlib's old-stack IS is per-decision and right; its WIS is not (see stop/go)."""
    pytest.importorskip("ray.rllib", reason="ray[rllib] is not installed")
    from ray.rllib.offline.estimators import ImportanceSampling
    from ray.rllib.policy.sample_batch import SampleBatch

    class Given(ImportanceSampling):
        """Takes the target's probabilities from the batch instead of asking a policy."""

        def __init__(self, gamma: float):
            self.gamma = gamma

        def compute_action_probs(self, batch):
            return batch["new_prob"]

    random = random_batch(np.random.default_rng(0), 60, 6, spread=0.3)
    batch = SessionBatch(random.offsets, random.reward, 0.95, log_ratio=random.log_ratio)
    rows = SampleBatch(
        rewards=batch.reward,
        action_prob=np.ones(batch.n_turns),
        new_prob=np.exp(batch.log_ratio),
        eps_id=np.repeat(np.arange(60), batch.lengths),
    )
    oracle = Given(0.95).estimate(rows)
    assert value("pdis", batch) == pytest.approx(oracle["v_target"], rel=1e-6)
    assert value("mean", batch) == pytest.approx(oracle["v_behavior"], rel=1e-6)
