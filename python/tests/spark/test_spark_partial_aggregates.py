"""Parts of a table aggregate their own rows, and Spark makes the result of them that it would make
of all rows by itself."""

from __future__ import annotations

import os
import random
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import reading
from mysql_server import MariaServer
from postgres_server import PostgresServer
from reading import failure, reports, wait_for
from relay_server import Relay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = int(os.environ.get("DRAY_TEST_ROUNDS", "10"))
PARTS = 4
#: Columns of the random table by which Spark may group.
GROUPS = ["g", "s", "c", "d", "b", "ts", "t", "n", "i % 3", "year(d)", "coalesce(g, 9)"]
AGGREGATES = [
    "count(*)",
    "count({})",
    "min({})",
    "max({})",
    "sum(i)",
    "sum(t)",
    "sum(g)",
    "sum(n)",
    "sum(w)",
    "sum(CAST(i AS BIGINT))",
    "sum(CASE WHEN s > 'b' THEN 1 ELSE 0 END)",
    "avg(n)",
    "avg(a)",
    "avg(g)",
    "avg(t)",
]
COLUMNS = ["id", "g", "i", "t", "s", "c", "d", "ts", "tz", "n", "a", "w", "x"]
CONDITIONS = ["", "", "id > 40000", "s >= 'b'", "n IS NULL OR d > DATE '2024-02-10'", "id < 0"]


def load(spark: SparkSession, url: str, **options: object) -> DataFrame:
    given = {"aggregates": "parts", "numPartitions": PARTS, **options}
    return reading.load(spark, url, **given)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan())


def pushed(frame: DataFrame) -> str:
    """The statement of which each part computes its own, empty if there is none."""
    found = re.search(
        r"dray, each part by itself \[(SELECT .*?)\]( RuntimeFilters|\n|$)", plan(frame), re.DOTALL
    )
    return found[1] if found else ""


