"""Each adapter takes its family's actions apart, good ones and bad ones."""

import json
import time

import pytest

from preplay.actions import ParsedAction, adapters, detect_adapters
from preplay.actions._registry import choose_adapter


def parse(family: str, action: str) -> ParsedAction:
    return adapters()[family].parse(action)


def test_sql_names_and_values():
    made = parse(
        "sql", "SELECT o.name, count(*) FROM Owner o JOIN pets AS p ON o.id = p.oid WHERE p.kind = 'dog'"
    )
    assert made.status == "parsed"
    assert made.tool == "select join"
    assert set(made.calls[0].identifiers) == {"owner", "pets", "name", "id", "oid", "kind"}
    assert made.calls[0].arguments == ("dog",)


def test_sql_layout_case_and_semicolon_do_not_matter():
    assert parse("sql", "select  A from T;").canonical == parse("sql", "SELECT a\nFROM t").canonical


@pytest.mark.parametrize(
    ("action", "tool", "names"), [("DESC pets", "describe", ("pets",)), ("SHOW TABLES", "show", ())]
)
def test_sql_schema_commands(action, tool, names):
    made = parse("sql", action)
    assert (made.tool, made.calls[0].identifiers, made.status) == (tool, names, "parsed")


@pytest.mark.parametrize("action", ["SELECT FROM WHERE (", "SELECT <x> FROM <y", "SELECT 'open", "DROP", ";"])
def test_unparsable_sql_is_said_to_be_broken(action):
    assert parse("sql", action).status in ("broken", "parsed")
    assert parse("sql", "SELECT * FROM (SELECT").status == "broken"


OPENAI = {
    "tool_calls": [{"id": "1", "function": {"name": "get_order", "arguments": '{"id": "#W1", "n": [1, 2]}'}}]
}
ANTHROPIC = [
    {"type": "text", "text": "x"},
    {"type": "tool_use", "name": "get_order", "input": {"id": "#W1", "n": [1, 2]}},
]
TAU = {"name": "get_order", "kwargs": {"id": "#W1", "n": [1, 2]}}
BLOCK = 'Sure.\n{"tool_calls":[{"arguments":"{\'id\': \'#W1\', \'n\': \\"[1, 2]\\"}","name":"get_order"}]}'


@pytest.mark.parametrize("action", [json.dumps(OPENAI), json.dumps(ANTHROPIC), json.dumps(TAU), BLOCK])
def test_json_calls_of_every_shape(action):
    made = parse("json", action)
    assert made.tool == "get_order"
    assert made.calls[0].arguments == ("#W1", "1", "2")
    assert choose_adapter(action, adapters()) == "json"


def test_several_json_calls_in_a_turn():
    action = json.dumps({"tool_calls": [{"name": n, "arguments": {"k": n}} for n in ("a", "b", "a")]})
    made = parse("json", action)
    assert [c.tool for c in made.calls] == ["a", "b", "a"]
    assert made.tool == "a+b"


def test_half_a_json_call_keeps_its_name():
    made = parse("json", '{"tool_calls": [{"name": "refund", "arguments": {"id": "#W')
    assert (made.status, made.tool) == ("broken", "refund")


def test_python_calls_with_loop_constants():
    code = '<execute>\nfor x in ["desk 1", "bed 1"]:\n    r = goto(x)\n    print(r)\n</execute>'
    made = parse("python", code)
    assert [(c.tool, c.arguments) for c in made.calls] == [("goto", ("desk 1", "bed 1"))]
    assert parse("python", "<solution> done </solution>").calls[0].tool == "solution"


def test_python_comments_do_not_matter_and_own_functions_are_no_tools():
    one, two = "def f(x):\n    return x\nput(f('a'))  # why", "def f(x):\n  return x\nput( f('a') )"
    assert parse("python", one).canonical == parse("python", two).canonical
    assert parse("python", one).tool == "put"


def test_python_that_does_not_parse_still_shows_its_calls():
    made = parse("python", "<execute>goto('desk 1'\nput(</execute>")
    assert (made.status, made.tool) == ("broken", "goto+put")


def test_shell_pipes_paths_and_redirects():
    made = parse("shell", "cd /src && grep -rn 'def main' app.py | head -5 > out.txt")
    assert [c.tool for c in made.calls] == ["cd", "grep", "head"]
    assert made.calls[0].identifiers == ("/src",)
    assert made.calls[1].arguments == ("-rn", "def main")
    assert "out.txt" in made.calls[2].identifiers


def test_shell_that_bashlex_cannot_read_is_split_into_words():
    made = parse("shell", "git commit -m 'half a quote | wc")
    assert made.status == "partial"
    assert [c.tool for c in made.calls] == ["git", "wc"]


@pytest.mark.parametrize("family", ["sql", "json", "python", "shell"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "((((" * 2000,
        "x" * 100_000,
        "[" * 100_000,
        "{" * 5000,
        "SELECT " * 9000,
        "f(" * 20_000,
        "ü" * 50,
    ],
)
def test_hostile_actions_come_back_quickly(family, text):
    began = time.process_time()
    assert isinstance(parse(family, text), ParsedAction)
    assert time.process_time() - began < 5


def test_100_kb_of_code():
    code = "\n".join(f"x{i} = goto('desk {i}')" for i in range(4000))
    assert len(code) > 90_000
    made = parse("python", code)
    assert (made.status, len(made.calls)) == ("parsed", 4000)


def test_families_are_told_apart():
    mixed = [
        "SELECT 1 FROM t",
        "ls -la src/",
        json.dumps(TAU),
        "<execute>goto('x')</execute>",
        "Hello, how are you?",
    ]
    shares = detect_adapters(mixed).shares
    assert shares == {"sql": 0.2, "shell": 0.2, "json": 0.2, "python": 0.2, "text": 0.2}
    assert "20% sql" in detect_adapters(mixed).sentence()


def test_plain_sentences_are_text():
    talk = [
        "I will find it for you.",
        "Select one of these: a, b",
        "Could you open the file, please?",
        "Thanks!",
    ]
    assert detect_adapters(talk[:1] + talk[2:]).shares == {"text": 1.0}
