"""Critics against exact solutions, their artifact, and the shared behaviour of all algorithms."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from critic_problems import tabular
from sklearn.ensemble import GradientBoostingClassifier

from preplay.critics import (
    ChunkBank,
    CriticConfig,
    evaluate_critic,
    load_critic,
    load_scorer,
    save_critic,
    save_scorer,
    train_classifier,
    train_critic,
)
from preplay.critics._margin import TreeMargin
from preplay.embedding import EncoderFingerprint
from preplay.errors import PreplayError

FAST = CriticConfig(width=32, steps=150, batch_size=64, dropout=0.0, weight_decay=0.0)


def chain(copies: int = 40):
    """Two states, two actions. State 0: action 0 ends with 0.5; action 1 earns 0 and leads to state 1.
    State 1: action 0 ends with 1, action 1 ends with 0. Both actions are logged equally often everywhere.
    """
    rows = []
    for i in range(copies):
        rows += [(0, 0, 0.5, -1, True), (0, 1, 0.0, len(rows) + 2, False), (1, i % 2, 1.0 - i % 2, -1, True)]
    return tabular(rows, states=2, actions=2)


def exact_iql(tau: float, gamma: float) -> dict[tuple[int, int], float]:
    """IQL's fixed point: V(1) is the expectile of {1, 0}, which is tau; Q(0, 1) = gamma V(1)."""
    return {(0, 0): 0.5, (0, 1): gamma * tau, (1, 0): 1.0, (1, 1): 0.0}


@pytest.mark.parametrize("tau", [0.5, 0.95])
def test_iql_finds_its_exact_fixed_point(tau):
    """At tau .5 the detour is worth .45 < .5 and is not taken; at tau .95 (near the optimum .9) it is: .855 > .5."""
    data = chain()
    config = FAST.model_copy(
        update={"tau": tau, "gamma": 0.9, "steps": 500, "huber": 10.0, "target_rate": 0.05}
    )
    q = np.mean(train_critic(config, data, seed=0).values(data.pools), axis=0)[:, 0]
    exact = exact_iql(tau, 0.9)
    found = {(0, 0): q[0], (0, 1): q[1], (1, 0): q[4], (1, 1): q[5]}
    for key, value in exact.items():
        assert found[key] == pytest.approx(value, abs=0.07), key
    assert (found[0, 1] > found[0, 0]) == (tau > 0.6)


def test_a_session_cut_by_its_budget_has_no_value_after_it_or_is_left_out():
    rows = [(0, 0, 1.0, -1, False)] * 60 + [(1, 0, 0.0, -1, True), (1, 1, 2.0, -1, True)] * 30
    data = tabular(rows, states=2, actions=2)
    data = type(data)(**{**vars(data), "truncated": np.arange(len(data)) < 60})
    config = FAST.model_copy(update={"steps": 300, "huber": 10.0})
    ends = train_critic(config, data, seed=0)
    assert ends.values(data.pools)[0][0, 0] == pytest.approx(1.0, abs=0.15)
    left_out = train_critic(config.model_copy(update={"budget_ends": False}), data, seed=0)
    assert abs(left_out.values(data.pools)[0][0, 0] - 1.0) > 0.15  # nothing taught it this value


@pytest.mark.parametrize("algorithm", ["iql", "cql", "awr", "bc", "actor_critic"])
def test_every_algorithm_learns_saves_and_loads(algorithm, tmp_path):
    rows = [(s, a, float(a == s % 2), -1, True) for s in range(4) for a in (0, 0, 1, 1, s % 2, s % 2)] * 4
    data = tabular(rows, states=4, actions=2)
    config = FAST.model_copy(update={"algorithm": algorithm, "members": 2, "steps": 80})
    losses: list[dict] = []
    critic = train_critic(config, data, seed=1, report=losses.append)
    scores = critic.score(data.pools)
    best = [int(np.argmax(scores.mean[2 * i : 2 * i + 2])) for i in range(len(data))]
    assert np.mean([b == r[0] % 2 for b, r in zip(best, rows, strict=True)]) == 1.0
    assert losses[-1]["step"] == 80
    assert (scores.spread > 0).any()
    save_critic(critic, tmp_path / "critic", inputs={"data": "abc"})
    again = load_critic(tmp_path / "critic")
    np.testing.assert_array_equal(again.score(data.pools).mean, scores.mean)
    same = train_critic(config, data, seed=1).score(data.pools).mean
    np.testing.assert_array_equal(same, scores.mean)


