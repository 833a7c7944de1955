"""Formats of agent benchmarks: SWE-agent, MINT, tau2, Inspect, BALROG, coding agents. Fixtures by hand."""

import io
import json
import zipfile

from logs_helpers import column, reasons, write_jsonl

from preplay.logs import read_logs


def read_text(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return read_logs([str(path)])


def step(action, observation, **more):
    return {
        "action": action,
        "observation": observation,
        "thought": f"think {action}",
        "response": action,
    } | more


HISTORY = [
    {"role": "system", "content": "You are a programmer."},
    {"role": "user", "content": "A demonstration", "is_demo": True},
    {"role": "user", "content": "Mend the bug."},
    {"role": "assistant", "content": "ls"},
]


def test_swe_agent(tmp_path):
    run = {
        "environment": "swe_main",
        "trajectory": [step("ls", "a.py", execution_time=0.5), step("submit", "diff")],
        "history": HISTORY,
        "info": {"exit_status": "submitted", "model_stats": {"instance_cost": 0.5}},
    }
    path = tmp_path / "gpt4__swe-bench__default__t-0.00" / "repo-1.traj"
    result = read_text(path, json.dumps(run, indent=2))
    assert result.formats == {str(path): "swe-agent"}
    assert column(result, "session_id") == ["gpt4__swe-bench__default__t-0.00/repo-1"] * 2
    assert column(result, "policy") == ["gpt4", "gpt4"]
    assert column(result, "task")[0] == "You are a programmer."
    assert column(result, "observation") == ["Mend the bug.", "a.py"]
    assert column(result, "next_observation") == ["a.py", "diff"]
    assert column(result, "latency_s") == [0.5, None]
    assert column(result, "terminated") == [False, True]
    first, second = map(json.loads, column(result, "extras"))
    assert first["info"]["model_stats"] == {"instance_cost": 0.5}
    assert second == {"thought": "think submit", "response": "submit"}
    assert result.notes["sessions_without_reward"] == 1


def test_swe_agent_cost_limit_is_a_truncation_and_history_alone_is_read(tmp_path):
    run = {
        "trajectory": [step("ls", "")],
        "history": HISTORY,
        "info": {"exit_status": "submitted (exit_cost)"},
    }
    assert column(read_text(tmp_path / "a.traj", json.dumps(run)), "truncated") == [True]
    demo = read_text(tmp_path / "b.traj", json.dumps({"history": [m for m in HISTORY if "is_demo" not in m]}))
    assert (column(demo, "observation"), column(demo, "action")) == (["Mend the bug."], ["ls"])


def mint(reason, success, roles="uaua"):
    history = [
        {"role": {"u": "user", "a": "assistant"}[r], "content": f"{r}{i}"} for i, r in enumerate(roles)
    ]
    state = {
        "history": history,
        "success": success,
        "terminate_reason": reason,
        "latest_output": {"content": "last"},
    }
    return {
        "state": state,
        "task": {"task_id": f"t-{reason}", "task_name": "alfworld/put", "prompt": "Put it."},
    }


def test_mint(tmp_path):
    (tmp_path / "gpt-4").mkdir()
    runs = [mint("task_success", True), mint("max_steps", False), mint("error", False, "uau")]
    result = read_logs([write_jsonl(tmp_path / "gpt-4" / "results.jsonl", runs)])
    assert set(result.formats.values()) == {"mint"}
    by_session = {}
    for turn in result.turns.to_pylist():
        by_session.setdefault(turn["session_id"], []).append(turn)
    won, lost, broken = (by_session[f"gpt-4/t-{r}"] for r in ("task_success", "max_steps", "error"))
    assert [t["observation"] for t in won] == ["Put it.", "u2"]
    assert [t["next_observation"] for t in won] == ["u2", "last"]
    assert [t["reward"] for t in won] == [0.0, 1.0]
    assert [(t["terminated"], t["truncated"]) for t in (won[-1], lost[-1], broken[-1])] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert broken[0]["next_observation"] == "u2"  # the history ends with what the agent saw last
    assert json.loads(won[0]["extras"])["first_message"] == "u0"
    assert won[0]["policy"] == "gpt-4"


def test_tau2_dual_control(tmp_path):
    messages = [
        {"role": "assistant", "content": "Hi, how can I help?", "turn_idx": 0, "cost": 0.25},
        {"role": "user", "content": "My phone is dead", "turn_idx": 1},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "name": "get", "arguments": {"n": 1}, "requestor": "assistant"}],
        },
        {
            "role": "tool",
            "tool_messages": [
                {"id": "1", "role": "tool", "content": "off"},
                {"role": "tool", "content": "x"},
            ],
        },
        {"role": "assistant", "content": "Switch it on"},
        {"role": "user", "tool_calls": [{"id": "2", "name": "toggle", "arguments": {}, "requestor": "user"}]},
    ]
    sims = [
        {
            "id": "s1",
            "task_id": "7",
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0},
            "messages": messages,
        },
        {
            "id": "s2",
            "task_id": "8",
            "termination_reason": "max_steps",
            "reward_info": None,
            "messages": messages[:1],
        },
        {"id": "s3", "task_id": "9", "messages": "gone"},
    ]
    info = {"agent_info": {"llm": "gpt-x"}, "user_info": {}, "environment_info": {"policy": "Be kind."}}
    result = read_text(
        tmp_path / "run.json", json.dumps({"info": info, "tasks": [], "simulations": sims}, indent=1)
    )
    assert column(result, "session_id") == ["s1", "s1", "s1", "s2"]
    assert column(result, "policy") == ["gpt-x"] * 4
    assert column(result, "task") == ["Be kind."] * 4
    assert column(result, "observation")[0] == "Be kind."  # the agent speaks first: the task stands there
    assert (
        column(result, "observation")[2]
        == '{"tool_results":[{"content":"off"}]}\n{"tool_results":[{"content":"x"}]}'
    )
    assert column(result, "reward") == [0.0, 0.0, 1.0, 0.0]
    assert column(result, "truncated") == [False, False, False, True]
    assert column(result, "cost")[0] == 0.25
    assert column(result, "source")[0].endswith("run.json#simulations/0")
    assert [(q.field, q.source.rsplit("#", 1)[1]) for q in result.quarantined] == [
        ("messages", "simulations/2")
    ]


