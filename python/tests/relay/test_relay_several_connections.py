"""A large table of a source is read over several connections, if they are free."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mysql_server import MariaServer, sequence
from postgres_server import PostgresServer
from relay_server import relay, sources, wait_until
from server import binary

import dray

ROWS = 300_000
SUM = ROWS * (ROWS + 1) // 2
# How the ranges of the table are read, after the process that does so.
RANGE = re.compile(r"^(\d+) [^\n]*: (?:COPY \()?SELECT [^\n]* FROM ONLY large\n[^\n]*ctid ", re.M)


@pytest.fixture(scope="module")
def large(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server with a table that is large enough for two connections, as statistics say."""
    postgres.run(
        "CREATE TABLE large AS SELECT i AS id, repeat(md5(i::text), 9) AS t "
        f"FROM generate_series(1, {ROWS}) i"
    )
    yield postgres
    postgres.run("DROP TABLE large")


@pytest.fixture(scope="module")
def large_of_maria(maria: MariaServer) -> Iterator[MariaServer]:
    maria.run(
        "CREATE OR REPLACE TABLE large (id int PRIMARY KEY, t text)",
        f"INSERT INTO large SELECT seq, repeat(md5(seq), 9) FROM seq_1_to_{ROWS}",
        "ANALYZE TABLE large",
    )
    yield maria
    maria.run("DROP TABLE large")


def path(connection: dray.Connection, sql: str) -> str:
    """How a result was read."""
    with connection.query(sql) as result:
        result.arrow()
        assert result.stats is not None
        return str(result.stats.path_reason)


def readers(postgres: PostgresServer, start: int) -> int:
    """How many connections have read ranges since this byte of the log."""
    return len(set(RANGE.findall(postgres.log(start))))


@pytest.mark.parametrize("options", [[], ["--source-writable", "pg"]])
def test_a_large_table(large: PostgresServer, files: Path, options: list[str]) -> None:
    start = large.log_bytes()
    with (
        relay(str(files), *sources(pg=large.uri()), *options) as server,
        dray.connect(server.uri("pg")) as connection,
    ):
        for _ in range(2):
            table = connection.query("SELECT id, t FROM large").arrow()
            ids = table["id"].to_numpy()
            assert (len(set(ids)), ids.sum()) == (ROWS, SUM)
        # A filter is part of each range.
        few = connection.query("SELECT id FROM large WHERE id % 1000 = 0").arrow()
        assert sorted(few["id"].to_pylist()) == list(range(1000, ROWS + 1, 1000))
        assert readers(large, start) >= 2
        # What an index or the session's own state would decide is the session's.
        assert connection.query("SELECT count(*) FROM large").arrow()["count"].to_pylist() == [ROWS]
        with pytest.raises(dray.ExecutionError, match="division by zero"):
            connection.query("SELECT id / (id - 7) FROM large").arrow()
        # Leaving early stops all of them, and frees them for others.
        result = connection.query("SELECT id, t FROM large")
        assert next(result.batches()).num_rows > 0
        result.close()
        wait_until(lambda: reading(large) == 0)


@pytest.mark.parametrize("connections", [1, 4])
def test_connections_are_left_to_others(
    large: PostgresServer, files: Path, connections: int
) -> None:
    """Of one free connection, or three, half are reserved: too few for two readers."""
    start = large.log_bytes()
    limit = f"pg={connections}"
    with (
        relay(str(files), *sources(pg=large.uri()), "--source-connections", limit) as server,
        dray.connect(server.uri("pg")) as connection,
    ):
        assert connection.query("SELECT id, t FROM large").arrow().num_rows == ROWS
        assert readers(large, start) == 0
        why = path(connection, "SELECT id FROM large WHERE id = 7")
        assert why.endswith("the number of the source's free connections is small")


def test_a_large_table_of_mariadb(large_of_maria: MariaServer, files: Path) -> None:
    maria = large_of_maria

    def connections() -> int:
        ((_, count),) = maria.rows("SHOW GLOBAL STATUS LIKE 'Connections'")
        return int(count)

    for limit, least, most in ((1, 0, 1), (8, 3, 9)):
        before = connections()
        with (
            relay(
                str(files), *sources(maria=maria.uri()), "--source-connections",
                f"maria={limit}",
            ) as server,
            dray.connect(server.uri("maria")) as connection,
        ):  # fmt: skip
            ids = connection.query("SELECT id, t FROM large").arrow()["id"].to_numpy()
            assert (len(set(ids)), ids.sum()) == (ROWS, SUM)
        # Without the one that asks, and the first look of the server, which it may leave out.
        assert least <= connections() - before - 2 <= most


