"""RLlib's JSON output: one sample batch of parallel columns per line."""

from collections.abc import Iterator
from typing import Any

from preplay.logs._files import LogFile
from preplay.logs._json_stream import JsonRecord
from preplay.logs._records import RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import as_dict, as_list, read_json_records, sniff_record
from preplay.logs.readers._rows import row_text

_KNOWN = (
    "type",
    "count",
    "obs",
    "new_obs",
    "actions",
    "rewards",
    "terminateds",
    "dones",
    "truncateds",
    "eps_id",
    "t",
)
_KNOWN += ("action_logp", "action_prob")


@register
class RLlibBatches:
    """``{"type": "SampleBatch", "obs": [...], "actions": [...], "rewards": [...], "eps_id": [...]}``."""

    name = "rllib-batches"
    description = "RLlib sample batches (JSON lines)"
    example = (
        '{"type": "SampleBatch", "obs": [[0.1], [0.2]], "actions": [0, 1], "rewards": [0.0, 1.0], "new_obs": '
        '[[0.2], [0.3]], "terminateds": [false, true], "truncateds": [false, false], "eps_id": [7, 7], "t": [0, 1]}'
    )
    fields = (
        "obs, new_obs, actions, rewards, terminateds (dones), truncateds, eps_id, t, action_logp, action_prob"
    )
    quirks = (
        "an episode may be spread over lines (joined by eps_id and t); multi-agent batches are cut per policy and "
        "agent; compressed columns are refused with the setting that writes them plain"
    )
    splittable = True

    def sniff(self, path: str, head: bytes) -> Sniff:
        def fits(record: dict[str, Any]) -> bool:
            return record.get("type") in ("SampleBatch", "MultiAgentBatch")

        return sniff_record(head, fits, 0.98, "a SampleBatch")

    def read(self, file: LogFile) -> Iterator[Item]:
        yield from read_json_records(file, _batch, "batch")


def _batch(record: JsonRecord, source: str) -> list[Item]:
    batch = as_dict(record.value, "the record")
    digest = hash_record(record.raw)
    if batch.get("type") != "MultiAgentBatch":
        return _rows(batch, "", source, digest)
    parts = as_dict(batch.get("policy_batches"), "policy_batches")
    return [
        item
        for name, part in parts.items()
        for item in _rows(as_dict(part, "a policy's batch"), name, f"{source}#{name}", digest)
    ]


def _rows(batch: dict[str, Any], policy: str, source: str, digest: str) -> list[Item]:
    columns = {name: _column(batch, name) for name in ("obs", "actions", "rewards")}
    count = len(columns["rewards"])
    for name in (
        "new_obs",
        "terminateds",
        "dones",
        "truncateds",
        "eps_id",
        "t",
        "action_logp",
        "action_prob",
    ):
        if batch.get(name) is not None:
            columns[name] = _column(batch, name)
    lengths = {name: len(column) for name, column in columns.items()}
    if set(lengths.values()) != {count} or not count:
        raise ValueError(f"the columns do not match: {lengths}")
    left = {k: v for k, v in batch.items() if k not in _KNOWN and isinstance(v, list) and len(v) == count}
    return [
        _turn(
            {k: v[i] for k, v in columns.items()}, {k: v[i] for k, v in left.items()}, policy, source, digest
        )
        for i in range(count)
    ]


def _turn(row: dict[str, Any], left: dict[str, Any], policy: str, source: str, digest: str) -> RawTurn:
    session = str(row.get("eps_id", source))
    if policy:
        session = f"{session}#{policy}#{left.get('agent_index', 0)}"
    values = {
        "turn": row.get("t"),
        "policy": policy or None,
        "observation": row_text(row["obs"]),
        "action": row_text(row["actions"]),
        "reward": row["rewards"],
        "next_observation": row_text(row["new_obs"]) if "new_obs" in row else None,
        "terminated": row.get("terminateds", row.get("dones")),
        "truncated": row.get("truncateds"),
        "behavior_logprob": row.get("action_logp"),
        "action_prob": row.get("action_prob"),
    }
    place = f"{source}/{row['eps_id']}" if "#" in source else f"{source}#{row.get('eps_id', 0)}"
    return RawTurn(session, {k: v for k, v in values.items() if v is not None}, place, digest, left)


def _column(batch: dict[str, Any], name: str) -> list[Any]:
    if isinstance(batch.get(name), str):
        raise ValueError(f"{name} is compressed; write it with output_compress_columns=[] to read it here")
    return as_list(batch.get(name), name)
