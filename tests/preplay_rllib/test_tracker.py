"""Beliefs along the real stream: chunks, boundaries, final observations, flags (traps 4, 12, 15, 17, 18)."""

import numpy as np
import pytest
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from preplay_rllib import GridTracker, MiniGrid, flatten
from preplay_rllib._belief import first_belief
from preplay_rllib._minigrid import unflatten


def played(seed: int, steps: int) -> SingleAgentEpisode:
    env = MiniGrid({"id": "MiniGrid-Empty-5x5-v0", "max_steps": 40})
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    episode = SingleAgentEpisode(len_lookback_buffer=0)
    episode.add_env_reset(observation)
    for _ in range(steps):
        action = int(rng.choice([0, 1, 2], p=[0.2, 0.2, 0.6]))
        observation, reward, terminated, truncated, _ = env.step(action)
        episode.add_env_step(observation, action, reward, terminated=terminated, truncated=truncated)
        if terminated or truncated:
            break
    return episode


def test_chunks_give_the_same_rows_as_the_whole_episode():
    episode = played(seed=1, steps=30)
    head, tail = episode[:10], episode[10:]
    head.id_ = tail.id_ = episode.id_
    head.is_terminated = head.is_truncated = False
    tracker = GridTracker()
    parts = [tracker.track([head]), tracker.track([played(seed=2, steps=5)]), tracker.track([tail])]
    whole = GridTracker().track([episode])
    for name in ("grid", "under", "step", "action", "view", "moved", "terminated", "success"):
        assert np.array_equal(np.concatenate([parts[0][name], parts[2][name]]), whole[name]), name
    assert len(set(parts[0]["episode"]) | set(parts[2]["episode"])) == 1
    assert set(parts[1]["episode"]).isdisjoint(parts[0]["episode"])


def test_an_episode_begins_with_what_its_first_view_shows_and_nothing_older():
    tracker = GridTracker()
    tracker.track([played(seed=1, steps=40)])
    episode = played(seed=3, steps=4)
    rows = tracker.track([episode])
    fresh = first_belief(torch.as_tensor(unflatten(episode.get_observations(0)))[None])
    assert np.array_equal(rows["grid"][0], fresh.grid[0].numpy())
    assert rows["step"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_real_steps_ending_with_the_final_view(seed):
    episode = played(seed, steps=60)
    rows = GridTracker().track([episode])
    assert len(rows["action"]) == len(episode)
    assert np.array_equal(flatten(rows["view"][-1]), episode.get_observations(-1))
    assert rows["terminated"].sum() == int(episode.is_terminated)
    assert rows["success"].sum() == int(episode.get_return() > 0)
    if episode.is_truncated and not episode.is_terminated:
        assert not rows["terminated"].any()
