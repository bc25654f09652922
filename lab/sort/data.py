"""The cases to sort: a Parquet file for each, with only the columns of the result."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.process import Failure
from lab.data.lineitem import Lineitem
from lab.data.table import cache_folder, plain_strings

#: Rows per row group of source and result: DuckDB's default, and a size that fits little memory.
ROW_GROUP_ROWS, SMALL_ROW_GROUP_ROWS = 122_880, 20_480
CATALOG_SALES_KEYS = ("cs_quantity", "cs_item_sk")
#: Numbers of columns of `catalog_sales` beside the keys.
PAYLOADS = (1, 2, 4, 8, 16, 24, 32)
CUSTOMER_KEYS = {
    "integers": ("c_birth_year", "c_birth_month", "c_birth_day"),
    "strings": ("c_last_name", "c_first_name"),
}
LINEITEM_KEYS = ("l_shipdate", "l_orderkey")
#: The payload of Q7 and Q10 of `sort_tpch`.
REST = (
    "l_partkey",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
    "l_returnflag",
    "l_linestatus",
    "l_shipdate",
    "l_commitdate",
    "l_receiptdate",
    "l_shipinstruct",
    "l_shipmode",
)
#: Keys and payload of DataFusion's `sort_tpch`.
SORT_TPCH = {
    1: (("l_linenumber",), ("l_partkey",)),
    2: (("l_orderkey",), ("l_partkey",)),
    3: (("l_comment",), ("l_partkey",)),
    4: (("l_orderkey", "l_linenumber"), ("l_partkey",)),
    5: (("l_linenumber", "l_suppkey", "l_orderkey"), ()),
    6: (("l_linenumber", "l_suppkey", "l_orderkey"), ("l_partkey",)),
    7: (("l_linenumber", "l_suppkey", "l_orderkey"), REST),
    8: (("l_orderkey", "l_suppkey", "l_linenumber", "l_comment"), ()),
    9: (("l_orderkey", "l_suppkey", "l_linenumber", "l_comment"), ("l_partkey",)),
    10: (("l_orderkey", "l_suppkey", "l_linenumber", "l_comment"), REST),
    11: (("l_shipmode",), ("l_comment", "l_partkey")),
}
#: Rows of few columns at scale factor 1, and the seed of their numbers.
NARROW_ROWS, NARROW_SEED = 10_000_000, 7
#: Their keys.
NARROW = {
    "int64": ("k",),
    "int64-million": ("k",),
    "int64-nulls": ("k",),
    "int32": ("k",),
    "few": ("k", "l"),
    "float64": ("k",),
    "in-order": ("k",),
}


@dataclass(frozen=True)
class Case:
    """Columns of a table and the keys to sort by, in ascending order with missing values last.

    If `columns` is empty, the case has all columns of the table.
    """

    part: str
    name: str
    title: str
    table: str
    scale_factor: float
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    #: Rows per row group of source and result.
    row_group_rows: int = ROW_GROUP_ROWS

    @property
    def folder(self) -> Path:
        return cache_folder() / "sort" / f"{self.table}-sf{self.scale_factor:g}"

    def parquet(self) -> Path:
        """The rows in the table's order. The file is created on the first call."""
        path = self.folder / f"{self.name if self.columns else 'all'}-{self.row_group_rows}.parquet"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            with pq.ParquetFile(table_file(self.table, self.scale_factor)) as source:
                names = list(self.columns) or source.schema_arrow.names
                schema = plain_strings(
                    pa.schema([source.schema_arrow.field(name) for name in names])
                )
                with pq.ParquetWriter(partial, schema, compression="snappy") as sink:
                    for batch in source.iter_batches(self.row_group_rows, columns=names):
                        sink.write_table(pa.table(batch).select(names).cast(schema))
            partial.rename(path)
        return path

    def sqlite(self) -> Path:
        """The rows as an SQLite database, with dates as days and decimals as unscaled integers."""
        path = self.parquet().with_suffix(".sqlite")
        if not path.exists():
            partial = path.with_suffix(".partial")
            partial.unlink(missing_ok=True)
            with pq.ParquetFile(self.parquet()) as source, sqlite3.connect(partial) as sink:
                names = source.schema_arrow.names
                kinds = [
                    "TEXT" if pa.types.is_string(field.type) else "INTEGER"
                    for field in source.schema_arrow
                ]
                declared = ", ".join(
                    f"{name} {kind}" for name, kind in zip(names, kinds, strict=True)
                )
                sink.execute("PRAGMA journal_mode = OFF")
                sink.execute(f"CREATE TABLE t ({declared})")
                for batch in source.iter_batches(ROW_GROUP_ROWS):
                    columns = [as_plain(column).to_pylist() for column in batch.columns]
                    places = ", ".join("?" * len(names))
                    sink.executemany(f"INSERT INTO t VALUES ({places})", zip(*columns, strict=True))
            sink.close()
            partial.rename(path)
        return path

    @property
    def rows(self) -> int:
        return pq.read_metadata(self.parquet()).num_rows

    def arrow_bytes(self) -> int:
        """Size of the rows in Arrow with plain utf8 strings, the data size in every ratio."""
        path = self.parquet().with_suffix(".arrow_bytes")
        if not path.exists():
            with pq.ParquetFile(self.parquet()) as source:
                path.write_text(
                    str(sum(batch.nbytes for batch in source.iter_batches(ROW_GROUP_ROWS)))
                )
        return int(path.read_text())


