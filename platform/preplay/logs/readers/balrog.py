"""BALROG step logs: one CSV per episode, the observation after the action, the first one not logged."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import peek_head
from preplay.logs._records import Quarantined, RawTurn, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import dict_or_empty, text_or_none
from preplay.logs.readers._csv_rows import Bad, csv_rows, header_columns

_COLUMNS = {"Step", "Action", "Observation", "Reward", "Done"}
_ESCAPE = "˘"
_REPLACED = re.compile(
    r"^\s*Your previous output action: '(.*?)' is not a valid action\. Defaulted to action: (.*)$",
    re.M | re.S,
)


@register
class Balrog:
    """Columns Step, Action, Reasoning, Observation, Reward, Done in any order."""

    name = "balrog-csv"
    description = "BALROG episode CSV files"
    example = "Step,Action,Reasoning,Observation,Reward,Done\n0,forward,,You see a door,0.0,False\n1,open,,,1.0,True"
    fields = "Step, Action, Reasoning, Observation, Reward, Done; client.model_id of the JSON file beside it"
    quirks = (
        "columns in any order; the first observation is not logged (the task stands there); the logged action is "
        "the proposed one, the executed one is taken from the harness's message; Done mixes both ends"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        peek = peek_head(head)
        if peek.kind != "text":
            return Sniff(0, f"not a table ({peek.kind})")
        header = set(header_columns(peek.text))
        missing = _COLUMNS - header
        return (
            Sniff(0, f"a table without {', '.join(sorted(missing))}")
            if missing
            else Sniff(0.95, "BALROG columns")
        )

    def read(self, file: LogFile) -> Iterator[Item]:
        task = file.parts[-2] if len(file.parts) > 1 else file.name
        policy = _policy(file)
        session_id = "/".join([policy, *file.parts[-3:-1], file.name])
        seen = task
        for number, row in csv_rows(file, escape=_ESCAPE):
            source = file.where(number)
            if isinstance(row, Bad):
                yield Quarantined(source, "record", row.reason, excerpt(row.raw))
                continue
            cells, raw = row
            yield RawTurn(
                session_id,
                _values(cells, seen) | {"policy": policy, "task": task},
                source,
                hash_record(raw),
                _extras(cells),
            )
            seen = cells.get("Observation") or ""


def _values(cells: dict[str, str], seen: str) -> dict[str, Any]:
    observation = cells.get("Observation")
    replaced = _REPLACED.match(observation or "")
    done = cells.get("Done")
    return {
        "turn": cells.get("Step"),
        "observation": seen,
        "action": replaced[2].split("\n")[0] if replaced else cells.get("Action"),
        "proposed_action": cells.get("Action") if replaced else None,
        "reward": _number(cells.get("Reward")),
        "next_observation": observation or "",
        "terminated": done,
    }


def _extras(cells: dict[str, str]) -> dict[str, Any]:
    return {k: v for k, v in cells.items() if k not in _COLUMNS and v}


def _number(cell: str | None) -> Any:
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return cell


def _policy(file: LogFile) -> str:
    """The model of the episode's JSON file; without it the run's folder (results/RUN/env/task/file)."""
    beside = Path(file.path).with_suffix(".json")
    if "://" not in file.path and beside.is_file():
        try:
            client = dict_or_empty(json.loads(beside.read_text())).get("client")
        except ValueError:
            client = None
        model = text_or_none(dict_or_empty(client).get("model_id"))
        if model:
            return model
    return file.parts[-4] if len(file.parts) > 3 else "logged"
