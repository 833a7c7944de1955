"""A discrete set of actions for a text world: the replies that the logs' agents really gave, thinned by clusters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from preplay.embedding import EmbeddedTurns
from preplay.errors import PreplayError
from preplay.seeding import derive_seed


@dataclass(frozen=True)
class ActionChoices:
    """K texts that an agent can choose from, and their embeddings (float32 [K, D])."""

    texts: tuple[str, ...]
    embeddings: np.ndarray

    def __post_init__(self):
        if self.embeddings.ndim != 2 or not 0 < len(self.texts) == len(self.embeddings):
            raise ValueError(f"{len(self.texts)} texts but embeddings {self.embeddings.shape}")

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of_texts(cls, texts: Sequence[str], turns: EmbeddedTurns) -> "ActionChoices":
        """Given texts, which must occur in the logs (their embeddings are taken from there)."""
        index = turns.bank.index
        if missing := [text for text in texts if text not in index]:
            raise PreplayError(
                f"the logs hold no text {missing[0][:80]!r}, so its embedding is not known.",
                fix="Choose among the logged actions, or build ActionChoices with embeddings of your own.",
            )
        rows = [index[text] for text in texts]
        return cls(tuple(texts), turns.bank.embeddings[rows])

    @classmethod
    def clustered(cls, turns: EmbeddedTurns, count: int, *, seed: int) -> "ActionChoices":
        """One logged action per cluster of the logged actions' embeddings: the one nearest to its centre.

        Raises:
            PreplayError: When the logs hold fewer distinct actions than ``count``.
        """
        ids = np.unique(turns.action_id)
        if count > len(ids):
            raise PreplayError(
                f"{count} choices were asked for, but the logs hold {len(ids)} distinct actions.",
                fix=f"Ask for at most {len(ids)}.",
            )
        points = turns.bank.embeddings[ids].astype(np.float64)
        means = KMeans(
            count,
            n_init=3,  # pyright: ignore[reportArgumentType]
            random_state=derive_seed(seed, "action choices") % 2**32,
        ).fit(points)
        nearest = np.unique(means.transform(points).argmin(0))
        chosen = ids[nearest]
        return cls(tuple(turns.bank.texts[i] for i in chosen.tolist()), turns.bank.embeddings[chosen])

    def nearest(self, embeddings: np.ndarray) -> np.ndarray:
        """The choice most similar to each action embedding, int64 [B] from float32 [B, D]."""
        return (embeddings @ self.embeddings.T).argmax(1)
