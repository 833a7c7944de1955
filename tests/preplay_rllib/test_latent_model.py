"""The latent world model on tasks whose observation does not tell the state (traps 2, 6, 12, 15, 26-30)."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from preplay_rllib import Recent
from preplay_rllib._latent_model import LatentModule
from preplay_rllib._latent_tracker import LatentTracker
from preplay_rllib._replay import Replay

CPU = torch.device("cpu")
FRAMES, CONTEXT = 2, 6


class Drift(gym.Env):
    """Moves on by what the *last but one* action said, or by a coin (``chance``); only the place is shown, and beyond
    a half the episode ends.

    As an image: a soft bright column at the place, on a dark ground.
    """

    action_space = gym.spaces.Discrete(2)

    def __init__(self, image: bool = False, chance: bool = False):
        self._image, self._chance = image, chance
        shape = (8, 16, 1) if image else (1,)
        high, kind = (255, np.uint8) if image else (9, np.float32)
        self.observation_space = gym.spaces.Box(0 if image else -9, high, shape, kind)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._step = self.np_random.uniform(-0.8, 0.0), 0.0
        return self._seen(), {}

    def step(self, action):
        self._place += self.np_random.choice([-0.1, 0.1]) if self._chance else self._step
        self._step = 0.1 if action else -0.1
        return self._seen(), float(self._place), bool(self._place > 0.5), False, {}

    def _seen(self):
        if not self._image:
            return np.float32([self._place])
        row = 255 * np.exp(-((np.arange(16) - 8 - 7 * self._place) ** 2) / 4)
        return np.broadcast_to(np.rint(row)[None, :, None], (8, 16, 1)).astype(np.uint8)


gym.register("preplay-Drift-v0", entry_point=Drift, max_episode_steps=30)


def played(seed: int, **options) -> SingleAgentEpisode:
    env, rng = Recent({"id": "preplay-Drift-v0", "frames": FRAMES} | options), np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    episode = SingleAgentEpisode(len_lookback_buffer=0)
    episode.add_env_reset(observation)
    while not episode.is_done:
        action = int(rng.random() < 0.6)
        observation, reward, terminated, truncated, _ = env.step(action)
        episode.add_env_step(observation, action, reward, terminated=terminated, truncated=truncated)
    return episode.to_numpy()


def replayed(seeds: range, **options) -> Replay:
    rows = LatentTracker(FRAMES).track([played(seed, **options) for seed in seeds])
    replay = Replay(len(rows["episode"]), 3, 0, CONTEXT)
    replay.add(rows)
    return replay


def untrained(**options) -> LatentModule:
    task = {name: options.pop(name, False) for name in ("image", "chance")}
    env = Recent({"id": "preplay-Drift-v0", "frames": FRAMES} | task)
    config = {"members": 3, "hidden": 32, "memory": True, "kind": "gru", "context": CONTEXT, "categories": 0}
    config |= {"frames": FRAMES, "open_loop": 3} | options
    torch.manual_seed(0)
    return LatentModule(
        observation_space=env.observation_space,
        action_space=env.action_space,
        model_config=config,
        learner_only=True,
    )


def trained(replay: Replay, updates: int, **options) -> LatentModule:
    model, rng = untrained(**options), np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for update in range(updates):
        if update % 20 == 0:
            model.fit_scales(replay.sample_alone(1000, rng))
        batch = replay.sample(32, 0.25, rng)
        loss = model.ensemble_loss({k: torch.as_tensor(v) for k, v in batch.items()})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@pytest.fixture(scope="module")
def replay():
    return replayed(range(60))


@pytest.fixture(scope="module")
def unseen():
    return replayed(range(1000, 1030)).newest(10_000)


@pytest.fixture(scope="module")
def model(replay):
    return trained(replay, 150)


def test_a_belief_tells_what_one_observation_does_not(replay, unseen, model):
    """The change is hidden in the action before the last: without memory it is a guess, off by all of it."""
    forgetful = trained(replay, 60, memory=False)
    assert model.error(unseen, CPU)["error"] < 0.25
    assert forgetful.error(unseen, CPU)["error"] > 0.7


@torch.no_grad()
def test_places_ends_and_rewards_many_steps_on(unseen, model):
    starts = np.flatnonzero(unseen["episode"][:-8] == unseen["episode"][8:])
    state = model.states({k: v[starts] for k, v in unseen.items()}, CPU)
    for i in range(8):
        step = model.step(state, torch.as_tensor(unseen["action"][starts + i]), None)
        state = step.state
    wrong = (step.observation[:, -1] - torch.as_tensor(unseen["next"][starts + 7, 0])).abs()
    assert wrong.mean() < 0.1  # eight steps of 0.1
    assert (step.reward - step.observation[:, -1]).abs().mean() < 0.1
    one = model.step(model.states(unseen, CPU), torch.as_tensor(unseen["action"]), None)
    said, true = one.terminated.numpy(), unseen["terminated"]
    assert true.sum() > 5
    assert (said & true).sum() >= 0.8 * true.sum()
    assert (said & ~true).mean() < 0.02


def test_a_transformer_remembers_too(replay, unseen):
    assert trained(replay, 60, kind="transformer").error(unseen, CPU)["error"] < 0.4


def test_chance_is_drawn_where_there_is_a_latent_and_averaged_away_without():
    """A coin moves the place by 0.1 to either side."""
    replay, rows = replayed(range(40), chance=True), replayed(range(1000, 1010), chance=True).newest(1000)
    spread = {}
    for categories in (0, 8):
        model = trained(replay, 120, chance=True, categories=categories)
        with torch.no_grad():
            state, generator = model.states(rows, CPU), torch.Generator().manual_seed(0)
            step = model.step(state, torch.as_tensor(rows["action"]), generator)
        spread[categories] = float((step.observation[:, -1] - state.recent[:, -1]).std()) / 0.1
    assert spread[0] < 0.5
    assert 0.9 < spread[8] < 1.1


@pytest.mark.parametrize("image", [False, True])
@torch.no_grad()
def test_what_the_policy_sees_is_what_the_task_showed(image):
    episodes = [played(seed, image=image) for seed in range(3)]
    rows = replayed(range(3), image=image).newest(1000)
    seen = untrained(image=image).observe(untrained(image=image).states(rows, CPU)).numpy()
    assert np.array_equal(seen, np.concatenate([e.get_observations()[:-1] for e in episodes]))


@torch.no_grad()
def test_unknown_rows_leave_no_trace_in_the_belief():
    rows, model = replayed(range(3)).newest(1000), untrained()
    clean = model.states(rows, CPU).belief
    unknown = ~rows["past_known"]
    assert unknown.any()
    rows["past_observation"][unknown], rows["past_action"][unknown] = 77.0, 1
    assert torch.equal(model.states(rows, CPU).belief, clean)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_belief_goes_on_in_imagination_as_it_does_along_real_rows(kind):
    """Were the prediction right, the state after the step would be that of the next real row."""
    model = untrained(kind=kind)
    rows = {name: values[:CONTEXT] for name, values in replayed(range(1)).newest(1000).items()}
    state = model.states(rows, CPU)
    change = (state.code[1:] - state.code[:-1]) / model.change
    here = type(state)(state.code[:-1], state.belief[:-1], state.recent[:-1])
    out = torch.cat([change, torch.zeros(len(change), 2)], 1)
    after = model._advance(here, torch.as_tensor(rows["action"][:-1]), out)
    assert torch.allclose(after.belief, state.belief[1:], atol=1e-5)
    assert torch.allclose(after.recent, state.recent[1:], atol=1e-5)


def test_members_learn_from_their_own_bootstrap_only(replay):
    model = untrained()
    batch = {k: torch.as_tensor(v) for k, v in replay.sample(16, 0.25, np.random.default_rng(0)).items()}
    for name in ("bootstrap", "past_bootstrap"):
        batch[name] = torch.zeros_like(batch[name])
        batch[name][..., 1] = 1
    model.ensemble_loss(batch).backward()
    moved = model.outcomes.net.weights[-1].grad.abs().sum((1, 2))
    assert moved[1] > 0
    assert moved[0] == moved[2] == 0


@torch.no_grad()
def test_members_disagree_more_where_nothing_was_seen(unseen, model):
    strange = unseen | {"observation": unseen["observation"] + 3}
    action = torch.as_tensor(unseen["action"])
    known, unknown = (model.step(model.states(r, CPU), action, None) for r in (unseen, strange))
    assert unknown.disagreement.mean() > 3 * known.disagreement.mean()


@pytest.mark.slow
def test_images_are_learned():
    model = trained(replayed(range(40), image=True), 400, image=True)
    unseen = replayed(range(1000, 1010), image=True).newest(1000)
    with torch.no_grad():
        step = model.step(model.states(unseen, CPU), torch.as_tensor(unseen["action"]), None)
    assert step.observation.shape == (len(unseen["action"]), 8, 16, FRAMES)
    before, after = unseen["observation"] / 255, unseen["next"] / 255
    wrong, moved = ((pictures - after) ** 2 for pictures in (step.observation[..., 1:].numpy(), before))
    assert wrong.mean() < 0.25 * moved.mean()
