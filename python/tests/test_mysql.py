"""MySQL and MariaDB as a source, with real servers of both."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_server import DATABASE, PASSWORD, USER, MariaServer, sequence
from postgres_server import PostgresServer
from proxy import Proxy
from relay_server import wait_until
from server import binary

import dray

BIG = 200_000
NUMBERS = "SELECT id, text, amount FROM numbers ORDER BY id"
DDL = (
    "CREATE TABLE numbers (id int PRIMARY KEY, text varchar(20), amount decimal(12,2))",
    f"INSERT INTO numbers SELECT seq, concat('row ', seq), seq / 100 FROM ({sequence(BIG)}) s",
    "CREATE TABLE pets (id int AUTO_INCREMENT PRIMARY KEY, name varchar(20) NOT NULL)",
    "INSERT INTO pets (name) VALUES ('cat'), ('dog')",
    "CREATE TABLE toys (id int PRIMARY KEY, pet int, CONSTRAINT of_pet FOREIGN KEY (pet) "
    "REFERENCES pets (id))",
    "CREATE VIEW names AS SELECT name FROM pets",
    "CREATE PROCEDURE two_results() BEGIN SELECT 1 AS a; SELECT 2 AS b; END",
    "CREATE PROCEDURE one_result(n int) BEGIN SELECT n + 1 AS a; END",
)
#: A result that takes hours. Servers look whether it was killed for each row.
FOREVER = "SELECT a.id FROM numbers a JOIN numbers b"
SLEEP = "SELECT sleep(50)"


@pytest.fixture(scope="module")
def shop(mysql: MariaServer) -> MariaServer:
    if not mysql.rows("SHOW TABLES LIKE 'numbers'"):
        mysql.run(*DDL)
    return mysql


@pytest.fixture
def connection(shop: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(shop.uri()) as connection:
        yield connection


def check_usable(connection: dray.Connection) -> None:
    assert list(connection.query("SELECT 1 + 1")) == [(2,)]


def test_all_ways_to_read(connection: dray.Connection) -> None:
    table = connection.query(NUMBERS).arrow()
    table.validate(full=True)
    assert table.schema.types == [pa.int32(), pa.string(), pa.decimal128(12, 2)]
    assert table.column("id").to_pylist() == list(range(BIG))
    assert table.column("amount")[101].as_py() == Decimal("1.01")
    batches = list(connection.query(NUMBERS, batch_rows=10_000).batches())
    assert len(batches) > 1 and pa.Table.from_batches(batches).equals(table.combine_chunks())
    assert connection.query(NUMBERS).pandas().shape == (BIG, 3)
    polars = connection.query(NUMBERS, strings="view").polars()
    assert polars["text"].to_list() == table.column("text").to_pylist()
    result = connection.query(NUMBERS)
    result.arrow()
    stats = result.stats
    assert stats.path == "rows" and stats.rows == BIG and stats.wire_bytes > 0
    assert [column.name for column in stats.columns] == ["id", "text", "amount"]


def test_the_server(shop: MariaServer, connection: dray.Connection) -> None:
    (version,) = shop.rows("SELECT version()")[0]
    product = "MariaDB" if shop.is_mariadb else "MySQL"
    assert connection.server == f"{product} {version}"
    assert "mysql://" in repr(connection) and PASSWORD not in repr(connection)
    with dray.connect(shop.uri(scheme="mariadb")) as other:
        check_usable(other)
    with dray.connect(shop.unix()) as other:
        assert list(other.query("SELECT database()")) == [(DATABASE,)]


def test_parameters(connection: dray.Connection) -> None:
    sql = "SELECT ?, ?, ?, ?, '?' AS question"
    values: list[Any] = [1, "it's ü", None, Decimal("1.50")]
    row = list(connection.query(sql, values))[0]
    assert row == (1, "it's ü", None, Decimal("1.50"), "?")
    sql = "SELECT id FROM numbers WHERE id = ? OR text = ? ORDER BY id"
    assert list(connection.query(sql, [5, "row 7"])) == [(5,), (7,)]
    # The same statement, prepared, with other types.
    assert list(connection.query(sql, ["5", b"row 7"])) == [(5,), (7,)]
    for given in ([], [1], [1, 2, 3]):
        with pytest.raises(dray.Error, match="2 parameters"):
            connection.query(sql, given).arrow()
    with pytest.raises(dray.Error, match="parameter 1: .*NaN"):
        connection.query("SELECT ?", [float("nan")])
    check_usable(connection)


@pytest.mark.parametrize(
    ("sql", "kind", "sqlstate", "what"),
    [
        ("SELEC 1", dray.QueryError, "42000", "SELEC"),
        ("SELECT * FROM nowhere", dray.QueryError, "42S02", "nowhere"),
        ("SELECT nothing FROM pets", dray.QueryError, "42S22", "nothing"),
        ("INSERT INTO pets VALUES (1, 'x')", dray.ExecutionError, "23000", "Duplicate"),
        ("SELECT 1; SELECT 2", dray.QueryError, "42000", "syntax"),
        (
            "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE pets",
            dray.Error,
            None,
            "(?i)local|not allowed",
        ),
    ],
)
def test_statements_that_fail(
    connection: dray.Connection, sql: str, kind: Any, sqlstate: str | None, what: str
) -> None:
    with pytest.raises(kind, match=what) as caught:
        connection.query(sql).arrow()
    assert sqlstate in (None, caught.value.sqlstate)
    check_usable(connection)


def test_errors_in_mid_result(connection: dray.Connection) -> None:
    sql = f"SELECT id, (SELECT 1 FROM pets WHERE numbers.id = {BIG - 5}) FROM numbers ORDER BY id"
    batches = connection.query(sql, batch_rows=1000).batches()
    assert next(batches).num_rows
    with pytest.raises(dray.ExecutionError, match="more than 1 row"):
        for _ in batches:
            pass
    check_usable(connection)


def test_changes_and_transactions(shop: MariaServer, connection: dray.Connection) -> None:
    assert list(connection.query("CREATE TEMPORARY TABLE t (i int)")) == []
    list(connection.query("INSERT INTO t VALUES (1), (2)"))
    list(connection.query("BEGIN"))
    list(connection.query("DELETE FROM t WHERE i = ?", [1]))
    assert list(connection.query("SELECT i FROM t")) == [(2,)]
    list(connection.query("ROLLBACK"))
    assert list(connection.query("SELECT i FROM t ORDER BY i")) == [(1,), (2,)]


def test_procedures(connection: dray.Connection) -> None:
    assert list(connection.query("CALL one_result(?)", [4])) == [(5,)]
    with pytest.raises(dray.Error, match="more than once"):
        connection.query("CALL two_results()").arrow()
    check_usable(connection)


def test_statements_about_the_server(connection: dray.Connection) -> None:
    rows = list(connection.query("SHOW DATABASES"))
    assert (DATABASE,) in rows
    assert list(connection.query("SHOW TABLES LIKE 'pets'")) == [("pets",)]
    assert list(connection.query("EXPLAIN SELECT 1"))
    # The server does not prepare a PREPARE.
    list(connection.query("PREPARE p FROM 'SELECT 1.5 AS d, NULL AS n'"))
    assert list(connection.query("EXECUTE p")) == [(Decimal("1.5"), None)]


def test_statements_mean_what_the_session_says(
    shop: MariaServer, connection: dray.Connection
) -> None:
    """A server reads a prepared statement in the database and by the rules of its preparation."""

    def value(sql: str) -> Any:
        return next(iter(connection.query(sql)))[0]

    shop.run("CREATE DATABASE IF NOT EXISTS shop2", "CREATE TABLE shop2.places (name char(9))")
    shop.run("CREATE TABLE places (name char(9))")
    for name in (DATABASE, "shop2", DATABASE, "shop2"):
        list(connection.query(f"USE {name}"))
        assert value("SELECT database()") == name
        list(connection.query("INSERT INTO places VALUES (database())"))
    assert shop.rows("SELECT DISTINCT name FROM shop2.places") == [("shop2",)]
    assert shop.rows("SELECT DISTINCT name FROM places") == [(DATABASE,)]
    list(connection.query(f"USE {DATABASE}"))
    sql = "SELECT CAST('1' || '0' AS char)"
    assert value(sql) == "1"
    list(connection.query("SET sql_mode = 'PIPES_AS_CONCAT'"))
    assert value(sql) == "10"
    for collation in ("utf8mb4_bin", "utf8mb4_general_ci"):
        list(connection.query(f"SET NAMES utf8mb4 COLLATE {collation}"))
        assert value("SELECT collation('a')") == collation
    list(connection.query("SET @v = 1"))
    assert value("SELECT @v") == 1
    list(connection.query("SELECT @v := 'text'"))
    assert value("SELECT @v") == "text"
    shop.run("DROP DATABASE shop2", "DROP TABLE places")


def test_a_transaction_keeps_what_is_prepared(connection: dray.Connection) -> None:
    def prepared() -> int:
        rows = connection.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'")
        return int(next(iter(rows))[1])

    for _ in range(2):
        for sql in ("BEGIN", "SELECT name FROM pets WHERE id = 1", "COMMIT"):
            list(connection.query(sql))
    list(connection.query("BEGIN"))
    before = prepared()
    list(connection.query("SELECT name FROM pets WHERE id = 1"))
    # The question itself.
    assert prepared() - before <= 1


def test_what_the_statement_before_has_left(shop: MariaServer) -> None:
    """Dray asks nothing in between."""
    with dray.connect(shop.uri()) as connection:

        def rows(sql: str) -> list[Any]:
            return list(connection.query(sql))

        def fail() -> None:
            with pytest.raises(dray.ExecutionError, match="Duplicate"):
                rows("INSERT INTO left_over VALUES (1)")

        rows("CREATE TEMPORARY TABLE left_over (a int PRIMARY KEY)")
        rows("INSERT INTO left_over VALUES (1), (2), (3)")
        assert rows("SELECT row_count()") == [(3,)]
        rows("SELECT SQL_CALC_FOUND_ROWS a FROM left_over ORDER BY a LIMIT 1")
        assert rows("SELECT found_rows()") == [(3,)]
        fail()
        assert [row[1] for row in rows("SHOW ERRORS")] == [1062]
        fail()
        assert [row[1] for row in rows("SHOW WARNINGS")] == [1062]
        fail()
        assert rows("SELECT row_count()") == [(-1,)]
        fail()
        rows("GET DIAGNOSTICS CONDITION 1 @number = MYSQL_ERRNO")
        assert rows("SELECT CAST(@number AS signed)") == [(1062,)]

        def read_by_several() -> bool:
            result = connection.query("SELECT id FROM numbers", partitions=3)
            assert result.arrow().num_rows == BIG and result.stats is not None
            return "3 connections" in result.stats.path_reason

        # Where it needs FLUSH TABLES, not behind what other tests have left.
        wait_until(read_by_several)
        for sql in ("SELECT found_rows()", "SHOW WARNINGS", "SELECT @@warning_count"):
            with pytest.raises(dray.UsageError, match="read over several connections.*partitions"):
                rows(sql)
        assert rows("SELECT 1 + 1") == [(2,)]
        assert rows("SELECT found_rows()") == [(1,)]


def test_a_table_that_changes_between_runs(shop: MariaServer, connection: dray.Connection) -> None:
    shop.run("CREATE TABLE changing (a int)", "INSERT INTO changing VALUES (1)")
    sql = "SELECT * FROM changing"
    assert list(connection.query(sql)) == [(1,)]
    shop.run("ALTER TABLE changing ADD b varchar(5) DEFAULT 'x' FIRST, MODIFY a bigint unsigned")
    table = connection.query(sql).arrow()
    assert table.schema.types == [pa.string(), pa.uint64()] and table.to_pylist() == [
        {"b": "x", "a": 1}
    ]


def test_a_result_that_is_given_up(connection: dray.Connection) -> None:
    for _ in range(3):
        with connection.query(FOREVER, batch_rows=1000) as result:
            next(result.rows())
        check_usable(connection)


def test_cancelling(connection: dray.Connection) -> None:
    result = connection.query(FOREVER, batch_rows=1000)
    rows = result.rows()
    next(rows)
    timer = threading.Timer(0.3, result.cancel)
    timer.start()
    began = time.monotonic()
    with pytest.raises(dray.Cancelled):
        for _ in rows:
            pass
    timer.join()
    assert time.monotonic() - began < 20
    check_usable(connection)


def test_cancelling_at_the_end(connection: dray.Connection) -> None:
    """A request that comes when its statement has ended does not end the next one."""
    for milliseconds in range(80, 140, 2):
        result = connection.query("SELECT sleep(0.1)")
        timer = threading.Timer(milliseconds / 1000, result.cancel)
        timer.start()
        with contextlib.suppress(dray.Cancelled):
            result.arrow()
        check_usable(connection)
        timer.join()
        check_usable(connection)


@pytest.mark.parametrize("sql", [SLEEP, FOREVER, "SELECT max(a.id) " + FOREVER[12:]])
def test_interrupting(shop: MariaServer, sql: str) -> None:
    """Ctrl-C ends the statement at the server, and the connection can be used again."""
    code = """
