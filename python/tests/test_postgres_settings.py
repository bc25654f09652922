"""Statements that change settings on which the reading of results depends."""

from __future__ import annotations

from typing import Any

import psycopg
import psycopg2
import pyarrow
import pytest
from postgres_client import Client
from postgres_server import PostgresServer

import dray

TEXT = "Ã©"


@pytest.mark.parametrize(
    ("set_it", "reset", "name"),
    [
        ("SET client_encoding TO 'LATIN1'", "RESET client_encoding", "client_encoding"),
        ("SET NAMES 'WIN1252'", "SET NAMES 'UTF8'", "client_encoding"),
        ("SET DateStyle TO 'German'", "SET DateStyle TO ISO", "DateStyle"),
    ],
)
def test_settings_that_statements_change(
    client: Client, set_it: str, reset: str, name: str
) -> None:
    client.list(set_it)
    for sql in (
        f"SELECT '{TEXT}'",
        "SELECT daterange('2024-02-01', NULL)::text",
        "SELECT '{TEXT}' FROM numbers",
    ):
        with pytest.raises(dray.UsageError, match=f"{name} was set to"):
            client.list(sql)
    client.list(reset)
    assert client.list(f"SELECT '{TEXT}'") == [(TEXT,)]
    # Changed within a transaction, and restored at its end.
    client.list("BEGIN")
    client.list(set_it.replace("SET", "SET LOCAL"))
    with pytest.raises(dray.UsageError, match=name):
        client.list("SELECT 1")
    client.list("ROLLBACK")
    assert client.list(f"SELECT '{TEXT}'") == [(TEXT,)]


def test_settings_that_change_while_rows_come(client: Client) -> None:
    client.list(
        "CREATE FUNCTION pg_temp.latin1() RETURNS text AS $$ "
        "SELECT set_config('client_encoding', 'LATIN1', false) $$ LANGUAGE sql"
    )
    with pytest.raises(
        dray.UsageError, match="client_encoding was, by this statement or while it ran, set to"
    ):
        client.list(f"SELECT pg_temp.latin1(), '{TEXT}'")
    client.list("SET client_encoding TO 'UTF8'")
    for local in ("true", "false"):
        with pytest.raises(dray.UsageError, match="can't set client_encoding"):
            client.list(f"SELECT set_config('client_encoding', 'LATIN1', {local}), '{TEXT}'")
    assert client.list("SELECT current_setting('client_encoding'), 'é'") == [("UTF8", "é")]


def test_backslashes_that_begin_to_escape(client: Client) -> None:
    client.list("SET standard_conforming_strings = off")
    client.list("SET backslash_quote = on")
    assert client.list(r"SELECT 'a\'b' AS v") == [("a'b",)]
    client.list("SET standard_conforming_strings = on")
    assert client.list(r"SELECT 'a\' AS v") == [("a\\",)]


def test_intervals_of_mixed_signs(client: Client) -> None:
    months = pyarrow.scalar(pyarrow.MonthDayNano([-1, 2, 3_000_000_000]))
    for style in ("postgres", "sql_standard", "iso_8601", "postgres_verbose"):
        client.list(f"SET IntervalStyle = {style}")
        got = client.query("SELECT $1 AS v", [months]).arrow()["v"][0].as_py()
        assert (got.months, got.days, got.nanoseconds) == (-1, 2, 3_000_000_000), style


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
@pytest.mark.parametrize(
    ("name", "value", "right"),
    [("client_encoding", "LATIN1", "UTF8"), ("DateStyle", "German, DMY", "ISO")],
)
def test_a_drivers_settings(
    postgres: PostgresServer, extension: bool, driver: Any, name: str, value: str, right: str
) -> None:
    connection = driver.connect(postgres.uri())
    try:
        # The driver's own notion of the encoding is not updated; the server's setting counts.
        for sql in (
            f"SELECT set_config('{name}', '{value}', false), '{TEXT}' AS v",
            f"SELECT '{TEXT}' AS v",
        ):
            with pytest.raises(dray.UsageError, match=name):
                dray.read(connection, sql, extension=extension)
        connection.cursor().execute(f"SET {name} TO '{right}'")
        assert dray.read(connection, f"SELECT '{TEXT}' AS v", extension=extension)[
            "v"
        ].to_pylist() == [TEXT]
    finally:
        connection.close()


def test_a_change_has_run_whether_or_not_its_result_is_read(client: Client) -> None:
    client.query("CREATE TEMP TABLE slowly AS SELECT 1 AS a FROM pg_sleep(0.3)").close()
    assert client.list("SELECT a FROM slowly") == [(1,)]
    with pytest.raises(dray.QueryError, match="already exists"):
        client.query("CREATE TEMP TABLE slowly (a int)")
    assert client.list("SELECT a FROM slowly") == [(1,)]
