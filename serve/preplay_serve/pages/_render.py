"""From a template to an answer: one environment, one set of headers."""

import datetime as dt
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from preplay.report import page_environment
from preplay_serve._forms import COOKIE
from preplay_serve.pages._assets import assets
from preplay_serve.store import Store

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def store_of(request: Request) -> Store:
    """The store of the application that answers."""
    return request.app.state.store


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page; all texts are escaped, and no script or style but our own files may run."""
    html = (
        _environment()
        .get_template(template)
        .render(here=request.url.path, signed_in=COOKIE in request.cookies, **context)
    )
    return HTMLResponse(html, status, headers=HEADERS)


def missing(request: Request, what: str) -> HTMLResponse:
    """The page for something that is not there."""
    return page(request, "missing.html.j2", status=404, what=what)


@cache
def _environment() -> Environment:
    environment = page_environment("preplay_serve.pages")
    environment.filters |= {"time": _time, "duration": duration, "listed": listed, "described": described}
    environment.globals |= {"assets": assets()}
    return environment


def _time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def described(details: dict[str, Any]) -> dict[str, Any]:
    """What an artifact is, without its figures and what is not known; times as everywhere on the pages."""
    shown = {name: value for name, value in details.items() if name != "metrics" and value is not None}
    if "created" in shown:
        shown["created"] = _time(dt.datetime.fromisoformat(shown["created"]))
    return shown


def duration(seconds: float) -> str:
    """``45 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def listed(names: list[str] | tuple[str, ...], most: int = 3) -> str:
    """``a``, ``a and b``, ``a, b and c`` or ``a, b and 4 others``."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
