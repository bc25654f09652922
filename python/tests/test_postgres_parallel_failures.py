"""Reading a table over several connections while others change it, and while connections fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pyarrow.compute
import pytest
from postgres_parallel import ROWS, read
from postgres_server import PostgresServer

import dray


@pytest.fixture
def client(big: PostgresServer) -> Iterator[dray.Connection]:
    with dray.connect(big.uri()) as connection:
        yield connection


def test_rows_beyond_the_known_end(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    """Writers add, change and remove rows all the time. A snapshot has exactly the sum from its
    beginning.
    """
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(big.uri(), autocommit=True) as connection:
            i = 0
            while not stop.is_set():
                i += 1
                # Each transaction preserves the number of rows and the sum of their ids.
                with connection.transaction():
                    connection.execute(
                        "UPDATE many SET filler = %s WHERE id = %s", (f"w{i}", i % ROWS + 1)
                    )
                    connection.execute("UPDATE many SET id = id + 1 WHERE id = %s", (i % 1000 + 1,))
                    connection.execute(
                        "UPDATE many SET id = id - 1 WHERE ctid = (SELECT max(ctid) "
                        "FROM many WHERE id = %s)",
                        (i % 1000 + 2,),
                    )

    def rewrite() -> None:
        with psycopg.connect(big.uri(), autocommit=True) as connection:
            connection.execute("CREATE INDEX IF NOT EXISTS many_id ON many (id)")
            while not stop.is_set():
                connection.execute("CLUSTER many USING many_id")
                connection.execute("VACUUM FULL many")
                stop.wait(0.05)

    threads = [threading.Thread(target=write), threading.Thread(target=rewrite)]
    for thread in threads:
        thread.start()
    try:
        in_parts = attempts = 0
        while in_parts < 4 and attempts < 60:
            attempts += 1
            table, reason = read(client, "SELECT id FROM many", extension, partitions=4)
            # A rewrite of the table may wait for its lock before the workers do. Then one
            # connection reads the table.
            assert "one snapshot" in reason or "lock" in reason
            in_parts += "one snapshot" in reason
            assert table.num_rows == ROWS
            assert pa.compute.sum(table["id"]).as_py() == ROWS * (ROWS + 1) // 2
        assert in_parts == 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        big.run("DROP INDEX IF EXISTS many_id")


def test_a_table_that_is_inherited_from_meanwhile(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    big.run(
        "CREATE TABLE heir (id integer NOT NULL, filler text, amount numeric(12,2)); "
        "INSERT INTO heir SELECT -1 FROM many"
    )
    try:
        options = {
            "extension": extension,
            "partitions": 2,
            "batch_rows": 500,
            "chunk_bytes_max": 4096,
        }
        result = client.query("SELECT id, repeat(filler, 40) FROM many", **options)  # type: ignore[arg-type]
        batches = result.batches()
        ids = next(batches).column(0).to_pylist()
        big.run("ALTER TABLE heir INHERIT many")
        for batch in batches:
            ids += batch.column(0).to_pylist()
        assert "one snapshot" in result.stats.path_reason
        assert len(ids) == len(set(ids)) == ROWS and min(ids) == 1
        table, reason = read(client, "SELECT id FROM many", extension)
        assert table.num_rows == 2 * ROWS and "inherited from" in reason
    finally:
        # ANALYZE resets the flag that the table ever had children.
        big.run("DROP TABLE heir", "ANALYZE many")


def test_half_read_and_read_again(client: dray.Connection, extension: bool) -> None:
    for ordered in (False, True):
        options = {"extension": extension, "partitions": 3, "batch_rows": 1000, "ordered": ordered}
        with client.query("SELECT * FROM many", **options) as result:  # type: ignore[arg-type]
            assert next(iter(result.batches())).num_rows >= 1000
        table, _ = read(client, "SELECT id FROM many", extension, ordered=ordered)
        assert table.num_rows == ROWS


def test_a_worker_that_is_terminated(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    """Its part is read again, from where the worker stopped."""
    with big.connect() as other:
        other.autocommit = True
        for ordered in (False, True):
            terminated = 0
            rows = 0
            ids: set[int] = set()
            result = client.query(
                "SELECT id, repeat(filler, 40) FROM many",
                extension=extension,
                partitions=2,
                batch_rows=500,
                chunk_bytes_max=4096,
                ordered=ordered,
            )
            for i, batch in enumerate(result.batches()):
                if i in (2, 20):
                    killed = other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE backend_type = 'client backend'"
                        " AND pid <> pg_backend_pid() AND query LIKE '%ctid OPERATOR%' "
                        "AND state = 'active' LIMIT 1"
                    ).fetchall()
                    terminated += len(killed)
                rows += batch.num_rows
                ids.update(batch.column(0).to_pylist())
            assert terminated > 0
            assert rows == len(ids) == ROWS
            assert "one of them failed: " in result.stats.path_reason


def test_no_connection_to_spare(big: PostgresServer, extension: bool) -> None:
    big.run("CREATE ROLE single LOGIN CONNECTION LIMIT 1; GRANT SELECT ON many TO single")
    try:
        with dray.connect(big.uri(user="single")) as client:
            table, reason = read(client, "SELECT id FROM many", extension)
            assert table.num_rows == ROWS
            assert "one connection: another connection can't be opened" in reason
            # The transaction that was begun for the parallel read is over.
            client.query("CREATE TEMPORARY TABLE t AS SELECT 1").arrow()
    finally:
        big.run("DROP OWNED BY single; DROP ROLE single")


def test_statement_timeout(big: PostgresServer, extension: bool) -> None:
    """The timeout applies to the whole statement, not to each part."""
    with dray.connect(big.uri(options="?options=-c%20statement_timeout%3D1s")) as client:
        began = time.monotonic()
        with pytest.raises(
            dray.ExecutionError, match="canceling statement due to statement timeout"
        ) as caught:
            read(client, "SELECT slow(id) FROM sparse", extension, partitions=2)
        assert caught.value.sqlstate == "57014"
        assert 0.9 < time.monotonic() - began < 10
        assert (
            "2 connections"
            in read(client, "SELECT slow(id) FROM sparse WHERE id < 8", extension, partitions=2)[1]
        )


def test_errors_within_a_part(client: dray.Connection, extension: bool) -> None:
    with pytest.raises(dray.ExecutionError, match="division by zero"):
        read(client, "SELECT 1 / (id - 150000) FROM many", extension)
    assert read(client, "SELECT id FROM many", extension)[0].num_rows == ROWS
