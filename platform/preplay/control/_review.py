"""A sheet for human graders who must not know which answer the critic chose."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from preplay.seeding import numpy_rng

_TITLE = "Which answer is better?"
_STYLE = (
    "body{font-family:sans-serif;max-width:70rem;margin:auto}div{display:grid;grid-template-columns:1fr 1fr;gap:1rem}"
    "pre{white-space:pre-wrap;background:#f4f4f4;padding:.5rem;overflow-wrap:anywhere}"
)
_COLUMNS = ("pair", "task", "state", "answer_a", "answer_b", "better (a/b/same)", "comment")


@dataclass(frozen=True)
class ReviewPair:
    """What the agent did without a critic and with it in the same state."""

    task: str
    state: str
    without: str
    with_critic: str


@dataclass(frozen=True)
class ReviewSheet:
    """Blind pairs; ``key`` says per pair which side (a or b) is the critic's and is kept away from the graders."""

    pairs: list[ReviewPair]
    key: list[str]

    def csv(self) -> str:
        """The sheet for a spreadsheet; texts that begin like formulas are made harmless."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(_COLUMNS)
        for number, (pair, (a, b)) in enumerate(zip(self.pairs, self._sides(), strict=True)):
            writer.writerow([number, *(_plain(text) for text in (pair.task, pair.state, a, b)), "", ""])
        return out.getvalue()

    def html(self) -> str:
        """The sheet as one page without scripts."""
        rows = "".join(
            f"<section><h2>Pair {n}</h2><pre>{html.escape(p.task)}</pre><pre>{html.escape(p.state)}</pre><div>"
            f"<pre>{html.escape(a)}</pre><pre>{html.escape(b)}</pre></div>"
            "<p>Better: ☐ left ☐ right ☐ same</p></section>"
            for n, (p, (a, b)) in enumerate(zip(self.pairs, self._sides(), strict=True))
        )
        head = f"<meta charset=utf-8><title>{_TITLE}</title><style>{_STYLE}</style>"
        return f"<!doctype html><html lang=en>{head}<h1>{_TITLE}</h1>{rows}</html>"

    def win_rate(self, answers: Sequence[str]) -> float:
        """Share of pairs that the critic's side won; ``same`` counts half, empty answers are left out."""
        points = [0.5 if a == "same" else float(a == k) for a, k in zip(answers, self.key, strict=True) if a]
        return float(np.mean(points)) if points else float("nan")

    def _sides(self) -> list[tuple[str, str]]:
        return [
            (p.with_critic, p.without) if k == "a" else (p.without, p.with_critic)
            for p, k in zip(self.pairs, self.key, strict=True)
        ]


def review_sheet(pairs: Sequence[ReviewPair], *, count: int, seed: int) -> ReviewSheet:
    """Draw pairs whose sides differ and put each side left or right at random."""
    different = [pair for pair in pairs if pair.without != pair.with_critic]
    rng = numpy_rng(seed, "review")
    drawn = rng.choice(len(different), min(count, len(different)), replace=False) if different else []
    return ReviewSheet([different[i] for i in drawn], ["ab"[rng.integers(2)] for _ in drawn])


def _plain(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
