"""What the connector pushes down reaches the database, and the rows are those of Spark's own work.

The translations themselves are compared with Spark by `test_pushdown.py`.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import operator
import re
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from proxy import Proxy
from pymysql.converters import encoders
from reading import failure, load, partitions, reports, wait_for
from relay_server import Relay, relay
import writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows on which databases disagree with Spark: in text, a char(6), a float, a decimal and a date.
STRINGS = ["a", "A", "a ", "ä", "", "b", "it's", "x\\y", "%", "Zebra", None]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 1e300, None]
CONDITIONS = [
    "s = 'a'",
    "s = 'a '",
    "s < 'b'",
    "s >= 'a' AND s <> 'ä'",
    "s IN ('A', 'it\\'s', 'x\\\\y', '')",
    "s LIKE 'a%'",
    "c = 'a'",
    "rtrim(c) = 'a'",
    "c IS NULL OR c > 'A'",
    "x = 'NaN'",
    "x > 1",
    "x = 0 AND NOT s = 'b'",
    "x < 0 OR x IS NULL",
    "n > 1.25 AND id < 900",
    "n = 1.250",
    "NOT (n < 1)",
    "d >= DATE '2020-02-29' AND d IS NOT NULL",
    "year(d) = 2020",
    "year(d) <> 2020",
    "2020 > year(d) OR month(d) = 3",
    "year(d) <=> 2020",
    "s <=> NULL",
    "s <=> 'x\\\\y' OR NOT c <=> 'a'",
    "contains(s, '\\\\')",
    "i + 1 > 5 AND upper(s) = 'A'",
    "id % 7 = 3",
]
STATEMENTS = [
    "SELECT count(*), count(s), count(DISTINCT s), sum(i), sum(n), min(d), max(d) FROM {}",
    "SELECT min(s), max(s), min(c), max(c), min(x), max(x), avg(n), count_if(x > 0) FROM {}",
    "SELECT s, count(*), sum(i) FROM {} GROUP BY s",
    "SELECT c, max(n) FROM {} WHERE i > 1 GROUP BY c",
    "SELECT x, count(*) FROM {} GROUP BY x",
    "SELECT d, i, count(*) FROM {} WHERE s >= 'a' GROUP BY d, i",
    "SELECT DISTINCT s FROM {}",
    "SELECT id, s FROM {} ORDER BY s DESC NULLS LAST, id LIMIT 9",
    "SELECT id, c FROM {} ORDER BY c, id LIMIT 9 OFFSET 5",
    "SELECT id, x FROM {} WHERE x IS NOT NULL ORDER BY x, id LIMIT 100",
    "SELECT id FROM {} ORDER BY d DESC, n, id LIMIT 20",
    "SELECT count(*) FROM {} WHERE s = 'nothing'",
    "SELECT sum(i) FROM {} WHERE s = 'nothing'",
]


def rows() -> list[tuple[object, ...]]:
    """Of the columns id, s, c, x, n, d, i."""
    first = datetime.date(2019, 12, 30)
    return [
        (
            i,
            STRINGS[i % len(STRINGS)],
            STRINGS[i // 3 % len(STRINGS)],
            FLOATS[i % len(FLOATS)],
            None if i % 13 == 0 else decimal.Decimal(i % 50) / 4,
            None if i % 17 == 0 else first + datetime.timedelta(days=i % 80),
            i % 10,
        )
        for i in range(1000)
    ]


def scanned(frame: DataFrame) -> str:
    """The statement of a scan, as EXPLAIN shows it."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    found = re.search(r"dray \[(SELECT .*?)\]( RuntimeFilters|\n|$)", plan, re.DOTALL)
    assert found, plan
    return found[1]


def text(frame: DataFrame, sql: str) -> list[str]:
    # NaN is not equal to itself, and which zero stands for both is nobody's business.
    texts = [re.sub(r"\b-0\.0\b|-0\.0", "0.0", str(tuple(row))) for row in frame.collect()]
    return texts if "ORDER BY" in sql else sorted(texts)


