"""Reading a table of MySQL over several connections. It has no lock for commits alone, so a number
of connections must be asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from mysql_server import VERSIONS, MariaServer, sequence
from relay_server import wait_until

import dray

ROWS = 20_000
SQL = "SELECT id, amount FROM flush_accounts"


@pytest.fixture(
    scope="module", params=[version for version in VERSIONS if version.startswith("mysql-")]
)
def server(
    start_mysql: Callable[[str], MariaServer], request: pytest.FixtureRequest
) -> MariaServer:
    server = start_mysql(request.param)
    server.run(
        "CREATE TABLE flush_accounts (id int PRIMARY KEY, amount bigint NOT NULL, pad char(200))",
        f"INSERT INTO flush_accounts SELECT seq, 100, 'x' FROM ({sequence(ROWS)}) numbers",
        "ANALYZE TABLE flush_accounts",
    )
    return server


@pytest.fixture
def connection(server: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(server.uri()) as connection:
        yield connection


def reason_of(connection: dray.Connection, partitions: int | str) -> str:
    result = connection.query(SQL, partitions=partitions)
    assert result.arrow().num_rows == ROWS
    return result.stats.path_reason


def test_only_as_asked(connection: dray.Connection) -> None:
    assert "must be asked for" in reason_of(connection, "auto")
    assert reason_of(connection, 3).startswith("3 connections, one snapshot")


def test_one_snapshot(server: MariaServer) -> None:
    stop = threading.Event()
    moves = 0

    def move() -> None:
        nonlocal moves
        with contextlib.closing(server.connect()) as writer:
            cursor = writer.cursor()
            while not stop.is_set():
                first, last = moves % 100, ROWS - 1 - moves % 100
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE flush_accounts SET amount = amount - 7 WHERE id = {first}")
                cursor.execute(f"UPDATE flush_accounts SET amount = amount + 7 WHERE id = {last}")
                cursor.execute("COMMIT")
                moves += 1

    writer = threading.Thread(target=move)
    writer.start()
    try:
        for _ in range(8):
            with dray.connect(server.uri()) as connection:
                result = connection.query(SQL, partitions=3)
                table = result.arrow()
            assert "3 connections" in result.stats.path_reason
            assert sorted(table["id"].to_pylist()) == list(range(ROWS))
            assert sum(table["amount"].to_pylist()) == ROWS * 100
    finally:
        stop.set()
        writer.join()
    assert moves > 10, "others wrote meanwhile"


def test_behind_a_long_statement(server: MariaServer, connection: dray.Connection) -> None:
    """Whoever flushes tables waits for it, and holds others back. That is not done to anybody."""
    with contextlib.closing(server.connect()) as long:
        thread = threading.Thread(
            target=lambda: long.cursor().execute(
                "SELECT SLEEP(60) FROM flush_accounts WHERE id = 1"
            )
        )
        thread.start()
        time.sleep(6)
        began = time.monotonic()
        assert "would wait for a statement" in reason_of(connection, 3)
        server.run("UPDATE flush_accounts SET pad = 'y' WHERE id = 2")
        assert time.monotonic() - began < 30
        server.run(f"KILL QUERY {long.thread_id()}")
        thread.join()
    assert reason_of(connection, 3).startswith("3 connections")


def test_without_the_privilege(server: MariaServer) -> None:
    native = "WITH mysql_native_password " if server.version.startswith("mysql-8") else ""
    server.run(
        f"CREATE USER flusher IDENTIFIED {native}BY 'x'", "GRANT SELECT ON shop.* TO flusher"
    )
    privilege = "FLUSH_TABLES" if server.version == "mysql-8.0.33" else "RELOAD"
    with dray.connect(f"mysql://flusher:x@127.0.0.1:{server.port}/shop") as connection:
        assert f"GRANT {privilege} ON *.* TO 'flusher'@'%'" in reason_of(connection, 3)
        # It is all that was missing.
        server.run(f"GRANT {privilege} ON *.* TO flusher")
        wait_until(lambda: reason_of(connection, 3).startswith("3 connections"))
        # Nothing is left locked.
        server.run("UPDATE flush_accounts SET pad = 'z' WHERE id = 3")


def test_hints(server: MariaServer, connection: dray.Connection) -> None:
    """A hint may set a variable, which would hold for each range."""
    sql = "SELECT /*+ SET_VAR(sql_select_limit=10) */ id FROM flush_accounts"
    result = connection.query(sql, partitions=3)
    # MySQL 5.6 reads a comment.
    assert result.arrow().num_rows == (ROWS if server.version == "mysql-5.6" else 10)
    assert "hints" in result.stats.path_reason


def test_settings_of_new_servers(server: MariaServer, connection: dray.Connection) -> None:
    if server.version.startswith("mysql-8"):
        connection.query("SET default_collation_for_utf8mb4 = utf8mb4_general_ci")
        assert "other settings" in reason_of(connection, 3)
        connection.query("SET default_collation_for_utf8mb4 = DEFAULT")
    if server.rows("SHOW VARIABLES LIKE 'explain_format'"):
        for form in ("TREE", "JSON"):
            connection.query(f"SET explain_format = {form}")
            wait_until(lambda: reason_of(connection, 3).startswith("3 connections"))
    connection.query("SET timestamp = 1000000000")
    # To the server, statements of the tests before that have not ended yet are long ones.
    wait_until(lambda: reason_of(connection, 3).startswith("3 connections"))
