"""Tables that engines read, somebody who changes them meanwhile, and what has to come out."""

from __future__ import annotations

import datetime
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pyarrow as pa
from postgres_server import PostgresServer

PAIRS = 20_000
ROWS = 2 * PAIRS
TOKEN = "s3cret"

# Rows 2k and 2k + 1 are a pair, whose amounts sum up to 0.
DDL = f"""
CREATE TABLE pairs (id integer NOT NULL, amount bigint NOT NULL, filler text);
INSERT INTO pairs SELECT i, CASE WHEN i % 2 = 0 THEN i ELSE 1 - i END, repeat('x', i % 70)
    FROM generate_series(0, {ROWS - 1}) i;
CREATE TABLE nothing (id integer, name text);
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE kinds (
    id integer, big bigint, small smallint, flag boolean, name text, price numeric(12,2),
    free numeric, day date, at timestamp, instant timestamptz, x float8, y real, bytes bytea,
    label uuid, doc jsonb, list integer[], padded char(3), feeling mood
);
INSERT INTO kinds VALUES
    (1, 9223372036854775807, -7, true, 'it''s \\ a', 1.50, 1.123456789, '2020-02-29',
     '2020-02-29 03:04:05.678901', '2020-02-29 03:04:05.678901+02', 0.1, 0.5, '\\x00ff',
     '00112233-4455-6677-8899-aabbccddeeff', '{{"a": 1}}', '{{1,NULL}}', 'x', 'sad'),
    (-2, -9223372036854775807, 7, false, '', -99.99, -0.5, '0001-01-01', '1700-01-01', '1969-12-31',
     -0.0, -1, '', '00000000-0000-0000-0000-000000000000', '[]', '{{}}', 'abc', 'happy'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL);
ANALYZE;
"""

# The same pairs, and a table with names and types that MySQL and MariaDB alone have.
MARIA_DDL = [
    "CREATE TABLE pairs (id int PRIMARY KEY, amount bigint NOT NULL, filler text)",
    "INSERT INTO pairs SELECT seq, IF(seq % 2 = 0, seq, -seq + 1), repeat('x', seq % 70) "
    f"FROM seq_0_to_{ROWS - 1}",
    "ANALYZE TABLE pairs",
    """CREATE TABLE `a ``"kind"` (
        `the ``"id"` int, small smallint, price decimal(12,2), made year, name varchar(9),
        doc json, day date NOT NULL
    )""",
    """INSERT INTO `a ``"kind"` VALUES (1, -7, 1.50, 1970, 'a', '{"a": 1}', '2020-02-29'),
        (-2, NULL, -99.99, 2070, 'A', NULL, '0000-00-00')""",
]

UTC = datetime.timezone.utc
#: What is in `kinds`, by columns.
KINDS = {
    "id": [1, -2, None],
    "big": [2**63 - 1, 1 - 2**63, None],
    "small": [-7, 7, None],
    "flag": [True, False, None],
    "name": ["it's \\ a", "", None],
    "price": [Decimal("1.50"), Decimal("-99.99"), None],
    "free": ["1.123456789", "-0.5", None],
    "day": [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), None],
    "at": [
        datetime.datetime(2020, 2, 29, 3, 4, 5, 678901),
        datetime.datetime(1700, 1, 1),
        None,
    ],
    "instant": [
        datetime.datetime(2020, 2, 29, 1, 4, 5, 678901, UTC),
        datetime.datetime(1969, 12, 31, tzinfo=UTC),
        None,
    ],
    "x": [0.1, -0.0, None],
    "y": [0.5, -1.0, None],
    "bytes": [b"\0\xff", b"", None],
    "list": [[1, None], [], None],
    "padded": ["x  ", "abc", None],
    "feeling": ["sad", "happy", None],
}


def pairs() -> pa.Table:
    """The rows of the table `pairs`."""
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "amount": [i if i % 2 == 0 else 1 - i for i in range(ROWS)],
            "filler": ["x" * (i % 70) for i in range(ROWS)],
        }
    )


@contextmanager
def copied(postgres: PostgresServer, table: str) -> Iterator[str]:
    """A table of the test's own, with the rows of another one."""
    name = f"{table}_{os.getpid()}_{time.monotonic_ns()}"
    postgres.run(f"CREATE TABLE {name} AS TABLE {table}", f"ANALYZE {name}")
    yield name
    # Somebody's plan may still hold it. The server is the tests' own.
    with postgres.connect() as connection:
        connection.execute("SET lock_timeout = '100ms'")
        try:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        except psycopg.errors.LockNotAvailable:
            pass


@contextmanager
def changing(postgres: PostgresServer, table: str) -> Iterator[None]:
    """Meanwhile pairs change, come and go. Each statement leaves whole pairs, whose sum is 0."""
    stopped = threading.Event()
    changes = 0

    def change() -> None:
        nonlocal changes
        with postgres.connect() as connection:
            while not stopped.is_set():
                turn, new = changes % 11, ROWS + 2 * changes
                connection.execute(
                    f"UPDATE {table} SET amount = -amount WHERE id / 2 % 11 = {turn}"
                )
                connection.execute(f"INSERT INTO {table} VALUES ({new}, 9), ({new + 1}, -9)")
                connection.execute(f"DELETE FROM {table} WHERE id / 2 = {changes % PAIRS}")
                changes += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while changes == 0:
            assert thread.is_alive() and time.monotonic() < deadline
            time.sleep(0.01)
        before = changes
        yield
        assert changes > before, "nothing has changed meanwhile"
    finally:
        stopped.set()
        thread.join()


def check_whole(ids: list[int], amounts: list[int]) -> None:
    """Check that the rows are those of one snapshot, each of them once."""
    found = set(ids)
    assert len(found) == len(ids), "a row came twice"
    assert all(i ^ 1 in found for i in found), "half of a pair is missing"
    assert sum(amounts) == 0
    assert len(ids) > ROWS / 2


def parts_read(postgres: PostgresServer, start: int) -> list[str]:
    """The statements by which parts were read, from a byte of the log on, on one line each."""
    entries = re.findall(r"execute <unnamed>: (SELECT .*?)\n(?=\d+ )", postgres.log(start), re.S)
    return [" ".join(entry.split()) for entry in entries if "regclass" not in entry]
