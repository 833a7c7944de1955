"""The server on Ray Serve: batches, swaps, kills, and evaluations equal to the command line's."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from preplay.client import Client
from preplay.control import Controller
from preplay.critics import DecisionState
from preplay.errors import PreplayError
from preplay_serve._catalog import publish_critic, refresh
from preplay_serve._critic import load_served_critic
from preplay_serve.evaluator import Runner
from preplay_serve.store import EvaluationSpec, open_store
from tests._processes import descendants, wait_for
from tests.preplay_serve.served import SPEC, Served, comparable


@pytest.fixture
def client(served: Served):
    with Client(served.url, served.token, timeout_s=30) as client:
        yield client


def test_concurrent_decisions_are_each_their_own(served, client, critic_folder):
    pools = [["x", " ".join(["value", "index"] * (n + 2))] for n in range(40)]
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda pool: client.score("long", pool), pools))
    critic = load_served_critic(str(critic_folder / "long"), served.config, encoders={})
    alone = Controller(critic.scorer, critic.encoder)
    expected = [alone.decide(DecisionState("", ""), pool) for pool in pools]
    assert [a.action for a in answers] == [e.action for e in expected]
    assert np.allclose([a.scores for a in answers], [e.scores for e in expected], atol=1e-5)
    assert len({a.id for a in answers}) == 40


def test_a_critic_is_swapped_whole_and_rolled_back(served, client, critic_folder, tmp_path):
    before = client.score("long", ["a", "bb"]).model.version
    publish_critic(served.config, served.store, "long", critic_folder / "short")
    wait_for(lambda: client.score("long", ["a", "bb"]).model.version != before, 20)
    assert client.score("long", ["a", "bb"]).action == "a"
    served.store.artifacts.rollback("critic", "long")
    wait_for(lambda: client.score("long", ["a", "bb"]).model.version == before, 20)
    assert client.score("long", ["a", "bb"]).action == "bb"


def test_a_damaged_critic_never_replaces_a_good_one(served, client, critic_folder, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(critic_folder / "short", damaged)
    weights = damaged / "critic.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8] + b"\xff" * 8)
    before = client.score("long", ["a", "bb"]).model.version
    with pytest.raises(PreplayError, match="checksum"):
        publish_critic(served.config, served.store, "long", damaged)
    kept = served.store.artifacts.get("critic", "long")
    assert kept.version == before
    assert client.score("long", ["a", "bb"]).model.version == before


def test_an_evaluation_survives_kills_and_equals_the_command_line(served, client, reference):
    made = client.evaluate(**SPEC)
    wait_for(lambda: client.evaluation(made.id).progress.done > 0, 120)
    for title in ("ray::evaluate", "ray::ServeReplica:preplay:Api"):
        found = descendants(os.getpid(), title)
        assert found, title
        for pid in found:
            os.kill(pid, signal.SIGKILL)
    while_away = client.score("long", ["a", "bb"])  # tried again until a new replica answers
    assert while_away.action == "bb"
    final = client.wait(made.id, timeout_s=300)
    assert (final.status, final.attempts) == ("succeeded", 2)
    assert comparable(final.report) == comparable(reference)
    assert {p.policy for p in final.partial} == set(SPEC["policies"])
    assert all(p.low < p.value < p.high for p in final.partial)


def test_a_running_evaluation_is_cancelled_and_its_workers_are_freed(served, client):
    made = client.evaluate(**SPEC | {"seed": 99})
    wait_for(lambda: client.evaluation(made.id).status == "running", 60)
    wait_for(lambda: descendants(os.getpid(), "ray::evaluate"), 60)
    client.cancel(made.id)
    wait_for(lambda: client.evaluation(made.id).status == "cancelled", 60)
    wait_for(lambda: not descendants(os.getpid(), "ray::evaluate"), 30)


def test_a_failure_is_told_in_words(served, client):
    made = client.evaluate(**SPEC | {"without": ["nobody"]})
    final = client.wait(made.id, timeout_s=300)
    assert final.status == "failed"
    assert final.error.startswith("the logs hold no policy 'nobody'.")


def test_an_evaluation_that_takes_too_long_ends_as_failed_and_frees_its_workers(served, tmp_path):
    limits = served.config.evaluations.model_copy(update={"longest_s": 1.0})
    config = served.config.model_copy(update={"evaluations": limits, "state": str(tmp_path)})
    store = open_store(config.database_url)
    refresh(config, store)
    made, _ = store.evaluations.create(EvaluationSpec.model_validate(SPEC), token="t")
    runner = Runner(config, store)
    runner.start()
    wait_for(lambda: store.evaluations.get(made.id).status == "failed", 60)
    runner.stop()
    assert "longer than 1 seconds" in store.evaluations.get(made.id).error
    wait_for(lambda: not descendants(os.getpid(), "ray::evaluate"), 30)