import sys, dray, pyarrow
connection = dray.connect(sys.argv[1])
print("going", flush=True)
try:
    connection.query(sys.argv[2]).arrow()
except KeyboardInterrupt:
    print("interrupted", connection.query("SELECT 1").arrow().num_rows)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, shop.uri(), sql], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "going\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted 1\n"
    finally:
        process.kill()
        process.communicate()
    running = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE %s"
    assert shop.rows(running.replace("%s", f"'{sql[:20]}%'")) == [("0",)]


def test_logins_that_fail(shop: MariaServer) -> None:
    with pytest.raises(dray.AuthenticationError, match="Access denied") as caught:
        dray.connect(f"mysql://{USER}:wrong@127.0.0.1:{shop.port}/")
    assert caught.value.sqlstate == "28000" and "wrong" not in str(caught.value)
    with pytest.raises(dray.Error, match="nowhere"):
        dray.connect(shop.uri(database="nowhere"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(dray.ConnectionError, match=str(port)):
            dray.connect(f"mysql://me@127.0.0.1:{port}/")
    with pytest.raises(dray.UsageError, match="speed"):
        dray.connect(shop.uri("?speed=fast"))
    with pytest.raises(dray.UsageError, match="ssl-ca"):
        dray.connect(shop.uri(), token="0123456789abcdef")


def test_options_of_postgresql(connection: dray.Connection) -> None:
    for options in ({"extension": True}, {"numeric": "float64"}):
        with pytest.raises(dray.UsageError, match="for PostgreSQL"):
            connection.query("SELECT 1", **options)
    with pytest.raises(dray.UsageError, match="compress=zlib or zstd"):
        connection.query("SELECT 1", compression="zstd")
    assert list(connection.query("SELECT 1", extension=False, partitions=1)) == [(1,)]
    check_usable(connection)


@pytest.mark.parametrize("after", [0, 1, 5, 300, 100_000])
def test_a_connection_that_breaks(
    shop: MariaServer, after: int, request: pytest.FixtureRequest
) -> None:
    """A result that was cut is an error, never a shorter result."""

    class Cut(Proxy):
        limit = 1 << 60

        def down(self, server: socket.socket, client: socket.socket) -> None:
            while data := server.recv(65_536):
                if len(data) >= self.limit:
                    client.sendall(data[: self.limit])
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
                if self.limit < 1 << 59:
                    self.limit -= len(data)

    proxy = Cut(("127.0.0.1", shop.port))
    request.addfinalizer(proxy.close)
    uri = shop.uri("?ssl-mode=disabled").replace(str(shop.port), str(proxy.port))
    with dray.connect(uri) as connection:
        check_usable(connection)
        proxy.limit = after
        with pytest.raises(dray.ConnectionError):
            connection.query(NUMBERS).arrow()
        with pytest.raises(dray.Error, match="connect again"):
            connection.query("SELECT 1")


def test_a_server_that_is_killed() -> None:
    server = MariaServer()
    try:
        server.run(*DDL[:2])
        with dray.connect(server.uri()) as connection:
            rows = connection.query(FOREVER, batch_rows=1000).batches()
            next(rows)
            server.kill()
            with pytest.raises(dray.ConnectionError):
                for _ in rows:
                    pass
        server.start()
        with dray.connect(server.uri()) as connection:
            check_usable(connection)
    finally:
        server.stop()


def test_a_silent_server(shop: MariaServer) -> None:
    with dray.connect(shop.uri(), read_timeout=2) as connection:
        with pytest.raises(dray.ConnectionError, match="read_timeout"):
            connection.query(SLEEP).arrow()


def test_rows_above_the_limit(connection: dray.Connection) -> None:
    sql = "SELECT repeat('x', ?)"
    # Two packets of the protocol.
    assert len(list(connection.query(sql, [20_000_000]))[0][0]) == 20_000_000
    with pytest.raises(dray.Error, match="row_bytes_max"):
        connection.query(sql, [3_000_000], row_bytes_max=2_000_000).arrow()
    check_usable(connection)


def test_the_program(shop: MariaServer, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        ran = subprocess.run(
            [str(binary()), *arguments], capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    target = tmp_path / "numbers.parquet"
    run("export", shop.uri(), NUMBERS, "-o", str(target))
    assert pq.read_table(target).num_rows == BIG
    shown = run("query", shop.uri(), "SELECT name FROM pets WHERE id = ?", "-p", "2")
    assert "dog" in shown
    listed = run("tables", shop.uri(), "--format", "json").splitlines()
    tables = [json.loads(line) for line in listed]
    assert f"{DATABASE}.pets" in {table["table"] for table in tables}
    explained = run("explain", shop.uri(), NUMBERS)
    assert "rows in the database's own protocol" in explained and PASSWORD not in explained
    assert "extension" not in explained


def test_advice(shop: MariaServer) -> None:
    def advice(sql: str) -> str:
        command = [str(binary()), "explain", shop.uri(), sql, "--format", "json"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        found: str = json.loads(ran.stdout)["advice"]
        return found

    # The server sends a row at a time, which a client can't tell from a slow network.
    slow = advice("SELECT repeat('x', 20000) AS x, sleep(0.002) FROM numbers WHERE id < 100")
    assert "compress=zlib in the uri" in slow and "dray serve --source" in slow
    # It sends small rows at the end.
    assert "running the query takes" in advice(
        "SELECT id, sleep(0.002) FROM numbers WHERE id < 100"
    )


def test_adbc(shop: MariaServer) -> None:
    from adbc_client import connect

    with connect(shop.uri()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM pets WHERE id < ?", (3,))
        assert cursor.fetch_arrow_table().to_pydict() == {"id": [1, 2], "name": ["cat", "dog"]}
        assert connection.adbc_get_info()["vendor_name"] == (
            "MariaDB" if shop.is_mariadb else "MySQL"
        )
        assert connection.adbc_current_catalog == DATABASE
        found = connection.adbc_get_objects(catalog_filter=DATABASE).read_all().to_pylist()
        (catalog,) = found
        (schema,) = catalog["catalog_db_schemas"]
        tables = {table["table_name"]: table for table in schema["db_schema_tables"]}
        assert tables["names"]["table_type"] == "view"
        columns = [column["column_name"] for column in tables["pets"]["table_columns"]]
        assert columns == ["id", "name"]
        kinds = {
            constraint["constraint_type"]: constraint
            for constraint in tables["toys"]["table_constraints"]
        }
        assert kinds["PRIMARY KEY"]["constraint_column_names"] == ["id"]
        (usage,) = kinds["FOREIGN KEY"]["constraint_column_usage"]
        assert (usage["fk_table"], usage["fk_column_name"]) == ("pets", "id")
        schema = connection.adbc_get_table_schema("pets")
        assert schema.types == [pa.int32(), pa.string()]
        with pytest.raises(Exception, match="NOT_FOUND"):
            connection.adbc_get_table_schema("pets", db_schema_filter="other")
        with pytest.raises(Exception, match="NOT_FOUND"):
            cursor.execute("SELECT * FROM nowhere")


def test_adbc_transactions(shop: MariaServer) -> None:
    from adbc_client import connect, rows

    shop.run(
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id int PRIMARY KEY, n int)",
        "INSERT INTO accounts VALUES (1, 0), (2, 0)",
    )

    def change(connection: Any, account: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE accounts SET n = n + 1 WHERE id = ?", (account,))

    # As a uri with a login that the options replace.
    login = {"username": USER, "password": PASSWORD}
    uri = f"mysql://nobody:wrong@127.0.0.1:{shop.port}/{DATABASE}"
    with (
        connect(uri, login, autocommit=False) as one,
        connect(shop.uri(), autocommit=False) as other,
    ):
        change(one, 1)
        one.rollback()
        assert shop.rows("SELECT n FROM accounts WHERE id = 1") == [("0",)]
        change(one, 1)
        change(other, 2)
        # Each waits for the other, and the server ends one of the transactions.
        failures: list[bool] = []

        def fails(connection: Any, account: int) -> bool:
            try:
                change(connection, account)
            except Exception as error:
                assert "Deadlock" in str(error)
                return True
            return False

        waiting = threading.Thread(target=lambda: failures.append(fails(one, 2)))
        waiting.start()
        time.sleep(0.3)
        lost = fails(other, 1)
        waiting.join()
        assert [lost, *failures].count(True) == 1
        loser, winner = (other, one) if lost else (one, other)
        # Its statements would now be transactions of their own.
        with pytest.raises(Exception, match="transaction is over"):
            change(loser, 1)
        with pytest.raises(Exception, match="no transaction to commit"):
            loser.commit()
        winner.commit()
        assert shop.rows("SELECT n FROM accounts ORDER BY id") == [("1",), ("1",)]
        change(loser, 1)
        # A statement that commits by itself, and one that does so and then fails.
        with loser.cursor() as cursor:
            cursor.execute("CREATE TABLE made (i int)")
            change(loser, 2)
            with pytest.raises(Exception, match="already exists"):
                cursor.execute("CREATE TABLE made (i int)")
        with pytest.raises(Exception, match="transaction is over"):
            change(loser, 2)
        loser.rollback()
        assert shop.rows("SELECT n FROM accounts ORDER BY id") == [("2",), ("2",)]
        assert rows(winner, "SELECT n FROM accounts WHERE id = 1") == [(2,)]
        # Nobody asks about the transaction before the errors are shown.
        with loser.cursor() as cursor, pytest.raises(Exception, match="Duplicate"):
            cursor.execute("INSERT INTO accounts VALUES (1, 0)")
        # It must be asked before these.
        for sql in ("SELECT @@error_count", "UPDATE accounts SET n = row_count()"):
            with pytest.raises(Exception, match="whether the transaction is still open"):
                rows(loser, sql)
        assert [row[1] for row in rows(loser, "SHOW ERRORS")] == [1062]
        change(loser, 1)
        loser.rollback()


def test_copying_into_postgresql(shop: MariaServer, postgres: PostgresServer) -> None:
    sql = "SELECT id, text, amount FROM numbers WHERE id < 1000"
    target = [postgres.uri(), "--table", "from_mysql", "--mode", "replace"]
    command = [str(binary()), "copy", shop.uri(), sql, *target]
    copied = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert copied.returncode == 0, copied.stderr
    with postgres.connect() as oracle:
        found = oracle.execute("SELECT id, text, amount FROM from_mysql ORDER BY id").fetchall()
    with dray.connect(shop.uri()) as connection:
        assert found == list(connection.query(sql + " ORDER BY id"))


def test_scan_is_refused(shop: MariaServer) -> None:
    with pytest.raises(dray.UsageError, match="scan does not read from MySQL"):
        dray.scan(shop.uri(), "pets")


def test_objects(connection: dray.Connection) -> None:
    pets = [(pet.id, pet.name) for pet in connection.objects("SELECT * FROM pets ORDER BY id")]
    assert pets == [(1, "cat"), (2, "dog")]


def test_nested_objects(shop: MariaServer, connection: dray.Connection) -> None:
    shop.run("INSERT IGNORE INTO toys VALUES (1, 1), (2, 1), (3, 2)")
    nested = dray.nest(
        connection,
        """
        sql = "SELECT id, name FROM pets"
        order = ["id"]
        [many.toys]
        sql = "SELECT id AS toy, pet FROM toys"
        on = { pet = "id" }
        order = ["toy"]
        """,
    )
    assert pa.table(nested).to_pylist() == [
        {"id": 1, "name": "cat", "toys": [{"toy": 1}, {"toy": 2}]},
        {"id": 2, "name": "dog", "toys": [{"toy": 3}]},
    ]
    check_usable(connection)


def test_the_order_of_the_primary_key(shop: MariaServer, connection: dray.Connection) -> None:
    """Over one connection, too, where a server reads by a shorter index that has all columns."""
    if not shop.rows("SHOW TABLES LIKE 'ordered_rows'"):
        for name, engine in [("ordered_rows", "InnoDB"), ("ordered_isam", "MyISAM")]:
            shop.run(
                f"CREATE TABLE {name} (a int, `b ``b` int, x int, pad char(200), "
                f"PRIMARY KEY (a, `b ``b`), KEY (x)) ENGINE={engine}",
                f"INSERT INTO {name} SELECT 40 - seq MOD 40, seq, seq * 7 MOD 1000, 'pad' "
                f"FROM ({sequence(1000)}) s",
            )
    every = sorted((40 - i % 40, i) for i in range(1000))
    some = [(a, b) for a, b in every if 30 <= b * 7 % 1000 <= 90 or b == 715]
    for table in ("ordered_rows", "ordered_isam"):
        for columns, condition, expected in [
            ("*", "", every),
            ("a, `b ``b`", "", every),
            ("a, `b ``b`", "WHERE x BETWEEN 30 AND 90 OR x = 5", some),
            ("a AS y, `b ``b`, x AS a", "WHERE pad = 'pad' -- all", every),
        ]:
            sql = f"SELECT {columns} FROM {table} AS t {condition}"
            rows = list(connection.query(sql, ordered=True))
            assert [row[:2] for row in rows] == expected, sql
    # What is not divided comes in order, too.
    shop.run(
        "DROP FUNCTION IF EXISTS ordered_same",
        "CREATE FUNCTION ordered_same(i int) RETURNS int DETERMINISTIC NO SQL RETURN i",
    )
    connection.query("SET @least = 30")
    for condition, params in [
        ("x BETWEEN ? AND 90 OR x = ?", [30, 5]),
        ("x BETWEEN ordered_same(30) AND shop.ordered_same(90) OR x = 5", None),
        ('x BETWEEN @least AND 90 OR x = 5 OR pad = "it\'s none"', None),
    ]:
        sql = f"SELECT a, `b ``b` FROM ordered_rows WHERE {condition}"
        assert list(connection.query(sql, params, ordered=True)) == some, sql
    connection.query(
        "CREATE TEMPORARY TABLE ordered_temporary "
        "(a int, b int, x int, PRIMARY KEY (b, a), KEY (x))"
    )
    connection.query(
        "INSERT INTO ordered_temporary SELECT a, `b ``b` DIV 9, `b ``b` * 7 MOD 1000 "
        "FROM ordered_rows"
    )
    rows = list(connection.query("SELECT b, a FROM ordered_temporary WHERE x > 1", ordered=True))
    assert len(rows) > 900 and rows == sorted(rows)
    shop.run("CREATE TABLE IF NOT EXISTS ordered_hidden (a int PRIMARY KEY)")
    connection.query("CREATE TEMPORARY TABLE ordered_hidden (b int)")
    connection.query("INSERT INTO ordered_hidden VALUES (2), (1)")
    for sql, expected, why in [
        ("SELECT * FROM ordered_hidden", [(2,), (1,)], "it reads no table with a primary key"),
        ("SELECT a FROM ordered_rows GROUP BY a HAVING a = 3", [(3,)], "it has the word GROUP"),
        ("SELECT a FROM ordered_rows ORDER BY a DESC LIMIT 1", [(40,)], "it has the word ORDER"),
        ("SELECT count(*), max(a) FROM ordered_rows", [(1000, 40)], "it is more than"),
        ("SELECT 1 + 1", [(2,)], "it does not read one table"),
        ("SELECT found_rows() AS n FROM ordered_hidden WHERE b = 2", [(1,)], "it reads what"),
    ]:
        result = connection.query(sql, ordered=True)
        assert list(result) == expected
        assert result.stats is not None
        assert f"; ordered has no effect: {why}" in result.stats.path_reason
    result = connection.query("SELECT a FROM ordered_rows", ordered=True)
    result.arrow()
    assert result.stats is not None and "ordered" not in result.stats.path_reason
    with pytest.raises(dray.QueryError, match="nothing"):
        connection.query("SELECT nothing FROM ordered_rows", ordered=True).arrow()
