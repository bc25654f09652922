"""The forms of a result, and how it is read."""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import data
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from server import Server

import dray

D = decimal.Decimal
NUMBERS = "SELECT id, text FROM numbers ORDER BY id"


def numbers(rows: int = data.BIG) -> list[tuple[int, str]]:
    return [(i, f"row {i}") for i in range(rows)]


def test_arrow_copies_nothing(connection: dray.Connection) -> None:
    before = pa.total_allocated_bytes()
    result = connection.query("SELECT id FROM numbers", compression="none", batch_rows=16_384)
    table = result.arrow()
    table.validate(full=True)
    assert sorted(table.column("id").to_pylist()) == list(range(data.BIG))
    # The columns point to where the socket's bytes were received, at the layout's alignment. Only
    # the last chunks of a partition are joined, so copied.
    whole = [chunk for chunk in table.column("id").chunks if len(chunk) == 16_384]
    assert whole and all(chunk.buffers()[1].address % 64 == 0 for chunk in whole)
    assert pa.total_allocated_bytes() - before < 2**20


def test_read(uri: str) -> None:
    table = dray.read(
        uri, "SELECT id FROM numbers WHERE id < $1 ORDER BY id", [3], compression="lz4"
    )
    assert table.to_pylist() == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_rows(connection: dray.Connection) -> None:
    assert list(connection.query(NUMBERS).rows()) == numbers()
    assert list(connection.query(NUMBERS, batch_rows=100, chunk_bytes_max=4096)) == numbers()
    assert next(iter(connection.query("SELECT 1, NULL, 'x'"))) == (1, None, "x")


def test_batches(connection: dray.Connection) -> None:
    batches = list(connection.query(NUMBERS).batches())
    assert all(batch.num_rows >= 65_536 for batch in batches[:-1])
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == numbers()
    batches = list(connection.query(NUMBERS, batch_rows=1000).batches())
    assert sum(batch.num_rows for batch in batches) == data.BIG
    assert all(batch.num_rows >= 1000 for batch in batches[:-1])


