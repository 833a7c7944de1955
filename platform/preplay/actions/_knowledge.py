"""The environment knowledge base: what sessions of the same environment have shown to exist, or not to exist.

E environments, V terms, P sources (policies, or the sessions of a task), K pairs of environment and term.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from preplay.actions._structure import Pairs, StructuredTurns
from preplay.artifacts import open_artifact, write_artifact
from preplay.errors import PreplayError

KIND = "knowledge"
_FILE = "facts.parquet"


@dataclass(frozen=True)
class Facts:
    """Which sources vouch for a term in an environment: ``key`` int64 [K] sorted, ``seen`` bool [K, P]."""

    key: np.ndarray
    seen: np.ndarray

    def find(self, key: np.ndarray, own: np.ndarray) -> "Witnesses":
        """Who vouches for N terms.

        Args:
            key: int64 [N] environment × V + term; negative where the environment is unknown.
            own: int64 [N] the source that asks.
        """
        place = np.full(len(key), -1)
        if len(self.key):
            near = np.searchsorted(self.key, key).clip(max=len(self.key) - 1)
            place = np.where(self.key[near] == key, near, -1)
        return Witnesses(place, own, self.seen)

    def within(self, start: int, size: int, kept: np.ndarray) -> list[int]:
        """Terms with a key in ``[start, start + size)`` that one of the sources ``kept`` bool [P] vouches for."""
        part = slice(*np.searchsorted(self.key, (start, start + size)))
        return (self.key[part][(self.seen[part] & kept).any(1)] - start).tolist()


class Witnesses:
    """Which sources other than their own vouch for N things; whoever else is left out is named with each question.

    Args:
        place: int64 [N] row of ``seen``; -1 where nobody vouches.
        own: int64 [N] a source that never counts; -1 where there is none.
        seen: bool [K, P].
    """

    def __init__(self, place: np.ndarray, own: np.ndarray, seen: np.ndarray):
        self._seen = np.pad(seen, ((0, 1), (0, 1)))  # what -1 points to: nobody
        self._place, self._own = place, own
        self._others = self._seen.sum(1)[place] - self._seen[place, own]

    def count(self, without: np.ndarray) -> np.ndarray:
        """int64 [N]: how many sources vouch, without those in ``without`` int64."""
        gone = sum(self._seen[self._place, source] & (self._own != source) for source in without.tolist())
        return self._others - gone


class Fact(NamedTuple):
    """One thing that a source (a policy, or the sessions of a task) brought up in an environment."""

    environment: str
    kind: str
    term: str
    source: str


@dataclass(frozen=True)
class KnowledgeBase:
    """Facts of several kinds pooled per environment, each with the sources that vouch for it.

    Whoever asks names the sources to leave out, so that a policy's own sessions never vouch for its actions.
    """

    kinds: dict[str, Facts]
    vocabulary: list[str]
    environments: list[str]
    sources: list[str]
    left_out: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> "KnowledgeBase":
        """Pool facts given one by one."""
        rows = list(facts)
        number: list[dict[str, int]] = [
            {name: i for i, name in enumerate(dict.fromkeys(column))} for column in zip(*rows, strict=True)
        ] or [{}, {}, {}, {}]
        environments, kinds, terms, sources = number
        codes = np.array(
            [[n[v] for n, v in zip(number, row, strict=True)] for row in rows], np.int64
        ).reshape(-1, 4)
        made = {}
        for kind, k in kinds.items():
            environment, _, term, source = codes[codes[:, 1] == k].T
            made[kind] = _pool(environment * len(terms) + term, source, len(sources))
        return cls(made, list(terms), list(environments), list(sources))

    def facts(self, environment: str, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
        """The terms known of an environment, sorted, by kind."""
        if environment not in self.environments:
            raise PreplayError(
                f"nothing is known of the environment {environment!r}.",
                fix=f"Known: {', '.join(self.environments[:20]) or 'none (the logs name no environment)'}.",
            )
        start, kept = (
            self.environments.index(environment) * len(self.vocabulary),
            ~np.isin(self.sources, without),
        )
        return {
            kind: sorted(self.vocabulary[k] for k in facts.within(start, len(self.vocabulary), kept))
            for kind, facts in self.kinds.items()
        }


def build_knowledge(turns: StructuredTurns, *, without: tuple[str, ...] = ()) -> KnowledgeBase:
    """Pool what the sessions of all policies but ``without`` showed.

    ``shown``: terms in observations that were no errors, and names used in actions that worked.
    ``refused``: names that an observation called unknown.
    """
    use = ~np.isin(np.array(turns.policies)[turns.policy], without) & (turns.environment >= 0)
    worked = use & ~turns.error
    parts = {
        "shown": [(turns.facts, use), (turns.names, worked), (turns.values, worked)],
        "refused": [(turns.rejected, use)],
    }
    kinds = {kind: _of_turns(turns, pairs) for kind, pairs in parts.items()}
    return KnowledgeBase(kinds, turns.vocabulary, turns.environments, turns.policies, without)


def _of_turns(turns: StructuredTurns, parts: list[tuple[Pairs, np.ndarray]]) -> Facts:
    kept = [(pairs.row[use[pairs.row]], pairs.term[use[pairs.row]]) for pairs, use in parts]
    row, term = (np.concatenate(found) for found in zip(*kept, strict=True))
    key = turns.environment[row] * len(turns.vocabulary) + term
    return _pool(key, turns.policy[row], len(turns.policies))


def _pool(key: np.ndarray, source: np.ndarray, sources: int) -> Facts:
    keys, place = np.unique(key, return_inverse=True)
    seen = np.zeros((len(keys), sources), bool)
    seen[place, source] = True
    return Facts(keys, seen)


def save_knowledge(base: KnowledgeBase, path: str | Path) -> None:
    """Write a knowledge base as an artifact: one row per environment, kind, term and source."""
    size = len(base.vocabulary)
    columns: list[list[str]] = [[], [], [], []]
    for kind, facts in base.kinds.items():
        for place, source in np.argwhere(facts.seen).tolist():
            environment, term = divmod(int(facts.key[place]), size)
            row = Fact(base.environments[environment], kind, base.vocabulary[term], base.sources[source])
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    with write_artifact(path, KIND, config={"left_out": list(base.left_out)}) as staging:
        table = pa.table(dict(zip(Fact._fields, (pa.array(c, pa.string()) for c in columns), strict=True)))
        pq.write_table(table, staging.path / _FILE)
        staging.metrics["facts"] = table.num_rows


def load_knowledge(path: str | Path) -> KnowledgeBase:
    """Read a knowledge base."""
    artifact = open_artifact(path, KIND)
    columns = pq.read_table(artifact.file(_FILE)).to_pydict()
    facts = map(Fact, *(columns[name] for name in Fact._fields))
    return replace(KnowledgeBase.of(facts), left_out=tuple(artifact.manifest.config["left_out"]))
