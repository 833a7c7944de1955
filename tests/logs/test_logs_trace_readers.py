"""Traces and interchange formats: Anthropic, ATIF, ADP, Langfuse, LangSmith. Fixtures by hand."""

import json

import pytest
from logs_helpers import column, read, reasons

BLOCKS = {
    "session_id": "c",
    "model": "claude-x",
    "reward": 1,
    "system": [{"type": "text", "text": "Be kind."}],
    "messages": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}},
            ],
            "usage": {"output_tokens": 9},
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "sunny"}],
                    "is_error": True,
                },
                {"type": "text", "text": "Hurry!"},
            ],
        },
    ],
    "response": {
        "role": "assistant",
        "content": [{"type": "text", "text": "Sunny."}],
        "stop_reason": "end_turn",
    },
}


def test_anthropic_messages(tmp_path):
    result = read(tmp_path, [BLOCKS])
    assert set(result.formats.values()) == {"anthropic-messages"}
    assert column(result, "task") == ["Be kind."] * 2
    assert column(result, "observation") == ["Weather?", '{"tool_results":[{"content":"sunny"}]}\nHurry!']
    assert column(result, "action") == [
        'Let me look.\n{"tool_calls":[{"arguments":{"city":"Bern"},"name":"weather"}]}',
        "Sunny.",
    ]
    assert column(result, "reward") == [0.0, 1.0]
    assert column(result, "tokens") == [9, None]
    assert column(result, "policy") == ["claude-x"] * 2
    first, second = map(json.loads, column(result, "extras"))
    assert first["reasoning"] == [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    assert second["observation_messages"][0] == {"is_error": True, "result_of": "t1", "role": "tool"}


def atif(**changes):
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "Price?"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "reasoning_content": "look",
            "tool_calls": [{"tool_call_id": "c", "function_name": "price", "arguments": {"t": "X"}}],
            "observation": {"results": [{"source_call_id": "c", "content": "185"}]},
            "metrics": {"logprobs": [-0.1, -0.4], "completion_tokens": 2, "cost_usd": 0.5},
        },
        {"step_id": 4, "source": "agent", "message": "It is 185.", "timestamp": "2025-10-11T10:30:05Z"},
    ]
    agent = {"name": "a", "version": "1", "model_name": "m"}
    return {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": agent, "steps": steps} | changes


def test_atif_log_probabilities_are_summed_over_tokens(tmp_path):
    result = read(tmp_path, [atif(extra={"reward": 0.5}), atif(session_id="t", steps=atif()["steps"][::2])])
    assert column(result, "behavior_logprob") == [pytest.approx(-0.5), None]
    assert column(result, "observation") == ["Price?", '{"tool_results":[{"content":"185","name":"price"}]}']
    assert column(result, "reward") == [0.0, 0.5]
    assert (column(result, "tokens")[0], column(result, "cost")[0]) == (2, 0.5)
    assert json.loads(column(result, "extras")[0])["reasoning_content"] == "look"
    assert reasons(result) == [("2", "steps", "the step_ids are not consecutive: [1, 3]")]


def test_agent_data_protocol(tmp_path):
    content = [
        {"class_": "text_observation", "content": "Find it", "source": "user"},
        {"class_": "api_action", "function": "goto", "kwargs": {"url": "u"}, "description": "open"},
        {
            "class_": "web_observation",
            "html": "<p>",
            "axtree": "page",
            "url": "u",
            "image_observation": {"content": "a.png"},
        },
        {"class_": "message_action", "content": "Done", "reward": 1.0},
    ]
    bad = {"id": "b", "content": [{"class_": "dream"}]}
    result = read(tmp_path, [{"id": "a", "content": content, "details": {"model": "m"}}, bad])
    assert column(result, "observation") == ["Find it", '{"tool_results":[{"content":"page"}]}']
    assert column(result, "action")[0] == 'open\n{"tool_calls":[{"arguments":{"url":"u"},"name":"goto"}]}'
    assert column(result, "reward") == [0.0, 1.0]
    assert json.loads(column(result, "extras")[1])["observation_messages"][0]["html"] == "<p>"
    assert reasons(result) == [("2", "content", "an entry has the unknown class_ 'dream'")]


def generation(identity, start, user, answer, **more):
    messages = [{"role": "system", "content": "Be kind."}, *user]
    row = {"id": identity, "type": "GENERATION", "startTime": f"2024-05-01T10:00:0{start}Z", "model": "m"}
    return row | {"input": messages, "output": answer} | more


TURN0 = [{"role": "user", "content": "Hi"}]
TURN1 = [*TURN0, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}]


