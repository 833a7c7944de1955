"""RehearsalDQN and RehearsalSAC: batches mix as asked, models of vectors are learned, everything is resumed."""

import numpy as np
import pytest
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from preplay_rllib import RehearsalDQNConfig, RehearsalSACConfig
from preplay_rllib._buffer import MixedReplayBuffer
from preplay_rllib._transitions import IMAGINED, N_STEP, WEIGHTS
from preplay_rllib._vector_model import VectorTracker


def one_step(value: float, **extra) -> SingleAgentEpisode:
    return SingleAgentEpisode(
        observations=[np.float32([value]), np.float32([value + 1])],
        actions=[0],
        rewards=[value],
        terminated=True,
        len_lookback_buffer=0,
        extra_model_outputs=extra,
    )


def test_a_batch_is_mixed_by_the_real_ratio_and_imagined_rows_are_flushed():
    buffer = MixedReplayBuffer(capacity=100, imagined_capacity=30)
    buffer.add([one_step(1.0) for _ in range(20)])
    buffer.add_imagined([one_step(-1.0, **{IMAGINED: [1.0], WEIGHTS: [0.5], N_STEP: [1]}) for _ in range(50)])
    assert len(buffer.imagined) == 30
    buffer.real_ratio = 0.75
    sample = buffer.sample(num_items=40, n_step=1)
    imagined = [e.get_extra_model_outputs(IMAGINED)[0] for e in sample]
    assert sum(imagined) == 10
    assert [e.get_rewards()[0] for e in sample] == [1.0] * 30 + [-1.0] * 10
    buffer.update_priorities(np.ones(40))  # the imagined ones' errors come last and are dropped
    buffer.real_ratio = 1.0
    assert sum(e.get_extra_model_outputs(IMAGINED)[0] for e in buffer.sample(num_items=40, n_step=1)) == 0


def test_tracker_pairs_each_action_with_what_it_led_to_and_truncation_is_no_termination():
    """A counter whose action is its next observation (trap 2), in two chunks of one episode (traps 15, 18)."""
    cut = SingleAgentEpisode(
        observations=[np.float32([v]) for v in (0, 3, 1)],
        actions=[3, 1],
        rewards=[3.0, 1.0],
        len_lookback_buffer=0,
    )
    rest = SingleAgentEpisode(
        id_=cut.id_,
        observations=[np.float32([v]) for v in (1, 2)],
        actions=[2],
        rewards=[2.0],
        truncated=True,
        len_lookback_buffer=0,
    )
    tracker = VectorTracker()
    first, second = tracker.track([cut.to_numpy()]), tracker.track([rest.to_numpy()])
    for rows in (first, second):
        assert np.array_equal(rows["next"][:, 0], rows["action"])
        assert np.array_equal(rows["reward"], rows["action"])
        assert not rows["terminated"].any()
        assert (rows["episode"] == 0).all()
    assert len(first["action"]) + len(second["action"]) == 3


def dqn():
    return (
        RehearsalDQNConfig()
        .environment("CartPole-v1")
        .training(train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100, lr=1e-3)
    )


def sac(task: str):
    return (
        RehearsalSACConfig()
        .environment(task)
        .training(train_batch_size_per_learner=32, num_steps_sampled_before_learning_starts=100)
    )


def run(config, steps: int):
    config = config.debugging(seed=1, log_level="ERROR").rehearsal(
        warmup_steps=200, max_error=5.0, max_gap=5.0
    )
    config = config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=100)
    algorithm = config.build_algo()
    return algorithm, [algorithm.train() for _ in range(steps)]


@pytest.mark.parametrize(
    "config",
    [
        dqn(),
        pytest.param(sac("CartPole-v1"), marks=pytest.mark.slow),
        pytest.param(sac("Pendulum-v1"), marks=pytest.mark.slow),
    ],
    ids=["dqn", "sac-discrete", "sac-continuous"],
)
def test_trains_on_mixed_batches_and_its_checkpoint_holds_both_buffers(ray2, config, tmp_path):
    algorithm, results = run(config, 5)
    errors = [
        float(r["rehearsal"]["model_error"]) for r in results if "model_error" in r.get("rehearsal", {})
    ]
    assert errors[-1] < errors[0]
    assert float(results[-1]["rehearsal"]["open"]) == 1.0
    assert -1 < float(results[-1]["rehearsal"]["gap"]) < 1
    buffer = algorithm.local_replay_buffer
    assert len(buffer.imagined) > 50
    sample = buffer.sample(num_items=32, n_step=1)
    assert sum(e.get_extra_model_outputs(IMAGINED)[0] for e in sample) == 16
    algorithm.save_to_path(tmp_path / "checkpoint")
    copy = config.copy(copy_frozen=False).build_algo()
    copy.restore_from_path(tmp_path / "checkpoint")
    assert len(copy.local_replay_buffer.imagined) == len(buffer.imagined)
    assert copy.local_replay_buffer.get_num_timesteps() == buffer.get_num_timesteps()
    assert len(copy.engine.replay) == len(algorithm.engine.replay)
    first = lambda b: b.imagined[0].get_observations(0)  # noqa: E731
    assert np.array_equal(first(copy.local_replay_buffer), first(buffer))
    algorithm.stop()
    copy.stop()


def test_columns_that_rllib_lines_up_by_name_are_the_same_in_both_kinds():
    real = MixedReplayBuffer(capacity=10, imagined_capacity=10)
    real.add([one_step(1.0)])
    extra = set(real.sample(num_items=1, n_step=1)[0].extra_model_outputs)
    assert extra == {WEIGHTS, N_STEP, IMAGINED}
