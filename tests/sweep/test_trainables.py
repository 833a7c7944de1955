"""What preplay sweeps: figures that mean something, stages that go on, products that load."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import ray
import torch

from preplay.artifacts import open_artifact
from preplay.critics import (
    CriticConfig,
    action_correlation,
    evaluate_critic,
    join_critics,
    load_critic,
    returns_to_go,
    save_critic,
    saved_encoder,
    train_critic,
)
from preplay.embedding import EmbeddedTurns
from preplay.environments import get_environment
from preplay.environments.code_repair import (
    Grader,
    SandboxConfig,
    generator,
    log_sessions,
    random_candidate,
    split_tasks,
)
from preplay.errors import PreplayError
from preplay.estimators import FQEConfig
from preplay.logs import write_dataset
from preplay.sweep import CommonFiles, DataConfig, Job, Member, Outcome, Product, SweepConfig
from preplay.sweep._run import check_metrics
from preplay.sweep.trainables import (
    FqeTrainable,
    IqlTrainable,
    WorldLogs,
    WorldModelTrainable,
    fqe_data,
    on_policy_check,
)
from preplay.sweep.trainables._critic import task_folds, within_task_auc
from preplay.sweep.trainables._open_loop import open_loop_error
from preplay.sweep.trainables._world_model import multiplications
from preplay.world_model import (
    FEATURES_CHECKPOINT,
    FeatureConfig,
    OptimiserConfig,
    WorldModelConfig,
    list_members,
    load_world_model,
    member_fidelity,
    tool_call_reader,
    train_world_model,
)
from tests.rollout.locks import embedded_keys
from tests.world_model.conftest import embedded, make_bank, simulate

QUICK = OptimiserConfig(steps=120, warmup=10, evaluate_every=20)
WORLD = WorldModelConfig(
    dynamics="gaussian",
    optimiser=QUICK,
    outcome=QUICK,
    features=FeatureConfig(phi=8, components=8, latent_components=4, action_clusters=4, optimiser=QUICK),
)


@pytest.fixture(scope="module")
def ring() -> EmbeddedTurns:
    rng = np.random.default_rng(0)
    bank = make_bank(rng)
    return embedded(simulate(150, rng), bank, rng)


def world_job(ring: EmbeddedTurns, folder: Path, shares: tuple[float, ...], done: int = 0) -> Job:
    return Job(WorldLogs(ring), WORLD, 0, shares, done, folder, CommonFiles(str(folder), {}))


def test_world_model_stages_go_on_from_their_state(ring, tmp_path):
    trainable = WorldModelTrainable()
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = list(trainable.run(world_job(ring, tmp_path / "whole", (0.25, 1.0))))
    first = next(trainable.run(world_job(ring, tmp_path / "cut", (0.25, 1.0))))
    (second,) = trainable.run(world_job(ring, tmp_path / "cut", (1.0,), done=1))
    assert first.metrics == whole[0].metrics
    assert second.metrics == whole[1].metrics
    assert whole[1].metrics["energy_score"] < whole[0].metrics["energy_score"] < 1
    assert set(whole[0].metrics) == set(trainable.metrics)


def test_an_early_stage_tells_what_trials_are_compared_by(ring, tmp_path):
    trainable = WorldModelTrainable()
    (tmp_path / "all").mkdir()
    (tmp_path / "some").mkdir()
    whole = list(trainable.run(world_job(ring, tmp_path / "all", (0.25, 1.0))))
    job = replace(world_job(ring, tmp_path / "some", (0.25, 1.0)), wanted=frozenset({"energy_score"}))
    first, last = trainable.run(job)
    assert first.metrics == {"energy_score": whole[0].metrics["energy_score"]}
    assert last.metrics == whole[1].metrics


def test_phi_is_trained_once_for_all_trials_that_share_it(ring, tmp_path):
    """Another trial with the same features takes over phi's finished training, to the bit; others train their own."""
    trainable, common = WorldModelTrainable(), CommonFiles(str(tmp_path), {"seed": 0})

    def last(name: str, config: WorldModelConfig, files: CommonFiles) -> Outcome:
        (tmp_path / name).mkdir()
        return next(trainable.run(Job(WorldLogs(ring), config, 0, (1.0,), 0, tmp_path / name, files)))

    def kept() -> int:
        return len(list((tmp_path / "common").iterdir()))

    last("first", WORLD, common)
    assert kept() == 1
    other = WORLD.model_copy(update={"width": 32})
    shared = last("second", other, common)
    assert kept() == 1
    fresh = last("alone", other, CommonFiles(str(tmp_path / "elsewhere"), {"seed": 0}))
    assert shared.metrics == fresh.metrics
    phi = [(tmp_path / name / FEATURES_CHECKPOINT).read_bytes() for name in ("first", "second", "alone")]
    assert phi[0] == phi[1] == phi[2]
    last("wider", WORLD.model_copy(update={"features": WORLD.features.model_copy(update={"phi": 4})}), common)
    assert kept() == 2


