"""The MiniGrid world model against the simulator, and its traps (2, 6, 7, 26-28)."""

import numpy as np
import pytest
import torch

from preplay_rllib import MiniGrid
from preplay_rllib._belief import first_belief, move, see, walks
from preplay_rllib._minigrid import unflatten
from preplay_rllib._model import WORLD_MODEL

CPU = torch.device("cpu")


def exact_after(model, k: int, episodes: int) -> float:
    """Share of views that are exactly right k open-loop steps after a known belief, on unseen episodes."""
    rng, hits, count = np.random.default_rng(0), 0, 0
    for seed in range(episodes):
        env = MiniGrid({"id": "MiniGrid-DoorKey-5x5-v0"})
        observation, _ = env.reset(seed=10_000 + seed)
        belief = first_belief(torch.as_tensor(unflatten(observation))[None])
        actions = rng.integers(0, 6, size=60 + k)
        for action in torch.as_tensor(actions[:60])[:, None]:
            observation, _, terminated, *_ = env.step(int(action))
            if terminated:
                break
            after = move(belief, action, walks(belief, action))
            belief = see(after, torch.as_tensor(unflatten(observation))[None])
        else:
            for action in torch.as_tensor(actions[60:])[:, None]:
                observation, _, terminated, *_ = env.step(int(action))
                imagined = model.step(belief, action, None)
                belief = imagined.state
            hits += np.array_equal(imagined.observation[0].numpy(), observation)
            count += 1
    return hits / count


@pytest.fixture(scope="session")
def model(trained_world):
    return trained_world.learner_group._learner.module[WORLD_MODEL].unwrapped()


def test_open_loop_steps_are_exact_on_unseen_episodes(model):
    assert exact_after(model, 1, 40) >= 0.95
    assert exact_after(model, 5, 40) >= 0.85
    assert exact_after(model, 10, 40) >= 0.75


def test_turning_round_shows_the_same_room_again_instead_of_a_new_one(model):
    """The exploit of a view without memory: four left turns must restore the view, whatever was guessed meanwhile."""
    env = MiniGrid({"id": "MiniGrid-LavaGapS5-v0"})
    generator = torch.Generator().manual_seed(0)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        state = first_belief(torch.as_tensor(unflatten(observation))[None])
        views = []
        for _ in range(8):
            step = model.step(state, torch.tensor([0]), generator)
            state = step.state
            views.append(step.observation)
        assert all(torch.equal(views[i], views[i + 4]) for i in range(4))


def test_without_memory_what_is_behind_is_unknown_again(model):
    env = MiniGrid({"id": "MiniGrid-LavaGapS5-v0"})
    observation, _ = env.reset(seed=0)
    state = first_belief(torch.as_tensor(unflatten(observation))[None])
    forgetful = model._forgotten(see(move(state, torch.tensor([0]), torch.tensor([False])), state.view()))
    assert torch.equal(forgetful.view(), model._forgotten(forgetful).view())
    outside = forgetful.grid.view(13, 13).clone()
    outside[3:10, 0:7] = 0
    assert not outside.any()
    assert state.grid.any()


def test_time_limit_is_no_termination(trained_world):
    """Nearly all episodes are cut by the limit: the model must not believe that worlds end at random."""
    model = trained_world.learner_group._learner.module[WORLD_MODEL].unwrapped()
    rows = trained_world.engine.replay.sample(1000, 0.0, np.random.default_rng(0))
    keep = ~rows["terminated"]
    rows = {name: values[keep] for name, values in rows.items()}
    step = model.step(model.states(rows, CPU), torch.as_tensor(rows["action"]), None)
    assert step.terminated.float().mean() < 0.01


def test_reward_is_that_of_the_step_count_and_never_given_without_success(trained_world, model):
    rows = trained_world.engine.replay.sample(2000, 0.0, np.random.default_rng(0))
    step = model.step(model.states(rows, CPU), torch.as_tensor(rows["action"]), None)
    expected = 1 - 0.9 * (torch.as_tensor(rows["step"]) + 1) / 250
    assert torch.allclose(step.reward, torch.where(step.success, expected, 0.0))


def test_each_members_prediction_depends_on_its_own_bootstrap(model):
    out = model._local(
        first_belief(torch.full((3, 7, 7), 18, dtype=torch.uint8)).grid, torch.tensor([2, 3, 5])
    )
    assert all(not torch.allclose(out[0], out[m]) for m in range(1, model.members))


def test_disagreement_is_larger_where_nothing_was_seen(trained_world, model):
    rows = trained_world.engine.replay.sample(500, 0.0, np.random.default_rng(0))
    known = model.step(model.states(rows, CPU), torch.as_tensor(rows["action"]), None).disagreement.mean()
    strange = {k: v.copy() for k, v in rows.items()}
    strange["grid"][:] = np.random.default_rng(1).integers(90, 198, strange["grid"].shape)
    unknown = model.step(
        model.states(strange, CPU), torch.as_tensor(rows["action"]), None
    ).disagreement.mean()
    assert unknown > 3 * known


def test_one_member_is_refused():
    from preplay_rllib import RehearsalSettings

    with pytest.raises(ValueError, match="model_members"):
        RehearsalSettings(model_members=1)
