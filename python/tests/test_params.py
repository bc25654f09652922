"""Parameters of every type come back unchanged."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dray

D = decimal.Decimal
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)


def scalar(connection: dray.Connection, value: Any) -> pa.ChunkedArray:
    return connection.query("SELECT $1 AS v", [value]).arrow().column("v")


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (True, pa.bool_()),
        (False, pa.bool_()),
        (0, pa.int64()),
        (-(2**63), pa.int64()),
        (2**63, pa.uint64()),
        (2**64 - 1, pa.uint64()),
        (0.1, pa.float64()),
        (float("-inf"), pa.float64()),
        ("", pa.string()),
        ("Grüße 🐴\x00", pa.string()),
        (b"", pa.binary()),
        (b"\x00\xff", pa.binary()),
        (D("0.10"), pa.decimal128(2, 2)),
        (D("-12345.678"), pa.decimal128(8, 3)),
        (D(10**38 - 1), pa.decimal128(38, 0)),
        (D("-12345." + "6" * 70), pa.decimal256(75, 70)),
        (dt.date(1, 1, 1), pa.date32()),
        (dt.date(9999, 12, 31), pa.date32()),
        (dt.time(23, 59, 59, 999999), pa.time64("us")),
        (NOON, pa.timestamp("us")),
        (dt.datetime(1, 1, 1), pa.timestamp("us")),
        (dt.datetime.max, pa.timestamp("us")),
        (NOON.replace(tzinfo=dt.timezone.utc), pa.timestamp("us", "UTC")),
        (NOON.replace(tzinfo=ZoneInfo("Europe/Vienna")), pa.timestamp("us", "UTC")),
        (NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3))), pa.timestamp("us", "UTC")),
        (dt.timedelta(days=-1, microseconds=1), pa.duration("us")),
        ([1, 2, None], pa.list_(pa.int64())),
        (["a", "b"], pa.list_(pa.string())),
        ([[1], [2, 3]], pa.list_(pa.list_(pa.int64()))),
        ([[], [1], [None]], pa.list_(pa.list_(pa.int64()))),
        ([D("1.5"), D("22.25"), None, D("-333")], pa.list_(pa.decimal128(5, 2))),
        ([D("1E+3"), D("0." + "1" * 40), 7, 2**63], pa.list_(pa.decimal256(60, 40))),
        ([[D("1.5")], [D("2.25"), 1]], pa.list_(pa.list_(pa.decimal128(21, 2)))),
    ],
)
def test_python_values(connection: dray.Connection, value: Any, data_type: pa.DataType) -> None:
    got = scalar(connection, value)
    assert got.to_pylist() == [value]
    assert got.type == data_type or pa.types.is_list(data_type)
    assert [row for (row,) in connection.query("SELECT $1", (value,))] == [value]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, None),
        (pd.NA, None),
        (pd.NaT, None),
        (2**64, D(2**64)),
        (-(2**200), D(-(2**200))),
        (D("1E+3"), D(1000)),
        (bytearray(b"ab"), b"ab"),
        (uuid.UUID(int=7), uuid.UUID(int=7)),
        ((1, 2), [1, 2]),
        (np.int8(-5), -5),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
        (np.datetime64("2024-02-29T12:00:00", "s"), dt.datetime(2024, 2, 29, 12)),
        (np.datetime64("NaT"), None),
        (np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
        (np.ma.masked, None),
        (np.ma.array(5, mask=True), None),
        (np.ma.array("2024-01-01", "datetime64[D]", mask=True), None),
        (np.ma.array(5, mask=False), 5),
        (np.ma.array([1.5, 2.5], mask=[False, True]), [1.5, None]),
        (np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), [[1, None], [3, 4]]),
        (np.array([1, 2], np.int16), [1, 2]),
        (np.array(["2024-01-01"], "datetime64[D]"), [dt.date(2024, 1, 1)]),
        (pa.scalar(7, pa.int16()), 7),
        (pa.scalar(D("1.5"), pa.decimal128(10, 4)), D("1.5")),
        (pa.array(["a", None]), ["a", None]),
        (pd.Timestamp("2024-02-29 12:00"), dt.datetime(2024, 2, 29, 12)),
    ],
)
def test_other_values(connection: dray.Connection, value: Any, want: Any) -> None:
    assert scalar(connection, value).to_pylist() == [want]


def test_nan(connection: dray.Connection) -> None:
    assert math.isnan(scalar(connection, float("nan")).to_pylist()[0])


def test_nanoseconds(connection: dray.Connection) -> None:
    got = scalar(connection, np.datetime64("2024-01-01T00:00:00.123456789", "ns"))
    assert (got.type, got.cast(pa.int64()).to_pylist()) == (
        pa.timestamp("ns"),
        [1704067200123456789],
    )
    got = scalar(connection, pd.Timestamp("2024-01-01T00:00:00.123456789", tz="Asia/Tokyo"))
    assert (got.type, got.cast(pa.int64()).to_pylist()) == (
        pa.timestamp("ns", "UTC"),
        [1704034800123456789],
    )


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (10**80, "76 digits"),
        (D("1e80"), "76 digits"),
        (D("NaN"), "finite"),
        (D("Infinity"), "finite"),
        (object(), "builtins.object|a object"),
        ({"a": 1}, "dict"),
        (dt.time(1, tzinfo=dt.timezone.utc), "zone"),
        (dt.timedelta.max, "64 bits"),
        ([1, "a"], "different types"),
        ([D("1"), 1.5], "different types"),
        ([D("1e70"), D("1e-70")], "different types"),
        (np.timedelta64(5, "ns"), "lose digits"),
        (np.longdouble(1), "lose digits"),
        (np.datetime64("2024-01", "M"), "datetime64"),
        (pd.Timedelta(1, "ns"), "nanoseconds"),
    ],
)
def test_what_is_refused(connection: dray.Connection, value: Any, what: str) -> None:
    with pytest.raises(dray.UsageError, match=what) as caught:
        connection.query("SELECT $1", [value])
    assert "$1" in str(caught.value)
    assert connection.query("SELECT 1").arrow().num_rows == 1


@pytest.mark.parametrize("params", ["text", b"bytes", {"a": 1}, {1, 2}])
def test_params_are_a_sequence(connection: dray.Connection, params: Any) -> None:
    with pytest.raises(dray.UsageError, match="expected a list or tuple"):
        connection.query("SELECT $1", params)


def test_params_in_a_statement(connection: dray.Connection) -> None:
    sql = "SELECT id, text FROM numbers WHERE id BETWEEN $1 AND $2 AND text <> $3 ORDER BY id"
    assert list(connection.query(sql, [10, 12, "row 11"])) == [(10, "row 10"), (12, "row 12")]
    sql = "SELECT whole FROM nullable WHERE d = $1"
    assert list(connection.query(sql, [D("12345678901234567890.12")])) == [(2**53 + 1,)]
    with pytest.raises(dray.QueryError):
        connection.query("SELECT $1 + $2", [1])
    with pytest.raises(dray.QueryError):
        connection.query("SELECT $1")


@pytest.mark.parametrize(
    ("sql", "params"), [("SELECT 1", [1]), ("SELECT $1", [1, 2]), ("SELECT $1 -- $2", [1, None])]
)
def test_surplus_values_are_refused(
    connection: dray.Connection, sql: str, params: list[Any]
) -> None:
    with pytest.raises(dray.QueryError, match=f"{len(params)} values were given") as caught:
        connection.query(sql, params)
    assert caught.value.sqlstate == "07001"
    # An unused parameter before a used one can't be detected.
    assert list(connection.query("SELECT $2", [1, "b"])) == [("b",)]
