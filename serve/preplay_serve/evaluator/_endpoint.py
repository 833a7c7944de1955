"""A policy behind an OpenAI-compatible endpoint. Its key is read where it is used and never kept or logged."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np

from preplay.errors import PreplayError
from preplay.policies import ActionBatch, AgentState
from preplay_serve._config import EndpointSettings

_TRIES = 4
_TRY_AGAIN = (408, 409, 429, 500, 502, 503, 504)


class EndpointPolicy:
    """Asks the endpoint once per state, at temperature 0.

    Args:
        name: Name in reports.
        settings: Where it is; see :class:`EndpointSettings`.
    """

    deterministic = True

    def __init__(self, name: str, settings: EndpointSettings):
        self.name, self.reads, self._settings = name, settings.reads, settings

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One answer per state; ``rng`` is not used."""
        settings = self._settings
        with httpx.Client(
            timeout=settings.timeout_s, headers=_authorization(settings), follow_redirects=False
        ) as client:
            return ActionBatch([self._ask(client, state) for state in states])

    def _ask(self, client: httpx.Client, state: AgentState) -> str:
        settings = self._settings
        body = {
            "model": settings.model,
            "messages": messages(state, settings.system),
            "temperature": 0,
            "max_tokens": settings.max_tokens,
        }
        for attempt in range(_TRIES):
            answer = self._post(client, body)
            if answer is not None and answer.status_code == 200:
                return _content(answer, self.name)
            if answer is not None and answer.status_code not in _TRY_AGAIN:
                raise PreplayError(f"endpoint {self.name!r} answers {answer.status_code}.")
            if attempt + 1 < _TRIES:
                time.sleep(2.0**attempt)
        raise PreplayError(f"endpoint {self.name!r} does not answer.", fix="Try again later.")

    def _post(self, client: httpx.Client, body: dict) -> httpx.Response | None:
        try:
            return client.post(f"{self._settings.url.rstrip('/')}/chat/completions", json=body)
        except httpx.TransportError:
            return None


def messages(state: AgentState, system: str | None) -> list[dict[str, str]]:
    """A state as a conversation: the agent's own actions are the assistant's."""
    first = "\n\n".join(text for text in (system, state.task) if text)
    said = [{"role": "system", "content": first}] if first else []
    for observation, action in state.history:
        said += [{"role": "user", "content": observation}, {"role": "assistant", "content": action}]
    return [*said, {"role": "user", "content": state.observation}]


def _authorization(settings: EndpointSettings) -> dict[str, str]:
    if settings.key_file:
        key = Path(settings.key_file).read_text().strip()
    elif settings.key_variable:
        key = os.environ.get(settings.key_variable, "")
    else:
        return {}
    if not key:
        raise PreplayError("the endpoint's key is not set.", where=settings.key_variable or settings.key_file)
    return {"Authorization": f"Bearer {key}"}


def _content(answer: httpx.Response, name: str) -> str:
    try:
        content = answer.json()["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        content = None
    if not isinstance(content, str):
        raise PreplayError(f"endpoint {name!r} sent no text.")
    return content