def compare(spark: SparkSession, url: str, table: str, conditions: list[str]) -> int:
    """Compare with what Spark does by itself; returns how many scans had more than columns."""
    pushed = 0
    load(spark, url, dbtable=table).createOrReplaceTempView("pushed")
    load(spark, url, dbtable=table, pushDown="false").createOrReplaceTempView("plain")
    for sql in [f"SELECT id FROM {{}} WHERE {condition}" for condition in conditions] + STATEMENTS:
        plain = spark.sql(sql.format("plain"))
        assert not re.search("WHERE|count|GROUP BY|ORDER BY", scanned(plain))
        frame = spark.sql(sql.format("pushed"))
        assert text(frame, sql) == text(plain, sql), scanned(frame)
        pushed += scanned(frame) != scanned(plain)
    return pushed


@pytest.fixture(scope="module")
def nasty(postgres: PostgresServer) -> str:
    """A table whose text compares without regard to accents and case in the database's mind."""
    postgres.run(
        "DROP TABLE IF EXISTS nasty",
        "CREATE COLLATION IF NOT EXISTS blind "
        "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TABLE nasty (id integer, s text COLLATE blind, c char(6), x float8, "
        "n numeric(12, 3), d date, i smallint)",
    )
    with postgres.connect() as connection:
        connection.cursor().executemany(
            "INSERT INTO nasty VALUES (%s, %s, %s, %s, %s, %s, %s)", rows()
        )
    return "nasty"


def test_postgres(spark: SparkSession, postgres: PostgresServer, nasty: str) -> None:
    assert compare(spark, postgres.uri(), nasty, CONDITIONS) > 25


@pytest.fixture(scope="module")
def nasty_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    folder = tmp_path_factory.mktemp("nasty")
    types = [pa.int32(), pa.string(), pa.string(), pa.float64(), pa.decimal128(9, 3), pa.date32()]
    columns = [
        pa.array(column, kind)
        for column, kind in zip(zip(*rows(), strict=True), [*types, pa.int16()], strict=True)
    ]
    pq.write_table(pa.table(columns, names=list("lscxndi")), folder / "nasty.parquet")
    with relay(str(folder)) as server:
        yield server


def test_files(spark: SparkSession, nasty_files: Relay) -> None:
    table = "(SELECT l AS id, s, c, x, n, d, i FROM nasty) AS t"
    assert compare(spark, nasty_files.uri(), table, CONDITIONS) > 20


def test_long_chains(spark: SparkSession, nasty_files: Relay) -> None:
    """Spark puts each operand within the next one, and the server limits how many are so."""
    from pyspark.sql.functions import upper

    nasty = load(spark, nasty_files.uri(), dbtable="nasty")
    # Spark itself overflows its stack by some more.
    third = [nasty.l.between(3 * i, 3 * i) for i in range(210)]
    # Spark evaluates the other half of each operand.
    half = [operand & (upper(nasty.s) != f"X{i}") for i, operand in enumerate(third)]
    for operands, count in [(third, 210), (half, 191)]:
        found = nasty.where(functools.reduce(operator.or_, operands)).select("l")
        assert scanned(found).count(" OR ") == 209
        rows = found.collect()
        assert {row.l % 3 for row in rows} == {0} and len(rows) == count
    # Each operand of a sum is cast, and casts in each other take the server's parser long.
    for length, pushed in [(16, True), (17, False)]:
        found = nasty.where(" + ".join(["n"] * length) + " > 150").select("l")
        assert ("'150" in scanned(found)) == pushed
        assert found.count() == nasty.where(f"{length} * n > 150").count() > 0


def test_mariadb(spark: SparkSession, maria: MariaServer) -> None:
    maria.run(
        "CREATE OR REPLACE TABLE nasty (id int, s varchar(20), c char(6), x double, "
        "n decimal(9, 3), d date, i smallint) CHARACTER SET utf8mb4",
    )
    connection = maria.connect()
    connection.encoders = encoders
    finite = [
        tuple(None if isinstance(v, float) and not math.isfinite(v) else v for v in row)
        for row in rows()
    ]
    connection.cursor().executemany("INSERT INTO nasty VALUES (%s,%s,%s,%s,%s,%s,%s)", finite)
    connection.commit()
    connection.close()
    assert compare(spark, maria.uri(), "nasty", CONDITIONS) > 20
    strings = load(spark, maria.uri(), dbtable="nasty").where("s = 'a'").select("id")
    # The column's own comparison finds the rows by an index.
    assert "`s` = _utf8mb4 'a' AND " in scanned(strings)


