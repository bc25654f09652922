"""Writing tables of PostgreSQL by Spark: which rows and values arrive, and what is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from postgres_server import PostgresServer
from reading import failure, load, wait_for
from relay_server import Relay
from test_spark_options import catalog
from writing import made_by, rows, save, unfinished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The type of a column in PostgreSQL, an expression of Spark, and PostgreSQL's own text of it.
VALUES = {
    "boolean": ("boolean", "true", "true"),
    "byte": ("smallint", "tinyint(-128)", "-128"),
    "short": ("integer", "smallint(-32768)", "-32768"),
    "int": ("integer", "2147483647", "2147483647"),
    "long": ("bigint", "-9223372036854775808L", "-9223372036854775808"),
    "fits": ("smallint", "7L", "7"),
    "nan": ("float8", "double('NaN')", "NaN"),
    "infinity": ("real", "float('-Infinity')", "-Infinity"),
    "double": ("float8", "0.1D", "0.1"),
    "decimal": ("numeric(9,2)", "CAST(-1.10 AS decimal(9,2))", "-1.10"),
    "decimal_38": (
        "numeric(38,10)",
        "CAST(9999999999999999999999999999.0123456789 AS decimal(38,10))",
        "9999999999999999999999999999.0123456789",
    ),
    "numeric": ("numeric", "CAST(1.50 AS decimal(10,2))", "1.50"),
    "numeric_text": ("numeric", "'1234567890123456789012345678901234567890.5'",
                     "1234567890123456789012345678901234567890.5"),
    "text": ("text", "'ä€😀'", "ä€😀"),
    "empty": ("varchar(3)", "''", ""),
    "binary": ("bytea", "unhex('0061FF')", "\\x0061ff"),
    "date": ("date", "date'0001-01-01'", "0001-01-01"),
    "timestamp": ("timestamptz", "timestamp'2024-07-01 08:00:00.000001'",
                  "2024-07-01 12:00:00.000001+00"),
    "ntz": ("timestamp", "timestamp_ntz'2024-02-29 23:59:59.999999'",
            "2024-02-29 23:59:59.999999"),
    "time": ("time", "time'23:59:59.999999'", "23:59:59.999999"),
    "months": ("interval", "interval '1-2' year to month", "1 year 2 mons"),
    "seconds": ("interval", "interval '-26:00:00.5' hour to second", "-26:00:00.5"),
    "uuid": ("uuid", "'0123ABCD-89ab-cdef-0123-456789abcdef'",
             "0123abcd-89ab-cdef-0123-456789abcdef"),
    "enum": ("mood", "'happy'", "happy"),
    "jsonb": ("jsonb", "'{\"a\":  1}'", '{"a": 1}'),
    "struct": ("jsonb", "named_struct('a', 1, 'b', array('x', NULL))",
               '{"a": 1, "b": ["x", null]}'),
    "array": ("integer[]", "array(1, NULL, 3)", "{1,NULL,3}"),
    "texts": ("text[]", "array('a', '', NULL)", '{a,"",NULL}'),
    "inet": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    "positive": ("positive", "5", "5"),
}  # fmt: skip


@pytest.fixture(scope="module")
def typed(postgres: PostgresServer) -> PostgresServer:
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in VALUES.items())
    postgres.run(
        "DROP TABLE IF EXISTS every",
        "DROP TYPE IF EXISTS mood",
        "DROP DOMAIN IF EXISTS positive",
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
        f"CREATE TABLE every (id integer, {columns})",
    )
    return postgres


def test_types(spark: SparkSession, typed: PostgresServer) -> None:
    values = ", ".join(f"{value} AS `{name}`" for name, (_, value, _) in VALUES.items())
    frame = spark.sql(f"SELECT 1 AS id, {values}")
    nulls = [f"IF(id = 1, `{name}`, NULL) AS `{name}`" for name in VALUES]
    both = frame.union(frame.withColumn("id", frame.id + 1)).selectExpr("id", *nulls)
    save(both, typed.uri(), "every")
    texts = ", ".join(f'"{name}"::text' for name in VALUES)
    row, null = rows(typed, f"SELECT {texts} FROM every ORDER BY id")
    assert dict(zip(VALUES, row, strict=True)) == {name: text for name, (_, _, text) in
                                                   VALUES.items()}  # fmt: skip
    assert set(null) == {None}


def test_what_is_read_is_written(spark: SparkSession, typed: PostgresServer) -> None:
    """A copy of a table by Spark has the same text in each column, read at any number of parts."""
    typed.run(
        "DROP TABLE IF EXISTS source, copied",
        "CREATE TABLE source AS SELECT i AS id, i * 1.5::float8 AS f, (i / 7.0)::numeric(20,9) n, "
        "nullif('text ' || i, 'text ' || i / 3 * 3) AS t, now() + i * interval '1 us' AS at, "
        "ARRAY[i, NULL] AS list, gen_random_uuid() AS u FROM generate_series(1, 20000) i",
        "CREATE TABLE copied (LIKE source)",
        "ANALYZE source",
    )
    frame = load(spark, typed.uri(), dbtable="source", numPartitions=3)
    save(frame, typed.uri(), "copied", batchRows=1000)
    for one, other in (("source", "copied"), ("copied", "source")):
        missing = f"SELECT count(*) FROM (TABLE {one} EXCEPT ALL TABLE {other}) d"
        assert rows(typed, missing) == [(0,)]


def test_append_and_overwrite(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept (id bigint PRIMARY KEY, name text DEFAULT 'none', at date NOT NULL "
        "DEFAULT '2024-01-01', twice bigint GENERATED ALWAYS AS (id * 2) STORED)",
        "GRANT SELECT ON kept TO pg_monitor",
        "INSERT INTO kept (id) VALUES (-1)",
    )
    frame = spark.range(1000).repartition(3)
    save(frame, postgres.uri(), "public.kept")
    sql = "SELECT count(*), sum(id), min(name), min(at)::text, sum(twice) FROM kept"
    assert rows(postgres, sql) == [(1001, 499499, "none", "2024-01-01", 998998)]
    for mode in ({}, {"truncate": "true"}):
        some = spark.range(10, 20).selectExpr("concat('row ', id) AS NAME", "id")
        save(some, postgres.uri(), "kept", "overwrite", **mode)
        assert rows(postgres, "SELECT count(*), sum(id), min(name) FROM kept") == [
            (10, 145, "row 10")
        ]
    # Indexes, grants and defaults are still there.
    sql = "SELECT indexname FROM pg_indexes WHERE tablename = 'kept'"
    assert rows(postgres, sql) == [("kept_pkey",)]
    assert rows(postgres, "SELECT has_table_privilege('pg_monitor', 'kept', 'SELECT')") == [(True,)]
    save(spark.range(0), postgres.uri(), "kept")
    assert rows(postgres, "SELECT count(*) FROM kept") == [(10,)]
    save(spark.range(0), postgres.uri(), "kept", "overwrite")
    assert rows(postgres, "SELECT count(*) FROM kept") == [(0,)]
    no_partition = spark.createDataFrame(spark.sparkContext.emptyRDD(), "id bigint")
    save(no_partition, postgres.uri(), "kept")
    assert unfinished(postgres) == []


def test_a_table_is_overwritten_by_its_own_rows(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS own",
        "CREATE TABLE own AS SELECT i::bigint AS id, repeat('x', 99) AS filling "
        "FROM generate_series(1, 30000) i",
        "ANALYZE own",
    )
    frame = load(spark, postgres.uri(), dbtable="own", numPartitions=3)
    save(frame.where("id % 3 = 0"), postgres.uri(), "own", "overwrite")
    assert rows(postgres, "SELECT count(*), sum(id) FROM own") == [(10000, 150015000)]


REFUSED = {
    "unknown": ("1L AS id, 2 AS other", 'has no column "other": its columns are id, name, n'),
    "missing": ("'x' AS name", 'no column "id", which in "public"."strict" must not be NULL'),
    "generated": ("1L AS id, 2L AS g", 'column "g" of "public"."strict" is generated'),
    "twice": ("1L AS id, 'x' AS name, 'y' AS `Name`", 'are for column "name"'),
    "text for a number": ("'1' AS id", 'column "id"'),
    "fractions for a number": ("1.5D AS id", 'column "id"'),
    "no zone": ("1L AS id, timestamp_ntz'2024-01-01 00:00:00' AS at", 'column "at"'),
}
#: What only a task can know.
LATE = {
    "too large": ("3000000000L AS id", 'column "id"'),
    "too many digits": ("1L AS id, CAST(1.005 AS decimal(9,3)) AS n", 'column "n"'),
    "too long": ("1L AS id, 'abcd' AS name", 'column "name"'),
    "null": ("CAST(NULL AS bigint) AS id", 'column "id"'),
    "no text": ("1L AS id, CAST(unhex('FF') AS string) AS name", 'column "name"'),
}


@pytest.fixture(scope="module")
def strict(postgres: PostgresServer) -> PostgresServer:
    postgres.run(
        "DROP TABLE IF EXISTS strict",
        "CREATE TABLE strict (id integer NOT NULL, name varchar(3), n numeric(9,2), at timestamptz,"
        " g integer GENERATED ALWAYS AS (id) STORED)",
    )
    return postgres


@pytest.mark.parametrize("what", [*REFUSED, *LATE])
def test_what_is_refused(spark: SparkSession, strict: PostgresServer, what: str) -> None:
    select, expected = (REFUSED | LATE)[what]
    start = strict.log_bytes()
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql(f"SELECT {select}")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    said = failure(lambda: save(frame, strict.uri(), "strict"))
    assert expected in said
    # No task has begun to write where all can be known before: one COPY checks the types.
    assert what in LATE or strict.log(start).count(" FROM STDIN") <= 1
    assert rows(strict, "SELECT count(*) FROM strict") == [(0,)]
    assert unfinished(strict) == []


def test_other_servers_and_options(
    spark: SparkSession, postgres: PostgresServer, server: Relay
) -> None:
    frame = spark.range(1)

    def said(url: str, table: str = "orders", mode: str = "append", **options: object) -> str:
        return failure(lambda: save(frame, url, table, mode, **options))

    assert "a Dray server only reads" in said(server.uri("pg"))
    assert "a Dray server only reads" in said(server.uri(), "large_rows")
    assert "option lease is for reading" in said(postgres.uri(), lease=5)
    assert "option numPartitions is for reading" in said(postgres.uri(), numPartitions=5)
    assert 'option truncate is "maybe"' in said(postgres.uri(), truncate="maybe")
    assert "there is no option batchsize" in said(postgres.uri(), batchsize=9)
    assert "this names none" in said(postgres.uri(), "(SELECT 1 AS id) AS t")
    assert "[SQLSTATE 42P01]" in said(postgres.uri(), "nothing")
    said_of_mode = said(postgres.uri(), mode="errorifexists")
    assert 'either the "Append" or "Overwrite" mode' in said_of_mode
    assert unfinished(postgres) == []


def test_a_staging_schema(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP SCHEMA IF EXISTS closed, spare CASCADE",
        "DROP ROLE IF EXISTS writer",
        "CREATE ROLE writer LOGIN",
        "CREATE SCHEMA closed",
        "CREATE SCHEMA spare AUTHORIZATION writer",
        "CREATE TABLE closed.t (id bigint)",
        "GRANT USAGE ON SCHEMA closed TO writer",
        "GRANT SELECT, INSERT ON closed.t TO writer",
    )
    url = postgres.uri(user="writer")
    assert "option stagingSchema" in failure(lambda: save(spark.range(5), url, "closed.t"))
    save(spark.range(5), url, "closed.t", stagingSchema="spare")
    assert rows(postgres, "SELECT count(*) FROM closed.t") == [(5,)]
    # Nobody may empty the table, and that is known before its rows are moved.
    said = failure(
        lambda: save(spark.range(5), url, "closed.t", "overwrite", stagingSchema="spare")
    )
    assert "[SQLSTATE 42501]" in said
    assert rows(postgres, "SELECT count(*) FROM closed.t") == [(5,)]
    assert unfinished(postgres) == []


BASKETS = (
    "DROP SCHEMA IF EXISTS baskets CASCADE",
    "CREATE SCHEMA baskets",
    "SET search_path = baskets",
)
ADDED = "INSERT INTO basket VALUES (1)"
CASCADES = "CREATE TABLE item (basket bigint REFERENCES {} ON DELETE CASCADE)"
BY_KEY = "rows of baskets.item, by its foreign key item_basket_fkey"
#: Tables, what is overwritten, and the error.
REFERENCED = {
    "a table": (
        ("CREATE TABLE basket (id bigint PRIMARY KEY)", CASCADES.format("basket")),
        "basket",
        BY_KEY,
    ),
    "a partition": (
        (
            "CREATE TABLE basket (id bigint) PARTITION BY RANGE (id)",
            "CREATE TABLE reed PARTITION OF basket (PRIMARY KEY (id)) DEFAULT",
            CASCADES.format("reed"),
        ),
        "basket",
        BY_KEY,
    ),
    "a partitioned table": (
        (
            "CREATE TABLE basket (id bigint PRIMARY KEY) PARTITION BY RANGE (id)",
            "CREATE TABLE reed PARTITION OF basket DEFAULT",
            CASCADES.format("basket"),
        ),
        "reed",
        BY_KEY,
    ),
    "an inheriting table": (
        (
            "CREATE TABLE basket (id bigint)",
            "CREATE TABLE reed (PRIMARY KEY (id)) INHERITS (basket)",
            CASCADES.format("reed"),
        ),
        "basket",
        BY_KEY,
    ),
    "a view": (
        (
            "CREATE TABLE reed (id bigint PRIMARY KEY)",
            "CREATE VIEW basket AS TABLE reed",
            CASCADES.format("reed"),
        ),
        "basket",
        '"baskets"."basket" is a view: overwrite the table behind it',
    ),
}


@pytest.mark.parametrize("what", REFERENCED)
def test_overwriting_deletes_nothing_elsewhere(
    spark: SparkSession, postgres: PostgresServer, what: str
) -> None:
    tables, target, expected = REFERENCED[what]
    added = "INSERT INTO reed VALUES (1)" if what == "an inheriting table" else ADDED
    postgres.run(*BASKETS, *tables, added, "INSERT INTO item VALUES (1)")
    said = failure(lambda: save(spark.range(5), postgres.uri(), f"baskets.{target}", "overwrite"))
    assert expected in said
    assert rows(postgres, "SELECT count(*) FROM baskets.item") == [(1,)]
    assert unfinished(postgres) == []


def test_a_foreign_key_that_is_added_meanwhile(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.run(*BASKETS, "CREATE TABLE basket (id bigint PRIMARY KEY)", ADDED)
    added = tmp_path / "added"

    def add() -> None:
        try:
            wait_for(lambda: unfinished(postgres))
            key = CASCADES.format("basket")
            postgres.run("SET search_path = baskets", key, "INSERT INTO item VALUES (1)")
        finally:
            added.touch()

    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        while not added.exists():
            time.sleep(0.05)
        return numbers

    other = threading.Thread(target=add)
    other.start()
    frame = made_by(spark, 10, make)
    said = failure(lambda: save(frame, postgres.uri(), "baskets.basket", "overwrite"))
    other.join()
    assert BY_KEY in said
    assert rows(postgres, "SELECT count(*) FROM baskets.item") == [(1,)]
    assert unfinished(postgres) == []


def test_a_foreign_table(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw",
        "DROP SERVER IF EXISTS own CASCADE",
        "DROP TABLE IF EXISTS home",
        "CREATE SERVER own FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        f"(host '127.0.0.1', port '{postgres.port}', dbname 'postgres')",
        "CREATE USER MAPPING FOR postgres SERVER own OPTIONS (user 'postgres')",
        "CREATE TABLE home (id bigint)",
        "CREATE FOREIGN TABLE far (id bigint) SERVER own OPTIONS (table_name 'home')",
    )
    save(spark.range(3), postgres.uri(), "far")
    start = postgres.log_bytes()
    said = failure(lambda: save(spark.range(5), postgres.uri(), "far", "overwrite"))
    assert '"public"."far" is a foreign table' in said
    # It is known before any row is sent.
    assert " FROM STDIN" not in postgres.log(start)
    assert rows(postgres, "SELECT count(*) FROM home") == [(3,)]
    save(spark.range(5), postgres.uri(), "far", "overwrite", truncate="true")
    assert rows(postgres, "SELECT count(*) FROM home") == [(5,)]
    assert unfinished(postgres) == []


def test_names_that_the_server_would_cut(spark: SparkSession, postgres: PostgresServer) -> None:
    short, long = "a" * 63, "a" * 64
    postgres.run(
        f"DROP TABLE IF EXISTS {short}",
        f"CREATE TABLE {short} AS SELECT 7::bigint AS id",
    )
    catalog(spark, "out", postgres.uri())
    for start in ("CREATE TABLE", "CREATE OR REPLACE TABLE"):
        said = failure(
            lambda start=start: spark.sql(f"{start} out.public.{long} AS SELECT 1 AS id")
        )
        assert f"the name {long} has 64 bytes, and names of this server have 63" in said
    said = failure(lambda: spark.sql(f"CREATE TABLE out.public.`{'ä' * 32}` (id BIGINT)"))
    assert "has 64 bytes" in said
    for missing in (f"public.{long}", f"{long}.t"):
        said = failure(lambda missing=missing: spark.table(f"out.{missing}"))
        assert "TABLE_OR_VIEW_NOT_FOUND" in said
    for table in (long, f'public."{long}"'):
        for mode in ("append", "overwrite"):
            said = failure(lambda table=table, mode=mode: save(
                spark.range(5), postgres.uri(), table, mode))  # fmt: skip
            assert f'which would cut it to "public"."{short}"' in said
    assert rows(postgres, f"TABLE {short}") == [(7,)]
    spark.sql(f"CREATE OR REPLACE TABLE out.public.{short} AS SELECT 1 AS id")
    assert rows(postgres, f"TABLE {short}") == [(1,)]
    assert unfinished(postgres) == []


def test_a_catalog(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS new, newer", "DROP VIEW IF EXISTS seen")
    catalog(spark, "out", postgres.uri())
    spark.sql("CREATE TABLE out.public.new (id BIGINT NOT NULL COMMENT 'a key', name STRING)")
    spark.sql("INSERT INTO out.public.new VALUES (1, 'one'), (2, NULL)")
    spark.range(3, 5).selectExpr("'x' AS name", "id").writeTo("out.public.new").append()
    sql = "SELECT count(*), sum(id), count(name) FROM new"
    assert rows(postgres, sql) == [(4, 10, 3)]
    sql = "SELECT col_description('new'::regclass, 1), attnotnull FROM pg_attribute WHERE "
    assert rows(postgres, sql + "attrelid = 'new'::regclass AND attname = 'id'") == [
        ("a key", True)
    ]
    spark.sql("INSERT OVERWRITE out.public.new SELECT 7, 'seven'")
    assert rows(postgres, "TABLE new") == [(7, "seven")]
    spark.sql("CREATE TABLE out.public.newer AS SELECT id, array(id) AS list FROM range(10)")
    assert rows(postgres, "SELECT count(*), sum(list[1]) FROM newer") == [(10, 45)]
    again = "CREATE TABLE out.public.newer AS SELECT 1 AS id"
    assert "ALREADY_EXISTS" in failure(lambda: spark.sql(again))
    spark.sql("CREATE OR REPLACE TABLE out.public.newer AS SELECT 'a' AS word")
    assert rows(postgres, "TABLE newer") == [("a",)]
    spark.sql("CREATE OR REPLACE TABLE out.public.newer AS SELECT 'a' COLLATE UTF8_BINARY AS word")
    assert rows(postgres, "TABLE newer") == [("a",)]
    spark.range(2).write.mode("overwrite").saveAsTable("out.public.newer")
    assert rows(postgres, "SELECT count(*) FROM newer") == [(2,)]
    postgres.run("CREATE VIEW seen AS TABLE newer")
    replace = "REPLACE TABLE out.public.newer AS SELECT 1 AS id"
    assert "depend" in failure(lambda: spark.sql(replace))
    assert rows(postgres, "SELECT count(*) FROM newer") == [(2,)]
    for refused, said in (
        ("CREATE TABLE out.public.p (a INT) PARTITIONED BY (a)", "a table with partitions"),
        ("CREATE TABLE out.public.p (a INT) TBLPROPERTIES ('x' = 'y')", "no property x"),
        ("CREATE TABLE out.public.p (a VARCHAR(5))", "column a has the type varchar(5)"),
        (
            "CREATE TABLE out.public.p (a STRING COLLATE UTF8_LCASE)",
            "column a has the type STRING COLLATE UTF8_LCASE",
        ),
        (
            "CREATE TABLE out.public.p AS SELECT array(struct('x' COLLATE UNICODE AS s)) AS a",
            "COLLATE UNICODE",
        ),
        ("CREATE TABLE out.nowhere.p (a INT)", "SCHEMA_NOT_FOUND"),
        ("DROP TABLE out.public.newer", "everything else in the database"),
    ):
        assert said in failure(lambda sql=refused: spark.sql(sql)), refused
    assert unfinished(postgres) == []
