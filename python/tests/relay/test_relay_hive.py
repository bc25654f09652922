"""Hive itself behind a Dray server. `make test-all` runs this; test_relay_spark.py has more."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from hive_servers import HiveServer
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

pytestmark = pytest.mark.skipif(
    "DRAY_ALL_VERSIONS" not in os.environ, reason="Hive is large: DRAY_ALL_VERSIONS brings it"
)

#: Computes for a minute before its first row.
SLEEP = "SELECT reflect('java.lang.Thread', 'sleep', CAST(60000 AS BIGINT))"


@pytest.fixture(scope="module")
def hive() -> Iterator[HiveServer]:
    server = HiveServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def server(hive: HiveServer) -> Iterator[Relay]:
    with relay(*sources(dwh=hive.uri(), own=hive.uri()), "--source-writable", "own") as server:
        yield server


@pytest.fixture
def connection(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("dwh")) as connection:
        yield connection


INSTANT = pa.timestamp("us")
#: Hive's SQL, the column's type, the value, and what the metadata names.
CASES: list[tuple[str, pa.DataType, object, str]] = [
    ("true", pa.bool_(), True, ""),
    ("-127Y", pa.int8(), -127, ""),
    ("CAST(32767 AS SMALLINT)", pa.int16(), 32767, ""),
    ("-2147483648", pa.int64(), -(2**31), ""),
    ("2147483647", pa.int32(), 2**31 - 1, ""),
    ("9223372036854775807L", pa.int64(), 2**63 - 1, ""),
    ("CAST(0.5 AS FLOAT)", pa.float32(), 0.5, ""),
    ("CAST(0.1 AS DOUBLE)", pa.float64(), 0.1, ""),
    ("'ü'", pa.string(), "ü", ""),
    ("CAST('v' AS VARCHAR(5))", pa.string(), "v", ""),
    ("CAST('c' AS CHAR(4))", pa.string(), "c   ", ""),
    ("unhex('00ff')", pa.binary(), b"\x00\xff", ""),
    ("CAST(-1.5 AS DECIMAL(5, 2))", pa.decimal128(5, 2), Decimal("-1.50"), ""),
    ("CAST(1 AS DECIMAL(38, 37))", pa.decimal128(38, 37), Decimal(1), ""),
    ("DATE '2024-02-29'", pa.date32(), datetime.date(2024, 2, 29), ""),
    ("CAST('0001-01-01' AS DATE)", pa.date32(), datetime.date(1, 1, 1), ""),
    (
        "TIMESTAMP '2024-02-29 12:34:56.789012'",
        INSTANT,
        datetime.datetime(2024, 2, 29, 12, 34, 56, 789012),
        "",
    ),
    ("TIMESTAMP '9999-12-31 23:59:59'", INSTANT, datetime.datetime(9999, 12, 31, 23, 59, 59), ""),
    (
        "CAST('2024-07-01 02:00:00 Europe/Berlin' AS TIMESTAMP WITH LOCAL TIME ZONE)",
        pa.timestamp("us", "UTC"),
        datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone.utc),
        "",
    ),
    ("INTERVAL '1-2' YEAR TO MONTH", pa.string(), "1-2", "interval_year_month"),
    (
        "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        pa.string(),
        "1 02:03:04.500000000",
        "interval_day_time",
    ),
    ("NULL", pa.null(), None, ""),
    ("CAST(NULL AS DECIMAL(3, 1))", pa.decimal128(3, 1), None, ""),
    ("CAST(NULL AS TIMESTAMP)", INSTANT, None, ""),
    ("array(1, 2)", pa.string(), "[1,2]", "array"),
    ("map('k', 1)", pa.string(), '{"k":1}', "map"),
    ("named_struct('x', 1, 'y', 'q')", pa.string(), '{"x":1,"y":"q"}', "struct"),
    ("create_union(0, 1, 'x')", pa.string(), "{0:1}", "uniontype"),
]


def test_types(connection: dray.Connection) -> None:
    columns = ", ".join(f"{sql} AS c{i}" for i, (sql, *_) in enumerate(CASES))
    table = connection.query(f"SELECT {columns}").arrow()
    (row,) = table.to_pylist()
    for i, (sql, data_type, value, named) in enumerate(CASES):
        field = table.schema.field(i)
        assert (field.type, row[f"c{i}"]) == (data_type, value), sql
        assert (field.metadata or {}).get(b"dray:hive:type", b"").decode() == named


def test_nanoseconds(connection: dray.Connection) -> None:
    """Those that microseconds don't hold are an error, and the session stays."""
    with pytest.raises(dray.ExecutionError, match="row 1: 2024.*789 is no timestamp in micro"):
        connection.query("SELECT TIMESTAMP '2024-01-02 03:04:05.123456789'").arrow()
    zeros = "SELECT TIMESTAMP '2024-01-02 03:04:05.123456000'"
    assert one(connection, zeros) == datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)


def test_many_rows(connection: dray.Connection) -> None:
    sql = "SELECT posexplode(split(repeat('abc,', 300000), ','))"
    table = connection.query(sql).arrow()
    assert table.column(0).to_pylist() == list(range(300_001))
    assert table.column(1).to_pylist() == ["abc"] * 300_000 + [""]
    assert connection.query("SELECT 1 AS x WHERE false").arrow().num_rows == 0


def test_errors(connection: dray.Connection) -> None:
    for sql, sqlstate, expected in [
        ("SELECT nope", "42000", "column reference 'nope'"),
        ("SELECT * FROM nowhere", "42S02", "Table not found 'nowhere'"),
        ("SELECT 1 FROM WHERE", "42000", "cannot recognize input"),
    ]:
        with pytest.raises(dray.QueryError) as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == sqlstate
        assert expected in str(caught.value) and "\tat " not in str(caught.value)
    assert one(connection, "SELECT 1") == 1


def test_reading_and_writing(connection: dray.Connection, server: Relay) -> None:
    with dray.connect(server.uri("own")) as own:
        assert own.query("CREATE TABLE t (i INT, d DECIMAL(9, 2))").arrow().num_columns == 0
        table = own.query("SELECT * FROM t").arrow()
        assert (table.num_rows, table.schema.names) == (0, ["t.i", "t.d"])
        assert table.schema.field(1).type == pa.decimal128(9, 2)
    for sql in (
        "WITH x AS (SELECT 1) INSERT INTO t SELECT *, 1 FROM x",
        "FROM t INSERT INTO t SELECT *",
        "DROP TABLE t",
        "SET hive.local.time.zone=Asia/Tokyo",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN REOPTIMIZATION INSERT INTO t SELECT 1",
    ):
        with pytest.raises(dray.QueryError, match="read-only"):
            connection.query(sql).arrow()
    assert list(connection.query("SHOW TABLES").rows()) == [("t",)]
    assert one(connection, "-- a comment\nWITH x AS (SELECT 1 AS a) SELECT a FROM x") == 1


def test_cancelling(hive: HiveServer, server: Relay) -> None:
    """While the server computes and answers nothing: another connection says so."""

    def runs() -> bool:
        assert hive.process is not None
        stacks = subprocess.run(["jstack", str(hive.process.pid)], capture_output=True, check=True)
        return b"GenericUDFReflect" in stacks.stdout

    command = [str(binary()), "query", server.uri("dwh"), SLEEP]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(runs)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=10)
    assert client.returncode == 130
    wait_until(lambda: not runs())
