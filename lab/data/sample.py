"""Tables of any size from samples of real data: rows drawn in contiguous runs with a fixed seed."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lab.data.table import Table, cache_folder

DATA = Path(__file__).resolve().parent
FILES = {"ontime": "bts_ontime_2019_01.csv.gz", "pums": "pums_housing_or_189.csv.gz"}
#: Seed of every draw. Another seed gives other rows with the same distribution.
SEED = 20190101
#: Minimum and maximum rows of a contiguous run.
RUN_ROWS = (50, 500)


def draw_lines(file: str, rows: int) -> Iterator[bytes]:
    """The header of a sample, then blocks of lines with `rows` rows in total."""
    with gzip.open(DATA / file, "rb") as source:
        header, *sample = [line.rstrip(b"\r\n") for line in source]
    if header.endswith(b","):
        # Each line ends with a comma, but no column follows it.
        header, sample = header.removesuffix(b","), [line.removesuffix(b",") for line in sample]
    yield header + b"\n"
    draw = random.Random(SEED)
    rows_left = rows
    while rows_left > 0:
        start = draw.randrange(len(sample))
        run = sample[start : start + min(draw.randint(*RUN_ROWS), rows_left)]
        rows_left -= len(run)
        yield b"\n".join(run) + b"\n"


def whole_sample(name: str) -> pa.Table:
    """The rows of a sample in file order, with the types that DuckDB infers."""
    rows = duckdb.sql(
        f"SELECT * FROM read_csv('{DATA / FILES[name]}', sample_size = -1)"
    ).to_arrow_table()
    with gzip.open(DATA / FILES[name], "rt") as source:
        # Each line may end with a comma, but no column follows it.
        columns = source.readline().rstrip(",\r\n").count(",") + 1
    return rows.select(range(columns)).combine_chunks()


@dataclass(frozen=True)
class Sample(Table):
    """Drawn rows as CSV and as Parquet, with the types that DuckDB infers from the whole CSV."""

    name: str
    rows: int

    @property
    def folder(self) -> Path:
        return cache_folder() / f"{self.name}-{self.rows}"

    @property
    def title(self) -> str:
        return f"{self.name}, {self.rows:,} rows drawn from the sample in contiguous runs"

    def csv(self) -> Path:
        path = self.folder / f"{self.name}.csv"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            with partial.open("wb") as sink:
                sink.writelines(draw_lines(FILES[self.name], self.rows))
            partial.rename(path)
        return path

    def parquet(self) -> Path:
        path = self.folder / f"{self.name}.parquet"
        if not path.exists():
            partial = path.with_suffix(".partial")
            rows = f"SELECT * FROM read_csv('{self.csv()}', sample_size = -1)"
            duckdb.sql(f"COPY ({rows}) TO '{partial}' (FORMAT parquet)")
            if pq.read_metadata(partial).num_rows != self.rows:
                raise AssertionError(f"expected {self.rows} rows in {partial}")
            partial.rename(path)
        return path

    def serve_arguments(self) -> list[str]:
        return [f"{self.name}={self.parquet()}"]
