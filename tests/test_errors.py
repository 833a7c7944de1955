import pickle

from preplay.errors import PreplayError


def test_says_where_and_what_to_do():
    error = PreplayError("the reward is 'x'.", where="logs.jsonl:3", fix="Give a number.")
    assert str(error) == "logs.jsonl:3: the reward is 'x'. Give a number."
    assert str(PreplayError("the reward is 'x'.")) == "the reward is 'x'."


def test_travels_between_processes():
    error = pickle.loads(pickle.dumps(PreplayError("bad", where="here", fix="Do.")))
    assert (type(error), error.what, error.where, error.fix) == (PreplayError, "bad", "here", "Do.")
