"""A driver that is killed or cut off, and how long its snapshot and connections live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hive_servers import SPARK
from hosted import Source
from meanwhile import SLOW, SOME_BYTES, quiet
from spark_cluster import WORKERS, Cluster, wait_for

from lab.spark import standalone

PROGRAM = Path(__file__).with_name("reading_driver.py")


@contextmanager
def driver(cluster: Cluster, source: Source, lease: int) -> Iterator[None]:
    """A driver of its own reads the table over slow links, and is killed at the end."""
    host = cluster.switch["driver"]
    words = [*host.inside, sys.executable, str(PROGRAM), source.uri, str(lease)]
    settings = (f"{name}={value}" for name, value in cluster.settings().items())
    environment = os.environ | standalone.environment(SPARK, host.address)
    environment["PYTHONPATH"] = os.pathsep.join(standalone.packages(SPARK))
    program = subprocess.Popen([*words, *settings], env=environment)
    try:
        wait_for(lambda: all(map(cluster.executor, WORKERS)) or program.poll() is not None)
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        cluster.await_bytes("worker-1", 2 * SOME_BYTES, lambda: program.poll() is None)
        assert source.database
        wait_for(lambda: len(source.database.sessions()) > 1)
        yield
    finally:
        # Python's part of it, and the JVM.
        for pid in host.processes():
            os.kill(pid, signal.SIGKILL)
        program.wait()
        host.mend()
        wait_for(lambda: not any(cluster.executor(worker) for worker in WORKERS))


def test_a_driver_is_killed(cluster: Cluster, postgres_source: Source) -> None:
    with driver(cluster, postgres_source, lease=600):
        pass
    # Nobody waits for the lease: PostgreSQL sees that the connection has ended.
    assert postgres_source.database
    wait_for(lambda: not postgres_source.database.sessions())


def test_a_driver_is_killed_whose_snapshot_a_server_holds(
    cluster: Cluster, served_source: Source
) -> None:
    with driver(cluster, served_source, lease=20):
        pass
    # The server holds the snapshot until the lease is over.
    wait_for(lambda: quiet(served_source))


def test_a_driver_is_cut_off(cluster: Cluster, postgres_source: Source) -> None:
    database = postgres_source.database
    assert database
    address = cluster.switch["driver"].address
    with driver(cluster, postgres_source, lease=20):
        assert (address, "idle in transaction") in database.sessions()
        cluster.switch["driver"].cut()
        # PostgreSQL can't know, and ends the snapshot with its lease.
        wait_for(lambda: address not in [host for host, _ in database.sessions()])
