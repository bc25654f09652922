"""PostgreSQL as a source: ways to read, and statements."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from postgres_client import BIG, NUMBERS, Client
from postgres_server import PostgresServer

import dray

D = Decimal


# Ways to read a result.


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
    assert (
        client.query(NUMBERS, strings="view").polars()["text"].to_list()
        == table.column("text").to_pylist()
    )
    assert client.query(NUMBERS).numpy()["id"].tolist() == list(range(BIG))
    assert pa.table(client.query(NUMBERS)).equals(table)
    read = dray.read(client.uri, NUMBERS, extension="auto" if client.extension else False)
    assert read.equals(table)


@pytest.mark.parametrize(
    ("strings", "of"),
    [("utf8", pa.string()), ("large", pa.large_string()), ("view", pa.string_view())],
)
def test_string_layouts(client: Client, strings: Any, of: pa.DataType) -> None:
    got = client.query(
        "SELECT 'x', NULL::text, ARRAY['longer than twelve bytes']", strings=strings
    ).arrow()
    got.validate(full=True)
    assert got.schema.types[:2] == [of, of] and got.schema.types[2].value_type == of
    assert list(got.to_pylist()[0].values()) == ["x", None, ["longer than twelve bytes"]]


def test_few_rows_come_as_rows(client: Client) -> None:
    """A statement with a small result avoids the extension the next time, and uses it again once
    the result has grown.
    """
    paths = []
    for count in (5, 5, 1000, 1000, 5, 5):
        result = client.query("SELECT * FROM generate_series(1, $1)", [count])
        assert [row for (row,) in result] == list(range(1, count + 1))
        paths.append(result.stats.path)
    by_extension = ["extension", "rows", "rows", "extension", "extension", "rows"]
    assert paths == (by_extension if client.extension else ["rows"] * 6)
    if client.extension:
        assert "few rows" in result.stats.path_reason
        with client.connection.query(
            "SELECT * FROM generate_series(1, $1)", [5], extension=True
        ) as forced:
            assert forced.rows() and forced.stats.path == "extension"


def test_stats(client: Client) -> None:
    result = client.query(NUMBERS)
    result.arrow()
    stats = result.stats
    assert stats.path == ("extension" if client.extension else "rows")
    assert stats.path_reason and "\n" not in stats.path_reason
    assert stats.rows == BIG
    assert stats.wire_bytes > 0 and stats.decoded_bytes > 0
    assert stats.total_seconds >= stats.first_chunk_seconds > 0
    columns = stats.columns
    assert [column.name for column in columns] == ["id", "text", "amount"]
    assert sum(column.decoded_bytes for column in columns) == stats.decoded_bytes
    if not client.extension:
        assert columns[0]["decoded_bytes"] >= 4 * BIG and columns[0]["wire_bytes"] is None
        result = client.query("SELECT 'x'::bytea, '(1,2)'::point FROM generate_series(1, 3)")
        result.arrow()
        assert [column.encodings for column in result.stats.columns] == [("binary",), ("text",)]
    result = client.query("SELECT $1::integer", [1])
    assert list(result) == [(1,)]
    assert result.stats.path == ("extension" if client.extension else "rows")
    result = client.query("SELECT id FROM numbers WHERE id = $1", [1], partitions=2)
    assert list(result) == [(1,)]
    assert "one connection: the statement has parameters" in result.stats.path_reason


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
        assert list(result) == [(1,)] and result.stats.path == "rows"
        assert "no extension dray" in result.stats.path_reason


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
        # Rows without columns still count.
        assert result.arrow().num_columns == 0 and result.stats.rows == len(want)
    else:
        assert list(result.rows()) == want
    client.check_usable()


@pytest.mark.parametrize(
    "sql",
    [
        "", " ; ", "-- nothing", "SET work_mem = '5MB'", "RESET work_mem",
        "DO $$ BEGIN RAISE NOTICE 'x'; END $$",
        "CREATE TEMPORARY TABLE passing (a integer)", "VACUUM pets", "LISTEN x", "NOTIFY x, 'y'",
        "BEGIN", "COMMIT",
        "PREPARE five AS SELECT 5", "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
        "UPDATE pets SET name = name",
    ],
)  # fmt: skip
def test_statements_without_rows(client: Client, sql: str) -> None:
    got = client.query(sql).arrow()
    assert (got.num_columns, got.num_rows) == (0, 0)
    assert (
        client.list(
            sql if not sql.startswith(("CREATE", "PREPARE", "DECLARE")) else "SET work_mem = '5MB'"
        )
        == []
    )
    client.check_usable()


def test_changes_that_return_rows(client: Client, filled: PostgresServer) -> None:
    client.list("CREATE TEMPORARY TABLE kept (a integer, b text)")
    assert client.list(
        "INSERT INTO kept SELECT i, 'x' FROM generate_series(1, 3) i RETURNING a"
    ) == [(1,), (2,), (3,)]
    assert client.list("UPDATE kept SET b = 'y' WHERE a = 2 RETURNING *") == [(2, "y")]
    assert client.list("DELETE FROM kept WHERE a = 1 RETURNING a") == [(1,)]
    changing = (
        "WITH moved AS (DELETE FROM kept WHERE a = 2 RETURNING a) INSERT INTO kept "
        "SELECT a + 10, 'z' FROM moved RETURNING a"
    )
    assert client.list(changing) == [(12,)]
    merge = "MERGE INTO kept USING (VALUES (3)) v(x) ON a = x WHEN MATCHED THEN UPDATE SET b = 'm'"
    if filled.version >= 17:
        assert client.list(f"{merge} RETURNING a, b") == [(3, "m")]
    else:
        assert client.list(merge) == []
    assert client.list("SELECT * FROM kept ORDER BY a") == [(3, "m"), (12, "z")]


def test_session_state(client: Client) -> None:
    client.list("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert client.list("INSERT INTO pets (id, name) VALUES (100, 'owl') RETURNING name") == [
        ("owl",)
    ]
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
    # All rows have arrived by then, but the result is not complete.
    with pytest.raises(dray.Error, match="duplicate key") as caught:
        client.query("INSERT INTO pets (id, name) VALUES (50, 'cat') RETURNING id").arrow()
    assert caught.value.sqlstate == "23505"
    assert client.list("SELECT count(*) FROM pets") == [(2,)]


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1; SELECT 2", "SET work_mem = '5MB'; SELECT 1", "SELECT 1) TO STDOUT; SELECT (2"],
)
def test_several_statements(client: Client, sql: str) -> None:
    with pytest.raises(dray.QueryError) as caught:
        client.query(sql).arrow()
    assert caught.value.sqlstate == "42601"
    client.check_usable()


@pytest.mark.parametrize(
    "sql",
    ["COPY pets TO STDOUT", "COPY (SELECT 1) TO STDOUT (FORMAT binary)", "COPY pets FROM STDIN"],
)
def test_copy(client: Client, filled: PostgresServer, sql: str) -> None:
    with pytest.raises(dray.UsageError, match="COPY.*run the query itself"):
        client.query(sql).arrow()
    try:
        client.check_usable()
    except dray.UsageError as error:
        # The statement may also end the connection.
        assert "connect again" in str(error)
    assert Client(filled.uri(), client.extension).list("SELECT count(*) FROM pets") == [(2,)]


def test_nothing_is_lost_in_floats(client: Client) -> None:
    sql = "SELECT 'NaN'::float8, '-0'::float8, '-Infinity'::float4"
    (row,) = client.list(sql)
    assert math.isnan(row[0]) and math.copysign(1, row[1]) == -1 and row[2] == -math.inf
