"""Spark's Python data source, in a Spark of two local executors.

Spark has half a gigabyte, so `make test-all` runs this, and `make test` does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from engine_tables import (
    KINDS,
    PAIRS,
    ROWS,
    TOKEN,
    changing,
    check_whole,
    copied,
    pairs,
    parts_read,
)
from hive_servers import SPARK
from postgres_server import PostgresServer
from relay_server import Relay, wait_until


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(
    "DRAY_ALL_VERSIONS" not in os.environ, reason="Spark is large: DRAY_ALL_VERSIONS brings it"
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    assert SPARK.exists(), f"no Spark at {SPARK}: run scripts/setup with DRAY_ALL_VERSIONS=1"
    (py4j,) = (SPARK / "python" / "lib").glob("py4j-*.zip")
    sys.path.append(str(py4j))
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    from pyspark.sql import SparkSession

    import dray.spark

    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(dray.spark.DrayDataSource)
    yield session
    session.stop()
    wait_until(lambda: not keepers())


def keepers() -> list[str]:
    """The processes that hold plans."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if "-m dray._keeper" in line]


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def load(spark: SparkSession, url: str, **options: object) -> DataFrame:
    # Each frame that was executed holds a connection until its lease ends.
    reader = spark.read.format("dray").option("url", url).option("lease", "15")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def test_each_row_once_while_rows_change(spark: SparkSession, postgres: PostgresServer) -> None:
    with copied(postgres, "pairs") as table, changing(postgres, table):
        for source in ({"dbtable": table}, {"query": f"SELECT id, amount FROM {table}"}):
            frame = load(spark, postgres.uri(), numPartitions=5, **source)
            assert 2 <= frame.rdd.getNumPartitions() <= 5
            first, again = frame.toArrow(), frame.toArrow()
            check_whole(first["id"].to_pylist(), first["amount"].to_pylist())
            # A frame that was executed keeps its plan.
            assert first.sort_by("id").equals(again.sort_by("id"))


