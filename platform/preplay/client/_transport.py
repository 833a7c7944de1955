"""Requests that are tried again where that is safe, with the pauses that the server asks for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from preplay.client._errors import ServerError, error_of

_LONGEST_PAUSE_S = 30.0


class Transport:
    """Connections to one server; safe to use from many threads.

    Args:
        url: Where it is.
        token: Bearer token, where the server needs one.
        timeout_s: For each try.
        retries: Tries after the first.
    """

    def __init__(self, url: str, token: str | None, *, timeout_s: float, retries: int):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s)
        self._url, self._retries = url, retries

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """An answer below 400.

        Raises:
            ServerError: What the server says, or that it does not answer, after the last try.
        """
        for attempt in range(self._retries + 1):
            answer = self._once(method, path, **options)
            if isinstance(answer, httpx.Response) and answer.status_code < 400:
                return answer
            error = error_of(answer) if isinstance(answer, httpx.Response) else answer
            if attempt == self._retries or not error.passing:
                raise error
            time.sleep(pause_s(attempt, answer))
        raise AssertionError("unreachable")

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[str]]:
        """Lines of an answer as they come; silence of half a minute ends it."""
        with self._http.stream("GET", path, timeout=httpx.Timeout(10, read=30)) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise error_of(answer)
            yield answer.iter_lines()

    def _once(self, method: str, path: str, **options: Any) -> httpx.Response | ServerError:
        try:
            return self._http.request(method, path, **options)
        except httpx.TransportError as error:
            return ServerError(
                f"The server does not answer ({type(error).__name__}).",
                where=self._url,
                fix="Check the address, and that the server runs.",
            )


def pause_s(attempt: int, answer: httpx.Response | ServerError) -> float:
    """What the server asks for, else 0.2 s doubled with every try.

    >>> pause_s(2, ServerError("away"))
    0.8
    """
    asked = answer.headers.get("retry-after", "") if isinstance(answer, httpx.Response) else ""
    return min(_LONGEST_PAUSE_S, float(asked) if asked.isdecimal() else 0.2 * 2**attempt)
