"""The Serve application, for ``serve run preplay_serve.app:build``, ``serve deploy`` and ``preplay serve``.

Two deployments. ``Api`` answers requests; its replicas score what waits together in one pass. ``Evaluator`` is one
replica that starts evaluations as Ray tasks. They speak through the store alone, so either may be killed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve.config import AutoscalingConfig, BackpressureConfig
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from preplay.errors import PreplayError
from preplay_serve._catalog import refresh
from preplay_serve._config import ServerConfig
from preplay_serve._logs import configure_logs
from preplay_serve._scoring import Scored, ScoreItem, Scoring
from preplay_serve.api import Service, create_app
from preplay_serve.evaluator import Runner
from preplay_serve.store import open_store


class BuildArgs(BaseModel):
    """Arguments of :func:`build`; in a YAML file under ``args``. See :class:`ServerConfig` for the fields."""

    model_config = ConfigDict(extra="allow")


@serve.deployment
@serve.ingress()
class Api:
    """HTTP in, decisions out."""

    def __init__(self, config: ServerConfig, _evaluator: DeploymentHandle | None = None):
        torch.set_num_threads(1)  # more replicas instead
        configure_logs()
        self._config, self._store = config, open_store(config.database_url)
        self._scoring = Scoring(config, self._store)
        self._scoring.pool.warm()
        self._thread = ThreadPoolExecutor(1)  # of several, each would come to hold a pass's memory
        batched: Any = self.decide
        batched.set_max_batch_size(config.scoring.batch)
        batched.set_batch_wait_timeout_s(config.scoring.wait_s)
        # Tells Serve which critics are loaded here, so that requests that name theirs in a header come here again.
        self._hold: Any = serve.multiplexed(max_num_models_per_replica=config.scoring.loaded_models)(
            _loader(self._scoring)
        )
        self._watch = asyncio.get_event_loop().create_task(self._look_for_models())

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Called by Serve once the replica is set up."""
        return create_app(Service(self._config, self._store, self._answer))

    async def _answer(self, item: ScoreItem) -> Scored | PreplayError:
        if not self._scoring.pool.holds(item.model):
            try:
                await self._hold(item.model)
            except PreplayError as error:
                return error
        return await self.decide(item)  # pyright: ignore[reportArgumentType, reportReturnType]

    @serve.batch
    async def decide(self, items: list[ScoreItem]) -> list[Scored | PreplayError]:
        """Everything that came while the last pass was made is decided in the next one."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._scoring.decide, items)

    async def check_health(self) -> None:
        """Called by Serve; a replica whose store does not answer is replaced."""
        await asyncio.to_thread(self._store.ping)

    async def _look_for_models(self) -> None:
        while True:
            await asyncio.sleep(self._config.scoring.poll_s)
            await asyncio.to_thread(self._scoring.pool.refresh)


def _loader(scoring: Scoring) -> Callable[[str], Awaitable[str]]:
    """A function that loads a critic; a plain one, as Serve hangs what it knows on it."""

    async def load(name: str) -> str:
        await asyncio.to_thread(scoring.pool.get, name)
        return name

    return load


@serve.deployment
class Evaluator:
    """Runs evaluations; one replica. Another may take over at any time: what counts is in the store."""

    def __init__(self, config: ServerConfig):
        configure_logs()
        self._runner = Runner(config, open_store(config.database_url))
        self._runner.start()

    def check_health(self) -> None:
        """Called by Serve; a replica whose runner has stopped is replaced."""
        self._runner.check()

    def __del__(self) -> None:
        """Called by Serve before the replica goes: what runs is given back."""
        self._runner.stop()


def build(args: BuildArgs) -> serve.Application:
    """The application from ``args`` of a YAML file or of ``serve run ... key=value``."""
    return application(ServerConfig.model_validate(args.model_extra or {}))


def application(config: ServerConfig) -> serve.Application:
    """The application for a configuration; registers what lies in its folders."""
    config.check_endpoints()
    refresh(config, open_store(config.database_url))
    scoring = config.scoring
    api_deployment: Any = Api
    evaluator_deployment: Any = Evaluator
    api = api_deployment.options(
        max_ongoing_requests=config.limits.concurrent_scores + 64,
        max_queued_requests=config.limits.concurrent_scores,
        backpressure_config=BackpressureConfig(status_code=503, retry_after_s=1),
        autoscaling_config=AutoscalingConfig(
            min_replicas=scoring.min_replicas,
            max_replicas=scoring.max_replicas,
            target_ongoing_requests=max(1, scoring.batch // 4),  # full batches need no more
        ),
        ray_actor_options={"num_cpus": scoring.replica_cpus},
        graceful_shutdown_timeout_s=20,
        health_check_period_s=5,
    )
    evaluator = evaluator_deployment.options(
        ray_actor_options={"num_cpus": 0}, graceful_shutdown_timeout_s=10, health_check_period_s=5
    )
    return api.bind(config, evaluator.bind(config))
