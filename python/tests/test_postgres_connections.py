"""Connections to PostgreSQL: their failures, poolers, and the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from postgres_client import BIG, CHEAP_SLEEP, FOREVER, NUMBERS, SLEEP, Client
from postgres_server import PgBouncer, PostgresServer
from server import binary

import dray


# Connecting.


WHOLE = "(0.1,0.30000000000000004)"
FLOATS = f"SELECT '{WHOLE}'::point, ARRAY['{WHOLE}'::point]"


def test_digits_of_floats(filled: PostgresServer, extension: bool) -> None:
    filled.run(
        "DROP ROLE IF EXISTS short",
        "CREATE ROLE short LOGIN",
        "ALTER ROLE short SET extra_float_digits = -3",
    )
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
        with dray.connect(
            filled.uri(options=f"?application_name={name.replace(' ', '%20')}")
        ) as connection:
            assert list(connection.query("SELECT 1", extension=extension)) == [(1,)]
    deadline = time.monotonic() + 60
    with filled.connect() as oracle:
        while (
            oracle.execute(
                "SELECT FROM pg_stat_activity WHERE application_name = %s", [name]
            ).fetchone()
            is not None
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("uri", "kind", "what"),
    [
        ("postgresql://127.0.0.1:1/x", dray.ConnectionError, "is the server running there"),
        ("postgresql://nobody.invalid/x", dray.ConnectionError, "nobody.invalid"),
        ("host=/nowhere dbname=x", dray.ConnectionError, "/nowhere"),
        (
            "postgresql://127.0.0.1:{port}/nowhere?user=postgres",
            dray.ConnectionError,
            'database "nowhere" does not exist',
        ),
        (
            "postgresql://nobody@127.0.0.1:{port}/postgres",
            dray.AuthenticationError,
            'role "nobody" does not exist',
        ),
        (
            "postgresql://postgres:s3cret@127.0.0.1:{port}/postgres?sslmode=require",
            dray.Error,
            "(?i)ssl|tls",
        ),
        ("postgresql://127.0.0.1:{port}/postgres?nonsense=1", dray.UsageError, "nonsense"),
        ("postgresql://127.0.0.1:port/postgres", dray.UsageError, "port"),
        ("postgresql://[::1", dray.UsageError, "IPv6"),
        ("oracle://127.0.0.1/x", dray.UsageError, "not a server's uri"),
    ],
)
def test_connections_that_fail(
    filled: PostgresServer, uri: str, kind: type[dray.Error], what: str
) -> None:
    with pytest.raises(kind, match=what) as caught:
        dray.connect(uri.format(port=filled.port) if "{port}" in uri else uri)
    assert "s3cret" not in str(caught.value) and "\n" not in caught.value.message


def test_a_token_is_of_no_use(filled: PostgresServer) -> None:
    for options in ({"token": "x"}, {"ca": "x.pem"}):
        with pytest.raises(dray.UsageError, match="PostgreSQL takes no token and no ca"):
            dray.connect(filled.uri(), **options)


def test_no_connection_left(filled: PostgresServer) -> None:
    server = PostgresServer(
        filled.installation,
        {"max_connections": 4, "superuser_reserved_connections": 0, "max_wal_senders": 0},
    )
    try:
        with pytest.raises(dray.Error, match="too many clients") as caught:
            kept = [dray.connect(server.uri()) for _ in range(5)]
            del kept
        assert caught.value.sqlstate == "53300"
    finally:
        server.stop()


# Through a pooler.


def test_through_a_pooler(filled: PostgresServer, extension: bool, pgbouncer: PgBouncer) -> None:
    first, second = Client(pgbouncer.uri(), extension), Client(pgbouncer.uri(), extension)
    with psycopg.connect(pgbouncer.uri(), autocommit=True, prepare_threshold=None) as other:
        other.execute("SET datestyle = 'German'")
        for _ in range(3):
            for client in (first, second):
                result = client.query(NUMBERS)
                assert result.arrow().num_rows == BIG
                assert result.stats.path == ("extension" if extension else "rows")
                assert client.list("SELECT $1 || 'x'", ["a"]) == [("ax",)]
                assert client.list(
                    "SELECT typtype, typname, '2000-01-02'::date::text FROM pg_type "
                    "WHERE typname = 'bool'"
                ) == [("b", "bool", "2000-01-02")]
                assert client.list(
                    "SELECT ROW(1, 'x')::pets, '1.5'::money IS NULL, ARRAY['cat'::name]"
                ) == [({"id": 1, "name": "x"}, False, ["cat"])]
                with pytest.raises(dray.ExecutionError, match="division"):
                    client.list("SELECT 1 / (id - 50000) FROM numbers")
                assert other.execute("SELECT '2000-01-02'::date::text").fetchone() == (
                    "02.01.2000",
                )


def test_cancel_through_a_pooler(
    filled: PostgresServer, extension: bool, pgbouncer: PgBouncer
) -> None:
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


def test_parts_through_a_pooler(filled: PostgresServer, extension: bool) -> None:
    """The coordinator may have the pooler's last connection. Workers wait for another one less long
    than for a server.
    """
    sql = "SELECT id, text FROM numbers"
    script = """
