"""One raw turn checked field by field: typed values, or the first field that is wrong and why."""

import datetime as dt
import json
import math
from collections import Counter
from typing import Any

import pyarrow as pa

from preplay.logs._records import Outcome, Quarantined, RawTurn, canonical_json, excerpt

STEP_SCHEMA = pa.schema(
    [
        pa.field("session_id", pa.string(), nullable=False),
        pa.field("order", pa.int64()),
        pa.field("file", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("lost", pa.bool_(), nullable=False),
        pa.field("outcome", pa.bool_(), nullable=False),
        pa.field("policy", pa.string(), nullable=False),
        pa.field("task", pa.string()),
        pa.field("state", pa.string(), nullable=False),
        pa.field("next_state", pa.string()),
        pa.field("whole_state", pa.bool_(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("proposed_action", pa.string()),
        pa.field("reward", pa.float64()),
        pa.field("terminated", pa.bool_()),
        pa.field("truncated", pa.bool_()),
        pa.field("behavior_logprob", pa.float64()),
        pa.field("tokens", pa.int64()),
        pa.field("cost", pa.float64()),
        pa.field("latency_s", pa.float64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("extras", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("record_hash", pa.string(), nullable=False),
    ]
)
"""A checked step before sessions are assembled.

``order`` is the logged turn number, ``seq`` the order of arrival in ``file``, ``lost`` marks the place of a
turn that was quarantined, ``outcome`` a session's reward logged apart from its turns, ``whole_state`` says
that state and next_state may carry the whole history.
"""

_LOGPROB_ROUNDING = 1e-6
_LARGEST = 1.7976931348623157e308
_TRUE, _FALSE = {"true", "1", "yes", "t"}, {"false", "0", "no", "f", ""}
_EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))

Step = dict[str, Any]
_BLANK: Step = dict.fromkeys(STEP_SCHEMA.names) | {
    **dict.fromkeys(("policy", "state", "action"), ""),
    **dict.fromkeys(("lost", "outcome", "whole_state"), False),
    "extras": "{}",
}


class FieldError(ValueError):
    """A field of a raw turn that cannot be used."""

    def __init__(self, field: str, reason: str):
        super().__init__(field, reason)
        self.field, self.reason = field, reason


def check_turn(
    raw: RawTurn, file: str, seq: int, notes: Counter[str]
) -> tuple[Step | None, Quarantined | None]:
    """Check and convert one raw turn; ``notes`` counts what was accepted only with a remark.

    A turn that fails is quarantined; where its session is known, the step marks the place it leaves empty.
    """
    try:
        return _step(raw, file, seq, notes), None
    except FieldError as error:
        field, reason = error.field, error.reason
    except RecursionError:
        field, reason = "record", "nested too deeply"
    shown = excerpt(f"{raw.session_id!r}: {raw.values!r}")
    return _lost(raw, file, seq), Quarantined(raw.source, field, reason, shown)


def check_outcome(raw: Outcome, file: str, seq: int, notes: Counter[str]) -> Step | Quarantined:
    """Check a session's reward that was logged apart from its turns."""
    place = {"file": file, "seq": seq, "source": raw.source, "record_hash": raw.record_hash}
    try:
        reward = _reward(raw.reward, notes)
        if reward is None:
            raise FieldError("reward", "missing")
        return (
            _BLANK
            | place
            | {"session_id": _session_id(raw.session_id, notes), "reward": reward, "outcome": True}
        )
    except FieldError as error:
        return Quarantined(raw.source, error.field, error.reason, excerpt(repr(raw.reward)))


def _lost(raw: RawTurn, file: str, seq: int) -> Step | None:
    try:
        session_id = _session_id(raw.session_id, Counter())
    except FieldError:
        return None
    try:
        order = _order(raw.values.get("turn"))
    except FieldError:
        order = None
    place = {"file": file, "seq": seq, "source": raw.source, "record_hash": raw.record_hash}
    return _BLANK | place | {"session_id": session_id, "order": order, "lost": True}


def _step(raw: RawTurn, file: str, seq: int, notes: Counter[str]) -> Step:
    """Every field typed. Plain values are passed through at once: this runs for each turn of every log."""
    get = raw.values.get
    whole = "state" in raw.values or "next_state" in raw.values
    state, following = ("state", "next_state") if whole else ("observation", "next_observation")
    return {
        "session_id": _session_id(raw.session_id, notes),
        "order": order if type(order := get("turn")) is int and 0 <= order < 2**31 else _order(order),
        "file": file,
        "seq": seq,
        "source": raw.source,
        "record_hash": raw.record_hash,
        "lost": False,
        "outcome": False,
        "policy": _optional_text(get("policy"), notes) or "logged",
        "task": _optional_text(get("task"), notes),
        "state": _text(state, get(state), notes),
        "next_state": _optional_text(get(following), notes),
        "whole_state": whole,
        "action": _text("action", get("action"), notes),
        "proposed_action": _optional_text(get("proposed_action"), notes),
        "reward": _reward(get("reward"), notes),
        "terminated": _flag("terminated", get("terminated")),
        "truncated": _flag("truncated", get("truncated")),
        "behavior_logprob": _logprob(get("behavior_logprob"), get("action_prob")),
        "tokens": _count("tokens", get("tokens")),
        "cost": _number("cost", get("cost")),
        "latency_s": _number("latency_s", get("latency_s")),
        "timestamp": _timestamp(get("timestamp")),
        "extras": "{}"
        if not raw.extras and get("extras") is None
        else _extras(get("extras"), raw.extras, notes),
    }


def _session_id(value: Any, notes: Counter[str]) -> str:
    if type(value) is str and value.isascii() and value and not value.isspace():
        return value
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldError("session_id", "missing" if value is None else f"a {type(value).__name__}, not text")
    text = _clean(str(value), notes)
    if not text.strip():
        raise FieldError("session_id", "empty")
    return text


def _order(value: Any) -> int | None:
    if value is None or value == "":
        return None
    number = parse_number("turn_id", value)
    if number != int(number) or not 0 <= number < 2**31:
        raise FieldError("turn_id", f"{value!r} is not a whole number from 0 up")
    return int(number)


def text_of(value: Any) -> str:
    """Text as it is; anything structured as canonical JSON."""
    return value if isinstance(value, str) else canonical_json(value)


def _text(field: str, value: Any, notes: Counter[str]) -> str:
    if type(value) is str and value.isascii():
        return value
    if value is None:
        raise FieldError(field, "missing")
    return _clean(text_of(value), notes)


def _optional_text(value: Any, notes: Counter[str]) -> str | None:
    if value is None or (type(value) is str and value.isascii()):
        return value
    return _clean(text_of(value), notes)


def _clean(text: str, notes: Counter[str]) -> str:
    """Lone surrogates (halves of a character, left by a careless cut) cannot be stored as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        notes["half_characters"] += 1
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _reward(value: Any, notes: Counter[str]) -> float | None:
    if type(value) is float and -_LARGEST <= value <= _LARGEST:
        return value
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        notes["reward_as_boolean"] += 1
        return float(value)
    if isinstance(value, str):
        notes["reward_as_text"] += 1
    return _number("reward", value)


def parse_number(field: str, value: Any) -> float:
    """A finite number, also from text; FieldError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(field, f"a {type(value).__name__}, not a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise FieldError(field, f"{str(value)[:40]!r} is not a number") from None
    if not math.isfinite(number):
        raise FieldError(field, f"{value!r} is not a finite number")
    return number


def _number(field: str, value: Any) -> float | None:
    return None if value is None or value == "" else parse_number(field, value)


def _count(field: str, value: Any) -> int | None:
    number = _number(field, value)
    if number is None:
        return None
    if number != int(number) or not 0 <= number < 2**53:
        raise FieldError(field, f"{value!r} is not a count")
    return int(number)


def _flag(field: str, value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, str | int) else "?"
    if isinstance(value, str) and not text:
        return None
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise FieldError(field, f"{str(value)[:40]!r} is neither true nor false")


def _logprob(logged: Any, probability: Any) -> float | None:
    if logged is None and probability is None:
        return None
    logprob = _number("behavior_logprob", logged)
    if logprob is not None:
        if logprob > _LOGPROB_ROUNDING:
            fix = "a probability belongs into action_prob"
            raise FieldError("behavior_logprob", f"{logprob} is above 0, no log-probability ({fix})")
        return min(logprob, 0.0)
    probability = _number("action_prob", probability)
    if probability is None:
        return None
    if not 0 < probability <= 1 + _LOGPROB_ROUNDING:
        raise FieldError("action_prob", f"{probability} is not a probability above 0")
    return math.log(min(probability, 1.0))


def _timestamp(value: Any) -> dt.datetime | None:
    if value is None or value == "":
        return None
    if isinstance(value, dt.datetime):
        return _utc(value)
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            return _utc(dt.datetime.fromisoformat(value.strip()))
        seconds = parse_number("timestamp", value)
        unit = next((unit for limit, unit in _EPOCH_UNITS if seconds >= limit), 1.0)
        return dt.datetime.fromtimestamp(seconds / unit, dt.UTC)
    except (ValueError, OverflowError, OSError) as error:
        if isinstance(error, FieldError):
            raise
        raise FieldError("timestamp", f"{str(value)[:40]!r} is no time") from None


def _utc(value: dt.datetime) -> dt.datetime:
    """Times without a zone are taken as UTC."""
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _extras(given: Any, own: dict[str, Any], notes: Counter[str]) -> str:
    """The record's own ``extras`` field and the fields that nothing else holds, as one object."""
    if given in (None, ""):
        return _clean(canonical_json(own), notes)
    value = _json_or_none(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        raise FieldError("extras", "not a JSON object")
    if isinstance(given, str) and not own:
        return _clean(given, notes)
    if value.keys() & own.keys():
        return _clean(canonical_json({**own, "extras": value}), notes)
    return _clean(canonical_json({**value, **own}), notes)


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
