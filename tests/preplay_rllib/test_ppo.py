"""RehearsalPPO as a user runs it: it rehearses, curves repeat, checkpoints hold everything (traps 38, 42, 43)."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.core import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.evaluation.postprocessing import Postprocessing

from preplay.errors import PreplayError
from preplay_rllib import GridTracker, RehearsalPPOConfig, RehearsalSettings
from preplay_rllib._engine import Engine
from preplay_rllib._imagine import _at_full_strength
from preplay_rllib._module import IMAGINED, MixedPPOModule, mix_uniform


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
    instead = algorithm._closed_epochs(512)
    algorithm.stop()
    assert instead == 16 + 4  # 2 rounds of 4 gradient steps are 4 passes of 2
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


@pytest.fixture
def settled():
    """A policy of four actions that would take the first one nearly always, mixed with chance: .05 / 4."""
    module = RLModuleSpec(
        module_class=MixedPPOModule,
        observation_space=gym.spaces.Box(-1, 1, (3,), np.float32),
        action_space=gym.spaces.Discrete(4),
        catalog_class=PPOCatalog,
        model_config={"fcnet_hiddens": [8], "uniform_mix": 0.05},
    ).build()
    with torch.no_grad():
        module.pi.net.mlp[-1].bias[:] = torch.tensor([30.0, 0.0, 0.0, 0.0])
    return module


def slope(module, batch: dict) -> np.ndarray:
    """Gradient of log-probability of action 3 by the four logits."""
    bias = module.pi.net.mlp[-1].bias
    logits = module.forward_train(batch)[Columns.ACTION_DIST_INPUTS]
    (gradient,) = torch.autograd.grad(torch.log_softmax(logits, -1)[:, 3].mean(), bias)
    return gradient.numpy()


def test_an_action_that_only_chance_takes_is_learned_from_imagination_alone(settled):
    """(e_3 - p) with p = (.95 + .0125, .0125, .0125, .0125) of imagined rows; next to nothing of real ones."""
    observations = {Columns.OBS: torch.zeros(2, 3)}
    assert np.abs(slope(settled, observations)).max() < 1e-6
    imagined = slope(settled, observations | {IMAGINED: torch.ones(2)})
    assert imagined.tolist() == pytest.approx([-0.9625, -0.0125, -0.0125, 0.9875], abs=1e-4)


def test_rare_actions_that_turn_out_badly_are_left_out(settled):
    logits = settled.forward_train({Columns.OBS: torch.zeros(1, 3)})[Columns.ACTION_DIST_INPUTS]
    p = torch.softmax(logits, -1)[0]
    columns = {
        Columns.ACTION_DIST_INPUTS: logits.expand(4, 4),
        Columns.ACTION_LOGP: torch.log(p[[0, 0, 1, 1]]),
        Postprocessing.ADVANTAGES: torch.tensor([1.0, -1.0, 1.0, -1.0]),
    }
    changed = _at_full_strength(settled, columns)
    assert changed[Postprocessing.ADVANTAGES].tolist() == [1.0, -1.0, 1.0, 0.0]
    assert changed[IMAGINED].tolist() == [1.0] * 4


def test_a_users_own_ppo_module_rehearses(ray2, ppo_config):
    config = ppo_config(gates=False, needs_success=False, rounds=1)
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=DefaultPPOTorchRLModule))
    algorithm = config.build_algo()
    points = curve(algorithm, 2)
    algorithm.stop()
    assert points[-1]["imagined_rows"] > 1000


def test_rounds_of_rehearsal_grow_with_the_success_of_the_newest_episodes():
    engine = Engine(RehearsalSettings(rounds=4, more_rounds=12), GridTracker(), 0, 0.99, 0.95)
    assert engine.rounds == 4
    engine.gates.observe_ends(successes=5, episodes=10)
    assert engine.rounds == 10
    engine.gates.observe_ends(successes=50, episodes=50)
    assert engine.rounds == 16


def test_unknown_and_impossible_settings_are_refused_in_plain_words():
    with pytest.raises(PreplayError, match="unknown rehearsal setting ratio"):
        RehearsalPPOConfig().rehearsal(ratio=0.5)
    config = RehearsalPPOConfig().environment("CartPole-v1")
    with pytest.raises(PreplayError, match="time limit"):
        config.build_algo()
