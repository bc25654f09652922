"""Tables as files in a cache folder outside the checkout."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_BATCH = 64 * 1024


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/dray/lab`, or the same below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dray" / "lab"


class Table(ABC):
    """A table as files, so that all contenders read the same rows."""

    name: str
    title: str
    rows: int
    folder: Path

    @abstractmethod
    def parquet(self) -> Path:
        """The table as Parquet, for servers that load it. It is created on the first call."""

    @abstractmethod
    def csv(self) -> Path:
        """The table as CSV, for servers that send text."""

    @abstractmethod
    def serve_arguments(self) -> list[str]:
        """The arguments of `dray serve` for this table."""

    @property
    def query(self) -> str:
        return f"SELECT * FROM {self.name}"

    def arrow_bytes(self) -> int:
        """Size of the table in Arrow with plain utf8 strings, the base of every GB/s."""
        path = self.folder / "arrow_bytes"
        if not path.exists():
            counted = sum(batch.nbytes for batch in utf8_batches(self.parquet()))
            path.write_text(str(counted))
        return int(path.read_text())


def plain_strings(schema: pa.Schema) -> pa.Schema:
    """The schema with string views replaced by utf8 with 32-bit offsets."""
    return pa.schema(
        [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in schema]
    )


def utf8_batches(parquet: Path) -> Iterator[pa.RecordBatch]:
    """The rows as record batches of 64 Ki rows that own their buffers.

    With sliced views, pyarrow's IPC writer would send the whole character buffers with each batch.
    """
    with pq.ParquetFile(parquet) as source:
        schema = plain_strings(source.schema_arrow)
        for batch in source.iter_batches(ROWS_PER_BATCH):
            # A cast leaves buffers with up to twice the capacity they use. IPC trims them.
            for plain in pa.table(batch).cast(schema).combine_chunks().to_batches():
                yield pa.ipc.read_record_batch(plain.serialize(), schema)
