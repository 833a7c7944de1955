"""Minari datasets: one HDF5 file, one group per episode, one more observation than actions."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from preplay.errors import PreplayError
from preplay.logs._files import LogFile
from preplay.logs._records import Quarantined, RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import dict_or_empty, text_or_none
from preplay.logs.readers._rows import row_text

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ARRAYS = ("actions", "rewards", "terminations", "truncations")


@register
class Minari:
    """``main_data.hdf5`` with ``episode_N/{observations, actions, rewards, terminations, truncations}``."""

    name = "minari"
    description = "Minari datasets (HDF5; needs h5py)"
    example = "episode_0/observations (T+1 rows), actions, rewards, terminations, truncations (T rows)"
    fields = "observations, actions, rewards, terminations, truncations; metadata.json (algorithm_name)"
    quirks = (
        "dict and tuple spaces become JSON; an episode whose observations are not one more than its actions is "
        "refused; policy is the algorithm's name"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        return Sniff(0.9, "an HDF5 file") if head.startswith(_HDF5) else Sniff(0, "no HDF5 file")

    def read(self, file: LogFile) -> Iterator[Item]:
        if find_spec("h5py") is None:
            raise PreplayError(
                "reading HDF5 needs the package h5py.", where=file.path, fix="pip install h5py"
            )
        import h5py

        policy = _policy(file)
        dataset = file.parts[-3] if len(file.parts) > 2 else file.name
        with file.open() as stream:
            try:
                data = h5py.File(stream, "r")
            except OSError as error:
                yield Quarantined(file.where(1), "file", f"a damaged HDF5 file ({error})")
                return
            with data:
                for name in sorted(data, key=_number):
                    yield from _checked(data[name], name, dataset, policy, file)


def _checked(group: Any, name: str, dataset: str, policy: str, file: LogFile) -> list[Item]:
    source = file.where(name)
    try:
        return _episode(group, f"{dataset}/{name}", policy, source)
    except (ValueError, KeyError, OSError, TypeError) as error:
        return [Quarantined(source, "episode", f"cannot be read ({error})")]


def _episode(group: Any, session_id: str, policy: str, source: str) -> list[Item]:
    arrays = {name: group[name][()] for name in _ARRAYS}
    count = len(arrays["rewards"])
    observations, actions = _space(group["observations"]), _space(group["actions"])
    if len(observations) != count + 1 or len(actions) != count:
        raise ValueError(f"{len(observations)} observations and {len(actions)} actions for {count} rewards")
    digest = hash_record([observations, actions, arrays["rewards"].tolist()])
    extras = {k: row_text(v) for k, v in group.attrs.items()}
    return [
        RawTurn(
            session_id,
            {
                "turn": t,
                "policy": policy,
                "observation": observations[t],
                "action": actions[t],
                "reward": float(arrays["rewards"][t]),
                "next_observation": observations[t + 1],
                "terminated": bool(arrays["terminations"][t]),
                "truncated": bool(arrays["truncations"][t]),
            },
            source,
            digest,
            extras if t == 0 else {},
        )
        for t in range(count)
    ] or [Quarantined(source, "episode", "no step")]


def _space(node: Any) -> list[str]:
    """One text per row of an array, or of a group of arrays (dict and tuple spaces)."""
    if hasattr(node, "keys"):
        columns = {name: _values(node[name]) for name in node}
        return [
            row_text({k: v[i] for k, v in columns.items()})
            for i in range(min(map(len, columns.values()), default=0))
        ]
    return [row_text(v) for v in _values(node)]


def _values(node: Any) -> list[Any]:
    if hasattr(node, "keys"):
        columns = {name: _values(node[name]) for name in node}
        return [
            {k: v[i] for k, v in columns.items()} for i in range(min(map(len, columns.values()), default=0))
        ]
    return [v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else v for v in node[()].tolist()]


def _number(name: str) -> tuple[int, str]:
    digits = name.rsplit("_", 1)[-1]
    return (int(digits) if digits.isdecimal() else 0, name)


def _policy(file: LogFile) -> str:
    beside = Path(file.path).parent / "metadata.json"
    if "://" in file.path or not beside.is_file():
        return "logged"
    try:
        metadata = dict_or_empty(json.loads(beside.read_text()))
    except ValueError:
        return "logged"
    return text_or_none(metadata.get("algorithm_name")) or "logged"
