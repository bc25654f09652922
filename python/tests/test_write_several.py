"""Writing into PostgreSQL over several connections."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from write_target import TABLE, Target

import dray

BIG = pa.table({"id": pa.array(range(300_000)), "name": [f"n{i}" for i in range(300_000)]})
SUMS = "count(*), sum(id), count(DISTINCT id), sum(length(name))"


def unfinished(target: Target) -> list[str]:
    """Tables that are not finished, or were left behind."""
    rows = target.oracle.execute("SELECT relname FROM pg_class WHERE relname LIKE 'dray_unf%'")
    return [name for (name,) in rows]


@pytest.fixture(autouse=True)
def nothing_is_left(target: Target) -> Iterator[None]:
    yield
    assert unfinished(target) == []


@pytest.mark.parametrize("partitions", [2, 3, 16])
def test_all_rows_arrive(target: Target, partitions: int) -> None:
    target.write(BIG, partitions=partitions)
    want = (300_000, sum(range(300_000)), 300_000, sum(len(f"n{i}") for i in range(300_000)))
    assert target.rows(columns=SUMS) == [want]
    # A reader, a replaced table, and data that is smaller than the number of connections.
    target.write(BIG.to_reader(1000), partitions=partitions, mode="replace")
    assert target.rows(columns=SUMS) == [want]
    written = target.write(TABLE, partitions=partitions, mode="replace")
    assert (written.rows, written.format) == (3, "binary")
    assert sorted(target.rows(), key=str) == sorted(
        [(1, "a"), (2, None), (None, "ü 🐴\n\t\\")], key=str
    )
    assert target.write(TABLE.slice(0, 0), partitions=partitions, mode="replace").rows == 0
    assert target.rows() == []


def test_who_sees_what(target: Target) -> None:
    """Until the end, the old table is there, and can be read."""
    target.write(TABLE)
    seen: list[int] = []

    def generate() -> Iterator[pa.RecordBatch]:
        for batch in BIG.to_batches(10_000):
            seen.append(len(target.rows()))
            yield batch

    reader = pa.RecordBatchReader.from_batches(BIG.schema, generate())
    target.write(reader, partitions=2, mode="replace", types={"id": "numeric(12,1)"})
    assert set(seen) == {3}
    assert target.rows(columns="count(*), pg_typeof(min(id))::text") == [(300_000, "numeric")]


def test_names(target: Target) -> None:
    for name in ('ta"b\\le', "Ä" * 31, "x" * 63):
        target.dray.write(name, TABLE, partitions=2, schema="other")
        quoted = '"' + name.replace('"', '""') + '"'
        assert len(target.rows(f"other.{quoted}")) == 3
    # The types of the row and of its arrays have the table's name, too.
    target.write(TABLE, partitions=2)
    names = "SELECT typname FROM pg_type WHERE typrelid = 'w.t'::regclass"
    assert target.oracle.execute(names).fetchall() == [("t",)]
    assert target.oracle.execute("SELECT to_regtype('w.t[]')::text").fetchone() == ("w.t[]",)


@pytest.mark.parametrize("at", [0, 170_000, 299_999])
def test_values_that_do_not_fit(target: Target, at: int) -> None:
    """The row in the error is that of the data, whoever had it."""
    ids = list(range(300_000))
    ids[at] = 2**40
    data = pa.table({"id": ids})
    match = f'column "id", row {at + 1}: 1099511627776'
    target.fails(data, match, partitions=3, types={"id": "integer"})
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)


@pytest.mark.parametrize("at", [0, 170_000, 299_999])
def test_errors_of_the_server(target: Target, at: int) -> None:
    target.write(TABLE)
    names = ["x"] * 300_000
    names[at] = "a\0b"
    error = target.fails(
        pa.table({"name": names}), f'0x00, at row {at + 1}, column "name"', partitions=3,
        mode="replace",
    )  # fmt: skip
    assert error.sqlstate == "22021"
    assert len(target.rows()) == 3


def test_what_is_refused(target: Target) -> None:
    for options, match in [
        ({"mode": "append"}, "several transactions.*one connection"),
        ({"mode": "create_append"}, "several transactions"),
        ({"temporary": True}, "temporary table belongs to one connection"),
        ({"types": {"name": "inet"}}, "sent as text.*one connection"),
    ]:
        assert isinstance(target.fails(TABLE, match, partitions=2, **options), dray.UsageError)
    for partitions in (0, 65, 10**9):
        target.fails(TABLE, "expected 1 to 64", partitions=partitions)
    with pytest.raises(OverflowError):
        target.write(TABLE, partitions=-1)
    target.dray.query("BEGIN").close()
    with pytest.raises(dray.UsageError, match="a transaction is open"):
        target.write(TABLE, partitions=2)
    assert target.write(TABLE, partitions=1).rows == 3
    target.dray.query("COMMIT").close()
    # Before any row is read.
    assert target.fails(endless(), "already exists", partitions=2).sqlstate == "42P07"
    target.oracle.execute("CREATE VIEW w.v AS SELECT * FROM w.t")
    target.fails(endless(), "other objects depend", partitions=2, mode="replace")
    assert target.write(TABLE, mode="append").rows == 3


def endless(delay: float = 0.0) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(delay)
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())


def test_a_source_that_fails(target: Target) -> None:
    def generate() -> Iterator[pa.RecordBatch]:
        yield from BIG.to_batches(10_000)
        raise ValueError("the well is dry")

    reader = pa.RecordBatchReader.from_batches(BIG.schema, generate())
    error = target.fails(reader, "ValueError: the well is dry", partitions=4)
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("delay", [0.0, 20.0])
def test_ctrl_c(target: Target, delay: float) -> None:
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        target.write(endless(delay), partitions=4)
    assert time.monotonic() - began < 10
    assert target.dray.query("SELECT 1").to_arrow().num_rows == 1
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)


def copying(target: Target) -> list[int]:
    """The server's processes that copy."""
    sql = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY %dray_unf%' AND state = 'active'"
    # Before the server's statement_timeout ends them.
    deadline = time.monotonic() + 25
    while len(pids := [pid for (pid,) in target.oracle.execute(sql)]) != 3:
        assert time.monotonic() < deadline, pids
        time.sleep(0.05)
    return pids


