"""A worker that is slow, and Spark's copies of its tasks at the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import written
from accounts import check
from hosted import Database, Source
from meanwhile import PARTS, SOME_BYTES, changing, quiet, reading
from spark_cluster import Cluster, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.efficiency.enabled": "false",
}


def copies(spark: SparkSession) -> int:
    """How many tasks had copies, in the stages that Spark remembers."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found = 0
    for stage in range(1000):
        summary = store.speculationSummary(stage, 0)
        found += summary.get().numTasks() if summary.isDefined() else 0
    return found


def test_tasks_have_copies(cluster: Cluster, spark: SparkSession, source: Source) -> None:
    before = copies(spark)
    with changing(source):
        # A part takes a second at one worker, and more than ten at the other.
        cluster.rates(worker_2="4mbit")
        with reading(spark, lambda: check(source.load(spark, numPartitions=PARTS))) as is_alive:
            cluster.await_bytes("worker-2", SOME_BYTES, is_alive)
        assert copies(spark) > before
        if source.database:
            # The statements of tasks that were killed have ended, too.
            wait_for(lambda: quiet(source))


def test_tasks_that_write_have_copies(
    cluster: Cluster, spark: SparkSession, postgres: Database
) -> None:
    """The rows of one of them are in the table."""
    postgres.run(written.DDL)
    before = copies(spark)
    cluster.rates(worker_2="4mbit")
    written.write(spark, postgres.uri())
    assert copies(spark) > before
    assert written.rows(postgres) == written.WHOLE
    assert written.unfinished(postgres) == []
    wait_for(lambda: written.has_ended(postgres))
