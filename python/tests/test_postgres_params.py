"""PostgreSQL as a source: values for the parameters of a statement."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from postgres_client import Client
from postgres_server import PostgresServer

import dray

D = Decimal


NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)


UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("value", "pg_type", "data_type"),
    [
        (True, "boolean", pa.bool_()),
        (False, "boolean", pa.bool_()),
        (0, "integer", pa.int32()),
        (-(2**31), "integer", pa.int32()),
        (-(2**63), "bigint", pa.int64()),
        (0.1, "double precision", pa.float64()),
        (float("-inf"), "double precision", pa.float64()),
        (5e-324, "double precision", pa.float64()),
        (b"", "bytea", pa.binary()),
        (bytes(range(256)), "bytea", pa.binary()),
        (dt.date(1, 1, 1), "date", pa.date32()),
        (dt.date(9999, 12, 31), "date", pa.date32()),
        (dt.time(23, 59, 59, 999999), "time without time zone", pa.time64("us")),
        (NOON, "timestamp without time zone", pa.timestamp("us")),
        (dt.datetime(1, 1, 1), "timestamp without time zone", pa.timestamp("us")),
        (dt.datetime.max, "timestamp without time zone", pa.timestamp("us")),
        (NOON.replace(tzinfo=UTC), "timestamp with time zone", pa.timestamp("us", "UTC")),
        (
            NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3))),
            "timestamp with time zone",
            pa.timestamp("us", "UTC"),
        ),
        (uuid.UUID(int=2**127 + 7), "uuid", pa.uuid()),
        ([1, 2, None], "integer[]", pa.list_(pa.int32())),
        ([1, 70_000, 2**40], "bigint[]", pa.list_(pa.int64())),
        ([True, None], "boolean[]", pa.list_(pa.bool_())),
        ([0.5, float("inf")], "double precision[]", pa.list_(pa.float64())),
        ([dt.date(2024, 2, 29)], "date[]", pa.list_(pa.date32())),
        ([NOON, None], "timestamp without time zone[]", pa.list_(pa.timestamp("us"))),
        ([b"", b'\x00\\"'], "bytea[]", pa.list_(pa.binary())),
        ([uuid.UUID(int=7)], "uuid[]", pa.list_(pa.uuid())),
    ],
)
def test_values_come_back(client: Client, value: Any, pg_type: str, data_type: pa.DataType) -> None:
    got = client.query("SELECT $1 AS v, pg_typeof($1)::text AS t", [value]).arrow()
    assert got.column("t").to_pylist() == [pg_type]
    assert got.column("v").type == data_type
    assert client.list("SELECT $1 AS v", (value,)) == [(value,)]


@pytest.mark.parametrize(
    ("data_type", "number"),
    [
        *(
            (pa.date32(), days)
            for days in (
                -2_440_588,
                -735_160,
                -719_163,
                -719_162,
                2_932_896,
                2_932_897,
                2_145_042_905,
            )
        ),
        (pa.date64(), -2_440_588 * 86_400_000),
        *(
            (pa.timestamp("us"), us)
            for us in (
                -210_866_803_200_000_000,
                -62_135_596_800_000_001,
                253_402_300_800_000_000,
                2**63 - 1,
            )
        ),
        *(
            (pa.timestamp("us", "Europe/Amsterdam"), us)
            for us in (-210_866_803_200_000_000, 253_402_300_800_000_001, 2**63 - 1)
        ),
        (pa.timestamp("s"), -62_135_596_801),
        (pa.timestamp("ms", "UTC"), 253_402_300_800_001),
        (pa.timestamp("ns"), -(2**63) + 808),
    ],
)
def test_years_that_python_does_not_have(
    client: Client, data_type: pa.DataType, number: int
) -> None:
    value = pa.scalar(number, pa.int32() if data_type == pa.date32() else pa.int64()).cast(
        data_type
    )
    got = client.query(
        "SELECT $1 AS v, $2 AS vs", [value, pa.array([value, None], data_type)]
    ).arrow()
    days = data_type in (pa.date32(), pa.date64())
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(data_type, "unit", "s")]
    want = (
        (number if data_type == pa.date32() else number // 86_400_000)
        if days
        else number * 10**6 // per_second
    )
    assert [
        cell.cast(pa.int32() if days else pa.int64()).as_py()
        for cell in (got["v"][0], got["vs"][0][0])
    ] == [want] * 2


@pytest.mark.parametrize(
    ("value", "sql", "want"),
    [
        (None, "$1::integer", None),
        (pd.NA, "$1::integer", None),
        (float("nan"), "$1::text", "NaN"),
        (2**63, "$1::text", "9223372036854775808"),
        (2**64 - 1, "$1", "18446744073709551615"),
        (10**60, "$1::text", "1" + "0" * 60),
        (D("0.10"), "$1", "0.10"),
        (D("-12345." + "6" * 70), "$1", "-12345." + "6" * 70),
        (D("1.50"), "$1::numeric(5,2)", D("1.50")),
        ("", "$1", ""),
        ("Grüße 🐴 ' \" \\ {a}", "$1", "Grüße 🐴 ' \" \\ {a}"),
        ("5", "$1::integer", 5),
        ("2024-02-29", "$1::date", dt.date(2024, 2, 29)),
        ("{1,2}", "$1::integer[]", [1, 2]),
        ('{"a": 1}', "($1::jsonb)->>'a'", "1"),
        (dt.timedelta(days=-1, microseconds=1), "$1", dray.Interval(0, 0, -86_399_999_999_000)),
        (dt.timedelta(seconds=90), "extract(epoch FROM $1)::integer", 90),
        (dt.timedelta(days=1), "$1", dray.Interval(0, 1, 0)),
        (dt.timedelta(days=-1, hours=-1), "$1", dray.Interval(0, -1, -3_600_000_000_000)),
        (dt.timedelta(hours=-1), "$1", dray.Interval(0, 0, -3_600_000_000_000)),
        (dt.timedelta(hours=20, microseconds=5), "$1 = interval '20:00:00.000005'", True),
        (
            pa.scalar(pa.MonthDayNano([-14, 3, 5_025_000_001_000])),
            "$1 = interval '-14 months 3 days 01:23:45.000001'",
            True,
        ),
        ([D("1.5"), D("22.25"), None], "$1::text", "{1.50,22.25,NULL}"),
        (["a", 'b"\\{},', None, ""], "$1::text[]", ["a", 'b"\\{},', None, ""]),
        ([], "$1::integer[]", []),
        ([None], "$1::integer[]", [None]),
        ([D("1.5"), None], "$1", ["1.5", None]),
        (np.int8(-5), "$1", -5),
        (np.float32(0.1), "$1", float(np.float32(0.1))),
        (np.datetime64("2024-02-29"), "$1", dt.date(2024, 2, 29)),
        (np.array([1, 2], np.int16), "$1", [1, 2]),
        (pa.scalar(7, pa.int16()), "$1", 7),
        (pa.array(["a", None]), "$1::text[]", ["a", None]),
        (pd.Timestamp("2024-02-29 12:00"), "$1", dt.datetime(2024, 2, 29, 12)),
    ],
)
def test_values_that_become_others(client: Client, value: Any, sql: str, want: Any) -> None:
    assert client.list(f"SELECT {sql}", [value]) == [(want,)]


@pytest.mark.parametrize(
    ("sql", "params"), [("SELECT 1", [1]), ("SELECT $1::int -- $2", [1, 2]), ("SELECT '$1'", ["a"])]
)
def test_surplus_values_are_refused(client: Client, sql: str, params: list[Any]) -> None:
    with pytest.raises(dray.QueryError, match=f"{len(params)} values were given") as caught:
        client.list(sql, params)
    assert caught.value.sqlstate == "07001"
    assert client.list("SELECT $1::int", [1]) == [(1,)]


@pytest.mark.parametrize(
    "value",
    [
        True, 7, -(2**31), 2**40, 2**64 - 1, 10**60, 0.1, float("nan"), -math.inf, D("0.10"),
        D("1E+20"), D("-1." + "6" * 70),
        "", "5", "it's \\ \"E'\\x", "x" * 20_000_000, None, b"", bytes(range(256)),
        dt.date(2024, 2, 29), NOON,
        NOON.replace(tzinfo=UTC), dt.time(23, 59, 59, 999999),
        dt.timedelta(days=-1, microseconds=1), uuid.UUID(int=7),
        [], [None], [1, 2**40, None], [0.5], ["a", 'b"\\{},\'', None, ""], [D("1.5"), None],
        [b"\x00\\"], [dt.date(1, 1, 1)],
        [NOON], [NOON.replace(tzinfo=UTC)], [dt.timedelta(1)], [uuid.UUID(int=7)], [True, None],
    ],
    ids=lambda value: f"{type(value).__name__}-{repr(value)[:30]}",
)  # fmt: skip
def test_either_way_is_the_same(filled: PostgresServer, value: Any) -> None:
    sqls = [
        "SELECT $1::text AS v",
        "SELECT $1::integer[] AS v",
        "SELECT $1 AS v",
        "SELECT id FROM numbers WHERE text = $1",
    ]
    for sql in [
        *sqls,
        "SELECT id FROM numbers WHERE id = $1",
        "SELECT $1 + 1 AS v, pg_typeof($1)::text AS t",
        "SELECT $1 IS NULL",
    ]:
        outcomes: list[Any] = []
        for extension in (False, True):
            try:
                outcomes.append(dray.read(filled.uri(), sql, [value], extension=extension))
            except dray.Error as error:
                outcomes.append((type(error), error.sqlstate, error.message))
        rows, extended = outcomes
        if isinstance(rows, pa.Table):
            # Only the extension knows the constraint; rows don't carry it.
            fields = [field.with_nullable(True) for field in extended.schema]
            extended = extended.cast(pa.schema(fields, extended.schema.metadata))
        assert str(rows) == str(extended) if value != value else rows == extended, sql


def test_parameters_are_not_in_the_statement(client: Client, filled: PostgresServer) -> None:
    secret = str(uuid.uuid4())
    seen = client.list(
        "SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid() AND $1 <> ''", [secret]
    )
    assert len(seen) == 1 and secret not in seen[0][0]


def test_many_parameters(client: Client) -> None:
    sql = "SELECT $1 + $65535"
    assert client.list(sql, [*range(65_535)]) == [(65_534,)]
    with pytest.raises(
        dray.QueryError,
        match="65536 values were given, and the highest parameter of the statement is",
    ):
        client.query(sql, [*range(65_536)])
    client.check_usable()


def test_parameters_in_statements(client: Client) -> None:
    sql = "SELECT id, text FROM numbers WHERE id BETWEEN $1 AND $2 AND text <> $3 ORDER BY id"
    assert client.list(sql, [10, 12, "row 11"]) == [(10, "row 10"), (12, "row 12")]
    assert client.list(
        "SELECT id FROM numbers WHERE id = ANY($1) ORDER BY id", [[3, 5, 700_000]]
    ) == [(3,), (5,)]
    assert client.list("SELECT id FROM numbers WHERE amount = $1", [D("0.07")]) == [(7,)]
    assert client.list("SELECT $2, $1", [1, 2.5]) == [(2.5, 1)]


@pytest.mark.parametrize(
    ("sql", "params", "kind", "what"),
    [
        (
            "SELECT $1 + $2",
            [1],
            dray.UsageError,
            "the statement has 2 parameters, 1 values were given",
        ),
        ("SELECT $1", None, dray.UsageError, "the statement has 1 parameters, 0 values were given"),
        (
            "SELECT 1",
            ["x"],
            dray.QueryError,
            "1 values were given, and the statement has no parameter",
        ),
        (
            "SELECT $1 IS NULL",
            [None],
            dray.QueryError,
            r"could not determine data type of parameter \$1",
        ),
        ("SELECT $1,\n  missing", [1], dray.QueryError, "missing.*at line 2, column 3"),
        ("SELECT $1::date", ["x"], dray.ExecutionError, "invalid input syntax"),
        ("SELECT $1", ["a\0b"], dray.ExecutionError, "invalid byte sequence"),
        ("SELECT $1", [[[1], [2]]], dray.UsageError, r"\$1.*can't be sent"),
        ("SELECT $1", [pa.scalar(1, pa.timestamp("ns"))], dray.UsageError, "nanoseconds"),
        ("SELECT $1", [object()], dray.UsageError, r"\$1"),
        ("SELECT $1 + 'x'", [1], dray.ExecutionError, "invalid input syntax"),
        ("SELECT * FROM numbers WHERE id = $1", ["x"], dray.ExecutionError, "invalid input syntax"),
        ("SELECT $1 FROM nowhere", [1], dray.QueryError, "nowhere"),
    ],
)
def test_parameters_that_are_refused(
    client: Client, sql: str, params: Any, kind: type[dray.Error], what: str
) -> None:
    with pytest.raises(kind, match=what):
        client.query(sql, params).arrow()
    client.check_usable()