def test_batches_in_bounded_memory(server: Server) -> None:
    script = """
import resource, sys, pyarrow, dray
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with dray.connect(sys.argv[1]) as connection:
    connection.query("SELECT 1").arrow()
    before, rows, size = peak(), 0, 0
    sql = "SELECT value, value + 1 FROM generate_series(1, 40000000)"
    for batch in connection.query(sql).batches():
        rows += batch.num_rows
        size += batch.nbytes
        del batch
    print(rows, size, peak() - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, server.unix], capture_output=True, text=True, check=True
    )
    rows, size, grown_kib = map(int, ran.stdout.split())
    assert (rows, size) == (40_000_000, 640_000_000)
    assert grown_kib < 64 * 1024


def test_capsules(connection: dray.Connection) -> None:
    result = connection.query(NUMBERS)
    assert pa.schema(result) == result.schema
    assert pa.table(result).num_rows == data.BIG
    reader = pa.RecordBatchReader.from_stream(connection.query(NUMBERS))
    assert [tuple(row.values()) for batch in reader for row in batch.to_pylist()] == numbers()
    assert pl.DataFrame(connection.query(NUMBERS)).rows() == numbers()
    # A consumer that stops early.
    reader = pa.RecordBatchReader.from_stream(
        connection.query("SELECT * FROM generate_series(1, 1000000000000)")
    )
    assert reader.read_next_batch().num_rows > 0
    reader.close()
    del reader
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_capsule_reports_failures(connection: dray.Connection) -> None:
    reader = pa.RecordBatchReader.from_stream(
        connection.query("SELECT 1 / (id - 150000) FROM numbers")
    )
    with pytest.raises(pa.ArrowException, match="division by zero"):
        reader.read_all()
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_pandas(connection: dray.Connection) -> None:
    frame = connection.query("SELECT * FROM nullable").pandas()
    assert [str(t) for t in frame.dtypes] == [
        "Int64", "int64", "boolean", "float64", "decimal128(38, 2)[pyarrow]", "datetime64[us]",
        "str",
    ]  # fmt: skip
    assert list(frame.columns) == ["i", "whole", "b", "f", "d", "t", "s"]
    assert frame["i"].tolist() == [2**53 + 1, pd.NA, -1]
    assert frame["whole"].tolist() == [2**53 + 1, 0, -1]
    assert frame["d"].tolist()[0] == D("12345678901234567890.12")
    assert frame["b"].tolist() == [True, pd.NA, False]
    assert np.isnan(frame["f"][1]) and frame["t"][1] is pd.NaT and pd.isna(frame["s"][1])


def test_pandas_options(connection: dray.Connection) -> None:
    frame = connection.query("SELECT * FROM nullable").pandas(types_mapper=pd.ArrowDtype)
    assert all(isinstance(dtype, pd.ArrowDtype) for dtype in frame.dtypes)
    frame = connection.query("SELECT i FROM nullable").pandas(types_mapper=None)
    assert frame["i"].dtype == np.float64
    frame = connection.query("SELECT whole, s FROM nullable").pandas(categories=["s"])
    assert str(frame["s"].dtype) == "category"
    # With integers that have NULLs, which are converted apart.
    frame = connection.query("SELECT i, b, s, whole FROM nullable").pandas(categories=["s", "b"])
    assert [str(t) for t in frame.dtypes] == ["Int64", "category", "category", "int64"]
    assert frame["b"].tolist()[::2] == [True, False] and pd.isna(frame["b"][1])
    assert frame["s"].notna().tolist() == [True, False, True]


def test_pandas_dates(connection: dray.Connection) -> None:
    sql = "SELECT date32 FROM parquet_types ORDER BY id"
    days = connection.query(sql).pandas()["date32"]
    assert str(days.dtype) == "datetime64[ms]" and days[3] is pd.NaT
    # Common comparisons, which fail with Arrow's own dates.
    assert (days > "2024-01-01").tolist() == [False, True, False, False]
    assert (days == pd.Timestamp("9999-12-31")).tolist() == [False, True, False, False]
    assert days.dt.year.tolist()[:3] == [1969, 9999, 1]
    days = connection.query(sql).pandas(dates="arrow")["date32"]
    assert days.dtype == pd.ArrowDtype(pa.date32()) and days[0] == dt.date(1969, 12, 31)
    days = connection.query(sql).pandas(dates="object")["date32"]
    assert days.tolist() == [dt.date(1969, 12, 31), dt.date(9999, 12, 31), dt.date(1, 1, 1), None]
    with pytest.raises(dray.UsageError, match="expected one of datetime64, arrow, object"):
        connection.query(sql).pandas(dates="text")  # type: ignore[arg-type]


def test_rows_of_an_unknown_zone(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    for name, zone in (("mars", "Mars/Olympus"), ("far", "+99:00")):
        table = pa.table({"t": pa.array([0], pa.timestamp("us", zone))})
        with pa.ipc.new_file(folder / f"{name}.arrow", table.schema) as file:
            file.write_table(table)
    server = Server(folder, str(folder))
    try:
        with dray.connect(server.unix) as connection:
            for name in ("mars", "far"):
                with pytest.raises(dray.UsageError, match='column "t" has the time zone'):
                    list(connection.query(f"SELECT t FROM {name}"))
                assert connection.query(f"SELECT t FROM {name}").arrow().num_rows == 1
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.mark.parametrize("table", ["parquet_types", "arrow_types"])
def test_pandas_of_all_types(connection: dray.Connection, table: str) -> None:
    frame = connection.query(f"SELECT * FROM {table}").pandas()
    assert frame.shape[0] == data.ROWS
    assert frame["int64"].tolist()[:2] == [-(2**63), 2**63 - 1]
    assert frame["uint64"].tolist()[1] == 2**64 - 1
    assert frame["decimal_76"].tolist()[0] == D(10**75 + 1)


def test_polars(connection: dray.Connection) -> None:
    frame = connection.query("SELECT * FROM nullable").polars()
    assert frame.columns == ["i", "whole", "b", "f", "d", "t", "s"]
    assert frame["i"].to_list() == [2**53 + 1, None, -1]
    assert frame["d"].to_list() == [D("12345678901234567890.12"), None, D("0.01")]
    assert frame.schema["t"] == pl.Datetime("us")
    viewed = connection.query("SELECT * FROM nullable", strings="view").polars()
    assert viewed.equals(frame)


def test_numpy(connection: dray.Connection) -> None:
    arrays = connection.query("SELECT * FROM nullable").numpy()
    assert {name: array.dtype.str for name, array in arrays.items()} == {
        "i": "<i8", "whole": "<i8", "b": "|b1", "f": "<f8", "d": "|O", "t": "<M8[us]", "s": "|O",
    }  # fmt: skip
    assert not isinstance(arrays["whole"], np.ma.MaskedArray)
    assert arrays["whole"].tolist() == [2**53 + 1, 0, -1]
    assert arrays["i"].tolist() == [2**53 + 1, None, -1]
    assert arrays["d"].tolist() == [D("12345678901234567890.12"), None, D("0.01")]
    with pytest.raises(dray.UsageError, match="same name"):
        connection.query("SELECT * FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y").numpy()


def test_numpy_of_nothing_but_nulls(connection: dray.Connection) -> None:
    for sql in ("SELECT * FROM parquet_types", "SELECT * FROM arrow_types"):
        dtypes = {n: array.dtype for n, array in connection.query(sql).to_numpy().items()}
        arrays = connection.query(f"{sql} WHERE boolean IS NULL").to_numpy()
        del arrays["id"]
        assert len(arrays) > 20
        for name, array in arrays.items():
            assert array.dtype == dtypes[name], name
            assert np.ma.getmaskarray(array).tolist() == [True] and array.tolist() == [None], name


@pytest.mark.parametrize("what", ["{}", "make_array({})"])
def test_numpy_keeps_nanoseconds_or_refuses(connection: dray.Connection, what: str) -> None:
    def read(nanoseconds: int) -> list[Any]:
        time = f"arrow_cast({nanoseconds}, 'Time64(Nanosecond)')"
        arrays = connection.query(f"SELECT {what.format(time)} AS t").to_numpy()
        [value] = arrays["t"].tolist()
        return value if isinstance(value, list) else [value]

    assert read(43_200_000_001_000) == [dt.time(12, 0, 0, 1)]
    with pytest.raises(dray.UsageError, match="has nanoseconds"):
        read(43_200_000_001_001)


def test_numpy_has_the_values_of_rows(connection: dray.Connection) -> None:
    sql = "SELECT * FROM parquet_types ORDER BY id"
    rows = list(connection.query(sql))
    arrays = connection.query(sql).to_numpy()
    for i, (name, array) in enumerate(arrays.items()):
        if array.dtype == object:
            assert array.tolist() == [row[i] for row in rows], name


def test_same_name_twice(connection: dray.Connection) -> None:
    sql = "SELECT * FROM (SELECT i AS a FROM nullable) x, (SELECT 2 AS a) y"
    frame = connection.query(sql).pandas()
    assert list(frame.columns) == ["a", "a"]
    assert [str(dtype) for dtype in frame.dtypes] == ["Int64", "int64"]
    assert connection.query(sql).columns == ["a", "a"]


def test_stats(uri: str) -> None:
    with dray.connect(uri) as connection:
        result = connection.query(NUMBERS, compression="light")
        assert result.stats.rows == 0 and result.stats.server is None
        result.arrow()
        stats = result.stats
    assert stats.rows == data.BIG
    assert stats.chunks > 0 and 0 < stats.wire_bytes < stats.decoded_bytes
    assert stats.compression == "light"
    assert stats.checksums is False
    assert stats.total_seconds >= stats.first_chunk_seconds > 0
    assert stats.server.total_seconds > 0
    assert [(column.name, column.type) for column in stats.columns] == [
        ("id", "Int64"),
        ("text", "Utf8"),
    ]
    assert all(column.encodings for column in stats.columns)


def test_estimate(connection: dray.Connection) -> None:
    with connection.query("SELECT * FROM numbers") as result:
        assert (result.estimate.rows, result.estimate.rows_exact) == (data.BIG, True)
        assert "200000" in repr(result.estimate)


def test_read_once(connection: dray.Connection) -> None:
    result = connection.query("SELECT 1")
    result.arrow()
    for read in (
        result.arrow,
        result.pandas,
        result.rows,
        result.batches,
        result.__arrow_c_stream__,
    ):
        with pytest.raises(dray.UsageError, match=r"already read by to_arrow\(\)"):
            read()


def test_one_result_at_a_time(connection: dray.Connection) -> None:
    first = connection.query(NUMBERS)
    with pytest.raises(dray.UsageError, match="busy.*read that result to its end"):
        connection.query("SELECT 1")
    assert first.arrow().num_rows == data.BIG
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_result_dropped_half_way(connection: dray.Connection) -> None:
    forever = "SELECT * FROM generate_series(1, 1000000000000)"
    batches = connection.query(forever).batches()
    next(batches)
    del batches
    gc.collect()
    assert connection.query("SELECT 1").arrow().num_rows == 1
    rows = connection.query(forever).rows()
    assert next(rows) == (1,)
    del rows
    gc.collect()
    with connection.query(forever):
        pass
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_closed(server: Server) -> None:
    connection = dray.connect(server.unix)
    result = connection.query("SELECT * FROM generate_series(1, 1000000000000)")
    connection.close()
    connection.close()
    assert connection.closed
    with pytest.raises(dray.UsageError, match="result is closed"):
        result.arrow()
    with pytest.raises(dray.UsageError, match="connection is closed"):
        connection.query("SELECT 1")


def test_representations(server: Server, connection: dray.Connection) -> None:
    with dray.connect(server.tcp.replace("dray://", "dray://s3cret@")) as other:
        assert "s3cret" not in repr(other)
        assert repr(other).startswith(f"<dray.Connection to dray://{server.address}: dray")
    assert "closed" in repr(other)
    assert repr(connection.query("SELECT 1")) == "<dray.Result of 1 columns, 0 rows received>"
    assert connection.server.startswith("dray")


def test_optional_packages(server: Server, tmp_path: Path) -> None:
    # A folder with modules that fail to import, ahead of the real ones.
    for name in ("pyarrow", "pandas", "polars", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')")
    script = """
