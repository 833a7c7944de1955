"""The runner: takes evaluations from the store as slots get free, and watches over the Ray tasks that do them."""

import logging
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Literal

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError, WorkerCrashedError
from sqlalchemy.exc import SQLAlchemyError

from preplay.errors import PreplayError
from preplay_serve._config import ServerConfig
from preplay_serve.evaluator._execute import execute
from preplay_serve.store import EvaluationRecord, Store

log = logging.getLogger(__name__)
_SILENT_S = 60.0
_PRUNE_S = 600.0


@dataclass
class _Job:
    """An evaluation that runs; ``end`` is its final state once it was told to stop."""

    record: EvaluationRecord
    task: Any
    began: float
    end: Literal["cancelled", "failed"] | None = None


class Runner:
    """Runs evaluations in a thread of its own. Several may run against one store: each claims its own.

    Ray must be running.
    """

    def __init__(self, config: ServerConfig, store: Store):
        self._config, self._settings, self._store = config, config.evaluations, store
        self._owner = uuid.uuid4().hex
        self._jobs: dict[str, _Job] = {}
        self._stop = threading.Event()
        self._seen = self._prune_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="evaluations", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def check(self) -> None:
        """Raise when the runner does not run any more."""
        if not self._thread.is_alive() or time.monotonic() - self._seen > _SILENT_S:
            raise RuntimeError("the runner of evaluations has stopped")

    def stop(self) -> None:
        """Give back what runs and end; a later runner goes on where the imagined sessions stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        for job in self._jobs.values():
            ray.cancel(job.task, force=True)
            self._store.evaluations.release(job.record.id, self._owner)

    def _run(self) -> None:
        while not self._stop.wait(self._settings.poll_s):
            try:
                self._tick()
            except SQLAlchemyError as error:  # the database is away: leases run out, nothing else is lost
                log.error("the store does not answer: %s", type(error).__name__)
            self._seen = time.monotonic()

    def _tick(self) -> None:
        for job in list(self._jobs.values()):
            self._watch(job)
        for lost in self._store.evaluations.abandoned():
            self._store.evaluations.finish(lost, None, "cancelled")
        while record := self._store.evaluations.claim(
            self._owner, lease_s=self._settings.lease_s, slots=self._slots()
        ):
            self._begin(record)
        if time.monotonic() >= self._prune_at:
            self._prune()

    def _begin(self, record: EvaluationRecord) -> None:
        if record.attempts > self._settings.attempts:
            error = f"Its workers died {self._settings.attempts} times; it is given up."
            self._finish(record.id, "failed", error=error)
            return
        # No CPU is booked for the task: it waits for others that do the work, and must not take their place.
        task = ray.remote(execute).options(num_cpus=0, max_retries=0, name=f"evaluate {record.id}")
        self._jobs[record.id] = _Job(record, task.remote(self._config, record, self._owner), time.monotonic())
        log.info("evaluation started", extra={"fields": {"id": record.id, "attempt": record.attempts}})

    def _watch(self, job: _Job) -> None:
        status = self._store.evaluations.keep(job.record.id, self._owner, lease_s=self._settings.lease_s)
        if job.end is None and status != "running":  # cancelled, or taken over by another runner
            self._stop_job(job, "cancelled")
        elif job.end is None and time.monotonic() - job.began > self._settings.longest_s:
            self._stop_job(job, "failed")
        ready, _ = ray.wait([job.task], timeout=0)
        if ready:
            del self._jobs[job.record.id]
            self._end(job)

    def _stop_job(self, job: _Job, end: Literal["cancelled", "failed"]) -> None:
        job.end = end
        ray.cancel(job.task, force=True)

    def _end(self, job: _Job) -> None:
        try:
            report: Any = ray.get(job.task)
        except (TaskCancelledError, WorkerCrashedError):
            self._again(job)
        except RayTaskError as error:
            if _crash(error):
                self._again(job)
            else:
                self._finish(job.record.id, "failed", error=_plain(error))
        except RayError as error:
            self._finish(job.record.id, "failed", error=f"Ray could not run it ({type(error).__name__}).")
        else:
            self._finish(job.record.id, "succeeded", report=report)

    def _again(self, job: _Job) -> None:
        """A worker died: end what was told to, else give it back, to be claimed again at once."""
        if job.end == "failed":
            error = f"It ran longer than {self._settings.longest_s:g} seconds, which the server allows."
            self._finish(job.record.id, "failed", error=error)
        elif job.end:
            self._finish(job.record.id, job.end)
        else:
            log.warning("evaluation's worker died", extra={"fields": {"id": job.record.id}})
            self._store.evaluations.release(job.record.id, self._owner)

    def _finish(
        self, evaluation_id: str, status, *, report: str | None = None, error: str | None = None
    ) -> None:
        self._store.evaluations.finish(evaluation_id, self._owner, status, report_json=report, error=error)
        log.info("evaluation ended", extra={"fields": {"id": evaluation_id, "status": status}})

    def _prune(self) -> None:
        """Delete old decisions, as the settings say."""
        scoring = self._config.scoring
        gone = self._store.decisions.prune(keep_days=scoring.keep_days, keep=scoring.keep_decisions)
        self._prune_at = time.monotonic() + _PRUNE_S
        if gone:
            log.info("decisions deleted", extra={"fields": {"count": gone}})

    def _slots(self) -> int:
        if self._settings.concurrency:
            return self._settings.concurrency
        return max(1, int(ray.cluster_resources().get("CPU", 1)) // 4)


def _crash(error: RayTaskError) -> bool:
    """Whether a worker below the task died, which another try may outlive."""
    return isinstance(error.cause, RayError) and not isinstance(error.cause, RayTaskError)


def _plain(error: RayTaskError) -> str:
    """What a user may read: our own errors without paths, of others the kind only."""
    if isinstance(error.cause, PreplayError):
        return f"{error.cause.what} {error.cause.fix or ''}".strip()
    return f"It failed with {type(error.cause).__name__}; the server's log has more."