def test_types(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = load(spark, postgres.uri(), query=f"SELECT {', '.join(KINDS)} FROM kinds")
    types = dict(frame.dtypes)
    assert (types["at"], types["instant"], types["price"], types["free"], types["list"]) == (
        "timestamp_ntz",
        "timestamp",
        "decimal(12,2)",
        "string",
        "array<int>",
    )
    assert frame.toArrow().to_pydict() == KINDS
    whole = load(spark, postgres.uri(), dbtable="kinds").select("label", "doc").toArrow()
    assert whole["label"][0].as_py() == "00112233-4455-6677-8899-aabbccddeeff"
    assert whole["doc"][0].as_py() == '{"a": 1}'
    for sql, column in (
        ("1::numeric(50,2) AS wide", "'wide', decimal256"),
        ("interval '1 day' AS span", "'span', month_day_nano"),
        ("ARRAY[interval '1 day'] AS spans", "'spans.element', month_day_nano"),
    ):
        with pytest.raises(Exception, match=f"Spark has no type for column {column}.*CAST"):
            load(spark, postgres.uri(), query=f"SELECT {sql}")
    empty = load(spark, postgres.uri(), dbtable="nothing")
    assert empty.columns == ["id", "name"] and empty.count() == 0
    with pytest.raises(Exception, match="the schema is .*id:int.* use CAST in SQL"):
        spark.read.format("dray").schema("id string").option("url", postgres.uri()).option(
            "dbtable", "nothing"
        ).load().collect()


FILTERS = [
    ("id < 1 AND small <> 7", '"id" < 1 AND "small" <> 7', True),
    ("price = 1.50 OR price IS NULL", None, True),
    ("price >= 1.5", "\"price\" >= CAST('1.50' AS DECIMAL(12, 2))", True),
    ("day > DATE'2000-01-01'", "\"day\" > DATE '2000-01-01'", True),
    ("flag", '"flag" = TRUE', True),
    ("NOT flag", None, None),
    ("id IN (1, 5)", '"id" IN (1, 5)', True),
    ("name IS NULL", '"name" IS NULL', True),
    ("name = 'it''s a'", "\"name\" = 'it''s a'", False),
    ("padded = 'x'", "\"padded\" = 'x'", False),
    ("feeling = 'angry'", None, False),
    ("name > 'a'", None, False),
    ("name LIKE 'it%'", None, False),
    ("at > TIMESTAMP_NTZ'2000-01-01 00:00:00'", None, False),
    ("x < 0.2", None, False),
    ("id + 1 = 2", None, False),
]


def test_filters(pushing: SparkSession, postgres: PostgresServer) -> None:
    """What the source gets, what Spark applies, and that together they change no result."""
    names = ", ".join(KINDS)
    own = pushing.createDataFrame(
        load(pushing, postgres.uri(), query=f"SELECT {names} FROM kinds").collect(),
        load(pushing, postgres.uri(), query=f"SELECT {names} FROM kinds").schema,
    )
    for where, sql, absorbed in FILTERS:
        start = postgres.log_bytes()
        frame = load(pushing, postgres.uri(), dbtable="kinds").select(list(KINDS)).where(where)
        assert frame.select("id").collect() == own.where(where).select("id").collect(), where
        statement = " ".join(parts_read(postgres, start))
        assert (sql or "kinds") in statement, (where, statement)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        if absorbed and sql is not None:
            assert "Filter" not in plan.replace("RuntimeFilters", ""), (where, plan)
        elif sql is not None:
            assert "Filter" in plan.replace("RuntimeFilters", ""), (where, plan)


def test_texts_that_the_database_lacks(pushing: SparkSession, narrow: str) -> None:
    frame = load(pushing, narrow, dbtable="names")
    assert frame.where("name = '🐴'").collect() == []
    assert [row.id for row in frame.where("name = 'ü'").collect()] == [1]


def test_no_filters_unless_enabled(spark: SparkSession, postgres: PostgresServer) -> None:
    start = postgres.log_bytes()
    assert load(spark, postgres.uri(), dbtable="pairs").where("id < 10").count() == 10
    assert not any("10" in statement for statement in parts_read(postgres, start))


def test_a_query_is_sent_as_it_is(pushing: SparkSession, postgres: PostgresServer) -> None:
    frame = load(pushing, postgres.uri(), query="SELECT id FROM pairs", numPartitions=3)
    start = postgres.log_bytes()
    assert frame.where("id < 10").count() == 10
    statements = parts_read(postgres, start)
    assert 2 <= len(statements) <= 3
    assert all(statement.startswith("SELECT id FROM ONLY pairs") for statement in statements)


def test_a_dray_server(pushing: SparkSession, served: Relay) -> None:
    frame = load(pushing, served.uri(), dbtable="pairs", token=TOKEN, numPartitions=4)
    assert frame.toArrow().sort_by("id").cast(pairs().schema) == pairs()
    few = frame.where(f"id >= {PAIRS} AND amount IN ({PAIRS}, -{PAIRS})")
    assert sorted(row.id for row in few.collect()) == [PAIRS, PAIRS + 1]
    behind = load(pushing, served.uri("pg"), dbtable="pairs", token=TOKEN, numPartitions=3)
    assert behind.where("id < 1000").groupBy().sum("amount").collect()[0][0] == 0
    behind = load(pushing, served.uri("maria"), dbtable="pairs", token=TOKEN, numPartitions=3)
    assert behind.where("id < 1000 AND filler = 'xxx'").count() == 15


def test_wrong_options(spark: SparkSession, postgres: PostgresServer) -> None:
    for options, message in (
        ({"dbtabel": "pairs"}, "no option 'dbtabel' .did you mean 'dbtable'"),
        ({"dbtable": "pairs", "query": "SELECT 1"}, "one of the options 'query' and 'dbtable'"),
        ({}, "one of the options 'query' and 'dbtable'"),
        (
            {"dbtable": "pairs", "numPartitions": "many"},
            "the option 'numPartitions' is 'many', expected a n",
        ),
        ({"dbtable": "pairs", "localSocket": "no"}, "'localSocket' is 'no', expected true or"),
        ({"dbtable": "nowhere"}, "nowhere.* does not exist"),
    ):
        with pytest.raises(Exception, match=message):
            load(spark, postgres.uri(), **options)
    with pytest.raises(Exception, match="the option 'url' is missing"):
        spark.read.format("dray").option("dbtable", "pairs").load()
    # Names of options have no case in Spark.
    assert load(spark, postgres.uri(), DBTABLE="pairs", NUMPARTITIONS=2).rdd.getNumPartitions() == 2


def test_a_dropped_table(spark: SparkSession, postgres: PostgresServer) -> None:
    with copied(postgres, "kinds") as table:
        frame = load(spark, postgres.uri(), dbtable=table)
        postgres.run(f"DROP TABLE {table}")
        with pytest.raises(Exception, match=f"{table}.* does not exist"):
            frame.collect()


def test_the_lease_ends(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = load(spark, postgres.uri(), dbtable="pairs", lease=15, numPartitions=2)
    assert len(frame.collect()) == ROWS
    assert keepers()
    time.sleep(15.1)
    with pytest.raises(Exception, match="lease ended"):
        frame.collect()
    # Another frame has a plan of its own.
    assert load(spark, postgres.uri(), dbtable="pairs").count() == ROWS


def test_executors_get_no_password(spark: SparkSession, postgres: PostgresServer) -> None:
    """The parts say where to connect. What else executors get has no credentials."""
    from pyspark.cloudpickle import dumps

    import dray.spark

    url = postgres.uri().replace("postgres@", "postgres:hidden@")
    source = dray.spark.DrayDataSource({"url": url, "dbtable": "pairs", "lease": "15"})
    reader = source.reader(source.schema())
    assert b"hidden" not in dumps((reader, source))
    part = reader.partitions()[0]
    assert b"hidden" not in part.value
    assert sum(batch.num_rows for batch in reader.read(part)) == ROWS


def test_connections_are_bounded(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = load(spark, postgres.uri(), dbtable="pairs", numPartitions=8, maxConnections=2)
    assert frame.rdd.getNumPartitions() == 2 and frame.count() == ROWS
