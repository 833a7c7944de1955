"""Reading the registry: manifests are all that is looked at, weights are never loaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from preplay import names
from preplay.artifacts import Manifest, read_manifest
from preplay.errors import PreplayError

_IGNORED = ("created", "content_hash", "files")
"""Differ between any two artifacts, and say nothing by themselves."""


@dataclass(frozen=True)
class PublishedModel:
    """One version of a name.

    Args:
        name: ``NAME@VERSION``.
        kind, created: As in the manifest.
        members: Models in it.
        figures: Numbers among its metrics, by path, the shortest few.
    """

    name: str
    kind: str
    created: str
    members: int
    figures: dict[str, float]


@dataclass(frozen=True)
class Difference:
    """A field in which two manifests differ; ``-`` where one has none."""

    field: str
    first: str
    second: str


def published_models() -> list[PublishedModel]:
    """All versions of all names, in order."""
    found = []
    for folder in sorted(path for path in names.registry().glob("*") if path.is_dir()):
        found += [_describe(folder.name, version) for version in names.versions(folder.name)]
    return found


def load_manifest(name: str) -> Manifest:
    """The manifest behind ``NAME``, ``NAME@VERSION``, ``models:NAME`` or a path.

    Raises:
        PreplayError: When there is none.
    """
    plain = name.removeprefix(names.SCHEME)
    if (Path(name) / "manifest.json").exists():
        return read_manifest(name)
    if "/" in plain:
        raise PreplayError("no finished artifact here (no manifest.json).", where=name, fix="Check the path.")
    return read_manifest(names.published_path(plain))


def differences(first: str, second: str) -> list[Difference]:
    """Fields in which two models differ, sorted."""
    left, right = (dict(_flat(_content(load_manifest(name)))) for name in (first, second))
    return [
        Difference(field, _shown(left.get(field)), _shown(right.get(field)))
        for field in sorted(left.keys() | right.keys())
        if left.get(field) != right.get(field)
    ]


def _describe(name: str, version: int) -> PublishedModel:
    manifest = read_manifest(names.registry() / name / f"v{version}")
    numbers = {
        path: float(value)
        for path, value in _flat(manifest.metrics)
        if isinstance(value, int | float) and not isinstance(value, bool) and "members" not in path
    }
    shortest = dict(sorted(numbers.items(), key=lambda item: item[0].count("."))[:3])
    return PublishedModel(f"{name}@{version}", manifest.kind, manifest.created, _members(manifest), shortest)


def _members(manifest: Manifest) -> int:
    listed = manifest.config.get("members") or (manifest.metrics.get("sweep") or {}).get("members")
    return len(listed) if isinstance(listed, list) else 1


def _content(manifest: Manifest) -> dict[str, Any]:
    content = manifest.model_dump(mode="json")
    return {key: value for key, value in content.items() if key not in _IGNORED}


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    items: Any = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None or (not value and prefix):
        yield prefix.removesuffix("."), value
        return
    for key, inner in items:
        yield from _flat(inner, f"{prefix}{key}.")


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
