"""Reading tables by Spark: whole, in parts under one snapshot, and what is pushed down."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from reading import cancel, failure, load, partitions, reports, snapshots, wait_for
from relay_server import Relay

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ORDERS = 100_000
SUM = "sum(id) AS ids, sum(x) AS xs, count(third) AS thirds, count(*) AS n"


def test_parts_are_the_table(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    assert partitions(orders) == 4
    orders.createOrReplaceTempView("orders")
    (read,) = spark.sql(f"SELECT {SUM}, count(DISTINCT name) AS names FROM orders").collect()
    with postgres.connect() as connection:
        sql = f"SELECT {SUM}, count(DISTINCT name) AS names FROM orders"
        assert tuple(read) == tuple(connection.execute(sql).fetchone() or ())


def test_receipts_prove_a_scan_and_its_snapshot_is_given_up(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    query = "SELECT id, name FROM orders WHERE id > 0 /* receipts */"
    frame = load(spark, postgres.uri(), query=query, numPartitions=4).select("name")
    assert len(frame.collect()) == ORDERS
    (report,) = wait_for(lambda: reports(spark, "FROM orders WHERE id > 0"))
    assert (report.parts(), report.read(), report.isWhole()) == (4, 4, True)
    frame = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    assert len(frame.select("name", "third").collect()) == ORDERS
    (report,) = wait_for(lambda: reports(spark, 'SELECT "name", "third" FROM orders'))
    assert (report.parts(), report.read(), report.rows()) == (4, 4, ORDERS)
    assert report.isWhole() and not report.isInconsistent()
    wait_for(lambda: snapshots(postgres) == 0)


def metric(spark: SparkSession, name: str) -> str | None:
    """A metric of the last query, as Spark's UI shows it."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    execution = store.executionsList().last().executionId()
    values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
    for i in range(nodes.size()):
        metrics = nodes.apply(i).metrics()
        for found in (metrics.apply(j) for j in range(metrics.size())):
            if found.name() == name and values.contains(found.accumulatorId()):
                return str(values.apply(found.accumulatorId()))
    return None


