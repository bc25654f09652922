"""Encoding threads beside the backend's own: the same results, and no thread survives its
statement, however that ends.
"""

import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest
from client import ServerError
from server import USER, Server
from test_interrupts import LONG, begin, expect, limit_address_space

ROWS = 150_000
# Some 20 MB, many chunks of the default size. Some strings repeat, so there are stream
# dictionaries.
QUERY = (
    "(SELECT i, md5(i::text), i % 7, CASE WHEN i % 3 > 0 "
    "THEN repeat('x', i % 90) END, 'at ' || md5((i % 400)::text) FROM "
    f"(SELECT generate_series(1, {ROWS}) i) s)"
)
COMPRESSIONS = ["light", "lz4", "'zstd'", "'zstd:9'"]
SPARE_PROCESSORS = len(os.sched_getaffinity(0)) - 1


def workers(pid: int) -> int:
    """The number of encoding threads."""
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            count += (task / "comm").read_text() == "dray encode\n"
        except OSError:
            # The thread ended meanwhile.
            pass
    return count


def workers_end(pid: int):
    """Expects that an idle session has no encoding thread. The system may list one that was joined
    for a moment.
    """
    deadline = time.monotonic() + 20
    while count := workers(pid):
        assert time.monotonic() < deadline, f"{count} threads are left"
        time.sleep(0.01)


def pid_of(connection) -> int:
    return int(connection.value("SELECT pg_backend_pid()"))


def begin_helped(connection, compression: str, what: str = LONG) -> int:
    """Starts a long result, waits for its encoding threads, and returns the backend's process."""
    pid = pid_of(connection)
    begin(connection, what, f"compression {compression}")
    deadline = time.monotonic() + 20
    while workers(pid) < min(SPARE_PROCESSORS, 1):
        assert time.monotonic() < deadline, "no thread is started"
        connection.read_message()
    return pid


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize(
    "options",
    ["checksums on", "chunk_bytes_max 8388608", "chunk_rows 5000, chunk_bytes_max 400000"],
)
def test_the_result_is_the_same(connection, compression, options):
    found = {}
    for threads in (0, 1, 4):
        connection.run(f"SET dray.encoding_threads = {threads}")
        result = connection.copy(QUERY, f"compression {compression}, {options}")
        found[threads] = result.columns()
        finished = result.messages()[-1].fields
        assert (
            finished["encode_ns"] > 0
            and finished["execute_ns"] > 0
            and finished["execute_ns"] < finished["total_ns"]
        )
        workers_end(pid_of(connection))
    assert found[0][0] == list(range(1, ROWS + 1))
    assert found[0] == found[1] == found[4]


def test_as_many_as_are_set_and_there_are_processors_for(connection):
    pid = pid_of(connection)
    for threads in (0, 1, 3):
        connection.run(f"SET dray.encoding_threads = {threads}")
        begin(connection, LONG, "compression light")
        expected = min(threads, SPARE_PROCESSORS)
        most, least_time, deadline = 0, time.monotonic() + 0.5, time.monotonic() + 20
        while time.monotonic() < least_time or most < expected:
            assert time.monotonic() < deadline, f"{most} threads"
            connection.read_message()
            most = max(most, workers(pid))
        assert most == expected
        connection.cancel()
        expect(connection, "user request", "57014")
        workers_end(pid)
    for threads in (-1, 17):
        with pytest.raises(ServerError, match="outside the valid range"):
            connection.run(f"SET dray.encoding_threads = {threads}")


