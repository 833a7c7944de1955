"""Every dynamics on a world that is known: two modes, exact rewards, termination apart from truncation."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from preplay.artifacts import open_artifact, write_artifact
from preplay.errors import PreplayError
from preplay.world_model import (
    FeatureConfig,
    OptimiserConfig,
    WorldModelConfig,
    draw_noise,
    load_world_model,
    measure_fidelity,
    save_world_model,
    train_world_model,
)
from preplay.world_model._train import stored_config

from .conftest import DIMENSION, FINGERPRINT, HORIZON, SUCCESS, position_of

QUICK = OptimiserConfig(steps=300, learning_rate=1e-3, ema=0.99)
FEATURES = FeatureConfig(phi=8, components=16, action_clusters=3, optimiser=QUICK)
GENERATIVE = ("diffusion", "flow")


def config(**changes) -> WorldModelConfig:
    return WorldModelConfig(
        features=FEATURES, outcome=QUICK, optimiser=OptimiserConfig(steps=600), device="cpu", **changes
    )


@pytest.fixture(scope="session")
def trained(ring):
    kinds = ("diffusion", "flow", "knn", "categorical")
    return {kind: train_world_model(ring, config(dynamics=kind), seed=0) for kind in kinds}


def step_from(model, ring, observation: str, action: str, rows: int = 2000, seed: int = 0):
    def embed(text: str) -> torch.Tensor:
        return torch.tensor(ring.bank.embeddings[[ring.bank.index[text]] * rows])

    noise = draw_noise(rows, model.noise_dim, torch.Generator().manual_seed(seed))
    return model.step(model.start(embed(observation)), embed(action), noise)


@pytest.mark.parametrize("kind", ["diffusion", "flow", "knn", "categorical"])
def test_both_modes_in_their_shares(trained, ring, kind):
    model = trained[kind].model
    step = step_from(model, ring, "at 3 (0)", "right (2)")
    share = np.bincount([position_of(model.texts[i]) for i in step.text_id], minlength=8) / len(step.text_id)
    assert share[4] == pytest.approx(SUCCESS, abs=0.15)
    assert share[2] == pytest.approx(1 - SUCCESS, abs=0.15)
    assert share[[2, 4]].sum() > 0.97


@pytest.mark.parametrize("kind", ["diffusion", "flow", "knn", "categorical"])
def test_reward_and_termination_belong_to_the_turn_that_earned_them(trained, ring, kind):
    model = trained[kind].model
    step = step_from(model, ring, "at 7 (1)", "right (0)")
    home = torch.tensor([position_of(model.texts[i]) == 0 for i in step.text_id])
    assert step.reward[home].mean().item() == pytest.approx(1.0, abs=0.05)
    assert step.reward[~home].mean().item() == pytest.approx(-0.05, abs=0.05)
    assert step.terminated_prob[home].min().item() > 0.9
    assert step.terminated_prob[~home].max().item() < 0.1
    assert step.reward.dtype == step.terminated_prob.dtype == torch.float64


def test_truncation_is_not_termination(trained, ring):
    model = trained["diffusion"].model
    embedding = torch.tensor(ring.bank.embeddings[[ring.bank.index["at 4 (0)"]] * 200])
    action = torch.tensor(ring.bank.embeddings[[ring.bank.index["stay (0)"]] * 200])
    state = model.start(embedding, turn=torch.full((200,), HORIZON - 1))
    step = model.step(state, action, draw_noise(200, model.noise_dim, torch.Generator().manual_seed(0)))
    assert step.terminated_prob.mean().item() < 0.01


@pytest.mark.parametrize("kind", GENERATIVE)
def test_fidelity_of_a_good_model(trained, ring, kind):
    result = trained[kind]
    fidelity = measure_fidelity(result.model, ring.bank.embeddings, result.turns, seed=0)
    assert fidelity.variance_ratio > 0.9
    assert fidelity.energy_score < 0.7 * fidelity.energy_score_marginal
    assert fidelity.condition_effect is not None
    assert fidelity.condition_effect > 0.5
    assert fidelity.reward_rmse < 0.1 * fidelity.reward_std
    assert fidelity.termination_ece < 0.02
    assert max(fidelity.drift) < 0.1
    assert abs(fidelity.on_policy_value - fidelity.logged_value) < 3 * fidelity.logged_value_error


def test_a_row_does_not_depend_on_its_batch(trained, ring):
    model = trained["diffusion"].model
    rows = torch.tensor(ring.bank.embeddings[:48])
    noise = draw_noise(48, model.noise_dim, torch.Generator().manual_seed(1))
    whole = model.step(model.start(rows), rows.flip(0), noise)
    part = model.step(model.start(rows[10:20]), rows.flip(0)[10:20], noise[10:20])
    assert torch.equal(whole.text_id[10:20], part.text_id)
    assert torch.allclose(whole.reward[10:20], part.reward, atol=1e-6)


def test_history_given_at_the_start_equals_history_lived(trained, ring):
    model = trained["knn"].model
    bank = torch.tensor(ring.bank.embeddings)
    noise = draw_noise(5, model.noise_dim, torch.Generator().manual_seed(2))
    lived = model.step(model.start(bank[20:25]), bank[50:55], noise)
    seen = bank[[ring.bank.index[model.texts[i]] for i in lived.text_id]]
    history = torch.stack([bank[20:25], bank[50:55]], 1)[:, None]
    given = model.start(seen, history=history, turn=torch.ones(5, dtype=torch.int64))
    assert torch.allclose(given.window, lived.state.window, atol=1e-5)
    assert torch.equal(given.turn, lived.state.turn)


def test_statistics_come_from_the_training_sessions_only(trained, ring):
    held_out = trained["knn"].turns.held_out
    reward = np.where(held_out, 100.0, ring.turns["reward"].to_numpy())
    at = ring.turns.schema.get_field_index("reward")
    changed = dataclasses.replace(
        ring,
        turns=ring.turns.set_column(at, ring.turns.field(at), pa.array(reward)),
        observation_id=np.where(held_out, 0, ring.observation_id),
        action_id=np.where(held_out, 50, ring.action_id),
        next_observation_id=np.where(held_out, 0, ring.next_observation_id),
    )
    before = trained["knn"].model.state_dict()
    after = train_world_model(changed, config(dynamics="knn"), seed=0).model.state_dict()
    components = [name for name in before if "components" in name]
    assert len(components) == 12
    for name in [*components, "outcome.reward_mean", "outcome.reward_std"]:
        assert torch.equal(before[name], after[name]), name


@pytest.mark.parametrize("kind", ["diffusion", "categorical"])
def test_save_load_same_step(trained, ring, tmp_path, kind):
    model = trained[kind].model
    stored = json.loads(json.dumps(stored_config(model, FINGERPRINT.model_dump())))
    assert "columns" not in stored
    del stored["model"]["structure"], stored["shape"]["structured"]  # as models were stored before tool calls
    with write_artifact(tmp_path / "m", "world_model", config=stored) as staging:
        save_world_model(model, staging)
    again = load_world_model(tmp_path / "m", device="cpu")
    a, b = (step_from(m, ring, "at 5 (3)", "left (1)", rows=64) for m in (model, again))
    assert again.texts == model.texts
    assert torch.equal(a.text_id, b.text_id)
    assert torch.equal(a.reward, b.reward)
    assert torch.equal(a.snap_distance, b.snap_distance)


def test_a_damaged_model_is_never_read_as_good(trained, tmp_path):
    model = trained["knn"].model
    with write_artifact(tmp_path / "m", "world_model", config=stored_config(model, {})) as staging:
        save_world_model(model, staging)
    file = tmp_path / "m" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(PreplayError, match=r"model\.safetensors: the file has \d+ bytes instead of"):
        open_artifact(tmp_path / "m", "world_model")


def test_same_seed_same_model(ring):
    small = config(dynamics="knn")
    a, b = (train_world_model(ring, small, seed=5).model.state_dict() for _ in range(2))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_horizon_below_the_logs_is_refused(ring):
    with pytest.raises(PreplayError, match=f"a logged session has {HORIZON}"):
        train_world_model(ring, config(horizon=4), seed=0)


def test_support_distance_grows_off_the_logs(trained, ring):
    model = trained["diffusion"].model
    near = step_from(model, ring, "at 3 (0)", "right (2)", rows=8).support_distance.mean()
    stranger = torch.nn.functional.normalize(
        torch.randn(8, DIMENSION, generator=torch.Generator().manual_seed(0))
    )
    noise = draw_noise(8, model.noise_dim, torch.Generator().manual_seed(0))
    far = model.step(model.start(stranger), -stranger, noise).support_distance.mean()
    assert far > 2 * near