def test_metrics(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    assert len(orders.select("id", "x").collect()) == ORDERS
    assert metric(spark, "parts with a receipt") == "4"
    peak = int((metric(spark, "peak bytes of batches") or "0").replace(",", ""))
    # At least the batch of a part: numbers of four and of eight bytes.
    assert ORDERS // 8 * 12 < peak < 64 << 20


def test_columns_and_limits_are_pushed(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    start = postgres.log_bytes()
    assert len(orders.select("third").limit(7).collect()) == 7
    assert 'SELECT "third" FROM orders LIMIT 7' in postgres.log(start)
    explained = orders.select("x")._jdf.queryExecution().executedPlan().toString()
    assert 'dray [SELECT "x" FROM orders]' in explained
    assert "postgresql://" not in explained


@pytest.mark.parametrize(
    "given",
    [
        {"query": "SELECT * FROM orders WHERE id > 10 -- most"},
        {"dbtable": "(SELECT * FROM orders WHERE id > 10) AS most"},
        {"dbtable": "orders WHERE id > 10"},
    ],
)
def test_a_query_in_parts(
    spark: SparkSession, postgres: PostgresServer, given: dict[str, str]
) -> None:
    """Also if Spark wants only some of its columns or rows."""
    most = load(spark, postgres.uri(), numPartitions=3, **given)
    for frame, count in [
        (most, ORDERS - 10),
        (most.select("id"), ORDERS - 10),
        (most.where("id <= 70000").select("id"), 70_000 - 10),
        (most.where("id <= 70000"), 70_000 - 10),
    ]:
        assert partitions(frame) == 3
        assert sorted(row.id for row in frame.collect()) == list(range(11, 11 + count))


def test_no_column_is_read_for_a_count(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4, pushDown="false")
    start = postgres.log_bytes()
    assert orders.count() == ORDERS
    assert "SELECT 1 AS dray_row FROM orders" in postgres.log(start)


def test_estimates_are_the_planners(
    spark: SparkSession, postgres: PostgresServer, maria: MariaServer
) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        stats, of_maria = (
            load(spark, url, dbtable="orders")._jdf.queryExecution().optimizedPlan().stats()
            for url in (postgres.uri(), maria.uri())
        )
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert stats.rowCount().get() == ORDERS
    assert 1_000_000 < int(str(stats.sizeInBytes())) < 100_000_000
    # It counts from samples.
    assert ORDERS // 2 < int(str(of_maria.rowCount().get())) < 2 * ORDERS


def test_the_number_of_parts(spark: SparkSession, postgres: PostgresServer) -> None:
    def count(**options: object) -> int:
        return partitions(load(spark, postgres.uri(), dbtable="orders", **options))

    assert count(numPartitions=3) == 3
    assert count(numPartitions=1) == 1
    assert count(numPartitions=4, maxConnections=2) == 2
    assert count(bytesPerPartition=10**9) == 1
    assert count(bytesPerPartition=1000, maxConnections=3) == 3


def test_all_parts_have_one_snapshot(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS moving",
        "CREATE TABLE moving AS SELECT i AS id, 10 AS amount, repeat('x', 50) AS filling "
        "FROM generate_series(1, 60000) i",
        "ANALYZE moving",
    )
    ended = threading.Event()

    def move() -> None:
        with postgres.connect() as connection:
            while not ended.is_set():
                # Rows move to the table's end, and their sum stays.
                connection.execute(
                    "WITH gone AS (DELETE FROM moving WHERE ctid = ANY (ARRAY(SELECT ctid FROM "
                    "moving LIMIT 500)) RETURNING *) INSERT INTO moving SELECT * FROM gone"
                )

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(3):
            moving = load(
                spark, postgres.uri(), dbtable="moving", numPartitions=4, pushDown="false"
            )
            (row,) = moving.selectExpr(
                "count(*)", "sum(amount)", "count(DISTINCT id)", "max(id)"
            ).collect()
            assert tuple(row) == (60000, 600000, 60000, 60000)
    finally:
        ended.set()
        mover.join()


def test_a_task_that_fails_is_read_again(spark: SparkSession, postgres: PostgresServer) -> None:
    def fail_first(rows):  # type: ignore[no-untyped-def]
        from pyspark import TaskContext

        count = sum(1 for _ in rows)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")
        return [count]

    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4).select("x", "third")
    counts = orders.rdd.mapPartitions(fail_first).collect()
    assert sum(counts) == ORDERS and len(counts) == 4
    # A snapshot that the job began too late for has a report, too.
    (report,) = wait_for(
        lambda: [r for r in reports(spark, 'SELECT "x", "third" FROM orders') if r.read()]
    )
    assert report.isWhole() and report.rows() == ORDERS


def test_a_plan_that_runs_again_reads_anew(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS growing", "CREATE TABLE growing AS SELECT 1 AS id")
    growing = load(spark, postgres.uri(), dbtable="growing")
    assert [row.id for row in growing.collect()] == [1]
    wait_for(lambda: reports(spark, "FROM growing"))
    postgres.run("INSERT INTO growing VALUES (2)")
    assert sorted(row.id for row in growing.collect()) == [1, 2]
    # Also if it runs at once, whether the snapshot is still held or not.
    assert [len(growing.collect()) for _ in range(3)] == [2, 2, 2]


def test_a_lease_that_is_over(spark: SparkSession, postgres: PostgresServer) -> None:
    rows = load(spark, postgres.uri(), dbtable="orders", numPartitions=2, lease=5)
    prepared = rows.select("id")
    assert partitions(prepared) == 2
    time.sleep(5.5)
    assert len(prepared.collect()) == ORDERS


@pytest.mark.parametrize(("lease", "pause"), [(10, 11), (600, 4)])
def test_a_stage_that_runs_again(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path, lease: int, pause: int
) -> None:
    """Under the same snapshot, or not at all once its lease is over."""
    # Else what was shuffled is from a job of its own.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    postgres.run(
        "DROP TABLE IF EXISTS changing",
        "CREATE TABLE changing AS SELECT i AS id, 0 AS version FROM generate_series(1, 50000) i",
        "ANALYZE changing",
    )
    folder = spark.sparkContext.getConf().get("spark.local.dir")
    lost = tmp_path / "lost"

    def lose_shuffled(rows: Iterator[Row]) -> Iterator[Row]:
        taken = list(rows)
        if not lost.exists():
            # Both tasks that run at a time have their rows by then.
            time.sleep(pause)
            for kind in ("data", "index"):
                for path in Path(folder).rglob(f"shuffle_*.{kind}"):
                    path.unlink(missing_ok=True)
            lost.touch()
        return iter(taken)

    changing = load(spark, postgres.uri(), dbtable="changing", numPartitions=2, lease=lease)
    read = changing.repartition(4).rdd.mapPartitions(lose_shuffled)
    spark.conf.unset("spark.sql.adaptive.enabled")
    is_over = lease < pause
    found: list[object] = []
    reader = threading.Thread(
        target=lambda: found.append(failure(read.collect) if is_over else read.collect())
    )
    reader.start()
    wait_for(lambda: snapshots(postgres))
    time.sleep(2)
    postgres.run("UPDATE changing SET version = 1")
    reader.join(timeout=60)
    assert lost.exists()
    if is_over:
        assert "the lease is over" in str(found[0])
    else:
        assert sorted(found[0]) == [(i, 0) for i in range(1, 50001)]


def test_a_cached_table_outlives_its_snapshot(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept AS SELECT i AS id, 'text ' || i AS name, ARRAY[i, NULL] AS list "
        "FROM generate_series(1, 50000) i",
        "ANALYZE kept",
    )
    kept = load(spark, postgres.uri(), dbtable="kept", numPartitions=3).cache()
    assert kept.count() == 50000
    wait_for(lambda: reports(spark, "FROM kept"))
    postgres.run("DROP TABLE kept")
    assert kept.where("name = 'text ' || id AND list[0] = id AND list[1] IS NULL").count() == 50000
    kept.unpersist()


def test_a_table_is_cached_bit_by_bit(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS growing",
        "CREATE TABLE growing AS SELECT i AS id, repeat('x', 90) AS filler "
        "FROM generate_series(1, 50000) i",
        "ANALYZE growing",
    )
    cached = load(spark, postgres.uri(), dbtable="growing", numPartitions=3).cache()
    assert len(cached.take(1)) == 1  # Reads the first part only.
    postgres.run("UPDATE growing SET id = id + 1000000")
    time.sleep(7)
    assert snapshots(postgres) == 1
    assert cached.where("id <= 50000").count() == 50000
    # All is read: the snapshot is not needed any more.
    wait_for(lambda: snapshots(postgres) == 0)
    assert cached.where("id <= 50000").count() == 50000
    cached.unpersist()
    # What was never read is not needed any more, either. Now the first part has rows again.
    postgres.run("VACUUM FULL growing")
    again = load(spark, postgres.uri(), dbtable="growing", numPartitions=3).cache()
    assert len(again.take(1)) == 1
    assert snapshots(postgres) == 1
    again.unpersist()
    wait_for(lambda: snapshots(postgres) == 0)


def test_a_cached_table_beside_one_that_is_read_anew(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    kept = load(spark, postgres.uri(), dbtable="orders", numPartitions=2).select("id").cache()
    postgres.run("DROP TABLE IF EXISTS beside", "CREATE TABLE beside AS SELECT 1::bigint AS id")
    both = kept.union(load(spark, postgres.uri(), dbtable="beside").select("id"))
    for added in range(1, 4):
        # One stage has both, and each run reads the small table under another snapshot.
        assert len(both.collect()) == ORDERS + added
        postgres.run("INSERT INTO beside VALUES (1)")
        wait_for(lambda: snapshots(postgres) == 0)
    kept.unpersist()


def test_rows_that_are_kept_are_copied(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=2, batchRows=1000)
    # A sort and a join keep rows of all batches until the end.
    one, two = orders.select("id", "name"), orders.selectExpr("id", "name AS other")
    joined = one.join(two, "id").orderBy("name")
    assert joined.where("name = other").count() == ORDERS


def test_a_task_that_is_killed_ends_its_statement(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    slow = load(spark, postgres.uri(), query="SELECT 1 AS i, pg_sleep(25)::text AS t")
    failed: list[str] = []
    reader = threading.Thread(target=lambda: failed.append(failure(slow.collect)))
    reader.start()
    postgres.wait_for_statement("pg_sleep(25)", 1)
    cancel(spark, reader)
    assert "cancelled" in failed[0]
    wait_for(lambda: is_quiet(postgres))


def is_quiet(postgres: PostgresServer) -> bool:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(25)%' AND state = "
    with postgres.connect() as connection:
        return connection.execute(sql + "'active' AND pid <> pg_backend_pid()").fetchone() == (0,)


def test_shapes(spark: SparkSession, postgres: PostgresServer) -> None:
    columns = ", ".join(f"{i} AS c{i}" for i in range(1200))
    postgres.run(
        "DROP TABLE IF EXISTS empty, wide",
        "CREATE TABLE empty (id integer, name text)",
        f"CREATE TABLE wide AS SELECT {columns}, i AS id FROM generate_series(1, 50) i",
    )
    empty = load(spark, postgres.uri(), dbtable="empty", numPartitions=4)
    assert empty.collect() == [] and empty.count() == 0
    wide = load(spark, postgres.uri(), dbtable="wide")
    assert len(wide.columns) == 1201
    (row,) = wide.where("id = 50").collect()
    assert tuple(row) == (*range(1200), 50)


def test_servers(spark: SparkSession, server: Relay, maria: MariaServer) -> None:
    for source, parts in [("pg", 4), ("maria", 4)]:
        orders = load(
            spark, server.uri(source), dbtable="orders", numPartitions=4, pushDown="false"
        )
        assert partitions(orders) == parts
        (row,) = orders.selectExpr("count(*)", "sum(id)", "count(DISTINCT name)").collect()
        assert tuple(row) == (ORDERS, ORDERS * (ORDERS + 1) // 2, ORDERS)
    direct = load(spark, maria.uri(), dbtable="orders", numPartitions=4)
    assert partitions(direct) == 1
    (row,) = direct.selectExpr("count(*)", "sum(id)").collect()
    assert tuple(row) == (ORDERS, ORDERS * (ORDERS + 1) // 2)


def test_files(spark: SparkSession, server: Relay) -> None:
    big = load(spark, server.uri(), dbtable="large_rows", numPartitions=3)
    (row,) = big.selectExpr("count(*)").collect()
    assert row[0] == big.count() > 0


def test_a_table_that_shrinks_between_runs(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS shrinking",
        "CREATE TABLE shrinking AS SELECT i AS id, repeat('x', 99) AS t "
        "FROM generate_series(1, 60000) i",
        "ANALYZE shrinking",
    )
    shrinking = load(spark, postgres.uri(), dbtable="shrinking", numPartitions=4)
    assert len(shrinking.collect()) == 60000
    wait_for(lambda: reports(spark, "FROM shrinking"))
    postgres.run("TRUNCATE shrinking", "INSERT INTO shrinking VALUES (1, 'x')")
    assert [row.id for row in shrinking.collect()] == [1]