def text(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    """Of a database with a table whose groups span all parts, and blocks without rows."""
    postgres.run(
        "DROP TABLE IF EXISTS sales",
        "CREATE TABLE sales (id integer, g smallint, i integer, t smallint, s text, c char(3), "
        "d date, ts timestamp, tz timestamptz, b boolean, n numeric(6, 2), "
        "a numeric(12, 2), w numeric(20, 6), x float8, filler text)",
        "SELECT setseed(0.5)",
        "INSERT INTO sales SELECT k, nullif(k % 7, 3), (random() * 4e9 - 2e9)::integer, "
        "nullif((random() * 65000 - 32500)::integer, 0)::smallint, "
        "(ARRAY['a', 'b', 'B', 'ä', '', NULL])[1 + k % 6], "
        "(ARRAY['x', 'y', NULL])[1 + k % 3], DATE '2024-01-01' + (k % 50), "
        "nullif(TIMESTAMP '2024-01-01' + k % 5 * interval '1 hour', '2024-01-01'), "
        "TIMESTAMPTZ '2024-01-01 00:00+00' + k * interval '1 second', nullif(k % 5, 0) = 1, "
        "nullif((random() * 19000 - 9500)::numeric(6, 2), 0), "
        "nullif((random() * 2e10 - 1e10)::numeric(12, 2), 0), (random() * 1e13)::numeric(20, 6), "
        "random(), repeat('.', 60) FROM generate_series(1, 60000) k",
        "DELETE FROM sales WHERE id BETWEEN 16000 AND 40000",
        "ANALYZE sales",
    )
    yield postgres.uri()


def test_random_statements(spark: SparkSession, url: str) -> None:
    load(spark, url, dbtable="sales").createOrReplaceTempView("pushed")
    load(spark, url, dbtable="sales", pushDown="false").createOrReplaceTempView("plain")
    seed = int(os.environ.get("DRAY_SEED") or random.randrange(1 << 30))
    generator = random.Random(seed)
    count = 0
    for _ in range(4 * ROUNDS):
        groups = generator.sample(GROUPS, generator.choice([0, 0, 1, 1, 2]))
        columns = [name for name in COLUMNS if name not in groups]
        chosen = generator.sample(AGGREGATES, generator.choice([1, 2, 4]))
        names = [aggregate.format(generator.choice(columns)) for aggregate in chosen]
        condition = generator.choice(CONDITIONS)
        sql = f"SELECT {', '.join([*groups, *names])} FROM {{}}"
        sql += f" WHERE {condition}" if condition else ""
        sql += f" GROUP BY {', '.join(groups)}" if groups else ""
        found = spark.sql(sql.format("pushed"))
        assert text(found) == text(spark.sql(sql.format("plain"))), (
            f"DRAY_SEED={seed}\n{sql}\n{plan(found)}"
        )
        if pushed(found):
            count += 1
            assert "HashAggregate" in plan(found) or "SortAggregate" in plan(found)
    # Spark groups by some expressions by itself, and so by remainders.
    assert count > ROUNDS, f"DRAY_SEED={seed}: {count} of {4 * ROUNDS}"


@pytest.mark.parametrize(
    ("sql", "of_part"),
    [
        ("SELECT count(*), sum(i), min(s), max(d) FROM {}", 1),
        ("SELECT count(*) FROM {} WHERE id < 0", 1),
        ("SELECT g, count(*), sum(i) FROM {} GROUP BY g", 7),
        ("SELECT c, g, max(n) FROM {} WHERE id > 0 GROUP BY c, g", 21),
        ("SELECT g, count(*) FROM {} WHERE id < 0 GROUP BY g", 0),
    ],
)
def test_groups_of_parts_travel(spark: SparkSession, url: str, sql: str, of_part: int) -> None:
    load(spark, url, dbtable="sales").createOrReplaceTempView("pushed")
    load(spark, url, dbtable="sales", pushDown="false").createOrReplaceTempView("plain")
    # Another statement for each test, so that its report is found.
    found = spark.sql(sql.format("pushed"))
    statement = pushed(found)
    assert statement, plan(found)
    before = len(reports(spark, statement))
    assert text(found) == text(spark.sql(sql.format("plain")))
    latest = wait_for(lambda: reports(spark, statement)[before:])[-1]
    assert latest.isWhole() and latest.parts() == PARTS
    assert latest.rows() <= PARTS * of_part, latest.toString()
    assert latest.rows() >= of_part
    if of_part == 1:
        assert latest.rows() == PARTS


def test_explain(spark: SparkSession, url: str) -> None:
    sales = load(spark, url, dbtable="sales")
    found = sales.where("s >= 'b'").groupBy("g").agg({"*": "count", "i": "sum"})
    assert re.fullmatch(
        r'SELECT "g" AS "group_0", .*CAST\(sum\("i"\) AS bigint\) AS .* FROM sales '
        r'WHERE .*>=.* GROUP BY "g"',
        pushed(found),
    )
    # An average is made of sums and counts.
    average = sales.selectExpr("avg(a)")
    assert 'sum("a")' in pushed(average) and 'count("a")' in pushed(average)
    # Only the choice of columns and filters, without pushDown.
    plain = load(spark, url, dbtable="sales", pushDown="false").groupBy("g").count()
    assert not pushed(plain) and "dray [SELECT" in plan(plain)


def test_sums_beyond_the_type_of_their_values(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    """Spark casts the sum of a part to the type of what was summed."""
    postgres.run(
        "DROP TABLE IF EXISTS great",
        "CREATE TABLE great (k integer, s smallint, i integer, n numeric(4, 2), a numeric(12, 2), "
        "m numeric(28, 0), text text)",
        "INSERT INTO great SELECT k % 3, 32767 * (1 - 2 * (k % 2)), "
        "CASE WHEN k % 3 = 0 THEN -2147483648 ELSE 2147483647 END, 99.99, 9999999999.99, "
        "9999999999999999999999999999, repeat('x', 200) FROM generate_series(1, 30000) k",
        "INSERT INTO great SELECT 5, 32767, NULL, -99.99, -0.07, 1, repeat('x', 200) "
        "FROM generate_series(1, 10000) k",
        "ANALYZE great",
    )
    sql = (
        "SELECT k, count(*), sum(s), sum(i), sum(n), sum(m), avg(a), avg(s), min(i), max(text), "
        "sum(CAST(i AS BIGINT)) FROM {} GROUP BY k"
    )
    load(spark, postgres.uri(), dbtable="great").createOrReplaceTempView("pushed")
    load(spark, postgres.uri(), dbtable="great", pushDown="false").createOrReplaceTempView("plain")
    for ansi in ["true", "false"]:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            found = spark.sql(sql.format("pushed"))
            assert pushed(found), plan(found)
            assert text(found) == text(spark.sql(sql.format("plain")))
            for one in ["sum(s)", "sum(i)", "sum(n)", "sum(m)", "avg(a)", "avg(s)"]:
                found = spark.sql(f"SELECT {one}, count(*) FROM pushed")
                assert pushed(found)
                assert text(found) == text(spark.sql(f"SELECT {one}, count(*) FROM plain"))
        finally:
            spark.conf.set("spark.sql.ansi.enabled", "true")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT g) FROM {}",
        "SELECT g, count(DISTINCT s), sum(i) FROM {} GROUP BY g",
        "SELECT sum(x) FROM {}",
        "SELECT avg(x), count(*) FROM {}",
        "SELECT avg(i) FROM {}",
        "SELECT avg(n) FROM {}",
        "SELECT sum(CAST(id AS BIGINT) * 4000000000) FROM {}",
        "SELECT stddev(i) FROM {}",
        "SELECT x, count(*) FROM {} GROUP BY x",
        "SELECT count(*) FILTER (WHERE g = 1) FROM {}",
        "SELECT g, s, count(*) FROM {} GROUP BY ROLLUP (g, s)",
        "SELECT count(*) FROM {} WHERE upper(s) = 'B'",
        "SELECT min(b), max(b) FROM {}",
    ],
)
def test_what_parts_do_not_aggregate(spark: SparkSession, url: str, sql: str) -> None:
    load(spark, url, dbtable="sales").createOrReplaceTempView("pushed")
    load(spark, url, dbtable="sales", pushDown="false").createOrReplaceTempView("plain")
    found = spark.sql(sql.format("pushed"))
    assert not pushed(found), plan(found)
    if "avg(" in sql:
        # Nor does one statement, by a sum and a count.
        assert "sum(" not in plan(found).split("dray [")[1]
    if "(x)" not in sql and "stddev" not in sql:
        # Sums of floats depend on the order of the rows.
        assert text(found) == text(spark.sql(sql.format("plain")))


