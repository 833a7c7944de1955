"""OpenTelemetry model-call spans in every convention; each must give the same two turns."""

import json

import pytest
from logs_helpers import column, read, reasons

from preplay.logs import read_logs

START = 1_714_557_600_000_000_000
CALL = {"name": "look", "arguments": {"q": 1}}
ACTION = '{"tool_calls":[{"arguments":{"q":1},"name":"look"}]}'


def otlp_value(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}


def otlp_attributes(attributes):
    return [{"key": k, "value": otlp_value(v)} for k, v in attributes.items()]


def span(number, attributes, events=(), name="chat m"):
    return {
        "traceId": "tr",
        "spanId": f"s{number}",
        "name": name,
        "startTimeUnixNano": str(START + number * 10**9),
        "attributes": otlp_attributes({"session.id": "se", "gen_ai.request.model": "m", **attributes}),
        "events": [{"name": n, "attributes": otlp_attributes(a)} for n, a in events],
    }


def export(*spans):
    resource = {"attributes": otlp_attributes({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def text(content):
    return {"type": "text", "content": content}


def semantic(structure):
    ask = [{"role": "user", "parts": [text("Hi")]}]
    calls = [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c", **CALL}],
            "finish_reason": "tool_call",
        }
    ]
    result = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "result": "found"}]}]
    done = [{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, text("Done")]}]

    def call(request, answer):
        system = structure([text("Be kind.")])
        return {
            "gen_ai.system_instructions": system,
            "gen_ai.input.messages": structure(request),
            "gen_ai.output.messages": structure(answer),
        }

    return call(ask, calls), call(ask + calls + result, done)


def flat():
    first = {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be kind.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "Hi",
    }
    asked = {
        f"gen_ai.completion.0.tool_calls.0.{k}": v for k, v in (("name", "look"), ("arguments", '{"q": 1}'))
    }
    second = first | {
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.0.name": "look",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"q": 1}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.content": "found",
    }
    return first | asked, second | {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Done",
    }


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"q":1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "found"},
]
DONE = {"role": "assistant", "content": "Done"}


def json_text():
    answers = (CHAT[2], DONE)
    requests = (CHAT[:2], CHAT)
    return tuple(
        {"gen_ai.prompt": json.dumps(r), "gen_ai.completion": json.dumps([a])}
        for r, a in zip(requests, answers, strict=True)
    )


def open_inference():
    def side(prefix, messages):
        found = {}
        for i, m in enumerate(messages):
            at = f"llm.{prefix}_messages.{i}.message"
            found[f"{at}.role"] = m["role"]
            if m.get("content"):
                found[f"{at}.content"] = m["content"]
            for j, c in enumerate(m.get("tool_calls", [])):
                found[f"{at}.tool_calls.{j}.tool_call.function.name"] = c["function"]["name"]
                found[f"{at}.tool_calls.{j}.tool_call.function.arguments"] = c["function"]["arguments"]
        return found

    kind = {"openinference.span.kind": "LLM"}
    return kind | side("input", CHAT[:2]) | side("output", CHAT[2:3]), kind | side("input", CHAT) | side(
        "output", [DONE]
    )


def vercel():
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {"q": 1}}
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [call]},
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "look", "output": "found"}],
        },
    ]
    kind = {"ai.operationId": "ai.generateText.doGenerate"}
    first = {"ai.prompt.messages": json.dumps(messages[:2]), "ai.response.toolCalls": json.dumps([call])}
    return kind | first, kind | {"ai.prompt.messages": json.dumps(messages), "ai.response.text": "Done"}