def test_reward_heads_are_weighed_by_context():
    """Head 0 likes action 0, head 1 likes action 1: the goal decides."""
    data = tabular([(0, 0, 1.0, -1, True), (0, 1, 0.0, -1, True)] * 40, states=1, actions=2)
    reward = np.array([[1.0, 0.0], [0.0, 1.0]] * 40)
    critic = train_critic(FAST, type(data)(**{**vars(data), "reward": reward}), seed=0)
    for weights, best in (((1.0, 0.1), 0), ((0.1, 1.0), 1)):
        assert int(np.argmax(critic.score(data.pools, weights).mean[:2])) == best
    with pytest.raises(PreplayError, match="3 weights for 2"):
        critic.score(data.pools, (1, 2, 3))


def test_one_network_has_no_spread():
    data = chain(4)
    assert np.isnan(
        train_critic(FAST.model_copy(update={"steps": 2}), data, seed=0).score(data.pools).spread
    ).all()


def test_statistics_come_from_the_training_split_alone():
    data = chain(10)
    critic = train_critic(FAST.model_copy(update={"steps": 2}), data, seed=0)
    assert critic.scaler.state_mean[0] == pytest.approx(2 / 3)
    assert np.mean(critic.state_distance(data.pools) ** 2) == pytest.approx(1.0, abs=0.01)


def test_another_encoder_is_refused_naming_both(tmp_path):
    mine = EncoderFingerprint(
        model="mini", weights_sha256="a", pooling="mean", dtype="f32", max_tokens=8, dimension=0
    )
    other = mine.model_copy(update={"model": "maxi", "weights_sha256": "b"})
    critic = train_critic(FAST.model_copy(update={"steps": 1}), chain(3), seed=0, fingerprint=mine)
    with pytest.raises(PreplayError, match=r"'maxi'.*'mini'"):
        critic.check_encoder(other, where="here")
    with pytest.raises(PreplayError, match=r"'mini'.*'structure alone'"):
        critic.check_encoder(None, where="here")
    save_critic(critic, tmp_path / "c")
    with pytest.raises(PreplayError, match=r"mini.*maxi"):
        load_critic(tmp_path / "c", expect=other)
    assert load_critic(tmp_path / "c", expect=mine).fingerprint == mine


def test_arrays_of_another_shape_are_refused():
    critic = train_critic(FAST.model_copy(update={"steps": 1}), chain(3), seed=0)
    with pytest.raises(PreplayError, match="widths"):
        critic.score(tabular([(0, 0, 1.0, -1, True)], states=3, actions=2).pools)