def test_world_models_of_tool_calls_read_what_calls_are_made_of(ray2, registry, tmp_path):
    """All calls are embedded alike: what ends a session, the right key, shows in the structure only."""
    data, trainable = embedded_keys(), WorldModelTrainable()
    logs = WorldLogs(data, tool_call_reader(data))
    assert logs.reader is not None
    config = WORLD.model_copy(update={"dynamics": "knn", "gamma": 1.0})

    def error(name: str, **changes: object) -> float:
        (tmp_path / name).mkdir()
        job = Job(logs, config.model_copy(update=changes), 0, (1.0,), 0, tmp_path / name, common)
        return next(trainable.run(job)).metrics["rollout_error"]

    common = CommonFiles(str(tmp_path), {})
    assert error("read") < 0.9 * error("text", structure=False)
    product = Product(
        [Member(0, config, {}, 7)], ray.put(logs), {"embedded": "abc"}, {"sweep": "keys"}, 0, {}
    )
    trainable.publish(product, registry / "keys" / "v1")
    (path,) = list_members("models:keys")
    assert load_world_model(path).columns == logs.reader.columns


def test_files_of_other_data_or_seeds_are_not_taken(tmp_path):
    one, other = (CommonFiles(str(tmp_path / "store"), {"seed": seed}) for seed in (0, 1))
    (tmp_path / "file").write_bytes(b"phi")
    one.keep({"phi": 4}, tmp_path / "file")
    assert one.fetch({"phi": 4}, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"phi"
    assert not one.fetch({"phi": 5}, tmp_path / "none")
    assert not other.fetch({"phi": 4}, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert [p.suffix for p in (tmp_path / "store" / "common").iterdir()] == [""]  # nothing half-written


def test_open_loop_error_by_hand():
    assert open_loop_error(np.array([0.0, 2.0]), np.array([0.0, 0.0])) == pytest.approx(2**0.5)


def test_cost_counts_what_the_sampler_asks():
    flow = WorldModelConfig(dynamics="flow", sampler_steps=4)
    layer = torch.nn.Linear(3, 5)
    assert multiplications(layer, flow) == 2 * 4 * 15
    assert multiplications(layer, WorldModelConfig(dynamics="gaussian")) == 15


def test_a_published_world_model_is_loaded_by_name(ray2, ring, registry):
    members = [Member(3, WORLD, {"width": 32}, 7), Member(5, WORLD, {}, 8)]
    product = Product(
        members, ray.put(WorldLogs(ring)), {"embedded": "abc"}, {"sweep": "ring"}, 0, {"validation": 0.5}
    )
    found = WorldModelTrainable().publish(product, registry / "ring" / "v1")
    assert len(found["members"]) == 2
    paths = list_members("models:ring")
    assert [path.name for path in paths] == ["member-0", "member-1"]
    assert paths == list_members(registry / "ring" / "v1")
    assert [open_artifact(path, "world_model").manifest.seed for path in paths] == [7, 8]
    assert member_fidelity(paths[0]).reward_rmse < member_fidelity(paths[0]).reward_std
    manifest = open_artifact("models:ring@1", "ensemble").manifest
    assert [m["trial"] for m in manifest.config["members"]] == [3, 5]


@pytest.fixture(scope="module")
def repair(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("repair")
    tasks, _ = split_tasks(0)
    grader = Grader(SandboxConfig(seconds=0.1))
    behaviour = {"random": random_candidate}
    turns = log_sessions(tasks[:10], [generator("middling")], behaviour, grader, sessions=40, seed=0)
    write_dataset(turns, str(folder / "dataset"), config={})
    return str(folder / "dataset")


def test_critics_are_scored_on_tasks_they_have_not_seen(repair, tmp_path):
    trainable = IqlTrainable()
    prepared = trainable.prepare(DataConfig(path=repair, folds=2), tmp_path, 0, tmp_path)
    shared = prepared.shared
    for name in np.unique(shared.decisions.group.astype(str)):
        assert len(set(shared.fold[shared.decisions.group.astype(str) == name])) == 1
    assert not set(shared.decisions.group) & set(shared.held_out.group)
    job = Job(shared, CriticConfig(steps=40), 0, (0.5, 1.0), 0, tmp_path, CommonFiles(str(tmp_path), {}))
    half, full = trainable.run(job)
    assert set(full.metrics) == set(trainable.metrics)
    assert half.metrics != full.metrics
    assert full.metrics["auc_within_task"] == pytest.approx(
        within_task_auc(full.prediction, shared.decisions)
    )
    assert trainable.ensemble_loss(shared, full.prediction) == pytest.approx(
        1 - full.metrics["auc_within_task"]
    )
    perfect = trainable.ensemble_loss(shared, shared.decisions.success.astype(float))
    assert perfect == 0


def test_critics_of_plain_text_are_judged_by_what_actions_bring(ray2, registry, tmp_path):
    """A support agent's logs: nothing is right or wrong, sentences are read, and the product finds its encoder."""
    desk = get_environment("support_desk")
    logs = [desk.simulate(policy, 6, seed=0) for policy in desk.behaviour_policies().values()]
    write_dataset(pa.concat_tables(logs), str(tmp_path / "dataset"), config={})
    trainable, data = IqlTrainable(), DataConfig(path=str(tmp_path / "dataset"), folds=2)
    prepared = trainable.prepare(data, tmp_path, 0, tmp_path / "cache")
    assert prepared.told == {"action_correlation"}
    shared = prepared.shared
    (outcome,) = trainable.run(
        Job(shared, CriticConfig(steps=20), 0, (1.0,), 0, tmp_path, CommonFiles(str(tmp_path), {}))
    )
    followed = returns_to_go(shared.decisions, 1.0)
    found = action_correlation(outcome.prediction, followed, shared.decisions)
    assert outcome.metrics == {"action_correlation": pytest.approx(found)}
    assert trainable.ensemble_loss(shared, followed) == pytest.approx(0.0)
    members = [Member(0, CriticConfig(steps=20), {}, 7)]
    trainable.publish(Product(members, ray.put(shared), {}, {}, 0, {}), registry / "desk" / "v1")
    assert (
        saved_encoder("models:desk").fingerprint
        == load_critic("models:desk").fingerprint
        == shared.fingerprint
    )
    config = SweepConfig.model_validate(
        {"name": "desk", "trainable": "critic_iql", "data": data, "space": {"tau": {"uniform": [0.5, 0.9]}},
         "metrics": [{"name": "auc", "mode": "max"}]}
    )  # fmt: skip
    with pytest.raises(PreplayError, match="cannot tell auc"):
        check_metrics(config, prepared.told)


def test_folds_keep_tasks_whole_and_use_every_fold():
    group = np.array(["a", "b", "a", "c", "d", "b"], object)
    fold = task_folds(group, 2, 0)
    assert fold[0] == fold[2]
    assert fold[1] == fold[5]
    assert set(fold) == {0, 1}


def test_critics_of_different_widths_are_one_critic(repair, tmp_path):
    shared = IqlTrainable().prepare(DataConfig(path=repair, folds=2), tmp_path, 0, tmp_path).shared
    narrow, wide = (train_critic(CriticConfig(steps=20, width=w), shared.decisions, seed=w) for w in (8, 24))
    joined = join_critics([narrow, wide])
    pools = shared.held_out.pools
    expected = (narrow.score(pools).mean + wide.score(pools).mean) / 2
    assert joined.score(pools).mean == pytest.approx(expected)
    save_critic(joined, tmp_path / "critic")
    loaded = load_critic(tmp_path / "critic")
    assert loaded.score(pools).mean == pytest.approx(expected)
    assert evaluate_critic(loaded, shared.held_out).decisions == len(shared.held_out)
    other = train_critic(CriticConfig(steps=2, algorithm="cql"), shared.decisions, seed=0)
    with pytest.raises(PreplayError, match="cannot be joined"):
        join_critics([narrow, other])


def test_on_policy_check_prefers_a_fit_to_no_fit(ring):
    trained = train_world_model(ring, WORLD.model_copy(update={"dynamics": "knn"}), seed=0)
    shared = fqe_data(ring, trained, 2, 0)
    fitted = on_policy_check(shared, FQEConfig(members=2, iterations=10, steps=40, hidden=32), seed=0)
    unfitted = on_policy_check(shared, FQEConfig(members=2, iterations=1, steps=1, hidden=32), seed=0)
    assert fitted.metrics["q_error"] < min(1.0, unfitted.metrics["q_error"])
    assert fitted.metrics["value_error"] < 0.3
    assert len(fitted.prediction) == len(ring)
    # The best constant has an error of one standard deviation.
    constant = np.full(len(ring), shared.return_to_go.mean())
    assert FqeTrainable().ensemble_loss(shared, constant) == pytest.approx(1.0)
