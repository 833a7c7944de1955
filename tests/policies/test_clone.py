"""Cloned policies: do what the target does, from texts alone, and survive being saved."""

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file

from preplay.embedding import EmbeddedTurns, EncoderFingerprint, TextBank
from preplay.environments import get_environment
from preplay.environments.support_desk import Intent, intent_of
from preplay.errors import PreplayError
from preplay.policies import AgentState, ClonedPolicy, fit_clone, load_clone, load_policy, save_clone
from preplay.policies._clone import _clone_data
from preplay.seeding import derive_seed

DESK = get_environment("support_desk")
DIMENSION = 256


class WordCounts:
    """An encoder that counts words in 256 hashed bins: quick, and the same everywhere."""

    fingerprint = EncoderFingerprint(
        model="word-counts",
        weights_sha256="0" * 64,
        pooling="sum",
        dtype="float32",
        max_tokens=512,
        dimension=DIMENSION,
    )

    def encode(self, texts):
        counts = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                counts[row, derive_seed(0, word.strip(".,!?:;")) % DIMENSION] += 1
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)


ENCODER = WordCounts()


def embedded(turns: pa.Table) -> EmbeddedTurns:
    columns = [turns[name].to_pylist() for name in ("task", "observation", "action", "next_observation")]
    texts = list(dict.fromkeys(text for column in columns for text in column))
    bank = TextBank(texts, ENCODER.encode(texts))
    return EmbeddedTurns(
        turns, bank, *(np.array([bank.index[t] for t in column]) for column in columns), ENCODER.fingerprint
    )


def logged(name: str, sessions: int) -> EmbeddedTurns:
    return embedded(DESK.simulate(DESK.policies()[name], sessions, seed=1))


def states_of(turns: pa.Table) -> list[AgentState]:
    states, history = [], []
    for row in turns.to_pylist():
        history = [] if row["turn"] == 0 else history
        states.append(AgentState(row["observation"], row["task"], tuple(history[-2:]), row["turn"]))
        history.append((row["observation"], row["action"]))
    return states


@pytest.fixture(scope="module")
def clone() -> ClonedPolicy:
    return fit_clone(logged("diagnose_first", 150), ENCODER, "clone")


def intent_shares(clone: ClonedPolicy, states: list[AgentState]) -> np.ndarray:
    """How often the clone chose each intent, by state, over 40 draws: float64 [B, 8]."""
    shares = np.zeros((len(states), 8))
    for seed in range(40):
        for row, action in enumerate(clone.act(states, np.random.default_rng(seed)).actions):
            shares[row, intent_of(action)] += 1 / 40
    return shares


def test_it_behaves_like_its_target_and_not_like_others(clone):
    states = states_of(DESK.simulate(DESK.policies()["diagnose_first"], 40, seed=2))
    shares = intent_shares(clone, states)
    distance = {
        name: 0.5 * np.abs(shares - policy.intent_probabilities(states)).sum(axis=1).mean()
        for name, policy in DESK.policies().items()
    }
    assert distance["diagnose_first"] < 0.2  # total variation; 0.09 of it is the noise of 40 draws
    assert min(distance, key=distance.__getitem__) == "diagnose_first"


def test_a_plain_rule_is_found():
    words = [f"word{i}" for i in range(20)]  # about 10 turns each: most of the 32 neighbours are wrong
    rng = np.random.default_rng(0)
    said = [words[i] for i in rng.integers(0, 20, 200)]
    turns = DESK.simulate(DESK.policies()["random"], 120, seed=0).slice(0, 200)
    for name, texts in (("observation", [f"{w} case" for w in said]), ("action", [f"do {w}" for w in said])):
        turns = turns.set_column(turns.schema.names.index(name), turns.schema.field(name), pa.array(texts))
    clone = fit_clone(embedded(turns), ENCODER, "rule")
    actions = clone.act([AgentState(f"{w} case", turns["task"][0].as_py()) for w in words], rng).actions
    right = [action == f"do {word}" for action, word in zip(actions, words, strict=True)]
    assert np.mean(right) >= 0.9


def test_states_hold_the_previous_action_of_their_own_session():
    log = logged("expert", 5)
    data = _clone_data(log)
    for row, turn in enumerate(log.turns["turn"].to_pylist()):
        if turn == 0:
            assert not data.blocks.previous[row].any()
        else:
            assert (data.blocks.previous[row] == log.bank.embeddings[log.action_id[row - 1]]).all()
    assert data.session == log.turns["session_id"].to_pylist()


def test_it_says_only_what_was_logged_and_varies(clone):
    states = states_of(DESK.simulate(DESK.policies()["random"], 20, seed=3))
    said = set(clone.act(states, np.random.default_rng(0)).actions)
    assert said <= set(clone.data.actions)
    assert len(said) > 10


def test_rewards_are_not_looked_at(clone):
    log = logged("diagnose_first", 150)
    at = log.turns.schema.names.index("reward")
    changed = log.turns.set_column(
        at, log.turns.schema.field("reward"), pa.array(np.arange(len(log), dtype=float))
    )
    again = fit_clone(embedded(changed), ENCODER, "clone")
    states = states_of(log.turns)[:50]
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    assert again.act(states, rngs[0]).actions == clone.act(states, rngs[1]).actions


def test_a_row_depends_only_on_its_own_state_and_draws(clone):
    states = states_of(DESK.simulate(DESK.policies()["expert"], 10, seed=3))
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    mixed = [states[0], *reversed(states[1:])]
    assert clone.act(states, one).actions[0] == clone.act(mixed, two).actions[0]
    assert one.random() == two.random()


def test_saved_and_loaded_it_acts_the_same(clone, tmp_path):
    save_clone(clone, tmp_path / "clone", inputs={"logs": "abc"})
    loaded = load_policy(f"cloned:{tmp_path / 'clone'}", encoder=ENCODER)
    states = states_of(DESK.simulate(DESK.policies()["expert"], 10, seed=3))
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    assert loaded.act(states, rngs[0]).actions == clone.act(states, rngs[1]).actions
    assert loaded.name == "clone"


def test_a_damaged_clone_is_refused(clone, tmp_path):
    save_clone(clone, tmp_path / "clone")
    file = tmp_path / "clone" / "clone.safetensors"
    arrays = load_file(file)
    save_file(arrays | {"turn": arrays["turn"] + 1}, file)
    with pytest.raises(PreplayError, match="checksum"):
        load_clone(tmp_path / "clone", ENCODER)


def test_another_encoder_is_refused(clone, tmp_path):
    class Other(WordCounts):
        fingerprint = ENCODER.fingerprint.model_copy(update={"weights_sha256": "1" * 64})

    save_clone(clone, tmp_path / "clone")
    with pytest.raises(PreplayError, match="was fitted with encoder word-counts"):
        load_clone(tmp_path / "clone", Other())


def test_too_few_sessions_are_refused():
    with pytest.raises(PreplayError, match="cannot be cloned from 3 sessions"):
        fit_clone(logged("expert", 3), ENCODER, "tiny")


def test_smallest_log_and_a_target_with_one_action():
    turns = DESK.simulate(DESK.policies()["random"], 4, seed=0)
    at = turns.schema.names.index("action")
    turns = turns.set_column(at, turns.schema.field("action"), pa.array(["Goodbye."] * len(turns)))
    clone = fit_clone(embedded(turns), ENCODER, "one")
    actions = clone.act([AgentState("I was charged twice.")], np.random.default_rng(0)).actions
    assert actions == ["Goodbye."]
    assert intent_of(actions[0]) == Intent.CLOSE
