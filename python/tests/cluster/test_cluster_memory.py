"""Parts that are much larger than an executor's heap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hosted import Database, Served
from spark_cluster import WORKERS, Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2_000_000
LETTERS = 1024
#: The heap of 512 MB, the JVM's own memory, and batches: much less than the part's two gigabytes.
PEAK_BYTES = 1 << 30
#: Each makes rows without keeping them.
QUERIES = {
    "postgres": f"SELECT repeat(md5(i::text), {LETTERS // 32}) AS filler "
    f"FROM (SELECT generate_series(1, {ROWS}) AS i) AS numbers",
    "files": f"SELECT repeat(md5(CAST(value AS VARCHAR)), {LETTERS // 32}) AS filler "
    f"FROM generate_series(1, {ROWS})",
}


@pytest.mark.parametrize("name", ["postgres", "served", "files"])
def test_a_part_streams(
    cluster: Cluster,
    spark: SparkSession,
    postgres: Database,
    dray_server: Served,
    name: str,
) -> None:
    uris = {
        "postgres": postgres.uri(),
        "served": dray_server.uri("pg"),
        "files": dray_server.uri("files"),
    }
    reader = spark.read.format("dray").option("url", uris[name])
    rows = reader.option("query", QUERIES["files" if name == "files" else "postgres"])
    # Else the database would sum.
    frame = rows.option("numPartitions", 1).option("pushDown", "false").load()
    assert frame._jdf.queryExecution().toRdd().getNumPartitions() == 1
    (read,) = frame.selectExpr("count(*)", "sum(length(filler))").collect()
    assert tuple(read) == (ROWS, ROWS * LETTERS)
    peaks = {worker: cluster.executor_peak(worker) for worker in WORKERS}
    assert max(peaks.values()) < PEAK_BYTES, peaks