def test_unsigned_numbers(spark: SparkSession, maria: MariaServer) -> None:
    """Results below 0 are an error of MySQL's if an operand is unsigned."""
    maria.run(
        "CREATE OR REPLACE TABLE numbers (id int, u bigint unsigned, v bigint unsigned)",
        "INSERT INTO numbers VALUES (1, 3, NULL), (2, NULL, 18446744073709551615), (3, 0, 0), "
        "(4, NULL, NULL)",
    )
    numbers = load(spark, maria.uri(), dbtable="numbers")
    for condition, ids in [
        ("u - 5 < 0", [1, 3]),
        ("coalesce(u, v) - 5 < 0", [1, 3]),
        ("CASE WHEN id < 3 THEN u ELSE v END - 5 < 0", [1, 3]),
        ("- coalesce(u, v) < -2", [1, 2]),
        ("coalesce(u, v) * -1 < 0", [1, 2]),
    ]:
        found = numbers.where(condition)
        assert "WHERE" in scanned(found), scanned(found)
        assert sorted(row.id for row in found.collect()) == ids, scanned(found)


def test_names_that_differ_in_accents(spark: SparkSession, maria: MariaServer) -> None:
    """A year is compared with 70 as if that were 1970, and a number is not."""
    maria.run(
        "CREATE OR REPLACE TABLE years (jahr year, jähr smallint)",
        "INSERT INTO years VALUES (1970, 1970), (2001, 70)",
    )
    frame = load(spark, maria.uri(), dbtable="years")
    for condition, count in [("jahr = 70", 0), ("`jähr` = 70", 1), ("jahr = 1970", 1)]:
        found = frame.where(condition)
        assert " WHERE " in scanned(found) and len(found.collect()) == count, scanned(found)


def test_averages(spark: SparkSession, postgres: PostgresServer) -> None:
    """Spark's own average of few digits is a quotient of doubles, and rounded another way."""
    postgres.run(
        "DROP TABLE IF EXISTS averages",
        "CREATE TABLE averages (g integer, few numeric(4, 2), most numeric(11, 2), "
        "exact numeric(12, 2), great numeric(18, 4))",
        # Groups of 160 rows, of which one is not 0.
        "INSERT INTO averages SELECT g, x, x, x, x FROM generate_series(1, 99) g, LATERAL "
        "(SELECT CASE i WHEN 1 THEN g * 0.01 ELSE 0 END AS x FROM generate_series(1, 160) i) "
        "AS amounts",
        "INSERT INTO averages VALUES (0, 99.99, 999999999.99, 9999999999.99, 99999999999999.9999), "
        "(0, -0.01, -0.01, -0.01, -0.0001), (0, 0.01, 0.01, 0.01, 0.0001), (0, NULL, 1, 2, 3)",
        "ANALYZE averages",
    )
    for column, pushed in [("few", False), ("most", False), ("exact", True), ("great", True)]:
        for sql in ["SELECT avg({}) FROM {{}}", "SELECT g, avg({}) FROM {{}} GROUP BY g"]:
            sql = sql.format(column)
            for view, push in [("pushed", "true"), ("plain", "false")]:
                frame = load(spark, postgres.uri(), dbtable="averages", pushDown=push)
                frame.createOrReplaceTempView(view)
            found = spark.sql(sql.format("pushed"))
            assert text(found, sql) == text(spark.sql(sql.format("plain")), sql)
            assert ("avg_" in scanned(found)) == pushed, scanned(found)


