"""The sandbox holds: time, memory, network, files, processes, forged answers."""

import pytest

from preplay.environments.code_repair import Grader, Job, SandboxConfig, all_tasks, run_jobs

TASK = next(task for task in all_tasks() if task.name == "clamp")
LIMITS = SandboxConfig(seconds=0.2)


def run(code: str):
    (result,), _ = run_jobs([Job(code, "f", ((1,),))], LIMITS)
    return result


def test_a_value_comes_back_as_its_text():
    assert run("def f(x):\n    return {'a': [x, (2.5, None)]}").outputs == (
        {"value": "{'a': [1, (2.5, None)]}"},
    )


def test_time_is_limited():
    assert run("def f(x):\n    while True:\n        pass").status == "timeout"


def test_sleepers_are_stopped_by_the_wall_clock():
    assert run("import time\ndef f(x):\n    time.sleep(60)").status == "timeout"


def test_memory_is_limited():
    assert "MemoryError" in run("def f(x):\n    return bytearray(2 ** 31)").outputs[0]["error"]


@pytest.mark.parametrize(
    "body",
    [
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import os; os.remove('/etc/hostname')",
        "open('preplay-sandbox-escape', 'w')",
    ],
)
def test_network_processes_and_files_are_refused(body):
    assert "PermissionError" in run(f"def f(x):\n    {body}").outputs[0]["error"]


def test_the_operating_system_refuses_too():
    """Without the audit hook's help: raw system calls through an already imported module."""
    code = "import os\ndef f(x):\n    return os.open('/etc/preplay-escape', os.O_CREAT | os.O_WRONLY)"
    assert "error" in run(code).outputs[0]


def test_forged_answers_are_crashes():
    forged = 'import os\nfor d in range(3, 9):\n    try:\n        os.write(d, b\'{"status":"ok","outputs":[1]}\')\n'
    forged += "    except OSError:\n        pass\nos._exit(0)"
    assert run(forged).status == "crash"


def test_objects_that_claim_to_be_equal_do_not_leave():
    code = "class E(int):\n    def __eq__(s, o): return True\ndef clamp(x, low, high):\n    return E(7)"
    assert Grader(LIMITS).grade(TASK, code).public_passed == 0


def test_flooding_output_is_cut():
    assert run("def f(x):\n    return 'x' * 3_000_000").status in ("timeout", "crash")


def test_one_crash_leaves_the_others_alone():
    codes = ["def f(x):\n    return x", "import os\nos._exit(3)", "def f(", "def f(x):\n    return f(x)"]
    results, isolation = run_jobs([Job(code, "f", ((1,),)) for code in codes], LIMITS)
    assert [r.status for r in results] == ["ok", "crash", "error", "ok"]
    assert "RecursionError" in results[3].outputs[0]["error"]
    assert isinstance(isolation.network, bool)


def test_impossible_limits_are_refused():
    with pytest.raises(ValueError, match="too small"):
        SandboxConfig(seconds=0)


def test_unicode_and_large_code():
    code = f"def f(x):\n    s = {'ü😀' * 50_000!r}\n    return len(s) + x"
    assert run(code).outputs == ({"value": "100001"},)