def cases(part: str, scale_factor: float, tpcds_scale_factor: float) -> Iterator[Case]:
    """The cases of a part of the benchmark."""
    if part == "catalog-sales":
        yield from (catalog_sales(payload, tpcds_scale_factor) for payload in PAYLOADS)
    elif part == "customer":
        for name, keys in CUSTOMER_KEYS.items():
            yield Case(part, f"customer-{name}", f"by {name}", "customer", tpcds_scale_factor, keys)
    elif part == "duckdb":
        thin = (*LINEITEM_KEYS, "l_extendedprice")
        by = "by l_shipdate, l_orderkey"
        yield Case(
            part,
            "lineitem-wide",
            f"wide: all columns {by}",
            "lineitem",
            scale_factor,
            LINEITEM_KEYS,
        )
        yield Case(
            part,
            "lineitem-thin",
            f"thin: l_extendedprice {by}",
            "lineitem",
            scale_factor,
            LINEITEM_KEYS,
            thin,
        )
        yield Case(
            part,
            "lineitem-text",
            "all columns by l_comment",
            "lineitem",
            scale_factor,
            ("l_comment",),
        )
    elif part == "tpch":
        for number, (keys, payload) in SORT_TPCH.items():
            title = f"Q{number}: by {', '.join(keys)}; {len(payload)} other columns"
            yield Case(
                part, f"tpch-q{number}", title, "lineitem", scale_factor, keys, (*keys, *payload)
            )
    elif part == "narrow":
        for name, keys in NARROW.items():
            table = f"narrow-{name}"
            yield Case(part, table, f"{name}: by {', '.join(keys)}", table, scale_factor, keys)
    elif part == "curve":
        title = "lineitem, all columns by l_shipdate, l_orderkey"
        yield Case(
            part,
            "curve",
            title,
            "lineitem",
            scale_factor,
            LINEITEM_KEYS,
            row_group_rows=SMALL_ROW_GROUP_ROWS,
        )
    else:
        raise Failure(f"no part {part}")


