"""A driver that is killed or cut off, and how long its snapshot and connections live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import written
from drivers import driver
from hosted import Database, Source
from meanwhile import SLOW, SOME_BYTES, quiet
from spark_cluster import Cluster, wait_for


@contextmanager
def reading(cluster: Cluster, source: Source, lease: int) -> Iterator[None]:
    """A driver of its own reads the table over slow links, and is killed at the end."""
    with driver(cluster, "reading_driver.py", source.uri, str(lease)) as program:
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        cluster.await_bytes("worker-1", 2 * SOME_BYTES, lambda: program.poll() is None)
        assert source.database
        wait_for(lambda: len(source.database.sessions()) > 1)
        yield


def test_a_driver_is_killed(cluster: Cluster, postgres_source: Source) -> None:
    with reading(cluster, postgres_source, lease=600):
        pass
    # Nobody waits for the lease: PostgreSQL sees that the connection has ended.
    assert postgres_source.database
    wait_for(lambda: not postgres_source.database.sessions())


def test_a_driver_is_killed_whose_snapshot_a_server_holds(
    cluster: Cluster, served_source: Source
) -> None:
    with reading(cluster, served_source, lease=20):
        pass
    # The server holds the snapshot until the lease is over.
    wait_for(lambda: quiet(served_source))


def test_a_driver_is_cut_off(cluster: Cluster, postgres_source: Source) -> None:
    database = postgres_source.database
    assert database
    address = cluster.switch["driver"].address
    with reading(cluster, postgres_source, lease=20):
        assert (address, "idle in transaction") in database.sessions()
        cluster.switch["driver"].cut()
        # PostgreSQL can't know, and ends the snapshot with its lease.
        wait_for(lambda: address not in [host for host, _ in database.sessions()])


def test_a_driver_is_killed_that_writes(cluster: Cluster, postgres: Database) -> None:
    postgres.run(written.DDL)
    cluster.rates(worker_1=SLOW, worker_2=SLOW)
    address = cluster.switch["worker-1"].address
    with driver(cluster, "writing_driver.py", postgres.uri()) as program:
        wait_for(
            lambda: written.is_writing(postgres, address, SOME_BYTES) or program.poll() is not None
        )
        assert program.poll() is None
    wait_for(lambda: written.has_ended(postgres))
    assert written.rows(postgres) == written.NOTHING
    assert len(written.unfinished(postgres)) == 1
    cluster.rates()
    # The next driver drops what this one has left.
    with driver(cluster, "writing_driver.py", postgres.uri()) as program:
        assert program.wait() == 0
    assert written.rows(postgres) == written.WHOLE
    assert written.unfinished(postgres) == []