def test_langfuse_trace(tmp_path):
    observations = [
        generation("o2", 2, TURN1, "Goodbye", usageDetails={"output": 3}),
        {"id": "x", "type": "SPAN", "startTime": "2024-05-01T10:00:00Z", "input": None},
        generation(
            "o1",
            1,
            TURN0,
            json.dumps({"role": "assistant", "content": "Hello"}),
            usage={"completionTokens": 2},
        ),
    ]
    scores = [{"name": "success", "value": 1}, {"name": "tone", "value": 0.3}]
    trace = {"id": "t", "sessionId": "s", "observations": observations, "scores": scores}
    result = read(tmp_path, [trace])
    assert column(result, "session_id") == ["s", "s"]
    assert column(result, "task") == ["Be kind."] * 2
    assert column(result, "observation") == ["Hi", "Bye"]
    assert column(result, "action") == ["Hello", "Goodbye"]
    assert column(result, "next_observation") == ["Bye", ""]
    assert column(result, "reward") == [0.0, 1.0]
    assert column(result, "tokens") == [2, 3]
    assert result.records == {"read": 2, "quarantined": 0, "merged": 1}


def test_langfuse_null_input_and_flat_rows(tmp_path):
    """Flat exports: observations carry the trace's id, scores are records of their own."""
    rows = [
        generation("a", 1, TURN0, "Hello", traceId="t") | {"usage_details": {"output": 1}},
        {"id": "s", "trace_id": "t", "name": "reward", "value": 0.75},
        generation("b", 2, TURN0, "x", trace_id="u") | {"input": None},
    ]
    result = read(tmp_path, rows)
    assert column(result, "reward") == [0.75]
    assert result.notes["outcomes_joined"] == 1
    assert reasons(result) == [("3", "observations", "input is missing")]
    assert result.records == {"read": 1, "quarantined": 1, "merged": 1}


def lc(kind, content, **more):
    name = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage"}[kind]
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": content} | more}


def test_langsmith_runs(tmp_path):
    call = {"name": "look", "args": {"q": 1}, "id": "c"}
    metadata = {"metadata": {"thread_id": "th", "ls_model_name": "m"}}
    first = {
        "id": "r1",
        "trace_id": "t",
        "run_type": "llm",
        "dotted_order": "20240501T100000000000Zroot.20240501T100001000000Zr1",
        "inputs": {"messages": [[lc("system", "Be kind."), lc("human", "Hi")]]},
        "outputs": {"generations": [[{"text": "", "message": lc("ai", "", tool_calls=[call])}]]},
        "extra": metadata,
        "completion_tokens": 4,
    }
    second = first | {
        "id": "r2",
        "dotted_order": "20240501T100000000000Zroot.20240501T100003000000Zr2",
        "inputs": {
            "messages": [
                {"type": "human", "content": "Hi"},
                {"type": "ai", "content": "", "tool_calls": [call]},
                {"type": "tool", "content": "found", "tool_call_id": "c", "name": "look"},
            ]
        },
        "outputs": {"message": {"type": "ai", "data": {"content": "Done"}}},
    }
    tool = {
        "id": "r3",
        "trace_id": "t",
        "run_type": "tool",
        "parent_run_id": "root",
        "dotted_order": "x",
        "extra": metadata,
    }
    root = {
        "id": "root",
        "trace_id": "t",
        "run_type": "chain",
        "dotted_order": "20240501T100000000000Zroot",
        "parent_run_id": None,
        "feedback_stats": {"correct": {"n": 1, "avg": 1.0}},
        "extra": metadata,
    }
    failed = first | {"id": "r4", "trace_id": "z", "extra": {}, "error": "rate limit"}
    result = read(tmp_path, [second, tool, root, first, failed])
    assert set(result.formats.values()) == {"langsmith"}
    assert column(result, "session_id") == ["th", "th"]
    assert column(result, "observation") == ["Hi", '{"tool_results":[{"content":"found","name":"look"}]}']
    assert column(result, "action") == ['{"tool_calls":[{"arguments":{"q":1},"name":"look"}]}', "Done"]
    assert column(result, "reward") == [0.0, 1.0]
    assert [t.second for t in column(result, "timestamp")] == [1, 3]
    assert column(result, "policy") == ["m", "m"]
    assert reasons(result) == [("5", "inputs", "the run failed (rate limit)")]
    assert result.records == {"read": 2, "quarantined": 1, "merged": 2}


def test_conflicting_outcomes_are_reported_and_none_is_used(tmp_path):
    rows = [generation("a", 1, TURN0, "Hello", traceId="t")]
    rows += [{"id": str(v), "traceId": "t", "name": "reward", "value": v} for v in (0, 1)]
    result = read(tmp_path, rows)
    assert column(result, "reward") == [0.0]
    assert [r[1:] for r in reasons(result)] == [("outcome", "conflicting outcomes: 0.0, 1.0")] * 2
    assert result.notes["sessions_without_reward"] == 1
