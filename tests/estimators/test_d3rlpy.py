"""d3rlpy's fitted Q evaluation as an oracle. It pins other packages than ours, so it lives in its own environment."""

import subprocess

import numpy as np
import pytest
from benchmarks._venvs import ensure_venv, run_json
from benchmarks.estimators import SCOPE

from preplay.estimators import FQEInputs, fit_fqe

STEPS = 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_same_value_as_d3rlpy(tmp_path):
    """H = 3, r = a, γ = .9, greedy target: both give 1 + .9 + .81 = 2.71."""
    try:
        python = ensure_venv("scope-rl", SCOPE)  # it brings d3rlpy
    except subprocess.CalledProcessError:
        pytest.skip("d3rlpy cannot be installed here")
    rng, n = np.random.default_rng(0), 300
    step, action = np.tile(np.arange(STEPS), n), rng.integers(0, 2, n * STEPS)
    one_hot = np.eye(STEPS + 1, dtype=np.float32)
    ends = step == STEPS - 1
    arrays = {
        "states": one_hot[step],
        "actions": action,
        "rewards": action.astype(np.float32),
        "terminals": ends,
        "probe": one_hot[:STEPS],
    }
    np.savez(tmp_path / "toy.npz", **arrays)
    oracle = run_json(python, "_d3rlpy_script.py", str(tmp_path / "toy.npz"))
    both = np.eye(2, dtype=np.float32)
    greedy = both[oracle["greedy"]]
    inputs = FQEInputs(
        offsets=np.arange(0, n * STEPS + 1, STEPS),
        state_features=one_hot[step],
        action_features=both[action],
        reward=action.astype(float),
        terminated=ends,
        truncated=ends & False,
        next_state_features=one_hot[step + 1],
        next_action_features=np.vstack([greedy, greedy[:1]])[step + 1][:, None],
        gamma=0.9,
        start_action_features=np.repeat(greedy[:1], n, 0)[:, None],
    )
    result = fit_fqe(inputs, seed=0)
    assert oracle["greedy"] == [1, 1, 1]
    assert oracle["value"][0] == pytest.approx(2.71, abs=0.05)
    assert result.v is not None
    for t in range(STEPS):
        assert result.v[t::STEPS].mean() == pytest.approx(oracle["value"][t], abs=0.06)
