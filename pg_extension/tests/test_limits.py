"""Values that are small for the server and large as columns, types without end, work without a
pause.
"""

import threading
import time

import pytest
from client import ServerError
from server import Server
from test_interrupts import limit_address_space

# 14 bytes as it is sent, 131,072 as text.
LONG_NUMERIC = "'1e131071'::numeric"


@pytest.fixture(scope="module", autouse=True)
def types(server):
    with server.connect() as connection:
        attributes = ", ".join(f"a{i} uuid" for i in range(100))
        connection.run(
            f"CREATE TYPE wide AS ({attributes}); CREATE TYPE level0 AS (a integer, b integer)"
        )
        for level in range(1, 25):
            connection.run(f"CREATE TYPE level{level} AS (a level{level - 1}, b level{level - 1})")


def peak_bytes(pid: str) -> int:
    line = next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


@pytest.mark.parametrize(
    "what, limit",
    [
        # A NULL of 100 uuids has 1,613 bytes here.
        ("array_fill(NULL::wide, ARRAY[1000000])", 64 << 20),
        (f"array_fill({LONG_NUMERIC}, ARRAY[5000])", 64 << 20),
        (", ".join([f"array_fill({LONG_NUMERIC}, ARRAY[200])"] * 10), 64 << 20),
        (", ".join(["repeat('x', 10000000)"] * 30), 64 << 20),
        # Stored elsewhere, and so on; json is not compressed on its way.
        (", ".join(["(SELECT j FROM stored)"] * 30), 64 << 20),
    ],
)
def test_a_row_is_refused_before_it_is_whole(connection, what, limit):
    connection.run(
        "CREATE TEMP TABLE stored (j jsonb);"
        "INSERT INTO stored SELECT jsonb_agg(md5(i::text)) FROM generate_series(1, 200000) i"
    )
    pid = connection.value("SELECT pg_backend_pid()")
    connection.copy("(SELECT 1)")
    before = peak_bytes(pid)
    with pytest.raises(ServerError, match="raise row_bytes_max") as caught:
        connection.copy(f"(SELECT {what})", f"row_bytes_max {limit}")
    assert caught.value.sqlstate == "54000"
    # Buffers that grow are there twice for a moment; and PostgreSQL has its own copies.
    assert peak_bytes(pid) - before < 6 * limit, (peak_bytes(pid) - before) >> 20
    assert connection.copy("(SELECT 1)").columns() == [[1]]


def test_values_that_grow_as_text(connection):
    found = connection.copy(
        f"(SELECT {LONG_NUMERIC}, ARRAY[{LONG_NUMERIC}, NULL, -1e-16383], B'101'::varbit)"
    ).columns()
    assert found[0] == ["1" + "0" * 131071]
    assert found[1] == [[found[0][0], None, "-0." + "0" * 16382 + "1"]]
    assert found[2] == ["101"]


@pytest.mark.parametrize("megabytes", [8, 64, 200, 500, 900])
def test_short_memory_for_values_that_grow(server, megabytes):
    with server.connect() as connection:
        pid = int(connection.value("SELECT pg_backend_pid()"))
        connection.copy("(SELECT 1)")
        used = int(open(f"/proc/{pid}/statm").read().split()[0]) * 4096
        limit_address_space(pid, used + (megabytes << 20))
        for what in (
            f"array_fill({LONG_NUMERIC}, ARRAY[5000])",
            "array_fill(NULL::wide, ARRAY[1000000])",
        ):
            with pytest.raises(ServerError) as caught:
                connection.copy(f"(SELECT {what})")
            assert caught.value.sqlstate in ("53200", "54000"), caught.value
        limit_address_space(pid, "unlimited")
        assert connection.copy("(SELECT 1)").columns() == [[1]]
    assert server.crashes() == []


@pytest.mark.parametrize(
    "what, options",
    [
        # Chunks as large as the client likes, compressed as hard as can be.
        (
            "(SELECT md5(i::text) || md5((i + 1)::text), i "
            "FROM (SELECT generate_series(1, 30000000) i) s)",
            "chunk_bytes_max 1000000000, row_bytes_max 1000000000, decoded_bytes_max 1000000000, "
            "chunk_rows 100000000,"
            " compression 'zstd:22'",
        ),
        # One row.
        (
            f"(SELECT array_fill({LONG_NUMERIC}, ARRAY[15000]))",
            "row_bytes_max 4294967295, compression none",
        ),
        (
            "(SELECT array_fill(NULL::wide, ARRAY[10000000]))",
            "row_bytes_max 4294967295, compression none",
        ),
    ],
)
def test_timeouts_hold_within_long_work(connection, what, options):
    connection.run("SELECT pg_catalog.dray_load(); SET statement_timeout = 1500")
    start = time.monotonic()
    with pytest.raises(ServerError, match="statement timeout") as caught:
        connection.run(f"COPY {what} TO STDOUT (FORMAT dray, {options})")
    assert caught.value.sqlstate == "57014"
    assert time.monotonic() - start < 6
    assert connection.value("SELECT 1") == "1"


def test_types_without_end(connection):
    assert connection.copy("(SELECT NULL::level9)").columns() == [[None]]
    for level in (14, 24):
        with pytest.raises(ServerError, match="over 20000 types") as caught:
            connection.copy(f"(SELECT NULL::level{level})")
        assert caught.value.sqlstate == "54000"


def test_nothing_is_written_into_a_message(pg_config):
    """The server stops at once while a client does not read: what it has to say has no place in the
    data.
    """
    with Server(pg_config, features=None) as server, server.connect() as connection:
        connection.run("SELECT pg_catalog.dray_load()")
        connection.send(
            "COPY (SELECT repeat('x', 100000) FROM (SELECT generate_series(1, 1000000)) s)"
            " TO STDOUT (FORMAT dray, compression none)"
        )
        time.sleep(1)
        stopping = threading.Thread(
            target=server.run, args=("pg_ctl", "-D", server.data, "-m", "immediate", "stop")
        )
        stopping.start()
        time.sleep(1)
        received = bytes(connection.buffer)
        try:
            while part := connection.socket.recv(1 << 20):
                received += part
        except ConnectionError:
            pass
        stopping.join()
        assert len(received) > 100000
        assert b"terminating connection" not in received and b"immediate shutdown" not in received
        server.run("pg_ctl", "-D", server.data, "-l", server.log, "-w", "start")
