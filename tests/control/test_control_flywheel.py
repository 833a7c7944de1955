"""Audit log under concurrent writers and a kill, calibration, retraining, failures, blind review, distillation."""

import contextlib
import multiprocessing
import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit_writer import write

from preplay.control import (
    AuditLog,
    Controller,
    ReviewPair,
    analyze_failures,
    calibrate_threshold,
    decisions_turns,
    replace_critic,
    retrain,
    review_sheet,
    risk_coverage,
    upper_bound,
)
from preplay.control._audit import OUTCOME_SCHEMA
from preplay.critics import (
    ActionEncoder,
    ChunkBank,
    CriticConfig,
    Decisions,
    DecisionState,
    EncodedPools,
    Scores,
    decisions_from_turns,
    distill,
    load_critic,
    rank_agreement,
    save_critic,
    train_critic,
)
from preplay.errors import PreplayError
from preplay.logs import TURN_SCHEMA
from preplay.shards import ShardFolder

FAST = CriticConfig(width=16, steps=120, batch_size=64, dropout=0.0, weight_decay=0.0)


def bandit(right: int, n: int = 120, seed: int = 0) -> Decisions:
    """Two actions, told apart by one feature; ``right`` earns 1. Four tasks."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 2, n)
    features = np.tile(np.eye(2, dtype=np.float32), (n, 1))
    chunks = ChunkBank(np.zeros((2, 1, 0), np.float32), np.ones((2, 1), bool))
    state = np.ones((n, 1), np.float32)
    pools = EncodedPools(
        state, features, np.arange(n + 1) * 2, np.tile([0, 1], n), chunks, np.zeros((n, 0), np.float32)
    )
    success = chosen == right
    return Decisions(
        pools, np.arange(n) * 2 + chosen, success[:, None].astype(float), success, np.full(n, -1), np.ones(n, bool),
        np.zeros(n, bool), np.arange(n), np.array([f"task {i % 4}" for i in range(n)], object),
    )  # fmt: skip


def test_concurrent_appends_with_a_kill_lose_nothing(tmp_path):
    """Four processes append, one is killed in the middle: all that any of them reported is there, whole."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preplay.control"])
    running = {}
    for name, count in (("a", 100_000), ("b", 15), ("c", 15), ("d", 15)):
        reading, writing = context.Pipe(duplex=False)
        running[name] = context.Process(target=write, args=(str(tmp_path), name, count, writing)), reading
        running[name][0].start()
        writing.close()
    reported = {running["a"][1].recv() for _ in range(10)}
    running["a"][0].kill()
    for _, reading in running.values():
        with contextlib.suppress(EOFError):
            while True:
                reported.add(reading.recv())
    for name, (process, _) in running.items():
        process.join()
        assert (process.exitcode == 0) == (name != "a")
    table = AuditLog(str(tmp_path)).read()
    found = dict(zip(table["id"].to_pylist(), table["reward"].to_pylist(), strict=True))
    assert reported <= set(found)
    assert len(found) >= 10 + 45
    assert all(found[name] == float(name.split("-")[1]) for name in reported)
    assert set(table["observation"].to_pylist()) == {"ö😀"}
    AuditLog(str(tmp_path)).compact()
    assert AuditLog(str(tmp_path)).read().num_rows == table.num_rows
    assert len(list(tmp_path.glob("decision-*.parquet"))) == 1


def test_reading_while_others_append_and_compact_misses_nothing(tmp_path):
    """Outcomes 0, 1, 2 … are appended one by one: whoever sees the n-th has seen all before it."""
    done = threading.Event()

    def compact() -> None:
        while not done.is_set():
            AuditLog(str(tmp_path)).compact()

    def append() -> None:
        log = AuditLog(str(tmp_path))
        for i in range(60):
            log.append_outcome(f"d{i}", float(i))
        done.set()

    threads = [threading.Thread(target=work) for work in (compact, compact, append)]
    for thread in threads:
        thread.start()
    reader, sizes = AuditLog(str(tmp_path)), [0]
    while not done.is_set():
        seen = {int(name[1:]) for name in reader._read("outcome", OUTCOME_SCHEMA)["id"].to_pylist()}
        assert seen == set(range(len(seen)))
        sizes.append(len(seen))
    for thread in threads:
        thread.join()
    assert sizes == sorted(sizes)
    assert {*reader._read("outcome", OUTCOME_SCHEMA)["id"].to_pylist()} == {f"d{i}" for i in range(60)}


