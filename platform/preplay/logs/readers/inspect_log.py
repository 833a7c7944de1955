"""Inspect evaluation logs: .json files and .eval archives, one session per sample and epoch."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import decode_json, json_document, peek_head
from preplay.logs._messages import AGENT
from preplay.logs._records import Quarantined, excerpt, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._chat import chat_message, conversation_items
from preplay.logs.readers._common import as_dict, as_list, dict_or_empty, text_or_none, without

_ZIP = b"PK\x03\x04"
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@register
class InspectLog:
    """``{"eval", "samples": [{"id", "epoch", "messages", "scores"}]}`` or an archive of samples."""

    name = "inspect"
    description = "Inspect evaluation logs (.json and .eval)"
    example = (
        '{"version": 2, "status": "success", "eval": {"task": "t", "model": "openai/gpt-4o"}, "samples": [{"id": 1, '
        '"epoch": 1, "input": "2+2?", "target": "4", "messages": [{"role": "user", "content": "2+2?"}, '
        '{"role": "assistant", "content": "4"}], "scores": {"match": {"value": "C"}}}]}'
    )
    fields = "eval (model, task), samples (id, epoch, messages, scores, limit, error)"
    quirks = (
        "C/P/I/N scores are 1/0.5/0/0; with several scorers the reward stays open (join it); a limit or an error is "
        "a truncation; .eval archives are read sample by sample"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        if head.startswith(_ZIP):
            return (
                Sniff(0.9, "an archive")
                if b".json" in head and path.endswith(".eval")
                else Sniff(0, "another archive")
            )
        peek = peek_head(head)
        if peek.kind not in ("object", "jsonl"):
            return Sniff(0, f"no JSON object and no archive ({peek.kind})")
        whole = isinstance(peek.first, dict) and {"eval", "samples"} <= peek.first.keys()
        cut = (
            peek.first is None
            and '"eval"' in peek.text
            and '"status"' in peek.text
            and '"model"' in peek.text
        )
        return (
            Sniff(0.9, "an eval header and samples")
            if whole or cut
            else Sniff(0, "no eval header with samples")
        )

    def read(self, file: LogFile) -> Iterator[Item]:
        if file.head().startswith(_ZIP):
            yield from _archive(file)
            return
        for record in json_document(file):
            if isinstance(record, Quarantined):
                yield record
                continue
            try:
                run = as_dict(record.value, "the file")
                samples = as_list(run.get("samples"), "samples")
            except ValueError as error:
                yield Quarantined(file.where(1), "samples", str(error), excerpt(record.raw))
                continue
            for i, sample in enumerate(samples):
                yield from _checked(sample, dict_or_empty(run.get("eval")), file, f"samples/{i}")


def _archive(file: LogFile) -> Iterator[Item]:
    """The samples of a .eval archive, one at a time."""
    with file.open() as stream:
        try:
            archive = zipfile.ZipFile(io.BytesIO(stream.read()))
            names = sorted(n for n in archive.namelist() if n.startswith("samples/") and n.endswith(".json"))
            header = _member(
                archive,
                next((n for n in archive.namelist() if n.endswith(("header.json", "start.json"))), ""),
            )
        except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError) as error:
            yield Quarantined(file.where(1), "file", f"a damaged archive ({error})")
            return
        run = dict_or_empty(dict_or_empty(header).get("eval"))
        for name in names:
            try:
                sample = _member(archive, name)
            except (zipfile.BadZipFile, ValueError, NotImplementedError, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
                yield Quarantined(file.where(name), "record", f"a damaged member ({error})")
                continue
            yield from _checked(sample, run, file, name)


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    return decode_json(archive.read(name))


def _checked(sample: Any, run: dict[str, Any], file: LogFile, key: str) -> list[Item]:
    source = file.where(key)
    try:
        return _session(as_dict(sample, "a sample"), run, file, source)
    except ValueError as error:
        return [Quarantined(source, "messages", str(error), excerpt(sample))]


def _session(sample: dict[str, Any], run: dict[str, Any], file: LogFile, source: str) -> list[Item]:
    messages = [chat_message(_with_tool_name(m)) for m in as_list(sample.get("messages"), "messages")]
    for message in messages:
        if message.role == AGENT:
            message.author = None
    cut = bool(sample.get("limit") or sample.get("error"))
    reward = _reward(dict_or_empty(sample.get("scores")))
    common = {"policy": text_or_none(run.get("model")) or "logged", "terminated": not cut, "truncated": cut}
    common |= {} if reward is None else {"reward": reward}
    session_id = f"{text_or_none(run.get('run_id')) or file.name}/{sample.get('id')}/{sample.get('epoch', 1)}"
    left = without(sample, "messages", "events", "attachments", "output", "store")
    return conversation_items(messages, session_id, common, left, (source, hash_record(sample)))


def _with_tool_name(raw: Any) -> dict[str, Any]:
    """Inspect names the tool of a result ``function``; a call has name and arguments side by side."""
    message = dict(as_dict(raw, "a message"))
    if message.get("role") == "tool" and isinstance(message.get("function"), str):
        message["name"] = message.pop("function")
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [_call(c) for c in calls]
    return message


def _call(raw: Any) -> Any:
    if isinstance(raw, dict) and isinstance(raw.get("function"), str):
        return {"id": raw.get("id"), "function": {"name": raw["function"], "arguments": raw.get("arguments")}}
    return raw


def _reward(scores: dict[str, Any]) -> float | None:
    """The one score of a sample as a number; None where there is no single one."""
    values = [dict_or_empty(s).get("value") for s in scores.values()]
    numbers = [v for v in map(_number, values) if v is not None]
    return numbers[0] if len(numbers) == 1 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    return _LETTERS.get(value) if isinstance(value, str) else None
