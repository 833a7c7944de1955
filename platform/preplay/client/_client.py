"""The client."""

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import httpx
from pydantic import TypeAdapter

from preplay.client._errors import ServerError
from preplay.client._records import ArtifactInfo, Decision, Evaluation
from preplay.client._transport import Transport

_ARTIFACTS = TypeAdapter(list[ArtifactInfo])
_EVALUATIONS = TypeAdapter(list[Evaluation])


class Client:
    """A preplay server, seen from a program. Safe to use from many threads.

    Example::

        with Client("http://127.0.0.1:8000", token) as preplay:
            decision = preplay.score("critic", candidates, task=task, observation=seen)
            if decision.decision != "review":
                preplay.record_outcome(decision.id, reward=execute(decision.action))

    Args:
        url: Where the server is.
        token: Made by ``preplay serve token create``.
        timeout_s: For each try of a request.
        retries: Tries after the first when the server is busy or away; every request here is safe to repeat.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout_s: float = 15, retries: int = 4):
        self._transport = Transport(url, token, timeout_s=timeout_s, retries=retries)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def score(
        self,
        model: str,
        candidates: Sequence[str],
        *,
        task: str = "",
        observation: str = "",
        turn: int = 0,
        evidence: Sequence[Sequence[float]] | None = None,
        session_id: str = "",
    ) -> Decision:
        """Choose among candidates."""
        body = {
            "model": model,
            "state": {"task": task, "observation": observation, "turn": turn},
            "candidates": list(candidates),
            "evidence": None if evidence is None else [list(row) for row in evidence],
            "session_id": session_id,
        }
        headers = {"serve_multiplexed_model_id": model}  # to a replica that holds the model already
        answer = self._transport.request("POST", "/v1/score", json=body, headers=headers)
        return Decision.model_validate_json(answer.content)

    def record_outcome(self, decision_id: str, *, reward: float, success: bool | None = None) -> None:
        """Tell how a decision went."""
        body = {"reward": reward, "success": success}
        self._transport.request("POST", f"/v1/decisions/{decision_id}/outcome", json=body)

    def evaluate(
        self,
        policies: Sequence[str],
        *,
        dataset: str,
        models: str,
        environment: str | None = None,
        estimators: Sequence[str] | None = None,
        without: Sequence[str] = (),
        preset: Literal["default", "debug"] = "default",
        seed: int = 0,
        idempotency_key: str | None = None,
    ) -> Evaluation:
        """Ask for an evaluation and return at once; with a key of your own, asking again gives the same one."""
        body: dict[str, Any] = {
            "policies": list(policies), "dataset": dataset, "models": models, "environment": environment,
            "estimators": None if estimators is None else list(estimators), "without": list(without),
            "preset": preset, "seed": seed,
        }  # fmt: skip
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        answer = self._transport.request("POST", "/v1/evaluations", json=body, headers=headers)
        return Evaluation.model_validate_json(answer.content)

    def evaluation(self, evaluation_id: str) -> Evaluation:
        """An evaluation with its report, once there is one."""
        answer = self._transport.request("GET", f"/v1/evaluations/{evaluation_id}")
        return Evaluation.model_validate_json(answer.content)

    def evaluations(self, *, limit: int = 50) -> list[Evaluation]:
        """The newest first, without reports."""
        answer = self._transport.request("GET", "/v1/evaluations", params={"limit": limit})
        return _EVALUATIONS.validate_json(answer.content)

    def follow(self, evaluation_id: str) -> Iterator[Evaluation]:
        """The evaluation at every change until it is final; goes on where a broken connection stopped."""
        broken = 0
        while True:
            try:
                with self._transport.stream(f"/v1/evaluations/{evaluation_id}/events") as lines:
                    for line in lines:
                        if line.startswith("data: "):
                            broken, seen = 0, Evaluation.model_validate_json(line[6:])
                            yield seen
                            if seen.final:
                                return
            except (httpx.TransportError, ServerError) as error:
                broken += 1
                if broken > 20 or (isinstance(error, ServerError) and not error.passing):
                    raise
            time.sleep(1)

    def wait(self, evaluation_id: str, *, timeout_s: float = 3600) -> Evaluation:
        """The final evaluation, with its report.

        Raises:
            TimeoutError: When it is not final in time; it goes on.
        """
        deadline = time.monotonic() + timeout_s
        while not (found := self.evaluation(evaluation_id)).final:
            if time.monotonic() > deadline:
                raise TimeoutError(f"evaluation {evaluation_id} is {found.status} after {timeout_s} s")
            time.sleep(1)
        return found

    def cancel(self, evaluation_id: str) -> Evaluation:
        """Cancel an evaluation."""
        answer = self._transport.request("DELETE", f"/v1/evaluations/{evaluation_id}")
        return Evaluation.model_validate_json(answer.content)

    def models(self) -> list[ArtifactInfo]:
        """Critics and world models."""
        return _ARTIFACTS.validate_json(self._transport.request("GET", "/v1/models").content)

    def datasets(self) -> list[ArtifactInfo]:
        """Embedded datasets."""
        return _ARTIFACTS.validate_json(self._transport.request("GET", "/v1/datasets").content)
