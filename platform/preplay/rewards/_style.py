"""Style by a real checker: ruff, on many pieces of code in one run."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from preplay.errors import PreplayError

RULES = "E,F,W,B,SIM,C4"
_known: dict[str, int] = {}


def style_violations(codes: Sequence[str]) -> list[int]:
    """Number of violations of :data:`RULES` per piece of code; each distinct piece is checked once a process.

    Raises:
        PreplayError: When ruff is not installed.
    """
    missing = [code for code in dict.fromkeys(codes) if code not in _known]
    if missing:
        _known.update(zip(missing, _check(missing), strict=True))
    return [_known[code] for code in codes]


def _check(codes: list[str]) -> list[int]:
    with tempfile.TemporaryDirectory(prefix="preplay-style-") as folder:
        for i, code in enumerate(codes):
            (Path(folder) / f"{i}.py").write_text(code, encoding="utf-8", errors="replace")
        options = ["--isolated", "--no-cache", "--exit-zero", "--line-length=100", f"--select={RULES}"]
        command = [_ruff(), "check", *options, "--ignore=W292", "--output-format=json", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PreplayError(f"ruff failed: {done.stderr.strip()[:300]}", where="the style reward")
    counts = Counter(int(Path(finding["filename"]).stem) for finding in json.loads(done.stdout))
    return [counts[i] for i in range(len(codes))]


@lru_cache(maxsize=1)
def _ruff() -> str:
    beside = Path(sys.executable).parent / "ruff"
    found = str(beside) if beside.exists() else shutil.which("ruff")
    if not found:
        raise PreplayError(
            "the style reward needs the program ruff.",
            fix="Install it (pip install ruff), or leave the term 'style' out.",
        )
    return found
