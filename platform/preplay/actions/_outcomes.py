"""What an observation says about the action before it: a class by rule, learned where no rule fits."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from preplay.actions._types import OutcomeRule

GENERAL_RULES = (
    OutcomeRule(r"\A\s*\Z", "nothing"),
    OutcomeRule(r"\A\s*(?:\[\]|\{\}|\(\)|null|none|no (?:results?|rows?|matches)[^\n]{0,60})\s*\Z", "empty"),
    OutcomeRule(r"\A[^\n]{0,200}syntax ?error", "error: syntax"),
    OutcomeRule(
        r"\A[^\n]{0,200}(?:not found|no such|doesn't exist|does not exist|undefined|is not defined)",
        "error: unknown name",
    ),
    OutcomeRule(
        r"\A[^\n]{0,80}(?:permission denied|not allowed|not permitted|forbidden|unauthori[sz]ed)", "refusal"
    ),
    OutcomeRule(r"\A\s*(?:[\w.]*(?:error|exception)\b|traceback|failed|invalid|fatal)", "error: other"),
    OutcomeRule(r"\bnothing happens\b|\bcan(?:no|')t do that\b", "error: no effect"),
    OutcomeRule(
        r"\A\s*(?:ok(?:ay)?|done|success\w*|created|updated|deleted|saved|completed)\b", "confirmation"
    ),
    OutcomeRule(r"\byou (?:put|pick up|open|close|clean|heat|cool|turn on|turn off)\b", "confirmation"),
    OutcomeRule(r"\A\s*[\[({<]", "data"),
)
"""Asked in this order after the rules of the dataset's adapters."""

OTHER = "other"
_LEAST = 20
_MOST = 4000
_SURE = 0.7
_HEAD = 2000


@dataclass(frozen=True)
class OutcomeClass:
    """Class of an observation and the names that it says do not exist or are not accepted."""

    outcome: str
    rejected: tuple[str, ...] = ()


class OutcomeClassifier:
    """Rules first; what no rule knows goes to a classifier of words learned from what the rules know.

    Args:
        rules: The adapters' rules; the general ones follow.
    """

    def __init__(self, rules: Sequence[OutcomeRule] = ()):
        self.rules = (*rules, *GENERAL_RULES)
        self._compiled = [(re.compile(r.pattern, re.IGNORECASE), r.outcome) for r in self.rules]
        self._vectorizer = HashingVectorizer(
            n_features=2**14, alternate_sign=False, token_pattern=r"[^\W\d_]+"
        )
        self.learned_share = 0.0

    def by_rule(self, text: str) -> OutcomeClass | None:
        """The first rule that fits, or None."""
        head = text[:_HEAD]
        for pattern, outcome in self._compiled:
            if match := pattern.search(head):
                return OutcomeClass(outcome, tuple(g for g in match.groups() if g))
        return None

    def classify(self, texts: Sequence[str]) -> list[OutcomeClass]:
        """Classes of distinct observations; what stays unsure is ``other``."""
        found = [self.by_rule(text) for text in texts]
        unknown = [i for i, outcome in enumerate(found) if outcome is None]
        if unknown:
            labels = self._learn(texts, found, unknown)
            for i, label in zip(unknown, labels, strict=True):
                found[i] = OutcomeClass(label)
        self.learned_share = sum(found[i] != OutcomeClass(OTHER) for i in unknown) / max(1, len(texts))
        return [outcome or OutcomeClass(OTHER) for outcome in found]

    def _learn(self, texts: Sequence[str], found: list[OutcomeClass | None], unknown: list[int]) -> list[str]:
        counts = Counter(o.outcome for o in found if o)
        usable = [
            i for i, o in enumerate(found) if o and o.outcome != "nothing" and counts[o.outcome] >= _LEAST
        ]
        usable = usable[:: max(1, len(usable) // _MOST)]
        labels = [o.outcome for i in usable if (o := found[i])]
        if len(set(labels)) < 2:
            return [OTHER] * len(unknown)
        learned = LogisticRegression(C=10, max_iter=200).fit(self._words(texts, usable), labels)
        chance = learned.predict_proba(self._words(texts, unknown))
        names = learned.classes_[chance.argmax(1)]
        return [str(n) if p >= _SURE else OTHER for n, p in zip(names, chance.max(1), strict=True)]

    def _words(self, texts: Sequence[str], rows: Sequence[int]):
        return self._vectorizer.transform([texts[i][:_HEAD] for i in rows])


def rejected_names(found: OutcomeClass) -> list[str]:
    """The rejected names as terms: without what qualifies them."""
    return [name.split(".")[-1].lower() for name in found.rejected]


def is_error(outcomes: Sequence[str]) -> np.ndarray:
    """bool [R]: which classes are errors."""
    return np.array([o.startswith("error") for o in outcomes], bool)
