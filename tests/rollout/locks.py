"""Logs of an agent that names keys: every text is embedded as its kind alone."""

import numpy as np

from preplay.embedding import EmbeddedTurns, EncoderFingerprint, TextBank
from tests.backtest.conftest import key_logs

CALL = '{{"name": "unlock", "arguments": {{"key": "{key}"}}}}'
GUESS = CALL.format(key="z99")
KINDS = ("open door", "list", "unlock", "[('open'", "[('shut'", "[('k", "!!")
DIMENSION = 12
FINGERPRINT = EncoderFingerprint(
    model="by kind", weights_sha256="0", pooling="mean", dtype="float32", max_tokens=8, dimension=DIMENSION
)


def kind_of(text: str) -> int:
    return next(i for i, kind in enumerate(KINDS) if kind in text)


def embedded_keys() -> EmbeddedTurns:
    """Every text is embedded as its kind and a trace of noise: two keys cannot be told apart."""
    turns = key_logs({"p20": 0.2, "p50": 0.5, "p80": 0.8}, CALL, rooms=8, tasks=4)
    columns = {
        name: turns[name].to_pylist() for name in ("task", "observation", "action", "next_observation")
    }
    texts = list(dict.fromkeys([GUESS, *(text for column in columns.values() for text in column)]))
    rows = np.random.default_rng(0).normal(0, 0.01, (len(texts), DIMENSION))
    rows[np.arange(len(texts)), [kind_of(text) for text in texts]] += 1
    bank = TextBank(texts, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    task, seen, action, after = (
        np.array([bank.index[text] for text in column]) for column in columns.values()
    )
    return EmbeddedTurns(turns, bank, task, seen, action, after, FINGERPRINT)
