"""A running server in this process: Ray, Serve and the application, up and down in order."""

import os
import signal
import threading
from collections.abc import Callable

from preplay_serve._config import ServerConfig


def serve_until(
    stop: threading.Event,
    config: ServerConfig,
    *,
    host: str,
    port: int,
    haproxy: bool = False,
    address: str | None = None,
    num_cpus: int | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the event is set or a signal comes; then requests end and evaluations are given back.

    Args:
        haproxy: Put HAProxy in front of the replicas, as Ray Serve offers it.
        address: Ray cluster; a local one by default.
        on_ready: Called when requests are answered.
    """
    _prepare_serve(haproxy)
    import ray
    from ray import serve
    from ray.serve.schema import LoggingConfig

    from preplay.stage import connect
    from preplay_serve.app import application

    connect(address, num_cpus=num_cpus)
    for number in (signal.SIGINT, signal.SIGTERM):  # after Ray, which installs handlers of its own
        signal.signal(number, lambda *_: stop.set())
    quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
    serve.start(http_options={"host": host, "port": port, "request_timeout_s": None}, logging_config=quiet)
    try:
        serve.run(application(config), name="preplay", route_prefix="/", logging_config=quiet)
        on_ready()
        stop.wait()
    finally:
        serve.shutdown()
        if address is None:
            ray.shutdown()


def _prepare_serve(haproxy: bool) -> None:
    """Switches that Serve reads when it is imported, here and in the processes that it starts.

    Nothing here blocks an event loop for long, so that replicas and proxies do all in one: Serve's hand-over between
    two loops, of every request and every answer, costs more than a remembered decision.
    """
    for name in ("RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD", "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP"):
        os.environ.setdefault(name, "0")
    if haproxy:
        os.environ["RAY_SERVE_ENABLE_HA_PROXY"] = "1"
