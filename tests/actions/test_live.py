"""What a session reader says of sessions that went another way, held against what is said of logged ones."""

import numpy as np
import pytest

from preplay.actions import Columns, SessionReader, structure

from .conftest import make_turns


def test_logged_sessions_read_live_are_what_the_logs_say(shop):
    reader = SessionReader(shop)
    logged, turns = reader.logged(), reader.turns
    texts = shop["action"].to_pylist()
    for row in range(len(turns)):
        here = np.array([row])
        action, own = reader.actions([texts[row]]), turns.policies[turns.policy[row]]
        live = reader.features(reader.begin(here, same_policy=True), action)
        assert live[0].tolist() == pytest.approx(logged[row].tolist())
        assert live.tolist() == reader.features(reader.begin(here), action, without=(own,)).tolist()


def test_a_session_may_go_another_way(shop):
    """`animals` was refused in the log; had the session seen the tables first, it would have known better."""
    reader = SessionReader(shop)
    rows = np.array([shop["action"].to_pylist().index("SELECT count(*) FROM animals")])
    start = reader.begin(rows)
    listed = reader.observations(["[('zebras',)]"])
    later = start.then(reader.actions(["SHOW TABLES"]), listed)
    names = ["SELECT * FROM zebras", "SELECT * FROM animals", "SELECT * FROM zebras"]
    here = later.select(np.array([0, 0, 0]))
    found = reader.features(here, reader.actions(names))
    seen, unknown = (found[:, -16 + i] for i in (2, 4))  # names_seen, names_unknown of the grounding
    assert seen.tolist() == [1, 0, 1]
    assert unknown.tolist() == [0, 1, 0]
    again = later.then(reader.actions(names[:1]), reader.observations(["no such table: zebras"]))
    refused = reader.features(again, reader.actions(names[:1]))[0]
    assert refused[-16 + 12] == 1  # an exact repeat
    assert refused[-16 + 6] == 1  # refused


def test_columns_are_those_that_a_model_learned_with(shop):
    columns = Columns.of(structure(shop))
    turns = make_turns([{"policy": "c", "task": "x", "steps": [("ls -la", "total 0", 1)]}])
    reader = SessionReader(turns, columns)
    assert reader.logged().shape[1] == SessionReader(shop).logged().shape[1]
