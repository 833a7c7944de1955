"""What lies in the registered folders: found by walking them, never by joining a name of a request to a path."""

import hashlib
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from preplay.artifacts import MANIFEST, Manifest, open_artifact, read_manifest
from preplay.control import Controller
from preplay.critics import DecisionState
from preplay.errors import PreplayError
from preplay_serve._config import ServerConfig
from preplay_serve._critic import load_served_critic
from preplay_serve.store import ArtifactKind, Store

log = logging.getLogger(__name__)
_DEPTH = 4
_VERSIONS = "versions"
_PROBE = DecisionState("a task", "an observation"), ["one answer", "another answer"]


@dataclass(frozen=True)
class Found:
    """An artifact in a registered folder; ``details`` are for people.

    ``parts`` are the folders that belong to it: the members of world models; a dataset and the logs beside it that
    it was made from, whose card is shown in reports.
    """

    kind: ArtifactKind
    name: str
    version: str
    path: Path
    details: dict[str, Any]
    parts: tuple[Path, ...] = ()


def scan(config: ServerConfig) -> list[Found]:
    """Everything in the registered folders."""
    found: dict[tuple[str, str], Found] = {}
    for root in dict.fromkeys((Path(config.models), config.data_root)):
        for item in _artifacts(root, leave_out=Path(config.state)):
            found.setdefault((item.kind, item.name), item)
    return list(found.values())


def refresh(config: ServerConfig, store: Store) -> list[str]:
    """Register what is new in the folders; what fails its checks changes nothing and is told.

    A critic that was rolled back stays so until its folder holds another version.
    """
    found, problems = scan(config), []
    for item in found:
        try:
            _register(config, store, item)
        except PreplayError as error:
            log.warning("%s %s is not put into service: %s", item.kind, item.name, error.what)
            problems.append(f"{item.kind} {item.name}: {error.what}")
    for kind in ("dataset", "world_models", "clone"):
        names = {item.name for item in found if item.kind == kind}
        for gone in (record for record in store.artifacts.list(kind) if record.name not in names):
            store.artifacts.withdraw(kind, gone.name)
    _drop_unused(config, store)
    return problems


def publish_critic(config: ServerConfig, store: Store, name: str, path: Path) -> str:
    """Check a critic, keep a copy of it, and put it into service; returns its version.

    Raises:
        PreplayError: When it fails a check. What is in service stays in service.
    """
    manifest = open_artifact(path, "critic").manifest
    version = manifest.content_hash
    kept = Path(config.state) / "critics" / version
    _keep(path, kept, shutil.copytree)
    check_critic(config, kept)
    store.artifacts.publish("critic", name, version, str(kept), _critic_details(manifest))
    return version


def check_critic(config: ServerConfig, path: Path) -> None:
    """Load a critic as a replica does and let it decide once.

    Raises:
        PreplayError: When it is damaged, of another version or encoder, or its scores are not finite.
    """
    controller = load_served_critic(str(path), config, encoders={})
    decision = Controller(controller.scorer, controller.encoder).decide(*_PROBE)
    if not np.isfinite(decision.scores).all():
        raise PreplayError("the critic's scores are not finite.", where=path.name)


def _register(config: ServerConfig, store: Store, item: Found) -> None:
    if store.artifacts.known(item.kind, item.name, item.version):
        current = store.artifacts.get(item.kind, item.name)
        if item.kind == "critic" or (current and current.version == item.version):
            return
    if item.kind == "critic":
        publish_critic(config, store, item.name, item.path)
    else:
        store.artifacts.publish(
            item.kind, item.name, item.version, str(_snapshot(config, item)), item.details
        )


def _snapshot(config: ServerConfig, item: Found) -> Path:
    """The artifact under its version: hard links, which cost no space and outlive a replacement of the folder.

    Where files cannot be linked (another disk, an object store) the folder itself is used.
    """
    kept = Path(config.state) / _VERSIONS / item.version
    try:
        for folder in item.parts:
            _keep(folder, kept / folder.name, _link)
    except OSError as error:
        log.warning("%s %s is used where it lies: %s", item.kind, item.name, type(error).__name__)
        return item.path
    return kept if item.kind == "world_models" else kept / item.path.name


def _drop_unused(config: ServerConfig, store: Store) -> None:
    """Remove snapshots that nobody can ask for any more and no unfinished evaluation was accepted with."""
    kinds: tuple[ArtifactKind, ...] = ("dataset", "world_models", "clone")
    used = {record.version for kind in kinds for record in store.artifacts.list(kind)}
    used |= store.evaluations.versions_in_use()
    root = Path(config.state) / _VERSIONS
    for folder in root.iterdir() if root.is_dir() else ():
        if folder.name not in used and not folder.name.startswith("."):
            shutil.rmtree(folder, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=os.link)


def _keep(source: Path, target: Path, put: Callable[[Path, Path], object]) -> None:
    """Put an artifact there whole, unless it is there."""
    if (target / MANIFEST).exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        put(source, aside)
        aside.rename(target)
    except OSError:
        if not (target / MANIFEST).exists():  # else another process was faster
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _artifacts(root: Path, *, leave_out: Path) -> Iterator[Found]:
    members: dict[Path, list[tuple[Path, Manifest]]] = {}
    for folder in _manifest_folders(root, _DEPTH, leave_out):
        try:
            manifest = read_manifest(folder)
        except PreplayError as error:
            log.warning("%s is left out: %s", folder, error.what)
            continue
        if manifest.kind == "world_model":
            members.setdefault(folder.parent, []).append((folder, manifest))
        elif item := _found(root, folder, manifest):
            yield item
    for parent, found in members.items():
        folders, manifests = zip(*found, strict=True)
        joint = hashlib.sha256("".join(m.content_hash for m in manifests).encode()).hexdigest()
        details = {
            "members": len(manifests),
            "created": manifests[0].created,
            "metrics": manifests[0].metrics,
        }
        yield Found("world_models", _name(root, parent), joint, parent, details, folders)


def _found(root: Path, folder: Path, manifest: Manifest) -> Found | None:
    name, version = _name(root, folder), manifest.content_hash
    match manifest.kind:
        case "critic":
            return Found("critic", name, version, folder, _critic_details(manifest))
        case "embedded":
            encoder = manifest.config.get("fingerprint", {}).get("model")
            details = {
                "created": manifest.created,
                "turns": manifest.metrics.get("turns"),
                "encoder": encoder,
            }
            logs = folder.parent / "dataset"
            parts = (folder, logs) if (logs / MANIFEST).is_file() else (folder,)
            return Found("dataset", name, version, folder, details, parts)
        case "cloned-policy":
            details = {"created": manifest.created, "policy": manifest.config.get("name")}
            return Found("clone", name, version, folder, details, (folder,))
        case _:
            return None


def _manifest_folders(folder: Path, depth: int, leave_out: Path) -> Iterator[Path]:
    """Folders with a manifest, in order; hidden ones are half-written, links could lead anywhere."""
    if (folder / MANIFEST).is_file():
        yield folder
    elif depth and folder.is_dir() and folder != leave_out:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.is_symlink() and not below.name.startswith("."):
                yield from _manifest_folders(below, depth - 1, leave_out)


def _name(root: Path, folder: Path) -> str:
    return root.name if folder == root else folder.relative_to(root).as_posix()


def _critic_details(manifest: Manifest) -> dict[str, Any]:
    fingerprint = manifest.config.get("fingerprint")
    return {
        "created": manifest.created,
        "algorithm": manifest.config.get("critic", {}).get("algorithm"),
        "encoder": fingerprint["model"] if fingerprint else None,
        "metrics": manifest.metrics,
    }
