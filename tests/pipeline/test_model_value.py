"""Returns from imagined turns by hand, and the Q regression on a function that is known."""

import numpy as np
import pytest

from preplay.pipeline._model_value import ImaginedValues, fit_model_value, imagined_return_to_go


def test_return_to_go_weights_by_survival():
    # Rollout 0: G1 = 4, G0 = 1 + .5 * (1 - .5) * 4 = 2. Rollout 1 has one turn: 3. Nothing crosses over.
    rollout = np.array([0, 0, 1])
    reward, ended = np.array([1.0, 4.0, 3.0]), np.array([0.5, 1.0, 0.0])
    assert imagined_return_to_go(rollout, reward, ended, 0.5).tolist() == [2.0, 4.0, 3.0]


def test_certain_termination_cuts_the_future():
    result = imagined_return_to_go(np.zeros(3, int), np.ones(3), np.array([1.0, 0.0, 0.0]), 1.0)
    assert result.tolist() == [1.0, 2.0, 1.0]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    state, action = rng.normal(size=(8000, 3)).astype("f4"), rng.normal(size=(8000, 2)).astype("f4")
    value = state[:, 0] - 2 * action[:, 1]
    survival = np.where(rng.random(8000) < 0.5, 1.0, 0.0)
    value = np.where(survival > 0, value, 1000.0)  # turns that are never reached must not count
    return fit_model_value(ImaginedValues(state, action, value, survival), seed=0)


def test_regression_finds_the_function(fitted):
    state = np.array([[0.5, 0, 0], [-0.5, 0, 0]], "f4")
    action = np.array([[0, 0.5], [0, -0.5]], "f4")
    assert fitted.q(state, action) == pytest.approx([-0.5, 0.5], abs=0.25)
    assert fitted.r2 > 0.95


def test_v_is_the_mean_q_over_the_sampled_actions(fitted):
    state = np.zeros((1, 3), "f4")
    actions = np.array([[[0, 1.0], [0, -1.0], [0, 0.3]]], "f4")
    each = [fitted.q(state, actions[:, k])[0] for k in range(3)]
    assert fitted.v(state, actions)[0] == pytest.approx(np.mean(each))
