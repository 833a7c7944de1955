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
    path = _local_path(str(uri)) or _download(str(uri))
    manifest = read_manifest(path)
    if manifest.kind != kind:
        raise PreplayError(f"this is a {manifest.kind!r}, but a {kind!r} is needed here.", where=str(uri))
    for name, entry in manifest.files.items():
        _check_file(path / name, entry)
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
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except (ValidationError, UnicodeDecodeError) as error:
        raise PreplayError(
            f"the manifest is damaged ({str(error).splitlines()[0]}).",
            where=str(file),
            fix="Delete the folder and run again the command that wrote it.",
        ) from error


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


def _check_file(path: Path, entry: FileEntry) -> None:
    fix = "Delete the artifact and run again the command that wrote it."
    if not path.exists():
        raise PreplayError("the file is listed in the manifest but missing.", where=str(path), fix=fix)
    size = path.stat().st_size
    if size != entry.size:
        raise PreplayError(f"the file has {size} bytes instead of {entry.size}.", where=str(path), fix=fix)
    if file_sha256(path) != entry.sha256:
        raise PreplayError("the file's content does not match its checksum.", where=str(path), fix=fix)


def _jsonable(config: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(config))


def _local_path(uri: str) -> Path | None:
    """The path on this machine, or None when the URI points elsewhere."""
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
    """Copy a remote artifact into the temporary folder once per content."""
    fs, root = fsspec.core.url_to_fs(uri)
    if not fs.exists(f"{root}/{MANIFEST}"):
        raise PreplayError("no finished artifact here (no manifest.json).", where=uri, fix="Check the URI.")
    data = fs.cat_file(f"{root}/{MANIFEST}")
    target = Path(tempfile.gettempdir()) / "preplay-artifacts" / hashlib.sha256(data).hexdigest()[:24]
    if not (target / MANIFEST).exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=target.parent))
        for name in [*Manifest.model_validate_json(data).files, MANIFEST]:
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            fs.get_file(f"{root}/{name}", str(stage / name))
        try:
            os.rename(stage, target)
        except OSError:  # another process was faster
            shutil.rmtree(stage, ignore_errors=True)
    return target
