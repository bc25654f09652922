"""Data sets as files in a cache folder outside the checkout; the first is TPC-H lineitem at a scale
factor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.process import Failure

ROWS_PER_BATCH = 64 * 1024


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/dray/lab`, or the same below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dray" / "lab"


class Table(ABC):
    """A table as files that every contender reads the same rows from."""

    name: str
    title: str
    rows: int
    folder: Path

    @abstractmethod
    def parquet(self) -> Path:
        """The table as Parquet, for those that load it; made when it is not there yet."""

    @abstractmethod
    def csv(self) -> Path:
        """The table as CSV, for the contender that sends text."""

    @abstractmethod
    def dray_words(self) -> list[str]:
        """What `dray serve` is told to have it."""

    @property
    def query(self) -> str:
        return f"SELECT * FROM {self.name}"

    def arrow_bytes(self) -> int:
        """Bytes of the table in Arrow with plain utf8 strings: the yardstick of every GB/s here."""
        path = self.folder / "arrow_bytes"
        if not path.exists():
            counted = sum(batch.nbytes for batch in utf8_batches(self.parquet()))
            path.write_text(str(counted))
        return int(path.read_text())


@dataclass(frozen=True)
class Lineitem(Table):
    """One scale factor of lineitem."""

    scale_factor: float
    folder: Path
    name = "lineitem"

    @classmethod
    def of(cls, scale_factor: float) -> Lineitem:
        return cls(scale_factor, cache_folder() / f"sf{scale_factor:g}")

    @property
    def title(self) -> str:
        return f"TPC-H lineitem, scale factor {self.scale_factor:g}"

    @property
    def rows(self) -> int:
        return pq.read_metadata(self.parquet()).num_rows

    def parquet(self) -> Path:
        return self.file("parquet")

    def csv(self) -> Path:
        return self.file("csv")

    def file(self, form: str) -> Path:
        """The table in a form that the generator writes, generated when it is not there yet."""
        path = self.folder / f"lineitem.{form}"
        if not path.exists():
            generator = Path(sys.executable).parent / "tpchgen-cli"
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder) as partial:
                scale_factor = f"{self.scale_factor:g}"
                command = [
                    generator,
                    form,
                    "-s",
                    scale_factor,
                    "-T",
                    "lineitem",
                    "-o",
                    partial,
                    "-q",
                ]
                try:
                    subprocess.run(command, check=True)
                except (OSError, subprocess.CalledProcessError) as error:
                    raise Failure(f"cannot generate lineitem: {error}") from error
                Path(partial, path.name).rename(path)
        return path

    def dray_words(self) -> list[str]:
        """Dray generates the same rows itself."""
        return ["--tpch", f"{self.scale_factor:g}"]


def plain_strings(schema: pa.Schema) -> pa.Schema:
    """The schema with string views replaced by utf8 with 32-bit offsets."""
    return pa.schema(
        [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in schema]
    )


def utf8_batches(parquet: Path) -> Iterator[pa.RecordBatch]:
    """The rows as record batches of 64Ki rows that own their buffers.

    Sliced views would make the IPC writer of pyarrow send the whole character buffers with each
    batch."""
    with pq.ParquetFile(parquet) as source:
        schema = plain_strings(source.schema_arrow)
        for batch in source.iter_batches(ROWS_PER_BATCH):
            # Once through IPC, because the buffers that a cast leaves have up to twice the capacity
            # they use.
            for plain in pa.table(batch).cast(schema).combine_chunks().to_batches():
                yield pa.ipc.read_record_batch(plain.serialize(), schema)
