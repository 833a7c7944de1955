"""Virtual environments of other people's packages, so that they can be measured without living beside ours."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent.parent / "out" / "venvs"


def ensure_venv(name: str, requirements: list[str]) -> Path:
    """Python of a virtual environment with ``requirements``; built with pip on first use, then kept.

    Raises:
        subprocess.CalledProcessError: When a package cannot be installed here.
    """
    folder = HOME / name
    python, done = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if not done.exists() or done.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *requirements,
        ]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        done.write_text(wanted)
    return python


def run_json(python: Path, script: str, *arguments: str) -> dict[str, Any]:
    """Run a script of this folder with another Python; its last line of output is a JSON object."""
    command = [str(python), str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])
