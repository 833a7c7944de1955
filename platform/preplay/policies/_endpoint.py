"""One request to an OpenAI-compatible endpoint, tried again while it may help."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx

from preplay.errors import PreplayError
from preplay.policies._chat_messages import action_of

_TRIES = 5
_LONGEST_WAIT_S = 60.0
_TRY_AGAIN = (408, 409, 429, 500, 502, 503, 504)


class Endpoint:
    """A connection pool to one endpoint; safe for many threads. Use it as a context manager."""

    def __init__(self, name: str, url: str, *, key: str | None, timeout_s: float):
        self._name, self._url = name, f"{url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=timeout_s, headers=headers, follow_redirects=False)
        self._given_up = threading.Event()

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, request: Mapping[str, Any]) -> str:
        """The action that the endpoint answers.

        Raises:
            PreplayError: When it refuses, does not answer, or sends neither text nor a tool call. After the first
                refusal or silence nothing more is asked: it would be in vain.
        """
        for attempt in range(_TRIES):
            if self._given_up.is_set():
                break
            answer = self._post(request)
            if answer is not None and answer.status_code == 200:
                return self._action(answer)
            if answer is not None and answer.status_code not in _TRY_AGAIN:
                self._given_up.set()
                raise self._error(f"answers {answer.status_code}{_reason(answer)}", _ADVICE)
            if attempt + 1 < _TRIES:
                time.sleep(_wait(answer, attempt))
        self._given_up.set()
        raise self._error("does not answer", "Is it running, and is the URL right? Answers so far are kept.")

    def _post(self, request: Mapping[str, Any]) -> httpx.Response | None:
        try:
            return self._client.post(self._url, json=request)
        except httpx.TransportError:
            return None

    def _action(self, answer: httpx.Response) -> str:
        try:
            return action_of(answer.json()["choices"][0]["message"])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._error(
                f"sent no usable message ({error})", "Does the model follow the chat format?"
            ) from error

    def _error(self, what: str, fix: str) -> PreplayError:
        return PreplayError(f"the endpoint of {self._name!r} {what}.", fix=fix)


_ADVICE = "Check url, model and key."
_FORMAT = "Does it follow the chat-completions format? Is max_tokens large enough?"


def _reason(answer: httpx.Response) -> str:
    """What the endpoint says; not where it speaks of keys, of which it may repeat parts."""
    return "" if answer.status_code in (401, 403) else f": {answer.text[:200]}"


def _wait(answer: httpx.Response | None, attempt: int) -> float:
    """Seconds to wait: what the endpoint asks for, or longer each time."""
    asked = answer.headers.get("Retry-After", "") if answer is not None else ""
    return min(float(asked) if asked.isdigit() else 2.0**attempt, _LONGEST_WAIT_S)
