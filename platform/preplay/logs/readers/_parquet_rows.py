"""Rows of a Parquet file with their numbers."""

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from preplay.logs._files import LogFile


def parquet_rows(file: LogFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Row number from 1 and the row's values that are not null."""
    number = 0
    with file.open() as stream:
        for batch in pq.ParquetFile(stream).iter_batches(batch_size=1024):
            for row in batch.to_pylist():
                number += 1
                yield number, {k: v for k, v in row.items() if v is not None}