def test_a_log_of_another_version_is_refused(tmp_path):
    log = AuditLog(str(tmp_path))
    log.append_outcome("x", 1.0)
    ShardFolder(str(tmp_path)).write("outcome", pa.table({"id": ["y"]}))
    with pytest.raises(PreplayError, match="version none"):
        log.read()


def test_decisions_of_a_log_without_evidence_are_still_read(tmp_path):
    log, ids = AuditLog(str(tmp_path)), []
    controller = Controller(Flat(), ActionEncoder(evidence=("tests",)), audit=log)
    ids.append(controller.decide(DecisionState("t", "new"), ["a"], evidence=[[0.5]]).id)
    (file,) = tmp_path.glob("decision-*.parquet")
    old = (
        pq.read_table(file)
        .drop_columns("evidence")
        .set_column(0, pa.field("id", pa.string(), nullable=False), pa.array(["old"]))
    )
    ShardFolder(str(tmp_path)).write("decision", old.replace_schema_metadata({"preplay.audit_version": "1"}))
    for _ in range(2):
        kept = dict(zip(*(log.read()[name].to_pylist() for name in ("id", "evidence")), strict=True))
        assert kept == {ids[0]: [[0.5]], "old": None}
        log.compact()


class Flat:
    """Scores by place."""

    def score(self, pools):
        return Scores(np.arange(len(pools.features), dtype=float), np.zeros(len(pools.features)))

    def state_distance(self, pools):
        return np.ones(len(pools.state))


def test_evidence_comes_back_with_the_decisions(tmp_path):
    """What a critic scored is what a later one learns from: the same arrays."""
    log, encoder = AuditLog(str(tmp_path)), ActionEncoder(horizon=2, evidence=("tests", "vote"))
    controller, evidence = Controller(Flat(), encoder, audit=log), [[0.5, 1.0], [0.0, 0.25]]
    state = DecisionState("t", "o")
    controller.record(controller.decide(state, ["a", "b"], evidence=evidence), reward=1.0)
    seen = encoder.encode([state], [["a", "b"]], [evidence])
    again = decisions_from_turns(decisions_turns(log), encoder)
    assert again.pools.features.tolist() == seen.features.tolist()
    assert again.pools.features[:, -2:].tolist() == evidence
    assert again.pools.state.tolist() == seen.state.tolist()


def test_decisions_come_back_as_turns(tmp_path):
    log = AuditLog(str(tmp_path), session="s")
    controller = Controller(Flat(), ActionEncoder(), audit=log)
    for turn in range(2):
        decision = controller.decide(DecisionState("t", f"o{turn}", turn), ["a", "b"])
        controller.record(decision, reward=turn, success=turn == 1)
    unknown = controller.decide(DecisionState("t", "o2", 2), ["a", "b"])
    turns = decisions_turns(log)
    assert turns.schema.equals(TURN_SCHEMA)
    assert turns["action"].to_pylist() == ["b", "b"]  # the decision without an outcome is not there
    assert unknown.id in log.read()["id"].to_pylist()
    data = decisions_from_turns(turns, ActionEncoder())
    assert data.success.tolist() == [False, True]
    assert data.following.tolist() == [1, -1]
    assert data.pools.offsets.tolist() == [0, 2, 4]


def test_risk_and_coverage_by_hand():
    """Most confident first: right, wrong, right, right: risks 0, 1/2, 1/3, 1/4."""
    curve = risk_coverage(np.array([0.1, 0.9, 0.5, 0.3]), np.array([True, True, False, True]))
    assert curve.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4])
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.area == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_the_upper_bound_of_no_errors_by_hand():
    """0 of n errors: 1 - delta^(1/n); for n = 20 and delta .1 that is .109."""
    assert upper_bound(0, 20, 0.1) == pytest.approx(1 - 0.1 ** (1 / 20))
    assert upper_bound(0, 0, 0.1) == upper_bound(5, 5, 0.1) == 1.0