def test_other_sources_aggregate_whole(
    spark: SparkSession, url: str, maria: MariaServer, server: Relay
) -> None:
    others = [
        (maria.uri(), "orders"),
        (server.uri("pg"), "orders"),
        (server.uri("maria"), "orders"),
    ]
    for other, table in others:
        found = load(spark, other, dbtable=table).selectExpr("count(*)", "max(id)")
        assert not pushed(found) and "count(*)" in plan(found)
        assert text(found) == ["(100000, 100000)"]
    found = load(spark, url, dbtable="sales", aggregates="whole").selectExpr("count(*)", "max(id)")
    assert not pushed(found) and "count(*)" in plan(found)
    assert text(found) == ["(35999, 60000)"]


@pytest.mark.parametrize(
    "given",
    [
        {"dbtable": "(SELECT * FROM sales WHERE id > 9) AS t"},
        {"query": "SELECT s, g, k AS id FROM (SELECT s, g, id + 0 AS k FROM sales) q WHERE k > 9"},
        {"dbtable": "sales WHERE id > 9"},
    ],
)
def test_queries_in_parts(spark: SparkSession, url: str, given: dict[str, str]) -> None:
    load(spark, url, **given).createOrReplaceTempView("pushed")
    load(spark, url, **given, pushDown="false").createOrReplaceTempView("plain")
    sql = "SELECT g, count(*), max(s), min(id) FROM {} WHERE id < 59000 GROUP BY g"
    found = spark.sql(sql.format("pushed"))
    assert pushed(found), plan(found)
    assert text(found) == text(spark.sql(sql.format("plain")))
    report = wait_for(lambda: reports(spark, pushed(found)))[-1]
    assert report.isWhole() and report.parts() == PARTS and report.rows() <= 7 * PARTS


def test_statements_that_are_one_part(spark: SparkSession, postgres: PostgresServer) -> None:
    """What the planner does not divide is aggregated as a whole, and Spark takes it as it is."""
    postgres.run("CREATE OR REPLACE VIEW seen AS SELECT * FROM orders WHERE id <= 50000")
    joined = "orders JOIN (SELECT id AS other FROM orders) AS o ON id = other"
    for table, count in [("seen", 50_000), ("ONLY orders", 100_000), (joined, 100_000)]:
        found = load(spark, postgres.uri(), dbtable=table).groupBy("third").count()
        assert pushed(found)
        assert sum(row["count"] for row in found.collect()) == count
        report = wait_for(lambda: reports(spark, pushed(found)))[-1]  # noqa: B023
        assert (report.parts(), report.rows()) == (1, 3)


