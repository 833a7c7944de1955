"""RLlib's recorded episodes: Parquet rows with one packed SingleAgentEpisode state each."""

from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from preplay.logs._files import BROKEN_STREAM, LogFile
from preplay.logs._records import Quarantined, RawTurn, hash_record
from preplay.logs._registry import Item, Sniff, register
from preplay.logs.readers._common import as_dict, as_list, dict_or_empty
from preplay.logs.readers._rows import row_text

_COLUMN = "item"


@register
class RLlibEpisodes:
    """Parquet with a binary column ``item`` of msgpack-packed episode states."""

    name = "rllib-episodes"
    description = "RLlib recorded episodes (Parquet)"
    example = "column item: msgpack of SingleAgentEpisode.get_state()"
    fields = "observations, actions, rewards, extra_model_outputs.action_logp, is_terminated, is_truncated, t_started"
    quirks = (
        "a look-back buffer before the first step is skipped; chunks of one episode are joined by id and t_started; "
        "pickled arrays inside are never opened"
    )
    splittable = False

    def sniff(self, path: str, head: bytes) -> Sniff:
        if not head.startswith(b"PAR1"):
            return Sniff(0, "no Parquet file")
        try:
            with LogFile(path).open() as stream:
                schema = pq.read_schema(stream)
        except (pa.ArrowInvalid, OSError) as error:
            return Sniff(0, f"a damaged Parquet file ({str(error).splitlines()[0]})")
        binary = _COLUMN in schema.names and pa.types.is_binary(schema.field(_COLUMN).type)
        return (
            Sniff(0.9, "packed episodes")
            if binary
            else Sniff(0, "a Parquet file without a binary column item")
        )

    def read(self, file: LogFile) -> Iterator[Item]:
        number = 0
        try:
            with file.open() as stream:
                for batch in pq.ParquetFile(stream).iter_batches(batch_size=64, columns=[_COLUMN]):
                    for packed in batch.column(0).to_pylist():
                        number += 1
                        yield from _checked(packed, file.where(number))
        except (pa.ArrowInvalid, *BROKEN_STREAM) as error:
            yield Quarantined(
                file.where(number + 1), "file", f"damaged from here on ({str(error).splitlines()[0]})"
            )


def _checked(packed: Any, source: str) -> list[Item]:
    try:
        state = msgpack.unpackb(packed or b"", object_hook=_decode, strict_map_key=False)
        return _episode(as_dict(state, "the episode"), source, hash_record(packed))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        return [Quarantined(source, "episode", f"cannot be read ({str(error)[:120]})")]


def _decode(obj: dict[Any, Any]) -> Any:
    """msgpack-numpy's arrays and numbers; object arrays are pickles and stay closed."""
    if b"nd" not in obj:
        return obj
    if obj[b"nd"] is False:
        return np.frombuffer(obj[b"data"], dtype=np.dtype(obj[b"type"]))[0]
    if obj.get(b"kind") in (b"O", b"V"):
        return None
    return np.frombuffer(obj[b"data"], dtype=np.dtype(obj[b"type"])).reshape(obj[b"shape"])


def _episode(state: dict[str, Any], source: str, digest: str) -> list[Item]:
    observations, actions, rewards = (
        _buffer(state.get(name), name) for name in ("observations", "actions", "rewards")
    )
    if len(observations) != len(actions) + 1 or len(actions) != len(rewards):
        counts = f"{len(observations)} observations, {len(actions)} actions, {len(rewards)} rewards"
        raise ValueError(f"the buffers do not match: {counts}")
    extra = dict_or_empty(state.get("extra_model_outputs"))
    logged = extra.get("action_logp")
    logprobs = map(float, _buffer(logged, "action_logp")) if logged else [None] * len(actions)
    started, last = int(state.get("t_started") or 0), len(actions) - 1
    agent = state.get("agent_id")
    session_id = f"{state.get('id_')}#{agent}" if agent is not None else str(state.get("id_"))
    return [
        RawTurn(
            session_id,
            {
                "turn": started + i,
                "policy": state.get("module_id"),
                "observation": row_text(observations[i]),
                "action": row_text(actions[i]),
                "reward": float(rewards[i]),
                "next_observation": row_text(observations[i + 1]),
                "terminated": i == last and bool(state.get("is_terminated")),
                "truncated": i == last and bool(state.get("is_truncated")),
                "behavior_logprob": logprob,
            },
            source,
            digest,
        )
        for i, logprob in zip(range(len(actions)), logprobs, strict=False)
    ] or [Quarantined(source, "episode", "no step")]


def _buffer(raw: Any, name: str) -> list[Any]:
    """The values of an InfiniteLookbackBuffer state, without its look-back."""
    buffer = as_dict(raw, name)
    data = buffer.get("data")
    values = list(data) if isinstance(data, np.ndarray) else as_list(data, f"{name}.data")
    return values[int(buffer.get("lookback") or 0) :]
