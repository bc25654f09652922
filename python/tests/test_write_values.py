"""Values and types that are written into PostgreSQL, and those that do not fit."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from write_target import TABLE, Target

import dray


# What does not fit.

DECIMALS = pa.array([decimal.Decimal("1.25"), decimal.Decimal("999.99")], pa.decimal128(5, 2))
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
DAY = dt.datetime(2024, 2, 29, 12, 30, 1, 123456)

VALUES: list[tuple[str, pa.Array, str]] = [
    ("smallint", pa.array([1, 40000]), "column \"v\", row 2: 40000 can't be written as smallint"),
    ("integer", pa.array([None, 2**31], pa.int64()), "row 2: 2147483648 .*integer.*out of range"),
    ("bigint", pa.array([2**63], pa.uint64()), "row 1: 9223372036854775808 .*bigint"),
    ("oid", pa.array([-1]), "row 1: -1 .*oid"),
    ("real", pa.array([0.5, 0.1]), "row 2: 0.1 .*real.*rounded"),
    ("real", pa.array([2**24, 2**24 + 1]), "row 2: 16777217 .*real.*rounded"),
    ("double precision", pa.array([2**53 + 1]), "9007199254740993 .*rounded"),
    ("numeric(4,1)", DECIMALS, "row 1: 1.25 .*numeric\\(4,1\\).*more digits"),
    ("numeric(4,2)", DECIMALS, "row 2: 999.99 .*numeric\\(4,2\\)"),
    ("numeric(2,0)", pa.array([99, 100]), "row 2: 100 .*numeric\\(2,0\\)"),
    ("numeric", pa.array(["1.5", "1e5"]), 'row 2: "1e5" .*decimal digits'),
    ("integer", DECIMALS, "row 1: 1.25 .*whole"),
    ("varchar(3)", pa.array(["äöü", "abcd"]), 'row 2: "abcd" .*character varying\\(3\\)'),
    ("char(3)", pa.array(["abcd"]), 'row 1: "abcd" .*character\\(3\\)'),
    ('"char"', pa.array(["ab"]), "more than one byte"),
    ("uuid", pa.array(["0123"]), 'row 1: "0123" .*UUID'),
    ("bit(3)", pa.array(["12"]), "0 and 1"),
    ("timetz", pa.array(["12:00"]), "time with a zone"),
    ("date", pa.array([2**31 - 1], pa.date32()), "row 1: .*date.*out of range"),
    ("date", pa.array([1], pa.date64()).view(pa.int64()).view(pa.date64()), "time of day|date"),
    ("timestamp", pa.array([1001], pa.timestamp("ns")), "row 1: .*nanoseconds"),
    ("timestamp", pa.array([-(2**63)], NAIVE), "out of range"),
    ("timestamptz(3)", pa.array([DAY], ZONED), "row 1: .*more digits after the second"),
    ("time", pa.array([86_400_000_000], pa.time64("us")), "out of range"),
    ("time(0)", pa.array([1], pa.time64("us")), "more digits after the second"),
    ("interval", pa.array([1], pa.duration("ns")), "nanoseconds"),
    ("jsonb", pa.array([[float("nan")]]), "neither NaN"),
]  # fmt: skip

MISMATCHES: list[tuple[str, pa.Array]] = [
    ("integer", pa.array(["1"])),
    ("integer", pa.array([1.0])),
    ("numeric", pa.array([1.0])),
    ("text", pa.array([1])),
    ("boolean", pa.array([1])),
    ("date", pa.array(["2024-01-01"])),
    ("date", pa.array([DAY], NAIVE)),
    ("timestamp", pa.array([DAY], ZONED)),
    ("timestamptz", pa.array([DAY], NAIVE)),
    ("integer[]", pa.array([1])),
    ("integer[]", pa.array([[["x"]]])),
    ("text", pa.array([b"x"])),
    ("int4range", pa.array([{"lower": 1}])),
    ("interval year to month", pa.array([1], pa.duration("s"))),
]

SERVER: list[tuple[str, pa.Array, str, str]] = [
    ("text", pa.array(["a", "b\0c"]), "0x00, at row 2, column \"v\"", "22021"),
    ("integer NOT NULL", pa.array([1, None], pa.int32()), "null value in column \"v\".*at row 2",
     "23502"),
    ("integer CHECK (v < 5)", pa.array([1, 9]), "check constraint.*at row 2", "23514"),
    ("integer UNIQUE", pa.array([7, 8, 7]), "duplicate key.*at row 3", "23505"),
    ("jsonb", pa.array(["{}", "{"]), "json.*at row 2, column \"v\"", "22P02"),
    ("inet", pa.array(["::1", "x"]), "inet: \"x\", at row 2, column \"v\"", "22P02"),
    ("bit(3)", pa.array(["1"]), "at row 1", "22026"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "match"), VALUES)
def test_values_that_do_not_fit(target: Target, kind: str, values: pa.Array, match: str) -> None:
    target.oracle.execute(f"CREATE TABLE w.t (v {kind})")
    error = target.fails(pa.table({"v": values}), match, mode="append")
    assert isinstance(error, dray.ExecutionError) and error.sqlstate == "22003"
    assert 'column "v", row' in str(error)
    assert target.rows() == []


def test_row_numbers_count_all_batches(target: Target) -> None:
    target.oracle.execute("CREATE TABLE w.t (v smallint)")
    batches = [pa.record_batch({"v": [1] * 5000})] * 4 + [pa.record_batch({"v": [1, 2, 70000]})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    target.fails(reader, "row 20003: 70000", mode="append")
    target.oracle.execute("ALTER TABLE w.t ADD CHECK (v < 100)")
    batches[-1] = pa.record_batch({"v": [1, 2, 101]})
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    target.fails(reader, "at row 20003", mode="append")
    assert target.rows() == []


@pytest.mark.parametrize(("kind", "values"), MISMATCHES)
def test_types_that_do_not_match(target: Target, kind: str, values: pa.Array) -> None:
    target.oracle.execute(f"CREATE TABLE w.t (v {kind})")
    match = 'column "v": .*can\'t be written as'
    error = target.fails(pa.table({"v": values}), match, mode="append")
    assert isinstance(error, dray.QueryError) and error.sqlstate == "42804" and error.hint


@pytest.mark.parametrize(("kind", "values", "match", "sqlstate"), SERVER)
def test_errors_of_the_server(
    target: Target, kind: str, values: pa.Array, match: str, sqlstate: str
) -> None:
    target.oracle.execute(f"CREATE TABLE w.t (v {kind})")
    error = target.fails(pa.table({"v": values}), match, mode="append")
    assert error.sqlstate == sqlstate
    assert target.rows() == []


def test_bad_input(target: Target) -> None:
    columns = {f"c{i}": [i] for i in range(10_000)}
    assert target.fails(pa.table(columns), "at most 1600 columns").sqlstate == "54011"
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    target.fails(twice, 'two columns named "a"')
    target.fails(pa.table({}), "no columns")
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    target.fails(pa.table({"v": union}), 'column "v": .*no type for Arrow')
    target.fails(TABLE, 'types names "x"', types={"x": "integer"})
    target.fails(TABLE, "creates no table", types={"id": "bigint"}, mode="append")
    for name in ("integr", "int); DROP TABLE t", "", "integer NOT NULL"):
        target.fails(TABLE, "the server has no type", types={"id": name})
    named = pa.schema([pa.field("v", pa.string(), metadata={"dray:postgresql:type": "no.type"})])
    target.fails(pa.table({"v": ["x"]}, named), "no type")


def test_wide_tables(target: Target) -> None:
    table = pa.table({f"c{i}": pa.array([i, None], pa.int16()) for i in range(1600)})
    target.write(table)
    assert target.rows() == [tuple(range(1600)), (None,) * 1600]


# Arrow's own types.


def test_types_of_new_tables(target: Target) -> None:
    point = pa.array([{"x": 1, "y": [None, "a"]}])
    columns: dict[str, tuple[pa.Array, str, Any]] = {
        "null": (pa.nulls(1), "text", None),
        "int8": (pa.array([-5], pa.int8()), "smallint", -5),
        "uint8": (pa.array([255], pa.uint8()), "smallint", 255),
        "uint16": (pa.array([65535], pa.uint16()), "integer", 65535),
        "uint32": (pa.array([2**32 - 1], pa.uint32()), "bigint", 2**32 - 1),
        "uint64": (pa.array([2**64 - 1], pa.uint64()), "numeric(20,0)", decimal.Decimal(2**64 - 1)),
        "half": (pa.array([1.5], pa.float32()).cast(pa.float16()), "real", 1.5),
        "decimal": (DECIMALS[1:], "numeric(5,2)", decimal.Decimal("999.99")),
        "negative": (
            pa.array([decimal.Decimal(1200)], pa.decimal128(5, -2)), "numeric(7,0)",
            decimal.Decimal(1200),
        ),
        "wide": (
            pa.array([decimal.Decimal("1." + "1" * 50)], pa.decimal256(60, 50)),
            "numeric(60,50)", decimal.Decimal("1." + "1" * 50),
        ),
        "large": (pa.array(["ä"], pa.large_string()), "text", "ä"),
        "view": (pa.array(["a view that is not inline"], pa.string_view()), "text",
                 "a view that is not inline"),
        "binary": (pa.array([b"\0\xff"], pa.large_binary()), "bytea", b"\0\xff"),
        "fixed": (pa.array([b"abc"], pa.binary(3)), "bytea", b"abc"),
        "dictionary": (pa.array(["x"]).dictionary_encode(), "text", "x"),
        "encoded": (pa.RunEndEncodedArray.from_arrays([1], ["r"]), "text", "r"),
        "date64": (pa.array([dt.date(1600, 2, 29)], pa.date64()), "date", dt.date(1600, 2, 29)),
        "time32": (pa.array([dt.time(1, 2, 3)], pa.time32("s")), "time without time zone",
                   dt.time(1, 2, 3)),
        "stamp": (pa.array([DAY], pa.timestamp("ns")), "timestamp without time zone", DAY),
        "duration": (pa.array([1500], pa.duration("ms")), "interval",
                     dt.timedelta(seconds=1.5)),
        "list": (pa.array([[1, None]]), "bigint[]", [1, None]),
        "fixed_list": (pa.array([["a", "b"]], pa.list_(pa.string(), 2)), "text[]", ["a", "b"]),
        "list_view": (pa.array([[1]], pa.list_view(pa.int32())), "integer[]", [1]),
        "codes": (pa.array([["x", None]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
                  "text[]", ["x", None]),
        "struct": (point, "jsonb", {"x": 1, "y": [None, "a"]}),
        "nested": (pa.array([[[1, 2], []]]), "jsonb", [[1, 2], []]),
        "map": (pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string())), "jsonb", {"1": "a"}),
    }  # fmt: skip
    table = pa.table({name: array for name, (array, _, _) in columns.items()})
    target.write(table)
    found = target.oracle.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 'w.t'::regclass AND attnum > 0"
    ).fetchall()
    assert dict(found) == {name: kind for name, (_, kind, _) in columns.items()}
    (row,) = target.rows()
    assert dict(zip(columns, row)) == {name: value for name, (_, _, value) in columns.items()}


def test_json(target: Target) -> None:
    values = [
        {"s": '"\\ \n\x01ü🐴', "f": 0.1, "d": decimal.Decimal("12345678901234567890.10"),
         "t": dt.datetime(2024, 2, 29, 1, 2, 3, 4), "b": True, "y": b"\x01\xff",
         "l": [{"a": None}]},
        None,
    ]  # fmt: skip
    kind = pa.struct(
        [("s", pa.string()), ("f", pa.float64()), ("d", pa.decimal128(25, 2)), ("t", NAIVE),
         ("b", pa.bool_()), ("y", pa.binary()), ("l", pa.list_(pa.struct([("a", pa.int8())])))]
    )  # fmt: skip
    target.write(pa.table({"v": pa.array(values, kind)}), types={"v": "json"})
    (text,), (missing,) = target.rows(columns="v::text")
    assert missing is None
    assert json.loads(text) == {
        "s": '"\\ \n\x01ü🐴', "f": 0.1, "d": 12345678901234567890.10,
        "t": "2024-02-29T01:02:03.000004", "b": True, "y": "\\x01ff", "l": [{"a": None}],
    }  # fmt: skip
    assert "12345678901234567890.10," in text


def test_keys_that_come_twice(target: Target) -> None:
    pairs = pa.array([[("a", 1), ("b", 2)], [("c", 1), ("c", 2)]], pa.map_(pa.string(), pa.int8()))
    target.fails(pa.table({"v": pairs}), 'column "v", row 2: .*a key twice')
    structs = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    target.fails(pa.table({"v": structs}), "rename the structs' fields")


def test_types_as_asked(target: Target) -> None:
    target.oracle.execute("CREATE TYPE w.point2 AS (x integer, y text)")
    table = pa.table(
        {
            "p": [{"y": "a", "x": 1}, None],
            "ps": [[{"y": "b", "x": 2}, None], []],
            "n": [1, 2],
            "t": ["a", "b"],
            "j": ['{"a": 1}', "[]"],
        }
    )
    types = {"p": "w.point2", "ps": "w.point2[]", "n": "numeric(10,2)", "t": "varchar(5)",
             "j": "jsonb"}  # fmt: skip
    target.write(table, types=types)
    columns = "p::text, ps::text, n::text, t, pg_typeof(j)::text"
    assert target.rows(columns=columns) == [
        ("(1,a)", '{"(2,b)",NULL}', "1.00", "a", "jsonb"),
        (None, "{}", "2.00", "b", "jsonb"),
    ]


def test_numbers_digit_for_digit(target: Target) -> None:
    decimals = [decimal.Decimal(text) for text in ("0", "-0.01", "12345678901234567.89", "100")]
    table = pa.table(
        {
            "d": pa.array(decimals, pa.decimal128(38, 2)),
            "s": ["NaN", "-Infinity", "123456789012345678901234567890.123456789", "0.00"],
            "f": pa.array([float("nan"), float("-inf"), -0.0, 5e-324]),
        }
    )
    target.write(table, types={"s": "numeric"} if target.server.version >= 14 else None)
    want = [str(number) for number in table["d"].to_pylist()]
    assert [row[0] for row in target.rows(columns="d::text")] == want
    assert [row[0] for row in target.rows(columns="s::text")] == table["s"].to_pylist()
    assert [row[0] for row in target.rows(columns="f::text")] == ["NaN", "-Infinity", "-0",
                                                                  "5e-324"]  # fmt: skip