def test_aggregates_travel_as_one_row(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    start = postgres.log_bytes()
    frame = orders.where("third = 2 AND name <> 'row 2'").selectExpr("count(*)", "sum(id)")
    ids = range(5, 100_001, 3)
    assert [tuple(row) for row in frame.collect()] == [(len(ids), sum(ids))]
    sql = scanned(frame)
    assert sql.startswith('SELECT count(*) AS "count_0", CAST(sum("id") AS bigint) AS "sum_1" FROM')
    assert sql in postgres.log(start)
    (report,) = wait_for(lambda: reports(spark, sql))
    assert (report.parts(), report.rows()) == (1, 1)


@pytest.mark.parametrize(
    "condition",
    [
        "id > 50000",
        "name LIKE 'row 1%'",
        "x < 7000 OR third = 1",
        "third IS NULL",
        "name > 'row 5'",
    ],
)
def test_filters_leave_the_parts(
    spark: SparkSession, postgres: PostgresServer, condition: str
) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    found = orders.where(condition).select("id", "x")
    assert " WHERE " in scanned(found) and partitions(found) == 4
    plain = load(spark, postgres.uri(), dbtable="orders", pushDown="false").where(condition)
    assert found.count() == plain.count() == len(found.collect())


@pytest.mark.parametrize(
    "condition",
    [
        "name <=> 'row 7'",
        "NOT third <=> 1",
        "name = 'x\\\\y' OR third = 1",
        "contains(name, '\\\\') OR contains(name, 'today') OR third = 2",
        "blank IN ('today', 'x\\\\y') OR third = 2",
        "year(day) = 2020",
        "year(day) > 2019 AND month(day) IN (2, 3)",
        "day(day) = 29",
        "day >= DATE '2020-06-01'",
    ],
)
def test_more_filters_that_leave_the_parts(
    spark: SparkSession, postgres: PostgresServer, condition: str
) -> None:
    postgres.run(
        "CREATE TABLE IF NOT EXISTS dated_orders AS SELECT *, 'x'::char(5) AS blank, "
        "DATE '2019-06-01' + (id % 700)::integer AS day FROM orders",
        "ANALYZE dated_orders",
    )
    for given in [{"dbtable": "dated_orders"}, {"query": "SELECT * FROM dated_orders"}]:
        orders = load(spark, postgres.uri(), numPartitions=4, **given)
        found = orders.where(condition).select("id", "day")
        plan = found._jdf.queryExecution().executedPlan().toString()
        assert " WHERE " in scanned(found) and not re.search(r"\bFilter\b", plan), plan
        assert partitions(found) == 4
        plain = load(spark, postgres.uri(), pushDown="false", **given).where(condition)
        assert sorted(row.id for row in found.collect()) == sorted(
            row.id for row in plain.select("id").collect()
        )


@pytest.mark.parametrize("source", ["pg", "maria"])
def test_filters_behind_a_server(spark: SparkSession, server: Relay, source: str) -> None:
    orders = load(spark, server.uri(source), dbtable="orders", numPartitions=4)
    for condition, count in [("id > 50000", 50_000), ("name = 'row 7'", 1)]:
        found = orders.where(condition).select("id")
        assert " WHERE " in scanned(found) and partitions(found) == 4
        assert len(found.collect()) == count


def test_orders_with_limits(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", numPartitions=4)
    last = orders.orderBy(orders.third.desc_nulls_last(), orders.id.desc()).select("id").limit(2)
    assert scanned(last).endswith('ORDER BY "third" DESC NULLS LAST, "id" DESC NULLS LAST LIMIT 2')
    assert [row.id for row in last.collect()] == [99_998, 99_995]
    # More rows are better read in parts.
    assert "LIMIT" not in scanned(orders.orderBy("id").limit(70_000))


def test_offsets(spark: SparkSession, server: Relay) -> None:
    for source in ["pg", "maria"]:
        orders = load(spark, server.uri(source), dbtable="orders", numPartitions=4)
        found = orders.orderBy("id").select("id").offset(5).limit(3)
        assert scanned(found).endswith(" LIMIT 3 OFFSET 5")
        assert [row.id for row in found.collect()] == [6, 7, 8]
        found = orders.orderBy("id").select("id").limit(8).offset(5)
        assert scanned(found).endswith(" LIMIT 3 OFFSET 5")
        assert [row.id for row in found.collect()] == [6, 7, 8]
        assert len(orders.limit(10).offset(7).collect()) == 3
        # Spark reads parts at the same time.
        rest = orders.offset(99_990)
        assert "OFFSET" not in scanned(rest) and len(rest.collect()) == 10


@pytest.fixture
def join_pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.optimizer.datasourceV2JoinPushdown", "true")
    yield
    spark.conf.unset("spark.sql.optimizer.datasourceV2JoinPushdown")


JOINS = [
    ("INNER", "SELECT a.id, a.name, b.id, b.name FROM {a} a JOIN {b} b ON a.id = b.third"),
    ("LEFT", "SELECT b.id, a.id AS x, a.name FROM {b} b LEFT JOIN {a} a ON a.id = b.third"),
    ("RIGHT", "SELECT * FROM {a} a RIGHT JOIN {b} b ON a.id = b.id AND a.name < 'row 2'"),
    (
        "LEFT",
        "SELECT b.name, count(*), max(a.id) FROM {b} b LEFT JOIN {a} a ON a.id = b.id "
        "AND a.name <> b.name WHERE b.id < 300 GROUP BY b.name",
    ),
    (
        "INNER",
        "SELECT b.id AS id, a.id AS x, c.id AS y FROM {a} a JOIN {b} b ON a.id = b.id "
        "JOIN {a} c ON CAST(c.id AS BIGINT) = CAST(b.id AS BIGINT) + 1 WHERE c.third = 1",
    ),
]


@pytest.mark.usefixtures("join_pushdown")
@pytest.mark.parametrize(("kind", "sql"), JOINS)
def test_joins(spark: SparkSession, postgres: PostgresServer, kind: str, sql: str) -> None:
    few = "(SELECT * FROM orders WHERE id <= 500) AS few"
    for view, push in [("pushed", "true"), ("plain", "false")]:
        for name, table in [("a", "orders"), ("b", few)]:
            frame = load(spark, postgres.uri(), dbtable=table, pushDown=push)
            frame.createOrReplaceTempView(f"{view}_{name}")
    pushed = spark.sql(sql.format(a="pushed_a", b="pushed_b"))
    plain = spark.sql(sql.format(a="plain_a", b="plain_b"))
    assert text(pushed, sql) == text(plain, sql)
    plan = pushed._jdf.queryExecution().executedPlan().toString()
    assert f" {kind} JOIN (" in plan
    # The database's planner knows little about rows that belong to a sum.
    assert plan.count("BatchScan") == 1 or "+ 1" in sql


@pytest.mark.usefixtures("join_pushdown")
def test_joins_that_are_sparks(
    spark: SparkSession, postgres: PostgresServer, server: Relay
) -> None:
    for view, url in [("direct", postgres.uri()), ("relayed", server.uri("pg"))]:
        load(spark, url, dbtable="orders").createOrReplaceTempView(view)

    def scans(sql: str) -> int:
        return str(spark.sql(sql)._jdf.queryExecution().executedPlan()).count("BatchScan")

    few = "SELECT a.id, b.name FROM {} a {} JOIN {} b ON a.id = b.id WHERE b.id < 5000"
    assert scans(few.format("direct", "", "direct")) == 1
    # Of two databases.
    assert scans(few.format("relayed", "", "direct")) == 2
    behind = few.format("relayed", "", "relayed")
    assert scans(behind) == 1 and spark.sql(behind).count() == 4_999
    # Many rows, other kinds, and what could overflow in Spark.
    assert scans("SELECT a.id, b.name FROM direct a JOIN direct b ON a.third = b.third") == 2
    for kind in ["FULL", "LEFT SEMI", "LEFT ANTI"]:
        assert scans(f"SELECT a.id FROM direct a {kind} JOIN direct b ON a.id = b.id") == 2
    assert scans("SELECT a.id, b.name FROM direct a JOIN direct b ON a.id = b.id + 1") == 2


def test_what_may_be_more_than_a_table(spark: SparkSession, postgres: PostgresServer) -> None:
    for table, count in [
        ("orders -- all of them", 50_000),
        ("orders WHERE id > 90000", 10_000),
        ("orders LIMIT 100000", 50_000),
        ("orders UNION ALL SELECT * FROM orders", 100_000),
    ]:
        frame = load(spark, postgres.uri(), dbtable=table).where("id > 50000")
        assert " WHERE " in scanned(frame)
        assert frame.count() == len(frame.select("id").collect()) == count
        first = load(spark, postgres.uri(), dbtable=table).limit(3)
        assert len(first.collect()) == 3


def test_queries(spark: SparkSession, postgres: PostgresServer) -> None:
    query = "SELECT o.id, p.name FROM orders o JOIN orders p ON o.id = p.id -- joined"
    joined = load(spark, postgres.uri(), query=query)
    found = joined.where("id = 7")
    assert "\n) AS dray_query WHERE (" in found._jdf.queryExecution().executedPlan().toString()
    assert [tuple(row) for row in found.collect()] == [(7, "row 7")]


@pytest.mark.parametrize("push", ["true", "false"])
def test_queries_with_an_order(
    spark: SparkSession, server: Relay, postgres: PostgresServer, maria: MariaServer, push: str
) -> None:
    """MariaDB has none for a derived table, so nothing stands around such a query."""
    query = "SELECT id, name FROM orders ORDER BY id DESC"
    last = [100_000, 99_999, 99_998]
    for url in [maria.uri(), server.uri("maria"), postgres.uri(), server.uri("pg")]:
        frame = load(spark, url, query=query, pushDown=push)
        assert [row.id for row in frame.limit(3).collect()] == last
        assert [row.id for row in frame.select("id").limit(3).collect()] == last
        assert [row.id for row in frame.select("id").offset(1).limit(2).collect()] == last[1:]
        assert [row.name for row in frame.where("id < 9").select("name").take(2)] == [
            "row 8",
            "row 7",
        ]
        assert frame.count() == 100_000
        assert frame.where("id > 10").selectExpr("min(id)").collect()[0][0] == 11
        wrapped = "AS dray_query" in scanned(frame.select("id").limit(3))
        assert wrapped == ("maria" not in url and url != maria.uri())
    # As a table.
    frame = load(spark, maria.uri(), dbtable="orders ORDER BY id DESC", pushDown=push)
    assert [row.id for row in frame.limit(3).collect()] == last


def test_values_that_spark_has_changed(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS changed",
        "CREATE TABLE changed (id integer, d date, n numeric(9, 2), m numeric, t time, "
        "iv interval)",
        # Spark's intervals have 292 years of hours.
        "INSERT INTO changed VALUES (1, 'infinity', 'NaN', 1.235, '24:00', '3000000 hours'), "
        "(2, '2024-01-01', 1, 2, '23:59', '1 hour'), (3, NULL, NULL, NULL, NULL, NULL)",
    )

    def ids(condition: str, **options: str) -> list[int]:
        options = {"dbtable": "changed", "numeric": "float64", **options}
        found = load(spark, postgres.uri(), **options).where(condition)
        # Python has no type for intervals.
        return sorted(r.id for r in found.drop("iv").collect())

    assert ids("d IS NULL AND id < 3", nonfinite="null") == [1]
    assert ids("n IS NULL AND id < 3", nonfinite="null") == [1]
    for column in ["t", "iv"]:
        assert ids(f"{column} IS NULL", nonfinite="null") == [1, 3]
        assert ids(f"{column} IS NOT NULL", nonfinite="null") == [2]
    nulls = load(spark, postgres.uri(), dbtable="changed", nonfinite="null")
    counts = nulls.selectExpr(*(f"count({column})" for column in ["d", "n", "t", "iv"]))
    assert tuple(counts.collect()[0]) == (1, 1, 1, 1)
    assert ids("d > DATE '2024-01-01'", nonfinite="null") == []
    assert ids("d = 'infinity'", nonfinite="text") == [1]
    assert ids("m > 1.2", nonfinite="null", numeric="float64") == [1, 2]
    # What an error would be is not read.
    assert ids("id = 2") == [2]
    assert "d" in failure(lambda: ids("id = 1"))


def test_decimals_by_numeric(spark: SparkSession, postgres: PostgresServer) -> None:
    """Only numeric without a precision becomes something else by the option."""
    postgres.run(
        "DROP TABLE IF EXISTS declared",
        "CREATE TABLE declared AS SELECT i AS id, (i / 4.0)::numeric(9, 2) AS n, i / 4.0 AS m "
        "FROM generate_series(1, 20) i",
    )
    for option, pushed in [("text", True), ("float64", True), ("decimal(20,16)", False)]:
        frame = load(spark, postgres.uri(), dbtable="declared", numeric=option)
        found = frame.where("n > 1.25")
        assert (" WHERE " in scanned(found)) == pushed
        assert sorted(row.id for row in found.collect()) == list(range(6, 21))
        assert ("sum" in scanned(frame.selectExpr("sum(n)"))) == pushed
        found = frame.where("m > 1.25")
        assert '"m" >' not in scanned(found) and found.count() == 15


def test_collations_that_change(spark: SparkSession, postgres: PostgresServer) -> None:
    """A statement that Spark has planned is exact by what the columns were then."""
    postgres.run(
        "DROP TABLE IF EXISTS collated",
        "CREATE COLLATION IF NOT EXISTS blind "
        "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TABLE collated AS SELECT i AS id, CASE i % 2 WHEN 0 THEN 'a' ELSE 'A' END AS s "
        "FROM generate_series(1, 6) i",
    )
    frame = load(spark, postgres.uri(), dbtable="collated")
    found = frame.where("s = 'a'").select("id")
    assert sorted(row.id for row in found.collect()) == [2, 4, 6]
    postgres.run("ALTER TABLE collated ALTER s TYPE text COLLATE blind")
    later = [
        found,
        frame.where("s = 'a'"),
        frame.where("s <> 'b'").selectExpr("count(*)"),
        frame.groupBy("s").count(),
        frame.orderBy("s").limit(2),
    ]
    for other in later:
        said = failure(other.collect)
        assert "types or collations" in said and "load the table anew" in said
    # Of these, nothing depends on a collation.
    assert len(frame.collect()) == 6 and frame.select("id").limit(2).count() == 2
    anew = load(spark, postgres.uri(), dbtable="collated")
    assert sorted(row.id for row in anew.where("s = 'a'").collect()) == [2, 4, 6]
    assert sorted(tuple(row) for row in anew.groupBy("s").count().collect()) == [("A", 3), ("a", 3)]


class Gate(Proxy):
    """Calls a function before it passes on the first bytes of a connection."""

    before: Callable[[], None]

    def up(self, client: socket.socket, server: socket.socket) -> None:
        self.before()
        super().up(client, server)


def test_a_table_that_somebody_waits_to_alter(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    """The ALTER waits for the snapshot, and whoever asks for the types would wait for the ALTER."""
    postgres.run(
        "DROP TABLE IF EXISTS altered",
        "CREATE TABLE altered AS SELECT i AS id, 's' || i AS s FROM generate_series(1, 6) i",
    )
    locks = "SELECT count(*) FROM pg_locks WHERE relation = 'altered'::regclass AND "
    held = (
        f"{locks} granted AND pid IN "
        "(SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction')"
    )
    others: list[threading.Thread] = []

    def alter() -> None:
        if not others and writing.rows(postgres, held) != [(0,)]:
            sql = "ALTER TABLE altered ADD x int"
            others.append(threading.Thread(target=postgres.run, args=(sql,)))
            others[0].start()
            wait_for(lambda: writing.rows(postgres, f"{locks} NOT granted") != [(0,)])

    gate = Gate(("127.0.0.1", postgres.port))
    gate.before = alter
    url = postgres.uri().replace(str(postgres.port), str(gate.port))
    said = failure(load(spark, url, dbtable="altered").where("s = 's3'").select("id").collect)
    assert "[SQLSTATE 55P03]" in said and "somebody waits to alter a table" in said
    others[0].join(timeout=30)
    assert not others[0].is_alive()
    gate.close()


@pytest.mark.usefixtures("join_pushdown")
def test_statements_that_the_database_refuses(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    """A role may read a table, and not call what the statements call."""
    functions = "FUNCTION pg_catalog.max(date), pg_catalog.date_eq(date, date)"
    postgres.run(
        "DROP TABLE IF EXISTS dated",
        "CREATE TABLE dated AS SELECT DATE '2024-01-01' + i AS d, i FROM generate_series(0, 9) i",
        "ANALYZE dated",
        "CREATE ROLE limited LOGIN",
        "GRANT SELECT ON dated TO limited",
        f"REVOKE EXECUTE ON {functions} FROM PUBLIC",
    )
    try:
        for user, pushed in [("postgres", True), ("limited", False)]:
            dated = load(spark, postgres.uri(user=user), dbtable="dated")
            greatest = dated.selectExpr("max(d)", "count(*)")
            assert ("max(" in scanned(greatest)) == pushed
            assert tuple(greatest.collect()[0]) == (datetime.date(2024, 1, 10), 10)
            dated.createOrReplaceTempView("dated")
            joined = spark.sql("SELECT a.i, b.i AS j FROM dated a JOIN dated b ON a.d = b.d")
            plan = joined._jdf.queryExecution().executedPlan().toString()
            assert (plan.count("BatchScan") == 1) == pushed, plan
            assert sorted(tuple(row) for row in joined.collect()) == [(i, i) for i in range(10)]
    finally:
        postgres.run(
            f"GRANT EXECUTE ON {functions} TO PUBLIC", "DROP OWNED BY limited", "DROP ROLE limited"
        )


def test_switched_off(spark: SparkSession, postgres: PostgresServer) -> None:
    orders = load(spark, postgres.uri(), dbtable="orders", pushDown="False")
    assert scanned(orders.where("id = 1").select("x").limit(3)) == 'SELECT "id", "x" FROM orders'
    said = failure(lambda: load(spark, postgres.uri(), dbtable="orders", pushDown="no"))
    assert 'option pushDown is "no", expected true or false' in said
