"""Options that are wrong, and the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mysql_server import DATABASE, MariaServer
from postgres_server import PostgresServer, free_port
from reading import failure, load, partitions
from relay_server import Relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "dray.spark.DrayCatalog"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"dbtabel": "orders"}, "there is no option dbtabel: dbtable is the nearest"),
        ({"dbtable": "orders", "query": "SELECT 1"}, "one of the options dbtable and query"),
        ({}, "one of the options dbtable and query"),
        ({"dbtable": "orders", "numPartitions": "0"}, 'numPartitions is "0", expected a number'),
        ({"dbtable": "orders", "lease": "soon"}, 'lease is "soon", expected a number from 1'),
        ({"dbtable": "orders", "partitionColumn": "id"}, "divided by their blocks"),
        ({"dbtable": "orders", "fetchsize": "9"}, "see batchRows"),
        ({"dbtable": "orders", "numeric": "float"}, "numeric"),
        ({"dbtable": "orders", "numPartitions": 2, "bytesPerPartition": 9}, "exclude each other"),
        ({"dbtable": "nothing"}, "[SQLSTATE 42P01]"),
        ({"query": "DELETE FROM orders"}, "SELECT"),
        ({"query": "SELECT 1/0 AS i"}, "[SQLSTATE 22012]"),
    ],
)
def test_wrong_options(
    spark: SparkSession, postgres: PostgresServer, options: dict[str, object], expected: str
) -> None:
    assert expected in failure(lambda: load(spark, postgres.uri(), **options).collect())


def test_no_url(spark: SparkSession) -> None:
    reader = spark.read.format("dray").option("dbtable", "orders")
    assert "option url is missing" in failure(reader.load)


def test_nobody_answers(spark: SparkSession) -> None:
    secret = f"postgresql://me:hunter2@127.0.0.1:{free_port()}/shop"
    said = failure(lambda: load(spark, secret, dbtable="orders"))
    assert "127.0.0.1" in said and "hunter2" not in said


def test_a_batch_that_is_too_large(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = load(spark, postgres.uri(), query="SELECT repeat('x', 1000000) AS t", taskMemory=99999)
    assert "option taskMemory" in failure(frame.collect)


def test_columns_that_change(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS changing", "CREATE TABLE changing AS SELECT 1 AS id")
    changing = load(spark, postgres.uri(), dbtable="changing")
    postgres.run("ALTER TABLE changing ALTER COLUMN id TYPE text")
    assert "the columns are not those that were planned" in failure(changing.collect)


def catalog(spark: SparkSession, name: str, url: str, **options: object) -> None:
    spark.conf.set(f"spark.sql.catalog.{name}", CATALOG)
    spark.conf.set(f"spark.sql.catalog.{name}.url", url)
    for option, value in options.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{option}", str(value))


def test_catalog_of_postgres(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        'DROP SCHEMA IF EXISTS "Odd ""schema" CASCADE',
        'CREATE SCHEMA "Odd ""schema"',
        'CREATE TABLE "Odd ""schema"."it\'s" AS SELECT 1 AS "a ""b", \'\\\' AS t',
    )
    catalog(spark, "shop", postgres.uri(), numPartitions=3)
    assert "public" in [row.namespace for row in spark.sql("SHOW NAMESPACES IN shop").collect()]
    tables = [row.tableName for row in spark.sql("SHOW TABLES IN shop.public").collect()]
    assert "orders" in tables
    orders = spark.table("shop.public.orders")
    assert partitions(orders) == 3
    sql = "SELECT count(*) FROM shop.public.orders o JOIN shop.public.orders p ON o.id = p.id + 1"
    assert spark.sql(sql).collect()[0][0] == 99999
    (row,) = spark.sql("SELECT * FROM shop.`Odd \"schema`.`it's`").collect()
    assert row.asDict() == {'a "b': 1, "t": "\\"}
    assert "TABLE_OR_VIEW_NOT_FOUND" in failure(lambda: spark.table("shop.public.nothing"))
    assert "SCHEMA_NOT_FOUND" in failure(lambda: spark.sql("SHOW TABLES IN shop.nothing").collect())
    said = failure(lambda: spark.sql("DROP TABLE shop.public.orders"))
    assert "do everything else in the database" in said


def test_what_a_catalog_of_postgres_lists(
    spark: SparkSession, postgres: PostgresServer, server: Relay
) -> None:
    postgres.run(
        "DROP SCHEMA IF EXISTS kinds CASCADE",
        "DROP ROLE IF EXISTS looker",
        "CREATE ROLE looker LOGIN",
        "CREATE SCHEMA kinds",
        "GRANT USAGE ON SCHEMA kinds TO looker",
        "CREATE TABLE kinds.plain AS SELECT 7 AS id",
        "CREATE TABLE kinds.parted (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE VIEW kinds.seen AS TABLE kinds.plain",
        "CREATE MATERIALIZED VIEW kinds.kept AS TABLE kinds.plain",
        "CREATE MATERIALIZED VIEW kinds.secret AS TABLE kinds.plain",
        "CREATE SEQUENCE kinds.numbers",
        "GRANT SELECT ON kinds.kept TO looker",
        "GRANT SELECT (id) ON kinds.plain TO looker",
    )

    def listed(name: str) -> list[str]:
        return [row.tableName for row in spark.sql(f"SHOW TABLES IN {name}.kinds").collect()]

    for name, url in (("whole", postgres.uri()), ("whole_relayed", server.uri("pg"))):
        catalog(spark, name, url)
        assert listed(name) == ["kept", "parted", "plain", "secret", "seen"]
        assert spark.table(f"{name}.kinds.kept").collect()[0].id == 7
    insert = "INSERT INTO whole.kinds.kept VALUES (8)"
    assert "is no table: it takes no rows" in failure(lambda: spark.sql(insert))
    catalog(spark, "part", postgres.uri(user="looker"))
    assert listed("part") == ["kept", "plain"]
    assert "TABLE_OR_VIEW_NOT_FOUND" in failure(lambda: spark.table("part.kinds.secret"))


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_name_with_a_backslash(
    spark: SparkSession, postgres: PostgresServer, setting: str
) -> None:
    postgres.run(r'DROP TABLE IF EXISTS "a\b", "\new"', r'CREATE TABLE "a\b" AS SELECT 7 AS id')
    options = f"?options=-c%20standard_conforming_strings%3D{setting}"
    catalog(spark, f"strings_{setting}", postgres.uri(options=options))
    table = rf"strings_{setting}.public.`a\b`"
    assert [row.id for row in spark.table(table).collect()] == [7]
    spark.sql(f"INSERT INTO {table} VALUES (8)")
    spark.sql(f"CREATE TABLE strings_{setting}.public.`\\new` (id BIGINT COMMENT 'a \\\\ key')")
    sql = r"""SELECT id, col_description('"\new"'::regclass, 1) FROM "a\b" ORDER BY id"""
    with postgres.connect() as connection:
        assert connection.execute(sql).fetchall() == [(7, "a \\ key"), (8, "a \\ key")]


def test_catalogs_of_a_server(spark: SparkSession, server: Relay, maria: MariaServer) -> None:
    catalog(spark, "relayed", server.uri("maria"))
    catalog(spark, "direct", maria.uri())
    for name in ("relayed", "direct"):
        found = spark.sql(f"SELECT count(*) FROM {name}.{DATABASE}.orders").collect()
        assert found[0][0] == 100_000
    catalog(spark, "files", server.uri())
    (namespace,) = [
        row.namespace
        for row in spark.sql("SHOW NAMESPACES IN files").collect()
        if row.namespace not in ("information_schema", "dray")
    ]
    tables = [row.tableName for row in spark.sql(f"SHOW TABLES IN files.{namespace}").collect()]
    assert "large_rows" in tables
    assert spark.table(f"files.{namespace}.large_rows").count() > 0


def test_a_catalog_with_a_table(spark: SparkSession, postgres: PostgresServer) -> None:
    catalog(spark, "wrong", postgres.uri(), dbtable="orders")
    assert "neither dbtable nor query" in failure(lambda: spark.table("wrong.public.orders"))
