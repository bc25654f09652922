"""Errors of MySQL and MariaDB: their numbers, and statements and sessions that servers end."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

import pytest
from adbc_client import connect
from adbc_driver_manager import AdbcStatusCode, dbapi
from mysql_server import USER, MariaServer, sequence
from relay_server import wait_until
from server import binary

import dray

#: What runs for as long as it is let.
ENDLESS = (
    "SELECT count(*) FROM err_busy a JOIN err_busy b JOIN err_busy c WHERE a.id + b.id + c.id < 0"
)
MANY = 50_000
LOCKED = "UPDATE err_locked SET n = n + 1 WHERE id = 1"


@pytest.fixture(scope="module")
def server(mysql: MariaServer) -> MariaServer:
    mysql.run(
        "DROP TABLE IF EXISTS err_busy, err_locked, err_many",
        "CREATE TABLE err_busy (id int PRIMARY KEY)",
        f"INSERT INTO err_busy SELECT seq FROM ({sequence(3000)}) s",
        "CREATE TABLE err_locked (id int PRIMARY KEY, n int)",
        "INSERT INTO err_locked VALUES (1, 0)",
        "CREATE TABLE err_many (id int PRIMARY KEY, pad char(100))",
        f"INSERT INTO err_many SELECT seq, 'x' FROM ({sequence(MANY)}) s",
    )
    return mysql


@pytest.fixture
def lock(server: MariaServer) -> Iterator[None]:
    """Somebody else holds the row of `err_locked`."""
    with contextlib.closing(server.connect()) as other:
        other.cursor().execute("BEGIN")
        other.cursor().execute(LOCKED)
        yield
        other.rollback()


def test_numbers(server: MariaServer, lock: None) -> None:
    """HY000 is the SQLSTATE of many errors."""
    cases = [
        ("SELECT * FROM nowhere", dray.QueryError, 1146, "42S02"),
        ("INSERT INTO err_busy VALUES (1)", dray.ExecutionError, 1062, "23000"),
        (LOCKED, dray.ExecutionError, 1205, "HY000"),
    ]
    with dray.connect(server.uri()) as connection:
        connection.query("SET SESSION innodb_lock_wait_timeout = 1")
        if server.is_mariadb:
            connection.query("SET SESSION max_statement_time = 2")
            cases.append((ENDLESS, dray.ExecutionError, 1969, "70100"))
        elif server.version != "mysql-5.6":
            connection.query("SET SESSION max_execution_time = 2000")
            cases.append((ENDLESS, dray.ExecutionError, 3024, "HY000"))
        for sql, kind, code, sqlstate in cases:
            # Prepared, from the second time on.
            for _ in range(2):
                with pytest.raises(kind) as caught:
                    connection.query(sql).arrow()
                assert (caught.value.code, caught.value.sqlstate) == (code, sqlstate)
    with pytest.raises(dray.AuthenticationError) as denied:
        dray.connect(f"mysql://{USER}:wrong@127.0.0.1:{server.port}/")
    assert denied.value.code == 1045
    with pytest.raises(dray.UsageError) as refused:
        dray.connect("oracle://127.0.0.1")
    assert refused.value.code is None


def test_numbers_in_messages(server: MariaServer) -> None:
    failed = subprocess.run(
        [str(binary()), "query", server.uri(), "SELECT * FROM nowhere"],
        capture_output=True,
        text=True,
    )
    assert failed.returncode == 1 and failed.stderr.count("(error 1146)") == 1, failed.stderr


def test_numbers_by_adbc(server: MariaServer, lock: None) -> None:
    code = AdbcStatusCode
    with connect(server.uri()) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        for sql, kind, status, number in [
            (LOCKED, dbapi.OperationalError, code.TIMEOUT, b"1205"),
            ("SELECT * FROM nowhere", dbapi.ProgrammingError, code.NOT_FOUND, b"1146"),
        ]:
            with pytest.raises(kind) as raised:
                cursor.execute(sql)
            assert AdbcStatusCode(raised.value.status_code) == status
            # The manager asks for ADBC 1.1, where the field itself is a mark.
            assert raised.value.details == [(b"vendor_code", number)]
    with connect(server.uri()) as connection:
        with connection.cursor(adbc_stmt_kwargs={"dray.batch_bytes": "1"}) as cursor:
            # In mid-stream.
            last = f"SELECT 1 FROM err_busy WHERE err_many.id = {MANY - 1}"
            cursor.execute(f"SELECT id, pad, ({last}) FROM err_many ORDER BY id")
            with pytest.raises(dbapi.Error, match="more than 1 row") as raised:
                cursor.fetch_arrow_table()
            assert raised.value.details == [(b"vendor_code", b"1242")]


@pytest.fixture
def small_packets(server: MariaServer) -> Iterator[None]:
    ((before,),) = server.rows("SELECT @@global.max_allowed_packet")
    server.run("SET GLOBAL max_allowed_packet = 1048576")
    yield
    server.run(f"SET GLOBAL max_allowed_packet = {before}")


#: Connections that end in different ways.
TRANSPORTS = ["tcp", "unix", "zlib"]


def uri_of(server: MariaServer, transport: str) -> str:
    if transport == "unix":
        return server.unix()
    return server.uri("?compress=zlib" if transport == "zlib" else "")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [1_100_000, 5_000_000, 40_000_000])
def test_packets_over_the_limit(
    server: MariaServer, small_packets: None, size: int, transport: str
) -> None:
    """A server reads the beginning alone, and closes the connection."""
    large = "x" * size
    for sql, values in [(f"SELECT length('{large}')", None), ("SELECT length(?)", [large])]:
        with dray.connect(uri_of(server, transport)) as connection:
            assert list(connection.query("SELECT length(?)", ["x" * 500_000])) == [(500_000,)]
            with pytest.raises(dray.ConnectionError, match="max_allowed_packet"):
                connection.query(sql, values).arrow()
            with pytest.raises(dray.Error, match="connect again"):
                connection.query("SELECT 1")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_idle_sessions(server: MariaServer, transport: str) -> None:
    """A session that the server has ended is not begun anew: its settings would be lost."""
    with dray.connect(uri_of(server, transport)) as connection:
        number = next(iter(connection.query("SELECT connection_id()")))[0]
        connection.query("SET SESSION wait_timeout = 1")
        left = f"SELECT count(*) FROM information_schema.processlist WHERE id = {number}"
        wait_until(lambda: server.rows(left) == [("0",)])
        with pytest.raises(dray.ConnectionError, match="wait_timeout"):
            connection.query("SELECT 1").arrow()
        with pytest.raises(dray.Error, match="connect again"):
            connection.query("SELECT 1")
