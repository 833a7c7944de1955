"""The parts of a sweep, by hand: space, proposals, halving, selection, importance, Pareto front."""

import io
from dataclasses import dataclass, field

import numpy as np
import optuna
import pytest
from ray.tune.experiment import Trial
from ray.tune.search import Searcher
from rich.console import Console

from preplay.errors import PreplayError
from preplay.sweep import (
    MetricConfig,
    Parameter,
    SearcherConfig,
    check_storage,
    grid,
    nearly_best,
    pareto_front,
    select_diverse,
    suggest,
)
from preplay.sweep._asha import OrderedHalving
from preplay.sweep._importance import importances
from preplay.sweep._monitor import progress
from preplay.sweep._run import idle_note
from preplay.sweep._search import StudySearch
from preplay.sweep._stages import Stage, StageStore
from tests.sweep.conftest import sweep_config

LOSS = (MetricConfig(name="loss", mode="min"),)
SPACE = {
    "depth": Parameter(randint=(1, 3), when={"kind": ("deep",)}),
    "kind": Parameter(choice=("deep", "flat")),
    "rate": Parameter(loguniform=(1e-4, 1e-1)),
}


def test_conditional_fields_appear_only_where_their_condition_holds():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    drawn = [suggest(SPACE, study.ask()) for _ in range(40)]
    assert {("depth" in d) for d in drawn if d["kind"] == "deep"} == {True}
    assert {("depth" in d) for d in drawn if d["kind"] == "flat"} == {False}
    assert {d["depth"] for d in drawn if "depth" in d} == {1, 2, 3}
    assert all(1e-4 <= d["rate"] <= 1e-1 for d in drawn)


def test_grid_keeps_each_combination_once():
    space = {
        "kind": Parameter(choice=("deep", "flat")),
        "depth": Parameter(choice=(1, 2), when={"kind": ("deep",)}),
    }
    assert grid(space) == [{"kind": "deep", "depth": 1}, {"kind": "deep", "depth": 2}, {"kind": "flat"}]


def proposals(order: list[int], seed: int = 0) -> list[dict]:
    """Ten proposals where trials come back in batches of two, in the given order within a batch."""
    searcher = StudySearch(SearcherConfig(trials=10, startup=3, lag=2), SPACE, LOSS, seed)
    found = []
    for first in range(0, 10, 2):
        pair = [searcher.suggest(f"t{first + i}") for i in range(2)]
        found += pair
        for i in order:
            name = f"t{first + i}"
            searcher.on_trial_result(name, {"loss": abs(np.log(pair[i]["parameters"].get("rate", 1.0)) + 5)})
            searcher.on_trial_complete(name)
    assert searcher.suggest("t10") == Searcher.FINISHED
    return found


def test_proposals_do_not_depend_on_who_comes_back_first():
    assert proposals([0, 1]) == proposals([1, 0])
    assert proposals([0, 1]) != proposals([0, 1], seed=1)
    assert [p["number"] for p in proposals([0, 1])] == list(range(10))


def test_the_first_proposal_is_the_defaults():
    assert proposals([0, 1])[0] == {"number": 0, "parameters": {}}


def test_tpe_waits_for_the_trials_it_learns_from():
    searcher = StudySearch(SearcherConfig(trials=10, startup=1, lag=2), SPACE, LOSS, 0)
    assert searcher.suggest("a")
    assert searcher.suggest("b")
    assert searcher.suggest("c") is None
    searcher.on_trial_complete("a", error=True)
    assert searcher.suggest("c")["number"] == 2


def test_a_lag_that_keeps_the_cluster_idle_is_told(tmp_path):
    config = sweep_config(tmp_path, searcher={"kind": "tpe", "trials": 50, "lag": 4}, resources={"cpu": 2})
    assert "room for 32 trials side by side, but searcher.lag lets 4 run" in (idle_note(config, 64) or "")
    assert idle_note(config, 8) is None
    assert idle_note(sweep_config(tmp_path), 64) is None


