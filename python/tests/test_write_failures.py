"""Writing into PostgreSQL that fails on the way, is cancelled, or is watched."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from server import Server
from write_target import TABLE, Target

import dray


def failing(batches: int) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        for _ in range(batches):
            yield TABLE.to_batches()[0]
        raise ValueError("the well is dry")

    return pa.RecordBatchReader.from_batches(TABLE.schema, generate())


@pytest.mark.parametrize("batches", [0, 1, 1000])
def test_a_source_that_fails(target: Target, batches: int) -> None:
    error = target.fails(failing(batches), "ValueError: the well is dry")
    assert isinstance(error.__cause__, ValueError)
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)


def endless(delay: float = 0.0) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(delay)
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())


@pytest.mark.parametrize("delay", [0.0, 20.0])
def test_ctrl_c(target: Target, delay: float) -> None:
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        target.write(endless(delay))
    assert time.monotonic() - began < 10
    assert target.dray.query("SELECT 1").to_arrow().num_rows == 1
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)


def test_ctrl_c_while_the_server_waits(target: Target) -> None:
    target.oracle.execute("CREATE TABLE w.t (id bigint)")
    with target.server.connect() as other, other.transaction():
        other.execute("LOCK TABLE w.t IN ACCESS EXCLUSIVE MODE")
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            target.write(endless(), mode="append")
        assert target.dray.query("SELECT 1").to_arrow().num_rows == 1


def test_progress(target: Target) -> None:
    seen: list[int] = []
    table = pa.table({"id": range(300_000)})
    target.write(table, progress=lambda progress: seen.append(progress.rows))
    assert seen == sorted(seen) and seen[-1] == 300_000

    def stop(progress: dray.Progress) -> None:
        if progress.rows:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        target.dray.write("u", endless(), progress=stop)
    assert target.oracle.execute("SELECT to_regclass('w.u')").fetchone() == (None,)


def test_many_notices(target: Target) -> None:
    target.oracle.execute(
        "CREATE TABLE w.t (id bigint);"
        "CREATE FUNCTION w.shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE NOTICE '%', repeat('x', 10000); "
        "IF NEW.id % 2 = 1 THEN RETURN NULL; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER shout BEFORE INSERT ON w.t FOR EACH ROW EXECUTE FUNCTION w.shout()"
    )
    # The server sends more than fits its socket while data comes. Half of the rows are left out.
    assert target.write(pa.table({"id": range(20_000)}), mode="append").rows == 10_000
    assert len(target.rows()) == 10_000


def test_the_server_process_ends(target: Target) -> None:
    pid = target.dray.query("SELECT pg_backend_pid()").to_arrow()[0][0].as_py()
    timer = threading.Timer(
        0.5, lambda: target.oracle.execute("SELECT pg_terminate_backend(%s)", [pid])
    )
    timer.start()
    with pytest.raises(dray.ConnectionError, match="terminating connection|connection"):
        target.write(endless())
    assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)
    timer.join()


def test_what_comes_after(target: Target) -> None:
    """Statements that were prepared before see the new table."""
    for kind in (pa.int32(), pa.string(), pa.float64()):
        value = pa.array([1]).cast(kind)
        target.write(pa.table({"v": value}), mode="replace")
        for _ in range(3):
            assert target.dray.query("SELECT * FROM t").to_arrow()["v"].type == kind


def test_read_only_users_and_transactions(target: Target) -> None:
    target.oracle.execute("DROP ROLE IF EXISTS writer")
    target.oracle.execute("CREATE ROLE writer LOGIN")
    target.oracle.execute("CREATE TABLE w.t (id integer, name text)")
    with dray.connect(target.server.uri(user="writer")) as other:
        with pytest.raises(dray.QueryError, match="does not exist|permission denied"):
            other.write("t", TABLE, mode="append", schema="w")
    target.dray.query("SET default_transaction_read_only TO on").close()
    target.fails(TABLE, "read-only transaction", mode="append")


def test_dray_servers_only_read(server: Server) -> None:
    with dray.connect(server.unix) as connection:
        with pytest.raises(dray.UsageError, match="only reads.*PostgreSQL"):
            connection.write("t", TABLE)
        assert connection.query("SELECT 1").to_arrow().num_rows == 1


def test_memory_is_bounded(target: Target) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def generate() -> Iterator[pa.RecordBatch]:
        batch = pa.record_batch({"id": pa.array(range(100_000), pa.int64())})
        for _ in range(100):
            peaks.append(resident())
            yield batch

    peaks: list[int] = []
    reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())
    assert target.write(reader).rows == 10_000_000
    assert max(peaks) - peaks[3] < 64 << 20
