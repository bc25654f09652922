"""PostgreSQL as a source: statements, failures, ends that come early, and the way there."""

from __future__ import annotations

import datetime as dt
import gc
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from postgres_server import PgBouncer, PostgresServer
from server import binary

import dray

D = Decimal
# A set-returning function in FROM would first be written to a tuple store.
FOREVER = "SELECT generate_series(1, 1000000000000) AS i"
SILENT = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) t"
# The planner expects the second one to end at once: with the extension its result begins with its first row.
SLEEP = "SELECT pg_sleep(3600) FROM generate_series(1, 1000000)"
CHEAP_SLEEP = "SELECT pg_sleep(3600)"
BIG = 100_000
DDL = """
CREATE TABLE numbers (id integer NOT NULL, text text, amount numeric(12,2));
INSERT INTO numbers SELECT i, 'row ' || i, i / 100.0 FROM generate_series(0, 99999) i;
CREATE TABLE pets (id serial PRIMARY KEY, name text UNIQUE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO pets (name) VALUES ('cat'), ('dog');
CREATE PROCEDURE add_one(INOUT n integer) LANGUAGE sql AS 'SELECT n + 1';
CREATE FUNCTION noisy(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'n is %', n; RETURN n; END $$;
CREATE ROLE reader LOGIN;
GRANT SELECT (id, text) ON numbers TO reader;
CREATE TABLE rows_of (owner name, n integer);
INSERT INTO rows_of VALUES ('reader', 1), ('other', 2);
ALTER TABLE rows_of ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON rows_of USING (owner = current_user);
GRANT SELECT ON rows_of TO reader;
"""


@pytest.fixture(scope="session")
def filled(postgres: PostgresServer) -> PostgresServer:
    with postgres.connect() as connection:
        if connection.execute("SELECT to_regclass('numbers')").fetchone() == (None,):
            postgres.run(DDL)
    return postgres


class Client:
    """A connection whose statements go one of the two ways where both can be gone."""

    def __init__(self, uri: str, extension: bool) -> None:
        self.uri = uri
        self.extension = extension
        self.connection = dray.connect(uri)

    def query(self, sql: str, params: Any = None, **options: Any) -> dray.Result:
        return self.connection.query(sql, params, extension="auto" if self.extension else False, **options)

    def list(self, sql: str, params: Any = None, **options: Any) -> list[tuple[Any, ...]]:
        return list(self.query(sql, params, **options).rows())

    @property
    def pid(self) -> int:
        return int(self.list("SELECT pg_backend_pid()")[0][0])

    def check_usable(self) -> None:
        assert self.list("SELECT 1, 'x'") == [(1, "x")]
        assert self.list("SELECT $1::integer", [2]) == [(2,)]


@pytest.fixture
def client(filled: PostgresServer, extension: bool) -> Iterator[Client]:
    client = Client(filled.uri(), extension)
    yield client
    client.connection.close()


# Ways to read.


NUMBERS = "SELECT * FROM numbers ORDER BY id"


def test_all_ways_to_read(client: Client) -> None:
    table = client.query(NUMBERS).arrow()
    table.validate(full=True)
    assert table.schema.types == [pa.int32(), pa.string(), pa.decimal128(12, 2)]
    assert table.num_rows == BIG
    assert table.slice(101, 1).to_pylist() == [{"id": 101, "text": "row 101", "amount": D("1.01")}]
    assert table.column("id").to_pylist() == list(range(BIG))
    batches = list(client.query(NUMBERS, batch_rows=10_000).batches())
    assert len(batches) > 1 and pa.Table.from_batches(batches).equals(table.combine_chunks())
    assert client.list(NUMBERS) == list(zip(*(column.to_pylist() for column in table.columns)))
    frame = client.query(NUMBERS).pandas()
    assert frame.shape == (BIG, 3) and frame["amount"].iloc[-1] == D("999.99")
    assert client.query(NUMBERS, strings="view").polars()["text"].to_list() == table.column("text").to_pylist()
    assert client.query(NUMBERS).numpy()["id"].tolist() == list(range(BIG))
    assert pa.table(client.query(NUMBERS)).equals(table)
    read = dray.read(client.uri, NUMBERS, extension="auto" if client.extension else False)
    assert read.equals(table)


@pytest.mark.parametrize(("strings", "of"), [("utf8", pa.string()), ("large", pa.large_string()), ("view", pa.string_view())])
def test_string_layouts(client: Client, strings: Any, of: pa.DataType) -> None:
    got = client.query("SELECT 'x', NULL::text, ARRAY['longer than twelve bytes']", strings=strings).arrow()
    got.validate(full=True)
    assert got.schema.types[:2] == [of, of] and got.schema.types[2].value_type == of
    assert list(got.to_pylist()[0].values()) == ["x", None, ["longer than twelve bytes"]]


