"""The latent world model inside the algorithms, on CartPole without its velocities (traps 38, 43)."""

import gymnasium as gym
import numpy as np
import pytest

from preplay_rllib import Recent, RehearsalDQNConfig, RehearsalPPOConfig, RehearsalSACConfig

TASK = "preplay-StatelessCartPole-v1"
gym.register(
    TASK,
    entry_point="ray.rllib.examples.envs.classes.stateless_cartpole:StatelessCartPole",
    max_episode_steps=100,
)


def on_task(config, **rehearsal):
    options = {
        "world_model": "latent",
        "needs_success": False,
        "bonus": 0.0,
        "gates": False,
        "warmup_steps": 128,
    }
    small = {"model_batch_size": 16, "model_hidden": 16, "model_members": 3, "model_context": 8}
    return (
        config.environment(Recent, env_config={"id": TASK, "frames": 4})
        .debugging(seed=4, log_level="ERROR")
        .rehearsal(**(options | small | rehearsal))
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    )


def ppo():
    config = on_task(RehearsalPPOConfig(), real_ratio=0.25, rounds=1, horizon=5)
    return config.training(train_batch_size_per_learner=128, minibatch_size=128, num_epochs=2)


def curve(algorithm, steps: int) -> list[dict[str, float]]:
    results = [algorithm.train() for _ in range(steps)]
    return [
        {k: float(v) for k, v in r["rehearsal"].items()}
        | {"loss": float(r["learners"]["default_policy"]["total_loss"])}
        for r in results
    ]


def test_same_seed_same_curve_and_resume_goes_on_with_it(ray2, tmp_path):
    """Beliefs of new rows are made from the replay, which a checkpoint holds."""
    one = ppo().build_algo()
    head = curve(one, 2)
    assert head[-1]["open"] == 1.0
    assert head[-1]["imagined_rows"] > 100
    one.save_to_path(tmp_path / "checkpoint")
    one.restart_episodes()
    tail = curve(one, 2)
    one.stop()
    two = ppo().build_algo()
    np.testing.assert_equal(curve(two, 2), head)
    two.restore_from_path(tmp_path / "checkpoint")
    two.restart_episodes()
    np.testing.assert_equal(curve(two, 2), tail)
    two.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RehearsalDQNConfig, RehearsalSACConfig])
def test_off_policy_algorithms_take_it_by_the_same_setting(ray2, kind):
    config = on_task(kind()).training(
        train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100
    )
    algorithm = config.reporting(min_sample_timesteps_per_iteration=100).build_algo()
    points = curve(algorithm, 4)
    imagined = algorithm.local_replay_buffer.imagined[-1]
    algorithm.stop()
    assert points[-1]["open"] == 1.0
    assert points[-1]["model_error"] < points[0].get("model_error", 1.0)
    before, after = imagined.get_observations()
    assert np.array_equal(before[2:], after[:-2])  # the newest three of four are those that stay


@pytest.mark.slow
def test_trains_on_a_remote_learner(ray2):
    algorithm = ppo().learners(num_learners=1, num_cpus_per_learner=0.5).build_algo()
    points = curve(algorithm, 2)
    algorithm.stop()
    assert points[-1]["open"] == 1.0
    assert points[-1]["imagined_rows"] > 100
