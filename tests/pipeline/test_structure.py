"""Tool calls from log to report: their structure leads, with what a backtest on the logs taught."""

import json

import numpy as np
import pytest
from scipy.stats import t as student
from typer.testing import CliRunner

from preplay.cli import app
from preplay.logs import load_turns
from preplay.pipeline._curves import differences
from preplay.pipeline._structure import Structured
from preplay.report import read_report, summary_sentence
from tests.backtest.conftest import SKILLS, key_logs

CALL = '{{"name": "unlock", "arguments": {{"key": "{key}"}}}}'
KEYS = ("--preset", "debug", "--seed", "3")


def preplay(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def judged(ray2, tmp_path_factory):
    """p70 cloned from its sessions, and an agent that never ran, judged from the logs of four others."""
    folder = tmp_path_factory.mktemp("tool_calls")
    turns = key_logs(SKILLS, CALL, rooms=8, tasks=4)
    with (folder / "log.jsonl").open("w") as file:
        for row in turns.to_pylist():
            names = {
                "turn_id": row["turn"],
                "state": row["observation"],
                "next_state": row["next_observation"],
            }
            kept = {
                k: row[k]
                for k in ("session_id", "action", "reward", "policy", "task", "terminated", "truncated")
            }
            file.write(
                json.dumps(kept | names | {"environment": json.loads(row["extras"]).get("room")}) + "\n"
            )
    (folder / "locksmith.py").write_text(
        "import json\nlocksmith = lambda key: json.dumps({'name': 'unlock', 'arguments': {'key': key}})\n"
        "def act(state):\n"
        '    shown = state.rpartition("[(\'k")[2].partition("\'")[0]\n'
        "    return locksmith('k' + shown if shown else 'list')\n"
    )
    preplay("ingest", folder / "log.jsonl", "--output", folder / "dataset")
    cache = ("--cache", folder / "cache")
    preplay("embed", folder / "dataset", "--output", folder / "embedded", *cache)
    preplay("train", folder / "embedded", "--output", folder / "models", "--without", "p70", *KEYS)
    preplay("clone", folder / "embedded", "--policy", "p70", "--output", folder / "clone")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        printed = preplay(
            *("compare", f"cloned:{folder / 'clone'}", "python:locksmith:act", "--without", "p70"),
            *("--data", folder / "embedded", "--models", folder / "models", "--output", folder / "report"),
            *cache, *KEYS,
        )  # fmt: skip
    starts = np.flatnonzero(turns["turn"].to_numpy() == 0)
    worth = np.maximum.reduceat(turns["reward"].to_numpy() * 0.97 ** turns["turn"].to_numpy(), starts)
    mine = np.array(turns["policy"].to_pylist())[starts] == "p70"
    return read_report(folder / "report"), printed, folder, float(worth[mine].mean())


def test_the_structure_of_the_calls_leads(judged):
    report, printed, _, worth = judged
    clone = next(p for p in report.policies if p.name == "p70")
    assert clone.headline.estimator == "structure/1"
    assert clone.headline.verdict == "estimate"
    assert clone.headline.interval.contains(worth)
    assert clone.headline.value == pytest.approx(worth, abs=0.08)
    assert "On your logs, preplay predicted 4 left-out policies with" in " ".join(printed.split())


def test_the_backtests_left_out_the_other_policies_only(judged):
    report, _, folder, _ = judged
    sessions, actions = sorted(report.backtests, key=lambda tested: tested.known != "sessions")
    assert (sessions.known, actions.known) == ("sessions", "actions")
    assert {p.policy for p in sessions.policies} == {"p10", "p30", "p50", "p90"}
    assert {"cells/chain", "grounding/fqe"} < {s.estimator for s in actions.scores}
    assert any(s.estimator == "embedding/logistic" for s in sessions.scores)
    assert len(list((folder / "cache" / "backtests").iterdir())) == 2


def test_an_agent_that_never_ran_is_judged_by_what_it_would_do(judged):
    """It always names the key that was shown: solved at turn 1, 2 or 3 with .8, .16 and .032."""
    report, _, _, _ = judged
    asked = next(p for p in report.policies if p.name == "locksmith:act").structured
    truth = 0.8 * 0.97 + 0.16 * 0.97**2 + 0.032 * 0.97**3
    assert asked.predicted == pytest.approx(truth, abs=0.1)
    assert asked.bounds.contains(truth)


def test_policies_are_compared_by_the_errors_that_backtests_taught(judged):
    report, _, _, _ = judged
    clone = next(p for p in report.policies if p.name == "p70")
    worse = clone.headline.model_copy(update={"policy": "twin", "raw_value": clone.headline.raw_value - 0.5})
    structured = Structured({}, {"p70": clone.structured, "twin": clone.structured}, {}, True)
    draws = structured.resampled([clone.headline, worse], 20_000, 0)
    (pair,) = differences(draws, 0.95, "backtest")
    assert (pair.better, pair.other, pair.difference) == ("p70", "twin", pytest.approx(0.5))
    assert {pair.interval.method, pair.simultaneous.method} == {"backtest"}
    bounds = clone.structured.bounds
    spread = student(bounds.freedom).std() if bounds.freedom > 2 else 1
    assert pair.standard_error >= 0.95 * np.sqrt(2) * bounds.error * spread
    assert pair.interval.low < 0.5 - bounds.error < 0.5 + bounds.error < pair.interval.high


def test_the_page_shows_left_out_policies(judged):
    report, _, folder, _ = judged
    page = (folder / "report" / "report.html").read_text()
    assert 'id="backtest"' in page
    assert "Judged by what they would do in logged states" in page
    assert report.backtests[0].sentence() in summary_sentence(report)


def test_shadow_actions_are_judged_by_their_structure_too(judged):
    """The same agent as a file of what it would do."""
    report, _, folder, _ = judged
    import locksmith

    rows, seen = [], ""
    for r in load_turns(str(folder / "dataset")).to_pylist():
        seen = r["observation"] if r["turn"] == 0 else f"{seen}\n{r['observation']}"
        rows.append({"session_id": r["session_id"], "turn": r["turn"], "action": locksmith.act(seen)})
    (folder / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    printed = preplay(
        *("shadow", folder / "new.jsonl", "--data", folder / "embedded", "--models", folder / "models"),
        *("--without", "p70", "--cache", folder / "cache", "--output", folder / "new.json", *KEYS),
    )
    assert "from their actions alone" in " ".join(printed.split())
    estimates = {e["estimator"]: e for e in json.loads((folder / "new.json").read_text())["estimates"]}
    asked = next(p for p in report.policies if p.name == "locksmith:act").structured
    assert estimates["structure/1"]["raw_value"] == pytest.approx(asked.predicted, abs=0.1)
