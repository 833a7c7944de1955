"""OpenTelemetry spans of model calls, in the GenAI conventions and their relatives."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord, json_records
from preplay.logs._messages import request_turn
from preplay.logs._records import Merged, Outcome, Quarantined, RawTurn, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import as_dict, sniff_record, text_or_none
from preplay.logs.readers._otel_messages import model_call
from preplay.logs.readers._otel_spans import Span, spans_of

_SESSION = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session_id",
    "langfuse.session.id",
)
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id")
_TOKENS = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
)
_CONTENT = (
    "gen_ai.input",
    "gen_ai.output",
    "gen_ai.prompt",
    "gen_ai.completion",
    "llm.input_",
    "llm.output_",
)
_CONTENT += ("ai.prompt", "ai.response", "ai.result", "gen_ai.system_instructions", "input.", "output.")
_CALLS = ("chat", "text_completion", "generate_content")


@register
class OtelGenAI:
    """OTLP JSON, the SDK's JSON or flat spans: one turn per model call."""

    name = "otel-genai"
    description = "OpenTelemetry GenAI spans (also OpenInference, Traceloop, Vercel AI)"
    example = (
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "a", "name": "chat gpt-4o", '
        '"startTimeUnixNano": "1714557600000000000", "attributes": [{"key": "gen_ai.input.messages", "value": '
        '{"stringValue": "[{\\"role\\":\\"user\\",\\"parts\\":[{\\"type\\":\\"text\\",\\"content\\":\\"Hi\\"}]}]"}}, '
        '{"key": "gen_ai.output.messages", "value": {"stringValue": "[{\\"role\\":\\"assistant\\",\\"parts\\":'
        '[{\\"type\\":\\"text\\",\\"content\\":\\"Hello\\"}]}]"}}]}]}]}]}'
    )
    fields = (
        "gen_ai.*, llm.*, ai.* attributes and events; conversation or session id, model, tokens, start time"
    )
    quirks = (
        "gen_ai.input/output.messages; flat gen_ai.prompt.N; span events; JSON text; OpenInference; Traceloop; "
        "Vercel; wrapper spans are merged; gen_ai.evaluation.result is the outcome; one session per agent"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        return sniff_record(head, _fits, 0.9, "spans with attributes")

    def read(self, file: LogFile) -> Iterator[Item]:
        for record in json_records(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            yield from _record(record, file)


def _fits(record: dict[str, Any]) -> bool:
    if "resourceSpans" in record or "resource_spans" in record:
        return True
    identified = any(k in record for k in ("context", "traceId", "trace_id", "spanId", "span_id"))
    return identified and isinstance(record.get("attributes"), dict | list) and "name" in record


def _record(record: JsonRecord, file: LogFile) -> Iterator[Item]:
    where = file.where(record.line)
    try:
        spans = list(spans_of(as_dict(record.value, "the record")))
    except ValueError as error:
        yield Quarantined(where, "record", str(error), excerpt(record.raw))
        return
    if not spans:
        yield Merged(where, "")
    for span in spans:
        source = f"{where}#{span.key}" if span.key else where
        try:
            yield from list(_span(span, source))
        except ValueError as error:
            yield Quarantined(source, "attributes", str(error), excerpt(span.raw))


def _span(span: Span, source: str) -> Iterator[Item]:
    session = next((span.attributes[k] for k in _SESSION if span.attributes.get(k)), span.trace_id)
    agent = text_or_none(span.attributes.get("gen_ai.agent.name"))
    session = f"{session}#{agent}" if agent else session
    digest = hash_record(span.raw)
    scores = [
        a.get("gen_ai.evaluation.score.value") for n, a in span.events if n == "gen_ai.evaluation.result"
    ]
    yield from (Outcome(session, s, source + "/outcome", digest) for s in scores if s is not None)
    call = None if _is_wrapper(span) else model_call(span)
    if call is None:
        if _is_call(span):
            raise ValueError(
                "the span failed" if span.failed else "the content of the model call was not recorded"
            )
        yield Merged(source, str(session))
        return
    request, answer = call
    values = request_turn(request, answer[0])
    extras = values.pop("extras") | {"span": span.name} | _left(span)
    values |= {
        "policy": next((span.attributes[k] for k in _MODEL if isinstance(span.attributes.get(k), str)), None),
        "timestamp": span.start,
        "tokens": next((span.attributes[k] for k in _TOKENS if span.attributes.get(k) is not None), None),
    }
    yield RawTurn(session, {k: v for k, v in values.items() if v is not None}, source, digest, extras)


def _is_wrapper(span: Span) -> bool:
    """Spans around model calls repeat their content: agents, tools, workflows, Vercel's outer span."""
    a = span.attributes
    if a.get("gen_ai.operation.name") in ("invoke_agent", "create_agent", "execute_tool"):
        return True
    if str(a.get("openinference.span.kind", "LLM")).upper() != "LLM" or a.get("traceloop.span.kind"):
        return True
    operation = a.get("ai.operationId")
    return isinstance(operation, str) and not operation.endswith((".doGenerate", ".doStream"))


def _is_call(span: Span) -> bool:
    a = span.attributes
    kind = str(a.get("openinference.span.kind")).upper() == "LLM" or a.get("gen_ai.operation.name") in _CALLS
    return not _is_wrapper(span) and (kind or isinstance(a.get("ai.operationId"), str))


def _left(span: Span) -> dict[str, Any]:
    """The attributes that are no message content, in the form they were logged."""
    logged = span.raw.get("attributes")
    names = set(logged) if isinstance(logged, dict) else set(span.attributes)
    kept = {
        k: span.attributes[k]
        for k in names | {"resource"}
        if k in span.attributes and not k.startswith(_CONTENT)
    }
    return {"attributes": kept} if kept else {}
