"""What a data card should make its reader worry about, in plain words."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from preplay.logs._card import DataCard

_MANY = 0.05
_LONG_TEXT = 20_000
_TELLING = 0.8


def card_warnings(card: "DataCard") -> list[str]:
    """One sentence per worry."""
    checks = (_rewards(card), _propensities(card), _ends(card), _copies(card), _lost(card), _texts(card))
    return [warning for warnings in checks for warning in warnings]


def _rewards(card: "DataCard") -> list[str]:
    if card.nonzero_rewards == 0:
        return ["All rewards are 0: join the outcomes before you evaluate anything."]
    if card.rewards.min == card.rewards.max:
        return [f"Every turn has the same reward ({card.rewards.min:g})."]
    return []


def _propensities(card: "DataCard") -> list[str]:
    p = card.propensities
    if p.present == 0:
        return ["No propensities are logged: estimators that weight by them are not available."]
    warnings = [] if p.present == 1 else [f"Only {p.present:.0%} of the turns have a propensity."]
    if p.one_value:
        warnings.append(f"Every propensity is {p.smallest:.4g}: a constant, hardly the policy's probability.")
    return warnings


def _ends(card: "DataCard") -> list[str]:
    share = card.truncated / card.sessions
    warnings = [f"{share:.0%} of the sessions are cut, not ended."] if share > _MANY else []
    leak = card.success_ends_session
    if leak is not None and leak > _TELLING:
        warnings.append(
            f"Success ends the session, so its length gives the outcome away (area under the curve {leak:.2f}): "
            "never use the number of turns as a feature."
        )
    return warnings


def _copies(card: "DataCard") -> list[str]:
    n = card.duplicate_sessions
    return [f"{n} sessions are equal to an earlier one in policy, task and text."] if n else []


def _lost(card: "DataCard") -> list[str]:
    total = sum(card.records.values())
    share = card.records.get("quarantined", 0) / total if total else 0
    return [f"{share:.0%} of the input records are in quarantine."] if share > _MANY else []


def _texts(card: "DataCard") -> list[str]:
    longest = max(spread.max for spread in card.text_lengths.values())
    warnings = [f"The longest text has {longest:,.0f} characters."] if longest > _LONG_TEXT else []
    if card.turns_per_session.max == 1:
        warnings.append("Every session has one turn: nothing can be learned about what follows an action.")
    return warnings
