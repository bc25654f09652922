"""A streaming standby as the source: reads need nothing of its primary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from accounts import DDL, ROWS, check, moving
from hosted import Database, Source, Standby
from meanwhile import PARTS, SLOW, SOME_BYTES, quiet, reading
from spark_cluster import Cluster, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def replica(cluster: Cluster, primary: Database, **settings: str) -> Iterator[Standby]:
    """A standby with the table."""
    primary.run(DDL)
    standby = Standby(cluster.switch["replica"], primary, settings)
    try:
        standby.catch_up()
        yield standby
    finally:
        standby.stop()


def test_a_replica_follows(cluster: Cluster, spark: SparkSession, postgres: Database) -> None:
    with (
        replica(cluster, postgres, hot_standby_feedback="on") as standby,
        moving(postgres),
    ):
        source = Source("replica", standby.uri(), standby)
        for _ in range(3):
            check(source.load(spark, numPartitions=PARTS))
        wait_for(lambda: quiet(source))


def test_a_replica_ends_a_snapshot(
    cluster: Cluster, spark: SparkSession, postgres: Database
) -> None:
    """The primary removes rows that the snapshot needs. The standby then ends who reads them."""
    with replica(cluster, postgres, max_standby_streaming_delay="100ms") as standby:
        cluster.rates(worker_1=SLOW, worker_2=SLOW)
        source = Source("replica", standby.uri(), standby)
        accounts = source.load(spark, numPartitions=PARTS)
        with pytest.raises(Exception, match="conflict with recovery|snapshot is gone"):
            with reading(spark, lambda: check(accounts)) as is_alive:
                cluster.await_bytes("worker-1", SOME_BYTES, is_alive)
                postgres.run("DELETE FROM accounts WHERE id % 4 < 2", "VACUUM accounts")
        standby.catch_up()
        cluster.rates()
        read = source.load(spark, numPartitions=PARTS)
        check(read)
        assert read.count() == ROWS // 2
