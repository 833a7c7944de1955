"""RehearsalPPO as a user runs it: it rehearses, curves repeat, checkpoints hold everything (traps 38, 42, 43)."""

import numpy as np
import pytest
import torch

from preplay.errors import PreplayError
from preplay_rllib import RehearsalPPOConfig
from preplay_rllib._module import mix_uniform


def curve(algorithm, steps: int) -> list[dict]:
    """What a run is compared by: everything but times."""
    results = []
    for _ in range(steps):
        result = algorithm.train()
        rehearsal = {k: float(v) for k, v in result["rehearsal"].items()}
        loss = float(result["learners"]["default_policy"]["total_loss"])
        results.append(
            rehearsal | {"return": result["env_runners"].get("episode_return_mean", 0.0), "loss": loss}
        )
    return results


def test_rehearsal_opens_trains_on_imagined_rows_and_learns(ray2, ppo_config):
    algorithm = ppo_config(gates=False).build_algo()
    before = {k: v.copy() for k, v in algorithm.get_weights()["default_policy"].items()}
    points = curve(algorithm, 4)
    after = algorithm.get_weights()["default_policy"]
    algorithm.stop()
    assert points[-1]["open"] == 1.0
    assert 2000 < points[-1]["imagined_rows"] <= 9 * 540
    assert points[-1]["model_loss"] < points[0]["model_loss"] / 4
    assert points[-1]["model_exact"] > 0.7
    assert any(not np.array_equal(before[k], after[k]) for k in before)


def test_same_seed_same_curve_and_resume_goes_on_with_it(ray2, ppo_config, tmp_path):
    one = ppo_config(seed=3).build_algo()
    head = curve(one, 2)
    one.save_to_path(tmp_path / "checkpoint")
    one.restart_episodes()
    tail = curve(one, 2)
    rows = len(one.engine.replay)
    one.stop()
    two = ppo_config(seed=3).build_algo()
    two.restore_from_path(tmp_path / "checkpoint")
    two.restart_episodes()
    np.testing.assert_equal(curve(two, 2), tail)
    assert len(two.engine.replay) == rows
    two.stop()
    three = ppo_config(seed=3).build_algo()
    np.testing.assert_equal(curve(three, 2), head)
    three.stop()


def test_an_untrained_model_is_switched_off_and_the_metrics_say_so(ray2, ppo_config):
    algorithm = ppo_config(model_updates=0).build_algo()
    points = curve(algorithm, 3)
    algorithm.stop()
    assert points[-1]["open"] == 0.0
    assert points[-1]["closed_poor_model"] == 1.0
    assert points[-1]["imagined_rows"] == 0.0


def test_bonus_reaches_the_learner_and_not_the_reported_return(ray2, ppo_config):
    """Returns stay those of the task: at most 1, and none of the bonus in a run that never succeeds."""
    algorithm = ppo_config(task="MiniGrid-DoorKey-6x6-v0", bonus=5.0, real_ratio=1.0).build_algo()
    for _ in range(2):
        result = algorithm.train()
    episodes = algorithm.env_runner.sample(num_timesteps=64)
    shaped = algorithm.engine.bonus.shaped(episodes)
    algorithm.stop()
    assert result["env_runners"].get("episode_return_max", 0.0) <= 1.0
    assert sum(e.get_return() for e in shaped) > sum(e.get_return() for e in episodes) + 1


def test_mixing_is_exact():
    logits = torch.tensor([[3.0, -2.0, 0.0, 0.5]])
    mixed = torch.softmax(mix_uniform(logits, 0.05), -1)
    assert torch.allclose(mixed, 0.95 * torch.softmax(logits, -1) + 0.05 / 4)
    assert torch.allclose(torch.exp(mix_uniform(logits, 0.05)).sum(), torch.tensor(1.0))


def test_unknown_and_impossible_settings_are_refused_in_plain_words():
    with pytest.raises(PreplayError, match="unknown rehearsal setting ratio"):
        RehearsalPPOConfig().rehearsal(ratio=0.5)
    config = RehearsalPPOConfig().environment("CartPole-v1")
    with pytest.raises(PreplayError, match="time limit"):
        config.build_algo()