def test_a_large_table_of_mysql(start_mysql: Callable[[str], MariaServer], files: Path) -> None:
    """The lock under which several begin may hold others back, so the server's options allow it."""
    mysql = start_mysql("mysql-8.0")
    mysql.run(
        "CREATE TABLE large (id int PRIMARY KEY, t text)",
        f"INSERT INTO large SELECT seq, repeat(md5(seq), 9) FROM ({sequence(ROWS)}) numbers",
        "CREATE TABLE small (id int PRIMARY KEY)",
        "INSERT INTO small VALUES (1)",
        "ANALYZE TABLE large, small",
    )
    try:
        for options, expected in (
            ([], "one connection: FLUSH TABLES WITH READ LOCK may hold back other sessions"),
            (["--source-partitions", "shop=2"], "2 connections, one snapshot"),
        ):
            with (
                relay(str(files), *sources(shop=mysql.uri()), *options) as server,
                dray.connect(server.uri("shop")) as connection,
            ):
                with connection.query("SELECT id, t FROM large") as result:
                    ids = result.arrow()["id"].to_numpy()
                    assert (len(set(ids)), ids.sum()) == (ROWS, SUM - ROWS)
                    assert result.stats is not None and expected in result.stats.path_reason
                assert "one connection: " in path(connection, "SELECT id FROM small")
    finally:
        mysql.run("DROP TABLE large, small")


@pytest.mark.parametrize(
    ("uri", "limit", "message"),
    [
        ("mysql://u@localhost/d", "shop=1", "--source-partitions shop=1: expected 2 to 64"),
        ("mysql://u@localhost/d", "shop=65", "expected 2 to 64"),
        ("mysql://u@localhost/d", "other=2", "there is no source other"),
        ("sqlite:notes.db", "shop=2", "neither PostgreSQL, MySQL nor MariaDB"),
    ],
)
def test_limits_that_are_refused(uri: str, limit: str, message: str) -> None:
    command = [binary(), "serve", "--source", f"shop={uri}", "--source-partitions", limit]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and message in refused.stderr


def test_how_a_source_was_read(
    large: PostgresServer, large_of_maria: MariaServer, files: Path
) -> None:
    several = re.compile(r"over .+; at the source, (.*; )?\d connections, one snapshot$")
    with relay(str(files), *sources(pg=large.uri(), maria=large_of_maria.uri())) as server:
        for name in ("pg", "maria"):
            with dray.connect(server.uri(name)) as connection:
                assert several.match(path(connection, "SELECT id, t FROM large"))
                why = path(connection, "SELECT id FROM large ORDER BY id LIMIT 1")
                assert "one connection: it " in why, why
        with dray.connect(server.uri("pg")) as connection:
            assert "one connection: it does not read one table" in path(connection, "SELECT 1")
        with dray.connect(server.uri()) as connection:
            assert "source" not in path(connection, "SELECT 1")


def test_what_to_grant(large_of_maria: MariaServer, files: Path) -> None:
    maria = large_of_maria
    maria.run("CREATE USER few IDENTIFIED BY 'x'", "GRANT SELECT ON shop.* TO few")
    try:
        few = f"mysql://few:x@127.0.0.1:{maria.port}/shop"
        with relay(str(files), *sources(maria=few)) as server:
            command = [binary(), "explain", server.uri("maria"), "SELECT id, t FROM large"]
            explained = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert explained.returncode == 0, explained.stderr
            assert "(GRANT RELOAD ON *.* TO 'few'@'%')" in " ".join(explained.stdout.split())
    finally:
        maria.run("DROP USER few")


def test_what_the_session_has_set_counts(large: PostgresServer, files: Path) -> None:
    """Other connections would not see a setting of the session."""
    start = large.log_bytes()
    with (
        relay(str(files), *sources(pg=large.uri())) as server,
        dray.connect(server.uri("pg")) as connection,
    ):
        connection.query("SELECT set_config('extra_float_digits', '-5', false)").arrow()
        sql = "SELECT id, (1::float8 / 3)::text AS third FROM large"
        table = connection.query(sql).arrow()
        assert table.num_rows == ROWS and set(table["third"].to_pylist()) == {"0.3333333333"}
        assert readers(large, start) == 0


def reading(postgres: PostgresServer) -> int:
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%FROM large%' "
        "AND state <> 'idle' AND pid <> pg_backend_pid()"
    )
    with postgres.connect() as connection:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return int(row[0])
