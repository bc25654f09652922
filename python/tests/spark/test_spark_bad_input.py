"""What goes wrong between a plan and the reading of its parts, and tables of odd shapes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from reading import JAR, failure, load, partitions
from relay_server import Relay, relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: More than the engine is asked about the types of.
WIDE = 2_500
#: An application whose executors are other processes, with other settings than the driver.
APPLICATION = """
import sys
from pyspark.sql import SparkSession
jar, url, name, value = sys.argv[1:]
spark = (
    SparkSession.builder.master("local-cluster[1,1,512]").config("spark.jars", jar)
    .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
    .config("spark.sql.catalogImplementation", "in-memory").config("spark.task.maxFailures", 1)
    .config(name, value).getOrCreate()
)
orders = spark.read.format("dray").options(url=url, dbtable="orders", numPartitions=2).load()
try:
    print("rows:", len(orders.select("id").collect()))
except Exception as error:
    print("failed:", error)
spark.stop()
"""


def test_a_table_that_is_dropped(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS brief", "CREATE TABLE brief AS SELECT 1 AS id")
    brief = load(spark, postgres.uri(), dbtable="brief")
    postgres.run("DROP TABLE brief")
    said = failure(brief.collect)
    assert 'relation "brief" does not exist' in said and "[SQLSTATE 42P01]" in said


def test_a_database_that_is_dropped(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run("DROP DATABASE IF EXISTS brief", "CREATE DATABASE brief")
    postgres.run("CREATE TABLE t AS SELECT 1 AS id", database="brief")
    rows = load(spark, postgres.uri("brief"), dbtable="t")
    postgres.run("DROP DATABASE brief WITH (FORCE)")
    said = failure(rows.collect)
    assert 'database "brief" does not exist' in said and "[SQLSTATE 3D000]" in said


def test_a_source_with_few_connections(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP ROLE IF EXISTS few",
        "CREATE ROLE few LOGIN CONNECTION LIMIT 20",
        "GRANT SELECT ON orders TO few",
    )
    given = {"dbtable": "orders", "numPartitions": 2, "connectionWait": 1}
    rows = load(spark, postgres.uri(user="few"), **given).select("id")
    assert partitions(rows) == 2
    postgres.run("ALTER ROLE few CONNECTION LIMIT 0")
    said = failure(rows.collect)
    assert "too many connections for role" in said and "[SQLSTATE 53300]" in said
    assert "option maxConnections limits those of a scan" in said
    assert "others had all connections for 1 s, see option connectionWait" in said


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "spark.executor.extraJavaOptions",
            "-Dos.arch=abacus",
            "the connector has no native library for linux-abacus",
        ),
        ("spark.executorEnv.PGPASSFILE", "/nowhere", "password"),
    ],
)
def test_executors_that_lack_something(
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    expected: str,
) -> None:
    """The driver has a native library and a password file."""
    postgres.run(
        "CREATE ROLE careful LOGIN PASSWORD 'secret'",
        "GRANT SELECT ON orders TO careful",
    )
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    passwords = tmp_path / "passwords"
    passwords.write_text("*:*:*:careful:secret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    try:
        rules.write_text("host all careful all scram-sha-256\n" + before)
        postgres.run("SELECT pg_reload_conf()")
        command = [sys.executable, "-c", APPLICATION, str(JAR), postgres.uri(user="careful")]
        ran = subprocess.run(
            [*command, name, value], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    finally:
        rules.write_text(before)
        postgres.run("SELECT pg_reload_conf()", "DROP OWNED BY careful", "DROP ROLE careful")
    failed = ran.stdout.partition("failed: ")[2]
    assert expected in failed, ran.stdout
    assert "secret" not in ran.stdout


@pytest.mark.parametrize("push", ["true", "false"])
def test_columns_of_one_name(
    spark: SparkSession,
    postgres: PostgresServer,
    maria: MariaServer,
    server: Relay,
    odd: Relay,
    push: str,
) -> None:
    """Spark would read the first one for all of them."""
    tables = "orders a JOIN orders b ON a.id = b.id + 1"
    for url in [postgres.uri(), maria.uri(), server.uri("pg"), server.uri("maria"), odd.uri()]:
        of = tables if url != odd.uri() else tables.replace("orders", "empty")
        query = f"SELECT a.id, b.id FROM {of}"
        said = failure(lambda url=url, query=query: load(spark, url, query=query, pushDown=push))
        assert "two columns have the name id" in said and "by AS" in said
        query = f"SELECT a.id, b.id AS other FROM {of}"
        named = load(spark, url, query=query, pushDown=push)
        assert named.where("id <> other + 1").count() == 0


def test_a_column_that_becomes_nullable(spark: SparkSession, tmp_path: Path) -> None:
    """A server with another file has come into the place of the first one."""
    # Paths of Unix sockets have to be short.
    folder = Path(tempfile.mkdtemp(prefix="dray-relay-"))

    def serve(value: int | None) -> Relay:
        nullable = value is None
        item = pa.field("item", pa.int32(), nullable=nullable)
        fields = [
            pa.field("id", pa.int32(), nullable=nullable),
            pa.field("list", pa.list_(item), nullable=nullable),
            pa.field("struct", pa.struct([item]), nullable=nullable),
        ]
        columns = [
            pa.array(values, field.type)
            for values, field in zip([[value], [[value]], [{"item": value}]], fields, strict=True)
        ]
        pq.write_table(pa.table(columns, schema=pa.schema(fields)), tmp_path / "t.parquet")
        return Relay(folder, str(tmp_path))

    server = serve(7)
    try:
        frame = load(spark, server.unix, dbtable="t").selectExpr("id", "list[0]", "struct.item")
        assert [tuple(row) for row in frame.collect()] == [(7, 7, 7)]
        server.stop()
        server = serve(None)
        assert [tuple(row) for row in frame.collect()] == [(None, None, None)]
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    folder = tmp_path_factory.mktemp("odd")
    columns = {f"c{i}": pa.array([i, None, -i], pa.int32()) for i in range(WIDE)}
    pq.write_table(pa.table(columns), folder / "wide.parquet")
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), folder / "empty.parquet")
    with relay(str(folder)) as server:
        yield server


@pytest.mark.parametrize("push", ["true", "false"])
def test_many_columns(spark: SparkSession, odd: Relay, push: str) -> None:
    wide = load(spark, odd.uri(), dbtable="wide", pushDown=push)
    assert len(wide.columns) == WIDE
    (row,) = wide.where("c2499 < 0").collect()
    assert list(row) == [-i for i in range(WIDE)]
    assert wide.select("c17").where("c17 IS NOT NULL").count() == 2


@pytest.mark.parametrize("push", ["true", "false"])
def test_no_rows(spark: SparkSession, odd: Relay, push: str) -> None:
    empty = load(spark, odd.uri(), dbtable="empty", numPartitions=4, pushDown=push)
    assert empty.collect() == [] and empty.count() == 0 and partitions(empty) == 1
    assert empty.where("id > 1").selectExpr("sum(id)", "count(*)").collect()[0][1] == 0
    assert empty.groupBy("id").count().collect() == []
    nothing = load(spark, odd.uri(), query="SELECT id FROM empty WHERE false", pushDown=push)
    assert nothing.orderBy("id").limit(3).collect() == []
