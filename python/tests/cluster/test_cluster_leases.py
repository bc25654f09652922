"""Leases that end while a query reads: an error, and never other rows."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from accounts import check, moving
from hosted import Source
from meanwhile import SLOW, quiet, reading
from spark_cluster import Cluster, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Shorter than it takes to read the table over slow links.
LEASE_S = 3


def test_a_lease_is_over(cluster: Cluster, spark: SparkSession, database: Source) -> None:
    assert database.database
    with moving(database.database):
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        late = database.load(spark, numPartitions=12, lease=LEASE_S)
        with pytest.raises(Exception, match="the plan's lease ended"):
            check(late)
        # A new scan has a new snapshot.
        check(database.load(spark, numPartitions=12))


def reading_has_ended(spark: SparkSession) -> bool:
    """Whether the tasks of the first stage have, and those of the next one run."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage and stage.numTasks == 2 and stage.numActiveTasks == 2 for stage in stages)


def test_a_part_is_read_again_after_the_lease(
    cluster: Cluster, spark: SparkSession, database: Source, tmp_path: Path
) -> None:
    """An executor is lost with what it has read, when the snapshot is gone. Its parts can't come
    from another one.
    """
    assert database.database
    with moving(database.database):
        # Two tasks have read everything before they wait in the next stage.
        read = database.load(spark, numPartitions=4, lease=LEASE_S + 7).repartition(2, "id")

        # Only the first time, whatever makes Spark try again.
        waited = str(tmp_path)

        def wait(rows):  # type: ignore[no-untyped-def]
            import pathlib
            import time

            from pyspark import TaskContext

            mark = pathlib.Path(waited, str(TaskContext.get().partitionId()))
            if not mark.exists():
                mark.touch()
                time.sleep(30)
            return [(row.id, row.amount) for row in rows]

        rows: list[tuple[int, int]] = []

        def collect() -> None:
            rows.extend(read.select("id", "amount").rdd.mapPartitions(wait).collect())

        try:
            with reading(spark, collect):
                wait_for(lambda: reading_has_ended(spark))
                # The lease ends meanwhile.
                wait_for(lambda: quiet(database))
                executor = cluster.executor("worker-1")
                assert executor
                os.kill(executor, signal.SIGKILL)
        except Exception as error:
            assert "lease" in str(error)
        else:
            ids = {row for row, _ in rows}
            assert len(ids) == len(rows), "a row came twice"
            assert all(row ^ 1 in ids for row in ids), "half of a pair is missing"
            assert sum(amount for _, amount in rows) == 0, "amounts are of several moments"


def test_a_cached_part_is_lost(cluster: Cluster, spark: SparkSession, database: Source) -> None:
    """With an executor, when the snapshot is gone: the cache is not completed by another one."""
    assert database.database
    with moving(database.database):
        cached = database.load(spark, numPartitions=4).cache()
        check(cached)
        wait_for(lambda: quiet(database))
        executor = cluster.executor("worker-1")
        assert executor
        os.kill(executor, signal.SIGKILL)
        with pytest.raises(Exception, match="rows that the cache has lost"):
            check(cached)
        cached.unpersist()
        check(database.load(spark, numPartitions=4))
