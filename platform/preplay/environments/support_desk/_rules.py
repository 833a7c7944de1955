"""The agents of the support desk as rules: cues in, weights over the eight intents out."""

from collections.abc import Mapping

from preplay.environments.support_desk._config import SOLVED, Intent
from preplay.environments.support_desk._cues import ANY_REMEDY, UNKNOWN, Cues

Weights = Mapping[Intent, float]

_ASK, _DIAGNOSE, _FIX = Intent.ASK, Intent.DIAGNOSE, Intent.FIX
_ESCALATE, _REFUND, _EMPATHISE = Intent.ESCALATE, Intent.REFUND, Intent.EMPATHISE
_UPSELL, _CLOSE = Intent.UPSELL, Intent.CLOSE


def _remedy(cues: Cues) -> Weights:
    """The remedy for the issue; a guess where the issue is not known."""
    if cues.remedy == UNKNOWN:
        return {remedy: 1 / 3 for remedy in ANY_REMEDY}
    return {Intent(cues.remedy): 1.0}


def _by_stage(cues: Cues) -> Weights:
    """Ask, diagnose, remedy, close: one stage after the other."""
    if cues.stage in (UNKNOWN, 0):
        return {_ASK: 1.0} if cues.last != _ASK or cues.stage == 0 else {_DIAGNOSE: 1.0}
    if cues.stage == 1:
        return {_DIAGNOSE: 1.0}
    return {_CLOSE: 1.0} if cues.stage == SOLVED else _remedy(cues)


def expert(cues: Cues) -> Weights:
    """Calms the customer first, goes through the stages, offers more once things are well."""
    if cues.stage == SOLVED:
        ready = cues.mood in (2, 3, UNKNOWN) and cues.trust != 0
        return (
            {_UPSELL: 1.0}
            if ready and not cues.sold and _UPSELL not in (cues.last, cues.before)
            else {_CLOSE: 1.0}
        )
    if cues.mood in (0, 1):
        return {_EMPATHISE: 1.0}
    return _by_stage(cues)


def diagnose_first(cues: Cues) -> Weights:
    """Goes through the stages whatever the mood."""
    return _by_stage(cues)


def fast_fixer(cues: Cues) -> Weights:
    """Offers repair steps at once, another remedy only when that failed."""
    if cues.stage == SOLVED:
        return {_CLOSE: 1.0}
    if cues.failed:
        return _remedy(cues)
    return {_FIX: 0.8, _DIAGNOSE: 0.2}


def remedy_rusher(cues: Cues) -> Weights:
    """Goes for the remedy that the complaint suggests; checks only what did not work."""
    if cues.stage == SOLVED:
        return {_CLOSE: 1.0}
    if cues.stage == 1 and cues.last in ANY_REMEDY:
        return _blend({_DIAGNOSE: 0.5}, 0.5, _remedy(cues))
    return _blend({_ASK: 0.7}, 0.3, _remedy(cues)) if cues.stage in (0, UNKNOWN) else _remedy(cues)


def empathic(cues: Cues) -> Weights:
    """Shows sympathy every second turn, and works through the stages in between."""
    if cues.stage == SOLVED:
        return {_CLOSE: 0.7, _EMPATHISE: 0.3}
    if cues.last != _EMPATHISE or cues.mood in (0, 1):
        return _blend({_EMPATHISE: 0.7}, 0.3, _by_stage(cues))
    return _by_stage(cues)


def pushy_upseller(cues: Cues) -> Weights:
    """Sells at every occasion."""
    if cues.stage == SOLVED:
        return {_UPSELL: 0.8, _CLOSE: 0.2}
    return _blend({_UPSELL: 0.35}, 0.65, _by_stage(cues))


