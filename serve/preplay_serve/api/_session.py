"""The login form's target: a cookie for the pages. Never read by scripts, never sent from other sites."""

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse

from preplay_serve.api._auth import COOKIE
from preplay_serve.api._service import Service, service_of

router = APIRouter(prefix="/session", include_in_schema=False)
_DAY_S = 86_400


@router.post("")
async def log_in(request: Request, service: Annotated[Service, Depends(service_of)]) -> RedirectResponse:
    """Set the cookie when the token is good."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=4)
    token, target = (fields.get(name, [""])[0] for name in ("token", "next"))
    if await request.app.state.doorkeeper.admit(token.strip()) is None:
        return RedirectResponse("/login?failed=1", 303)
    answer = RedirectResponse(_local(target), 303)
    answer.set_cookie(
        COOKIE,
        token.strip(),
        max_age=_DAY_S,
        httponly=True,
        samesite="strict",
        secure=service.config.secure_cookies,
    )
    return answer


@router.post("/end")
def log_out() -> RedirectResponse:
    """Drop the cookie."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


def _local(target: str) -> str:
    """A path on this server; anything else leads to the front page."""
    safe = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if safe else "/"
