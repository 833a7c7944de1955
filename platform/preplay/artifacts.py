"""Artifacts: a folder with ``manifest.json`` beside Parquet or safetensors files, complete or absent.

An artifact is staged in a sibling folder and renamed into place, so a kill leaves nothing half-written.
On object stores, which cannot rename, the manifest is uploaded last: without it there is no artifact.
"""

import datetime as dt
import hashlib
import json
import os
import platform as os_platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fsspec
from pydantic import BaseModel, ValidationError

from preplay import names
from preplay.errors import PreplayError

MANIFEST = "manifest.json"
_TRACKED = ("preplay", "ray", "torch", "pyarrow", "numpy", "diffusers", "sentence-transformers")


class FileEntry(BaseModel):
    """Size in bytes and SHA-256 of one file of an artifact."""

    size: int
    sha256: str


class Manifest(BaseModel):
    """What an artifact is and what it was made from."""

    kind: str
    created: str
    config: dict[str, Any] = {}
    inputs: dict[str, str] = {}
    """Name of each input and the ``content_hash`` of the artifact it came from."""
    seed: int | None = None
    metrics: dict[str, Any] = {}
    versions: dict[str, str] = {}
    files: dict[str, FileEntry] = {}
    content_hash: str = ""
    """Hash of kind, config, inputs, seed and files: equal for equal content, whenever it was made."""


@dataclass(frozen=True)
class Artifact:
    """A checked artifact on the local disk (copied there first when it lives behind a URI)."""

    path: Path
    manifest: Manifest

    def file(self, name: str) -> Path:
        """Path of a file listed in the manifest."""
        if name not in self.manifest.files:
            raise PreplayError(f"the artifact has no file {name!r}.", where=str(self.path))
        return self.path / name


@dataclass
class Staging:
    """The folder to fill while an artifact is being written; ``metrics`` end up in the manifest."""

    path: Path
    metrics: dict[str, Any]


@contextmanager
def write_artifact(
    uri: str | Path,
    kind: str,
    *,
    config: dict[str, Any] | None = None,
    inputs: dict[str, str] | None = None,
    seed: int | None = None,
) -> Iterator[Staging]:
    """Stage an artifact and publish it as a whole when the block ends without an error.

    An artifact already at ``uri`` is replaced. Nothing is published when the block raises.
    """
    target = str(uri)
    local = _local_path(target)
    parent = local.parent if local else None
    if parent:
        parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{Path(target).name}.staging-", dir=parent))
    try:
        staging = Staging(stage, {})
        yield staging
        manifest = Manifest(
            kind=kind,
            created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            config=config or {},
            inputs=inputs or {},
            seed=seed,
            metrics=staging.metrics,
            versions={"python": os_platform.python_version()} | {name: version(name) for name in _TRACKED},
            files=_list_files(stage),
        )
        manifest.content_hash = _content_hash(manifest)
        atomic_write(stage / MANIFEST, manifest.model_dump_json(indent=2).encode())
        _publish(stage, target, local)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def open_artifact(uri: str | Path, kind: str) -> Artifact:
    """Check an artifact (kind, every file's size and hash) and return it as a local folder.

    Raises:
        PreplayError: When it is missing, unfinished, damaged or of another kind.
    """
    local = _local_path(str(uri))
    path = local or _download(str(uri))
    manifest = read_manifest(path)
    if manifest.kind != kind:
        raise PreplayError(f"this is a {manifest.kind!r}, but a {kind!r} is needed here.", where=str(uri))
    if local:
        _check_files(local, manifest, shown_as=str(local))
    return Artifact(path, manifest)


def read_manifest(path: str | Path) -> Manifest:
    """Read ``manifest.json`` of a local artifact folder without checking the files it lists."""
    file = Path(path) / MANIFEST
    if not file.exists():
        raise PreplayError(
            "no finished artifact here (no manifest.json).",
            where=str(path),
            fix="Check the path, or run again the command that writes it.",
        )
    return _parse_manifest(file.read_bytes(), where=str(file))


def is_complete(path: str | Path, kind: str, *, config: dict[str, Any], inputs: dict[str, str]) -> bool:
    """Whether a finished artifact of this kind, config and inputs already stands at a local path."""
    if not (Path(path) / MANIFEST).exists():
        return False
    manifest = read_manifest(path)
    same = (manifest.kind, manifest.config, manifest.inputs) == (kind, _jsonable(config), inputs)
    if same:
        open_artifact(path, kind)
    return same


