"""Policies behind a chat endpoint: a real HTTP server that counts what it is asked."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import pyarrow.parquet as pq
import pytest

from preplay.errors import PreplayError
from preplay.policies import AgentState, ChatConfig, ChatPolicy, load_policy
from preplay.seeding import numpy_rng

CALL = {"id": "x", "type": "function", "function": {"name": "refund", "arguments": '{"order": "007"}'}}


class Model(ThreadingHTTPServer):
    """Repeats the last message with the request's seed; ``replies`` are sent first, as (status, headers, body)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.keys, self.replies, self.lock = [], [], [], Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        model = self.server
        assert isinstance(model, Model)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with model.lock:
            model.requests.append(request)
            model.keys.append(self.headers["Authorization"])
            status, headers, body = model.replies.pop(0) if model.replies else (200, {}, None)
        said = f"{request['messages'][-1]['content']} {request.get('seed', '')}".strip()
        data = json.dumps(body or {"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def model():
    server = Model()
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def policy(model, answers=None, **changes):
    return ChatPolicy("new", ChatConfig(url=model.url, model="m", **changes), answers and str(answers))


def states(*texts):
    return [AgentState(text) for text in texts]


def rng(seed=0):
    return numpy_rng(seed, "test")


def test_equal_states_are_asked_once_and_answers_survive_the_process(model, tmp_path):
    first = policy(model, tmp_path / "answers")
    assert first.act(states("a", "b", "a"), rng()).actions == ["a", "b", "a"]
    assert first.act(states("b", "c"), rng()).actions == ["b", "c"]
    assert len(model.requests) == 3
    again = policy(model, tmp_path / "answers")
    assert again.act(states("c", "b", "a"), rng()).actions == ["c", "b", "a"]
    assert len(model.requests) == 3
    policy(model, tmp_path / "answers", system="Be kind.").act(states("a"), rng())
    assert len(model.requests) == 4  # another prompt is another question


def test_a_copy_in_another_process_sees_what_this_one_stored_later(model, tmp_path):
    mine = policy(model, tmp_path)
    copy = pickle.loads(pickle.dumps(mine))
    copy.act(states("before"), rng())
    mine.act(states("a"), rng())
    copy.act(states("a"), rng())
    assert [r["messages"][-1]["content"] for r in model.requests] == ["before", "a"]


def test_request_holds_prompt_task_and_turns(model):
    state = AgentState("It blinks", "Help with routers", (("Hi", "Is it on?"),), 1)
    policy(model, system="Be kind.", max_tokens=7).act([state], rng())
    assert model.requests == [
        {
            "model": "m",
            "temperature": 0.0,
            "max_tokens": 7,
            "messages": [
                {"role": "system", "content": "Be kind.\n\nHelp with routers"},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Is it on?"},
                {"role": "user", "content": "It blinks"},
            ],
        }
    ]


def test_a_new_prompt_can_stand_in_place_of_the_logged_one(model):
    policy(model, system="New.", show_task=False).act([AgentState("Hi", "Old.")], rng())
    assert model.requests[0]["messages"][0] == {"role": "system", "content": "New."}


def test_tool_calls_are_actions_as_the_logs_hold_them(model):
    tool = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}
    answer = {"choices": [{"message": {"content": "One moment.", "tool_calls": [CALL]}}]}
    model.replies.append((200, {}, answer))
    action = policy(model, tools=(tool,)).act(states("Refund 007"), rng()).actions[0]
    assert action == 'One moment.\n{"tool_calls":[{"arguments":{"order":"007"},"name":"refund"}]}'
    assert model.requests[0]["tools"] == [tool]


def test_tool_results_answer_the_calls_before_them(model):
    action = (
        'Wait.\n{"tool_calls":[{"arguments":{"order":"007"},"name":"refund"},{"arguments":{},"name":"log"}]}'
    )
    seen = '{"tool_results":[{"content":"done","name":"refund"}]}\nThe customer left.'
    policy(model).act([AgentState(seen, None, (("Refund 007", action),), 1)], rng())
    _, called, *after = model.requests[0]["messages"]
    assert [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in called["tool_calls"]] == [
        ("call_0_0", "refund", '{"order":"007"}'),
        ("call_0_1", "log", "{}"),
    ]
    assert after == [
        {"role": "tool", "tool_call_id": "call_0_0", "content": "done"},
        {"role": "tool", "tool_call_id": "call_0_1", "content": ""},
        {"role": "user", "content": "The customer left."},
    ]


def test_above_temperature_0_sessions_draw_among_a_few_answers(model):
    warm = policy(model, temperature=1.0, samples=3)
    assert not warm.deterministic
    drawn = warm.act(states(*["a"] * 200), rng()).actions
    assert set(drawn) == {"a 0", "a 1", "a 2"}
    assert len(model.requests) == 3
    assert warm.act(states(*["a"] * 200), rng()).actions == drawn  # the same draws, the same answers


def test_waits_as_long_as_a_busy_endpoint_asks_for(model):
    model.replies += [(429, {"Retry-After": "0"}, {}), (503, {"Retry-After": "0"}, {})]
    assert policy(model).act(states("a"), rng()).actions == ["a"]
    assert len(model.requests) == 3


def test_a_refusal_stops_and_keeps_what_was_paid_for(model, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "s3cret")
    one = policy(model, tmp_path, concurrency=1, key_variable="MY_KEY")
    model.replies += [(200, {}, None), (401, {}, {"error": "bad key s3c***"})]
    with pytest.raises(PreplayError, match=r"answers 401\.") as error:
        one.act(states("a", "b", "c", "d"), rng())
    assert "s3c" not in str(error.value)
    assert len(model.requests) == 2  # nothing more was asked after the refusal
    assert set(model.keys) == {"Bearer s3cret"}
    assert one.act(states("a", "b"), rng()).actions == ["a", "b"]
    assert [r["messages"][-1]["content"] for r in model.requests] == ["a", "b", "b"]


def test_long_lists_are_stored_part_by_part(model, tmp_path):
    model.replies += [(200, {}, None)] * 300 + [(400, {}, {"error": "too long"})]
    one = policy(model, tmp_path, concurrency=1)
    with pytest.raises(PreplayError, match=r"answers 400.*too long"):
        one.act(states(*map(str, range(1000))), rng())
    assert sorted(pq.read_table(path).num_rows for path in tmp_path.iterdir()) == [44, 256]


@pytest.mark.parametrize(
    "body", [[], {"choices": []}, {"choices": [{"message": {"content": ""}}]}, {"choices": 3}]
)
def test_an_answer_without_a_message_is_an_error(model, body):
    model.replies.append((200, {}, body or {"x": 1}))
    with pytest.raises(PreplayError, match="no usable message"):
        policy(model).act(states("a"), rng())


def test_stops_before_it_asks_more_than_it_may(model):
    careful = policy(model, max_requests=3)
    careful.act(states("a", "b"), rng())
    with pytest.raises(PreplayError, match="more than 3 requests"):
        careful.act(states("c", "d"), rng())
    assert len(model.requests) == 2


def test_processes_that_ask_at_the_same_time_store_side_by_side(model, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: policy(model, tmp_path).act(states(f"s{i}", "same"), rng()), range(8)))
    count = len(model.requests)
    fresh = policy(model, tmp_path).act(states("same", *(f"s{i}" for i in range(8))), rng())
    assert fresh.actions == ["same", *(f"s{i}" for i in range(8))]
    assert len(model.requests) == count


