"""Terms: the words by which an argument is recognised in a task or in an observation."""

import re

_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")
_LONGEST = 20_000
_MOST = 2_000


def terms(text: str) -> list[str]:
    """Distinct lower-case words; a number right behind a word also makes a term with it (``cabinet 1``).

    >>> terms("Cabinet 1 holds user_id=Ana_7")
    ['cabinet', 'cabinet 1', '1', 'holds', 'user_id', 'ana_7']
    """
    found: dict[str, None] = {}
    before = ""
    for word in _WORD.findall(text[:_LONGEST].lower()):
        if before and word.isdigit() and not before.isdigit():
            found[f"{before} {word}"] = None
        found[word] = None
        before = word
        if len(found) >= _MOST:
            break
    return list(found)


def mention(argument: str) -> list[str]:
    """The terms that must be known for an argument to be known: numbered things count as one.

    >>> mention("cabinet 1"), mention("#W23"), mention("Joe Smith")
    (['cabinet 1'], ['w23'], ['joe', 'smith'])
    """
    found: list[str] = []
    for word in _WORD.findall(argument[:_LONGEST].lower())[:200]:
        if word.isdigit() and found and not found[-1].isdigit() and " " not in found[-1]:
            found[-1] = f"{found[-1]} {word}"
        else:
            found.append(word)
    return list(dict.fromkeys(found))
