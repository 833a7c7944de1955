"""``/v1/score`` on Ray Serve, with HAProxy and without, beside the bare call and a plain server without batches.

K = 8 candidates on MiniLM embeddings. *Cold*: every text is new. *Cached*: 32 requests again and again. Serve runs a
replica per core; client, proxy and replicas share the cores.
"""

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
import yaml

from benchmarks._common import bench_main
from benchmarks._serve_load import Load, make_critic, measure, request
from preplay.control import Controller
from preplay.critics import DecisionState
from preplay_serve._config import ServerConfig
from preplay_serve._critic import load_served_critic

COUNTS = {"debug": {1: 30, 16: 64, 64: 128}, "full": {1: 100, 16: 320, 64: 640}}
MEMORY = {"debug": 300, "full": 20_000}
REPLICAS = os.cpu_count() or 1
SETTINGS = {
    "limits": {"requests_per_second": 100_000, "concurrent_scores": 512},
    "scoring": {
        "remembered_texts": 5_000,
        "min_replicas": REPLICAS,
        "max_replicas": REPLICAS,
        "controllers": {},
    },
}
GOALS = {
    "serve cold c=1, p50 over the bare call in ms": "<= 5",
    "haproxy cold c=1, p50 over the bare call in ms": "<= 5",
    "serve / plain, cold throughput at 64": ">= 4",
    "haproxy / plain, cold throughput at 64": ">= 4",
    "haproxy cached / cold, throughput at 64": ">= 10",
    "memory, last tenth / first tenth": "<= 1.05",
}


def run(preset: str) -> dict[str, float]:
    """All figures; each server runs alone."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_critic(folder / "models" / "critic")
        bare = _Bare(folder / "models" / "critic")
        found: dict[str, float] = {}
        with _plain(folder) as url:
            found |= bare.beside("plain", COUNTS[preset][1]) | _figures("plain", url, COUNTS[preset])
        with _served(folder, "--no-haproxy") as (url, _):
            found |= bare.beside("serve", COUNTS[preset][1]) | _figures("serve", url, COUNTS[preset])
        with _served(folder, "--haproxy") as (url, process):
            found |= bare.beside("haproxy", COUNTS[preset][1]) | _figures("haproxy", url, COUNTS[preset])
            found |= _memory(url, process, MEMORY[preset])
    return found | _ratios(found)


class _Bare:
    """The call in this process, measured anew beside every server: what else runs here comes and goes."""

    def __init__(self, critic: Path):
        served = load_served_critic(str(critic), ServerConfig(), encoders={})
        self._controller = Controller(served.scorer, served.encoder)
        self._fresh = map(request, itertools.count(10**5))
        self.beside("warm-up", 5)

    def beside(self, label: str, count: int) -> dict[str, float]:
        """Medians of ``count`` new requests, and of the same ones again."""
        bodies = [next(self._fresh) for _ in range(count)]
        return {
            f"bare call beside {label} {state}, p50 in ms": float(
                np.median([self._decide(b) for b in bodies])
            )
            for state in ("cold", "cached")
        }

    def _decide(self, body: dict[str, Any]) -> float:
        state = DecisionState(**body["state"])
        began = time.perf_counter()
        self._controller.decide(state, body["candidates"])
        return (time.perf_counter() - began) * 1000


def _figures(label: str, url: str, counts: dict[int, int]) -> dict[str, float]:
    """Percentiles and throughput, cold and cached, per concurrency."""
    fresh = map(request, itertools.count(1000))
    again = itertools.cycle([request(n) for n in range(32)])
    measure(url, again, count=32 * 12, concurrency=8)  # warm, and the cached ones known to every replica
    found: dict[str, float] = {}
    for state, requests in (("cold", fresh), ("cached", again)):
        for concurrency, count in counts.items():
            many = count if state == "cold" else 3 * count
            found |= _named(
                f"{label} {state} c={concurrency}",
                measure(url, requests, count=many, concurrency=concurrency),
            )
    return found


def _named(label: str, load: Load) -> dict[str, float]:
    found = {
        f"{label}, {name} in ms": value for name, value in load._asdict().items() if name != "per_second"
    }
    return found | {f"{label}, requests/s": load.per_second}


def _memory(url: str, process: subprocess.Popen, count: int) -> dict[str, float]:
    """Resident memory of the scoring replicas while ``count`` requests, a tenth of them new, go through."""
    fresh, again = map(request, itertools.count(10**7)), itertools.cycle([request(n) for n in range(32)])
    mixed = (next(fresh) if n % 10 == 0 else next(again) for n in itertools.count())
    replicas = _replicas(process)
    sizes = []
    for _ in range(10):
        measure(url, mixed, count=count // 10, concurrency=64)
        sizes.append(sum(replica.memory_info().rss for replica in replicas) / 2**20)
    return {
        f"memory, MiB after the first tenth of {count} requests": sizes[0],
        "memory, MiB after half": sizes[4],
        "memory, MiB after all": sizes[-1],
        "memory, last tenth / first tenth": sizes[-1] / sizes[0],
    }


def _replicas(server: subprocess.Popen) -> list[psutil.Process]:
    children = psutil.Process(server.pid).children(recursive=True)
    return [p for p in children if "ServeReplica:preplay:Api" in " ".join(p.cmdline())]


@contextmanager
def _plain(folder: Path) -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "benchmarks._serve_plain", str(folder / "models" / "critic"), str(port)]
    with _process(command, f"http://127.0.0.1:{port}/openapi.json"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _served(folder: Path, haproxy: str) -> Iterator[tuple[str, subprocess.Popen]]:
    port, config = _free_port(), folder / "server.yaml"
    settings = SETTINGS | {"models": str(folder / "models"), "state": str(folder / f"state{haproxy}")}
    config.write_text(yaml.safe_dump(settings))
    preplay = str(Path(sys.executable).with_name("preplay"))
    command = [preplay, "serve", "--config", str(config), "--port", str(port), haproxy, "--num-cpus", "2"]
    with _process(command, f"http://127.0.0.1:{port}/readyz") as process:
        yield f"http://127.0.0.1:{port}", process


@contextmanager
def _process(command: list[str], ready: str) -> Iterator[subprocess.Popen]:
    """A server in a process of its own, up when ``ready`` answers, and ended as its operator would."""
    own = os.environ | {"RAY_ADDRESS": "local"}  # not a cluster that happens to run here
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=own) as process:
        try:
            _wait(ready, process)
            yield process
        finally:
            process.terminate()


def _wait(url: str, process: subprocess.Popen, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _ratios(found: dict[str, float]) -> dict[str, float]:
    ratios = {
        f"{label} {state} c=1, p50 over the bare call in ms": found[f"{label} {state} c=1, p50 in ms"]
        - found[f"bare call beside {label} {state}, p50 in ms"]
        for label in ("plain", "serve", "haproxy")
        for state in ("cold", "cached")
    }
    rate = {
        key.removesuffix(", requests/s"): value for key, value in found.items() if key.endswith("requests/s")
    }
    for label in ("serve", "haproxy"):
        for state in ("cold", "cached"):
            ratios[f"{label} / plain, {state} throughput at 64"] = (
                rate[f"{label} {state} c=64"] / rate[f"plain {state} c=64"]
            )
        ratios[f"{label} cached / cold, throughput at 64"] = (
            rate[f"{label} cached c=64"] / rate[f"{label} cold c=64"]
        )
    return ratios


if __name__ == "__main__":
    bench_main(run, title="Serving", goals=GOALS)
