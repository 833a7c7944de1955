"""Conversations: OpenAI chat and tau-bench, with the quirks their logs have."""

import json

from logs_helpers import column, read, reasons

from preplay.logs import ToolCall, parse_action, read_logs, render_action


def call(name, arguments, identity="c1"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is my order?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("find", '{"id": "007"}'), call("now", "", "c2")],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "find", "content": '{"state": "lost"}'},
    {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    {"role": "assistant", "content": "It is lost."},
    {"role": "user", "content": "Oh."},
]


def test_tool_calls_stay_one_ordered_action_and_results_are_the_next_observation(tmp_path):
    result = read(tmp_path, [{"session_id": "c", "model": "m", "reward": 1.0, "messages": MESSAGES}])
    calls = '{"tool_calls":[{"arguments":{"id":"007"},"name":"find"},{"arguments":{},"name":"now"}]}'
    results = (
        '{"tool_results":[{"content":"{\\"state\\": \\"lost\\"}","name":"find"}]}\n'
        '{"tool_results":[{"content":"noon"}]}'
    )
    assert column(result, "task") == ["Be kind.", "Be kind."]
    assert column(result, "observation") == ["Where is my order?", results]
    assert column(result, "action") == [calls, "It is lost."]
    assert column(result, "next_observation") == [results, "Oh."]
    assert column(result, "reward") == [0.0, 1.0]
    assert column(result, "policy") == ["m", "m"]
    first, second = map(json.loads, column(result, "extras"))
    assert first == {"tool_call_ids": ["c1", "c2"]}
    assert second == {"observation_messages": [{"result_of": "c1"}, {"result_of": "c2"}]}
    assert result.records == {"read": 1, "quarantined": 0, "merged": 0}


def test_actions_can_be_parsed_back():
    calls = [ToolCall("find", {"q": "a\nb"}), ToolCall("stop", "not json")]
    assert parse_action(render_action("Let me\nlook.", calls)) == ("Let me\nlook.", calls)
    assert parse_action("just text\n{}") == ("just text\n{}", [])


def test_old_function_call_parts_list_image_and_reasoning(tmp_path):
    user = {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    }
    agent = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A cat."}],
        "function_call": {"name": "label", "arguments": "{broken"},
        "refusal": None,
        "logprobs": {"x": 1},
    }
    result = read(tmp_path, [{"messages": [user, agent]}])
    [observation] = column(result, "observation")
    lines = observation.split("\n")
    assert lines[:2] == ["What is this?", '{"image":"https://example.org/cat.png"}']
    assert lines[2].startswith('{"image":"sha256:')
    assert column(result, "action") == ['A cat.\n{"tool_calls":[{"arguments":"{broken","name":"label"}]}']
    assert json.loads(column(result, "extras")[0]) == {
        "logprobs": {"x": 1},
        "reasoning": [{"type": "thinking", "thinking": "hm"}],
    }
    assert column(result, "session_id") == [f"{tmp_path}/log.jsonl:1"]


