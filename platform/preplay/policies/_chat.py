"""A language model behind an OpenAI-compatible endpoint as a policy: the new prompt or model that is to be tried."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from preplay.errors import PreplayError
from preplay.policies._answers import StoredAnswers, request_key
from preplay.policies._chat_messages import messages
from preplay.policies._endpoint import Endpoint
from preplay.policies._protocol import ActionBatch, AgentState

_STORED_AT_ONCE = 256  # requests: what a kill may lose


class ChatConfig(BaseModel):
    """Which model answers, and how it is asked. The key is never part of it.

    Args:
        url: Base URL, for example ``https://api.example.org/v1``.
        model: Model name sent to it.
        system: System prompt, put before the session's task.
        show_task: False leaves the logged task out, for a new system prompt instead of the old one.
        tools: Tools it may call, in OpenAI's format.
        temperature: At 0 equal states get one answer.
        samples: Answers per distinct state at a temperature above 0; sessions draw among them.
        max_tokens: Of an answer.
        reads: Earlier turns shown to the model. More of them mean more distinct states, and more requests.
        max_requests: New requests per process before it stops; what was answered by then is kept.
        concurrency: Requests at once, per process.
        timeout_s: Seconds per request.
        key_variable: Environment variable that holds the key; it must be set wherever the policy runs.
        key_file: Or the file that holds it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(pattern=r"^https?://")
    model: str
    system: str | None = None
    show_task: bool = True
    tools: tuple[dict[str, Any], ...] = ()
    temperature: float = Field(default=0.0, ge=0)
    samples: int = Field(default=4, ge=1)
    max_tokens: int = Field(default=512, ge=1)
    reads: int = Field(default=2, ge=0)
    max_requests: int = Field(default=20_000, ge=1)
    concurrency: int = Field(default=8, ge=1)
    timeout_s: float = Field(default=60, gt=0)
    key_variable: str | None = None
    key_file: str | None = None


class ChatPolicy:
    """Asks the endpoint once per distinct request and keeps every answer.

    Args:
        name: Name in reports.
        config: Where the model is and how it is asked.
        answers: Folder (local or any fsspec URI) that keeps answers; in memory only by default.
    """

    def __init__(self, name: str, config: ChatConfig, answers: str | None = None):
        self.name, self.reads, self.deterministic = name, config.reads, config.temperature == 0
        self._config, self._uri = config, answers
        self._stored: StoredAnswers | None = None
        self._asked = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_stored": None, "_asked": 0}  # each process reads the folder itself

    def act(self, states: Sequence[AgentState], rng: np.random.Generator) -> ActionBatch:
        """One answer per state. Above temperature 0 ``rng`` picks which of a state's answers.

        Raises:
            PreplayError: When the endpoint refuses, does not answer, or sends neither text nor a tool call.
        """
        picks = [0] * len(states)
        if not self.deterministic:
            picks = rng.integers(self._config.samples, size=len(states)).tolist()
        requests = [self._request(state, pick) for state, pick in zip(states, picks, strict=True)]
        keys = [request_key(self._config.url, request) for request in requests]
        stored = self._answers()
        if any(key not in stored for key in keys):
            stored.refresh()
        new = {k: r for k, r in zip(keys, requests, strict=True) if k not in stored}
        if new:
            self._ask(new, stored)
        return ActionBatch([stored[key] for key in keys])

    def _answers(self) -> StoredAnswers:
        if self._stored is None:
            self._stored = StoredAnswers(self._uri)
        return self._stored

    def _request(self, state: AgentState, pick: int) -> dict[str, Any]:
        config = self._config
        request = {
            "model": config.model,
            "messages": messages(state, config.system, show_task=config.show_task),
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
        }
        if config.tools:
            request["tools"] = list(config.tools)
        return request if self.deterministic else request | {"seed": pick}

    def _ask(self, requests: Mapping[str, dict[str, Any]], stored: StoredAnswers) -> None:
        config = self._config
        self._asked += len(requests)
        if self._asked > config.max_requests:
            raise PreplayError(
                f"policy {self.name!r} needs more than {config.max_requests} requests.",
                fix="Raise max_requests in its file, or judge it on fewer logs. Answers so far are kept.",
            )
        with (
            Endpoint(self.name, config.url, key=_key(config), timeout_s=config.timeout_s) as endpoint,
            ThreadPoolExecutor(config.concurrency) as pool,
        ):
            waiting = iter(requests.items())
            while part := dict(islice(waiting, _STORED_AT_ONCE)):
                asked = {key: pool.submit(endpoint.ask, request) for key, request in part.items()}
                wait(asked.values())
                failures = [error for future in asked.values() if (error := future.exception())]
                stored.add({key: future.result() for key, future in asked.items() if not future.exception()})
                if failures:
                    raise failures[0]


def chat_policy(path: str, answers: str | None = None) -> ChatPolicy:
    """The policy that a YAML file of :class:`ChatConfig` describes, named after the file.

    Raises:
        PreplayError: When the file is missing or a field is wrong.
    """
    file = Path(path)
    if not file.is_file():
        raise PreplayError(
            "there is no such file.", where=f"chat:{path}", fix="Write a YAML file; see README."
        )
    try:
        config = ChatConfig.model_validate(yaml.safe_load(file.read_text()))
    except yaml.YAMLError as error:
        raise PreplayError(f"the file is no YAML: {error}", where=path) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the whole file"
        raise PreplayError(f"{field}: {first['msg']}.", where=path) from error
    return ChatPolicy(file.stem, config, answers)


def _key(config: ChatConfig) -> str | None:
    """Read where it is used; never kept, stored or logged."""
    if not config.key_file and not config.key_variable:
        return None
    if config.key_file:
        key = Path(config.key_file).read_text().strip()
    else:
        key = os.environ.get(config.key_variable or "", "")
    if not key:
        raise PreplayError("the endpoint's key is not set.", where=config.key_variable or config.key_file)
    return key
