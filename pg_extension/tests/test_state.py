"""Tables that outlive chunks: sent before the chunks that use them, and dropped with their
statement.
"""

import itertools
import os
import socket
import time

import pytest
from client import Limits, ServerError, Tables, receive_state
from test_interrupts import LONG, begin, expect
from test_memory import MIB, most_while_running, pid_of, private_bytes

ROWS = 60_000
CHUNK_ROWS = 5000
STATIONS = 500
# Repeated strings and numbers, in chunks large enough for an encoding thread.
QUERY = f"""(SELECT i, 'station ' || md5((i % {STATIONS})::text), (i % 300)::bigint * 7919000017,
    'in ' || md5((i % 90)::text)
    FROM (SELECT generate_series(1, {ROWS}) i) s)"""
OPTIONS = f"chunk_rows {CHUNK_ROWS}"
# The size of the distinct strings of the first column.
ENTRIES_BYTES = STATIONS * len("station " + 32 * "x")
SPARE_PROCESSORS = len(os.sched_getaffinity(0)) - 1
WORDS = (
    "('{carefully,furiously,final,deposits,sleep,quickly,"
    "ironic,accounts,the,pending,requests,above}'::text[])"
)
STATE, CHUNK = 0x88, 0x83


@pytest.fixture(scope="module")
def expected(server):
    with server.connect() as connection:
        return connection.copy(QUERY, "compression none").columns()


@pytest.mark.parametrize("threads", [0, 1, 4])
@pytest.mark.parametrize("compression", ["light", "lz4", "'zstd'"])
def test_entries_are_sent_once(connection, expected, compression, threads):
    connection.run(f"SET dray.encoding_threads = {threads}")
    result = connection.copy(QUERY, f"compression {compression}, {OPTIONS}, checksums on")
    assert result.columns() == expected
    # Each encoder has tables of its own.
    states, encoders = result.state_frames(), max(1, min(threads, SPARE_PROCESSORS))
    assert 1 <= len(states) <= encoders
    stations = [
        table
        for table in result.tables().live.values()
        if bytes(table.entries[0]).startswith(b"station")
    ]
    assert [len(table.entries) for table in stations] == [STATIONS] * len(states)
    kinds = [kind for kind, _ in result.frames()]
    assert kinds.index(STATE) == kinds.index(CHUNK) - 1
    chunks = [payload for kind, payload in result.frames() if kind == CHUNK]
    assert len(chunks) == ROWS // CHUNK_ROWS
    # No chunk contains the entries.
    assert max(map(len, chunks)) < ENTRIES_BYTES


def test_nothing_is_kept_of_what_is_not_encoded(connection, expected):
    for compression in ("none", "auto"):
        result = connection.copy(QUERY, f"compression {compression}, {OPTIONS}")
        assert result.state_frames() == [] and result.columns() == expected


def test_entries_that_are_new_are_appended(connection):
    query = (
        "(SELECT md5((i / 50 % 100 + i / 1000)::text), i FROM (SELECT generate_series(0, "
        "59999) i) s)"
    )
    result = connection.copy(query, f"compression light, {OPTIONS}")
    plain = connection.copy(query, "compression none")
    assert result.columns() == plain.columns()
    assert 2 <= len(result.state_frames())
    # Less than if each chunk had sent all of its entries.
    assert sum(map(len, result.state_frames())) < 32 * 1000


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize(
    "limits",
    [
        Limits(chunk_bytes_max=65536, decoded_bytes_max=30_000, row_bytes_max=1 << 20),
        Limits(chunk_bytes_max=4096, decoded_bytes_max=1 << 20, row_bytes_max=1 << 20),
        Limits(chunk_bytes_max=1 << 20, decoded_bytes_max=1 << 20, row_bytes_max=1 << 20),
    ],
)
def test_they_keep_the_limits_of_the_client(connection, expected, limits, threads):
    """The decoder of the specification checks frames and tables against the limits."""
    connection.run(f"SET dray.encoding_threads = {threads}")
    options = ", ".join(f"{name} {value}" for name, value in vars(limits).items())
    result = connection.copy(QUERY, f"compression light, {options}")
    assert result.columns(limits) == expected
    assert all(len(payload) <= limits.chunk_bytes_max for payload in result.state_frames())


