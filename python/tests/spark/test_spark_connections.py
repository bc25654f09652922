"""Sources that allow few connections: whoever is refused waits for the others."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pymysql
import pytest
from mysql_server import DATABASE, MariaServer
from postgres_server import PostgresServer
from reading import cancel, failure, load, partitions, snapshots, wait_for
from writing import made_by, rows, save

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = 100_000
REFUSED = 'too many connections for role "limited"'


@pytest.fixture
def few(postgres: PostgresServer) -> Iterator[Callable[[int], None]]:
    """Sets how many connections the role `limited` may have, which reads and writes."""
    postgres.run(
        "DROP TABLE IF EXISTS target",
        "CREATE TABLE target (id bigint)",
        "CREATE ROLE limited LOGIN",
        "GRANT ALL ON SCHEMA public TO limited",
        "GRANT ALL ON orders, target TO limited",
    )
    yield lambda limit: postgres.run(f"ALTER ROLE limited CONNECTION LIMIT {limit}")
    postgres.run("DROP OWNED BY limited", "DROP ROLE limited")


def connected(postgres: PostgresServer) -> psycopg.Connection[Any]:
    """A connection of the role, as soon as it is let in."""

    def connect() -> psycopg.Connection[Any] | None:
        try:
            return psycopg.connect(postgres.uri(user="limited"), autocommit=True)
        except psycopg.OperationalError as error:
            assert "too many connections" in str(error)
            return None

    connection: psycopg.Connection[Any] = wait_for(connect)
    return connection


def run(work: Callable[[], object], found: list[object]) -> threading.Thread:
    """A thread that works. What it returns or raises is found."""

    def one() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=one)
    thread.start()
    return thread


def test_two_scans_at_a_time(
    spark: SparkSession, postgres: PostgresServer, few: Callable[[int], None]
) -> None:
    """Three connections are for two snapshots and one task, though two tasks run at a time."""
    few(3)
    frames = [
        load(
            spark, postgres.uri(user="limited"), dbtable="orders", numPartitions=8, pushDown="false"
        )
        for _ in range(2)
    ]
    assert all(partitions(frame.select("id")) > 3 for frame in frames)
    wait_for(lambda: snapshots(postgres) == 0)
    start = postgres.log_bytes()
    found: list[object] = []
    with connected(postgres):
        # Nobody can read a part as long as there are two snapshots beside this one.
        scans = [run(frame.select("id", "name").collect, found) for frame in frames]
        wait_for(lambda: REFUSED in postgres.log(start))
    for scan in scans:
        scan.join()
    assert [len(read) if isinstance(read, list) else read for read in found] == [ORDERS] * 2


def test_tasks_that_write(
    spark: SparkSession, postgres: PostgresServer, few: Callable[[int], None], tmp_path: Path
) -> None:
    few(3)
    begin = tmp_path / "begin"

    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        (tmp_path / f"task {index}").touch()
        while not begin.exists():
            time.sleep(0.05)
        return numbers

    found: list[object] = []
    frame = made_by(spark, 1000, make)
    writer = run(lambda: save(frame, postgres.uri(user="limited"), "target"), found)
    wait_for(lambda: len(list(tmp_path.glob("task *"))) == 2)
    with connected(postgres), connected(postgres):
        start = postgres.log_bytes()
        begin.touch()
        wait_for(lambda: REFUSED in postgres.log(start))
    writer.join()
    assert found == [None]
    assert rows(postgres, "SELECT count(*), count(DISTINCT id) FROM target") == [(1000, 1000)]


def test_a_job_that_is_cancelled_while_it_waits(
    spark: SparkSession, postgres: PostgresServer, few: Callable[[int], None]
) -> None:
    few(2)
    given = {"dbtable": "orders", "numPartitions": 2, "connectionWait": 3600}
    frame = load(spark, postgres.uri(user="limited"), **given).select("id")
    # To plan takes both connections. Of them the snapshot keeps one, and somebody else has the
    # other one before the tasks begin.
    assert partitions(frame) == 2
    with connected(postgres):
        start = postgres.log_bytes()
        failed: list[str] = []
        reader = threading.Thread(target=lambda: failed.append(failure(frame.collect)))
        reader.start()
        wait_for(lambda: REFUSED in postgres.log(start))
        cancel(spark, reader)
    assert "cancelled" in failed[0]


def test_a_user_of_mariadb(spark: SparkSession, maria: MariaServer) -> None:
    maria.run(
        "CREATE OR REPLACE USER limited@localhost WITH MAX_USER_CONNECTIONS 1",
        f"GRANT ALL ON {DATABASE}.* TO limited@localhost",
    )
    url = f"mysql://limited@localhost/{DATABASE}?socket={maria.socket}"
    frames = [load(spark, url, dbtable="orders", maxConnections=1) for _ in range(2)]
    held = pymysql.connect(
        unix_socket=str(maria.socket), ssl_disabled=True, user="limited", database=DATABASE
    )
    found: list[object] = []
    with contextlib.closing(held):
        scans = [run(frame.collect, found) for frame in frames]
        # Without waiting, both would have failed.
        time.sleep(2)
        assert found == []
    for scan in scans:
        scan.join()
    assert [len(read) if isinstance(read, list) else read for read in found] == [ORDERS] * 2
    maria.run("DROP USER limited@localhost")
