"""Replay: bootstraps that stay, rings that wrap, success paths (traps 13, 20, 21, 26)."""

import numpy as np
import pytest

from preplay_rllib._replay import Replay


def rows(values, episode=0, success=False):
    values = np.asarray(values)
    last = np.arange(len(values)) == len(values) - 1
    return {
        "x": values.astype(np.int64),
        "episode": np.full(len(values), episode),
        "terminated": last & success,
        "success": last & success,
    }


def test_members_share_about_the_expected_part_of_the_rows_and_keep_them():
    replay = Replay(capacity=4000, members=3, seed=1)
    replay.add(rows(range(4000)))
    held = replay.sample(4000, 0.0, np.random.default_rng(0))["bootstrap"] > 0
    assert held.mean() == pytest.approx(1 - np.exp(-1), abs=0.03)
    assert (held[:, 0] & held[:, 1]).mean() == pytest.approx((1 - np.exp(-1)) ** 2, abs=0.03)
    before = replay.get_state()["columns"]["bootstrap"].copy()
    replay.sample(100, 0.5, np.random.default_rng(1))
    assert np.array_equal(replay.get_state()["columns"]["bootstrap"], before)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_ring_holds_the_newest_rows_for_every_position_of_the_head(chunk):
    replay, seen = Replay(capacity=5, members=2, seed=0), []
    for start in range(0, 23 * chunk, chunk):
        replay.add(rows(range(start, start + chunk)))
        seen += range(start, start + chunk)
        assert len(replay) == min(len(seen), 5)
        assert sorted(replay.get_state()["columns"]["x"]) == seen[-5:]


def test_not_full_one_row_before_it_is():
    replay = Replay(capacity=3, members=2, seed=0)
    replay.add(rows([1, 2]))
    assert len(replay) == 2
    assert set(replay.sample(50, 0.0, np.random.default_rng(0))["x"]) == {1, 2}


def test_rare_success_is_sampled_as_asked_even_after_many_other_rows():
    replay = Replay(capacity=5000, members=2, seed=0)
    replay.add(rows([7], episode=1, success=True))
    for episode in range(2, 12):
        replay.add(rows([0] * 100, episode=episode))
    sample = replay.sample(200, 0.25, np.random.default_rng(0))
    assert sample["success"].sum() >= 50
    assert replay.successes == 1


def test_starts_are_on_the_way_to_a_success_found_later_in_the_same_episode():
    replay = Replay(capacity=1000, members=2, seed=0)
    replay.add(rows(range(100), episode=1))  # still going on
    replay.add(rows(range(500, 600), episode=2))
    assert not replay.starts(50, 1.0, 1000, np.random.default_rng(0))["on_success"].any()
    replay.add(rows(range(100, 110), episode=1, success=True))
    starts = replay.starts(400, 1.0, 1000, np.random.default_rng(0))
    assert set(starts["x"]) == set(range(110 - 48, 110))
    assert (replay.starts(400, 0.5, 1000, np.random.default_rng(0))["episode"] == 2).sum() > 50


def test_other_starts_are_among_the_newest_rows_also_around_the_end_of_the_ring():
    replay = Replay(capacity=100, members=2, seed=0)
    replay.add(rows(range(130)))
    assert set(replay.starts(500, 0.5, 40, np.random.default_rng(0))["x"]) == set(range(90, 130))


def test_state_survives_and_draws_go_on_alike():
    one = Replay(capacity=10, members=2, seed=3)
    one.add(rows(range(14)))
    two = Replay(capacity=10, members=2, seed=99)
    two.set_state(one.get_state())
    for replay in (one, two):
        replay.add(rows([50, 51], success=True))
    a, b = (r.sample(30, 0.5, np.random.default_rng(0)) for r in (one, two))
    assert all(np.array_equal(a[name], b[name]) for name in a)


def steps(values, episode):
    """Rows whose observation says which step of which episode they are."""
    made = rows(values, episode=episode)
    reward = np.asarray(values, np.float32)
    return made | {"observation": made["x"] + 1000 * episode, "action": made["x"] * 2, "reward": reward}


@pytest.mark.parametrize("capacity", [7, 12, 40])
def test_rows_come_with_those_before_them_in_their_own_episode_as_far_as_they_are_kept(capacity):
    """Chunks of two environments in turns, one episode ending inside, for every position of the ring's head."""
    replay = Replay(capacity=capacity, members=2, seed=0, context=4)
    order = []
    for chunk in range(10):
        both = [steps(range(2 * chunk, 2 * chunk + 2), episode) for episode in (1, 2 if chunk < 4 else 3)]
        replay.add({name: np.concatenate([b[name] for b in both]) for name in both[0]})
        order += [int(o) for b in both for o in b["observation"]]
        kept, newest = order[-capacity:], replay.newest(capacity)
        assert newest["observation"].tolist() == kept
        for i, now in enumerate(kept):
            before = [o for o in kept[:i] if o // 1000 == now // 1000][-4:]
            assert newest["past_known"][i].tolist() == [False] * (4 - len(before)) + [True] * len(before)
            known = newest["past_known"][i]
            assert newest["past_observation"][i][known].tolist() == before
            assert newest["past_action"][i][known].tolist() == [o % 1000 * 2 for o in before]


def test_a_rows_copies_are_the_same_wherever_it_is_drawn():
    replay = Replay(capacity=50, members=3, seed=0, context=2)
    replay.add(steps(range(30), 1))
    newest = replay.newest(30)
    assert np.array_equal(newest["past_bootstrap"][1:, 1], newest["bootstrap"][:-1])


def test_context_survives_a_checkpoint_and_goes_on_with_its_episodes():
    one = Replay(capacity=20, members=2, seed=3, context=3)
    one.add(steps(range(26), 1))
    two = Replay(capacity=20, members=2, seed=9, context=3)
    two.set_state(one.get_state())
    for replay in (one, two):
        replay.add(steps(range(26, 29), 1))
    a, b = (r.sample(30, 0.0, np.random.default_rng(0)) for r in (one, two))
    assert a["past_known"].any()
    assert all(np.array_equal(a[name], b[name]) for name in a)
