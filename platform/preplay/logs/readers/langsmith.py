"""LangSmith runs: one run per record; model runs are decisions, root runs carry feedback."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._messages import Message, request_turn
from preplay.logs._records import Merged, Outcome, RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import (
    as_dict,
    dict_or_empty,
    read_json_records,
    sniff_record,
    text_or_none,
    without,
)
from preplay.logs.readers._langchain import langchain_message

_MODEL_RUNS = ("llm", "chat_model")
_SESSION = ("thread_id", "session_id", "conversation_id")


@register
class LangSmith:
    """``{"id", "trace_id", "run_type", "dotted_order", "inputs", "outputs", "feedback_stats"}``."""

    name = "langsmith"
    description = "LangSmith run exports"
    example = (
        '{"id": "r1", "trace_id": "t1", "run_type": "llm", "dotted_order": "20240501T100000000000Zr1", "start_time": '
        '"2024-05-01T10:00:00", "inputs": {"messages": [{"role": "user", "content": "Hi"}]}, "outputs": {"choices": '
        '[{"message": {"role": "assistant", "content": "Hello"}}]}}'
    )
    fields = "inputs, outputs, trace_id, extra.metadata, dotted_order, start_time, total_cost, feedback_stats"
    quirks = (
        "LangChain and OpenAI message forms; order by start_time, else dotted_order; the session is the thread, else "
        "the trace; feedback of a root run is the session's outcome; chain and tool runs are merged"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            return "run_type" in record and ("dotted_order" in record or "trace_id" in record)

        return sniff_record(head, fits, 0.9, "run_type and dotted_order")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _run, "inputs")


def _run(record: JsonRecord, source: str) -> list[Item]:
    run = as_dict(record.value, "the record")
    digest = hash_record(record.raw)
    metadata = dict_or_empty(dict_or_empty(run.get("extra")).get("metadata"))
    session = (
        next((metadata[k] for k in _SESSION if metadata.get(k)), None) or run.get("trace_id") or run.get("id")
    )
    if run.get("run_type") not in _MODEL_RUNS:
        feedback = _feedback(run)
        if run.get("parent_run_id") is None and feedback is not None:
            return [Outcome(session, feedback, source, digest)]
        return [Merged(source, str(session))]
    if run.get("error"):
        raise ValueError(f"the run failed ({str(run['error'])[:80]})")
    request = [langchain_message(m) for m in _request(dict_or_empty(run.get("inputs")))]
    values = request_turn(request, _answer(dict_or_empty(run.get("outputs"))))
    extras = values.pop("extras") | without(run, "inputs", "outputs", "start_time", "total_cost", "id")
    values |= {
        "policy": text_or_none(metadata.get("ls_model_name")) or text_or_none(run.get("name")),
        "timestamp": run.get("start_time") or _from_order(run.get("dotted_order")),
        "tokens": run.get("completion_tokens"),
        "cost": run.get("total_cost"),
        "reward": _feedback(run),
    }
    return [RawTurn(session, {k: v for k, v in values.items() if v is not None}, source, digest, extras)]


def _request(inputs: dict[str, Any]) -> list[Any]:
    messages = inputs.get("messages")
    if (
        isinstance(messages, list)
        and messages
        and isinstance(messages[0], list)
        and not isinstance(messages[0][:1], str)
    ):
        inner = messages[0]
        if not inner or isinstance(inner[0], dict | list):  # a batch of one
            return inner
    if isinstance(messages, list):
        return messages
    for key in ("input", "prompt", "question"):
        if isinstance(inputs.get(key), str):
            return [{"role": "user", "content": inputs[key]}]
    if isinstance(inputs.get("prompts"), list):
        return [{"role": "user", "content": p} for p in inputs["prompts"]]
    raise ValueError("inputs hold no messages")


def _answer(outputs: dict[str, Any]) -> Message:
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        if isinstance(generations.get("message"), dict):
            return langchain_message(generations["message"])
        return langchain_message({"role": "assistant", "content": generations.get("text")})
    choices = outputs.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return langchain_message(choices[0].get("message"))
    for key in ("message", "output"):
        if isinstance(outputs.get(key), dict):
            return langchain_message(outputs[key])
        if isinstance(outputs.get(key), str):
            return langchain_message({"role": "assistant", "content": outputs[key]})
    if isinstance(outputs.get("role"), str):
        return langchain_message(outputs)
    raise ValueError("outputs hold no answer")


def _feedback(run: dict[str, Any]) -> Any:
    """The one feedback average of a run; None where there is none or more than one."""
    stats = [dict_or_empty(s).get("avg") for s in dict_or_empty(run.get("feedback_stats")).values()]
    numbers = [s for s in stats if isinstance(s, int | float)]
    return numbers[0] if len(numbers) == 1 else None


def _from_order(order: Any) -> str | None:
    """``20240501T100000123456Z<id>.…`` → the time of the last part."""
    last = order.split(".")[-1] if isinstance(order, str) else ""
    if len(last) < 22 or last[8] != "T":
        return None
    return f"{last[:4]}-{last[4:6]}-{last[6:11]}:{last[11:13]}:{last[13:15]}.{last[15:21]}Z"
