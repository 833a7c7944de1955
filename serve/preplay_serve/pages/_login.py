"""The page to sign in with a token; the backend exchanges it for a cookie."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from preplay_serve._forms import local_path
from preplay_serve.pages._render import page

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login(request: Request, next: str = "/", failed: bool = False) -> HTMLResponse:
    """The form; ``next`` is where to go afterwards."""
    return page(request, "login.html.j2", next=local_path(next), failed=failed)