def test_none_where_they_have_nothing_to_do(connection):
    pid = pid_of(connection)
    # On one host nothing is encoded.
    for compression in ("none", "auto"):
        begin(connection, LONG, f"compression {compression}")
        deadline = time.monotonic() + 0.4
        while time.monotonic() < deadline:
            connection.read_message()
            assert workers(pid) == 0
        connection.cancel()
        expect(connection, "user request", "57014")
    # A result of one chunk.
    begin(
        connection,
        "(SELECT i, md5(i::text) FROM (SELECT generate_series(1, 20000) i) s)",
        "compression light",
    )
    while connection.read_message()[0] != b"Z":
        assert workers(pid) == 0


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_ends_that_come_too_early(server, connection, compression):
    pid = pid_of(connection)
    connection.run("SET statement_timeout = 2000")
    begin_helped(connection, compression)
    expect(connection, "statement timeout", "57014")
    workers_end(pid)
    connection.run("RESET statement_timeout")
    for row in (40_000, 140_000):
        begin(
            connection, f"(SELECT *, 1 / (i - {row}) FROM {QUERY} s)", f"compression {compression}"
        )
        expect(connection, "division by zero", "22012")
        workers_end(pid)
        begin(
            connection,
            f"(SELECT *, CASE WHEN i = {row} THEN 'infinity'::date END FROM {QUERY} s)",
            f"compression {compression}",
        )
        expect(connection, f"row {row}: Arrow has no infinity", "22003")
        workers_end(pid)
    begin_helped(connection, compression)
    connection.cancel()
    expect(connection, "user request", "57014")
    workers_end(pid)
    connection.run("BEGIN; SAVEPOINT s")
    for _ in range(5):
        with pytest.raises(ServerError, match="division"):
            connection.copy(
                f"(SELECT *, 1 / (i - 90000) FROM {QUERY} s)", f"compression {compression}"
            )
        workers_end(pid)
        connection.run("ROLLBACK TO s")
    assert len(connection.copy(QUERY, f"compression {compression}").columns()[0]) == ROWS
    connection.run("COMMIT")
    assert server.crashes() == []


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_backends_that_end_at_work(server, compression):
    """Backends are terminated or lose their client, which reads or has stopped reading."""
    moments = random.Random(compression)
    with server.connect() as killer:
        for turn in range(12):
            victim = server.connect()
            victim.run("SET dray.encoding_threads = 4")
            pid = begin_helped(victim, compression)
            time.sleep(moments.random() ** 2 * 0.2)
            if turn % 3 == 0:
                victim.socket.close()
            else:
                killer.run(f"SELECT pg_terminate_backend({pid})")
                if turn % 3 == 1:
                    with pytest.raises((ServerError, ConnectionError)):
                        victim.read_result()
            deadline = time.monotonic() + 10
            while killer.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
                assert time.monotonic() < deadline, "the backend does not end"
                time.sleep(0.01)
            victim.socket.close()
    assert server.crashes() == []


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops(pg_config, mode):
    with Server(pg_config, features=None) as server:
        connections = [server.connect() for _ in COMPRESSIONS]
        for connection, compression in zip(connections, COMPRESSIONS):
            begin_helped(connection, compression)
        start = time.monotonic()
        stopping = threading.Thread(
            target=server.run, args=("pg_ctl", "-D", server.data, "-m", mode, "-w", "stop")
        )
        stopping.start()
        stopping.join()
        assert time.monotonic() - start < 10
        assert server.crashes() == []
        for connection in connections:
            connection.socket.close()
        server.run("pg_ctl", "-D", server.data, "-l", server.log, "-w", "start")


def test_no_thread_is_to_be_had(server, connection):
    """Without threads the backend encodes alone, and does not complain."""
    pid = pid_of(connection)
    whole = connection.copy(QUERY, "compression light").columns()
    # Only the owner of a process may limit it. The limit counts all processes of that user.
    user = {"user": USER} if os.geteuid() == 0 else {}
    subprocess.run(["prlimit", "--pid", str(pid), "--nproc=1:"], check=True, **user)
    messages = server.log.read_text(errors="replace").count("thread")
    begin(connection, QUERY, "compression light")
    seen = 0
    while (message := connection.read_message())[0] != b"Z":
        assert message[0] != b"E", message
        seen = max(seen, workers(pid))
    assert seen == 0
    assert server.log.read_text(errors="replace").count("thread") == messages
    subprocess.run(["prlimit", "--pid", str(pid), "--nproc=unlimited:"], check=False, **user)
    assert connection.copy(QUERY, "compression light").columns() == whole


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_short_memory(server, compression):
    """The system refuses memory to a thread, or refuses to start one."""
    outcomes = []
    for megabytes in (0, 8, 16, 17, 18, 20, 24, 28, 32, 36, 40, 48, 64, 96, 128, 192, 1024):
        with server.connect() as connection:
            pid = pid_of(connection)
            connection.run("SET dray.encoding_threads = 4")
            connection.copy("(SELECT 1)")
            used = int(open(f"/proc/{pid}/statm").read().split()[0]) * 4096
            limit_address_space(pid, used + (megabytes << 20))
            try:
                assert (
                    len(connection.copy(QUERY, f"compression {compression}").columns()[0]) == ROWS
                )
                outcomes.append("whole")
            except ServerError as error:
                assert error.sqlstate == "53200", error
                outcomes.append("failed")
            workers_end(pid)
            limit_address_space(pid, "unlimited")
            assert connection.copy("(SELECT 1)").columns() == [[1]]
    assert outcomes[0] == "failed" and outcomes[-1] == "whole", outcomes
    assert server.crashes() == []
