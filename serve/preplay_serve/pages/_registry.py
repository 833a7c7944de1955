"""What is published: critics, world models and clones with their figures, and datasets."""

from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from preplay_serve.pages._render import page, store_of
from preplay_serve.store import ArtifactKind, ArtifactRecord, Store

router = APIRouter(include_in_schema=False)
KINDS: dict[ArtifactKind, tuple[str, str]] = {
    "critic": ("Critics", "They score candidate actions and decide between acting, falling back and asking."),
    "world_models": ("World models", "They imagine the sessions that evaluations rest on."),
    "clone": ("Clones", "Policies learned from the logs, to be evaluated by name."),
}


@dataclass(frozen=True)
class Named:
    """An artifact by its name: the version in service, if any, and the others from the newest."""

    name: str
    current: ArtifactRecord | None
    others: list[ArtifactRecord]


@router.get("/models")
def models(request: Request) -> HTMLResponse:
    """Everything that was trained and published."""
    store = store_of(request)
    groups = [(kind, *words, named(store, kind)) for kind, words in KINDS.items()]
    return page(request, "models.html.j2", groups=groups)


@router.get("/datasets")
def datasets(request: Request) -> HTMLResponse:
    """Datasets that evaluations can use."""
    return page(request, "datasets.html.j2", artifacts=named(store_of(request), "dataset"))


def named(store: Store, kind: ArtifactKind) -> list[Named]:
    """The artifacts of one kind by name."""
    found = []
    for name, rows in groupby(store.artifacts.list(kind, current_only=False), key=lambda row: row.name):
        versions = list(rows)
        current = next((row for row in versions if row.current), None)
        found.append(Named(name, current, [row for row in versions if row is not current]))
    return found