def test_stats(client: Client) -> None:
    result = client.query(NUMBERS)
    result.arrow()
    stats = result.stats
    assert stats["path"] == ("extension" if client.extension else "rows")
    assert stats["path_reason"] and "\n" not in stats["path_reason"]
    assert stats["rows"] == BIG
    assert stats["wire_bytes"] > 0 and stats["decoded_bytes"] > 0
    assert stats["total_seconds"] >= stats["first_chunk_seconds"] > 0
    columns = stats["columns"]
    assert [column["name"] for column in columns] == ["id", "text", "amount"]
    assert sum(column["decoded_bytes"] for column in columns) == stats["decoded_bytes"]
    if not client.extension:
        assert columns[0]["decoded_bytes"] >= 4 * BIG and columns[0]["wire_bytes"] is None
        result = client.query("SELECT 'x'::text, '(1,2)'::point FROM generate_series(1, 3)")
        result.arrow()
        assert [column["encodings"] for column in result.stats["columns"]] == [["binary"], ["text"]]
    result = client.query("SELECT $1::integer", [1])
    assert list(result) == [(1,)]
    assert result.stats["path"] == "rows"
    assert not client.extension or "parameters" in result.stats["path_reason"]


def test_the_server(client: Client, filled: PostgresServer) -> None:
    assert client.connection.server.startswith(f"PostgreSQL {filled.version}")
    assert "postgresql://" in repr(client.connection) and not client.connection.closed


def test_over_the_unix_socket(filled: PostgresServer, extension: bool) -> None:
    assert Client(filled.unix, extension).list("SELECT inet_client_addr() IS NULL") == [(True,)]


def test_extension_that_is_not_there(filled: PostgresServer) -> None:
    filled.run("DROP DATABASE IF EXISTS bare", "CREATE DATABASE bare")
    with dray.connect(filled.uri("bare")) as connection:
        with pytest.raises(dray.UsageError, match="no extension dray"):
            connection.query("SELECT 1", extension=True)
        result = connection.query("SELECT 1")
        assert list(result) == [(1,)] and result.stats["path"] == "rows"
        assert "no extension dray" in result.stats["path_reason"]


# Parameters.


NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)
UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("value", "pg_type", "data_type"),
    [
        (True, "boolean", pa.bool_()),
        (False, "boolean", pa.bool_()),
        (0, "smallint", pa.int16()),
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
        (NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3))), "timestamp with time zone", pa.timestamp("us", "UTC")),
        (uuid.UUID(int=2**127 + 7), "uuid", pa.uuid()),
        ([1, 2, None], "smallint[]", pa.list_(pa.int16())),
        ([1, 70_000, 2**40], "bigint[]", pa.list_(pa.int64())),
        ([True, None], "boolean[]", pa.list_(pa.bool_())),
        ([0.5, float("inf")], "double precision[]", pa.list_(pa.float64())),
        ([dt.date(2024, 2, 29)], "date[]", pa.list_(pa.date32())),
        ([NOON, None], "timestamp without time zone[]", pa.list_(pa.timestamp("us"))),
        ([b"", b"\x00\\\""], "bytea[]", pa.list_(pa.binary())),
        ([uuid.UUID(int=7)], "uuid[]", pa.list_(pa.uuid())),
    ],
)
def test_values_come_back(client: Client, value: Any, pg_type: str, data_type: pa.DataType) -> None:
    got = client.query("SELECT $1 AS v, pg_typeof($1)::text AS t", [value]).arrow()
    assert got.column("t").to_pylist() == [pg_type]
    assert got.column("v").type == data_type
    assert client.list("SELECT $1 AS v", (value,)) == [(value,)]


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
    ("data_type", "number"),
    [
        *((pa.date32(), days) for days in (-2_440_588, -735_160, -719_163, -719_162, 2_932_896, 2_932_897, 2_145_042_905)),
        (pa.date64(), -2_440_588 * 86_400_000),
        *((pa.timestamp("us"), us) for us in (-210_866_803_200_000_000, -62_135_596_800_000_001, 253_402_300_800_000_000, 2**63 - 1)),
        *((pa.timestamp("us", "Europe/Amsterdam"), us) for us in (-210_866_803_200_000_000, 253_402_300_800_000_001, 2**63 - 1)),
        (pa.timestamp("s"), -62_135_596_801),
        (pa.timestamp("ms", "UTC"), 253_402_300_800_001),
        (pa.timestamp("ns"), -(2**63) + 808),
    ],
)
def test_years_that_python_does_not_have(client: Client, data_type: pa.DataType, number: int) -> None:
    value = pa.scalar(number, pa.int32() if data_type == pa.date32() else pa.int64()).cast(data_type)
    got = client.query("SELECT $1 AS v, $2 AS vs", [value, pa.array([value, None], data_type)]).arrow()
    days = data_type in (pa.date32(), pa.date64())
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(data_type, "unit", "s")]
    want = (number if data_type == pa.date32() else number // 86_400_000) if days else number * 10**6 // per_second
    assert [cell.cast(pa.int32() if days else pa.int64()).as_py() for cell in (got["v"][0], got["vs"][0][0])] == [want] * 2


def test_parameters_in_statements(client: Client) -> None:
    sql = "SELECT id, text FROM numbers WHERE id BETWEEN $1 AND $2 AND text <> $3 ORDER BY id"
    assert client.list(sql, [10, 12, "row 11"]) == [(10, "row 10"), (12, "row 12")]
    assert client.list("SELECT id FROM numbers WHERE id = ANY($1) ORDER BY id", [[3, 5, 700_000]]) == [(3,), (5,)]
    assert client.list("SELECT id FROM numbers WHERE amount = $1", [D("0.07")]) == [(7,)]
    assert client.list("SELECT $2, $1", [1, 2.5]) == [(2.5, 1)]


@pytest.mark.parametrize(
    ("sql", "params", "kind", "what"),
    [
        ("SELECT $1 + $2", [1], dray.UsageError, "2 parameters, 1 value"),
        ("SELECT $1", None, dray.Error, "1 parameters, 0 values|no parameter"),
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
def test_parameters_that_are_refused(client: Client, sql: str, params: Any, kind: type[dray.Error], what: str) -> None:
    with pytest.raises(kind, match=what):
        client.query(sql, params).arrow()
    client.check_usable()


# Statements.


@pytest.mark.parametrize(
    ("sql", "want"),
    [
        ("SELECT 1 WHERE false", []),
        ("SELECT 1;  -- done", [(1,)]),
        ("/* a */ (SELECT 1) UNION ALL (SELECT 2) ORDER BY 1", [(1,), (2,)]),
        ("WITH x AS (SELECT 1 AS a) SELECT a + 1 FROM x", [(2,)]),
        ("VALUES (1, 'a'), (2, NULL)", [(1, "a"), (2, None)]),
        ("TABLE pets ORDER BY id", [(1, "cat"), (2, "dog")]),
        ("SHOW standard_conforming_strings", [("on",)]),
        ("EXPLAIN (COSTS off) SELECT 1", [("Result",)]),
        ("CALL add_one(4)", [(5,)]),
        ("SELECT generate_series(1, 3)", [(1,), (2,), (3,)]),
        ("SELECT ')' || $$ $1 ' $$ || E'\\'' AS \"a;b\"", [(") $1 ' '",)]),
        ("SELECT noisy(i) FROM generate_series(1, 3) i", [(1,), (2,), (3,)]),
        ("SELECT 1 AS a INTO TEMPORARY copied", []),
        ("INSERT INTO pets (name) SELECT name FROM pets WHERE false", []),
        ("WITH x AS (SELECT 1) DELETE FROM pets WHERE false", []),
        ("SELECT 1 AS a, 2 AS a", [(1, 2)]),
        ("SELECT", [()]),
        ("SELECT FROM generate_series(1, 3)", [(), (), ()]),
    ],
)
def test_statements_with_rows(client: Client, sql: str, want: list[tuple[Any, ...]]) -> None:
    result = client.query(sql)
    if want and not want[0]:
        # Rows without columns are counted.
        assert result.arrow().num_columns == 0 and result.stats["rows"] == len(want)
    else:
        assert list(result.rows()) == want
    client.check_usable()


@pytest.mark.parametrize(
    "sql",
    [
        "", " ; ", "-- nothing", "SET work_mem = '5MB'", "RESET work_mem", "DO $$ BEGIN RAISE NOTICE 'x'; END $$",
        "CREATE TEMPORARY TABLE passing (a integer)", "VACUUM pets", "LISTEN x", "NOTIFY x, 'y'", "BEGIN", "COMMIT",
        "PREPARE five AS SELECT 5", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "UPDATE pets SET name = name",
    ],
)  # fmt: skip
def test_statements_without_rows(client: Client, sql: str) -> None:
    got = client.query(sql).arrow()
    assert (got.num_columns, got.num_rows) == (0, 0)
    assert client.list(sql if not sql.startswith(("CREATE", "PREPARE", "DECLARE")) else "SET work_mem = '5MB'") == []
    client.check_usable()


def test_changes_that_return_rows(client: Client, filled: PostgresServer) -> None:
    client.list("CREATE TEMPORARY TABLE kept (a integer, b text)")
    assert client.list("INSERT INTO kept SELECT i, 'x' FROM generate_series(1, 3) i RETURNING a") == [(1,), (2,), (3,)]
    assert client.list("UPDATE kept SET b = 'y' WHERE a = 2 RETURNING *") == [(2, "y")]
    assert client.list("DELETE FROM kept WHERE a = 1 RETURNING a") == [(1,)]
    changing = "WITH moved AS (DELETE FROM kept WHERE a = 2 RETURNING a) INSERT INTO kept SELECT a + 10, 'z' FROM moved RETURNING a"
    assert client.list(changing) == [(12,)]
    merge = "MERGE INTO kept USING (VALUES (3)) v(x) ON a = x WHEN MATCHED THEN UPDATE SET b = 'm'"
    if filled.version >= 17:
        assert client.list(f"{merge} RETURNING a, b") == [(3, "m")]
    else:
        assert client.list(merge) == []
    assert client.list("SELECT * FROM kept ORDER BY a") == [(3, "m"), (12, "z")]


def test_session_state(client: Client) -> None:
    client.list("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert client.list("INSERT INTO pets (id, name) VALUES (100, 'owl') RETURNING name") == [("owl",)]
    assert client.list("SELECT count(*) FROM pets") == [(3,)]
    with pytest.raises(dray.ExecutionError, match="division"):
        client.list("SELECT 1 / 0")
    with pytest.raises(dray.Error) as caught:
        client.list("SELECT 1")
    assert caught.value.sqlstate == "25P02"
    client.list("ROLLBACK")
    assert client.list("SELECT count(*) FROM pets") == [(2,)]
    client.list("PREPARE add AS SELECT $1::integer + 1")
    assert client.list("EXECUTE add(4)") == [(5,)]
    client.list("BEGIN")
    client.list("DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id")
    assert client.list("FETCH 2 FROM c") == [(0,), (1,)]
    assert client.list("FETCH 1 FROM c") == [(2,)]
    client.list("COMMIT")
    client.list("SET search_path = 'pg_catalog'")
    with pytest.raises(dray.QueryError):
        client.list("SELECT * FROM pets")
    client.list("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    with pytest.raises(dray.Error) as caught:
        client.list("INSERT INTO public.pets (name) VALUES ('x') RETURNING id")
    assert caught.value.sqlstate == "25006"


def test_a_constraint_that_fails_at_the_end(client: Client) -> None:
    # All rows have arrived by then, and the result is not whole nevertheless.
    with pytest.raises(dray.Error, match="duplicate key") as caught:
        client.query("INSERT INTO pets (id, name) VALUES (50, 'cat') RETURNING id").arrow()
    assert caught.value.sqlstate == "23505"
    assert client.list("SELECT count(*) FROM pets") == [(2,)]


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SET work_mem = '5MB'; SELECT 1", "SELECT 1) TO STDOUT; SELECT (2"])
def test_several_statements(client: Client, sql: str) -> None:
    with pytest.raises(dray.QueryError) as caught:
        client.query(sql).arrow()
    assert caught.value.sqlstate == "42601"
    client.check_usable()


@pytest.mark.parametrize("sql", ["COPY pets TO STDOUT", "COPY (SELECT 1) TO STDOUT (FORMAT binary)", "COPY pets FROM STDIN"])
def test_copy(client: Client, filled: PostgresServer, sql: str) -> None:
    with pytest.raises(dray.UsageError, match="COPY.*run the query itself"):
        client.query(sql).arrow()
    try:
        client.check_usable()
    except dray.UsageError as error:
        # It may also end the connection.
        assert "connect again" in str(error)
    assert Client(filled.uri(), client.extension).list("SELECT count(*) FROM pets") == [(2,)]


# Failures.


@pytest.mark.parametrize(
    ("sql", "kind", "sqlstate", "what"),
    [
        ("SELEC 1", dray.QueryError, "42601", "SELEC.*column 1$"),
        ("SELECT * FROM nowhere", dray.QueryError, "42P01", "nowhere.*column 15$"),
        ("SELECT nothing FROM pets", dray.QueryError, "42703", "nothing.*column 8$"),
        ("SELECT 'ü🐴',\n  -- it is\n  nothing FROM pets", dray.QueryError, "42703", "nothing.*line 3, column 3$"),
        ("SELECT 1 / 0", dray.ExecutionError, "22012", "division by zero"),
        ("SELECT 'x'::integer", dray.ExecutionError, "22P02", "invalid input syntax.*column 8$"),
        ("SELECT lower(1)", dray.QueryError, "42883", "lower.*column 8"),
        ("SELECT * FROM pg_authid; ", None, None, ""),
    ],
)
def test_statements_that_fail(client: Client, sql: str, kind: Any, sqlstate: str, what: str) -> None:
    if kind is None:
        assert client.list(sql)
        return
    with pytest.raises(kind, match=what) as caught:
        client.query(sql).arrow()
    error = caught.value
    assert type(error) is kind and error.sqlstate == sqlstate and "\n" not in error.message
    client.check_usable()


def test_a_hint_of_the_server(client: Client) -> None:
    with pytest.raises(dray.QueryError) as caught:
        client.query("SELECT lower(1)").arrow()
    assert caught.value.hint and "explicit type casts" in caught.value.hint


def test_nul_in_a_statement(client: Client) -> None:
    for sql in ("SELECT 'a\0b'", "SELECT $1 -- \0"):
        with pytest.raises(dray.UsageError, match="NUL"):
            client.query(sql).arrow()
    client.check_usable()


@pytest.mark.parametrize("row", [1, 2, 64, 1000, 65_536, 65_537, 99_999])
def test_errors_within_the_scan(client: Client, row: int) -> None:
    failing = f"SELECT id, 1 / (id - {row - 1}) AS q, text FROM numbers WHERE id >= 0"
    with pytest.raises(dray.ExecutionError, match="division by zero") as caught:
        client.query(failing).arrow()
    assert caught.value.sqlstate == "22012"
    client.check_usable()
    late = f"SELECT CASE WHEN id = {row - 1} THEN 'infinity'::date END AS d, text FROM (SELECT * FROM numbers ORDER BY id) t"
    with pytest.raises(dray.ExecutionError, match=f'column "d", row {row}: .*infinity'):
        for batch in client.query(late, batch_rows=1000).batches():
            del batch
    client.check_usable()
    with pytest.raises(dray.Error):
        list(client.query(failing, batch_rows=1000).rows())
    client.check_usable()


def test_a_batch_does_not_follow_an_error(client: Client) -> None:
    batches = client.query("SELECT 1 / (id - 90000), repeat(text, 20) FROM numbers", batch_rows=1000).batches()
    with pytest.raises(dray.ExecutionError):
        list(batches)
    with pytest.raises(dray.UsageError, match="failed before"):
        next(batches)
    client.check_usable()


def test_rows_over_the_limit(client: Client) -> None:
    sql = "SELECT i, repeat('x', CASE WHEN i = 3 THEN 100000 ELSE 5 END) AS t FROM generate_series(1, 5) i"
    with pytest.raises(dray.LimitError, match=r"\d{5}"):
        client.query(sql, chunk_bytes_max=4096, decoded_bytes_max=8192, row_bytes_max=50_000, compression="none").arrow()
    client.check_usable()
    assert client.query(sql).arrow().num_rows == 5


def test_privileges(filled: PostgresServer, extension: bool) -> None:
    client = Client(filled.uri(user="reader"), extension)
    assert client.list("SELECT id, text FROM numbers WHERE id = 7") == [(7, "row 7")]
    for sql in ("SELECT * FROM numbers", "SELECT amount FROM numbers", "SELECT * FROM pg_authid", "SELECT * FROM pets"):
        with pytest.raises(dray.QueryError, match="permission denied") as caught:
            client.query(sql).arrow()
        assert caught.value.sqlstate == "42501"
    assert client.list("SELECT n FROM rows_of") == [(1,)]
    client.list("SET row_security = off")
    with pytest.raises(dray.Error, match="row-level security"):
        client.list("SELECT n FROM rows_of")
    client.check_usable()


# Ends that come early.


@pytest.fixture
def pid_is_idle(client: Client, filled: PostgresServer) -> Callable[[int], None]:
    """Waits until a session does nothing any more."""

    def wait(pid: int) -> None:
        deadline = time.monotonic() + 60
        with filled.connect() as oracle:
            while oracle.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() not in (None, ("idle",)):
                assert time.monotonic() < deadline, "the statement still runs"
                time.sleep(0.02)

    return wait


@pytest.mark.parametrize("sql", [FOREVER, SILENT, SLEEP])
def test_cancel_from_another_thread(client: Client, sql: str, pid_is_idle: Callable[[int], None]) -> None:
    pid = client.pid
    running = threading.Event()
    result = client.query(sql, progress=lambda _: running.set())

    def cancel() -> None:
        running.wait()
        result.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(dray.Cancelled):
        for batch in result.batches():
            del batch
    thread.join()
    pid_is_idle(pid)
    client.check_usable()
    assert client.pid == pid


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_progress_that_raises(client: Client, sql: str) -> None:
    with pytest.raises(ZeroDivisionError):
        client.query(sql, progress=lambda _: 1 / 0).arrow()
    client.check_usable()


def test_results_dropped_half_way(client: Client, pid_is_idle: Callable[[int], None]) -> None:
    pid = client.pid
    batches = client.query(FOREVER).batches()
    next(batches)
    del batches
    gc.collect()
    client.check_usable()
    rows = client.query(FOREVER).rows()
    assert next(rows) == (1,)
    del rows
    gc.collect()
    for sql in (FOREVER, SLEEP):
        with client.query(sql):
            pass
        client.check_usable()
    result = client.query(FOREVER)
    next(result.rows())
    result.close()
    pid_is_idle(pid)
    client.check_usable()
    assert client.pid == pid
    with pytest.raises(dray.UsageError):
        list(result)


def test_cancelled_by_another_session(client: Client, filled: PostgresServer) -> None:
    pid = client.pid
    batches = client.query(FOREVER).batches()
    next(batches)
    filled.run(f"SELECT pg_cancel_backend({pid})")
    with pytest.raises(dray.Error, match="user request") as caught:
        for batch in batches:
            del batch
    assert caught.value.sqlstate == "57014"
    client.check_usable()


@pytest.mark.parametrize("sql", [FOREVER, SILENT, SLEEP, CHEAP_SLEEP])
def test_statement_timeout(client: Client, sql: str) -> None:
    client.list("SET statement_timeout = 300")
    with pytest.raises(dray.ExecutionError, match="statement timeout") as caught:
        for batch in client.query(sql).batches():
            del batch
    assert caught.value.sqlstate == "57014"
    client.check_usable()


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_terminated_within_a_transfer(client: Client, filled: PostgresServer, sql: str) -> None:
    pid = client.pid
    killed: list[int] = []

    def kill(progress: dray.Progress) -> None:
        if not killed:
            killed.append(progress.rows)
            filled.run(f"SELECT pg_terminate_backend({pid})")

    with pytest.raises(dray.ConnectionError) as caught:
        client.query(sql, progress=kill).arrow()
    assert caught.value.sqlstate in ("57P01", None)
    with pytest.raises(dray.UsageError, match="connect again"):
        client.query("SELECT 1")


def test_terminated_between_statements(client: Client, filled: PostgresServer) -> None:
    filled.run(f"SELECT pg_terminate_backend({client.pid}, 10000)")
    with pytest.raises(dray.ConnectionError):
        client.query("SELECT 1").arrow()


def test_server_stopped_within_a_transfer(filled: PostgresServer, extension: bool) -> None:
    server = PostgresServer(filled.installation)
    try:
        if extension:
            server.run("CREATE EXTENSION dray")
        client = Client(server.uri(), extension)
        batches = client.query(FOREVER).batches()
        next(batches)
        server.process.send_signal(signal.SIGQUIT)
        with pytest.raises(dray.ConnectionError):
            for batch in batches:
                del batch
        server.process.wait(60)
        with pytest.raises(dray.ConnectionError, match="is the server running there"):
            dray.connect(server.uri())
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("sql", "how"),
    [
        (FOREVER, "result.arrow()"),
        (FOREVER, "list(result)"),
        (SILENT, "for batch in result.batches(): del batch"),
        (CHEAP_SLEEP, "result.arrow()"),
    ],
)
def test_interrupt(filled: PostgresServer, extension: bool, sql: str, how: str) -> None:
    script = f"""
import sys, pyarrow, dray
with dray.connect(sys.argv[1]) as connection:
    try:
        with connection.query(sys.argv[2], extension={extension}) as result:
            {how}
    except KeyboardInterrupt:
        print("interrupted", connection.query("SELECT 1").arrow().num_rows)
"""
    marked = f"/* {uuid.uuid4()} */ {sql}"
    client = subprocess.Popen(
        [sys.executable, "-c", script, filled.uri(), marked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    filled.wait_for_statement(marked[3:39], 1)
    client.send_signal(signal.SIGINT)
    out, errors = client.communicate(timeout=60)
    assert out == "interrupted 1\n", errors
    filled.wait_for_statement(marked[3:39], 0)


def test_killed_client(filled: PostgresServer, extension: bool) -> None:
    script = f"""
import sys, pyarrow, dray
connection = dray.connect(sys.argv[1])
for batch in connection.query(sys.argv[2], extension={extension}).batches(): print("running", flush=True)
"""
    marked = f"/* {uuid.uuid4()} */ {FOREVER}"
    client = subprocess.Popen([sys.executable, "-c", script, filled.uri(), marked], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "running\n"
    filled.wait_for_statement(marked[3:39], 1)
    client.kill()
    client.communicate(timeout=60)
    filled.wait_for_statement(marked[3:39], 0)


def test_memory_of_a_stream(filled: PostgresServer, extension: bool) -> None:
    # 260 MB of rows.
    sql = "SELECT i, repeat(md5(i::text), 8) FROM (SELECT generate_series(1, 1000000) AS i) t"
    script = f"""
import resource, sys, pyarrow, dray
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
with dray.connect(sys.argv[1]) as connection:
    for batch in connection.query(sys.argv[2].replace("1000000", "1000"), extension={extension}).batches(): del batch
    before, rows, bytes = peak(), 0, 0
    for batch in connection.query(sys.argv[2], extension={extension}).batches():
        rows, bytes = rows + batch.num_rows, bytes + batch.nbytes
        del batch
    print(rows, bytes >> 20, peak() - before)
"""
    ran = subprocess.run([sys.executable, "-c", script, filled.uri(), sql], capture_output=True, text=True, check=True)
    rows, megabytes, growth = map(int, ran.stdout.split())
    assert rows == 1_000_000 and megabytes > 240
    assert growth < 120


# Connections.


WHOLE = "(0.1,0.30000000000000004)"
FLOATS = f"SELECT '{WHOLE}'::point, ARRAY['{WHOLE}'::point]"


def test_digits_of_floats(filled: PostgresServer, extension: bool) -> None:
    filled.run("DROP ROLE IF EXISTS short", "CREATE ROLE short LOGIN", "ALTER ROLE short SET extra_float_digits = -3")
    assert Client(filled.uri(user="short"), extension).list(FLOATS) == [(WHOLE, [WHOLE])]


def test_one_result_at_a_time(client: Client) -> None:
    first = client.query(NUMBERS)
    with pytest.raises(dray.UsageError, match="busy.*read that result to its end"):
        client.query("SELECT 1")
    assert first.arrow().num_rows == BIG
    client.check_usable()
    result = client.query(FOREVER)
    client.connection.close()
    client.connection.close()
    assert client.connection.closed
    with pytest.raises(dray.UsageError, match="closed"):
        result.arrow()
    with pytest.raises(dray.UsageError, match="closed"):
        client.query("SELECT 1")


def test_a_connection_for_each_thread(filled: PostgresServer, extension: bool) -> None:
    tables: list[pa.Table] = []

    def fetch() -> None:
        for _ in range(2):
            tables.append(dray.read(filled.uri(), NUMBERS, extension=extension))

    threads = [threading.Thread(target=fetch) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tables) == 12
    assert all(table.equals(tables[0]) and table.num_rows == BIG for table in tables)


def test_closed_connections_leave_the_server(filled: PostgresServer, extension: bool) -> None:
    name = f"counted {uuid.uuid4()}"
    for _ in range(5):
        with dray.connect(filled.uri(options=f"?application_name={name.replace(' ', '%20')}")) as connection:
            assert list(connection.query("SELECT 1", extension=extension)) == [(1,)]
    deadline = time.monotonic() + 60
    with filled.connect() as oracle:
        while oracle.execute("SELECT FROM pg_stat_activity WHERE application_name = %s", [name]).fetchone() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("uri", "kind", "what"),
    [
        ("postgresql://127.0.0.1:1/x", dray.ConnectionError, "is the server running there"),
        ("postgresql://nobody.invalid/x", dray.ConnectionError, "nobody.invalid"),
        ("host=/nowhere dbname=x", dray.ConnectionError, "/nowhere"),
        ("postgresql://127.0.0.1:{port}/nowhere?user=postgres", dray.ConnectionError, 'database "nowhere" does not exist'),
        ("postgresql://nobody@127.0.0.1:{port}/postgres", dray.AuthenticationError, 'role "nobody" does not exist'),
        ("postgresql://postgres:s3cret@127.0.0.1:{port}/postgres?sslmode=require", dray.Error, "(?i)ssl|tls"),
        ("postgresql://127.0.0.1:{port}/postgres?nonsense=1", dray.UsageError, "nonsense"),
        ("postgresql://127.0.0.1:port/postgres", dray.UsageError, "port"),
        ("postgresql://[::1", dray.UsageError, "IPv6"),
        ("mysql://127.0.0.1/x", dray.UsageError, "not a server's uri"),
    ],
)
def test_connections_that_fail(filled: PostgresServer, uri: str, kind: type[dray.Error], what: str) -> None:
    with pytest.raises(kind, match=what) as caught:
        dray.connect(uri.format(port=filled.port) if "{port}" in uri else uri)
    assert "s3cret" not in str(caught.value) and "\n" not in caught.value.message


def test_a_token_is_of_no_use(filled: PostgresServer) -> None:
    for options in ({"token": "x"}, {"ca": "x.pem"}):
        with pytest.raises(dray.UsageError, match="PostgreSQL takes no token and no ca"):
            dray.connect(filled.uri(), **options)


def test_no_connection_left(filled: PostgresServer) -> None:
    server = PostgresServer(filled.installation, {"max_connections": 4, "superuser_reserved_connections": 0, "max_wal_senders": 0})
    try:
        with pytest.raises(dray.Error, match="too many clients") as caught:
            kept = [dray.connect(server.uri()) for _ in range(5)]
            del kept
        assert caught.value.sqlstate == "53300"
    finally:
        server.stop()


# The pooler.


def test_through_a_pooler(filled: PostgresServer, extension: bool, pgbouncer: PgBouncer) -> None:
    first, second = Client(pgbouncer.uri(), extension), Client(pgbouncer.uri(), extension)
    with psycopg.connect(pgbouncer.uri(), autocommit=True, prepare_threshold=None) as other:
        other.execute("SET datestyle = 'German'")
        for _ in range(3):
            for client in (first, second):
                result = client.query(NUMBERS)
                assert result.arrow().num_rows == BIG
                assert result.stats["path"] == ("extension" if extension else "rows")
                assert client.list("SELECT $1 || 'x'", ["a"]) == [("ax",)]
                assert client.list("SELECT typtype, typname, '2000-01-02'::date::text FROM pg_type WHERE typname = 'bool'") == [
                    ("b", "bool", "2000-01-02")
                ]
                assert client.list("SELECT ROW(1, 'x')::pets, '1.5'::money IS NULL, ARRAY['cat'::name]") == [
                    ({"id": 1, "name": "x"}, False, ["cat"])
                ]
                with pytest.raises(dray.ExecutionError, match="division"):
                    client.list("SELECT 1 / (id - 50000) FROM numbers")
                assert other.execute("SELECT '2000-01-02'::date::text").fetchone() == ("02.01.2000",)


def test_cancel_through_a_pooler(filled: PostgresServer, extension: bool, pgbouncer: PgBouncer) -> None:
    client = Client(pgbouncer.uri(), extension)
    for sql in (FOREVER, SLEEP):
        result = client.query(sql)
        result.cancel()
        with pytest.raises(dray.Cancelled):
            result.arrow()
        client.check_usable()
    with client.query(FOREVER) as result:
        next(result.batches())
    client.check_usable()


def test_digits_of_floats_through_a_pooler(filled: PostgresServer, extension: bool) -> None:
    filled.run("ALTER ROLE postgres IN DATABASE postgres SET extra_float_digits = -3")
    pgbouncer = PgBouncer(filled)
    try:
        client = Client(pgbouncer.uri(), extension)
        for _ in range(2):
            assert client.list(FLOATS) == [(WHOLE, [WHOLE])]
        # Others have the same session.
        assert client.list("SHOW extra_float_digits") == [("-3",)]
    finally:
        pgbouncer.stop()
        filled.run("ALTER ROLE postgres IN DATABASE postgres RESET extra_float_digits")


# The program.


def run(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    ran = subprocess.run(
        [binary(), *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=120, **options
    )
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran


def way(extension: bool) -> list[str]:
    return ["--extension", "always" if extension else "never"]


def test_program_query(filled: PostgresServer, extension: bool) -> None:
    sql = "SELECT id, text, amount, NULL AS nothing FROM numbers WHERE id BETWEEN 5 AND 6 ORDER BY id"
    ran = run("query", filled.uri(), sql, "--format", "csv", *way(extension))
    assert ran.stdout.splitlines() == ["id,text,amount,nothing", "5,row 5,0.05,", "6,row 6,0.06,"]
    ran = run("query", filled.uri(), "-", "--format", "json", *way(extension), input=sql)
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [5, 6]
    params = ["--param", "5", "--param", "text:row 5", "--param", "decimal:0.05", "--param", "date:2000-01-02", "--param", "NULL"]
    sql = "SELECT id, $4 + 1 AS day FROM numbers WHERE id = $1 AND text = $2 AND amount = $3 AND $5::text IS NULL"
    assert run("query", filled.uri(), sql, *params, "--format", "csv").stdout.splitlines() == ["id,day", "5,2000-01-03"]
    assert "row 5" in run("query", filled.uri(), "SELECT text FROM numbers WHERE id = 5", "--format", "table", *way(extension)).stdout


def test_program_options(filled: PostgresServer, extension: bool) -> None:
    def lines(sql: str, *options: str) -> list[str]:
        return run("query", filled.uri(), sql, "--format", "csv", *way(extension), *options).stdout.splitlines()[1:]

    assert lines("SELECT 1.50 AS v") == ["1.50"]
    assert lines("SELECT 1.50 AS v", "--numeric", "float64") == ["1.5"]
    assert lines("SELECT 1.50 AS v", "--numeric", "decimal(9,3)") == ["1.500"]
    sql = "SELECT 'infinity'::date AS v, 'x' AS w"
    assert "nonfinite" in run("query", filled.uri(), sql, *way(extension), code=1).stderr
    assert lines(sql, "--nonfinite", "null") == [",x"]
    assert lines(sql, "--nonfinite", "text") == ["infinity,x"]
    assert "decimal" in run("query", filled.uri(), "SELECT 1", "--numeric", "decimal", code=2).stderr


def test_program_export(filled: PostgresServer, extension: bool, tmp_path: Path) -> None:
    want = dray.read(filled.uri(), NUMBERS)
    run("export", filled.uri(), NUMBERS, "-o", tmp_path / "n.parquet", *way(extension))
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").cast(want.schema).equals(want)
    run("export", filled.uri(), NUMBERS, "-o", tmp_path / "n.arrow", *way(extension))
    with pa.ipc.open_file(tmp_path / "n.arrow") as file:
        assert file.read_all().cast(want.schema).equals(want)
    failing = "SELECT 1 / (id - 90000) FROM numbers"
    run("export", filled.uri(), failing, "-o", tmp_path / "n.parquet", *way(extension), code=1)
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").num_rows == BIG
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.arrow", "n.parquet"]


def test_program_explain(filled: PostgresServer, extension: bool) -> None:
    ran = run("explain", filled.uri(), NUMBERS, "--format", "json", *way(extension))
    explained = json.loads(ran.stdout)
    assert explained["path"] == ("extension" if extension else "rows") and explained["path_reason"]
    assert "extension" in run("explain", filled.uri(), NUMBERS, *way(extension)).stdout
    planned = run("explain", filled.uri(), NUMBERS, "--plan", *way(extension)).stdout
    assert "amount" in planned
    with filled.connect() as oracle:
        before = oracle.execute("SELECT count(*) FROM pets").fetchone()
        run("explain", filled.uri(), "INSERT INTO pets (name) VALUES ('planned') RETURNING id", "--plan")
        assert oracle.execute("SELECT count(*) FROM pets").fetchone() == before


def test_program_that_fails(filled: PostgresServer, extension: bool) -> None:
    assert "nowhere" in run("query", filled.uri(), "SELECT * FROM nowhere", *way(extension), code=1).stderr
    assert "2 parameters" in run("query", filled.uri(), "SELECT $1 + $2", "--param", "1", code=2).stderr
    assert "127.0.0.1" in run("query", "postgresql://127.0.0.1:1/x", "SELECT 1", code=3).stderr
    assert "role" in run("query", filled.uri(user="nobody"), "SELECT 1", code=3).stderr
    filled.run("DROP DATABASE IF EXISTS bare_too", "CREATE DATABASE bare_too")
    ran = run("query", filled.uri("bare_too"), "SELECT 1", "--extension", "always", code=2)
    assert "no extension dray" in ran.stderr


def test_program_interrupted(filled: PostgresServer, extension: bool) -> None:
    marked = f"/* {uuid.uuid4()} */ {CHEAP_SLEEP}"
    client = subprocess.Popen(
        [binary(), "query", filled.uri(), marked, *way(extension)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    filled.wait_for_statement(marked[3:39], 1)
    client.send_signal(signal.SIGINT)
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 130, errors
    filled.wait_for_statement(marked[3:39], 0)


def test_nothing_is_lost_in_floats(client: Client) -> None:
    sql = "SELECT 'NaN'::float8, '-0'::float8, '-Infinity'::float4"
    (row,) = client.list(sql)
    assert math.isnan(row[0]) and math.copysign(1, row[1]) == -1 and row[2] == -math.inf
