"""Writing into tables of PostgreSQL: modes, schemas, sources, and transactions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from write_target import TABLE, Target

import dray


def test_modes(target: Target) -> None:
    missing = target.fails(TABLE, 'table "t" does not exist.*create_append', mode="append")
    assert missing.sqlstate == "42P01"
    written = target.write(TABLE)
    assert (written.rows, written.format, written["rows"]) == (3, "binary", 3)
    assert written.bytes > 0 and written.total_seconds > 0
    want = [(1, "a"), (2, None), (None, "ü 🐴\n\t\\")]
    assert target.rows() == want
    assert target.fails(TABLE, "already exists.*append adds rows").sqlstate == "42P07"
    target.write(TABLE, mode="append")
    target.write(TABLE, mode="create_append")
    assert target.rows() == want * 3
    target.write(TABLE.select(["name"]), mode="replace")
    assert target.rows() == [("a",), (None,), ("ü 🐴\n\t\\",)]
    target.fails(TABLE, "mode 'bad'|mode \"bad\"", mode="bad")
    # Replacing what does not exist, and creating by appending.
    target.dray.write("u", TABLE, mode="replace")
    target.dray.write("v", TABLE, mode="create_append")
    assert len(target.rows("w.u")) == len(target.rows("w.v")) == 3


def test_schemas_and_temporary_tables(target: Target) -> None:
    target.write(TABLE, schema="other", mode="replace")
    assert len(target.rows("other.t")) == 3
    # Appended to the first one in the search path, created in the first schema.
    target.write(TABLE, mode="append")
    assert len(target.rows("other.t")) == 6
    target.write(TABLE)
    assert len(target.rows("w.t")) == 3
    assert target.fails(TABLE, 'schema "nowhere" does not exist', schema="nowhere").sqlstate
    target.write(TABLE, temporary=True)
    target.write(TABLE, temporary=True, mode="append")
    target.write(TABLE, mode="append")
    count = "SELECT count(*) FROM pg_temp.t"
    assert target.dray.query(count).to_arrow()[0].to_pylist() == [9]
    target.write(TABLE, temporary=True, mode="replace")
    assert target.dray.query("SELECT count(*) FROM t").to_arrow()[0].to_pylist() == [3]
    assert len(target.rows("w.t")) == 3
    target.fails(TABLE, "temporary table has no schema", temporary=True, schema="w")
    target.oracle.execute("DROP TABLE other.t")


def test_names(target: Target) -> None:
    names = ['a"b', "select", "Ä \\ '", "x" * 63]
    table = pa.table({name: [i] for i, name in enumerate(names)})
    target.dray.query("SET standard_conforming_strings TO off").close()
    for name in ('ta"b\\le', "SELECT", "it's; DROP TABLE t"):
        for mode in ("replace", "append"):
            target.dray.write(name, table, mode=mode)
        quoted = '"' + name.replace('"', '""') + '"'
        assert target.rows(f"w.{quoted}") == [(0, 1, 2, 3)] * 2


def test_sources(target: Target, tmp_path: Path) -> None:
    want = [(1, "a"), (2, None), (None, "ü 🐴\n\t\\")]
    pq.write_table(TABLE, tmp_path / "t.parquet")
    frame = pd.DataFrame({"id": pd.array([1, 2, None], "Int32"), "name": ["a", None, want[2][1]]})
    sources = [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.__arrow_c_stream__(),
        pl.from_arrow(TABLE),
        frame,
        tmp_path / "t.parquet",
        str(tmp_path / "t.parquet"),
        TABLE.to_batches()[0].to_struct_array(),
    ]
    for source in sources:
        target.write(source, mode="replace")
        assert target.rows() == want, type(source)
    other = dray.connect(target.server.uri())
    target.dray.write("copy", other.query("SELECT * FROM w.t"))
    assert target.rows("w.copy") == want
    with target.dray.query("SELECT * FROM generate_series(1, 1000000)"):
        with pytest.raises(dray.UsageError, match="busy"):
            target.write(TABLE, mode="append")
    target.fails([1, 2], "__arrow_c_stream__")
    target.fails(pa.array([1, 2]), "items are no rows")
    (tmp_path / "x").write_text("no parquet")
    target.fails(tmp_path / "x", "as a Parquet file.*dray load")


def test_batches_of_any_size(target: Target) -> None:
    batches = [TABLE.to_batches()[0].slice(0, 0)] * 3 + TABLE.to_batches() * 2
    big = pa.table({"id": pa.array(range(50_000), pa.int32()), "name": ["x" * 40] * 50_000})
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, [*batches, *big.to_batches()])
    assert target.write(reader).rows == 50_006
    (sums,) = target.rows(columns="count(*), sum(id), sum(length(name)), count(DISTINCT id)")
    assert sums == (50_006, sum(range(50_000)) + 6, 2_000_000 + 14, 50_000)
    # Rows that are larger than a block, and slices.
    long = pa.table({"t": ["y" * n for n in (0, 1, 70_000, 3_000_000, 5)]}).slice(1)
    target.write(long, mode="replace")
    assert target.rows(columns="length(t)") == [(1,), (70_000,), (3_000_000,), (5,)]
    assert target.write(TABLE.slice(0, 0), mode="replace").rows == 0
    assert target.rows() == []


def test_transactions(target: Target) -> None:
    query = target.dray.query
    query("BEGIN").close()
    target.write(TABLE)
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)
    with pytest.raises(dray.Error, match="out of range"):
        target.write(pa.table({"id": [2**40]}), mode="append")
    # The transaction survives, with what was written before.
    target.write(TABLE, mode="append")
    query("COMMIT").close()
    assert len(target.rows()) == 6
    query("BEGIN").close()
    with pytest.raises(dray.Error):
        query("SELECT 1/0").to_arrow()
    with pytest.raises(dray.Error, match="transaction has failed.*roll it back"):
        target.write(TABLE, mode="append")
    query("ROLLBACK").close()
    # Constraints that are checked at the commit.
    target.oracle.execute("CREATE TABLE w.d (id integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(dray.Error, match="duplicate key"):
        target.dray.write("d", pa.table({"id": [1, 1]}), mode="append")
    assert target.rows("w.d") == []
    target.fails(TABLE, "already exists")


def test_default_and_generated_columns(target: Target) -> None:
    target.oracle.execute(
        "CREATE TABLE w.t (id serial, name text DEFAULT 'x', at integer DEFAULT 7, "
        "twice integer GENERATED ALWAYS AS (at * 2) STORED)"
    )
    target.write(pa.table({"name": ["b", None]}), mode="append")
    assert target.rows() == [(1, "b", 7, 14), (2, None, 7, 14)]
    target.fails(pa.table({"twice": [1]}), "generated column", mode="append")
    target.fails(pa.table({"nmae": [1]}), 'no column "nmae".*id, name, at, twice', mode="append")