def atomic_write(path: str | Path, data: bytes) -> None:
    """Write a file aside, flush it to the disk and rename it into place."""
    path = Path(path)
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)  # temporary files are private; what is kept is meant to be passed on
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _list_files(stage: Path) -> dict[str, FileEntry]:
    paths = sorted(p for p in stage.rglob("*") if p.is_file())
    return {
        p.relative_to(stage).as_posix(): FileEntry(size=p.stat().st_size, sha256=file_sha256(p))
        for p in paths
    }


def _content_hash(manifest: Manifest) -> str:
    content = manifest.model_dump(mode="json", include={"kind", "config", "inputs", "seed", "files"})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _parse_manifest(data: bytes, where: str) -> Manifest:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise PreplayError(
            f"the manifest is damaged ({str(error).splitlines()[0]}).",
            where=where,
            fix="Delete the folder and run again the command that wrote it.",
        ) from error


def _check_files(folder: Path, manifest: Manifest, shown_as: str) -> None:
    for name, entry in manifest.files.items():
        if fault := _fault(folder / name, entry):
            fix = "Delete the artifact and run again the command that wrote it."
            raise PreplayError(fault, where=f"{shown_as}/{name}", fix=fix)


def _fault(path: Path, entry: FileEntry) -> str | None:
    if not path.exists():
        return "the file is listed in the manifest but missing."
    if (size := path.stat().st_size) != entry.size:
        return f"the file has {size} bytes instead of {entry.size}."
    if file_sha256(path) != entry.sha256:
        return "the file's content does not match its checksum."
    return None


def _jsonable(config: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(config))


def _local_path(uri: str) -> Path | None:
    """The path on this machine, or None when the URI points elsewhere."""
    if uri.startswith(names.SCHEME):
        return names.published_path(uri)
    if "://" not in uri:
        return Path(uri).absolute()
    return Path(uri.removeprefix("file://")).absolute() if uri.startswith("file://") else None


def _publish(stage: Path, target: str, local: Path | None) -> None:
    if local is None:
        fs, root = fsspec.core.url_to_fs(target)
        if fs.exists(f"{root}/{MANIFEST}"):
            fs.rm(root, recursive=True)
        names = [p.relative_to(stage).as_posix() for p in sorted(stage.rglob("*")) if p.is_file()]
        for name in [*(n for n in names if n != MANIFEST), MANIFEST]:
            fs.makedirs(f"{root}/{name}".rsplit("/", 1)[0], exist_ok=True)
            fs.put_file(str(stage / name), f"{root}/{name}")
        return
    os.chmod(stage, 0o755)
    if local.exists():
        old = stage.with_name(f"{stage.name}.old")
        os.rename(local, old)
        os.rename(stage, local)
        shutil.rmtree(old)
    else:
        os.rename(stage, local)


def _download(uri: str) -> Path:
    """Copy a remote artifact into the temporary folder, once per content, and check it there."""
    fs, root = fsspec.core.url_to_fs(uri)
    if not fs.exists(f"{root}/{MANIFEST}"):
        raise PreplayError("no finished artifact here (no manifest.json).", where=uri, fix="Check the URI.")
    data = fs.cat_file(f"{root}/{MANIFEST}")
    manifest = _parse_manifest(data, where=f"{uri}/{MANIFEST}")
    target = Path(tempfile.gettempdir()) / "preplay-artifacts" / hashlib.sha256(data).hexdigest()[:24]
    if any(_fault(target / name, entry) for name, entry in manifest.files.items()):
        shutil.rmtree(target, ignore_errors=True)  # no copy yet, or a damaged one
    if not (target / MANIFEST).exists():
        _fetch(fs, root, manifest, target, uri)
    return target


def _fetch(fs: Any, root: str, manifest: Manifest, target: Path, uri: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        for name in [*manifest.files, MANIFEST]:
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            if fs.exists(f"{root}/{name}"):  # what is missing is told by the check
                fs.get_file(f"{root}/{name}", str(stage / name))
        _check_files(stage, manifest, shown_as=uri)
        os.rename(stage, target)
    except OSError:
        if not (target / MANIFEST).exists():  # else another process was faster
            raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
