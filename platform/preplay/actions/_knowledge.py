"""The environment knowledge base: what sessions of the same environment have shown to exist, or not to exist.

E environments, V terms, P policies, K pairs of environment and term.
"""

from dataclasses import dataclass, field
from pathlib import Path

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
    """Which policies' sessions showed a term in an environment: ``key`` int64 [K] sorted, ``seen`` bool [K, P]."""

    key: np.ndarray
    seen: np.ndarray

    def known(self, key: np.ndarray, without: np.ndarray) -> np.ndarray:
        """bool [Q]: whether a policy that is not left out showed the term.

        Args:
            key: int64 [Q] environment × V + term.
            without: bool [Q, P] policies to leave out per query.
        """
        if not len(self.key):
            return np.zeros(len(key), bool)
        place = np.searchsorted(self.key, key).clip(max=len(self.key) - 1)
        hit = self.key[place] == key
        return hit & (self.seen[place] & ~without).any(1)


@dataclass(frozen=True)
class KnowledgeBase:
    """Facts pooled per environment over sessions, each with the policies whose sessions showed it.

    ``shown``: terms in observations that were no errors, and names used in actions that worked.
    ``refused``: names that an observation called unknown. Whoever asks names the policies to leave out, so that
    a policy's own sessions never vouch for its actions.
    """

    shown: Facts
    refused: Facts
    vocabulary: list[str]
    environments: list[str]
    policies: list[str]
    left_out: tuple[str, ...] = field(default=())

    def facts(self, environment: str, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
        """The terms known of an environment, for reading: ``shown`` and ``refused``."""
        if environment not in self.environments:
            raise PreplayError(
                f"nothing is known of the environment {environment!r}.",
                fix=f"Known: {', '.join(self.environments[:20]) or 'none (the logs name no environment)'}.",
            )
        at = self.environments.index(environment) * len(self.vocabulary)
        gone = np.isin(self.policies, without)[None]
        return {
            name: sorted(
                self.vocabulary[k - at] for k in facts.key[_within(facts, at, len(self.vocabulary), gone)]
            )
            for name, facts in (("shown", self.shown), ("refused", self.refused))
        }


def _within(facts: Facts, start: int, size: int, gone: np.ndarray) -> np.ndarray:
    return (facts.key >= start) & (facts.key < start + size) & (facts.seen & ~gone).any(1)


def build_knowledge(turns: StructuredTurns, *, without: tuple[str, ...] = ()) -> KnowledgeBase:
    """Pool what the sessions of all policies but ``without`` showed."""
    use = ~np.isin(np.array(turns.policies)[turns.policy], without) & (turns.environment >= 0)
    worked = ~turns.error
    shown = _merge([(turns.facts, use), (turns.names, use & worked), (turns.values, use & worked)])
    refused = _merge([(turns.rejected, use)])
    return KnowledgeBase(
        _pool(shown, turns),
        _pool(refused, turns),
        turns.vocabulary,
        turns.environments,
        turns.policies,
        without,
    )


def _merge(parts: list[tuple[Pairs, np.ndarray]]) -> Pairs:
    kept = [(pairs.row[use[pairs.row]], pairs.term[use[pairs.row]]) for pairs, use in parts]
    return Pairs(np.concatenate([r for r, _ in kept]), np.concatenate([t for _, t in kept]))


def _pool(pairs: Pairs, turns: StructuredTurns) -> Facts:
    size = len(turns.vocabulary)
    key = turns.environment[pairs.row] * size + pairs.term
    keys, place = np.unique(key, return_inverse=True)
    seen = np.zeros((len(keys), len(turns.policies)), bool)
    seen[place, turns.policy[pairs.row]] = True
    return Facts(keys, seen)


def save_knowledge(base: KnowledgeBase, path: str | Path) -> None:
    """Write a knowledge base as an artifact: one row per environment, kind and term with its policies."""
    size = len(base.vocabulary)
    rows = []
    for kind, facts in (("shown", base.shown), ("refused", base.refused)):
        for key, seen in zip(facts.key.tolist(), facts.seen, strict=True):
            by = [base.policies[i] for i in np.flatnonzero(seen)]
            rows.append((base.environments[key // size], kind, base.vocabulary[key % size], by))
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    types = (pa.string(), pa.string(), pa.string(), pa.list_(pa.string()))
    arrays = [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)]
    config = {"environments": base.environments, "policies": base.policies, "left_out": list(base.left_out)}
    with write_artifact(path, KIND, config=config) as staging:
        table = pa.Table.from_arrays(arrays, names=["environment", "kind", "term", "policies"])
        pq.write_table(table, staging.path / _FILE)
        staging.metrics["facts"] = table.num_rows


def load_knowledge(path: str | Path) -> KnowledgeBase:
    """Read a knowledge base; its vocabulary is rebuilt from the terms in it."""
    artifact = open_artifact(path, KIND)
    table = pq.read_table(artifact.file(_FILE)).to_pylist()
    config = artifact.manifest.config
    environments, policies = config["environments"], config["policies"]
    vocabulary = list(dict.fromkeys(row["term"] for row in table))
    number = {term: i for i, term in enumerate(vocabulary)}
    place = {name: i for i, name in enumerate(environments)}
    parts = {
        kind: sorted(
            (place[r["environment"]] * len(vocabulary) + number[r["term"]], r["policies"])
            for r in table
            if r["kind"] == kind
        )
        for kind in ("shown", "refused")
    }
    made = [
        Facts(
            np.array([k for k, _ in part], np.int64),
            np.array([np.isin(policies, by) for _, by in part], bool),
        )
        if part
        else Facts(np.zeros(0, np.int64), np.zeros((0, len(policies)), bool))
        for part in parts.values()
    ]
    return KnowledgeBase(made[0], made[1], vocabulary, environments, policies, tuple(config["left_out"]))
