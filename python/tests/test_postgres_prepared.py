"""Statements that run again are prepared at the server, with the same results."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from postgres_client import Client
from postgres_server import PgBouncer, PostgresServer

import dray

# The first run describes the statement, the second prepares it, later ones use that.
RUNS = 5
PET = "SELECT id, name FROM pets WHERE name = $1"
PREPARED = "SELECT statement FROM pg_prepared_statements WHERE name LIKE 'dray\\_%' ORDER BY 1"


def again(client: Client) -> None:
    for _ in range(RUNS):
        assert client.list(PET, ["cat"]) == [(1, "cat")]


def prepared(client: Client) -> list[str]:
    return [statement for (statement,) in client.list(PREPARED) if statement not in (PREPARED, PET)]


def test_parameters_are_those_of_each_run(client: Client) -> None:
    for name, rows in (("cat", [(1, "cat")]), ("dog", [(2, "dog")]), ("cow", []), (None, [])) * 2:
        assert client.list(PET, [name]) == rows
    assert (PET,) in client.list(PREPARED)
    # Other types make it another statement.
    assert client.list("SELECT $1", ["1"]) == [("1",)] and client.list("SELECT $1", [1]) == [(1,)]


def test_an_error_leaves_it_as_it_was(client: Client) -> None:
    for divisor in (1, 1, 1, 0, 1, 0, 0, 1, 1, 1):
        if divisor:
            assert client.list("SELECT 4 / $1::integer", [divisor]) == [(4,)]
        else:
            with pytest.raises(dray.ExecutionError, match="division"):
                client.list("SELECT 4 / $1::integer", [divisor])
    again(client)


def test_no_more_than_so_many(client: Client) -> None:
    for i in range(150):
        for _ in range(3):
            assert client.list(f"SELECT {i}") == [(i,)]
    kept = prepared(client)
    assert 30 <= len(kept) <= 64 and "SELECT 149" in kept


@pytest.mark.parametrize(
    "sql",
    [
        "DEALLOCATE ALL",
        "DISCARD ALL",
        "SELECT forget()",
        "DO 'BEGIN EXECUTE $q$DEALLOCATE ALL$q$; END'",
    ],
)
def test_they_may_be_gone(client: Client, filled: PostgresServer, sql: str) -> None:
    filled.run(
        "CREATE OR REPLACE FUNCTION forget() RETURNS void LANGUAGE plpgsql "
        "AS 'BEGIN EXECUTE $q$DEALLOCATE ALL$q$; END'"
    )
    again(client)
    client.list(sql)
    again(client)


def test_columns_that_change(client: Client, filled: PostgresServer) -> None:
    filled.run(
        "CREATE TABLE IF NOT EXISTS changing (a integer); TRUNCATE changing; "
        "INSERT INTO changing VALUES (1)"
    )
    select = "SELECT * FROM changing"
    for _ in range(RUNS):
        assert client.list(select) == [(1,)]
    filled.run("ALTER TABLE changing ADD COLUMN b text DEFAULT 'new'")
    for _ in range(RUNS):
        assert client.list(select) == [(1, "new")]
    client.list("BEGIN")
    filled.run("ALTER TABLE changing ALTER a TYPE bigint, DROP COLUMN b")
    with pytest.raises(dray.Error) as caught:
        client.list(select)
    assert caught.value.sqlstate == "0A000"
    client.list("ROLLBACK")
    result = client.query(select)
    assert result.schema.types[0].bit_width == 64 and list(result) == [(1,)]
    filled.run("DROP TABLE changing")
    with pytest.raises(dray.QueryError, match="does not exist"):
        client.list(select)


@pytest.fixture
def changing(filled: PostgresServer) -> Iterator[str]:
    """A statement that reads all columns of a table of its own."""
    filled.run("CREATE TABLE columns (a integer)", "INSERT INTO columns VALUES (1)")
    yield "SELECT * FROM columns"
    filled.run("DROP TABLE columns")


@pytest.mark.parametrize("runs", range(1, RUNS))
def test_columns_that_change_between_runs(
    client: Client, filled: PostgresServer, changing: str, runs: int
) -> None:
    for _ in range(runs):
        assert client.list(changing) == [(1,)]
    filled.run("ALTER TABLE columns ADD b text DEFAULT 'new'")
    for _ in range(runs):
        assert client.list(changing) == [(1, "new")]
    # As many columns, and of a size that the old ones can't have.
    filled.run(f"ALTER TABLE columns ALTER a TYPE bigint USING {1 << 40}")
    for _ in range(runs):
        assert client.list(changing) == [(1 << 40, "new")]


def test_columns_that_changed_before_a_transaction(
    client: Client, filled: PostgresServer, changing: str
) -> None:
    # The first run through the extension is not remembered.
    for _ in range(2 if client.extension else 1):
        assert client.list(changing) == [(1,)]
    filled.run("ALTER TABLE columns ADD b text DEFAULT 'new'")
    client.list("BEGIN")
    for _ in range(RUNS):
        assert client.list(changing) == [(1, "new")]
    client.list("COMMIT")


@pytest.mark.parametrize("runs", range(1, RUNS))
@pytest.mark.parametrize("end", ["ROLLBACK", "ABORT AND CHAIN", "ROLLBACK TO s"])
def test_columns_that_change_back(client: Client, changing: str, end: str, runs: int) -> None:
    client.list("BEGIN")
    client.list("SAVEPOINT s")
    client.list("ALTER TABLE columns ADD b text DEFAULT 'new'")
    for _ in range(runs):
        assert client.list(changing) == [(1, "new")]
    client.list(end)
    for _ in range(runs):
        assert client.list(changing) == [(1,)]
    client.list("ROLLBACK")


@pytest.mark.parametrize(
    "literal", ["'now'", r"E'n\x6fw'", r"U&'n\006fw'", "'no'\n'w'", "$$ now $$"]
)
def test_the_present_is_that_of_each_run(client: Client, literal: str) -> None:
    sql = f"SELECT {literal}::timestamptz::text"
    assert len({client.list(sql)[0] for _ in range(RUNS)}) == RUNS


@pytest.mark.parametrize(
    "end", ["COMMIT", "END", "ROLLBACK", "ABORT", "COMMIT AND CHAIN", "ROLLBACK TO s"]
)
@pytest.mark.parametrize(
    ("setting", "sql"),
    [
        (
            "TimeZone TO 'Asia/Tokyo'",
            "SELECT extract(epoch FROM '2024-01-01 00:00'::timestamptz)::integer",
        ),
        ("DateStyle TO 'ISO, DMY'", "SELECT '01/02/2024'::date - '2024-01-01'::date"),
        (
            "IntervalStyle TO sql_standard",
            "SELECT extract(epoch FROM '-1 1:00:00'::interval)::integer",
        ),
    ],
)
def test_settings_of_a_transaction(
    client: Client, filled: PostgresServer, setting: str, sql: str, end: str
) -> None:
    with filled.connect() as other:
        expected = other.execute(sql).fetchall()
    client.list("BEGIN")
    client.list("SAVEPOINT s")
    client.list(f"SET LOCAL {setting}")
    for _ in range(RUNS):
        assert client.list(sql) != expected
    client.list(end)
    for _ in range(RUNS):
        assert client.list(sql) == expected
    client.list("ROLLBACK")


def test_what_a_name_means_now(client: Client, filled: PostgresServer) -> None:
    filled.run(
        "CREATE OR REPLACE FUNCTION shadow() RETURNS void LANGUAGE sql "
        "AS 'CREATE TEMPORARY TABLE pets ()'"
    )
    for _ in range(RUNS):
        assert client.list("SELECT count(*) FROM pets") == [(2,)]
    client.list("CREATE TEMPORARY TABLE pets AS SELECT 1 AS id")
    assert client.list("SELECT count(*) FROM pets") == [(1,)]
    client.list("DROP TABLE pg_temp.pets")
    client.list("BEGIN")
    for _ in range(RUNS):
        assert client.list("SELECT count(*) FROM pets") == [(2,)]
    assert client.list("SELECT shadow()") == [(None,)]
    assert client.list("SELECT count(*) FROM pets") == [(0,)]
    client.list("ROLLBACK")
    for _ in range(RUNS):
        assert client.list("SELECT count(*), sum(n) FROM rows_of") == [(2, 3)]
    client.list("SET ROLE reader")
    for _ in range(RUNS):
        assert client.list("SELECT count(*), sum(n) FROM rows_of") == [(1, 1)]


def test_not_through_a_pooler(
    filled: PostgresServer, extension: bool, pgbouncer: PgBouncer
) -> None:
    client = Client(pgbouncer.uri(), extension)
    again(client)
    with psycopg.connect(pgbouncer.uri(), autocommit=True, prepare_threshold=None) as other:
        assert other.execute(PREPARED).fetchall() == []