def test_under_concurrent_updates(spark: SparkSession, postgres: PostgresServer) -> None:
    """Money moves between accounts, rows move between parts, and all parts see one moment."""
    postgres.run(
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id integer PRIMARY KEY, kind integer, money integer, text text)",
        "INSERT INTO accounts SELECT i, i % 5, 1000, repeat('x', 150) "
        "FROM generate_series(1, 40000) i",
        "ANALYZE accounts",
    )
    ended = threading.Event()
    moves = 0

    def move() -> None:
        nonlocal moves
        with postgres.connect() as connection:
            connection.autocommit = True
            generator = random.Random(1)
            while not ended.is_set():
                one, other = generator.sample(range(1, 40_001), 2)
                connection.execute(
                    "UPDATE accounts SET money = money + CASE id WHEN %s THEN 7 ELSE -7 END, "
                    "kind = (kind + 1) %% 5, text = repeat('y', 150) WHERE id IN (%s, %s)",
                    (one, one, other),
                )
                connection.execute("INSERT INTO accounts VALUES (-%s, 9, 0, 'new')", (one,))
                connection.execute("DELETE FROM accounts WHERE id = -%s", (one,))
                moves += 1

    thread = threading.Thread(target=move)
    thread.start()
    try:
        accounts = load(spark, postgres.uri(), dbtable="accounts").where("kind <> 9")
        found = accounts.selectExpr("count(*)", "sum(money)", "min(kind)", "max(text)")
        grouped = accounts.groupBy("kind").agg({"*": "count", "money": "sum"})
        assert pushed(found) and pushed(grouped)
        for _ in range(ROUNDS):
            before = moves
            (row,) = found.collect()
            assert (row[0], row[1], row[2]) == (40_000, 40_000_000, 0)
            rows = grouped.collect()
            assert sum(row["count(1)"] for row in rows) == 40_000
            assert sum(row["sum(money)"] for row in rows) == 40_000_000
            wait_for(lambda: moves > before)  # noqa: B023
    finally:
        ended.set()
        thread.join()
    assert moves > ROUNDS


def test_who_aggregates_is_chosen(spark: SparkSession, postgres: PostgresServer) -> None:
    """By default one statement does, unless a large table has more parts at a time than the server
    has processes for it."""
    postgres.run(
        "DROP TABLE IF EXISTS wide",
        "CREATE TABLE wide AS SELECT i AS id, i % 3 AS third, repeat('x', 300) AS text "
        "FROM generate_series(1, 40000) i",
        "ANALYZE wide",
    )

    def aggregated(table: str, by: str = "third", settings: str = "", **options: object) -> str:
        url = f"{postgres.uri()}?options={settings}" if settings else postgres.uri()
        frame = load(spark, url, dbtable=table, aggregates="auto", **options)
        found = frame.groupBy(by).count()
        assert "GROUP BY" in plan(found)
        assert sum(row["count"] for row in found.collect()) == 40_000
        return "parts" if pushed(found) else "whole"

    serial = "-c%20max_parallel_workers_per_gather%3D0"
    # It is small.
    assert aggregated("wide", settings=serial) == "whole"
    # The planner takes it for large.
    postgres.run(
        "UPDATE pg_statistic SET stawidth = 10000 WHERE starelid = 'wide'::regclass "
        "AND staattnum = 3"
    )
    assert aggregated("wide", settings=serial) == "parts"
    assert aggregated("wide", settings=serial, numPartitions=1) == "whole"
    # The server has as many processes as Spark has cores.
    parallel = "%20".join(
        f"-c%20{name}%3D0"
        for name in ["parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"]
    )
    assert aggregated("wide", settings=parallel) == "whole"
    # There are as many groups as rows.
    assert aggregated("wide", by="id", settings=serial) == "whole"


def test_as_many_groups_as_rows(spark: SparkSession, postgres: PostgresServer) -> None:
    """One statement would send them over one connection."""
    postgres.run(
        "DROP TABLE IF EXISTS distinct_rows",
        "CREATE TABLE distinct_rows AS SELECT i AS id, (i / 4.0)::numeric(12, 2) AS a "
        "FROM generate_series(1, 20000) i",
        "ANALYZE distinct_rows",
        # The planner takes them for 200 MB.
        "UPDATE pg_statistic SET stawidth = 10000 WHERE starelid = 'distinct_rows'::regclass",
    )
    for aggregates, is_pushed in [("auto", False), ("whole", True)]:
        rows = load(spark, postgres.uri(), dbtable="distinct_rows", aggregates=aggregates)
        found = rows.groupBy("id").agg({"a": "avg", "*": "count"})
        # Nor do sums and counts take the place of an average.
        assert ("GROUP BY" in plan(found)) == is_pushed and not pushed(found)
        assert sum(row["count(1)"] for row in found.collect()) == 20_000
        assert "count(*)" in plan(rows.selectExpr("count(*)"))


def test_option(spark: SparkSession, url: str) -> None:
    said = failure(lambda: load(spark, url, dbtable="sales", aggregates="some"))
    assert 'option aggregates is "some", expected auto, whole or parts' in said
