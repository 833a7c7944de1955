"""Statistics computed on Ray workers add up to those of one pass, whatever the shards and their order."""

import numpy as np
import pytest
from benchmarks._known_problems import random_batch

from preplay.estimators import SessionBatch, get_estimator

NAMES = ["mean", "dm", "is", "wis", "pdis", "wpdis", "dr", "wdr", "magic", "mis"]


def test_one_or_eight_shards(ray2):
    plain = random_batch(np.random.default_rng(0), 400, 10)
    fields = {f: getattr(plain, f) for f in SessionBatch.__dataclass_fields__}
    clusters = np.random.default_rng(1).integers(0, 3, plain.n_turns)
    batch = SessionBatch(**(fields | {"state_cluster": clusters}))

    @ray2.remote
    def statistics(shard):
        return {name: get_estimator(name).statistics(shard) for name in NAMES}

    parts = np.array_split(np.random.default_rng(2).permutation(400), 8)
    waiting, total = [statistics.remote(batch.select(p)) for p in parts], {}
    while waiting:
        done, waiting = ray2.wait(waiting)
        for name, stats in ray2.get(done[0]).items():
            total[name] = total[name] + stats if name in total else stats
    for name in NAMES:
        estimator = get_estimator(name)
        whole = estimator.value(estimator.statistics(batch))
        assert estimator.value(total[name]) == pytest.approx(whole, abs=1e-12), name
