"""The process in which untrusted code runs. Started as a script with nothing but the standard library in reach.

It reads one JSON job per line, forks a child for each, and answers one JSON line. What is right never enters this
process: it returns what the code returned, and the grader outside compares. Barriers, from the outside in: a network
namespace without interfaces, no right to write files (another user, or a read-only mount namespace), no privileges to
regain them, limits on CPU time, memory, file size, processes and answer length, and an audit hook that refuses
sockets, processes and changes of files with a readable error.
"""

import ast
import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import sys
import time

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
PR_SET_NO_NEW_PRIVS, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 38, -100, 0x8000, 1
MOUNT_SETATTR = 442  # the same number on every architecture
NOBODY = 65534
PLAIN = (int, float, str, bool, type(None))
MAX_ANSWER = 1 << 20
REFUSED = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
    "os.rmdir",
)
REFUSED += ("os.rename", "os.truncate", "os.kill", "shutil.", "ctypes.", "pty.", "signal.")


# Loaded before the right to read files may be gone: what solutions import, and what shows why it is refused.
PRELOADED = (
    "bisect",
    "collections",
    "copy",
    "datetime",
    "decimal",
    "fractions",
    "functools",
    "heapq",
    "itertools",
)
PRELOADED += (
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "typing",
    "socket",
    "subprocess",
    "shutil",
)
PRELOADED += ("dataclasses", "enum", "pathlib", "textwrap", "encodings.idna")


class MountAttr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def isolate() -> dict:
    """Cut off network and file system for good; says what of it the machine allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.getuid() == 0
    network = libc.unshare(CLONE_NEWNET if root else CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0
    if root:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        files = True
    else:
        attr = MountAttr(attr_set=MOUNT_ATTR_RDONLY)
        arguments = (AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(attr), ctypes.c_size_t(ctypes.sizeof(attr)))
        files = network and libc.syscall(MOUNT_SETATTR, *arguments) == 0
    drop_capabilities(libc)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return {"network": network, "files": files}


def drop_capabilities(libc) -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def limit(seconds: float, megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cpu = int(seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time, so that a busy machine fails nobody


def refuse(event: str, arguments: tuple) -> None:
    writes = event == "open" and isinstance(arguments[1], str) and any(c in arguments[1] for c in "wax+")
    if writes or event.startswith(REFUSED):
        raise PermissionError(f"the sandbox does not allow {event}")


def is_plain(value, depth: int = 0) -> bool:
    """Only exact built-in types leave the sandbox: their text cannot be forged by the code."""
    if type(value) in PLAIN:
        return True
    if depth > 20:
        return False
    if type(value) in (list, tuple, set):
        return all(is_plain(v, depth + 1) for v in value)
    if type(value) is dict:
        return all(is_plain(k, depth + 1) and is_plain(v, depth + 1) for k, v in value.items())
    return False


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def run_one(function, text: str) -> dict:
    try:
        value = function(*ast.literal_eval(text))
        return {"value": repr(value)} if is_plain(value) else {"error": f"returned a {type(value).__name__}"}
    except BaseException as error:
        return {"error": describe(error)}


def answer(job: dict) -> dict:
    """Run the code and its function on every input (this is the untrusted child)."""
    space = {"__name__": "solution"}
    try:
        exec(compile(job["code"], "solution.py", "exec"), space)
        function = space[job["function"]]
    except KeyError:
        return {"status": "error", "message": f"there is no function {job['function']}"}
    except BaseException as error:
        return {"status": "error", "message": describe(error)}
    return {"status": "ok", "outputs": [run_one(function, text) for text in job["inputs"]]}


def child(job: dict, pipe: int, settings: dict) -> None:
    os.setsid()
    limit(settings["seconds"], settings["megabytes"])
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    sys.addaudithook(refuse)
    data = json.dumps(answer(job)).encode()
    while data:
        data = data[os.write(pipe, data) :]


def collect(pipe: int, deadline: float) -> bytes:
    """What the child wrote until it closed the pipe, wrote too much or ran out of time."""
    parts, size = [], 0
    while size <= MAX_ANSWER and (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            break
        part = os.read(pipe, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def execute(job: dict, settings: dict) -> dict:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            child(job, writing, settings)
        finally:
            os._exit(0)
    os.close(writing)
    data = collect(reading, time.monotonic() + 1 + 5 * settings["seconds"])
    os.close(reading)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        return json.loads(data)
    except ValueError:
        stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (
            signal.SIGPROF,
            signal.SIGXCPU,
            signal.SIGKILL,
        )
        return {
            "status": "timeout" if stopped else "crash",
            "message": "time ran out" if stopped else "it crashed",
        }


def main() -> None:
    settings = json.loads(sys.stdin.readline())
    os.chdir("/")
    for name in PRELOADED:
        importlib.import_module(name)
    print(json.dumps(isolate()), flush=True)
    for line in sys.stdin:
        print(json.dumps(execute(json.loads(line), settings)), flush=True)


if __name__ == "__main__":
    main()
