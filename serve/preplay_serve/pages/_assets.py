"""Style sheets and scripts, under names that change with their content."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from preplay.report import style_sheet, viewer_script

router = APIRouter(include_in_schema=False)
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    """A file of the pages."""

    name: str
    content: str

    @property
    def url(self) -> str:
        """Its address; another one whenever the content is another one."""
        return f"/static/{self.name}?v={hashlib.sha256(self.content.encode()).hexdigest()[:12]}"


@cache
def assets() -> dict[str, Asset]:
    """All of them by name."""
    own = {
        name: files("preplay_serve.pages").joinpath("static", name).read_text(encoding="utf-8")
        for name in ("pages.css", "live.js", "icon.svg")
    }
    found = own | {"report.css": style_sheet(), "viewer.js": viewer_script()}
    return {name: Asset(name, content) for name, content in found.items()}


@router.get("/static/{name}")
def asset(name: str) -> Response:
    """One file; nothing but the known names can be asked for."""
    found = assets().get(name)
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
