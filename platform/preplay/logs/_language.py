"""Which natural language the texts are in, by a seeded vote over a sample."""

import re
from collections import Counter
from collections.abc import Sequence

from langdetect import DetectorFactory, LangDetectException, detect_langs

DetectorFactory.seed = 0
_BLOCK = re.compile(r"^[\[{].*[\]}]$", re.MULTILINE)
_NOT_PROSE = re.compile(r"https?://\S+|[\w./\\-]*[/\\_=<>{}()\[\]][^\s]*|\d+")
_LETTERS_NEEDED = 20
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_CJK_NEEDED = 4
_PREFIX = 300
_MAJORITY = 0.5


def dominant_language(texts: Sequence[str]) -> str | None:
    """ISO 639-1 code of the language of most prose in the texts; None when none has a majority.

    JSON blocks, URLs and code-like words do not vote, nor do texts with less than 20 letters (4 for
    Chinese, Japanese and Korean).
    """
    votes: Counter[str] = Counter()
    for text in texts:
        votes.update(_vote(text))
        if max(votes.values(), default=0) > _MAJORITY * len(texts):
            break  # no other language can win any more, and detection is slow
    if not votes:
        return None
    language, count = votes.most_common(1)[0]
    return language if count > _MAJORITY * votes.total() else None


def _vote(text: str) -> list[str]:
    prose = " ".join(_NOT_PROSE.sub(" ", _BLOCK.sub(" ", text[:_PREFIX])).split())
    if len(_CJK.findall(prose)) < _CJK_NEEDED and sum(map(str.isalpha, prose)) < _LETTERS_NEEDED:
        return []
    try:
        return [detect_langs(prose)[0].lang.split("-")[0]]
    except LangDetectException:
        return []
