"""Plans of partitions: parts that other processes read, under one snapshot, and the proof of it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from postgres_parallel import ROWS
from postgres_server import PgBouncer, PostgresServer

import dray

GONE = "the plan's snapshot is gone"


@pytest.fixture
def client(big: PostgresServer) -> Iterator[dray.Connection]:
    with dray.connect(big.uri()) as connection:
        yield connection


@pytest.fixture
def moving(postgres: PostgresServer) -> Iterator[str]:
    """A table of 100,000 rows of its own, which the test may change."""
    name = f"moving_{os.getpid()}_{time.monotonic_ns()}"
    postgres.run(
        f"CREATE TABLE {name} AS SELECT i AS id, repeat('x', i % 70) AS filler, i / 7.0 AS x "
        "FROM generate_series(1, 100000) i"
    )
    yield name
    postgres.run(f"DROP TABLE {name}")


def work(job: tuple[bytes, Any]) -> tuple[int, int, bytes | None, int]:
    """What a worker in another process does: count and sum a part."""
    part, extension = job
    with dray.read_partition(part, extension=extension) as result:
        table = result.to_arrow()
        total = sum(table.column("id").to_pylist())
        return table.num_rows, total, result.receipt, os.getpid()


def read(part: bytes, **options: Any) -> tuple[pa.Table, bytes]:
    with dray.read_partition(part, **options) as result:
        assert result.receipt is None or result.estimate.rows == 0
        table = result.to_arrow()
        assert result.receipt is not None
        return table, result.receipt


def sorted_table(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def test_several_processes(client: dray.Connection, extension: bool) -> None:
    sql = "SELECT id, filler, amount FROM many"
    whole = client.query(sql, extension=extension).to_arrow()
    with client.partitions(sql, at_most=6) as plan:
        assert len(plan) == 6 and plan.reason is None
        assert plan.schema == client.query(sql, extension=False).schema
        assert plan.columns == ["id", "filler", "amount"]
        expected = sum(estimate.rows or 0 for estimate in plan.estimates)
        assert ROWS / 2 < expected < ROWS * 2
        choice: Any = extension if extension else False
        # No process may take more than three parts, so there are at least two.
        with multiprocessing.get_context("spawn").Pool(3, maxtasksperchild=3) as pool:
            done = pool.map(work, [(part, choice) for part in plan], chunksize=1)
        assert len({process for *_, process in done}) > 1
        assert sum(rows for rows, *_ in done) == ROWS
        assert sum(total for _, total, *_ in done) == ROWS * (ROWS + 1) // 2
        assert client.query("SELECT 1 AS one").to_arrow().num_rows == 1, "the connection is free"
        receipts = [receipt for _, _, receipt, _ in done if receipt is not None]
        proof = plan.verify(receipts)
        assert (proof.rows, proof.parts) == (ROWS, 6)
    with client.partitions(sql, at_most=1) as plan:
        assert plan.reason == "only one was asked for"
        table, receipt = read(plan.partitions[0], extension=extension)
        assert sorted_table(table).equals(sorted_table(whole.cast(table.schema)))
        assert plan.verify([receipt]).digest == proof.digest


def test_the_snapshot_holds(postgres: PostgresServer, moving: str, extension: bool) -> None:
    """Whatever others write, between the plan and the parts and between the parts."""
    sql = f"SELECT * FROM {moving}"
    with dray.connect(postgres.uri()) as client:
        before = client.query(sql).to_arrow()
        plan = client.partitions(sql, at_most=5)
        assert len(plan) > 1
        tables, receipts = [], []
        for i, part in enumerate(plan):
            postgres.run(
                f"INSERT INTO {moving} SELECT -i, 'new', 0 FROM generate_series(1, 5000) i",
                f"UPDATE {moving} SET filler = 'changed' WHERE id % 5 = {i}",
                f"DELETE FROM {moving} WHERE id % 7 = {i}",
                f"VACUUM {moving}",
            )
            table, receipt = read(part, extension=extension)
            tables.append(table)
            receipts.append(receipt)
        assert sorted_table(pa.concat_tables(tables)).equals(sorted_table(before))
        assert plan.verify(receipts).rows == before.num_rows
        assert plan.released


def test_parts_are_retried(client: dray.Connection, extension: bool) -> None:
    with client.partitions("SELECT id, filler FROM many", at_most=3) as plan:
        receipts = [read(part, extension=extension)[1] for part in plan]
        # A reader that fails in the middle leaves no receipt.
        with dray.read_partition(plan.partitions[1], batch_rows=100) as result:
            next(iter(result.batches()))
            assert result.receipt is None
        table, again = read(plan.partitions[1])
        with pytest.raises(dray.ExecutionError, match="part 1 was read twice, with the same rows"):
            plan.verify([*receipts, again])
        with pytest.raises(dray.ExecutionError, match="2 of 3 parts have no receipt: 0, 2"):
            plan.verify([again])
        with pytest.raises(dray.UsageError, match="receipt 0 can't be used: the receipt was"):
            plan.verify([again[:-1] + bytes([again[-1] ^ 1])])
        with client.partitions("SELECT id, filler FROM many", at_most=3) as other:
            with pytest.raises(dray.UsageError, match="receipt 2 is of another plan"):
                other.verify([read(other.partitions[0])[1], read(other.partitions[1])[1], again])
        # The retry's receipt may replace the first one, and a receipt may be delivered twice.
        proof = plan.verify([receipts[0], again, receipts[2], again])
        assert proof.rows == ROWS and table.num_rows < ROWS


def test_rows_that_differ_are_noticed(client: dray.Connection) -> None:
    with client.partitions("SELECT id, random() AS r FROM many LIMIT 1000", at_most=3) as plan:
        assert plan.reason is not None
        receipts = [read(plan.partitions[0])[1] for _ in range(2)]
        with pytest.raises(dray.ExecutionError, match="read twice, with different rows: 1000 and"):
            plan.verify(receipts)


STATEMENTS = [
    "SELECT m.id, p.filler FROM many m JOIN parted p USING (id) WHERE m.id < 2000",
    "SELECT count(*) AS n, sum(amount) AS total FROM many",
    "SELECT filler, count(*) AS n FROM many GROUP BY filler",
    "SELECT id FROM seen WHERE id < 100",
    "SELECT id FROM parent",
    "WITH few AS (SELECT id FROM many WHERE id < 5) SELECT * FROM few ORDER BY id",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT id FROM empty_table",
    "SELECT id FROM (SELECT id FROM many ORDER BY id LIMIT 100) q",
    "SELECT n FROM (SELECT count(*) AS n FROM many) q",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_part(client: dray.Connection, extension: bool, sql: str) -> None:
    whole = client.query(sql, extension=extension).to_arrow()
    with client.partitions(sql, at_most=4) as plan:
        assert len(plan) == 1 and plan.reason
        table, receipt = read(plan.partitions[0], extension=extension)
        again, _ = read(plan.partitions[0], extension=extension)
        assert table.schema == plan.schema
        assert sorted_table(table).equals(sorted_table(whole.cast(table.schema)))
        assert again.num_rows == table.num_rows
        assert plan.verify([receipt]).rows == whole.num_rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        # As Spark asks for a column of a query, and for some of its rows.
        ('SELECT "id" FROM (SELECT * FROM many\n) AS dray_query', ROWS),
        (
            'SELECT "id", "filler" FROM (SELECT id, filler FROM many m WHERE id % 4 = 0 -- some\n) '
            "AS dray_query WHERE (\"id\" > '1000'::integer)",
            ROWS // 4 - 250,
        ),
        (
            'SELECT "id" FROM (SELECT * FROM (SELECT * FROM parted WHERE id > 10) AS t\n) '
            "AS dray_query WHERE (\"id\" <= '90000'::integer)",
            89_990,
        ),
    ],
)
def test_a_query_around_a_query(
    big: PostgresServer, client: dray.Connection, extension: bool, sql: str, rows: int
) -> None:
    with dray.connect(big.uri()) as alone:
        whole = alone.query(sql, extension=extension, partitions=1).to_arrow()
    with client.partitions(sql, at_most=3) as plan:
        assert len(plan) == 3 and plan.reason is None
        tables, receipts = zip(*(read(part, extension=extension) for part in plan), strict=True)
        assert all(table.num_rows for table in tables)
        found = sorted_table(pa.concat_tables(tables))
        assert found.equals(sorted_table(whole.cast(found.schema)))
        assert plan.verify(list(receipts)).rows == whole.num_rows == rows


def test_what_an_index_finds(postgres: PostgresServer, moving: str) -> None:
    """One connection reads it, unless it is more than a part has."""
    postgres.run(f"CREATE INDEX ON {moving} (id)", f"ANALYZE {moving}")
    sql = f"SELECT id, filler FROM {moving} WHERE id > 10"
    settings = "?options=-c%20enable_seqscan%3Doff%20-c%20enable_bitmapscan%3Doff"
    reason = "an index is quicker than a scan of the table"
    with dray.connect(postgres.uri(options=settings)) as client:
        with client.partitions(sql, at_most=4) as plan:
            assert len(plan) == 1 and plan.reason == reason
        # The planner takes it for a gigabyte.
        postgres.run(
            f"UPDATE pg_statistic SET stawidth = 10000 WHERE starelid = '{moving}'::regclass"
        )
        with client.partitions(sql, at_most=4) as plan:
            assert len(plan) == 4
            assert sum(read(part)[0].num_rows for part in plan) == 99_990
        # Connections of one process share its processors.
        result = client.query(sql, partitions=4)
        assert result.to_arrow().num_rows == 99_990
        assert reason in result.stats.path_reason


def test_parameters(client: dray.Connection) -> None:
    sql = "SELECT id, $2 AS word FROM many WHERE id > $1"
    with client.partitions(sql, [ROWS - 3, "it's \\ so"], at_most=4) as plan:
        assert plan.reason == "the statement has parameters"
        table, receipt = read(plan.partitions[0])
        assert table.column("id").to_pylist() == [ROWS - 2, ROWS - 1, ROWS]
        assert set(table.column("word").to_pylist()) == {"it's \\ so"}
        plan.verify([receipt])
    with pytest.raises(dray.QueryError, match="3 values were given"):
        client.partitions(sql, [1, "a", 2])


def test_row_security(big: PostgresServer) -> None:
    """A part is what its planner may see, and only that user reads it."""
    with dray.connect(big.uri(user="half")) as client:
        with client.partitions("SELECT id FROM guarded") as plan:
            table, receipt = read(plan.partitions[0])
            assert table.num_rows == 10_000
            with pytest.raises(dray.UsageError, match='current_user is "postgres"'):
                read(plan.partitions[0], uri=big.uri())
            assert plan.verify([receipt]).rows == 10_000


def test_altered_parts(client: dray.Connection) -> None:
    with client.partitions("SELECT id FROM many", at_most=2) as plan:
        part = plan.partitions[0]
        for at in (6, 12, 30, 45, len(part) // 2, len(part) - 1):
            altered = part[:at] + bytes([part[at] ^ 1]) + part[at + 1 :]
            with pytest.raises(dray.UsageError, match="was changed or damaged"):
                dray.read_partition(altered)
        with pytest.raises(dray.UsageError, match="was changed or damaged"):
            dray.read_partition(part.replace(b"SELECT id FROM many", b"SELECT id FROM sany"))
        for broken, what in (
            (b"", "are not a descriptor"),
            (b"hello world" * 20, "are not a descriptor"),
            (part[:-1], "it is cut off"),
            (part + b"\0", "it is cut off"),
            (part[:4] + b"\1\0" + part[6:], "has version 1, and this version of Dray reads 0"),
        ):
            with pytest.raises(dray.UsageError, match=what):
                dray.read_partition(broken)
        # Descriptors are plain bytes.
        assert pickle.loads(pickle.dumps(part)) == part
        read(part)


def test_the_lease_ends(postgres: PostgresServer, moving: str) -> None:
    with dray.connect(postgres.uri()) as client:
        plan = client.partitions(f"SELECT id FROM {moving}", at_most=2, lease=3.0)
        with dray.read_partition(plan.partitions[0], batch_rows=10, batch_bytes=10) as result:
            batches = result.batches()
            first = next(batches)
            time.sleep(3.1)
            with pytest.raises(dray.ExecutionError, match=r"the plan's lease ended \d+ s ago"):
                read(plan.partitions[1])
            # What has begun goes on. The server has freed the planner's snapshot by itself.
            rows = first.num_rows + sum(batch.num_rows for batch in batches)
            assert 1000 < rows < 100_000 and result.receipt
        postgres.run(f"TRUNCATE {moving}")
        plan.release()
        plan.release()
        assert repr(plan) == "<dray.Plan of 2 parts: released>"


def test_released(client: dray.Connection, extension: bool) -> None:
    with client.partitions("SELECT id FROM many", at_most=2) as plan:
        assert repr(plan) == "<dray.Plan of 2 parts: held>"
    for part in plan:
        with pytest.raises(dray.ExecutionError, match=GONE):
            read(part, extension=extension)
    one = client.partitions("SELECT count(*) AS n FROM many")
    part = one.partitions[0]
    del one
    with pytest.raises(dray.ExecutionError, match=GONE):
        read(part)


PLANNER = """
import sys, time, dray
plan = dray.connect(sys.argv[1]).partitions("SELECT id FROM many", at_most=2)
print(plan.partitions[0].hex(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_planner_that_dies(big: PostgresServer, how: signal.Signals) -> None:
    command = [sys.executable, "-c", PLANNER, big.uri()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planner:
        assert planner.stdout is not None
        part = bytes.fromhex(planner.stdout.readline())
        read(part)
        planner.send_signal(how)
        planner.wait()
        deadline = time.monotonic() + 20
        while True:
            try:
                read(part)
            except dray.ExecutionError as error:
                assert GONE in str(error)
                break
            assert time.monotonic() < deadline, "the server still has the snapshot"


def test_a_stopped_planner(big: PostgresServer) -> None:
    """A planner that hangs holds nothing beyond its lease: the server ends it."""
    source = PLANNER.replace("at_most=2", "at_most=2, lease=1.5")
    command = [sys.executable, "-c", source, big.uri()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planner:
        assert planner.stdout is not None
        bytes.fromhex(planner.stdout.readline())
        planner.send_signal(signal.SIGSTOP)
        sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        deadline = time.monotonic() + 20
        try:
            with big.connect() as connection:
                while connection.execute(sql).fetchone() != (0,):
                    assert time.monotonic() < deadline, "the server keeps the transaction"
                    time.sleep(0.1)
        finally:
            planner.send_signal(signal.SIGKILL)


def test_a_server_that_restarts(client: dray.Connection, big: PostgresServer) -> None:
    """The session of the planner is ended by an administrator."""
    with client.partitions("SELECT id FROM many", at_most=2) as plan:
        big.run(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE state = 'idle in transaction'"
        )
        with pytest.raises(dray.ExecutionError, match=GONE):
            read(plan.partitions[0])


def test_sessions_that_others_do_not_share(big: PostgresServer) -> None:
    for before, what in (
        ("BEGIN", "a transaction is open"),
        ("CREATE TEMP TABLE mine (id integer)", "other sessions may not see"),
        ("SET work_mem = '10MB'", "other sessions may not see"),
    ):
        with dray.connect(big.uri()) as client:
            client.query(before).to_arrow()
            with pytest.raises(dray.UsageError, match=what):
                client.partitions("SELECT id FROM many")
    with dray.connect(big.uri()) as client:
        with pytest.raises(dray.UsageError, match="only queries become partitions"):
            client.partitions("INSERT INTO many VALUES (1)")
        with pytest.raises(dray.UsageError, match="at most 0 parts"):
            client.partitions("SELECT 1", at_most=0)
        with pytest.raises(dray.UsageError, match="at most a day"):
            client.partitions("SELECT 1", lease=1e6)
        with pytest.raises(dray.QueryError, match="no_such_table"):
            client.partitions("SELECT * FROM no_such_table")
        result = client.query("SELECT id FROM many", partitions=1)
        with pytest.raises(dray.UsageError, match="busy"):
            client.partitions("SELECT 1")
        result.close()
        # Settings in the uri are the readers', too.
        uri = big.uri(options="?options=-c%20search_path%3Dpublic%20-c%20timezone%3DAsia/Tokyo")
        with dray.connect(uri) as other, other.partitions("SELECT id FROM many") as plan:
            read(plan.partitions[0])
            with pytest.raises(dray.UsageError, match="search_path is"):
                read(plan.partitions[0], uri=big.uri())


def test_locks(postgres: PostgresServer, moving: str) -> None:
    """Tables can't be emptied meanwhile; who waits to do so keeps readers waiting for a second."""
    with dray.connect(postgres.uri()) as client:
        for sql in (f"SELECT id FROM {moving}", f"SELECT count(*) AS n FROM {moving}"):
            with client.partitions(sql, at_most=2) as plan, postgres.connect() as other:
                with pytest.raises(Exception, match="lock timeout"):
                    other.execute("SET lock_timeout = '100ms'")
                    other.execute(f"TRUNCATE {moving}")
                read(plan.partitions[0])
                waiting = subprocess.Popen(
                    [sys.executable, "-c", f"import psycopg; psycopg.connect({postgres.uri()!r}, "
                     f"autocommit=True).execute('ALTER TABLE {moving} ADD y int')"],
                )  # fmt: skip
                postgres.wait_for_statement("ADD y int", 1)
                with pytest.raises(dray.ExecutionError, match="another session waits to change"):
                    read(plan.partitions[0])
            assert waiting.wait(timeout=30) == 0
            postgres.run(f"ALTER TABLE {moving} DROP y")


def test_passwords_stay_out(big: PostgresServer) -> None:
    uri = big.uri().replace("postgres@", "postgres:s3cret%40x@")
    with dray.connect(uri) as client:
        with client.partitions("SELECT id FROM many") as plan:
            assert all(b"s3cret" not in part for part in plan)
            assert all(f"port={big.port}".encode() in part for part in plan)
            read(plan.partitions[0])
        with client.partitions("SELECT id FROM many", include_password=True) as plan:
            assert all(b"password=s3cret%40x" in part for part in plan)
            read(plan.partitions[0])


def test_over_a_socket_and_a_pooler(postgres: PostgresServer, big: PostgresServer) -> None:
    with dray.connect(big.unix) as client, client.partitions("SELECT id FROM many") as plan:
        assert f"host=%2Ftmp%2F{big.folder.name}".encode() in plan.partitions[0]
        assert sum(read(part)[0].num_rows for part in plan) == ROWS
    pooler = PgBouncer(postgres, pool_size=2)
    try:
        with dray.connect(pooler.uri()) as client:
            with client.partitions("SELECT id FROM many", at_most=3) as plan:
                receipts = [read(part)[1] for part in plan]
                assert plan.verify(receipts).rows == ROWS
    finally:
        pooler.stop()


def test_parts_are_of_their_server(
    client: dray.Connection, big: PostgresServer, server: Any
) -> None:
    with client.partitions("SELECT id FROM many") as plan:
        with pytest.raises(dray.UsageError, match="the part is of PostgreSQL"):
            dray.read_partition(plan.partitions[0], uri=server.unix)
    with dray.connect(server.unix) as other, other.partitions("SELECT 1 AS one") as plan:
        with pytest.raises(dray.UsageError, match="the part is of a Dray server"):
            dray.read_partition(plan.partitions[0], uri=big.uri())