def test_evaluation_by_hand():
    """A critic that knows: right actions score above wrong ones, so AUC 1; the TD error is small."""
    rows = [(s, a, float(a == s), -1, True) for s in range(2) for a in range(2)] * 20
    data = tabular(rows, states=2, actions=2)
    critic = train_critic(FAST.model_copy(update={"steps": 300}), data, seed=0)
    metrics = evaluate_critic(critic, data)
    assert metrics.auc == 1.0
    assert metrics.auc_within_task == 1.0
    assert metrics.td_error < 0.1
    assert metrics.calibration_error < 0.05
    assert metrics.chosen_rank == pytest.approx(0.5)  # right and wrong were executed equally often
    assert metrics.decisions == 80


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_the_classifier_is_calibrated(kind):
    """Action 0 is right in 80 %, action 1 in 20 %: that is what it must say."""
    order = np.random.default_rng(0).permutation(700)
    rows = [(0, i % 2, float((i // 2) % 5 < (4, 1)[i % 2]), -1, True) for i in order]
    data = tabular(rows, states=1, actions=2)
    probability = train_classifier(kind, data, seed=0).score(data.pools).mean[:2]
    assert probability == pytest.approx([0.8, 0.2], abs=0.06)


def test_trees_as_arrays_say_what_the_library_says():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    label = (rows[:, 0] + rows[:, 1] * rows[:, 2] + rng.normal(size=400) > 0).astype(int)
    model = GradientBoostingClassifier(n_estimators=30, max_depth=3, subsample=0.7, random_state=0)
    model.fit(rows, label)
    np.testing.assert_allclose(TreeMargin.of(model)(rows), model.decision_function(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_a_saved_classifier_scores_the_same_and_says_what_it_is(kind, tmp_path):
    rows = [(i % 3, i % 2, float(i % 5 < 2 + i % 2), -1, True) for i in range(200)]
    data = tabular(rows, states=3, actions=2)
    classifier = train_classifier(kind, data, seed=0)
    save_scorer(classifier, tmp_path / "c")
    again = load_scorer(tmp_path / "c")
    np.testing.assert_array_equal(again.score(data.pools).mean, classifier.score(data.pools).mean)
    np.testing.assert_array_equal(again.state_distance(data.pools), classifier.state_distance(data.pools))
    with pytest.raises(PreplayError, match="a classifier, not a critic"):
        load_critic(tmp_path / "c")
    with pytest.raises(PreplayError, match="widths"):
        again.score(tabular([(0, 0, 1.0, -1, True)], states=1, actions=3).pools)


def test_nothing_to_learn_from_is_an_error():
    data = chain(3)
    with pytest.raises(PreplayError, match="no decisions"):
        train_critic(FAST, data.select(np.zeros(len(data), bool)), seed=0)
    with pytest.raises(PreplayError, match="all are alike"):
        train_classifier("logistic", tabular([(0, 0, 1.0, -1, True)] * 9, 1, 2), seed=0)
    for algorithm in (
        "bc",
        "awr",
        "actor_critic",
    ):  # an actor over pools of one would be left as it was drawn
        with pytest.raises(PreplayError, match="lists one only"):
            train_critic(
                FAST.model_copy(update={"algorithm": algorithm}),
                tabular([(0, 0, 1.0, -1, True)] * 9, 1, 1),
                seed=0,
            )


def test_training_leaves_the_global_random_state_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    train_critic(FAST.model_copy(update={"steps": 2}), chain(3), seed=0)
    assert torch.equal(before, torch.random.get_rng_state())


def test_what_only_the_parts_of_an_action_say_is_learned(tmp_path):
    """Structure is equal everywhere; the right action has its mark in one of its parts; the third does not exist."""
    rng = np.random.default_rng(0)
    data = tabular([(0, i % 2, float(i % 2 == 0), -1, True) for i in range(120)], states=1, actions=2)
    parts = rng.normal(size=(240, 3, 4)).astype(np.float32) * 0.1
    parts[np.arange(0, 240, 2), rng.integers(0, 2, 120), 0] = 1.0
    exists = np.ones((240, 3), bool)
    exists[:, 2] = False
    parts[~exists] = 9.0  # must not be looked at
    pools = replace(
        data.pools,
        features=np.zeros((240, 2), np.float32),
        chunks=ChunkBank(parts, exists),
        state_embedding=np.zeros((120, 4), np.float32),
    )
    critic = train_critic(FAST.model_copy(update={"steps": 200}), replace(data, pools=pools), seed=0)
    scores = critic.score(pools).mean.reshape(120, 2)
    assert (scores[:, 0] > scores[:, 1]).mean() > 0.95
    save_critic(critic, tmp_path / "c")
    np.testing.assert_array_equal(load_critic(tmp_path / "c").score(pools).mean.reshape(120, 2), scores)


def test_critics_take_the_detour_that_the_classifier_cannot_see():
    """A look at the schema, another prompt: it earns nothing itself and .9 x 1 later, against .5 at once."""
    data = chain()
    episode = np.arange(len(data)) // 3
    data = replace(data, session=episode, group=np.array([f"task {e % 7}" for e in episode], object))
    for algorithm in ("cql", "actor_critic"):
        config = FAST.model_copy(
            update={"algorithm": algorithm, "gamma": 0.9, "alpha": 0.05, "temperature": 0.1}
        )
        scores = train_critic(config, data, seed=0).score(data.pools).mean
        assert scores[1] > scores[0], algorithm
    at_once = train_classifier("logistic", data, seed=0).score(data.pools).mean
    assert at_once[0] > at_once[1]
