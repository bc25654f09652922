"""Checks that a result is sorted and has the same rows as its source."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lab.common.process import Failure
from lab.sort.client import FETCH_ROWS, rows_to_batch
from lab.sort.data import ROW_GROUP_ROWS, Case


def check(case: Case, output: Path) -> None:
    """Raise Failure if the result is wrong."""
    schema = pq.read_schema(case.parquet())
    rows, digest, last = 0, 0, None
    for table in tables(output, schema):
        joined = table if last is None else pa.concat_tables([last, table])
        place = first_disorder(joined.select(list(case.keys)))
        if place is not None:
            raise Failure(
                f"wrong: row {rows + place + 1 + (last is None):,} is less than the previous one"
            )
        rows, digest, last = (
            rows + table.num_rows,
            (digest + digest_of(table)) % 2**64,
            table.slice(table.num_rows - 1),
        )
    if rows != case.rows:
        raise Failure(f"wrong: expected {case.rows:,} rows, found {rows:,}")
    if digest != source_digest(case):
        raise Failure("wrong: the rows differ from those of the source")


def tables(path: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a file in batches, with the types of the source."""
    with path.open("rb") as file:
        magic = file.read(6)
    if magic == b"SQLite":
        with sqlite3.connect(path) as connection:
            cursor = connection.execute("SELECT * FROM t")
            while rows := cursor.fetchmany(FETCH_ROWS):
                yield pa.table(rows_to_batch(rows, schema))
        return
    reader = pa.ipc.open_file(pa.memory_map(str(path))) if magic == b"ARROW1" else None
    batches = (
        pq.ParquetFile(path).iter_batches(ROW_GROUP_ROWS)
        if reader is None
        else (reader.get_batch(number) for number in range(reader.num_record_batches))
    )
    for batch in batches:
        if batch.num_rows:
            yield pa.table(batch).select(schema.names).cast(schema)


def first_disorder(keys: pa.Table) -> int | None:
    """The first row that is greater than the next one, or None. Missing values are the greatest."""
    count = keys.num_rows - 1
    if count < 1:
        return None
    wrong, equal = pa.scalar(False), pa.scalar(True)
    for column in keys.columns:
        column = column.combine_chunks()
        this, following = column.slice(0, count), column.slice(1)
        this_null, following_null = pc.is_null(this), pc.is_null(following)
        greater = pc.or_(
            pc.fill_null(pc.greater(this, following), False),
            pc.and_(this_null, pc.invert(following_null)),
        )
        same = pc.or_(
            pc.fill_null(pc.equal(this, following), False), pc.and_(this_null, following_null)
        )
        wrong, equal = pc.or_(wrong, pc.and_(equal, greater)), pc.and_(equal, same)
    place = pc.index(wrong, True).as_py()
    return None if place < 0 else place


def digest_of(table: pa.Table) -> int:
    """The sum of the rows' hashes, which does not depend on their order."""
    return int(polars.from_arrow(table).hash_rows().to_numpy().sum(dtype=np.uint64))


@functools.cache
def source_digest(case: Case) -> int:
    schema = pq.read_schema(case.parquet())
    return sum(digest_of(table) for table in tables(case.parquet(), schema)) % 2**64
