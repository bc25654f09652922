"""One snapshot for several scans: the option `snapshot`."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from mysql_server import DATABASE, MariaServer
from postgres_server import PostgresServer
from reading import JAR, failure, load, snapshots, wait_for
from relay_server import Relay
from test_spark_options import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40_000
TABLES = (
    "DROP TABLE IF EXISTS one, other",
    "CREATE TABLE one AS SELECT i AS id, 10 AS amount, repeat('x', 90) AS filler "
    f"FROM generate_series(1, {ROWS}) i",
    "CREATE TABLE other AS SELECT i AS id, -10 AS amount, repeat('x', 90) AS filler "
    f"FROM generate_series(1, {ROWS}) i",
    "ANALYZE one, other",
)
#: Keeps the sum of both tables at 0.
CHANGE = "UPDATE one SET amount = amount + 1; UPDATE other SET amount = amount - 1"
NAME = "month end"
RELEASE = f'dray.spark.NamedSnapshots.release("{NAME}")'

#: Reads one table, and ends.
APPLICATION = """
import sys
from pyspark.sql import SparkSession
jar, url = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", jar)
    .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.catalogImplementation", "in-memory").getOrCreate()
)
one = spark.read.format("dray").options(url=url, dbtable="one", snapshot="end").load()
print("rows:", one.count())
spark.stop()
"""


@pytest.fixture(params=["direct", "relayed"])
def url(request: pytest.FixtureRequest, postgres: PostgresServer) -> str:
    postgres.run(*TABLES)
    if request.param == "direct":
        return postgres.uri()
    server: Relay = request.getfixturevalue("server")
    return server.uri("pg")


@pytest.fixture(autouse=True)
def _released(spark: SparkSession, postgres: PostgresServer) -> Iterator[None]:
    yield
    release(spark)
    wait_for(lambda: snapshots(postgres) == 0)


def release(spark: SparkSession, name: str = NAME) -> bool:
    return bool(spark._jvm.dray.spark.NamedSnapshots.release(name))


def total(spark: SparkSession, url: str, table: str, **options: object) -> int:
    """The sum of a table's amounts, read by a scan of its own."""
    given = {"dbtable": table, "numPartitions": 3, "pushDown": "false"} | options
    return int(load(spark, url, **given).selectExpr("sum(amount)").collect()[0][0])


