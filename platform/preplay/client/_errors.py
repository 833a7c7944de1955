"""What a server says when it refuses."""

from typing import Any

import httpx

from preplay.errors import PreplayError

_PASSING = (0, 429, 502, 503, 504)


class ServerError(PreplayError):
    """A refusal, or no answer at all.

    Args:
        status: HTTP status; 0 when no answer came.
        code: Code for programs (``not_found``, ``too_many``, ...).
        request_id: To tell the server's operator.
    """

    def __init__(
        self,
        what: str,
        *,
        status: int = 0,
        code: str = "no_answer",
        request_id: str | None = None,
        where: str | None = None,
        fix: str | None = None,
    ):
        self.status, self.code, self.request_id = status, code, request_id
        super().__init__(what, where=where, fix=fix)

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed a moment later.

        A 500 that the server did not word itself comes from the proxy before it, when a replica died over a request.
        """
        return self.status in _PASSING or (self.status == 500 and self.code == "error")


def error_of(answer: httpx.Response) -> ServerError:
    """The error in an answer from 400 on, whoever wrote it (a proxy in between, perhaps)."""
    try:
        found: Any = answer.json()
    except ValueError:
        found = None
    body = found.get("error") if isinstance(found, dict) else None
    body = body if isinstance(body, dict) else {}
    return ServerError(
        str(body.get("message", f"The server answers {answer.status_code}.")),
        status=answer.status_code,
        code=str(body.get("code", "error")),
        request_id=answer.headers.get("x-request-id"),
        where=body.get("field"),
        fix=body.get("fix"),
    )
