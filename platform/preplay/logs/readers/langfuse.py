"""Langfuse exports: traces with their observations and scores, or flat observations and scores."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._messages import AGENT, USER, Message, parse_arguments, request_turn
from preplay.logs._records import Merged, Outcome, Quarantined, RawTurn, canonical_json, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message
from preplay.logs.readers._common import (
    as_dict,
    dict_or_empty,
    list_or_empty,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)

_TYPES = (
    "GENERATION",
    "SPAN",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
)
_REWARD_NAMES = ("reward", "success", "score")


@register
class Langfuse:
    """A trace with ``observations`` and ``scores``, an observation with ``traceId``, or a score."""

    name = "langfuse"
    description = "Langfuse exports (traces, observations, scores)"
    example = (
        '{"id": "t", "sessionId": "s", "observations": [{"id": "o", "type": "GENERATION", "startTime": '
        '"2024-05-01T10:00:00Z", "model": "gpt-4o", "input": [{"role": "user", "content": "Hi"}], "output": '
        '{"role": "assistant", "content": "Hello"}, "usage": {"output": 2}}], '
        '"scores": [{"name": "reward", "value": 1}]}'
    )
    fields = "observations (type, input, output, model, startTime, usage, cost), scores, sessionId, traceId"
    quirks = (
        "camelCase and snake_case keys; usage, usageDetails, usage_details; input and output as JSON text; null "
        "inputs are refused; one score per trace or the one named reward, success or score; scores of one observation"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        return sniff_record(head, _fits, 0.9, "observations of a trace")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _record, "observations")


def _fits(record: dict[str, Any]) -> bool:
    observations = record.get("observations")
    if isinstance(observations, list) and "id" in record and all(isinstance(o, dict) for o in observations):
        return "trajectory" not in record
    return (
        _key(record, "traceId") is not None
        and ("type" in record or "value" in record)
        and "run_type" not in record
    )


def _key(record: dict[str, Any], camel: str) -> Any:
    """A field by its camelCase or snake_case name."""
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in camel)
    return record.get(camel, record.get(snake))


def _record(record: JsonRecord, source: str) -> list[Item]:
    row = as_dict(record.value, "the record")
    digest = hash_record(record.raw)
    if isinstance(row.get("observations"), list):
        return _trace(row, source, digest)
    session = _key(row, "sessionId") or _key(row, "traceId")
    if row.get("type") in _TYPES:
        return _observation(row, session, {}, source, digest)
    if "value" in row:
        return [Outcome(session, row["value"], source, digest)]
    raise ValueError("neither a trace, nor an observation, nor a score")


def _trace(trace: dict[str, Any], source: str, digest: str) -> list[Item]:
    session = _key(trace, "sessionId") or trace.get("id")
    scores = [as_dict(s, "a score") for s in list_or_empty(trace.get("scores"))]
    of_turn = {s["observationId"]: s.get("value") for s in scores if isinstance(s.get("observationId"), str)}
    items: list[Item] = []
    for i, raw in enumerate(trace["observations"]):
        place = f"{source}#observations/{i}" if "#" not in source else f"{source}/observations/{i}"
        try:
            items += _observation(as_dict(raw, "an observation"), session, of_turn, place, digest)
        except ValueError as error:
            items.append(Quarantined(place, "observations", str(error), excerpt(raw)))
    reward = _session_reward([s for s in scores if not isinstance(s.get("observationId"), str)])
    turns = [item for item in items if isinstance(item, RawTurn)]
    if reward is not None and not turns:
        items.append(Outcome(session, reward, f"{source}#scores", digest))
    elif reward is not None:
        _spread_reward(turns, reward)
    return items or [Merged(source, str(session))]


def _spread_reward(turns: list[RawTurn], reward: Any) -> None:
    """A trace's score is the reward of its last decision; its other decisions without a score earn 0."""
    for turn in turns:
        turn.values.setdefault("reward", 0.0)
    max(turns, key=lambda t: str(t.values.get("timestamp"))).values["reward"] = reward


def _session_reward(scores: list[dict[str, Any]]) -> Any:
    """The score named reward, success or score; else the only one; else None."""
    usable = {s.get("name"): s.get("value") for s in scores if isinstance(s.get("value"), bool | int | float)}
    named = [usable[n] for n in _REWARD_NAMES if n in usable]
    if named:
        return named[0]
    return next(iter(usable.values())) if len(usable) == 1 else None


def _observation(
    row: dict[str, Any], session: Any, scores: dict[str, Any], source: str, digest: str
) -> list[Item]:
    if row.get("type") != "GENERATION":
        return [Merged(source, str(session))]
    request, answer = (
        _messages(row.get("input"), USER, "input"),
        _messages(row.get("output"), AGENT, "output"),
    )
    answers = [m for m in answer if m.role == AGENT]
    if not answers:
        raise ValueError("output holds no message of the agent")
    values = request_turn([*request, *answer[: answer.index(answers[-1])]], answers[-1])
    extras = values.pop("extras") | without(row, "input", "output", "startTime", "start_time", "model")
    usage = next(
        (u for k in ("usageDetails", "usage_details", "usage") if (u := dict_or_empty(row.get(k)))), {}
    )
    values |= {
        "policy": text_or_none(row.get("model")),
        "timestamp": _key(row, "startTime"),
        "tokens": next(
            (usage[k] for k in ("output", "completionTokens", "completion_tokens") if k in usage), None
        ),
        "cost": _key(row, "calculatedTotalCost"),
        "latency_s": row.get("latency"),
        "reward": scores.get(str(row.get("id"))),
    }
    return [RawTurn(session, {k: v for k, v in values.items() if v is not None}, source, digest, extras)]


def _messages(value: Any, role: str, what: str) -> list[Message]:
    """Messages from any shape of a generation's input or output."""
    value = _parsed(value)
    if isinstance(value, dict):
        inner = next((value[k] for k in ("messages", "choices", "message") if value.get(k)), None)
        if inner is not None:
            return _messages(inner, role, what)
        if "role" not in value:
            return [Message(role, _text(value))]
        value = [value]
    if value in (None, "", []):
        raise ValueError(f"{what} is missing")
    if isinstance(value, list) and all(isinstance(m, dict) for m in value):
        return [chat_message(m["message"] if "message" in m else {"role": role} | m) for m in value]
    return [Message(role, _text(value))]


def _parsed(value: Any) -> Any:
    """JSON text as the value it holds, everything else as it is."""
    return parse_arguments(value) if isinstance(value, str) and value[:1] in "[{" and value else value


def _text(value: Any) -> str:
    if isinstance(value, dict):
        for key in ("content", "text", "completion", "input", "output"):
            if isinstance(value.get(key), str) and len(value) == 1:
                return value[key]
    return value if isinstance(value, str) else canonical_json(value)