def escalator(cues: Cues) -> Weights:
    """Asks once, then hands over to specialists."""
    if cues.stage == SOLVED:
        return {_CLOSE: 1.0}
    if cues.stage in (0, UNKNOWN):
        return {_ASK: 0.8, _ESCALATE: 0.2}
    return _remedy(cues) if cues.failed else {_ESCALATE: 0.6, _DIAGNOSE: 0.4}


def refunder(cues: Cues) -> Weights:
    """Pays the customer off; looks further only when the refund was the wrong thing."""
    if cues.stage == SOLVED:
        return {_CLOSE: 1.0}
    if cues.failed or cues.last == _REFUND:
        return _by_stage(cues)
    return _blend({_REFUND: 0.5}, 0.5, _by_stage(cues))


def cautious_closer(cues: Cues) -> Weights:
    """Checks everything twice before it acts or closes."""
    if cues.stage == SOLVED:
        return {_CLOSE: 0.4, _DIAGNOSE: 0.3, _ASK: 0.3}
    if cues.stage == 2:
        return _blend({_DIAGNOSE: 0.3}, 0.7, _remedy(cues))
    return {_ASK: 0.25, _DIAGNOSE: 0.75} if cues.stage == 1 else {_ASK: 0.75, _DIAGNOSE: 0.25}


def impatient_closer(cues: Cues) -> Weights:
    """Tries something once and closes the case."""
    if cues.stage in (0, UNKNOWN):
        return _blend({_ASK: 0.5, _CLOSE: 0.2}, 0.3, _remedy(cues))
    return {_CLOSE: 1.0} if cues.stage == SOLVED else _blend({_CLOSE: 0.4}, 0.6, _remedy(cues))


def adaptive(cues: Cues) -> Weights:
    """Business-like with a patient customer, soft with an angry one; offers when trusted."""
    if cues.mood == 0:
        return {_EMPATHISE: 0.9, _REFUND: 0.1}
    if cues.mood == 1 and cues.last != _EMPATHISE:
        return _blend({_EMPATHISE: 0.6}, 0.4, _by_stage(cues))
    if cues.stage == SOLVED and cues.mood == 3 and not cues.sold:
        return {_UPSELL: 0.7, _CLOSE: 0.3}
    return _by_stage(cues)


def scripted_loop(cues: Cues) -> Weights:
    """Follows a fixed script by turn number, never reading a word."""
    script = (_ASK, _DIAGNOSE, _FIX, _ESCALATE, _REFUND, _CLOSE)
    return {script[cues.turn % len(script)]: 1.0}


def random_agent(cues: Cues) -> Weights:
    """Any intent."""
    return dict.fromkeys(list(Intent)[:-1], 1 / 8)


def apprentice(cues: Cues) -> Weights:
    """Behaviour policy: knows the stages, soothes anger, often takes the wrong step."""
    if cues.stage == SOLVED:
        return {_CLOSE: 0.6, _UPSELL: 0.4}
    if cues.mood in (0, 1):
        return _blend({_EMPATHISE: 0.5}, 0.5, _by_stage(cues))
    return _by_stage(cues)


def by_the_book(cues: Cues) -> Weights:
    """Behaviour policy: details, then quick remedies, rarely soft, rarely selling."""
    if cues.stage == SOLVED:
        return {_CLOSE: 0.8, _DIAGNOSE: 0.2}
    if cues.stage in (0, UNKNOWN):
        return _blend({_ASK: 0.6, _DIAGNOSE: 0.2}, 0.2, _remedy(cues))
    if cues.stage == 1:
        return _blend({_DIAGNOSE: 0.5}, 0.5, _remedy(cues))
    return _blend({_ESCALATE: 0.1, _DIAGNOSE: 0.1}, 0.8, _remedy(cues))


def _blend(weights: Weights, share: float, rest: Weights) -> dict[Intent, float]:
    """``weights`` plus ``share`` of ``rest``; an intent in both gets the sum."""
    return {intent: weights.get(intent, 0.0) + share * rest.get(intent, 0.0) for intent in (*weights, *rest)}
