"""``preplay rehearse``: a run's folder, resume after a kill, the page."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from preplay.cli._app import app
from preplay.errors import PreplayError
from preplay_rllib import RehearsalRunConfig, train_rehearsal
from preplay_rllib._curve import Curve, Point
from preplay_rllib._page import charts

SMALL = RehearsalRunConfig(
    task="MiniGrid-Empty-5x5-v0",
    real_steps=1500,
    checkpoint_every=1,
    rehearsal={"real_ratio": 0.2, "rounds": 1, "more_rounds": 0},
    training={"num_epochs": 4},
)


def test_a_run_leaves_curve_checkpoints_film_and_page(ray2, tmp_path):
    run = train_rehearsal(SMALL, tmp_path / "run")
    folder = tmp_path / "run"
    assert run.points[-1].real_steps >= 1500
    assert Curve.read(folder) == run.points
    assert len(list((folder / "checkpoints").glob("step-*"))) == 2
    assert list((folder / "tensorboard").glob("events*"))
    page = (folder / "report.html").read_text()
    assert "Rehearsal of MiniGrid-Empty-5x5-v0" in page
    assert page.count("<figure") == 6
    assert page.count("data:image/") >= 2
    assert "http" not in page.replace("http-equiv", "")
    with pytest.raises(PreplayError, match="there is a run already"):
        train_rehearsal(SMALL, folder)
    with pytest.raises(PreplayError, match="another seed"):
        train_rehearsal(SMALL.model_copy(update={"seed": 7}), folder, resume=True)
    # the same run, begun with fewer steps and resumed, has the same curve
    part = train_rehearsal(SMALL.model_copy(update={"real_steps": 600}), tmp_path / "part")
    assert len(part.points) < len(run.points)
    whole = train_rehearsal(SMALL, tmp_path / "part", resume=True)
    assert whole.points == run.points


def test_points_of_a_curve_are_read_as_they_were_written(tmp_path):
    points = [
        Point(512, None, 0.0, 0.0, None, 0.1 + 0.2, None, -0.05, None),
        Point(1024, 0.5, 1.0, 1000.0, 0.25, 1.0, 1e-9, 0.0, 0.3),
    ]
    with Curve(tmp_path, []) as curve:
        for point in points:
            curve.add(point)
    assert Curve.read(tmp_path) == points
    with Curve(tmp_path, points[:1]):
        pass
    assert Curve.read(tmp_path) == points[:1]


def test_charts_say_in_words_what_they_show():
    point = Point(1000, 0.5, 1.0, 10.0, None, 0.9, 0.1, None, None)
    shown = {chart.title: chart.sentence for chart in charts([point], "MiniGrid-DoorKey-5x5-v0")}
    assert shown["Return"].endswith("0.5 at the end.")
    assert shown["Gap"].endswith("not known in this run.")


def test_a_wrong_configuration_is_refused_in_plain_words(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("tsak: MiniGrid-Empty-5x5-v0\n")
    result = CliRunner().invoke(app, ["rehearse", str(file)])
    assert isinstance(result.exception, PreplayError)
    assert "tsak" in str(result.exception)


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_the_curve_is_the_same(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(json.dumps(SMALL.model_dump(exclude_unset=True) | {"real_steps": 3000}))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [str(Path(sys.executable).with_name("preplay")), "rehearse", str(config), "--output"]
    subprocess.run([*command, str(whole)], check=True, env=os.environ)
    process = subprocess.Popen([*command, str(killed)], env=os.environ, start_new_session=True)
    while not (killed / "checkpoints" / "step-2").exists():
        time.sleep(0.2)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run([*command, str(killed), "--resume"], check=True, env=os.environ)
    rows = [list(csv.DictReader((folder / "metrics.csv").open())) for folder in (whole, killed)]
    assert rows[0] == rows[1]
