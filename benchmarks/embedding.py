"""The embedding pipeline against a plain sentence-transformers loop over the same texts on the same core.

One actor against one process, one torch thread each. Wall times hold for idle cores; the encoder alone is also
compared per CPU-second, which other work on the machine hardly disturbs.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks._common import bench_main
from preplay.embedding import EncoderConfig, embed_dataset, load_embedded, load_encoder
from preplay.embedding._encoder import model_location
from preplay.logs import load_turns
from preplay.pipeline import write_logs
from preplay.stage import connect

SESSIONS = {"debug": 60, "full": 3000}
SLOTS = ("task", "observation", "action", "next_observation")
GOALS = {
    "pipeline / bare loop": ">= 0.9",
    "pipeline over all slots / bare loop": ">= 2",
    "from cache / pipeline": ">= 20",
}


def run(preset: str) -> dict[str, float]:
    """All ratios on logs of the support desk."""
    connect()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder), SESSIONS[preset])


def _measure(folder: Path, sessions: int) -> dict[str, float]:
    write_logs(folder / "dataset", sessions=sessions, seed=1)
    turns = load_turns(folder / "dataset")
    slots = [text for name in SLOTS for text in turns[name].to_pylist() if text is not None]
    texts = list(dict.fromkeys(slots))
    pipeline, start_up = _pipeline(folder, "first")
    cached, _ = _pipeline(folder, "second")
    bare = {dtype: _bare_loop(texts, dtype) for dtype in ("float32", "bfloat16")}
    ours = _encoder(texts)
    return {
        "distinct texts": len(texts),
        "slots": len(slots),
        "bare loop, texts/s": len(texts) / bare["float32"].wall,
        "bare loop in bfloat16, texts/s": len(texts) / bare["bfloat16"].wall,
        "pipeline, texts/s": len(texts) / pipeline,
        "pipeline, s until the first block": start_up,
        "pipeline / bare loop": bare["float32"].wall / pipeline,
        "pipeline / bare loop in bfloat16": bare["bfloat16"].wall / pipeline,
        "encoder / bare loop, per CPU-second": bare["float32"].cpu / ours.cpu,
        "encoder / bare loop in bfloat16, per CPU-second": bare["bfloat16"].cpu / ours.cpu,
        "pipeline over all slots / bare loop": len(slots) / pipeline / (len(texts) / bare["float32"].wall),
        "from cache / pipeline": pipeline / cached,
        "three columns / bank, bytes": _three_columns(folder) / _size(folder / "first"),
    }


def _pipeline(folder: Path, output: str) -> tuple[float, float]:
    """Seconds of a whole run with one actor, and until its first block was on disk."""
    started, wall = time.perf_counter(), time.time()
    embed_dataset(folder / "dataset", folder / output, EncoderConfig(), cache_dir=folder / "cache", actors=1)
    seconds = time.perf_counter() - started
    first = min(path.stat().st_mtime for path in (folder / "cache").glob("*/*.parquet"))
    return seconds, max(0.0, first - wall)


class Seconds(NamedTuple):
    """What some work took."""

    wall: float
    cpu: float


def _timed(work: Callable[[], object]) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def _bare_loop(texts: list[str], dtype: str) -> Seconds:
    """``SentenceTransformer.encode``, which sorts by length too; the model is already loaded."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(model_location(EncoderConfig().model), device="cpu")
    model.encode(texts[:64], show_progress_bar=False)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bfloat16"):
        return _timed(lambda: model.encode(texts, normalize_embeddings=True, show_progress_bar=False))


def _encoder(texts: list[str]) -> Seconds:
    """The pipeline's encoder, without Ray and cache."""
    encoder = load_encoder()
    encoder.encode(texts[:64])
    return _timed(lambda: encoder.encode(texts))


def _three_columns(folder: Path) -> int:
    """Bytes of the same turns with an embedding column for each of their three texts."""
    embedded = load_embedded(folder / "first")
    table = embedded.turns
    for name in SLOTS[1:]:
        rows = embedded.bank.embeddings[getattr(embedded, f"{name}_id")]
        values = pa.array(np.ascontiguousarray(rows).reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(values, rows.shape[1])
        table = table.append_column(f"{name}_embedding", column)
    pq.write_table(table, folder / "columns.parquet", compression="zstd")
    return (folder / "columns.parquet").stat().st_size


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


if __name__ == "__main__":
    bench_main(run, title="Embedding", goals=GOALS)