CONVENTIONS = {
    "semantic conventions, JSON text": semantic(json.dumps),
    "flat prompt.N": flat(),
    "JSON text": json_text(),
    "OpenInference": open_inference(),
    "Vercel": vercel(),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_agree(tmp_path, name):
    first, second = CONVENTIONS[name]
    result = read(tmp_path, [export(span(2, second), span(1, first))])
    assert set(result.formats.values()) == {"otel-genai"}
    assert column(result, "session_id") == ["se", "se"]
    assert column(result, "task") == ["Be kind."] * 2
    assert column(result, "action") == [ACTION, "Done"]
    first_seen, second_seen = column(result, "observation")
    assert first_seen == "Hi"
    assert json.loads(second_seen)["tool_results"][0]["content"] == "found"
    assert column(result, "next_observation") == [second_seen, ""]
    assert column(result, "policy") == ["m", "m"]
    assert [t.second for t in column(result, "timestamp")] == [1, 2]
    assert json.loads(column(result, "extras")[0])["attributes"]["resource"] == {"service.name": "shop"}
    assert result.records == {"read": 2, "quarantined": 0, "merged": 0}


def test_content_in_span_events(tmp_path):
    question = [
        ("gen_ai.system.message", {"content": "Be kind."}),
        ("gen_ai.user.message", {"content": "Hi"}),
    ]
    answer = ("gen_ai.choice", {"index": 0, "message": json.dumps(CHAT[2])})
    later = [
        ("gen_ai.assistant.message", {"tool_calls": json.dumps(CHAT[2]["tool_calls"])}),
        ("gen_ai.tool.message", {"id": "c", "content": "found"}),
        ("gen_ai.choice", {"message": json.dumps(DONE)}),
    ]
    result = read(tmp_path, [export(span(1, {}, [*question, answer]), span(2, {}, [*question, *later]))])
    assert column(result, "action") == [ACTION, "Done"]
    assert column(result, "observation") == ["Hi", '{"tool_results":[{"content":"found"}]}']


def test_structured_attributes_of_the_sdk_and_nested_ones(tmp_path):
    """The SDK's JSON has an object of attributes; other exports nest OpenInference's names."""
    first, _ = semantic(lambda value: value)
    sdk = {
        "name": "chat",
        "context": {"trace_id": "t1", "span_id": "a"},
        "start_time": "2024-05-01T10:00:00Z",
    }
    message = {"message": {"role": "user", "content": "Hi"}}
    answer = {"message": {"role": "assistant", "content": "Hello"}}
    nested = {"llm": {"input_messages": [message], "output_messages": [answer], "model_name": "n"}}
    other = sdk | {"context": {"trace_id": "t2", "span_id": "b"}, "attributes": nested}
    result = read(tmp_path, [sdk | {"attributes": first}, other])
    assert column(result, "session_id") == ["t1", "t2"]
    assert column(result, "observation") == ["Hi", "Hi"]
    assert column(result, "action") == [ACTION, "Hello"]
    assert column(result, "policy") == ["logged", "n"]


def test_wrappers_are_merged_agents_told_apart_and_missing_content_is_refused(tmp_path):
    first, second = semantic(json.dumps)
    spans = [
        span(0, first | {"gen_ai.operation.name": "invoke_agent"}),
        span(1, first | {"gen_ai.agent.name": "planner"}),
        span(2, second | {"gen_ai.agent.name": "booker"}),
        span(3, {"gen_ai.operation.name": "chat"}),
        span(4, {"traceloop.span.kind": "workflow"}),
        span(5, {"ai.operationId": "ai.generateText", "ai.response.text": "Done"}),
    ]
    result = read(tmp_path, [export(*spans)])
    assert column(result, "session_id") == ["se#booker", "se#planner"]
    assert [r[1:] for r in reasons(result)] == [
        ("attributes", "the content of the model call was not recorded")
    ]
    assert result.records == {"read": 2, "quarantined": 1, "merged": 3}


def test_an_evaluation_event_is_the_outcome(tmp_path):
    first, _ = semantic(json.dumps)
    scored = span(
        3, {}, [("gen_ai.evaluation.result", {"gen_ai.evaluation.score.value": 0.5})], name="evaluate"
    )
    (tmp_path / "spans.json").write_text(json.dumps(export(span(1, first), scored), indent=2))
    result = read_logs([str(tmp_path / "spans.json")])
    assert column(result, "reward") == [0.5]
