"""Rollouts on Ray: the same for any number of actors, and after real kills."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.rollout import RolloutResult, run_rollouts
from preplay.rollout._run import _Job, _plan
from preplay.shards import ShardFolder
from tests._processes import kill_one, wait_for

from .drive import BLOCKS, CONFIG, drive, load_ring
from .ring import Walker, encoder, go, starts

ACTOR = "ray::MapWorker(MapBatches(_RolloutActor))"


def blocks(folder: Path) -> dict[str, int]:
    """Name and inode of every finished block: one that is imagined again gets a new inode."""
    return {p.name: p.stat().st_ino for p in folder.glob("block-*.parquet")}


def same(first: dict[str, RolloutResult], second: dict[str, RolloutResult]) -> bool:
    return all(
        (first[key].returns == second[key].returns).all() and first[key].turns.equals(second[key].turns)
        for key in first | second
    )


@pytest.fixture(scope="module")
def undisturbed(ray2, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rollouts")
    return folder, drive(folder, actors=2)


def test_every_session_has_its_return(undisturbed):
    folder, results = undisturbed
    assert results["coin"].returns.shape == (2, 6, 10)
    assert len(blocks(folder)) == BLOCKS
    assert len(results["coin"].turns) == 60 * 3 + 60 * 5
    one = results["coin"].turns.filter(
        (np.array(results["coin"].turns["member"]) == 1)
        & (np.array(results["coin"].turns["initial"]) == 3)
        & (np.array(results["coin"].turns["rollout"]) == 7)
    )
    by_hand = sum(0.5**t * reward for t, reward in enumerate(one["reward"].to_pylist()))
    assert results["coin"].returns[1, 3, 7] == pytest.approx(by_hand, abs=1e-12)


def test_one_actor_gives_the_same_bits_and_run_survives_its_kill(ray2, undisturbed, tmp_path):
    before = {}

    def kill():
        wait_for(lambda: len(blocks(tmp_path)) >= 2)
        before.update(blocks(tmp_path))
        kill_one(os.getpid(), ACTOR)

    killer = threading.Thread(target=kill)
    killer.start()
    results = drive(tmp_path, actors=1, delay_s=0.1)
    killer.join()
    assert same(results, undisturbed[1])
    assert 2 <= len(before) < BLOCKS
    assert before.items() <= blocks(tmp_path).items()
    assert blocks(tmp_path).keys() == blocks(undisturbed[0]).keys()


def test_driver_killed_and_run_again(ray2, undisturbed, tmp_path, caplog):
    """The rerun keeps the finished blocks, except one that is truncated before."""
    command = [sys.executable, "-m", "tests.rollout.drive", str(tmp_path)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(blocks(tmp_path)) >= 2 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = blocks(tmp_path)
    assert 2 <= len(before) < BLOCKS
    victim = tmp_path / sorted(before)[0]
    victim.write_bytes(victim.read_bytes()[:-10])
    assert same(drive(tmp_path, actors=2), undisturbed[1])
    assert f"{victim}: the file is damaged" in caplog.text
    after = blocks(tmp_path)
    assert after.keys() == blocks(undisturbed[0]).keys()
    assert {name for name in before if before[name] != after[name]} == {victim.name}


def test_finished_blocks_are_not_imagined_again(undisturbed):
    folder, results = undisturbed
    before = blocks(folder)
    assert same(drive(folder, actors=2), results)
    assert blocks(folder) == before


def test_another_policy_key_seed_or_model_is_imagined_anew(undisturbed, tmp_path):
    def names(key: str = "p", seed: int = 0, model: str = "m", place: int = 0) -> set[str]:
        config = CONFIG.model_copy(update={"seed": seed})
        folder = ShardFolder(str(tmp_path))
        job = _Job([model], load_ring, {key: Walker(go)}, encoder(), starts([place]), config, folder)
        return {task.name for task in _plan(job, [model])}

    assert names() == names()
    others = [names(key="q"), names(seed=1), names(model="n"), names(place=1)]
    assert not any(names() & other for other in others)


class Mute(Walker):
    """Answers nothing."""

    def act(self, states, rng):
        return super().act([], rng)


def test_an_error_of_the_policy_reaches_the_user(ray2, tmp_path):
    with pytest.raises(PreplayError, match="gave 0 actions for 1 states"):
        run_rollouts(
            ["ring:3"],
            {"mute": Mute(go)},
            starts([0]),
            CONFIG,
            tmp_path,
            load_model=load_ring,
            encoder=encoder(),
            model_keys=["m"],
        )


def test_nothing_to_imagine_is_an_error(tmp_path):
    with pytest.raises(PreplayError, match="at least one policy"):
        run_rollouts([], {}, starts([0]), CONFIG, tmp_path, load_model=load_ring, encoder=encoder())
