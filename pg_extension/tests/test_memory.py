"""The memory of a backend: released after each transfer, and bounded while one runs."""

import os
import time

import pytest
from client import ServerError
from server import Server
from test_interrupts import LONG, begin

MIB = 1 << 20
TRANSFERS = 1000
WARM_UP = 100
# Rounding to pages, and the end of the heap.
PRIVATE_GROWTH_MAX = MIB // 2
# Small enough to reveal a leak of 10 bytes in each transfer.
CONTEXTS_GROWTH_MAX = 8 << 10


def private_bytes(pid: int) -> int:
    """The private memory of a process, without shared buffers and mapped files."""
    line = next(line for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


def pid_of(connection) -> int:
    return int(connection.value("SELECT pg_backend_pid()"))


def context_bytes(connection) -> tuple[int, int]:
    """The bytes allocated by PostgreSQL's memory contexts: in TopMemoryContext, and in all."""
    row = connection.rows(
        "SELECT sum(used_bytes) FILTER (WHERE name = 'TopMemoryContext'), sum(used_bytes)"
        " FROM pg_backend_memory_contexts"
    )[0]
    return int(row[0]), int(row[1])


TABLES = """
CREATE TYPE kept_pair AS (n integer, t text);
CREATE TYPE kept_mood AS ENUM ('sad', 'happy');
CREATE TABLE kept_small (a integer NOT NULL, b text);
INSERT INTO kept_small SELECT i, 'row ' || i FROM generate_series(1, 20) i;
CREATE TABLE kept_large (i integer NOT NULL, h text, f float8, n numeric(12,2));
INSERT INTO kept_large SELECT i, md5(i::text) || md5((i + 1)::text), i / 3.0, i / 100.0
    FROM generate_series(1, 50000) i;
CREATE TABLE kept_kinds (bo boolean, i2 smallint, i4 integer, i8 bigint, f4 real,
    f8 double precision, o oid, n1 numeric(15,2),
    n2 numeric(30,5), n3 numeric(60,4), n4 numeric, t text, v varchar(20), c character(5),
    n name, b bytea, d date, ti time,
    ts timestamp, tz timestamptz, u uuid, m money, j jsonb, iv interval, bi varbit, ne inet,
    mo kept_mood, ai integer[], at text[],
    p kept_pair, ap kept_pair[], r int4range, mr int4multirange, big text, moved text);
-- One value is compressed inline, the other stored out of line uncompressed.
ALTER TABLE kept_kinds ALTER moved SET STORAGE EXTERNAL;
INSERT INTO kept_kinds SELECT i % 2 = 0, i, i, i, i / 3.0, i / 3.0, i, i / 100.0, i / 7.0,
    i * 1e40, i / 9.0, 'x' || i, i, i,
    'n' || i, decode(md5(i::text), 'hex'), date '2000-01-01' + i,
    time '00:00' + i * interval '1 s', now(), now(),
    md5(i::text)::uuid, i, json_build_object('i', i), i * interval '1 h', i::bit(20), '10.0.0.1',
    'sad', ARRAY[i, NULL],
    ARRAY['x', NULL], ROW(i, 'y'::text)::kept_pair, ARRAY[ROW(i, 'z'::text)::kept_pair],
    int4range(1, i + 1), int4multirange(int4range(1, i + 1)),
    repeat('compressed ' || i, 1000), repeat(md5(i::text), 200) FROM generate_series(1, 150) i;
INSERT INTO kept_kinds SELECT FROM generate_series(1, 50);
"""


@pytest.fixture(scope="module")
def frugal(server):
    """A server whose malloc returns freed memory at once. By default glibc adapts and keeps up to
    some 12 MB after large allocations.
    """
    settings = {
        "MALLOC_MMAP_THRESHOLD_": "131072",
        "MALLOC_TRIM_THRESHOLD_": "131072",
        "MALLOC_TOP_PAD_": "0",
    }
    os.environ.update(settings)
    try:
        with Server(server.pg_config, features=None) as frugal, frugal.connect() as connection:
            # PostgreSQL 15 leaks a few kilobytes in LLVM for each compiled statement.
            connection.run("ALTER SYSTEM SET jit = off")
            connection.run("SELECT pg_reload_conf()")
            connection.run(TABLES)
            yield frugal
            assert frugal.crashes() == []
    finally:
        for name in settings:
            del os.environ[name]


def fails(connection, what: str, match: str, options: str = "chunk_bytes_max 65536"):
    with pytest.raises(ServerError, match=match):
        connection.copy(what, options)


def cancelled(connection):
    connection.send(f"SELECT pg_catalog.dray_load(); COPY {LONG} TO STDOUT (FORMAT dray)")
    while connection.read_message()[0] != b"d":
        pass
    connection.cancel()
    with pytest.raises(ServerError, match="user request"):
        connection.read_result()


def timed_out(connection):
    # The error restores the setting, so no other statement has so little time.
    connection.run("BEGIN; SET LOCAL statement_timeout = 20")
    fails(connection, LONG, "statement timeout")
    connection.run("ROLLBACK")


def rolled_back(connection):
    connection.run("BEGIN; SAVEPOINT s")
    fails(connection, "(SELECT t, 1 / (i4 - 100) FROM kept_kinds)", "division by zero")
    connection.run("ROLLBACK TO s")
    connection.copy("kept_small")
    connection.run("COMMIT")


def refused(connection):
    with pytest.raises(ServerError, match="invalid input syntax"):
        connection.copy_bound("(SELECT $1)", [(23, "five")])


TURNS = [
    lambda connection: connection.copy("kept_small"),
    lambda connection: connection.copy("kept_kinds"),
    lambda connection: connection.copy("kept_large", "chunk_bytes_max 65536"),
    lambda connection: fails(
        connection, "(SELECT h, 1 / (i - 45000) FROM kept_large)", "division by zero"
    ),
    lambda connection: connection.copy(
        "kept_kinds", "compression light, chunk_bytes_max 4096, checksums on"
    ),
    lambda connection: connection.copy(
        "(SELECT n1, n2, n3, n4 FROM kept_kinds)", "numeric 'decimal(60,20)'"
    ),
    cancelled,
    lambda connection: connection.copy(
        "(SELECT n1, n2, n3, n4 FROM kept_kinds)", "numeric float64, compression 'zstd'"
    ),
    lambda connection: fails(
        connection,
        "(SELECT p, CASE WHEN i4 = 140 THEN 'infinity'::date END FROM kept_kinds)",
        "infinity",
    ),
    lambda connection: connection.copy("kept_large", "compression light, chunk_bytes_max 8388608"),
    # With stream dictionaries, to the end and to an error.
    lambda connection: connection.copy(
        "(SELECT md5((i % 500)::text), i % 90 * 7919000017 FROM kept_large)",
        "compression light, chunk_rows 4000",
    ),
    lambda connection: fails(
        connection,
        "(SELECT md5((i % 500)::text), 1 / (i - 45000) FROM kept_large)",
        "division by zero",
        "compression light, chunk_rows 4000",
    ),
    # Encoded by another thread.
    lambda connection: connection.copy("kept_large", "compression light, chunk_bytes_max 600000"),
    rolled_back,
    lambda connection: fails(
        connection, "kept_kinds", "raise row_bytes_max", "chunk_bytes_max 4096, row_bytes_max 4096"
    ),
    lambda connection: connection.copy(
        "(SELECT ai, at, p, ap, r, mr, iv, ne, bi, j FROM kept_kinds)", "chunk_rows 10"
    ),
    lambda connection: connection.copy(
        "(SELECT repeat(h, 100) FROM kept_large LIMIT 200)", "compression 'zstd:5'"
    ),
    lambda connection: fails(connection, "(SELECT missing FROM kept_kinds)", "does not exist"),
    timed_out,
    lambda connection: connection.copy("(SELECT FROM kept_small)"),
    lambda connection: connection.copy_bound(
        "(SELECT t, i4 + $1, $2 FROM kept_kinds)", [(23, "5"), (25, "x" * 5000)]
    ),
    refused,
]


def test_a_thousand_transfers(frugal):
    sizes = []
    with frugal.connect() as connection:
        pid = pid_of(connection)
        for turn in range(TRANSFERS):
            TURNS[turn % len(TURNS)](connection)
            if turn + 1 >= WARM_UP and (turn + 1 - WARM_UP) % len(TURNS) == 0:
                sizes.append((private_bytes(pid), *context_bytes(connection)))
    print(
        "private, TopMemoryContext, all contexts:",
        sizes[0],
        sizes[-1],
        tuple(map(max, zip(*sizes))),
    )
    private, top, contexts = zip(*sizes)
    assert max(private) <= private[0] + PRIVATE_GROWTH_MAX, private
    assert top[-1] <= top[0] + CONTEXTS_GROWTH_MAX, top
    assert contexts[-1] <= contexts[0] + CONTEXTS_GROWTH_MAX, contexts


def most_while_running(connection, pid: int) -> tuple[int, int]:
    """Reads and discards a result. Returns the backend's peak memory and the bytes received."""
    most = came = messages = 0
    while True:
        kind, body = connection.read_message()
        came += len(body)
        messages += 1
        if kind == b"E":
            raise AssertionError(body)
        if kind == b"Z":
            return most, came
        if messages % 8 == 0:
            most = max(most, private_bytes(pid))


@pytest.mark.parametrize(
    "chunk_bytes_max, megabytes, compression",
    [
        (1 * MIB, 1024, "none"),
        (16 * MIB, 256, "none"),
        (1 * MIB, 128, "light"),
        (16 * MIB, 64, "zstd"),
    ],
)
def test_memory_does_not_grow_with_the_result(connection, chunk_bytes_max, megabytes, compression):
    pid = pid_of(connection)
    connection.copy("(SELECT 1)")
    idle = private_bytes(pid)
    if compression == "none":
        rows = (
            "SELECT i, repeat(md5(i::text), 32) FROM "
            f"(SELECT generate_series(1, {megabytes << 10}) i) s"
        )
    else:
        # Text that does not compress well.
        text = "md5(i::text) || md5('a' || i) || md5('b' || i) || md5('c' || i)"
        rows = f"SELECT i, {text} FROM (SELECT generate_series(1, {megabytes << 13}) i) s"
    begin(
        connection, f"({rows})", f"chunk_bytes_max {chunk_bytes_max}, compression '{compression}'"
    )
    most, came = most_while_running(connection, pid)
    print(f"{came >> 20} MiB came, {(most - idle) / MIB:.1f} MiB were taken")
    assert came >= (megabytes << 20 if compression == "none" else megabytes << 18)
    assert most - idle <= 32 * MIB + 4 * chunk_bytes_max


@pytest.mark.parametrize("compression", ["none", "light", "zstd"])
def test_client_that_stops_reading(server, connection, compression):
    pid = pid_of(connection)
    connection.copy("(SELECT 1)")
    idle = private_bytes(pid)
    begin(connection, options=f"compression {compression}")
    # A busy machine may take a while to fill the sockets.
    deadline = time.monotonic() + 30
    grows = True
    while grows:
        before = private_bytes(pid)
        time.sleep(1)
        grows = private_bytes(pid) > before + MIB
        assert time.monotonic() < deadline, "the memory grows all the time"
    print(f"{(before - idle) / MIB:.1f} MiB were taken")
    assert before - idle <= 32 * MIB + 4 * MIB
    with server.connect() as other:
        other.run(f"SELECT pg_terminate_backend({pid})")
        deadline = time.monotonic() + 60
        while other.rows(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
            assert time.monotonic() < deadline, "the backend does not end"
            time.sleep(0.02)
