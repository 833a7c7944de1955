"""Finished stages of trials, kept under what decides them: a sweep that is run again repeats none of them.

``<root>/<key>/stage-3.json`` holds the figures and predictions of a stage, ``<root>/<key>/state-3/`` the state that
training goes on from. The JSON is written last: without it there is no stage. ``<root>/common/<key>`` are files that
several trials start from.
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import numpy as np


@dataclass(frozen=True)
class Stage:
    """A finished stage.

    Args:
        budget: Units of the full training.
        seconds: Wall time of this stage alone.
        metrics: Figures by name.
        prediction: float64 [V], see :class:`preplay.sweep.Outcome`.
    """

    budget: int
    seconds: float
    metrics: dict[str, float]
    prediction: np.ndarray

    def row(self) -> dict[str, float]:
        """Budget, seconds and figures side by side."""
        return {"budget": self.budget, "seconds": self.seconds} | self.metrics


def trial_key(content: dict[str, Any]) -> str:
    """Name of a trial: equal for equal content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:20]


class StageStore:
    """The stages of one trial, under a local folder or any fsspec URI."""

    def __init__(self, root: str, key: str):
        self._fs, path = fsspec.core.url_to_fs(root)
        self._path = f"{path.rstrip('/')}/{key}"

    def finished(self, budgets: tuple[int, ...], metrics: Iterable[str] = ()) -> list[Stage]:
        """The unbroken row of finished stages from the first on that tell these metrics."""
        self._fs.invalidate_cache()
        found = []
        for budget in budgets:
            if not self._fs.exists(self._file(budget)):
                break
            stored = json.loads(self._fs.cat_file(self._file(budget)))
            if not stored["metrics"].keys() >= set(metrics):
                break
            prediction = np.array(stored.pop("prediction"), np.float64)
            found.append(Stage(prediction=prediction, **stored))
        return found

    def save(self, stage: Stage, state: Path | None) -> None:
        """Keep a stage, and the state behind it (None: nothing goes on from here) in place of the previous one's."""
        self._fs.makedirs(self._path, exist_ok=True)
        if state is not None:
            for file in (f for f in sorted(state.rglob("*")) if f.is_file()):
                target = f"{self._state(stage.budget)}/{file.relative_to(state).as_posix()}"
                self._fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
                self._fs.put_file(str(file), target)
        content = vars(stage) | {"prediction": stage.prediction.tolist()}
        self._write(self._file(stage.budget), json.dumps(content).encode())
        self._forget_states(before=stage.budget)

    def fetch_state(self, budget: int, folder: Path) -> None:
        """Copy the state behind a stage into a local folder."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for remote in self._fs.find(self._state(budget)):
            target = folder / str(remote).split(f"/state-{budget}/", 1)[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            self._fs.get_file(remote, str(target))

    def forget_state(self) -> None:
        """Drop the state: the trial will not go on."""
        self._forget_states(before=10**9)

    def _forget_states(self, before: int) -> None:
        for path in self._fs.glob(f"{self._path}/state-*"):
            if int(str(path).rsplit("-", 1)[1]) < before:
                self._fs.rm(path, recursive=True)

    def _write(self, path: str, data: bytes) -> None:
        _write(self._fs, path, data)

    def _file(self, budget: int) -> str:
        return f"{self._path}/stage-{budget}.json"

    def _state(self, budget: int) -> str:
        return f"{self._path}/state-{budget}"


class CommonFiles:
    """What equal parts of several trials' training leave behind, so that one of them does it for all.

    Args:
        root: The stages' folder or URI.
        deciding: What decides every such file, besides what its users name.
    """

    def __init__(self, root: str, deciding: dict[str, Any]):
        self._fs, path = fsspec.core.url_to_fs(root)
        self._path, self._deciding = f"{path.rstrip('/')}/common", deciding

    def fetch(self, content: dict[str, Any], target: Path) -> bool:
        """Copy the file of this content to ``target``, where a trial has left one."""
        file = self._file(content)
        self._fs.invalidate_cache()
        if not self._fs.exists(file):
            return False
        self._fs.get_file(file, str(target))
        return True

    def keep(self, content: dict[str, Any], source: Path) -> None:
        """Leave a file for other trials."""
        self._fs.makedirs(self._path, exist_ok=True)
        _write(self._fs, self._file(content), source.read_bytes())

    def _file(self, content: dict[str, Any]) -> str:
        return f"{self._path}/{trial_key(self._deciding | content)}"


def _write(fs: Any, path: str, data: bytes) -> None:
    """Aside, then renamed; object stores show a file only once it is whole, and rename by copying."""
    aside = f"{path}.{uuid.uuid4().hex}.part"
    fs.pipe_file(aside, data)
    fs.mv(aside, path)
