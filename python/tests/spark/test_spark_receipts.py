"""Parts that are read twice, with different rows: whatever has them fails.

A snapshot keeps a part from having other rows. So these tests read a statement that is one part,
and that has other rows each time that it runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postgres_server import PostgresServer
from reading import failure, load, reports, wait_for
from writing import rows, save, unfinished

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

TWICE = "part 0 was read twice, with different rows: 1 and 1 of them"


def twice(frame: Any) -> Any:
    """The rows of a frame's only part, as two partitions of an RDD of Java."""
    rdd = frame._jdf.queryExecution().toRdd()
    assert rdd.getNumPartitions() == 1
    return rdd.union(rdd)


def test_tasks_at_a_time(spark: SparkSession, postgres: PostgresServer) -> None:
    """Two of four tasks run at a time. The job is cancelled while the others do."""
    query = "SELECT random() AS r, pg_sleep(2)::text AS t /* at a time */"
    two = twice(load(spark, postgres.uri(), query=query))
    four = two.union(two)
    assert TWICE in failure(four.count)
    # What has read it may not go on, nor begin again.
    assert f"{TWICE} (load the table anew)" in failure(four.count)
    wait_for(lambda: TWICE in [report.problem() for report in reports(spark, "at a time")])
    assert len(load(spark, postgres.uri(), query=query).collect()) == 1


def test_a_query_that_runs_again(spark: SparkSession, postgres: PostgresServer) -> None:
    """It may have other rows, whether its snapshot is still held or not."""
    frame = load(spark, postgres.uri(), query="SELECT random() AS r /* again */")
    held = load(spark, postgres.uri(), query="SELECT pg_sleep(4)::text AS t")
    other = threading.Thread(target=held.collect)
    other.start()
    postgres.wait_for_statement("pg_sleep(4)", 1)
    assert len({frame.collect()[0].r for _ in range(3)}) == 3
    other.join()
    for report in wait_for(lambda: reports(spark, "/* again */")):
        assert not report.isInconsistent()


def test_a_write_is_not_committed(spark: SparkSession, postgres: PostgresServer) -> None:
    """Nor if only the last task has shown that rows differ, when Spark takes the job for done."""
    postgres.run("DROP TABLE IF EXISTS target", "CREATE TABLE target (r float8)")
    frame = load(spark, postgres.uri(), query="SELECT random() AS r /* written */")
    from pyspark.sql import DataFrame

    made = spark._jsparkSession.internalCreateDataFrame(twice(frame), frame._jdf.schema(), False)
    said = failure(lambda: save(DataFrame(made, spark), postgres.uri(), "target"))
    assert f"nothing is written: {TWICE}" in said
    assert rows(postgres, "SELECT count(*) FROM target") == [(0,)]
    assert unfinished(postgres) == []


def test_a_stage_that_runs_again(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Some tasks have taken the rows of its first run."""
    folder = spark.sparkContext.getConf().get("spark.local.dir")
    lost = tmp_path / "lost"

    def lose_shuffled(taken: Iterator[Row]) -> Iterator[Row]:
        kept = list(taken)
        if not lost.exists():
            # Both tasks that run at a time have their rows by then.
            time.sleep(4)
            for kind in ("data", "index"):
                for path in Path(folder).rglob(f"shuffle_*.{kind}"):
                    path.unlink(missing_ok=True)
            lost.touch()
        return iter(kept)

    # Else what was shuffled is from a job of its own.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    query = "SELECT random() AS r FROM generate_series(1, 1000)"
    frame = load(spark, postgres.uri(), query=query)
    read = frame.repartition(4).rdd.mapPartitions(lose_shuffled)
    spark.conf.unset("spark.sql.adaptive.enabled")
    said = failure(read.collect)
    assert lost.exists()
    assert "part 0 was read twice, with different rows: 1000 and 1000 of them" in said