def test_a_trial_counts_the_same_whether_it_was_paused_before_it_was_stopped():
    """Tune tells a searcher about a report that stops its trial at the end only, about any other report at once."""
    after = []
    for paused in (True, False):
        searcher = StudySearch(SearcherConfig(trials=10, startup=1, lag=1), SPACE, LOSS, 0)
        for number in range(3):
            searcher.suggest(f"t{number}")
            report = {"loss": float(number)}
            if paused:
                searcher.on_trial_result(f"t{number}", report)
            searcher.on_trial_complete(f"t{number}", None if paused else report)
        after.append(searcher.suggest("t3"))
    assert after[0] == after[1]


def test_random_proposals_wait_for_nothing():
    searcher = StudySearch(SearcherConfig(kind="random", trials=3, lag=1), SPACE, LOSS, 0)
    assert [searcher.suggest(name)["number"] for name in "abc"] == [0, 1, 2]


@dataclass
class Controller:
    """The two things that a scheduler asks of Tune's controller."""

    trials: list[Trial]
    stopped: list[int] = field(default_factory=list)

    def get_trials(self) -> list[Trial]:
        return self.trials

    def stop_trial(self, trial: Trial) -> None:
        trial.set_status(Trial.TERMINATED)
        self.stopped.append(trial.config["number"])


def halving(count: int) -> tuple[OrderedHalving, Controller]:
    trials = [Trial("stub", stub=True, config={"number": n}) for n in range(count)]
    for trial in trials:
        trial.set_status(Trial.RUNNING)
    return OrderedHalving(LOSS[0], budget=9, reduction=3), Controller(trials)


def test_halving_by_hand():
    scheduler, controller = halving(4)
    reports = [5.0, 6.0, 4.0, 5.5]
    decisions = [
        scheduler.on_trial_result(controller, trial, {"loss": loss, "budget": 1})
        for trial, loss in zip(controller.trials, reports, strict=True)
    ]
    # Places: ceil(1/3) = 1, ceil(2/3) = 1, ceil(3/3) = 1, ceil(4/3) = 2; 5.5 is third of four.
    assert decisions == ["CONTINUE", "STOP", "CONTINUE", "STOP"]


def test_a_trial_that_is_too_early_is_paused_then_decided():
    scheduler, controller = halving(3)
    first, second, third = controller.trials
    assert scheduler.on_trial_result(controller, third, {"loss": 9.0, "budget": 1}) == "PAUSE"
    third.set_status(Trial.PAUSED)
    assert scheduler.on_trial_result(controller, second, {"loss": 1.0, "budget": 1}) == "PAUSE"
    second.set_status(Trial.PAUSED)
    assert scheduler.choose_trial_to_run(controller) is None
    assert scheduler.on_trial_result(controller, first, {"loss": 2.0, "budget": 1}) == "CONTINUE"
    assert scheduler.choose_trial_to_run(controller) is second
    second.set_status(Trial.RUNNING)
    assert scheduler.choose_trial_to_run(controller) is None
    assert controller.stopped == [2]


def test_a_failed_trial_holds_nobody_up():
    scheduler, controller = halving(2)
    controller.trials[0].set_status(Trial.ERROR)
    assert (
        scheduler.on_trial_result(controller, controller.trials[1], {"loss": 1.0, "budget": 1}) == "CONTINUE"
    )


def test_the_last_stage_is_never_stopped():
    scheduler, controller = halving(2)
    assert (
        scheduler.on_trial_result(controller, controller.trials[1], {"loss": 1.0, "budget": 9}) == "CONTINUE"
    )


def test_selection_prefers_errors_that_cancel():
    truth = np.zeros(2)
    best, copy, opposite = np.array([1.0, 1.0]), np.array([1.01, 1.0]), np.array([-1.2, -1.2])
    selection = select_diverse([best, copy, opposite], lambda p: float(np.abs(p - truth).mean()), size=3)
    assert selection.chosen == [0, 2]
    assert selection.losses == pytest.approx([1.0, 0.1])


