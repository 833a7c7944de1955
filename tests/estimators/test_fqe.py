"""Fitted Q evaluation against values known in closed form."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.estimators import FQEConfig, FQEInputs, fit_fqe


def choices(n: int, steps: int, target_p: float, rng: np.random.Generator, **changes) -> FQEInputs:
    """State = step (one-hot), two actions, r = a, uniform log: V = target_p · Σ γ^t."""
    action = rng.integers(0, 2, n * steps)
    step = np.tile(np.arange(steps), n)
    one_hot = np.eye(steps + 1, dtype=np.float32)
    ends = step == steps - 1
    both = np.eye(2, dtype=np.float32)
    weights = np.array([1 - target_p, target_p])
    arrays = dict(
        offsets=np.arange(0, n * steps + 1, steps),
        state_features=one_hot[step],
        action_features=both[action],
        reward=action.astype(float),
        terminated=ends,
        truncated=np.zeros_like(ends),
        next_state_features=one_hot[step + 1],
        next_action_features=np.broadcast_to(both, (n * steps, 2, 2)),
        next_action_weights=np.broadcast_to(weights, (n * steps, 2)),
        start_action_features=np.broadcast_to(both, (n, 2, 2)),
        start_action_weights=np.broadcast_to(weights, (n, 2)),
        gamma=0.9,
    )
    return FQEInputs(**(arrays | changes))


@pytest.mark.parametrize("target_p", [1.0, 0.7])
def test_three_steps(target_p):
    """H = 3, r = a, γ = .9: 1 + .9 + .81 = 2.71 for the greedy target, .7 of it for the stochastic one."""
    result = fit_fqe(choices(300, 3, target_p, np.random.default_rng(0)), seed=1)
    assert result.v is not None
    assert result.v[::3].mean() == pytest.approx(2.71 * target_p, abs=0.04)
    # V at the steps: what is still to come
    assert result.v[1::3].mean() == pytest.approx(1.9 * target_p, abs=0.04)
    assert result.v[2::3].mean() == pytest.approx(1.0 * target_p, abs=0.04)
    assert result.next_v[2::3] == pytest.approx(0)
    assert result.convergence.converged, result.convergence.reason
    assert result.convergence.bellman_r2 > 0.95
    assert result.q.dtype == np.float64


def test_cut_sessions_bootstrap_and_ended_ones_do_not():
    """r = 1 for ever, γ = .5: V = 2. Cut after 3: the value goes on; terminated: 1.75."""
    inputs = choices(200, 3, 0.5, np.random.default_rng(1), gamma=0.5, reward=np.ones(600))
    same_state = np.ones((600, 4), np.float32)
    looped = {
        "state_features": same_state,
        "next_state_features": same_state,
        "reward": np.ones(600),
        "gamma": 0.5,
    }
    ends = np.asarray(inputs.terminated)
    config = FQEConfig(use_turn=False, iterations=14)
    cut = fit_fqe(
        choices(200, 3, 0.5, np.random.default_rng(1), **looped, terminated=ends & False, truncated=ends),
        config,
    )
    assert cut.q.mean() == pytest.approx(2.0, abs=0.05)
    assert cut.bootstrap.mean() == pytest.approx(2.0, abs=0.05)
    ended = fit_fqe(inputs, FQEConfig(iterations=8))
    assert ended.v[::3].mean() == pytest.approx(1.75, abs=0.05)
    assert (ended.bootstrap == 0).all()
    at_horizon = choices(
        50, 3, 0.5, np.random.default_rng(1), terminated=ends[:150] & False, truncated=ends[:150], horizon=3
    )
    assert not at_horizon.follows[2::3].any()


def test_same_seed_same_values_and_members_differ():
    inputs, quick = choices(60, 3, 0.7, np.random.default_rng(2)), FQEConfig(iterations=3, steps=20)
    a, b, c = fit_fqe(inputs, quick, seed=1), fit_fqe(inputs, quick, seed=1), fit_fqe(inputs, quick, seed=2)
    assert (a.q == b.q).all()
    assert (a.q != c.q).any()
    assert a.q_members.std(0).mean() > 0


def test_too_few_iterations_are_reported():
    inputs = choices(100, 8, 1.0, np.random.default_rng(3), gamma=1.0)
    result = fit_fqe(inputs, FQEConfig(iterations=4), seed=0)
    assert not result.convergence.converged
    assert "moved" in result.convergence.reason


def test_scaling_comes_from_training_sessions_only():
    inputs = choices(100, 3, 0.7, np.random.default_rng(4))
    quick = FQEConfig(iterations=1, steps=1, held_out=0.3)
    before = fit_fqe(inputs, quick).model.inputs
    from preplay.estimators._fqe import _split

    held = _split(inputs.offsets, quick, 0)[1]
    changed = inputs.state_features.copy()
    changed[held] += 100
    after = fit_fqe(
        choices(100, 3, 0.7, np.random.default_rng(4), state_features=changed), quick
    ).model.inputs
    assert len(held) == 90
    assert (before.mean == after.mean).all()
    assert (before.scale == after.scale).all()


def test_bad_features_are_refused():
    with pytest.raises(PreplayError, match="state_features holds NaN"):
        choices(2, 3, 0.5, np.random.default_rng(0), state_features=np.full((6, 4), np.nan, np.float32))
    with pytest.raises(PreplayError, match="5 rows, but the sessions have 6 turns"):
        choices(2, 3, 0.5, np.random.default_rng(0), reward=np.zeros(5))