def test_scans_see_the_same(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    assert total(spark, url, "one", snapshot=NAME) == 10 * ROWS
    postgres.run(CHANGE)
    # Another query, after the first has ended.
    assert total(spark, url, "other", snapshot=NAME) == -10 * ROWS
    # Without the option, each scan has its own, and so has each name.
    assert total(spark, url, "other") == -11 * ROWS
    assert total(spark, url, "other", snapshot="another") == -11 * ROWS
    postgres.run(CHANGE)
    time.sleep(6)
    # Nothing runs meanwhile, and the snapshots of the scans were given up, but not this one.
    assert snapshots(postgres) == 2
    query = "SELECT sum(amount)::int8 FROM one"
    assert load(spark, url, query=query, snapshot=NAME).collect()[0][0] == 10 * ROWS
    counted = load(spark, url, dbtable="one", snapshot=NAME)
    assert counted.where("amount = 10").count() == ROWS
    assert total(spark, url, "one", snapshot="another") == 11 * ROWS
    assert release(spark, "another") and not release(spark, "another")
    # The next scan after a release begins a new one.
    assert release(spark)
    wait_for(lambda: snapshots(postgres) == 0)
    assert total(spark, url, "one", snapshot=NAME) == 12 * ROWS
    assert release(spark)
    wait_for(lambda: snapshots(postgres) == 0)


def test_a_frame_that_runs_again(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    one = load(spark, url, dbtable="one", snapshot=NAME, numPartitions=3).select("amount")

    def summed() -> int:
        return sum(row.amount for row in one.collect())

    assert summed() == 10 * ROWS
    postgres.run(CHANGE)
    # Its scan's own plan is given up after five seconds.
    wait_for(lambda: snapshots(postgres) == 1)
    assert summed() == 10 * ROWS
    release(spark)
    wait_for(lambda: snapshots(postgres) == 0)
    assert summed() == 11 * ROWS
    # Also if its own plan is still held.
    postgres.run(CHANGE)
    release(spark)
    wait_for(lambda: summed() == 12 * ROWS)


def test_both_sides_of_a_join(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    """While others write."""
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            postgres.run(CHANGE)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(4):
            one, other = (
                load(spark, url, dbtable=table, numPartitions=3, snapshot=NAME)
                for table in ("one", "other")
            )
            joined = one.join(other, "id").where(one.amount + other.amount == 0)
            assert joined.count() == ROWS
            release(spark)
    finally:
        ended.set()
        changer.join()


def test_tables_of_a_catalog(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    name = f"books{abs(hash(url))}"
    for option, value in {"": "dray.spark.DrayCatalog", ".url": url, ".snapshot": NAME}.items():
        spark.conf.set(f"spark.sql.catalog.{name}{option}", value)

    def summed(table: str) -> int:
        return int(spark.sql(f"SELECT sum(amount) FROM {name}.public.{table}").collect()[0][0])

    assert summed("one") == 10 * ROWS
    postgres.run(CHANGE)
    assert summed("other") == -10 * ROWS
    # With a frame of the same url and name, too.
    assert total(spark, url, "other", snapshot=NAME) == -10 * ROWS
    if url.startswith("postgresql:"):
        # What the job itself writes is not in the snapshot.
        spark.sql(f"INSERT INTO {name}.public.one VALUES (0, 1000, 'x')")
        assert summed("one") == 10 * ROWS
    release(spark)
    assert summed("other") == -11 * ROWS


def test_reads_of_a_catalogs_tables(
    spark: SparkSession, postgres: PostgresServer, url: str
) -> None:
    name = f"shelf{abs(hash(url))}"
    catalog(spark, name, url)

    def summed(table: str, **options: str) -> int:
        frame = spark.read.options(**options).table(f"{name}.public.{table}")
        return int(frame.selectExpr("sum(amount)").collect()[0][0])

    assert summed("one", snapshot=NAME) == 10 * ROWS
    postgres.run(CHANGE)
    assert summed("other", snapshot=NAME) == -10 * ROWS
    assert summed("one", snapshot=NAME, pushDown="false") == 10 * ROWS
    assert summed("other") == -11 * ROWS
    sql = f"SELECT sum(amount) FROM {name}.public.one WITH ('snapshot' = '{NAME}')"
    assert spark.sql(sql).collect()[0][0] == 10 * ROWS
    assert "snapshot is the nearest" in failure(lambda: summed("one", snapshots=NAME))
    for option in ("url", "dbtable", "numeric"):
        said = failure(lambda option=option: summed("one", **{option: "other"}))
        assert f"option {option} can't be given for one use of a table" in said
    writer = spark.sql("SELECT 1 AS id, 1 AS amount, 'x' AS filler").writeTo(f"{name}.public.one")
    said = failure(writer.option("dbtable", "other").append)
    assert "option dbtable can't be given for one use of a table" in said


def test_a_lease_that_is_over(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    assert total(spark, url, "one", snapshot=NAME, lease=2) == 10 * ROWS
    postgres.run(CHANGE)
    time.sleep(3)
    for _ in range(2):
        # Never another snapshot.
        said = failure(lambda: total(spark, url, "other", snapshot=NAME, lease=2))
        assert f'the snapshot "{NAME}" has ended' in said and RELEASE in said
        assert "option lease" in said and "lease ended" in said
    assert total(spark, url, "other") == -11 * ROWS
    assert release(spark)
    assert total(spark, url, "other", snapshot=NAME, lease=2) == -11 * ROWS


def test_a_lease_begins_anew_while_something_runs(
    spark: SparkSession, postgres: PostgresServer, url: str
) -> None:
    spark.udf.register("wait", lambda i: time.sleep(20) or i, "bigint")
    assert total(spark, url, "one", snapshot=NAME, lease=10) == 10 * ROWS
    query = threading.Thread(target=spark.sql("SELECT wait(id) FROM range(1)").collect)
    query.start()
    postgres.run(CHANGE)
    query.join()
    assert total(spark, url, "other", snapshot=NAME, lease=10) == -10 * ROWS


class Gate:
    """Passes connections on to a server, and keeps one waiting."""

    def __init__(self, port: int) -> None:
        self.keeps_next = False
        self.kept = threading.Event()
        self.opened = threading.Event()
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            keeps, self.keeps_next = self.keeps_next, False
            self._start(self._pass_on, client, keeps)

    def _pass_on(self, client: socket.socket, keeps: bool) -> None:
        if keeps:
            self.kept.set()
            self.opened.wait()
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
            back = self._start(self._copy, server, client)
            self._copy(client, server)
            back.join()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=30)


def test_a_lease_that_begins_anew_while_a_scan_is_planned(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    postgres.run(*TABLES)
    gate = Gate(postgres.port)
    url = postgres.uri().replace(str(postgres.port), str(gate.port))
    options = {"snapshot": NAME, "lease": 20, "pushDown": "false", "connectTimeout": 60}
    sums = [
        load(spark, url, dbtable=table, numPartitions=3, **options).selectExpr("sum(amount)")
        for table in ("one", "other")
    ]
    begun = time.monotonic()
    assert sums[0].collect()[0][0] == 10 * ROWS
    postgres.run(CHANGE)
    # It asks the server about the statement.
    sums[1]._jdf.queryExecution().executedPlan()
    # The scan has the part of the first holder, and waits for its connection.
    gate.keeps_next = True
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(sums[1].collect()[0][0]))
    reader.start()
    assert gate.kept.wait(timeout=10) and time.monotonic() - begun < 10
    # Meanwhile another one takes the place of that.
    time.sleep(begun + 14 - time.monotonic())
    assert snapshots(postgres) == 1
    gate.opened.set()
    reader.join(timeout=60)
    assert found == [-10 * ROWS]
    release(spark)
    wait_for(lambda: snapshots(postgres) == 0)
    gate.close()


def test_a_holder_that_is_lost(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    assert total(spark, url, "one", snapshot=NAME) == 10 * ROWS
    wait_for(lambda: snapshots(postgres) == 1)
    postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    )
    said = failure(lambda: total(spark, url, "other", snapshot=NAME))
    assert "snapshot is gone" in said and RELEASE in said


def test_a_table_that_was_emptied(spark: SparkSession, postgres: PostgresServer, url: str) -> None:
    assert total(spark, url, "one", snapshot=NAME) == 10 * ROWS
    postgres.run("TRUNCATE other")
    said = failure(lambda: total(spark, url, "other", snapshot=NAME))
    assert "other was made, emptied, rewritten or altered after" in said


def test_files(spark: SparkSession, server: Relay) -> None:
    rows = [
        load(spark, server.uri(), dbtable="large_rows", snapshot=NAME).count() for _ in range(2)
    ]
    assert rows[0] == rows[1] > 0


def test_mysql(spark: SparkSession, server: Relay, maria: MariaServer) -> None:
    direct = load(spark, maria.uri(), dbtable=f"{DATABASE}.orders", snapshot=NAME)
    assert "this database has no snapshot that several" in failure(direct.collect)
    relayed = load(spark, server.uri("maria"), dbtable=f"{DATABASE}.orders", snapshot=NAME)
    assert "can't begin a transaction under the snapshot of another" in failure(relayed.collect)


def test_wrong_options(spark: SparkSession, postgres: PostgresServer) -> None:
    postgres.run(*TABLES)
    url = postgres.uri()
    assert "option snapshot is empty" in failure(lambda: total(spark, url, "one", snapshot=" "))
    writer = spark.range(1).write.format("dray").mode("append")
    writer = writer.option("url", url).option("dbtable", "one").option("snapshot", NAME)
    assert "option snapshot is for reading" in failure(writer.save)
    wrong = total(spark, url, "one") + total(spark, url, "other")
    assert wrong == 0 and not release(spark, "never used")


@pytest.mark.usefixtures("spark")
def test_an_application_that_ends(postgres: PostgresServer, url: str) -> None:
    command = [sys.executable, "-c", APPLICATION, str(JAR), url]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert f"rows: {ROWS}" in ran.stdout, ran.stdout
    wait_for(lambda: snapshots(postgres) == 0)
