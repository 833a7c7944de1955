"""What a director asks: which of several options fits best. Any text policy can answer, and so can a function."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from preplay.policies import AgentState, Policy
from preplay.seeding import numpy_rng


class Adviser(Protocol):
    """Ranks options in words."""

    def rank(self, question: str, options: Sequence[str]) -> np.ndarray:
        """A score per option, float64 [n]; higher is better."""
        ...


@dataclass(frozen=True)
class PolicyAdviser:
    """A text policy (an agent, a language model behind one, a function) as an adviser.

    It is asked in words with numbered options. An option that the answer names, by number or text, scores 1;
    the others score the share of their words that the answer holds, less than 1.

    Args:
        policy: Anything that satisfies ``preplay.policies.Policy``.
        seed: For policies that draw.
    """

    policy: Policy
    seed: int = 0

    def rank(self, question: str, options: Sequence[str]) -> np.ndarray:
        """Scores from one answer."""
        listed = "\n".join(f"{number}. {option}" for number, option in enumerate(options, 1))
        state = AgentState(f"{question}\n{listed}\nAnswer with the number or the text of one option.")
        answer = self.policy.act([state], numpy_rng(self.seed, "adviser", question)).actions[0]
        return np.array([_agreement(answer, number, option) for number, option in enumerate(options, 1)])


def _agreement(answer: str, number: int, option: str) -> float:
    said, meant = answer.strip().lower(), option.strip().lower()
    if re.match(rf"(option\s*)?{number}\b", said) or meant in said:
        return 1.0
    words = set(re.findall(r"\w+", meant))
    return 0.99 * len(words & set(re.findall(r"\w+", said))) / max(len(words), 1)
