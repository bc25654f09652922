"""Every allocation may fail, which must be an error and never an abort. The extension is built with
an allocator that fails on demand.
"""

import time

import pytest
from client import ServerError
from server import Server, install

QUERY = """(SELECT i, md5(i::text), i::numeric(12,2), ARRAY[i, NULL], i::text || 'x',
    CASE WHEN i % 3 > 0 THEN i END, (i, 'y')::pair, '101'::varbit, i % 5 = 0,
    ('[' || i || ',)')::int4range, 'x'::text[]
    FROM (SELECT generate_series(1, {}) i) s)"""


@pytest.fixture(scope="module")
def failing(pg_config):
    with Server(pg_config, features="test-allocator") as server:
        with server.connect() as connection:
            connection.run("CREATE TYPE pair AS (n integer, t text)")
        yield server
    install(pg_config)


@pytest.mark.parametrize("compression", ["none", "light", "lz4", "'zstd'"])
@pytest.mark.parametrize("rows", [1, 3000])
def test_every_allocation_may_fail(failing, compression, rows):
    query = QUERY.format(rows).replace("'x'::text[]", "ARRAY['x', NULL]::name[]")
    outcomes = set()
    with failing.connect() as connection:
        connection.run("SELECT pg_catalog.dray_load()")
        whole = connection.copy(query, f"compression {compression}").columns()
        n = 1
        while True:
            connection.run(f"SET dray.test_fail_after = {n}")
            try:
                result = connection.run(
                    f"COPY {query} TO STDOUT (FORMAT dray, compression {compression})"
                )
            except ServerError as error:
                assert error.sqlstate == "53200", error
                outcomes.add("failed")
                result = None
            connection.run("SET dray.test_fail_after = 0")
            if result is not None:
                # The statement made fewer than n allocations.
                assert result.columns() == whole
                break
            n += 1 if n < 400 else n // 50
    assert outcomes == {"failed"} and n > 40
    assert failing.crashes() == []


LARGE = [
    # Chunks of many rows, rows larger than a chunk, strings that compress and strings that don't,
    # and arrays with one item for each byte.
    (
        QUERY.format(60000).replace("'x'::text[]", "ARRAY['x', NULL]::name[]"),
        "chunk_bytes_max 33554432, row_bytes_max 33554432, chunk_rows 1000000",
    ),
    # Stream dictionaries that grow.
    (
        "(SELECT md5((i % 100 + i / 500)::text), (i % 70)::bigint * 7919000017 FROM "
        "(SELECT generate_series(1, 60000) i) s)",
        "chunk_rows 5000",
    ),
    # Chunks that another thread encodes.
    (QUERY.format(60000).replace("'x'::text[]", "ARRAY['x', NULL]::name[]"), ""),
    (
        "(SELECT repeat(md5('x'), 200000), (SELECT string_agg(md5(i::text), '') "
        "FROM generate_series(1, 100000) i))",
        "",
    ),
    (
        "(SELECT (SELECT array_agg(i % 10) FROM generate_series(1, 500000) i), "
        "repeat('1', 1000000)::varbit)",
        "",
    ),
    (
        "(SELECT ('{' || repeat('1,', 1000000) || '1}')::inet[]::text[])".replace(
            "1,", "::,"
        ).replace("1}", "::}"),
        "",
    ),
    ("(SELECT ('{' || repeat('::,', 300000) || '::}')::inet[])", ""),
    # 14 bytes on the wire, 131,072 as text.
    (
        "(SELECT array_fill('1e131071'::numeric, ARRAY[300]), "
        "'1e131071'::numeric, '1e131071'::numeric)",
        "",
    ),
    (
        "(SELECT array_fill(ROW(1, NULL)::pair, ARRAY[300000]), "
        "array_fill(NULL::pair, ARRAY[300000]))",
        "",
    ),
]


@pytest.mark.parametrize("compression", ["none", "light", "'zstd'"])
@pytest.mark.parametrize("query, options", LARGE)
def test_large_chunks_and_rows(failing, compression, query, options):
    options = ", ".join(filter(None, [options, f"compression {compression}"]))
    with failing.connect() as connection:
        connection.run("SELECT pg_catalog.dray_load()")
        n, failures = 1, 0
        while True:
            connection.run(f"SET dray.test_fail_after = {n}")
            try:
                connection.run(f"COPY {query} TO STDOUT (FORMAT dray, {options})")
                break
            except ServerError as error:
                assert error.sqlstate == "53200", error
                failures += 1
            n += 1 + n // 4
            connection.run("SET dray.test_fail_after = 0")
    assert failures > 10
    assert failing.crashes() == []


def test_results_of_many_types(failing):
    """The memory that a stream reserves grows with the number of its types."""
    with failing.connect() as connection:
        connection.run(
            "SELECT pg_catalog.dray_load(); CREATE TYPE level0 AS (a integer, b integer)"
        )
        for level in range(1, 13):
            connection.run(
                f"CREATE TYPE level{level} AS (a level{level - 1}, "
                f"a_long_name_for_an_attribute_of_it level{level - 1})"
            )
        n, failures = 1, 0
        while True:
            connection.run(f"SET dray.test_fail_after = {n}")
            try:
                connection.run("COPY (SELECT NULL::level12) TO STDOUT (FORMAT dray)")
                break
            except ServerError as error:
                assert error.sqlstate == "53200", error
                failures += 1
            n += 1 + n // 3
            connection.run("SET dray.test_fail_after = 0")
    assert failures > 10
    assert failing.crashes() == []


def test_a_send_that_fails(failing):
    """After a failed send the client's part of the message is unknown, so the session ends. The log
    has the error that could not be sent.
    """
    with failing.connect() as connection, failing.connect() as oracle:
        connection.run("SELECT pg_catalog.dray_load()")
        pid = connection.value("SELECT pg_backend_pid()")
        connection.run("SET dray.test_fail_send = on")
        assert connection.copy("(SELECT 1)").columns()
        with pytest.raises(ConnectionError):
            connection.copy(
                "(SELECT i, md5(i::text) FROM generate_series(1, 60000) i)", "compression none"
            )
        deadline = time.monotonic() + 60
        while oracle.value(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}") != "0":
            assert time.monotonic() < deadline, "the session goes on"
            time.sleep(0.05)
    log = failing.log.read_text(errors="replace")
    assert "a test lets this send fail" in log
    assert (
        "FATAL:  terminating connection because a message to the client could not be completed"
        in log
    )
    assert failing.crashes() == []