def test_the_calibrated_threshold_keeps_its_promise():
    """P(wrong) = 1 - confidence. Over 300 calibration sets the true risk of what is answered passes .2 in at most
    delta = 10 % of them (plus three standard errors of the share)."""
    rng = np.random.default_rng(0)
    broken = answered = 0
    for _ in range(300):
        confidence = rng.random(200)
        threshold = calibrate_threshold(confidence, rng.random(200) < confidence, target_risk=0.2, delta=0.1)
        if np.isfinite(threshold.value):
            answered += 1
            broken += (1 - threshold.value) / 2 > 0.2  # mean of 1 - confidence above the threshold
            assert threshold.bound <= 0.2
    assert answered > 200
    assert broken / 300 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def test_a_hopeless_scorer_never_answers():
    threshold = calibrate_threshold(np.linspace(0, 1, 100), np.zeros(100, bool), target_risk=0.1)
    assert (threshold.value, threshold.coverage) == (np.inf, 0.0)
    assert calibrate_threshold(np.zeros(0), np.zeros(0, bool), target_risk=0.1).value == np.inf
    with pytest.raises(PreplayError, match="between 0 and 1"):
        calibrate_threshold(np.zeros(1), np.ones(1, bool), target_risk=1.5)


def test_a_critic_that_forgets_does_not_replace_the_old_one(tmp_path):
    """The new decisions are many and say the opposite: the retrained critic would be wrong on the old tasks."""
    old, held = bandit(right=0), bandit(right=0, seed=1)
    critic = train_critic(FAST, old, seed=0)
    save_critic(critic, tmp_path / "critic")
    kept, result = retrain(critic, old, bandit(right=1, n=1200), held, seed=0, samples=50)
    assert not result.replaced
    assert kept is critic
    assert result.old == 1.0
    assert result.high < 0
    before = (tmp_path / "critic" / "manifest.json").read_text()
    assert not replace_critic(tmp_path / "critic", kept, result)
    assert (tmp_path / "critic" / "manifest.json").read_text() == before
    better, result = retrain(critic, old, bandit(right=0, seed=2), held, seed=0, samples=50)
    assert result.replaced
    assert replace_critic(tmp_path / "critic", better, result)
    np.testing.assert_array_equal(
        load_critic(tmp_path / "critic").score(held.pools).mean, better.score(held.pools).mean
    )


def test_failures_by_cause():
    """Pools of two: nothing right (generator); right one scored low (critic); right one looks the same (encoder);
    a success whose state and action are those of the last failure (aliased)."""
    data = bandit(right=0, n=4)
    features = data.pools.features.copy()
    features[5] = features[4]
    features[3] = [0.0, 9.0]
    data = replace(data, pools=replace(data.pools, features=features))
    scores = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    right = [False, False, True, False, False, True, True, False]
    result = analyze_failures(data, scores, right)
    assert (result.decisions, result.failures) == (4, 3)
    assert (result.generator, result.critic, result.encoder) == (1, 1, 1)
    assert (
        result.aliased_states == 2
    )  # the first and third failures executed the action that was right in the fourth


def test_the_review_sheet_is_blind_and_safe():
    pairs = [ReviewPair("t", "=cmd()", "old <b>", f"new {i}") for i in range(20)] + [
        ReviewPair("t", "s", "x", "x")
    ]
    sheet = review_sheet(pairs, count=12, seed=0)
    assert len(sheet.pairs) == 12
    assert set(sheet.key) == {"a", "b"}
    rows = sheet.csv().splitlines()
    assert len(rows) == 13
    assert "'=cmd()" in rows[1]
    assert "critic" not in sheet.csv()
    assert "old &lt;b&gt;" in sheet.html()
    assert sheet.win_rate(sheet.key) == 1.0
    assert sheet.win_rate(["same"] * 12) == 0.5


def test_an_ensemble_becomes_one_small_network():
    data = bandit(right=0)
    ensemble = train_critic(FAST.model_copy(update={"members": 3}), data, seed=0)
    student = distill(ensemble, data.pools, seed=0, width=8, steps=200)
    assert len(student.members) == 1
    assert rank_agreement(ensemble.score(data.pools).mean, student.score(data.pools).mean, data.pools) == 1.0
    assert (
        rank_agreement(np.array([1.0, 0.0]), np.array([0.0, 1.0]), data.select(np.arange(120) < 1).pools)
        == 0.0
    )
