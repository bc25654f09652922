"""Writing tables of MySQL and MariaDB by Spark: all rows or none, and exact values."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from mysql_server import DATABASE, DISTRIBUTED, MariaServer
from proxy import Proxy
from reading import failure, load, wait_for
from test_spark_options import catalog
from writing import made_by, save

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20_000
SUM = "SELECT count(*), count(DISTINCT id), sum(id) FROM target"
OLD = [("1", "1", "-1")]
WHOLE = [(str(ROWS + 1), str(ROWS + 1), str(ROWS * (ROWS - 1) // 2 - 1))]

#: The type of a column, an expression of Spark, and the server's own text of it.
VALUES = {
    "boolean": ("boolean", "true", "1"),
    "byte": ("tinyint", "tinyint(-128)", "-128"),
    "unsigned": ("bigint unsigned", "CAST(18446744073709551615 AS decimal(20,0))",
                 "18446744073709551615"),
    "long": ("bigint", "-9223372036854775808L", "-9223372036854775808"),
    "double": ("double", "0.1D", "0.1"),
    "decimal": ("decimal(9,2)", "CAST(-1.10 AS decimal(9,2))", "-1.10"),
    "decimal_38": ("decimal(38,10)",
                   "CAST(9999999999999999999999999999.0123456789 AS decimal(38,10))",
                   "9999999999999999999999999999.0123456789"),
    "text": ("text CHARACTER SET utf8mb4", "'ä€😀\\\\'", "ä€😀\\"),
    "latin": ("varchar(3) CHARACTER SET latin1", "'ä€'", "ä€"),
    "empty": ("varchar(3)", "''", ""),
    "binary": ("varbinary(9)", "unhex('0061FF')", "0061FF"),
    "date": ("date", "date'1001-01-01'", "1001-01-01"),
    "timestamp": ("timestamp(6) NULL", "timestamp'2024-07-01 08:00:00.000001'",
                  "2024-07-01 12:00:00.000001"),
    "ntz": ("datetime(6)", "timestamp_ntz'2024-02-29 23:59:59.999999'",
            "2024-02-29 23:59:59.999999"),
    "enum": ("enum('sad','it''s')", "'it\\'s'", "it's"),
    "json": ("json", "'{\"a\": 1}'", '{"a": 1}'),
}  # fmt: skip


@pytest.fixture(scope="module", params=[DISTRIBUTED, "mysql-8.0"])
def database(
    start_mysql: Callable[[str], MariaServer], request: pytest.FixtureRequest
) -> MariaServer:
    return start_mysql(request.param)


@pytest.fixture
def target(database: MariaServer) -> MariaServer:
    database.run(
        "DROP TABLE IF EXISTS target",
        "CREATE TABLE target (id bigint PRIMARY KEY)",
        "INSERT INTO target VALUES (-1)",
    )
    return database


def unfinished(database: MariaServer) -> list[str]:
    """The staging tables that there are."""
    sql = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'dray_unf%'"
    return [str(name) for (name,) in database.rows(sql)]


def test_types(spark: SparkSession, database: MariaServer) -> None:
    columns = ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in VALUES.items())
    database.run("DROP TABLE IF EXISTS every", f"CREATE TABLE every (id int, {columns})")
    values = ", ".join(f"{value} AS `{name}`" for name, (_, value, _) in VALUES.items())
    frame = spark.sql(f"SELECT 1 AS id, {values}")
    nulls = [f"IF(id = 1, `{name}`, NULL) AS `{name}`" for name in VALUES]
    both = frame.union(frame.withColumn("id", frame.id + 1)).selectExpr("id", *nulls)
    save(both, database.uri(), "every")
    texts = ", ".join("hex(`binary`)" if name == "binary" else f"`{name}`" for name in VALUES)
    row, null = database.rows(f"SELECT {texts} FROM every ORDER BY id")
    assert dict(zip(VALUES, row, strict=True)) == {
        name: text for name, (_, _, text) in VALUES.items()
    }
    assert set(null) == {None}


def test_append_and_overwrite(spark: SparkSession, database: MariaServer) -> None:
    database.run(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept (id bigint AUTO_INCREMENT PRIMARY KEY, name varchar(20) DEFAULT 'none', "
        "at date NOT NULL DEFAULT '2024-01-01', letters int AS (length(name)) STORED)",
        "INSERT INTO kept (id) VALUES (-1)",
    )
    save(spark.range(1000).repartition(3), database.uri(), f"{DATABASE}.kept")
    sql = "SELECT count(*), sum(id), min(name), min(at), sum(letters), sum(id = 0) FROM kept"
    # 0 is 0, though it is a value that the server could replace.
    assert database.rows(sql) == [("1001", "499499", "none", "2024-01-01", "4004", "1")]
    some = spark.range(10, 20).selectExpr("concat('row ', id) AS NAME", "id")
    save(some, database.uri(), "`kept`", "overwrite")
    sql = "SELECT count(*), sum(id), min(name) FROM kept"
    assert database.rows(sql) == [("10", "145", "row 10")]
    own = load(spark, database.uri(), dbtable="kept").where("id < 15").select("id", "name")
    save(own, database.uri(), "kept", "overwrite")
    assert database.rows(sql) == [("5", "60", "row 10")]
    save(spark.range(0), database.uri(), "kept")
    assert database.rows("SELECT count(*) FROM kept") == [("5",)]
    save(spark.range(0), database.uri(), "kept", "overwrite")
    assert database.rows("SELECT count(*) FROM kept") == [("0",)]
    assert unfinished(database) == []


def test_timestamps_with_implicit_defaults(
    spark: SparkSession, start_mysql: Callable[[str], MariaServer]
) -> None:
    """As MySQL 5.7 has them."""
    database = start_mysql("mysql-8.0")
    columns = "made timestamp NOT NULL, changed timestamp(6) NOT NULL DEFAULT '2024-01-01'"
    database.run("DROP TABLE IF EXISTS times", f"CREATE TABLE times (id bigint, {columns})")
    database.run("SET GLOBAL explicit_defaults_for_timestamp = OFF")
    try:
        at = "timestamp'2024-07-01 08:00:00'"
        frame = spark.sql(f"SELECT 1L AS id, {at} AS made, {at} AS changed")
        save(frame, database.uri(), "times")
        null = frame.selectExpr("id", "made", "CAST(NULL AS timestamp) AS changed")
        assert "changed" in failure(lambda: save(null, database.uri(), "times"))
    finally:
        database.run("SET GLOBAL explicit_defaults_for_timestamp = ON")
    expected = ("1", "2024-07-01 12:00:00", "2024-07-01 12:00:00.000000")
    assert database.rows("SELECT * FROM times") == [expected]
    assert unfinished(database) == []


def test_a_name_that_begins_with_a_digit(spark: SparkSession, database: MariaServer) -> None:
    database.run("DROP TABLE IF EXISTS 2024_orders", "CREATE TABLE 2024_orders (id bigint)")
    for name in ("2024_orders", f"{DATABASE}.2024_orders", "`2024_orders`"):
        save(spark.range(3), database.uri(), name)
    assert load(spark, database.uri(), dbtable="2024_orders").count() == 9
    save(spark.range(2), database.uri(), "2024_orders", "overwrite")
    assert database.rows("SELECT count(*), sum(id) FROM 2024_orders") == [("2", "1")]


def test_a_catalog(spark: SparkSession, target: MariaServer) -> None:
    # A catalog keeps its url.
    name = f"sea_{target.port}"
    catalog(spark, name, target.uri())
    spark.sql(f"INSERT INTO {name}.{DATABASE}.target VALUES (1), (2)")
    assert target.rows(SUM) == [("3", "3", "2")]
    spark.sql(f"INSERT OVERWRITE {name}.{DATABASE}.target SELECT 7")
    assert target.rows(SUM) == [("1", "1", "7")]
    said = failure(lambda: spark.sql(f"CREATE TABLE {name}.{DATABASE}.other AS SELECT 1 AS id"))
    assert "creates tables of PostgreSQL only" in said


REFUSED = {
    "unknown": ("strict_", "1L AS id, 2 AS other", 'has no column "other": its columns are id'),
    "missing": ("strict_", "'x' AS name", 'no column "id", which in'),
    "generated": ("strict_", "1L AS id, 2L AS g", 'column "g" of'),
    "text for a number": ("strict_", "'1' AS id", 'column "id"'),
    "a view": ("seen", "1L AS id", "is no table (it is a VIEW)"),
    "an engine": ("old", "1L AS id", "has the engine MyISAM, whose rows can't be taken back"),
    "nothing": ("nothing", "1L AS id", "doesn't exist"),
    "a query": ("(SELECT 1) AS t", "1L AS id", "this names none"),
    "too large": ("strict_", "3000000000L AS id", 'column "id"'),
    "too long": ("strict_", "1L AS id, 'abcd' AS name", 'column "name"'),
    "null": ("strict_", "CAST(NULL AS bigint) AS id", "id"),
    "null time": ("strict_", "1L AS id, CAST(NULL AS timestamp) AS at", "at"),
}


@pytest.fixture(scope="module")
def strict(database: MariaServer) -> MariaServer:
    database.run(
        "DROP VIEW IF EXISTS seen",
        "DROP TABLE IF EXISTS strict_, old",
        "CREATE TABLE strict_ (id int NOT NULL, name varchar(3), at timestamp NOT NULL DEFAULT "
        "'2024-01-01', g int AS (id) STORED)",
        "CREATE TABLE old (id bigint) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT id FROM strict_",
    )
    return database


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(spark: SparkSession, strict: MariaServer, what: str) -> None:
    table, select, expected = REFUSED[what]
    said = failure(lambda: save(spark.sql(f"SELECT {select}"), strict.uri(), table))
    assert expected in said
    assert strict.rows("SELECT count(*) FROM strict_") == [("0",)]
    assert unfinished(strict) == []


def test_what_is_not_overwritten(spark: SparkSession, database: MariaServer) -> None:
    database.run(
        "DROP TABLE IF EXISTS item, basket",
        "CREATE TABLE basket (id bigint PRIMARY KEY)",
        "CREATE TABLE item (basket bigint, CONSTRAINT item_key FOREIGN KEY (basket) "
        "REFERENCES basket (id) ON DELETE CASCADE)",
        "INSERT INTO basket VALUES (1)",
        "INSERT INTO item VALUES (1)",
    )
    said = failure(lambda: save(spark.range(5), database.uri(), "basket", "overwrite"))
    assert f"rows of {DATABASE}.item, by its foreign key item_key" in said
    said = failure(
        lambda: save(spark.range(5), database.uri(), "item", "overwrite", truncate="true")
    )
    assert "without the option truncate" in said
    assert database.rows("SELECT count(*) FROM item") == [("1",)]


def test_tasks_and_jobs_that_fail(spark: SparkSession, target: MariaServer) -> None:
    def once(index: int, numbers: Iterator[int]) -> Iterator[int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        for number in numbers:
            if number % 7000 == 6999 and context is not None and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")
            yield number

    def always(index: int, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            if number == ROWS - 1:
                raise RuntimeError("it always fails")
            yield number

    for mode in ("append", "overwrite"):
        frame = made_by(spark, ROWS, always)
        said = failure(lambda frame=frame, mode=mode: save(
            frame, target.uri(), "target", mode, batchRows=100))  # fmt: skip
        assert "it always fails" in said
        assert target.rows(SUM) == OLD and unfinished(target) == []
    save(made_by(spark, ROWS, once), target.uri(), "target", batchRows=100)
    assert target.rows(SUM) == WHOLE and unfinished(target) == []


def test_a_commit_that_fails(spark: SparkSession, target: MariaServer) -> None:
    said = failure(lambda: save(spark.range(-5, ROWS), target.uri(), "target"))
    assert "Duplicate entry '-1'" in said
    assert target.rows(SUM) == OLD and unfinished(target) == []


def test_rows_of_attempts_that_do_not_count(spark: SparkSession, target: MariaServer) -> None:
    """What an attempt leaves that was given up: rows that were committed, and a statement that
    still runs."""
    begun, killed = threading.Event(), threading.Event()

    def leave() -> None:
        begun.set()
        (staging,) = wait_for(
            lambda: [name for name in unfinished(target) if not name.endswith("_end")]
        )
        target.run(f"INSERT INTO {staging} VALUES (7, -1, 1), (8, -1, 2)")
        with pytest.raises(Exception, match=r"Lost|gone|2013|interrupted"):
            target.run(f"INSERT INTO {staging} SELECT 5, -2, SLEEP(60)")
        killed.set()

    def make(index: int, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            yield number
            if number == ROWS - 1:
                time.sleep(5)

    other = threading.Thread(target=leave)
    other.start()
    begun.wait()
    save(made_by(spark, ROWS, make), target.unix(), "target", batchRows=100)
    other.join(timeout=30)
    assert killed.is_set()
    assert target.rows(SUM) == WHOLE and unfinished(target) == []


def test_readers_see_all_or_nothing(spark: SparkSession, target: MariaServer) -> None:
    seen, ended = set[object](), threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.update(target.rows("SELECT count(*) FROM target"))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        save(spark.range(ROWS).repartition(4), target.uri(), "target", batchRows=100)
        save(spark.range(500).repartition(4), target.uri(), "target", "overwrite", batchRows=100)
    finally:
        ended.set()
        reader.join()
    assert seen <= {("1",), (str(ROWS + 1),), ("500",)}
    assert target.rows("SELECT count(*) FROM target") == [("500",)]


class Deaf(Proxy):
    """Loses the server's answer to the COMMIT of a job, or the COMMIT itself, and then the
    connection."""

    def __init__(self, server: MariaServer, passes: bool) -> None:
        super().__init__(("127.0.0.1", server.port))
        self.passes = passes
        self.deaf: list[socket.socket] = []

    def up(self, client: socket.socket, server: socket.socket) -> None:
        is_marked = False
        while data := client.recv(1 << 16):
            is_marked = is_marked or b"SET is_committed = 1" in data
            ends = is_marked and b"COMMIT" in data
            if ends:
                self.deaf.append(server)
            if not ends or self.passes:
                server.sendall(data)
            if ends:
                # The server does what it was told.
                time.sleep(1)
                return

    def down(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(1 << 16):
            if server not in self.deaf:
                client.sendall(data)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_commit_without_an_answer(
    spark: SparkSession, target: MariaServer, is_done: bool
) -> None:
    """What the connector says of a commit is what has happened."""
    proxy = Deaf(target, passes=is_done)
    url = target.uri("?ssl-mode=DISABLED").replace(f":{target.port}/", f":{proxy.port}/")
    try:
        if is_done:
            save(spark.range(ROWS), url, "target")
        else:
            assert "connection" in failure(lambda: save(spark.range(ROWS), url, "target"))
    finally:
        proxy.close()
    assert len(proxy.deaf) == 1
    assert target.rows(SUM) == (WHOLE if is_done else OLD)
    assert unfinished(target) == []


def test_what_killed_drivers_have_left(spark: SparkSession, target: MariaServer) -> None:
    meaning = (
        f"rows that Spark application gone writes into `{DATABASE}`.`target`, while its driver "
        "holds a lock"
    )
    marks = {"left": 0, "held": 0, "committed": 1, "of another writer": 0}
    tables = {what: f"dray_unfinished_target_{i:016x}" for i, what in enumerate(marks)}
    for what, table in tables.items():
        comment = "" if what == "of another writer" else meaning
        target.run(
            f"CREATE TABLE {table} (id bigint) COMMENT = '{comment}'",
            f"CREATE TABLE {table}_end (is_committed integer PRIMARY KEY) COMMENT = '{comment}'",
            f"INSERT INTO {table}_end VALUES ({marks[what]})",
        )

    def both(*of: str) -> list[str]:
        return sorted(tables[what] + end for what in of for end in ("", "_end"))

    try:
        with contextlib.closing(target.connect()) as driver:
            digits = tables["held"][-16:]
            driver.cursor().execute(f"SELECT GET_LOCK('dray job {digits}', 0)")
            save(spark.range(ROWS), target.uri(), "target")
            stay = both("held", "committed", "of another writer")
            assert sorted(unfinished(target)) == stay
        target.run("DELETE FROM target WHERE id >= 0")
        save(spark.range(ROWS), target.uri(), "target")
        assert sorted(unfinished(target)) == both("committed", "of another writer")
        assert target.rows(SUM) == WHOLE
    finally:
        for table in unfinished(target):
            target.run(f"DROP TABLE {table}")