def catalog_sales(payload: int, scale_factor: float) -> Case:
    """The two keys and the first `payload` other columns of the table."""
    others = [
        name
        for name in pq.read_schema(table_file("catalog_sales", scale_factor)).names
        if name not in CATALOG_SALES_KEYS
    ]
    columns = (*CATALOG_SALES_KEYS, *others[:payload])
    name, title = f"catalog-sales-{payload}", f"{payload} columns beside the keys"
    return Case(
        "catalog-sales", name, title, "catalog_sales", scale_factor, CATALOG_SALES_KEYS, columns
    )


def table_file(table: str, scale_factor: float) -> Path:
    """A table as its generator wrote it."""
    if table.startswith("narrow-"):
        return narrow(table, scale_factor)
    return (
        Lineitem.of(scale_factor).parquet() if table == "lineitem" else tpcds(table, scale_factor)
    )


def narrow(table: str, scale_factor: float) -> Path:
    """A table of random numbers, as a file."""
    path = cache_folder() / f"narrow-sf{scale_factor:g}" / f"{table}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        columns = narrow_columns(table.removeprefix("narrow-"), int(NARROW_ROWS * scale_factor))
        pq.write_table(pa.table(columns), partial, row_group_size=ROW_GROUP_ROWS)
        partial.rename(path)
    return path


def narrow_columns(name: str, rows: int) -> dict[str, np.ndarray | pa.Array]:
    random = np.random.default_rng(NARROW_SEED)

    def integers(kind: type, below: int | None = None) -> np.ndarray:
        limits = np.iinfo(kind)
        bounds = (limits.min, limits.max) if below is None else (0, below)
        return random.integers(*bounds, rows, dtype=kind)

    if name == "int64":
        return {"k": integers(np.int64)}
    if name == "int64-million":
        return {"k": integers(np.int64, 1_000_000)}
    if name == "int64-nulls":
        return {"k": pa.array(integers(np.int64), mask=random.random(rows) < 0.1)}
    if name == "int32":
        return {"k": integers(np.int32), "v": integers(np.int32)}
    if name == "few":
        keys = {"k": integers(np.int32, 100), "l": integers(np.int32, 100)}
        return keys | {"x": random.random(rows)}
    if name == "float64":
        return {"k": random.random(rows), "x": random.random(rows)}
    if name == "in-order":
        return {"k": np.arange(rows), "x": random.random(rows)}
    raise Failure(f"no table narrow-{name}")


def tpcds(table: str, scale_factor: float) -> Path:
    """A table of TPC-DS from DuckDB's extension.

    The extension needs another version of DuckDB, and so a Python environment of its own.
    """
    folder = cache_folder() / f"tpcds-sf{scale_factor:g}"
    path = folder / f"{table}.parquet"
    if not path.exists():
        python = Path(
            os.environ.get(
                "DRAY_LAB_TPCDS_PYTHON", cache_folder() / "tpcds-venv" / "bin" / "python"
            )
        )
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            str(python),
            "-m",
            "lab.sort.tpcds",
            str(scale_factor),
            str(folder),
        ]
        print(f"generating TPC-DS, scale factor {scale_factor:g}", file=sys.stderr, flush=True)
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Failure(f"cannot generate TPC-DS: {error}") from error
    return path


def as_plain(column: pa.Array) -> pa.Array:
    """Decimals of at most 18 digits as unscaled integers, and dates as days."""
    if pa.types.is_decimal128(column.type):
        words = np.frombuffer(column.buffers()[1], np.int64)[
            2 * column.offset : 2 * (column.offset + len(column)) : 2
        ]
        return pa.array(words, mask=column.is_null().to_numpy(zero_copy_only=False))
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def from_plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The inverse of `as_plain`."""
    if pa.types.is_decimal128(kind):
        low = column.cast(pa.int64()).fill_null(0).to_numpy()
        words = np.stack([low, low >> 63], axis=1)
        validity = pa.array(low, mask=column.is_null().to_numpy(zero_copy_only=False)).buffers()[0]
        return pa.Array.from_buffers(kind, len(column), [validity, pa.py_buffer(words)])
    return column.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else column.cast(kind)
