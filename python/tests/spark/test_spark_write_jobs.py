"""Jobs that write: nothing shows before the commit, and failures leave nothing behind."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from postgres_server import PostgresServer
from proxy import Proxy
from reading import failure, wait_for
from writing import made_by, rows, save, unfinished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 20_000
SUM = "SELECT count(*), count(DISTINCT id), sum(id) FROM target"
OLD = [(1, 1, -1)]


@pytest.fixture
def target(postgres: PostgresServer) -> PostgresServer:
    postgres.run(
        "DROP TABLE IF EXISTS target",
        "CREATE TABLE target (id bigint UNIQUE)",
        "INSERT INTO target VALUES (-1)",
    )
    return postgres


def whole(extra: int = 1) -> list[tuple[object, ...]]:
    """All rows of a frame, and the one that was there before."""
    return [(ROWS + extra, ROWS + extra, ROWS * (ROWS - 1) // 2 - extra)]


def test_a_task_that_fails_at_first(spark: SparkSession, target: PostgresServer) -> None:
    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        for number in numbers:
            if number % 7000 == 6999 and context is not None and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")
            yield number

    start = target.log_bytes()
    save(made_by(spark, ROWS, make), target.uri(), "target", batchRows=100)
    assert rows(target, SUM) == whole()
    # Two attempts at each task have sent rows, beside the one that has only checked types.
    assert len(re.findall(r"(?:statement|>): COPY ", target.log(start))) == 5
    assert unfinished(target) == []


def test_a_job_that_fails(spark: SparkSession, target: PostgresServer) -> None:
    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            if number == ROWS - 1:
                raise RuntimeError("it always fails")
            yield number

    for mode in ("append", "overwrite"):
        frame = made_by(spark, ROWS, make)
        said = failure(lambda frame=frame, mode=mode: save(
            frame, target.uri(), "target", mode, batchRows=100))  # fmt: skip
        assert "it always fails" in said
        assert rows(target, SUM) == OLD
        assert unfinished(target) == []


def test_a_commit_that_fails(spark: SparkSession, target: PostgresServer) -> None:
    frame = spark.range(-5, ROWS)
    said = failure(lambda: save(frame, target.uri(), "target"))
    assert "target_id_key" in said and "[SQLSTATE 23505]" in said
    assert rows(target, SUM) == OLD
    target.run(
        "CREATE OR REPLACE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END'",
        "CREATE TRIGGER skip BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION skip()",
    )
    said = failure(lambda: save(spark.range(10), target.uri(), "target"))
    assert "tasks have written 10 rows" in said and "and 5 were moved there" in said
    assert rows(target, SUM) == OLD
    assert unfinished(target) == []


KEPT = {
    "a trigger": (
        "CREATE OR REPLACE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER keep BEFORE DELETE ON target FOR EACH ROW EXECUTE FUNCTION keep()",
    ),
    "a rule": ("CREATE RULE keep AS ON DELETE TO target DO INSTEAD NOTHING",),
}


@pytest.mark.parametrize("what", KEPT)
def test_rows_that_can_not_be_deleted(
    spark: SparkSession, target: PostgresServer, what: str
) -> None:
    target.run(*KEPT[what])
    said = failure(lambda: save(spark.range(10), target.uri(), "target", "overwrite"))
    assert 'rows of "public"."target" stay although they were deleted' in said
    assert rows(target, SUM) == OLD and unfinished(target) == []
    save(spark.range(10), target.uri(), "target", "overwrite", truncate="true")
    assert rows(target, SUM) == [(10, 10, 45)]


def test_a_job_that_is_cancelled(spark: SparkSession, target: PostgresServer) -> None:
    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            yield number
            if number == ROWS // 2 - 1:
                time.sleep(25)

    frame, failed = made_by(spark, ROWS, make), list[str]()
    writer = threading.Thread(
        target=lambda: failed.append(
            failure(lambda: save(frame, target.uri(), "target", batchRows=100))
        )
    )
    writer.start()
    target.wait_for_statement("FROM STDIN", 1)
    assert len(unfinished(target)) == 1
    spark.sparkContext.cancelAllJobs()
    writer.join(timeout=20)
    assert "cancelled" in failed[0]
    assert unfinished(target) == [] and rows(target, SUM) == OLD


def test_rows_of_attempts_that_do_not_count(spark: SparkSession, target: PostgresServer) -> None:
    """What an attempt leaves that was given up, such as a speculative copy or one whose executor
    was lost: rows that were committed, and a transaction that is still open."""
    open_one = target.connect()
    begun, go_on = threading.Event(), threading.Event()

    def leave() -> None:
        begun.set()
        (staging,) = wait_for(lambda: unfinished(target))
        target.run(f"INSERT INTO {staging} SELECT i, -1 FROM generate_series(1, 99) i")
        open_one.execute("BEGIN")
        open_one.execute(f"INSERT INTO {staging} VALUES (5, -2)")
        go_on.set()

    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            yield number
            if number == ROWS - 1:
                time.sleep(5)

    other = threading.Thread(target=leave)
    other.start()
    begun.wait()
    save(made_by(spark, ROWS, make), target.uri(), "target", batchRows=100)
    other.join()
    assert go_on.is_set()
    assert rows(target, SUM) == whole()
    assert unfinished(target) == []
    assert "terminating connection" in failure(lambda: open_one.execute("SELECT 1"))


def test_readers_see_all_or_nothing(spark: SparkSession, target: PostgresServer) -> None:
    seen, ended = set[object](), threading.Event()

    def look() -> None:
        with target.connect() as connection:
            while not ended.is_set():
                seen.update(connection.execute("SELECT count(*) FROM target").fetchall())

    reader = threading.Thread(target=look)
    reader.start()
    try:
        save(spark.range(ROWS).repartition(4), target.uri(), "target", batchRows=100)
        save(spark.range(500).repartition(4), target.uri(), "target", "overwrite", batchRows=100)
    finally:
        ended.set()
        reader.join()
    assert seen <= {(1,), (ROWS + 1,), (500,)}
    assert rows(target, "SELECT count(*) FROM target") == [(500,)]


def test_two_jobs_at_a_time(spark: SparkSession, target: PostgresServer) -> None:
    def both(mode: str, *frames: DataFrame) -> None:
        failed: list[BaseException] = []

        def one(frame: DataFrame) -> None:
            try:
                save(frame, target.uri(), "target", mode, batchRows=100)
            except BaseException as error:
                failed.append(error)

        writers = [threading.Thread(target=one, args=(frame,)) for frame in frames]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert failed == []

    both("append", spark.range(ROWS // 2), spark.range(ROWS // 2, ROWS))
    assert rows(target, SUM) == whole()
    # One of them is the last.
    both("overwrite", spark.range(300), spark.range(1000, 1400))
    assert rows(target, SUM) in ([(300, 300, 44850)], [(400, 400, 479800)])
    assert unfinished(target) == []


class Deaf(Proxy):
    """Loses the server's answer to a COMMIT after rows were moved, and then the connection."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(("127.0.0.1", server.port))
        self.uri = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self.deaf: list[socket.socket] = []

    def up(self, client: socket.socket, server: socket.socket) -> None:
        moves = False
        while data := client.recv(1 << 16):
            moves = moves or b"OVERRIDING SYSTEM VALUE" in data
            if moves and b"COMMIT" in data:
                self.deaf.append(server)
            server.sendall(data)
            if server in self.deaf:
                # The server does what it was told.
                time.sleep(1)
                return

    def down(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(1 << 16):
            if server not in self.deaf:
                client.sendall(data)


def test_a_commit_without_an_answer(spark: SparkSession, target: PostgresServer) -> None:
    proxy = Deaf(target)
    try:
        save(spark.range(ROWS), proxy.uri, "target")
    finally:
        proxy.close()
    assert len(proxy.deaf) == 1
    assert rows(target, SUM) == whole()
    assert unfinished(target) == []


class Lost(Deaf):
    """Loses the COMMIT itself, and somebody drops the staging table."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(server)
        self.target = server
        self.dropped = threading.Event()

    def up(self, client: socket.socket, server: socket.socket) -> None:
        moves = False
        while data := client.recv(1 << 16):
            moves = moves or b"OVERRIDING SYSTEM VALUE" in data
            if moves and b"COMMIT" in data:
                self.deaf.append(server)
                server.shutdown(socket.SHUT_RDWR)
                try:
                    (staging,) = unfinished(self.target)
                    self.target.run(f"DROP TABLE {staging}")
                finally:
                    self.dropped.set()
                return
            server.sendall(data)

    def down(self, server: socket.socket, client: socket.socket) -> None:
        super().down(server, client)
        if server in self.deaf:
            # The client notices nothing before.
            self.dropped.wait()


def test_a_commit_that_was_not_done(spark: SparkSession, target: PostgresServer) -> None:
    """A staging table that is gone does not prove that it was."""
    proxy = Lost(target)
    try:
        failure(lambda: save(spark.range(ROWS), proxy.uri, "target"))
    finally:
        proxy.close()
    assert len(proxy.deaf) == 1
    assert rows(target, SUM) == OLD
    assert unfinished(target) == []


def test_what_killed_drivers_have_left(spark: SparkSession, target: PostgresServer) -> None:
    meaning = (
        'rows that Spark application gone writes into "public"."target", while its driver holds '
        "a lock"
    )
    comments = {
        # Nobody has its lock, but an attempt still writes.
        "left": meaning,
        "held": meaning,
        "of another table": meaning.replace("target", "targets"),
        "of another writer": meaning.partition(",")[0],
        "of nobody": "",
    }
    tables = {what: f"dray_unfinished_target_{i:016x}" for i, what in enumerate(comments)}
    for what, table in tables.items():
        target.run(f"CREATE TABLE {table} (id bigint)")
        target.run(f"COMMENT ON TABLE {table} IS '{comments[what]}'")
    open_one = target.connect()
    open_one.execute("BEGIN")
    open_one.execute(f"INSERT INTO {tables['left']} VALUES (1)")
    del tables["left"]
    try:
        with target.connect() as driver:
            key = f"{0x44524159 << 32} + '{tables['held']}'::regclass::oid::bigint"
            driver.execute(f"SELECT pg_advisory_lock({key})")
            save(spark.range(ROWS), target.uri(), "target")
            assert sorted(unfinished(target)) == sorted(tables.values())
        assert "terminating connection" in failure(lambda: open_one.execute("SELECT 1"))
        target.run("TRUNCATE target", "INSERT INTO target VALUES (-1)")
        save(spark.range(ROWS), target.uri(), "target")
        held = tables.pop("held")
        assert held not in unfinished(target)
        assert sorted(unfinished(target)) == sorted(tables.values())
        assert rows(target, SUM) == whole()
    finally:
        for table in unfinished(target):
            target.run(f"DROP TABLE {table}")
