"""What fails while a cluster reads: tasks, executors, links. The rows are those of one moment."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
import written
from accounts import ROWS, check
from hosted import Database, Source
from meanwhile import PARTS, SLOW, SOME_BYTES, changing, failed_tasks, quiet, reading
from spark_cluster import Cluster, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_come_once(spark: SparkSession, source: Source) -> None:
    with changing(source):
        for _ in range(3):
            check(source.load(spark, numPartitions=PARTS))
        if source.database:
            wait_for(lambda: quiet(source))


def test_an_executor_is_killed(cluster: Cluster, spark: SparkSession, source: Source) -> None:
    before = failed_tasks(spark)
    with changing(source):
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        with reading(spark, lambda: check(source.load(spark, numPartitions=PARTS))) as is_alive:
            cluster.await_bytes("worker-1", SOME_BYTES, is_alive)
            executor = cluster.executor("worker-1")
            assert executor
            os.kill(executor, signal.SIGKILL)
        assert failed_tasks(spark) > before
        if source.database:
            wait_for(lambda: quiet(source))


@pytest.mark.parametrize("options", [{}, {"readTimeout": 3}], ids=["patient", "impatient"])
def test_a_link_is_cut(
    cluster: Cluster, spark: SparkSession, source: Source, options: dict[str, int]
) -> None:
    before = failed_tasks(spark)
    with changing(source):
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        accounts = source.load(spark, numPartitions=PARTS, **options)
        with reading(spark, lambda: check(accounts)) as is_alive:
            cluster.await_bytes("worker-2", SOME_BYTES, is_alive)
            cluster.switch["worker-2"].cut()
            time.sleep(8)
            cluster.switch["worker-2"].mend()
        # Either the part went on, or it was read anew.
        assert (failed_tasks(spark) > before) == bool(options)


def test_the_source_is_cut_off(cluster: Cluster, spark: SparkSession, source: Source) -> None:
    cluster.rates(worker_1=SLOW, worker_2=SLOW)
    accounts = source.load(spark, numPartitions=PARTS)
    with reading(spark, lambda: check(accounts)) as is_alive:
        cluster.await_bytes("worker-1", SOME_BYTES, is_alive)
        cluster.switch["source"].cut()
        time.sleep(5)
        cluster.switch["source"].mend()
    assert accounts.count() == ROWS


def test_an_executor_is_killed_that_writes(
    cluster: Cluster, spark: SparkSession, postgres: Database
) -> None:
    postgres.run(written.DDL)
    before = failed_tasks(spark)
    cluster.rates(worker_1=SLOW, worker_2=SLOW)
    address = cluster.switch["worker-1"].address
    with reading(spark, lambda: written.write(spark, postgres.uri())) as is_alive:
        wait_for(lambda: written.is_writing(postgres, address, SOME_BYTES) or not is_alive())
        executor = cluster.executor("worker-1")
        assert is_alive() and executor
        os.kill(executor, signal.SIGKILL)
    assert failed_tasks(spark) > before
    assert written.rows(postgres) == written.WHOLE
    assert written.unfinished(postgres) == []
    wait_for(lambda: written.has_ended(postgres))
