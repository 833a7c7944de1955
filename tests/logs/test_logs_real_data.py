"""The real logs: counts and success rates against what their authors published."""

import pandas as pd
import pytest
from logs_helpers import shared

from preplay.logs import read_logs

INTERCODE_SUCCESS = {
    "gpt-4": 0.737,
    "gpt-3.5": 0.473,
    "text-davinci-003": 0.156,
    "text-bison-001": 0.129,
    "chat-bison-001": 0.099,
    "starchat": 0.097,
    "vicuna": 0.063,
    "gpt-4-1-turns": 0.091,
}


def success(result) -> dict[str, float]:
    """Share of sessions with a reward of 1, per policy."""
    frame: pd.DataFrame = result.turns.select(["policy", "session_id", "reward"]).to_pandas()
    best = frame.groupby(["policy", "session_id"])["reward"].max()
    return (best == 1).groupby("policy").mean().to_dict()


def test_intercode():
    result = read_logs([shared("intercode-sql")])
    assert success(result) == pytest.approx(INTERCODE_SUCCESS, abs=5e-4)
    assert result.turns.num_rows == 59_521
    assert result.records == {"read": 8270, "quarantined": 0, "merged": 0}
    assert result.quarantined == []


def test_tau_bench():
    result = read_logs([shared("tau-bench")])
    assert success(result) == {"gpt-4o-airline": 0.42}  # 84 of 200
    assert result.records == {"read": 200, "quarantined": 0, "merged": 0}


def test_tau_bench_variants_quarantine_the_failed_runs():
    result = read_logs([shared("tau-bench-harness-variants")])
    assert list(success(result).values()) == pytest.approx([35 / 66, 0.73, 0.70])
    assert result.records == {"read": 266, "quarantined": 34, "merged": 0}
    assert all(q.reason.startswith("an empty traj: the run failed") for q in result.quarantined)


MINT_SUCCESS = {
    "gpt-4-0613": 0.843,
    "Meta-Llama-3-70B-Instruct": 0.836,
    "CodeActAgent-Mistral-7b-v0.1": 0.821,
    "deepseek-llm-67b-chat": 0.716,
    "Mixtral-8x7B-Instruct-v0.1": 0.642,
    "lemur-70b-chat-v1": 0.597,
    "claude-instant-1": 0.470,
    "gpt-3.5-turbo-0613": 0.418,
    "CodeLlama-34b-Instruct-hf": 0.373,
    "Meta-Llama-3-8B-Instruct": 0.373,
    "chat-bison-001": 0.299,
    "claude-2": 0.142,
    "Mistral-7B-Instruct-v0.2": 0.082,
    "vicuna-13b-v1.5": 0.082,
    "Qwen1.5-72B-Chat": 0.060,
}


def test_mint():
    result = read_logs([shared("mint-alfworld")])
    assert success(result) == pytest.approx(MINT_SUCCESS, abs=5e-4)
    assert (result.turns.num_rows, result.records["read"], len(result.quarantined)) == (7023, 2010, 0)


def test_swe_agent():
    result = read_logs([shared("swe-agent-traj")])
    assert (result.turns.num_rows, result.records["read"], len(result.quarantined)) == (232, 22, 0)
