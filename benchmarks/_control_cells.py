"""Cells of the control benchmark (a setting and a seed) kept as JSON: a kill loses one, a second run skips them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy.stats import t as student

Cell = dict[str, dict[str, float]]
"""Column values by arm."""
PLAIN = ("classifier (logistic)", "reward of this turn alone")
"""Arms that see what comes at once and nothing later: what critics over turns must beat."""


def cells(folder: Path | None, name: str, seeds: int, run: Callable[[int], Cell]) -> list[Cell]:
    """The cell of every seed, from the folder where it is there; ``folder`` None keeps nothing."""
    return [_cell(folder / f"{name}-{seed}.json" if folder else None, seed, run) for seed in range(seeds)]


def summarize(found: list[Cell], base: str, oracle: str, goal: str = "success") -> dict[str, float]:
    """Per arm: means over seeds, uplift of ``goal`` over ``base`` with its 95 % interval, share of the gap closed,
    and the lead over the plain arm (paired over seeds)."""
    start = _column(found, base, goal)
    plain = next((_column(found, arm, goal) for arm in PLAIN if arm in found[0]), None)
    gap = float(np.mean(_column(found, oracle, goal) - start)) if oracle in found[0] else float("nan")
    out: dict[str, float] = {}
    for arm in found[0]:
        columns = {name: _column(found, arm, name) for name in found[0][arm]}
        if goal in columns:
            uplift = columns[goal] - start
            if plain is not None:
                lead = columns[goal] - plain
                out |= {f"{arm} | lead": float(lead.mean()), f"{arm} | lead +-": half_width(lead)}
            out |= {
                f"{arm} | {goal}": float(columns[goal].mean()),
                f"{arm} | uplift": float(uplift.mean()),
                f"{arm} | uplift +-": half_width(uplift),
                f"{arm} | gap closed": float(uplift.mean() / gap) if gap else float("nan"),
                f"{arm} | sd over seeds": _deviation(columns.pop(goal)),
            }
        out |= {f"{arm} | {name}": _mean(values) for name, values in columns.items()}
    return out


def half_width(values: np.ndarray) -> float:
    """Half of the 95 % interval of a mean over few seeds (Student); NaN for one."""
    n = len(values)
    return float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def _cell(path: Path | None, seed: int, run: Callable[[int], Cell]) -> Cell:
    if path is not None and path.exists():
        return json.loads(path.read_text())
    cell = run(seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(cell, indent=1))
        aside.rename(path)
    return cell


def _column(found: list[Cell], arm: str, name: str) -> np.ndarray:
    return np.array([_value(cell[arm], name) for cell in found], np.float64)


def _value(row: Mapping[str, float], name: str) -> float:
    return row.get(name, float("nan"))


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