def test_a_request_with_its_response(tmp_path):
    record = {
        "id": "r1",
        "messages": [{"role": "user", "content": "Hi"}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
    }
    result = read(tmp_path, [record])
    assert (column(result, "observation"), column(result, "action")) == (["Hi"], ["Hello"])


def test_several_agents_are_cut_into_one_session_each(tmp_path):
    messages = [
        {"role": "user", "content": "Plan a trip"},
        {"role": "assistant", "name": "planner", "content": "Ask the booker"},
        {"role": "assistant", "name": "booker", "content": "Booked"},
        {"role": "assistant", "name": "planner", "content": "Done"},
    ]
    result = read(tmp_path, [{"id": "m", "messages": messages}])
    assert column(result, "session_id") == ["m#booker", "m#planner", "m#planner"]
    assert column(result, "action") == ["Booked", "Ask the booker", "Done"]
    assert column(result, "observation")[0] == 'Plan a trip\n{"agent":"planner","message":"Ask the booker"}'
    assert column(result, "observation")[2] == '{"agent":"booker","message":"Booked"}'


def test_broken_conversations_are_quarantined_whole(tmp_path):
    good = {"id": "g", "messages": MESSAGES}
    bad = [
        {"id": "a", "messages": "none"},
        {"id": "b", "messages": [{"role": "wizard", "content": "x"}]},
        {"id": "c", "messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        {"id": "d", "messages": [{"role": "user", "content": "nobody answers"}]},
    ]
    result = read(tmp_path, [good, *bad])
    assert set(column(result, "session_id")) == {"g"}
    assert reasons(result) == [
        ("2", "messages", "no list of messages"),
        ("3", "messages", "a message has the unknown role 'wizard'"),
        ("4", "messages", "a tool call has no function name"),
        ("5", "messages", "no message of the agent"),
    ]


def tau(task_id, traj, reward=1.0, **more):
    return {"task_id": task_id, "reward": reward, "info": {"source": "user"}, "traj": traj, "trial": 0} | more


def test_tau_bench(tmp_path):
    stopped = [*MESSAGES[:-1], {"role": "user", "content": "###STOP###"}]
    handed = [*MESSAGES[:2], {"role": "assistant", "tool_calls": [call("transfer_to_human_agents", "{}")]}]
    handed.append({"role": "tool", "name": "transfer_to_human_agents", "content": "ok"})
    failed = tau(3, [], 0.0, info={"error": "rate limit"})
    runs = [tau(0, stopped), tau(1, handed, 0.0), tau(2, MESSAGES, 0.0), failed]
    (tmp_path / "gpt-x-retail.json").write_text(json.dumps(runs, indent=1))
    result = read_logs([str(tmp_path)])
    assert result.formats == {f"{tmp_path}/gpt-x-retail.json": "tau-bench"}
    assert sorted(set(column(result, "session_id"))) == [f"gpt-x-retail/{i}/0" for i in range(3)]
    ends = zip(
        column(result, "session_id"), column(result, "reward"), column(result, "terminated"), strict=True
    )
    assert list(ends) == [
        ("gpt-x-retail/0/0", 0.0, False),
        ("gpt-x-retail/0/0", 1.0, True),
        ("gpt-x-retail/1/0", 0.0, True),
        ("gpt-x-retail/2/0", 0.0, False),
        ("gpt-x-retail/2/0", 0.0, False),
    ]
    assert column(result, "truncated") == [False, False, False, False, True]
    assert set(column(result, "policy")) == {"gpt-x-retail"}
    [(_, field, reason)] = reasons(result)
    assert (field, reason) == ("traj", "an empty traj: the run failed (rate limit)")
    assert result.records == {"read": 3, "quarantined": 1, "merged": 0}


def test_intercode(tmp_path):
    def task(actions, observations, rewards, turns_max=10):
        history = {
            "actions": actions,
            "observations": observations,
            "rewards": rewards,
            "valid_action": [True] * 3,
        }
        return {
            "environment": "ic_sql",
            "task_id": 1,
            "query": "How many?",
            "turn_history": history,
            "summary": {"turns_max": turns_max},
        }

    tasks = {
        "0": task(["a", "b"], ["x", "y"], [0.5, 1]),
        "1": task(["a", "blocked"], ["x"], [0.0, 0.0]),
        "2": task(["a", "b"], ["x", "y"], [0.0, 0.0], turns_max=2),
        "3": task(["a", "b"], ["x"], [0.0]),
        "4": task(["a"], [], []),
    }
    (tmp_path / "ic_sql_multiturn_gpt-x_10_turns.json").write_text(json.dumps(tasks, indent=4))
    (tmp_path / "ic_sql_multiturn_gpt-x_1_turns.json").write_text(
        json.dumps({"0": task(["a"], ["x"], [0], 1)})
    )
    (tmp_path / "ic_spider_dev.json").write_text(json.dumps([{"db": "zoo"}, {"db": "pets"}]))
    result = read_logs([str(tmp_path / "ic_sql*")])
    rows = list(
        zip(
            *(column(result, n) for n in ("session_id", "observation", "action", "next_observation")),
            strict=True,
        )
    )
    assert rows[:2] == [("gpt-x-1-turns/0", "How many?", "a", "x"), ("gpt-x/0", "How many?", "a", "x")]
    assert rows[2] == ("gpt-x/0", "x", "b", "y")
    assert rows[4] == ("gpt-x/1", "x", "blocked", "")
    assert column(result, "terminated") == [False, False, True, False, True, False, False, False, True, True]
    assert column(result, "truncated") == [True, False, False, False, False, False, True, False, False, False]
    assert column(result, "reward")[:3] == [0.0, 0.5, 1.0]
    assert json.loads(column(result, "extras")[4])["executed"] is False
    assert json.loads(column(result, "extras")[0])["database"] == "pets"
