"""The tables that the server serves. pyarrow reads the same files for the expected values."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

D = decimal.Decimal
ROWS = 4
BIG = 200_000


def _array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    return pa.array([*values, None], data_type)


def _integers(width: int, signed: bool) -> list[int]:
    return [-(2 ** (width - 1)), 2 ** (width - 1) - 1, 0] if signed else [0, 2**width - 1, 1]


def parquet_types() -> pa.Table:
    """A column for each type that Parquet can store; the last row is NULL."""
    columns: dict[str, pa.Array] = {"id": pa.array(range(ROWS), pa.int32())}
    columns["boolean"] = _array([True, False, True], pa.bool_())
    for width in (8, 16, 32, 64):
        columns[f"int{width}"] = _array(_integers(width, True), getattr(pa, f"int{width}")())
        columns[f"uint{width}"] = _array(_integers(width, False), getattr(pa, f"uint{width}")())
    for name, data_type in [
        ("float16", pa.float16()),
        ("float32", pa.float32()),
        ("float64", pa.float64()),
    ]:
        columns[name] = _array([0.5, -0.0, float("inf")], data_type)
    columns["decimal_9"] = _array([D("1234567.89"), D("-0.01"), D(0)], pa.decimal128(9, 2))
    columns["decimal_38"] = _array(
        [D("9" * 28 + "." + "9" * 10), D("-" + "9" * 28 + ".1"), D(0)], pa.decimal128(38, 10)
    )
    columns["decimal_76"] = _array([D(10**75 + 1), D(-(10**75) - 1), D(0)], pa.decimal256(76, 0))
    columns["date32"] = _array(
        [dt.date(1969, 12, 31), dt.date(9999, 12, 31), dt.date(1, 1, 1)], pa.date32()
    )
    columns["time32_ms"] = _array(
        [dt.time(23, 59, 59, 999000), dt.time(0), dt.time(1, 2, 3)], pa.time32("ms")
    )
    columns["time64_us"] = _array(
        [dt.time(23, 59, 59, 999999), dt.time(0), dt.time(1, 2, 3, 4)], pa.time64("us")
    )
    columns["time64_ns"] = _array([1_000, 86_399_999_999_000, 0], pa.time64("ns"))
    moments = [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
        dt.datetime(2024, 2, 29, 12),
        dt.datetime(1970, 1, 1),
    ]
    for unit in ("ms", "us", "ns"):
        columns[f"timestamp_{unit}"] = _array(moments, pa.timestamp(unit))
    for name, zone in [("utc", "UTC"), ("vienna", "Europe/Vienna"), ("offset", "+05:30")]:
        aware = [moment.replace(tzinfo=dt.timezone.utc) for moment in moments]
        columns[f"timestamp_{name}"] = _array(aware, pa.timestamp("us", zone))
    columns["string"] = _array(["", "Grüße 🐴", "x" * 300], pa.string())
    columns["large_string"] = _array(["a", "", "b"], pa.large_string())
    columns["binary"] = _array([b"", b"\x00\xff", b"x" * 300], pa.binary())
    columns["fixed"] = _array([b"12345", b"\x00" * 5, b"\xff" * 5], pa.binary(5))
    columns["dictionary"] = pa.array(["red", "blue", "red", None]).dictionary_encode()
    columns["list"] = _array([[1, None, 3], [], [4]], pa.list_(pa.int32()))
    columns["large_list"] = _array([["a"], [], ["b", None]], pa.large_list(pa.string()))
    struct = pa.struct([("a", pa.int64()), ("b", pa.string())])
    columns["struct"] = _array(
        [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 2, "b": ""}], struct
    )
    columns["map"] = _array(
        [[("k", 1), ("l", None)], [], [("m", 2)]], pa.map_(pa.string(), pa.int32())
    )
    deep = [[{"a": 1, "b": "x"}, None], [], [{"a": None, "b": "y"}]]
    columns["list_of_struct"] = _array(deep, pa.list_(struct))
    columns["missing"] = pa.nulls(ROWS, pa.int64())
    return pa.table(columns)


def arrow_types() -> pa.Table:
    """The same columns, and types that only Arrow files can store."""
    table = parquet_types()
    columns: dict[str, pa.Array] = {
        "null": pa.nulls(ROWS),
        "decimal32": _array([D("12345.67"), D("-0.01"), D(0)], pa.decimal32(7, 2)),
        "decimal64": _array([D("123456789012.3456"), D("-0.0001"), D(0)], pa.decimal64(16, 4)),
        "date64": _array(
            [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1970, 1, 1)], pa.date64()
        ),
        "time32_s": _array([dt.time(23, 59, 59), dt.time(0), dt.time(1, 2, 3)], pa.time32("s")),
        "timestamp_s": _array(
            [dt.datetime(1969, 12, 31), dt.datetime(2024, 2, 29), dt.datetime(1970, 1, 1)],
            pa.timestamp("s"),
        ),
        "interval": _array([(1, 2, 3), (-1, -2, -3), (0, 0, 0)], pa.month_day_nano_interval()),
        "string_view": _array(["", "short", "longer than twelve bytes"], pa.string_view()),
        "binary_view": _array([b"", b"short", b"longer than twelve bytes"], pa.binary_view()),
        "large_binary": _array([b"a", b"", b"b"], pa.large_binary()),
        "fixed_list": _array([[1, 2], [None, 4], [5, 6]], pa.list_(pa.int16(), 2)),
        "uuid": _array(
            [uuid.UUID(int=1).bytes, uuid.UUID(int=2**128 - 1).bytes, uuid.UUID(int=0).bytes],
            pa.uuid(),
        ),
        "dictionary_int": pa.array([7, 8, 7, None], pa.int64()).dictionary_encode(),
    }
    for unit in ("s", "ms", "us", "ns"):
        columns[f"duration_{unit}"] = _array([0, -1_000_000, 86_400_000_000], pa.duration(unit))
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def write(folder: Path) -> None:
    """Write all files into a folder; each becomes a table of that name."""
    parquet = pyarrow.parquet.write_table
    parquet(parquet_types(), folder / "parquet_types.parquet")
    with pa.ipc.new_file(folder / "arrow_types.arrow", arrow_types().schema) as file:
        file.write_table(arrow_types())
    parquet(parquet_types().slice(0, 0), folder / "empty.parquet")
    numbers = pa.table(
        {"id": pa.array(range(BIG)), "text": pa.array([f"row {i}" for i in range(BIG)])}
    )
    parquet(numbers, folder / "numbers.parquet", row_group_size=20_000)
    parquet(
        pa.table({"id": [0, 1, 2], "text": ["small", "x" * 100_000, "small"]}),
        folder / "large_rows.parquet",
    )
    parquet(
        pa.table({f"c{i}": pa.array([i, None], pa.int32()) for i in range(10_000)}),
        folder / "wide.parquet",
    )
    pyarrow.csv.write_csv(pa.table({"a": [1, 2, None], "b": ["x", "", "z"]}), folder / "comma.csv")
    (folder / "lines.json").write_text(
        '{"a": 1, "b": {"c": [1, 2]}}\n{"a": null, "b": {"c": []}}\n'
    )
    nullable = {
        "i": pa.array([2**53 + 1, None, -1], pa.int64()),
        "whole": pa.array([2**53 + 1, 0, -1], pa.int64()),
        "b": [True, None, False],
        "f": [0.5, None, 1.5],
        "d": pa.array([D("12345678901234567890.12"), None, D("0.01")], pa.decimal128(38, 2)),
        "t": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1970, 1, 1)], pa.timestamp("us")),
        "s": ["x", None, ""],
    }
    parquet(pa.table(nullable), folder / "nullable.parquet")
