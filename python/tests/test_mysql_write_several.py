"""Writing into MariaDB over several connections."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from mysql_target import ROWS, TABLE, MysqlTarget

import dray

ROW_COUNT = 100_000
BIG = pa.table({"id": range(ROW_COUNT), "name": [f"n{i}" for i in range(ROW_COUNT)]})
SUMS = "count(*), sum(id), count(DISTINCT id), sum(length(name))"
WANT = [(
    str(ROW_COUNT), str(sum(range(ROW_COUNT))), str(ROW_COUNT),
    str(sum(len(f"n{i}") for i in range(ROW_COUNT))),
)]  # fmt: skip


def endless(delay: float = 0.0) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(delay)
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())


def writing(target: MysqlTarget, count: int) -> list[int]:
    """The sessions that write, once there are so many."""
    # The server's own threads, such as the one that purges, have the number 0.
    sql = (
        "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx "
        "WHERE trx_rows_modified > 0 AND trx_mysql_thread_id <> 0"
    )
    deadline = time.monotonic() + 60
    while len(found := [int(number) for (number,) in target.server.rows(sql)]) != count:
        assert time.monotonic() < deadline, found
        # The server keeps the table as it is for whoever asks again within 0.1 s.
        time.sleep(0.3)
    return found


@pytest.mark.parametrize("partitions", [2, 3, 16])
def test_all_rows_arrive(mysql_target: MysqlTarget, partitions: int) -> None:
    target = mysql_target
    target.write(BIG, partitions=partitions)
    assert target.rows(columns=SUMS) == WANT
    # A reader, a replaced table, and data that is smaller than the number of connections.
    target.write(BIG.to_reader(1000), partitions=partitions, mode="replace")
    assert target.rows(columns=SUMS) == WANT
    assert target.write(TABLE, partitions=partitions, mode="replace").rows == 3
    assert sorted(target.rows(), key=str) == sorted(ROWS, key=str)
    assert target.write(TABLE.slice(0, 0), partitions=partitions, mode="replace").rows == 0
    assert target.rows() == [] and target.tables() == ["t"]


def test_who_sees_what(mysql_target: MysqlTarget) -> None:
    """Until the end, the old table is there, and can be read. All connections do write."""
    target = mysql_target
    target.write(TABLE)
    seen: set[int] = set()

    def generate() -> Iterator[pa.RecordBatch]:
        for i, batch in enumerate(BIG.to_batches(5_000)):
            if i == 15:
                writing(target, 2)
            seen.add(len(target.rows()))
            yield batch

    reader = pa.RecordBatchReader.from_batches(BIG.schema, generate())
    target.write(reader, partitions=2, mode="replace")
    assert seen == {3} and target.rows(columns=SUMS) == WANT


def test_settings(mysql_target: MysqlTarget) -> None:
    """Those of writing hold for each connection, and those of the session come back."""
    target = mysql_target
    target.dray.query("SET time_zone = '+05:00', sql_mode = '', autocommit = 0").close()
    times = pa.array([i * 1_000_000 for i in range(1, 50_001)], pa.timestamp("us", "UTC"))
    target.write(pa.table({"at": times}), partitions=3)
    assert target.ask("SELECT @@time_zone, @@sql_mode, @@autocommit") == [("+05:00", "", 0)]
    (row,) = target.rows(columns="unix_timestamp(min(at)), unix_timestamp(max(at)), count(*)")
    assert [float(value) for value in row] == [1, 50_000, 50_000]


@pytest.mark.parametrize("at", [0, 50_000, ROW_COUNT - 1])
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_row_of_an_error(mysql_target: MysqlTarget, at: int, partitions: int) -> None:
    """It is that of the data, whoever had it and whoever found it."""
    target = mysql_target
    ids = [0] * ROW_COUNT
    ids[at] = 2**40
    target.fails(pa.table({"id": ids}), f"row {at + 1}\\b", partitions=partitions,
                 types={"id": "int"})  # fmt: skip
    hosts = ["1.2.3.4"] * ROW_COUNT
    hosts[at] = "b"
    reader = pa.table({"host": hosts}).to_reader(7_000)
    target.fails(reader, f"'b' for column .* at row {at + 1}\\b",
                 partitions=partitions, types={"host": "inet4"})  # fmt: skip


def test_the_row_of_the_servers_error(mysql_target: MysqlTarget) -> None:
    """It comes when the rows end, as a later one of the same connection can't be sent. If another
    connection has the later one, that may be told.
    """
    ids, hosts = [0] * ROW_COUNT, ["1.2.3.4"] * ROW_COUNT
    hosts[80_000], ids[95_999] = "b", 2**40
    reader = pa.table({"id": ids, "host": hosts}).to_reader(16_000)
    either = "'b' for column .* at row 80001\\b|row 96000: 1099511627776"
    mysql_target.fails(reader, either, partitions=3, types={"id": "int", "host": "inet4"})


def test_what_is_refused(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    for options, match in [
        ({"mode": "append"}, "several transactions.*one connection"),
        ({"mode": "create_append"}, "several transactions"),
        ({"temporary": True}, "temporary table belongs to one connection"),
    ]:
        assert isinstance(target.fails(TABLE, match, partitions=2, **options), dray.UsageError)
    for partitions in (0, 65, 10**9):
        target.fails(TABLE, "expected 1 to 64", partitions=partitions)
    target.dray.query("BEGIN").close()
    with pytest.raises(dray.UsageError, match="a transaction is open"):
        target.dray.write("t", TABLE, partitions=2)
    target.dray.query("COMMIT").close()
    target.write(TABLE)
    # Before any row is read.
    assert target.fails(endless(), "already exists", partitions=2).sqlstate == "42S01"


def test_a_source_that_fails(mysql_target: MysqlTarget) -> None:
    def generate() -> Iterator[pa.RecordBatch]:
        yield from BIG.to_batches(10_000)
        raise ValueError("the well is dry at row 1")

    reader = pa.RecordBatchReader.from_batches(BIG.schema, generate())
    error = mysql_target.fails(reader, "ValueError: the well is dry at row 1", partitions=4)
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("delay", [0.0, 20.0])
def test_ctrl_c(mysql_target: MysqlTarget, delay: float) -> None:
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mysql_target.write(endless(delay), partitions=4)
    assert time.monotonic() - began < 30
    assert mysql_target.ask("SELECT 1") == [(1,)]
    assert mysql_target.tables() == []


@pytest.mark.parametrize("own", [False, True])
def test_a_connection_breaks(mysql_target: MysqlTarget, own: bool) -> None:
    """Of a worker, or of the connection itself: the table is dropped over another one."""
    ((mine,),) = mysql_target.ask("SELECT connection_id()")

    def kill() -> None:
        victim = next(number for number in writing(mysql_target, 3) if (number == mine) == own)
        mysql_target.server.run(f"KILL {victim}")

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(dray.ConnectionError):
        mysql_target.write(endless(), partitions=3)
    killer.join()
    assert mysql_target.tables() == []
    if not own:
        assert mysql_target.ask("SELECT 1") == [(1,)]


def test_no_more_connections(mysql_target: MysqlTarget) -> None:
    server = mysql_target.server
    server.run("CREATE OR REPLACE USER lonely@'%' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1",
               "GRANT ALL ON w.* TO lonely@'%'")  # fmt: skip
    with dray.connect(f"mysql://lonely:p@127.0.0.1:{server.port}/w") as connection:
        with pytest.raises(dray.Error, match="another connection.*max_user_connections"):
            connection.write("t", endless(), partitions=2)
        assert mysql_target.tables() == []
        assert connection.write("t", TABLE).rows == 3


def test_a_table_that_may_not_be_dropped(mysql_target: MysqlTarget) -> None:
    """The error of another connection says what is left, too."""
    server = mysql_target.server
    server.run("CREATE OR REPLACE USER keeper@'%' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1",
               "GRANT SELECT, INSERT, CREATE ON w.* TO keeper@'%'")  # fmt: skip
    with dray.connect(f"mysql://keeper:p@127.0.0.1:{server.port}/w") as connection:
        with pytest.raises(dray.Error, match="another connection.*max_user_conn") as caught:
            connection.write("t", endless(), partitions=2)
    (left,) = mysql_target.tables()
    assert f"`{left}` may be left" in (caught.value.hint or ""), caught.value


def test_the_name_is_taken_meanwhile(mysql_target: MysqlTarget) -> None:
    def generate() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        mysql_target.server.run("CREATE TABLE w.t (other text)")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, generate())
    with pytest.raises(dray.Error, match="already exists") as caught:
        mysql_target.write(reader, partitions=2)
    assert caught.value.sqlstate == "42S01"
    assert mysql_target.tables() == ["t"] and mysql_target.rows() == []