import sys, dray
with dray.connect(sys.argv[1], timeout=3600) as connection:
    result = connection.query(sys.argv[2], partitions=2, extension=sys.argv[3] == "True")
    print(result.arrow().num_rows, result.stats.path_reason)
    # What was begun for the parts is over.
    print(list(connection.query("CREATE TEMPORARY TABLE t AS SELECT 1; ", extension=False)))
"""
    for pool_size, expected in (
        (1, "one connection: another connection can't be opened"),
        (3, "2 connections, one snapshot"),
    ):
        pgbouncer = PgBouncer(filled, pool_size)
        try:
            arguments = [sys.executable, "-c", script, pgbouncer.uri(), sql, str(extension)]
            ran = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        finally:
            pgbouncer.stop()
        assert (
            ran.stdout.startswith(f"{BIG} ")
            and expected in ran.stdout
            and ran.stdout.endswith("[]\n")
        ), ran
        if pool_size == 1:
            assert "the pooler gave no other connection" in ran.stdout


def test_digits_of_floats_through_a_pooler(filled: PostgresServer, extension: bool) -> None:
    filled.run("ALTER ROLE postgres IN DATABASE postgres SET extra_float_digits = -3")
    pgbouncer = PgBouncer(filled)
    try:
        client = Client(pgbouncer.uri(), extension)
        for _ in range(2):
            assert client.list(FLOATS) == [(WHOLE, [WHOLE])]
        # Other clients share the session, so its setting must be unchanged.
        assert client.list("SHOW extra_float_digits") == [("-3",)]
    finally:
        pgbouncer.stop()
        filled.run("ALTER ROLE postgres IN DATABASE postgres RESET extra_float_digits")


# Through the program.


def run(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    ran = subprocess.run(
        [binary(), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        **options,
    )
    assert ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran


def extension_options(extension: bool) -> list[str]:
    return ["--extension", "always" if extension else "never"]


def test_program_query(filled: PostgresServer, extension: bool) -> None:
    sql = (
        "SELECT id, text, amount, NULL AS nothing FROM numbers WHERE id BETWEEN 5 AND 6 ORDER BY id"
    )
    ran = run("query", filled.uri(), sql, "--format", "csv", *extension_options(extension))
    assert ran.stdout.splitlines() == ["id,text,amount,nothing", "5,row 5,0.05,", "6,row 6,0.06,"]
    ran = run(
        "query", filled.uri(), "-", "--format", "json", *extension_options(extension), input=sql
    )
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [5, 6]
    params = [
        "--param",
        "5",
        "--param",
        "text:row 5",
        "--param",
        "decimal:0.05",
        "--param",
        "date:2000-01-02",
        "--param",
        "NULL",
    ]
    sql = (
        "SELECT id, $4 + 1 AS day FROM numbers WHERE id = $1 AND text = $2 "
        "AND amount = $3 AND $5::text IS NULL"
    )
    assert run(
        "query", filled.uri(), sql, *params, "--format", "csv", *extension_options(extension)
    ).stdout.splitlines() == ["id,day", "5,2000-01-03"]
    assert (
        "row 5"
        in run(
            "query",
            filled.uri(),
            "SELECT text FROM numbers WHERE id = 5",
            "--format",
            "table",
            *extension_options(extension),
        ).stdout
    )


def test_program_options(filled: PostgresServer, extension: bool) -> None:
    def lines(sql: str, *options: str) -> list[str]:
        return run(
            "query", filled.uri(), sql, "--format", "csv", *extension_options(extension), *options
        ).stdout.splitlines()[1:]

    assert lines("SELECT 1.50 AS v") == ["1.50"]
    assert lines("SELECT 1.50 AS v", "--numeric", "float64") == ["1.5"]
    assert lines("SELECT 1.50 AS v", "--numeric", "decimal(9,3)") == ["1.500"]
    sql = "SELECT 'infinity'::date AS v, 'x' AS w"
    assert (
        "nonfinite" in run("query", filled.uri(), sql, *extension_options(extension), code=1).stderr
    )
    assert lines(sql, "--nonfinite", "null") == [",x"]
    assert lines(sql, "--nonfinite", "text") == ["infinity,x"]
    assert (
        "decimal" in run("query", filled.uri(), "SELECT 1", "--numeric", "decimal", code=2).stderr
    )


def test_program_export(filled: PostgresServer, extension: bool, tmp_path: Path) -> None:
    want = dray.read(filled.uri(), NUMBERS)
    run(
        "export", filled.uri(), NUMBERS, "-o", tmp_path / "n.parquet", *extension_options(extension)
    )
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").cast(want.schema).equals(want)
    run("export", filled.uri(), NUMBERS, "-o", tmp_path / "n.arrow", *extension_options(extension))
    with pa.ipc.open_file(tmp_path / "n.arrow") as file:
        assert file.read_all().cast(want.schema).equals(want)
    failing = "SELECT 1 / (id - 90000) FROM numbers"
    run(
        "export",
        filled.uri(),
        failing,
        "-o",
        tmp_path / "n.parquet",
        *extension_options(extension),
        code=1,
    )
    assert pyarrow.parquet.read_table(tmp_path / "n.parquet").num_rows == BIG
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.arrow", "n.parquet"]


def test_program_explain(filled: PostgresServer, extension: bool) -> None:
    ran = run("explain", filled.uri(), NUMBERS, "--format", "json", *extension_options(extension))
    explained = json.loads(ran.stdout)
    assert explained["path"] == ("extension" if extension else "rows") and explained["path_reason"]
    assert (
        "extension" in run("explain", filled.uri(), NUMBERS, *extension_options(extension)).stdout
    )
    ran = run(
        "explain",
        filled.uri(),
        "SELECT $1 + 1",
        "--param",
        "1",
        "--format",
        "json",
        *extension_options(extension),
    )
    assert json.loads(ran.stdout)["path"] == ("extension" if extension else "rows")
    planned = run("explain", filled.uri(), NUMBERS, "--plan", *extension_options(extension)).stdout
    assert "amount" in planned
    with filled.connect() as oracle:
        before = oracle.execute("SELECT count(*) FROM pets").fetchone()
        run(
            "explain",
            filled.uri(),
            "INSERT INTO pets (name) VALUES ('planned') RETURNING id",
            "--plan",
        )
        assert oracle.execute("SELECT count(*) FROM pets").fetchone() == before


def test_program_that_fails(filled: PostgresServer, extension: bool) -> None:
    assert (
        "nowhere"
        in run(
            "query", filled.uri(), "SELECT * FROM nowhere", *extension_options(extension), code=1
        ).stderr
    )
    assert (
        "2 parameters"
        in run("query", filled.uri(), "SELECT $1 + $2", "--param", "1", code=2).stderr
    )
    assert "127.0.0.1" in run("query", "postgresql://127.0.0.1:1/x", "SELECT 1", code=3).stderr
    assert "role" in run("query", filled.uri(user="nobody"), "SELECT 1", code=3).stderr
    filled.run("DROP DATABASE IF EXISTS bare_too", "CREATE DATABASE bare_too")
    ran = run("query", filled.uri("bare_too"), "SELECT 1", "--extension", "always", code=2)
    assert "no extension dray" in ran.stderr


def test_program_interrupted(filled: PostgresServer, extension: bool) -> None:
    marked = f"/* {uuid.uuid4()} */ {CHEAP_SLEEP}"
    client = subprocess.Popen(
        [binary(), "query", filled.uri(), marked, *extension_options(extension)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    filled.wait_for_statement(marked[3:39], 1)
    client.send_signal(signal.SIGINT)
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 130, errors
    filled.wait_for_statement(marked[3:39], 0)
