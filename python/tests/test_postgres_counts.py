"""The client counts rows and compares with the server's count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import psycopg2
import pytest
from postgres_server import PostgresServer
from proxy import Change, PostgresProxy, message

import dray

SQL = "SELECT i FROM generate_series(1, 200) i"


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[PostgresProxy]:
    proxy = PostgresProxy(postgres.uri())
    yield proxy
    proxy.close()


def _nth(tag: bytes, at: int, how: Callable[[bytes], bytes]) -> Change:
    """Apply a change to the nth message with a tag."""
    seen = 0

    def change(found: bytes, body: bytes) -> bytes:
        nonlocal seen
        whole = message(found, body)
        seen += found == tag
        return how(whole) if found == tag and seen == at else whole

    return change


FAULTS: list[Callable[[bytes], bytes]] = [lambda whole: b"", lambda whole: whole * 2]


def _read(source: Any, extension: bool) -> Any:
    return dray.read(source, SQL, extension=extension)["i"].to_pylist()


@pytest.mark.parametrize("at", [1, 2, 64, 200])
@pytest.mark.parametrize("fault", FAULTS, ids=["lost", "doubled"])
def test_a_row_too_few_or_too_many(
    proxy: PostgresProxy, fault: Callable[[bytes], bytes], at: int
) -> None:
    with dray.connect(proxy.uri) as connection:
        proxy.change = _nth(b"D", at, fault)
        with pytest.raises(
            dray.ProtocolError, match=r'ends with "SELECT 200", but (199|201) rows arrived'
        ):
            connection.query(SQL, extension=False).arrow()


def test_another_count(proxy: PostgresProxy, extension: bool) -> None:
    with dray.connect(proxy.uri) as connection:
        proxy.change = lambda tag, body: message(
            tag, body.replace(b"SELECT 200", b"SELECT 201").replace(b"COPY 200", b"COPY 201")
        )
        with pytest.raises(dray.ProtocolError, match="200 rows arrived"):
            connection.query(SQL, extension=extension).arrow()


def test_rows_after_the_end(proxy: PostgresProxy, extension: bool) -> None:
    row = message(b"D", b"\0\1\0\0\0\4\0\0\0\7")
    with dray.connect(proxy.uri) as connection:
        proxy.change = lambda tag, body: (
            message(tag, body) + (row if tag == b"C" and b" 200" in body else b"")
        )
        with pytest.raises(dray.ProtocolError, match="after the statement's end"):
            connection.query(SQL, extension=extension).arrow()


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
@pytest.mark.parametrize("fault", FAULTS, ids=["lost", "doubled"])
def test_a_drivers_count(
    proxy: PostgresProxy, driver: Any, fault: Callable[[bytes], bytes]
) -> None:
    connection = driver.connect(proxy.uri)
    try:
        # The header of the binary format is a message of its own.
        proxy.change = _nth(b"d", 100, fault)
        with pytest.raises(dray.ProtocolError, match=r"has sent 200 rows, but (199|201) arrived"):
            _read(connection, False)
    finally:
        connection.close()


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
def test_a_drivers_other_count(proxy: PostgresProxy, extension: bool, driver: Any) -> None:
    connection = driver.connect(proxy.uri)
    try:
        assert _read(connection, extension) == list(range(1, 201))
        proxy.change = lambda tag, body: message(tag, body.replace(b"COPY 200", b"COPY 201"))
        with pytest.raises(dray.ProtocolError, match="has sent 201 rows, but 200 arrived"):
            _read(connection, extension)
    finally:
        connection.close()


COUNTED = [
    ("INSERT INTO counted SELECT generate_series(1, 5) RETURNING n", 5),
    ("INSERT INTO counted VALUES (1), (2), (9) ON CONFLICT DO NOTHING RETURNING n", 1),
    (
        "INSERT INTO counted VALUES (1), (3) ON CONFLICT (n) DO UPDATE "
        "SET n = excluded.n + 100 RETURNING n",
        2,
    ),
    ("UPDATE counted SET n = n + 1000 WHERE n > 100 RETURNING n", 2),
    ("UPDATE counted_view SET n = n WHERE n > 1000 RETURNING n", 2),
    ("INSERT INTO counted_quiet VALUES (1), (-1), (2) RETURNING n", 2),
    ("UPDATE counted_parts SET n = n + 10 RETURNING n", 5),
    ("DELETE FROM counted_parts WHERE n > 12 RETURNING n", 3),
    ("WITH x AS (DELETE FROM counted RETURNING n) SELECT n FROM x WHERE n > 1000", 2),
    ("SELECT FROM generate_series(1, 3)", 3),
    ("TABLE counted", 0),
    ("EXECUTE counted_rows", 4),
    ("FETCH 2 FROM counted_cursor", 2),
    ("FETCH BACKWARD ALL FROM counted_cursor", 1),
    ("MOVE ALL IN counted_cursor", 0),
    ("CREATE TEMP TABLE counted_too AS SELECT generate_series(1, 7)", 0),
    ("SELECT 1 AS n INTO TEMP counted_three", 0),
    ("EXPLAIN SELECT 1", 1),
    ("SHOW work_mem", 1),
]
# The extension refuses rules, like COPY.
NOT_FOR_COPY = ("INSERT INTO counted_also VALUES (1), (2) RETURNING n", 2)


def test_counts_of_all_kinds(postgres: PostgresServer, extension: bool) -> None:
    """Correct counts are accepted for all kinds of statements."""
    with dray.connect(postgres.uri()) as connection:
        for sql in [
            "BEGIN",
            "CREATE TABLE counted (n integer PRIMARY KEY)",
            "CREATE VIEW counted_view AS SELECT n FROM counted",
            "CREATE TABLE counted_parts (n integer) PARTITION BY RANGE (n)",
            "CREATE TABLE counted_low PARTITION OF counted_parts FOR VALUES FROM (0) TO (10)",
            "CREATE TABLE counted_high PARTITION OF counted_parts FOR VALUES FROM (10) TO (100)",
            "INSERT INTO counted_parts SELECT generate_series(1, 5)",
            "CREATE TABLE counted_quiet (n integer)",
            "CREATE FUNCTION counted_skip() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RETURN CASE WHEN new.n > 0 THEN new END; END $$",
            "CREATE TRIGGER skip BEFORE INSERT ON counted_quiet FOR EACH ROW EXECUTE FUNCTION "
            "counted_skip()",
            "CREATE TABLE counted_also (n integer)",
            "CREATE RULE also AS ON INSERT TO counted_also DO ALSO "
            "INSERT INTO counted_quiet VALUES (new.n)",
            "PREPARE counted_rows AS SELECT generate_series(1, 4)",
            "DECLARE counted_cursor SCROLL CURSOR FOR SELECT generate_series(1, 9)",
        ]:
            connection.query(sql).arrow()
        for sql, rows in COUNTED if extension else [*COUNTED, NOT_FOR_COPY]:
            assert (
                connection.query(sql, extension="auto" if extension else False).arrow().num_rows
                == rows
            ), sql
        connection.query("ROLLBACK").arrow()
