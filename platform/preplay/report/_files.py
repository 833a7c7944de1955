"""Writing and reading an evaluation's folder: ``result.json`` and ``report.html``."""

from pathlib import Path

from pydantic import ValidationError

from preplay.artifacts import atomic_write
from preplay.errors import PreplayError
from preplay.report._html import render_html
from preplay.report._schema import EvaluationReport

RESULT, PAGE = "result.json", "report.html"


def write_report(report: EvaluationReport, folder: str | Path) -> Path:
    """Write both files, each complete or not at all, and return the page's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / RESULT, report.model_dump_json(indent=2).encode())
    atomic_write(folder / PAGE, render_html(report).encode())
    return folder / PAGE


def read_report(folder: str | Path) -> EvaluationReport:
    """Read ``result.json`` of an evaluation's folder.

    Raises:
        PreplayError: When it is missing, damaged or of another schema version.
    """
    file = Path(folder) / RESULT
    if not file.exists():
        raise PreplayError("no result here.", where=str(file), fix="Run `preplay evaluate` first.")
    try:
        return EvaluationReport.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise PreplayError(
            f"this is not a result that can be read ({field}: {first['msg']}).".replace("(: ", "("),
            where=str(file),
            fix="Run `preplay evaluate` again.",
        ) from error