def test_a_statement_begins_without_tables(server, connection, expected):
    """No table survives its statement, however that ended."""
    options = f"compression light, {OPTIONS}"
    connection.run("BEGIN; SAVEPOINT s")
    for _ in range(3):
        assert connection.copy(QUERY, options).columns() == expected
        with pytest.raises(ServerError, match="division by zero") as caught:
            connection.copy(f"(SELECT *, 1 / (i - 41000) FROM {QUERY} s)", options)
        # The failed statement had sent tables.
        assert caught.value.result.state_frames()
        connection.run("ROLLBACK TO s")
    connection.run("COMMIT")
    begin(connection, LONG, options)
    while connection.read_message()[0] != b"d":
        pass
    connection.cancel()
    expect(connection, "user request", "57014")
    assert connection.copy(QUERY, options).columns() == expected
    assert (
        connection.copy_bound(
            f"(SELECT * FROM {QUERY} s WHERE $1)", [(16, "true")], options
        ).columns()
        == expected
    )
    assert server.crashes() == []


def test_rows_by_themselves_have_none(connection):
    result = connection.copy(
        f"(SELECT * FROM {QUERY} s LIMIT 500)", "compression light, chunk_rows 1"
    )
    assert result.state_frames() == [] and len(result.columns()[0]) == 500


def test_symbols_of_a_stream_that_adapts(server):
    """A slow client on another host gets texts as symbols, and their table once.

    The choice depends on how fast this machine encodes at the moment, so the test tries several
    rates of reading, again and again.
    """
    # Random digits: other compressors gain nothing here and take longer.
    query = (
        f"(SELECT concat(({WORDS})[1 + i % 12], ' ', md5(i::text)) AS a FROM (SELECT "
        "generate_series(1, 200000) i) s)"
    )
    with server.connect() as connection:
        expected = connection.copy(query, "compression none").columns()
    tried, deadline = [], time.monotonic() + 120
    for bytes_per_second in itertools.cycle((60e6, 30e6, 15e6, 7.5e6, 4e6)):
        with server.connect(address="127.0.0.2") as connection:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            connection.read = slowly(connection.read, bytes_per_second)
            result = connection.copy(query, "compression auto")
        assert result.messages()[0].fields["compression"] == "auto"
        assert result.columns() == expected
        codes = [payload[64 + 4] for payload in result.state_frames()]
        if 0 in codes:
            return
        tried.append((bytes_per_second, codes))
        assert time.monotonic() < deadline, f"no symbols at these bytes per second: {tried}"


def slowly(read, bytes_per_second: float):
    start, came = time.monotonic(), 0

    def wrapped(count: int) -> bytes:
        nonlocal came
        came += count
        time.sleep(max(0.0, start + came / bytes_per_second - time.monotonic()))
        return read(count)

    return wrapped


@pytest.mark.parametrize("threads", [0, 1])
def test_wide_results_keep_little(connection, threads):
    """All tables together have at most 2 MiB, whatever the client accepts."""
    pid = pid_of(connection)
    # Compiled expressions would take more memory than everything else.
    connection.run(f"SET jit = off; SET dray.encoding_threads = {threads}")
    # Each chunk has ten new strings and ten old ones, so its tables grow.
    number = (
        "CASE WHEN i % 20 < 10 THEN i / 200 * 10 + i % 10 ELSE (i % 10 * 977 + i / 200 * 13) "
        "% (i / 200 * 10 + 1) END"
    )
    columns = ", ".join(f"md5((n + {c} * 100000)::text) || 'column'" for c in range(300))
    query = (
        f"(SELECT {columns} FROM (SELECT {number} n FROM (SELECT generate_series(0, 17999) i) s) t)"
    )
    options = (
        "compression light, chunk_rows 200, chunk_bytes_max 16777216, decoded_bytes_max 1073741824"
    )
    connection.copy("(SELECT 1)")
    idle = private_bytes(pid)
    begin(connection, query, options)
    most, _ = most_while_running(connection, pid)
    print(f"{(most - idle) / MIB:.1f} MiB were taken")
    assert most - idle <= 40 * MIB
    result = connection.copy(query, options)
    tables, sizes = Tables(), []
    for payload in result.state_frames():
        receive_state(payload, tables)
        sizes.append(sum(table.decoded_bytes for table in tables.live.values()))
    print(
        f"{max(sizes) / MIB:.1f} MiB of tables, "
        f"{sum(map(len, result.state_frames())) / MIB:.1f} MiB of state frames"
    )
    assert 1 * MIB < max(sizes) <= 2 * MIB
    assert len(result.state_frames()) > 10
    assert all(len(payload) <= MIB for payload in result.state_frames())