def test_from_a_file(model, tmp_path):
    file = tmp_path / "kind.yaml"
    file.write_text(f"url: {model.url}\nmodel: m\nsystem: Be kind.\n")
    found = load_policy(f"chat:{file}")
    assert found.name == "kind"
    assert found.act(states("a"), rng()).actions == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("a: [", "no YAML"),
        ("model: m", "url: Field required"),
        ("url: ftp://x\nmodel: m", "url: String should match"),
        ("url: http://x\nmodel: m\nkey: s3cret", "key: Extra inputs"),
        ("", "the whole file"),
    ],
)
def test_a_bad_file_names_file_and_field(tmp_path, text, message):
    file = tmp_path / "bad.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PreplayError, match=message) as error:
        load_policy(f"chat:{file}")
    assert "bad.yaml" in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_missing_key_is_named(model, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(PreplayError, match="key is not set") as error:
        policy(model, key_variable="MY_KEY").act(states("a"), rng())
    assert "MY_KEY" in str(error.value)
    assert model.requests == []


def test_silence_is_waited_for_once_and_not_by_every_request(model, monkeypatch):
    waited = []
    monkeypatch.setattr("preplay.policies._endpoint.time.sleep", waited.append)
    model.server_close()
    with pytest.raises(PreplayError, match="does not answer"):
        policy(model, concurrency=1).act(states(*map(str, range(50))), rng())
    assert waited == [1.0, 2.0, 4.0, 8.0]
