"""Every type, compared with what pyarrow reads from the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import data
import pyarrow as pa
import pyarrow.parquet
import pytest

import dray


def as_rows(value: Any) -> Any:
    """pyarrow's Python values in the form that rows() returns."""
    if type(value).__name__ == "MonthDayNano":
        return dray.Interval(*value)
    if type(value).__name__ == "Timestamp":
        return value.to_pydatetime()
    if type(value).__name__ == "Timedelta":
        return value.to_pytimedelta()
    return value


def expected(files: Path, table: str) -> pa.Table:
    if table == "arrow_types":
        with pa.ipc.open_file(files / "arrow_types.arrow") as file:
            return file.read_all()
    return pyarrow.parquet.read_table(files / f"{table}.parquet")


NAMES = [
    *(("parquet_types", name) for name in data.parquet_types().column_names),
    *(("arrow_types", name) for name in data.arrow_types().column_names),
]


@pytest.mark.parametrize(("table", "column"), NAMES)
def test_values(connection: dray.Connection, files: Path, table: str, column: str) -> None:
    sql = f'SELECT "{column}" FROM {table} ORDER BY id'
    want = expected(files, table).column(column)
    got = connection.query(sql).arrow().column(column)
    got.validate(full=True)
    assert got.to_pylist() == want.to_pylist()
    rows = [value for (value,) in connection.query(sql).rows()]
    assert rows == [as_rows(value) for value in want.to_pylist()]
    assert [type(value) for value in rows] == [type(as_rows(value)) for value in want.to_pylist()]


PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.large_list(pa.string()): pa.list_(pa.string()),
}


def test_types(uri: str, files: Path) -> None:
    got = dray.read(uri, "SELECT * FROM arrow_types")
    for want in expected(files, "arrow_types").schema:
        if pa.types.is_nested(want.type) and want.type not in PLAIN:
            assert got.schema.field(want.name).type.id == want.type.id, want.name
        else:
            assert got.schema.field(want.name).type == PLAIN.get(want.type, want.type), want.name


@pytest.mark.parametrize("table", ["parquet_types", "arrow_types", "numbers", "nullable"])
@pytest.mark.parametrize("compression", ["none", "light", "lz4", "zstd", "zstd:-1"])
def test_compression_changes_no_value(uri: str, files: Path, table: str, compression: str) -> None:
    got = dray.read(uri, f"SELECT * FROM {table}", compression=compression, checksums="on")
    got.validate(full=True)
    # Row groups are read in parallel, in any order.
    want = expected(files, table).to_pylist()
    if table == "numbers":
        got = got.sort_by("id")
    assert got.to_pylist() == want


@pytest.mark.parametrize(
    ("strings", "text", "binary"),
    [
        ("utf8", pa.string(), pa.binary()),
        ("large", pa.large_string(), pa.large_binary()),
        ("view", pa.string_view(), pa.binary_view()),
    ],
)
def test_string_layouts(
    connection: dray.Connection, strings: Any, text: pa.DataType, binary: pa.DataType, files: Path
) -> None:
    sql = "SELECT string, binary, list_of_struct FROM parquet_types"
    result = connection.query(sql, strings=strings)
    assert result.schema.field("string").type == text
    got = result.arrow()
    got.validate(full=True)
    assert got.schema.types[:2] == [text, binary]
    assert got.schema.field("list_of_struct").type.value_type.field("b").type == text
    assert got.to_pylist() == expected(files, "parquet_types").select(got.column_names).to_pylist()
    rows = list(connection.query(sql, strings=strings))
    assert rows == [tuple(row.values()) for row in got.to_pylist()]


def test_no_rows(connection: dray.Connection, files: Path) -> None:
    got = connection.query("SELECT * FROM empty").arrow()
    assert (got.num_rows, got.column_names) == (0, expected(files, "empty").column_names)
    assert list(connection.query("SELECT * FROM empty").rows()) == []
    assert list(connection.query("SELECT * FROM empty").batches()) == []
    assert connection.query("SELECT * FROM empty").pandas().shape == (0, got.num_columns)
    assert connection.query("SELECT id, string FROM empty").polars().shape == (0, 2)
    assert len(connection.query("SELECT id, string FROM empty").numpy()["id"]) == 0


def test_ten_thousand_columns(connection: dray.Connection) -> None:
    got = connection.query("SELECT * FROM wide").arrow()
    assert (got.num_columns, got.num_rows) == (10_000, 2)
    assert got.to_pylist() == [
        {f"c{i}": i for i in range(10_000)},
        {f"c{i}": None for i in range(10_000)},
    ]


def test_csv_and_json(connection: dray.Connection) -> None:
    comma = connection.query("SELECT a, b FROM comma").arrow().to_pylist()
    assert [row["a"] for row in comma] == [1, 2, None]
    lines = connection.query("SELECT * FROM lines").arrow().to_pylist()
    assert lines == [{"a": 1, "b": {"c": [1, 2]}}, {"a": None, "b": {"c": []}}]


def test_nanoseconds_are_not_cut_off(connection: dray.Connection) -> None:
    sql = "SELECT CAST('2024-01-01 00:00:00.123456789' AS TIMESTAMP(9)) AS t"
    with pytest.raises(dray.UsageError, match='"t" has nanoseconds'):
        list(connection.query(sql))
    assert connection.query(sql).arrow().column("t").cast(pa.int64()).to_pylist() == [
        1704067200123456789
    ]