@pytest.mark.parametrize("own", [False, True])
def test_a_connection_breaks(target: Target, own: bool) -> None:
    """Of a worker, or of the connection itself: the table is dropped over another one."""
    mine = target.dray.query("SELECT pg_backend_pid()").to_arrow()[0][0].as_py()

    def kill() -> None:
        victim = next(pid for pid in copying(target) if (pid == mine) == own)
        target.oracle.execute("SELECT pg_terminate_backend(%s)", [victim])

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(dray.ConnectionError, match="terminating connection|connection"):
        target.write(endless(), partitions=3)
    killer.join()
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)
    if not own:
        assert target.dray.query("SELECT 1").to_arrow().num_rows == 1


def test_no_more_connections(target: Target) -> None:
    target.oracle.execute("DROP ROLE IF EXISTS lonely")
    target.oracle.execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1")
    target.oracle.execute("GRANT ALL ON SCHEMA w TO lonely")
    with dray.connect(target.server.uri(user="lonely")) as connection:
        with pytest.raises(dray.Error, match="another connection.*too many connections"):
            connection.write("t", endless(), schema="w", partitions=2)
        assert connection.write("t", TABLE, schema="w").rows == 3


def test_the_name_is_taken_meanwhile(target: Target) -> None:
    def generate() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        target.oracle.execute("CREATE TABLE w.t (other text)")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, generate())
    assert target.fails(reader, "already exists", partitions=2).sqlstate == "42P07"
    assert target.rows() == []


def test_a_killed_program_leaves_no_part(target: Target) -> None:
    script = """
import sys, dray, pyarrow as pa
def generate():
    while True:
        yield pa.record_batch({"id": pa.array(range(10_000))})
schema = pa.schema([("id", pa.int64())])
reader = pa.RecordBatchReader.from_batches(schema, generate())
dray.connect(sys.argv[1]).write("t", reader, schema="w", partitions=3)
"""
    program = subprocess.Popen([sys.executable, "-c", script, target.server.uri()], env=os.environ)
    copying(target)
    program.kill()
    program.wait()
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)
    (name,) = unfinished(target)
    assert name.startswith("dray_unfinished_t_")
    with contextlib.suppress(dray.Error):
        target.oracle.execute(f"DROP TABLE w.{name}")


def test_reading_in_parallel_after_it(target: Target) -> None:
    """A new table is no reason to read over one connection."""
    for partitions in (1, 2):
        target.write(BIG, partitions=partitions, mode="replace")
        with dray.connect(target.server.uri()) as connection:
            connection.write("again", BIG, partitions=partitions, schema="w", mode="replace")
            result = connection.query("SELECT * FROM w.again", partitions=2)
            assert result.to_arrow().num_rows == 300_000
            assert "2 connections" in str(result.stats), result.stats
