"""What the tests of the connector share."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import CACHE, PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What `make spark` builds.
JAR = Path(os.environ.get("DRAY_SPARK_JAR") or CACHE / "spark-connector" / "dray-spark.jar")


def load(spark: SparkSession, url: str, **options: object) -> DataFrame:
    """What the connector reads by these options."""
    reader = spark.read.format("dray").option("url", url)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def partitions(frame: DataFrame) -> int:
    """How many partitions a scan has."""
    return frame._jdf.queryExecution().toRdd().getNumPartitions()


def reports(spark: SparkSession, text: str) -> list[Any]:
    """The reports of scans of statements that contain a text."""
    return [r for r in spark._jvm.dray.spark.ScanReports.latest() if text in r.sql()]


def wait_for(found: Callable[[], Any]) -> Any:
    """What is found at last."""
    deadline = time.monotonic() + 30
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def snapshots(postgres: PostgresServer) -> int:
    """How many sessions hold a snapshot for others."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    with postgres.connect() as connection:
        (count,) = connection.execute(sql).fetchone() or (0,)
    return int(count)


def failure(read: Callable[[], object]) -> str:
    """The text of the error with which reading fails."""
    with pytest.raises(Exception) as raised:
        read()
    return str(raised.value)


def cancel(spark: SparkSession, reader: threading.Thread) -> None:
    """Cancel the job of a thread, which may only plan it yet."""

    def has_ended() -> bool:
        spark.sparkContext.cancelAllJobs()
        reader.join(timeout=0.1)
        return not reader.is_alive()

    wait_for(has_ended)
