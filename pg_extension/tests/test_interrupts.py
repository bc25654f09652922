"""Cancels, terminations and clients that don't read: no crash, no leak, no short result."""

import os
import random
import subprocess
import time

import pytest
from client import ServerError
from server import USER

# A set-returning function in FROM would be materialized in a tuple store first.
LONG = (
    "(SELECT i, md5(i::text), i::numeric(12,2), ARRAY[i], md5((i % 300)::text) "
    "FROM (SELECT generate_series(1, 50000000) i) s)"
)


def begin(connection, what: str = LONG, options: str = "compression none"):
    connection.run("SELECT pg_catalog.dray_load()")
    connection.send(f"COPY {what} TO STDOUT (FORMAT dray, {options})")


def expect(connection, match: str, sqlstate: str):
    with pytest.raises(ServerError, match=match) as caught:
        connection.read_result()
    assert caught.value.sqlstate == sqlstate
    # The stream did not end like a complete one.
    assert "COPY" not in " ".join(caught.value.result.tags)
    assert connection.value("SELECT 1") == "1"


def test_statement_timeout(connection):
    connection.run("SET statement_timeout = 1000")
    begin(connection)
    expect(connection, "statement timeout", "57014")


def test_cancel(connection):
    begin(connection)
    connection.read_message()
    time.sleep(0.2)
    connection.cancel()
    expect(connection, "user request", "57014")


def test_cancel_by_another(server, connection):
    pid = connection.value("SELECT pg_backend_pid()")
    begin(connection)
    with server.connect() as other:
        other.run(f"SELECT pg_sleep(0.2), pg_cancel_backend({pid})")
    expect(connection, "user request", "57014")


@pytest.mark.parametrize("row", [1, 2, 1000, 300000])
def test_error_within_the_scan(connection, row):
    begin(
        connection,
        f"(SELECT 1 / (i - {row}), repeat('x', i % 100) FROM "
        "(SELECT generate_series(1, 400000) i) s)",
    )
    expect(connection, "division by zero", "22012")
    begin(
        connection,
        f"(SELECT CASE WHEN i = {row} THEN 'infinity'::date END FROM "
        "(SELECT generate_series(1, 400000) i) s)",
    )
    expect(connection, f"row {row}: Arrow has no infinity", "22003")


def test_errors_leave_the_transaction_usable_after_a_savepoint(connection):
    connection.run("BEGIN; SAVEPOINT s")
    for _ in range(20):
        with pytest.raises(ServerError, match="division"):
            connection.copy("(SELECT 1 / (i - 90000) FROM (SELECT generate_series(1, 100000) i) s)")
        connection.run("ROLLBACK TO s")
    assert connection.copy("(SELECT 1)").columns() == [[1]]
    connection.run("COMMIT")


def test_terminate_at_random_moments(server):
    seed = int(os.environ.get("DRAY_SEED", time.time_ns()))
    print(f"DRAY_SEED={seed}")
    moments = random.Random(seed)
    with server.connect() as killer:
        for turn in range(60):
            with server.connect() as victim:
                pid = victim.value("SELECT pg_backend_pid()")
                begin(
                    victim,
                    options=moments.choice(
                        ["compression none", "compression light", "compression 'zstd'"]
                    ),
                )
                time.sleep(moments.random() ** 3 * 0.3)
                if moments.random() < 0.5:
                    # This client does not read.
                    killer.run(f"SELECT pg_terminate_backend({pid})")
                    deadline = time.monotonic() + 60
                    while killer.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
                        assert time.monotonic() < deadline, "the backend does not end"
                        time.sleep(0.01)
                else:
                    killer.run(f"SELECT pg_terminate_backend({pid})")
                    with pytest.raises((ServerError, ConnectionError)):
                        victim.read_result()
    assert server.crashes() == []


def test_clients_that_vanish(server):
    moments = random.Random(7)
    for turn in range(30):
        victim = server.connect()
        begin(victim)
        time.sleep(moments.random() ** 3 * 0.2)
        victim.socket.close()
    with server.connect() as connection:
        deadline = time.monotonic() + 10
        while (
            int(
                connection.value(
                    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                )
            )
            > 1
        ):
            assert time.monotonic() < deadline, "backends without clients do not end"
            time.sleep(0.05)
    assert server.crashes() == []


def test_many_at_once(server):
    connections = [server.connect() for _ in range(20)]
    for connection in connections:
        begin(
            connection,
            "(SELECT i, i::text FROM (SELECT generate_series(1, 100000) i) s)",
            "compression light",
        )
    for connection in connections:
        assert connection.read_result().columns()[0] == list(range(1, 100001))
        connection.socket.close()


@pytest.mark.parametrize("compression", ["none", "light", "zstd", "zstd:19"])
def test_address_space_that_ends(server, compression):
    """The system refuses memory, also to PostgreSQL's and zstd's own allocations."""
    query = (
        "(SELECT i, md5(i::text), i::numeric(12,2), ARRAY[i], repeat('x', i % 900) "
        "FROM (SELECT generate_series(1, 60000) i) s)"
    )
    outcomes = []
    for megabytes in (0, 1, 2, 4, 8, 12, 16, 17, 18, 20, 24, 28, 32, 40, 64, 128, 512):
        with server.connect() as connection:
            pid = int(connection.value("SELECT pg_backend_pid()"))
            connection.copy("(SELECT 1)")
            used = int(open(f"/proc/{pid}/statm").read().split()[0]) * 4096
            limit_address_space(pid, used + (megabytes << 20))
            try:
                connection.copy(query, f"compression '{compression}', chunk_bytes_max 8388608")
                outcomes.append("whole")
            except ServerError as error:
                assert error.sqlstate == "53200", error
                outcomes.append("failed")
            limit_address_space(pid, "unlimited")
            # The session survives.
            assert connection.copy("(SELECT 1)").columns() == [[1]]
    assert outcomes[0] == "failed" and outcomes[-1] == "whole", outcomes
    assert server.crashes() == []


def limit_address_space(pid: int, size: int | str):
    # Only the owner of a process may limit it.
    user = {"user": USER} if os.geteuid() == 0 else {}
    subprocess.run(["prlimit", "--pid", str(pid), f"--as={size}:"], check=True, **user)