def test_selection_stops_when_nothing_helps():
    selection = select_diverse([np.array([1.0]), np.array([2.0])], lambda p: float(p[0]), size=2)
    assert selection.chosen == [0]


def test_members_are_the_best_trials_where_averages_say_nothing():
    assert nearly_best([1.0, 1.04, 1.06], size=4) == [0, 1, 0, 1]
    assert nearly_best([1.0, 2.0], size=2) == [0, 0]
    assert nearly_best([-1.0, -0.99, -0.5], size=3) == [0, 1, 0]


def test_importance_finds_the_field_that_matters():
    rng = np.random.default_rng(0)
    parameters = [
        {"rate": float(r), "kind": k} for r, k in zip(rng.random(60), rng.choice(["a", "b"], 60), strict=True)
    ]
    found = importances(parameters, [p["rate"] ** 2 for p in parameters])
    assert next(iter(found)) == "rate"
    assert found["rate"] > 0.9
    assert importances(parameters[:5], [1.0] * 5) == {}


def test_pareto_front_by_hand():
    assert pareto_front([(1, 5), (2, 2), (3, 3), (4, 1)]) == [0, 1, 3]


@pytest.mark.parametrize("root", ["local", "memory://stages"])
def test_stages_are_kept_with_the_newest_state_only(tmp_path, root):
    store = StageStore(str(tmp_path) if root == "local" else root, "trial")
    state = tmp_path / "working"
    (state / "deep").mkdir(parents=True)
    for budget in (1, 3):
        (state / "deep" / "x.json").write_text(str(budget))
        store.save(Stage(budget, 0.5, {"loss": 1 / budget}, np.array([0.1, budget])), state)
    found = store.finished((1, 3, 9))
    assert [stage.budget for stage in found] == [1, 3]
    assert found[1].metrics == {"loss": 1 / 3}
    assert len(store.finished((1, 3, 9), ("loss",))) == 2
    assert store.finished((1, 3, 9), ("loss", "other")) == []
    assert found[1].prediction.tolist() == [0.1, 3.0]
    store.fetch_state(3, tmp_path / "back")
    assert (tmp_path / "back" / "deep" / "x.json").read_text() == "3"
    store.fetch_state(1, tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []
    store.save(Stage(9, 0.5, {"loss": 0.0}, np.zeros(1)), None)
    store.fetch_state(3, tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []
    assert len(store.finished((1, 3, 9))) == 3


def test_a_stage_counts_only_once_all_before_it_do(tmp_path):
    store = StageStore(str(tmp_path), "trial")
    store.save(Stage(3, 0.5, {}, np.zeros(1)), None)
    assert store.finished((1, 3)) == []


def test_the_live_table_tells_the_best_and_how_long(tmp_path):
    trials = halving(3)[1].trials
    for trial, loss, budget in zip(trials, (5.0, 4.0, 1.0), (9, 9, 1), strict=True):
        trial.config["parameters"] = {"rate": loss / 10}
        trial.run_metadata.last_result = {"loss": loss, "budget": budget}
    trials[0].set_status(Trial.TERMINATED)
    config = sweep_config(tmp_path)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(progress(trials, config, 5, elapsed=30.0))
    shown = console.export_text()
    assert "1 of 5 trials done, 0 failed; 30 s gone, about 120 s to go" in shown
    assert [shown.index(f"rate={rate}") for rate in (0.4, 0.5, 0.1)] == sorted(
        shown.index(f"rate={rate}") for rate in (0.4, 0.5, 0.1)
    )


def test_unwritable_storage_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        PreplayError, match=r"file/sweeps: the sweep cannot be stored here \(NotADirectoryError"
    ):
        check_storage(str(tmp_path / "file" / "sweeps"))
    with pytest.raises(PreplayError, match="cannot be stored here"):
        check_storage("nosuchscheme://bucket/sweeps")


def test_a_full_disk_is_refused(tmp_path):
    with pytest.raises(PreplayError, match=r"MB are free here; a sweep needs at least"):
        check_storage(str(tmp_path), least_free=2**62)
    check_storage(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