import sys, dray
with dray.connect(sys.argv[1]) as connection:
    print(list(connection.query("SELECT $1, $2", [1, "x"])))
    for how in ("arrow", "batches", "pandas", "polars", "numpy"):
        result = connection.query("SELECT 1")
        try: getattr(result, how)()
        except ImportError as error: print(error)
        print(result.columns, list(result))
"""
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(dray.__file__).parent.parent}"}
    ran = subprocess.run(
        [sys.executable, "-c", script, server.unix],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert ran.stdout.splitlines()[0] == "[(1, 'x')]"
    assert ran.stdout.count("pip install 'dray[") == 5
    assert ran.stdout.count("[(1,)]") == 5


def test_a_package_that_is_too_old(server: Server, tmp_path: Path) -> None:
    (tmp_path / "polars").mkdir()
    (tmp_path / "polars" / "__init__.py").touch()
    script = """
import sys, dray
try: dray.scan(sys.argv[1], "numbers")
except ImportError as error: print(error)
"""
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(dray.__file__).parent.parent}"}
    command = [sys.executable, "-c", script, server.unix]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert said.stdout == "this needs a newer polars: pip install 'dray[polars]'\n"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"compression": "brotli"}, "brotli"),
        ({"strings": "long"}, "utf8, large or view"),
        ({"checksums": "maybe"}, "auto, on or off"),
        ({"chunk_bytes_max": 1}, "4096"),
    ],
)
def test_wrong_options(connection: dray.Connection, options: dict[str, Any], what: str) -> None:
    with pytest.raises(dray.UsageError, match=what):
        connection.query("SELECT 1", **options)
    assert connection.query("SELECT 1").arrow().num_rows == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a, INTERVAL '2 months' AS b",
        "SELECT id AS a, decimal_76 AS b FROM parquet_types WHERE id = 0",
    ],
)
def test_polars_has_no_such_type(server: Server, connection: dray.Connection, sql: str) -> None:
    with connection.query(sql) as result:
        with pytest.raises(dray.UsageError, match="Polars has no type for column 'b'"):
            result.to_polars()
        # Nothing was read yet.
        assert result.to_arrow().num_rows == 1
    with pytest.raises(dray.UsageError, match="Polars has no type for column 'b'"):
        dray.scan(server.unix, sql=sql)
