"""Estimates so far."""

import numpy as np
import pytest

from preplay.rollout import FinishedBlock
from preplay_serve.evaluator._execute import Watch, partial_estimate


def test_an_estimate_so_far_is_the_mean_over_initial_states():
    blocks = [(np.array([0, 0, 1]), np.array([1.0, 3.0, 4.0])), (np.array([2]), np.array([6.0]))]
    found = partial_estimate("p", blocks, 0.95)
    # Means per state: 2, 4, 6. Their mean is 4, its standard error 2 / sqrt(3).
    assert found.value == pytest.approx(4.0)
    assert found.high - found.value == pytest.approx(1.959964 * 2 / np.sqrt(3), rel=1e-6)
    assert found.sessions == 4


def test_only_the_asked_policies_are_told():
    told = []
    watch = Watch(lambda progress, partial: told.append((progress, partial)))
    watch.begin({"env:a": "env:a"})
    one = {"initial": np.array([0, 1]), "returns": np.array([1.0, 2.0]), "total": 2}
    watch.block(FinishedBlock("env:logged@1", done=1, **one))
    watch.block(FinishedBlock("env:a@1", done=2, **one))
    progress, partial = told[-1]
    assert (progress.stage, progress.done, [p.policy for p in partial]) == ("estimating", 2, ["env:a"])
    assert partial[0].value == 1.5
