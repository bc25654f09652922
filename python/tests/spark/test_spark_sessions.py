"""What scans leave at the database: nothing, soon after they have ended, whichever way."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import PostgresServer
from reading import JAR, cancel, failure, load, partitions, wait_for
from relay_server import Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Plans a scan that never runs, and ends.
APPLICATION = """
import sys
from pyspark.sql import SparkSession
jar, url = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", jar)
    .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.catalogImplementation", "in-memory").getOrCreate()
)
orders = spark.read.format("dray").options(url=url, dbtable="orders", numPartitions=4).load()
print("parts:", orders._jdf.queryExecution().toRdd().getNumPartitions())
spark.stop()
"""


@pytest.fixture(params=["direct", "relayed"])
def url(request: pytest.FixtureRequest, postgres: PostgresServer) -> str:
    if request.param == "direct":
        return postgres.uri()
    server: Relay = request.getfixturevalue("server")
    return server.uri("pg")


def sessions(postgres: PostgresServer) -> list[Any]:
    """The sessions of all clients but this one."""
    sql = (
        "SELECT application_name, state, query FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with postgres.connect() as connection:
        return connection.execute(sql).fetchall()


def all_end(postgres: PostgresServer) -> bool:
    wait_for(lambda: not sessions(postgres))
    return True


def test_queries_that_end(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    orders = load(spark, url, dbtable="orders", numPartitions=4)
    assert len(orders.select("id").collect()) == 100_000
    joined = orders.join(orders.selectExpr("id - 1 AS id", "name AS next"), "id")
    assert joined.count() == 99_999
    # Nothing but a look at the partitions.
    assert partitions(orders.select("name")) == 4
    assert all_end(postgres)


def test_a_job_that_fails(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    orders = load(spark, url, dbtable="orders", numPartitions=4)
    broken = orders.selectExpr("IF(id = 99000, raise_error('broken'), id) AS id")
    assert "broken" in failure(broken.collect)
    assert all_end(postgres)


def test_parts_that_nobody_reads(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    orders = load(spark, url, dbtable="orders", numPartitions=4, batchRows=1000)
    # Spark's own filter and limit: the first part has enough rows.
    assert len(orders.where("id % 7 = 3").limit(2).collect()) == 2
    assert len(orders.rdd.take(3)) == 3
    assert all_end(postgres)


def test_a_job_that_is_cancelled(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    slow = load(spark, url, query="SELECT 1 AS i, pg_sleep(20)::text AS t")
    failed: list[str] = []
    reader = threading.Thread(target=lambda: failed.append(failure(slow.collect)))
    reader.start()
    postgres.wait_for_statement("pg_sleep(20)", 1)
    cancel(spark, reader)
    assert "cancelled" in failed[0]
    assert all_end(postgres)


def test_a_plan_for_a_query_that_has_failed(
    spark: SparkSession, postgres: PostgresServer, url: str
) -> None:
    """One side of a join is still planned when the other one fails."""
    postgres.run(
        "DROP TABLE IF EXISTS locked",
        "CREATE TABLE locked AS SELECT i AS id FROM generate_series(1, 1000) i",
    )
    locked = load(spark, url, dbtable="locked", pushDown="false")
    orders = load(spark, url, dbtable="orders", numPartitions=2, pushDown="false")
    broken = orders.selectExpr("IF(id > 0, raise_error('broken'), third) AS t").groupBy("t").count()
    joined = broken.crossJoin(locked.hint("broadcast"))
    with postgres.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")
        assert "broken" in failure(joined.collect)
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        assert connection.execute(waiting).fetchone() == (1,)
    assert all_end(postgres)
    # Nor does it keep the snapshots of what runs later.
    assert len(orders.select("name").collect()) == 100_000
    assert all_end(postgres)


@pytest.mark.usefixtures("spark")
def test_an_application_that_ends(postgres: PostgresServer, url: str) -> None:
    command = [sys.executable, "-c", APPLICATION, str(JAR), url]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "parts: 4" in ran.stdout, ran.stdout
    assert all_end(postgres)
