"""The belief map against MiniGrid itself: random walks, every view reproduced from memory where it is known."""

import numpy as np
import pytest
import torch

from preplay_rllib._belief import first_belief, move, see, visible, walks
from preplay_rllib._minigrid import UNSEEN, MiniGrid, encode, flatten, unflatten

TASKS = [
    "MiniGrid-DoorKey-6x6-v0",
    "MiniGrid-MultiRoom-N2-S4-v0",
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-Unlock-v0",
]


def random_walk(task: str, steps: int, seed: int):
    env = MiniGrid({"id": task})
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = int(rng.choice(6, p=[0.2, 0.2, 0.35, 0.1, 0.05, 0.1]))
        nxt, _, terminated, truncated, _ = env.step(action)
        yield observation, action, nxt, env
        observation = nxt
        if terminated or truncated:
            return


def as_view(observation) -> torch.Tensor:
    return torch.as_tensor(unflatten(observation))[None]


@pytest.mark.parametrize("task", TASKS)
def test_carried_grid_agrees_with_the_next_view_except_for_what_the_action_changed(task):
    compared = 0
    for seed in range(5):
        belief = None
        for observation, action, nxt, _ in random_walk(task, 60, seed):
            belief = belief or first_belief(as_view(observation))
            act = torch.tensor([action])
            belief = move(belief, act, walks(belief, act))
            known, view = belief.view()[0], as_view(nxt)[0]
            both = (known != UNSEEN) & (view != UNSEEN)
            both[3, 6] = False  # what is carried
            if action >= 3:
                both[3, 5] = False  # the one cell that pick up, drop and toggle can change
            assert torch.equal(known[both], view[both])
            compared += int(both.sum())
            belief = see(belief, as_view(nxt))
    assert compared > 200


@pytest.mark.parametrize("task", TASKS)
def test_visible_cells_are_those_that_minigrid_shows(task):
    for _, _, nxt, env in random_walk(task, 60, 1):
        _, mask = env.unwrapped.gen_obs_grid()
        # the whole field of view, shadows included, as the simulator knows it
        env.unwrapped.see_through_walls = True
        whole = torch.as_tensor(encode(env.unwrapped.gen_obs()["image"]))[None]
        env.unwrapped.see_through_walls = False
        assert np.array_equal(visible(whole, see_through=False)[0].numpy(), mask)
        assert np.array_equal((as_view(nxt)[0] != UNSEEN).numpy(), mask)


def test_stepping_away_and_turning_back_shows_what_was_underfoot():
    """An open door that the agent stands on is hidden by the agent; two steps on and a half turn, it is back."""
    door = 4 * 18
    view = torch.full((1, 7, 7), 18, dtype=torch.uint8)
    view[0, 3, 5] = door
    belief, forward, left = first_belief(view), torch.tensor([2]), torch.tensor([0])
    for _ in range(2):
        belief = move(belief, forward, walks(belief, forward))
    for _ in range(2):
        belief = move(belief, left, walks(belief, left))
    assert belief.view()[0, 3, 5] == door
    assert belief.step.item() == 4


def test_observations_survive_the_round_trip():
    env = MiniGrid({"id": "MiniGrid-DoorKey-5x5-v0"})
    observation, _ = env.reset(seed=0)
    assert observation.shape == (980,)
    assert np.array_equal(flatten(unflatten(observation)), observation)
