"""The demo, small: every step for real, and the same again from the same seed."""

import pytest
from typer.testing import CliRunner

from preplay.cli import app
from preplay.environments import get_environment
from preplay.report import read_report

VOLATILE = {"created": True, "commands": True, "dataset": True}


@pytest.fixture(scope="module")
def demo(ray2, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    arguments = ["demo", "--preset", "debug", "--output", str(folder / "a"), "--cache", str(folder / "cache")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_truth_stands_beside_every_estimate(demo):
    folder, output = demo
    report = read_report(folder / "a" / "report")
    targets = get_environment("support_desk").target_policies()
    assert {p.name for p in report.policies} == set(targets)
    assert len(report.policies) >= 8
    assert all(p.truth is not None for p in report.policies)
    assert all(name in output for name in targets)
    names = {
        "mean/1",
        "wpdis/1",
        "pdis/1",
        "model.dm/1",
        "model.wdr/1",
        "model.blend/1",
        "fqe.dm/1",
        "fqe.wdr/1",
    }
    assert names <= {e.estimator for e in report.policies[0].estimates}
    assert {"mean/1", "model.dm/1"} <= {r.estimator for r in report.ranking}
    assert (folder / "a" / "report" / "report.html").stat().st_size > 20_000


def test_sessions_count_by_who_logged_them(demo):
    folder, _ = demo
    report = read_report(folder / "a" / "report")
    counts = {p.name: p.weights.loggers for p in report.policies if p.weights}
    assert len(counts) == len(report.policies)
    sizes = {logged.name: logged.sessions for logged in report.behavior}
    for found in counts.values():  # 1 on average
        assert sum(found[name] * n for name, n in sizes.items()) == pytest.approx(sum(sizes.values()))


def test_same_seed_same_numbers(demo):
    folder, _ = demo
    arguments = ["demo", "--preset", "debug", "--output", str(folder / "b"), "--cache", str(folder / "cache")]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    first, second = (
        read_report(folder / name / "report").model_dump_json(exclude=VOLATILE) for name in ("a", "b")
    )
    assert first == second


def test_a_finished_demo_is_not_done_again(demo):
    folder, _ = demo
    blocks = {p: p.stat().st_mtime_ns for p in (folder / "a" / "report" / "rollouts").rglob("*.parquet")}
    member = folder / "a" / "models" / "member-0" / "manifest.json"
    trained = member.stat().st_mtime_ns
    assert len(blocks) >= 13
    arguments = ["demo", "--preset", "debug", "--output", str(folder / "a"), "--cache", str(folder / "cache")]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    assert member.stat().st_mtime_ns == trained
    assert {p: p.stat().st_mtime_ns for p in blocks} == blocks