def sample(identity, value, **more):
    messages = [
        {"role": "system", "content": "Use tools."},
        {"role": "user", "content": [{"type": "text", "text": "2+2?"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": "add", "arguments": {"a": 2}, "type": "function"}],
        },
        {"role": "tool", "content": "4", "tool_call_id": "c", "function": "add"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "4"}],
        },
    ]
    scores = {name: {"value": v} for name, v in value.items()}
    return {
        "id": identity,
        "epoch": 1,
        "input": "2+2?",
        "target": "4",
        "messages": messages,
        "scores": scores,
    } | more


EVAL = {"task": "sums", "model": "openai/gpt-x", "run_id": "r"}


def test_inspect_json_and_archive_agree(tmp_path):
    samples = [
        sample("a", {"match": "C"}),
        sample("b", {"m": 0.25, "n": 1}),
        sample("c", {"m": "I"}, limit={"type": "time"}),
    ]
    whole = read_text(
        tmp_path / "log.json",
        json.dumps({"version": 2, "status": "success", "eval": EVAL, "samples": samples}),
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": EVAL}))
        for s in samples:
            archive.writestr(f"samples/{s['id']}_epoch_1.json", json.dumps(s))
    (tmp_path / "log.eval").write_bytes(buffer.getvalue())
    packed = read_logs([str(tmp_path / "log.eval")])
    assert packed.formats == {str(tmp_path / "log.eval"): "inspect"}
    same = [
        "session_id",
        "turn",
        "observation",
        "action",
        "reward",
        "terminated",
        "truncated",
        "extras",
        "policy",
    ]
    assert whole.turns.select(same).equals(packed.turns.select(same))
    assert column(whole, "session_id") == ["r/a/1"] * 2 + ["r/b/1"] * 2 + ["r/c/1"] * 2
    assert column(whole, "reward") == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert whole.notes["sessions_without_reward"] == 1  # two scorers: b's reward stays open
    assert column(whole, "truncated") == [False] * 5 + [True]
    assert column(whole, "observation")[:2] == ["2+2?", '{"tool_results":[{"content":"4","name":"add"}]}']
    assert column(whole, "action")[1] == "4"
    assert json.loads(column(whole, "extras")[1])["reasoning"] == [{"type": "reasoning", "reasoning": "hm"}]


def test_a_damaged_archive(tmp_path):
    good = json.dumps({"version": 2, "status": "success", "eval": EVAL, "samples": [sample("a", {"m": 1})]})
    (tmp_path / "good.json").write_text(good)
    (tmp_path / "bad.eval").write_bytes(b"PK\x03\x04" + b"x.json" * 50)
    result = read_logs([str(tmp_path / "good.json"), str(tmp_path / "bad.eval")])
    assert result.turns.num_rows == 2
    assert [(q.field, q.reason.split(" (")[0]) for q in result.quarantined] == [("file", "a damaged archive")]


def test_balrog_columns_in_any_order_executed_action_and_model_from_the_json_beside(tmp_path):
    folder = tmp_path / "2024-10-30_naive_gpt-x" / "babyai" / "goto"
    folder.mkdir(parents=True)
    (folder / "goto_run_00.json").write_text(json.dumps({"client": {"model_id": "gpt-x"}}))
    harness = "\n\nYour previous output action: 'dance' is not a valid action. Defaulted to action: go forward\nA key"
    header = "Step,Reward,Action,Observation,Done,Reasoning"
    rows = f'{header}\n0,0.0,turn left,"You see a door, red",False,look\n1,1.0,dance,"{harness}",True,'
    result = read_text(folder / "goto_run_00.csv", rows)
    assert column(result, "session_id") == ["gpt-x/babyai/goto/goto_run_00"] * 2
    assert column(result, "observation") == ["goto", "You see a door, red"]
    assert column(result, "action") == ["turn left", "go forward"]
    assert column(result, "proposed_action") == [None, "dance"]
    assert column(result, "reward") == [0.0, 1.0]
    assert column(result, "terminated") == [False, True]
    assert json.loads(column(result, "extras")[0]) == {"Reasoning": "look"}
    assert [s.rsplit(":", 1)[1] for s in column(result, "source")] == ["2", "3"]


def coding(**changes):
    actions = [
        {"thought": "try", "code_generated": "x", "test_executed": {"passed": 1}},
        {"thought": "mend", "code_generated": "y", "test_executed": "2 passed"},
    ]
    record = {
        "problem_id": "p",
        "problem_description": "Sort.",
        "initial_state": "",
        "action_sequence": actions,
    }
    return record | {"reward": 1.0, "terminal": True} | changes


def test_coding_agent(tmp_path):
    bad = [coding(reward=[1]), coding(action_sequence=[])]
    result = read_logs(
        [write_jsonl(tmp_path / "c.jsonl", [coding(), coding(reward=[0.5, 0], terminal=False), *bad])]
    )
    assert column(result, "session_id") == ["p@c.jsonl:1"] * 2 + ["p@c.jsonl:2"] * 2
    assert column(result, "observation") == ["Sort.", '{"passed":1}'] * 2
    assert column(result, "action") == ["x", "y"] * 2
    assert column(result, "next_observation") == ['{"passed":1}', "2 passed"] * 2
    assert column(result, "reward") == [0.0, 1.0, 0.5, 0.0]
    assert column(result, "truncated") == [False, False, False, True]
    assert reasons(result) == [
        ("3", "action_sequence", "1 rewards for 2 actions"),
        ("4", "action_sequence", "no action"),
    ]
