"""Whether a folder or URI can hold a sweep: found out before any training."""

import shutil
import uuid
from pathlib import Path

import fsspec

from preplay.errors import PreplayError

LEAST_FREE, LEAST_FREE_LATER = 500 * 2**20, 50 * 2**20
"""Bytes that must be free on a local disk before a sweep, and before each stage of a trial, which takes a few MB."""


def check_storage(uri: str, *, least_free: int = LEAST_FREE) -> None:
    """Write a probe, read it back and delete it; on a local disk, look at the free space.

    Raises:
        PreplayError: When any of this fails.
    """
    probe, content = f"{uri.rstrip('/')}/.probe-{uuid.uuid4().hex}", b"preplay"
    try:
        fs, path = fsspec.core.url_to_fs(probe)
        fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        fs.pipe_file(path, content)
        same = fs.cat_file(path) == content
        fs.rm_file(path)
    except (OSError, ValueError, ImportError) as error:
        raise PreplayError(
            f"the sweep cannot be stored here ({type(error).__name__}: {error}).",
            where=uri,
            fix="Give a folder that can be written to, or a URI with its credentials (storage:, or --out).",
        ) from error
    if not same:
        raise PreplayError("what was written here does not read back the same.", where=uri)
    if "://" not in uri:
        _check_space(uri, least_free)


def _check_space(folder: str, least_free: int) -> None:
    free = shutil.disk_usage(Path(folder)).free
    if free < least_free:
        raise PreplayError(
            f"only {free / 2**20:,.0f} MB are free here; a sweep needs at least {least_free / 2**20:,.0f}.",
            where=folder,
            fix="Free some space, or give another folder (storage:, or --out).",
        )


def can_store(uri: str) -> bool:
    """Whether the next stage of a trial could be kept."""
    try:
        check_storage(uri, least_free=LEAST_FREE_LATER)
    except PreplayError:
        return False
    return True
