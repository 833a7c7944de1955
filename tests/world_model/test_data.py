"""Turn arrays: time alignment, splits by whole sessions, returns by hand."""

import numpy as np
import pytest

from preplay.errors import PreplayError
from preplay.world_model import turn_arrays
from preplay.world_model._data import return_to_go


def arrays(data, **changes):
    options = {"gamma": 0.97, "validation_fraction": 0.2, "split_by": "session", "seed": 1} | changes
    return turn_arrays(data, **options)


def test_return_to_go_by_hand():
    # Session 1: 1 + .5 * 2 = 2, then 2. Session 2: 4 alone. Nothing leaks across the boundary.
    assert return_to_go(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3]), 0.5).tolist() == [2.0, 2.0, 4.0]


def test_windows_stop_at_the_session_start(ring):
    turns = arrays(ring)
    window = turns.window_rows(3)
    second = int(np.flatnonzero(turns.turn == 1)[3])
    assert window[second].tolist() == [-1, second - 1, second]
    first = np.flatnonzero(turns.turn == 0)
    assert (window[first, :2] == -1).all()
    assert (window[:, -1] == np.arange(len(turns))).all()


def test_each_next_observation_is_the_following_observation(ring):
    turns = arrays(ring)
    follows = turns.session[1:] == turns.session[:-1]
    assert (turns.next_observation[:-1][follows] == turns.observation[1:][follows]).all()


def test_sessions_are_held_out_whole(ring):
    turns = arrays(ring)
    share = [turns.held_out[turns.session == s].mean() for s in range(turns.session.max() + 1)]
    assert set(share) == {0.0, 1.0}
    assert sum(share) == round(0.2 * len(share))


def test_same_seed_same_split_and_another_seed_another(ring):
    assert (arrays(ring).held_out == arrays(ring).held_out).all()
    assert (arrays(ring).held_out != arrays(ring, seed=2).held_out).any()


def test_one_session_cannot_be_split(ring):
    keep = np.zeros(len(ring.session_starts) - 1, bool)
    keep[0] = True
    with pytest.raises(PreplayError, match="only 1 session"):
        arrays(ring.select_sessions(keep))
