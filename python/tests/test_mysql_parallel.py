"""Reading a table of MariaDB over several connections: one snapshot, every row once, and only
statements that may be divided.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from mysql_server import FILTERING, PASSWORD, MariaServer
from proxy import Proxy
from server import binary

import dray

ROWS = 60_000
#: Keys of each kind, with tables whose keys lie in heaps or far apart.
KEYS = {
    "integers": ("int", "CAST(seq AS signed) * 3 - 5000"),
    "unsigned": ("bigint unsigned", "IF(seq > 50000, 18446744073709551615 - seq, seq)"),
    "decimals": ("decimal(30, 4)", "(CAST(seq AS signed) - 1000) / 7"),
    "dates": ("date", "'1980-01-01' + INTERVAL seq DAY"),
    "datetimes": ("datetime(3)", "'1969-12-01' + INTERVAL seq * 61 SECOND"),
    "timestamps": ("timestamp", "'1970-02-01' + INTERVAL seq * 61 SECOND"),
    "hashes": ("char(32)", "MD5(seq)"),
    "names": ("varchar(40)", "CONCAT('ürsula-', seq)"),
    "latin": ("varchar(40) CHARACTER SET latin1", "CONCAT(IF(seq % 2, 'é', 'A'), seq)"),
    "cases": ("varchar(40)", "CONCAT(ELT(1 + seq % 6, 'b', 'B', 'a', 'Z', '_', 'ä'), MD5(seq))"),
    "bins": (
        "varchar(40) COLLATE utf8mb4_bin",
        "CONCAT(ELT(1 + seq % 6, 'b', 'B', 'a', 'Z', '_', 'ä'), MD5(seq))",
    ),
    "swedish": (
        "varchar(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        "CONCAT(ELT(1 + seq % 6, 'b', 'B', 'å', 'Z', '_', 'ä'), MD5(seq))",
    ),
    "bytes": ("binary(16)", "UNHEX(MD5(seq))"),
    "heaps": ("bigint", "IF(seq % 3 = 0, seq, 4000000000000000000 + seq)"),
    "composite": ("int", "seq DIV 100"),
}


@pytest.fixture(scope="module")
def shop(mariadb: MariaServer) -> MariaServer:
    for name, (data_type, value) in KEYS.items():
        more = ", seq" if name == "composite" else ""
        mariadb.run(
            f"CREATE TABLE par_{name} (k {data_type} NOT NULL, seq int, text varchar(40), "
            f"PRIMARY KEY (k{more}))",
            f"INSERT INTO par_{name} SELECT {value}, seq, CONCAT('row ', seq) FROM seq_1_to_{ROWS}",
        )
    mariadb.run(
        "CREATE VIEW par_view AS SELECT * FROM par_integers",
        "CREATE TABLE par_isam (k int PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE par_heap (k int)",
        "CREATE TABLE par_uuid (k uuid PRIMARY KEY)",
        "INSERT INTO par_uuid VALUES (UUID())",
        "CREATE TABLE par_empty (k int PRIMARY KEY)",
        "CREATE FUNCTION tame(n int) RETURNS int DETERMINISTIC RETURN n + 1",
        "ALTER TABLE par_integers ADD INDEX of_text (text)",
        "CREATE USER alone IDENTIFIED BY 'x'",
        "GRANT SELECT ON shop.* TO alone",
    )
    return mariadb


@pytest.fixture
def connection(shop: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(shop.uri()) as connection:
        yield connection


def read(
    connection: dray.Connection, sql: str, partitions: int = 3, ordered: bool = False
) -> tuple[pa.Table, str]:
    result = connection.query(sql, partitions=partitions, ordered=ordered)
    table = result.arrow()
    return table, result.stats.path_reason


@pytest.mark.parametrize("name", KEYS)
def test_every_row_once(connection: dray.Connection, name: str) -> None:
    sql = f"SELECT * FROM par_{name}"
    table, reason = read(connection, sql)
    assert reason == "3 connections, one snapshot"
    whole, _ = read(connection, sql, partitions=1)
    assert table.schema == whole.schema and table.num_rows == ROWS
    assert table.sort_by("seq").equals(whole.sort_by("seq"))
    ordered, reason = read(connection, sql, ordered=True)
    assert reason == "3 connections, one snapshot"
    assert ordered.equals(whole)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT seq FROM shop.par_integers AS i WHERE i.seq > 100 OR i.seq < 5", ROWS - 96),
        (
            "SELECT UPPER(text) AS `UPPER`, -k x FROM `par_integers` WHERE text LIKE '%' -- all",
            ROWS,
        ),
        ("SELECT k, IF(seq > 5, 'a', NULL) c FROM par_integers WHERE k BETWEEN -1e9 AND 1e9", ROWS),
        ("SELECT k FROM par_integers WHERE k > 0", ROWS - 1666),
        ("select count.k from par_composite count where (seq, k) in ((1, 0), (250, 2))", 2),
        ("SELECT * FROM par_integers WHERE text = 'it\\'s; FROM'", 0),
    ],
)
def test_statements_that_are_divided(connection: dray.Connection, sql: str, rows: int) -> None:
    table, reason = read(connection, sql)
    whole, _ = read(connection, sql, partitions=1)
    assert table.num_rows == rows == whole.num_rows
    order = [(name, "ascending") for name in table.column_names]
    assert table.sort_by(order).equals(whole.sort_by(order))
    if "it\\'s" in sql:
        assert "an index is quicker" in reason
    else:
        assert reason == "3 connections, one snapshot"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT k FROM par_integers ORDER BY k", "ORDER"),
        ("SELECT k FROM par_integers LIMIT 10", "LIMIT"),
        ("SELECT count(*) FROM par_integers", "calls count"),
        ("SELECT tame(k) FROM par_integers", "calls tame"),
        ("SELECT k, rand() FROM par_integers", "calls rand"),
        ("SELECT k FROM par_integers WHERE text = 'row 5'", "index is quicker"),
        ("SELECT a.k FROM par_integers a, par_dates b LIMIT 1", "LIMIT"),
        ("SELECT k FROM par_view", "not a plain table"),
        ("SELECT k FROM par_isam", "MyISAM"),
        ("SELECT k FROM par_heap", "no primary key"),
        ("SELECT k FROM par_uuid", "uuid"),
        ("SELECT k FROM par_empty", "few values"),
        ("SELECT TABLE_NAME FROM information_schema.TABLES", "not a plain table"),
        ("SELECT @@version, k FROM par_integers", "variables"),
        ("SELECT /*+ SET_VAR(sql_select_limit=10) */ k FROM par_integers", "hints"),
        ("VALUES (1), (2)", "not a plain SELECT"),
    ],
)
def test_what_is_not_divided(connection: dray.Connection, sql: str, why: str) -> None:
    table, reason = read(connection, sql)
    assert reason.startswith("one connection: ") and why in reason, reason
    assert table.num_rows == read(connection, sql, partitions=1)[0].num_rows


def test_labels(shop: MariaServer, connection: dray.Connection) -> None:
    """Each worker has a dictionary of its own."""
    shop.run(
        "CREATE TABLE par_labels (k int PRIMARY KEY, colour enum('red', 'green', 'blue'))",
        f"INSERT INTO par_labels SELECT seq, 1 + seq DIV 20001 FROM seq_1_to_{ROWS}",
    )
    table, reason = read(connection, "SELECT * FROM par_labels", ordered=True)
    assert reason == "3 connections, one snapshot"
    assert table.equals(read(connection, "SELECT * FROM par_labels", partitions=1)[0])
    assert table["colour"].take([0, 30_000, ROWS - 1]).to_pylist() == ["red", "green", "blue"]


def test_statements_that_are_wrong(connection: dray.Connection) -> None:
    for sql, sqlstate in [
        ("SELECT nothing FROM par_integers", "42S22"),
        ("SELECT k FROM par_missing", "42S02"),
    ]:
        with pytest.raises(dray.QueryError) as raised:
            read(connection, sql)
        assert raised.value.sqlstate == sqlstate
    # Of one row, in one of the ranges.
    with pytest.raises(dray.ExecutionError, match="DOUBLE value is out of range"):
        read(connection, "SELECT POW(10, IF(seq = 50000, 400, 1)) FROM par_integers")
    assert list(connection.query("SELECT 1 + 1")) == [(2,)]


def test_sessions_that_differ(shop: MariaServer, connection: dray.Connection) -> None:
    """What only this session sees, or reads in another way, it reads alone."""
    sql = "SELECT k, seq FROM par_integers"
    connection.query("BEGIN")
    assert "a transaction" in read(connection, sql)[1]
    connection.query("ROLLBACK")
    assert "3 connections" in read(connection, sql)[1]
    for setting, why in [
        ("sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')", "other settings"),
        ("lc_time_names = 'de_DE'", "other settings"),
        ("default_regex_flags = 'DOTALL'", "other settings"),
        ("system_versioning_asof = '2020-01-01'", "other settings"),
        ("sql_auto_is_null = 1", "sql_auto_is_null"),
        ("sql_select_limit = 100000", "sql_select_limit"),
        ("autocommit = 0", "autocommit"),
    ]:
        with dray.connect(shop.uri()) as changed:
            changed.query(f"SET {setting}")
            assert why in read(changed, sql)[1]
    connection.query("CREATE TEMPORARY TABLE par_integers (k int PRIMARY KEY, seq int)")
    connection.query("INSERT INTO par_integers VALUES (1, 1), (2, 2)")
    table, reason = read(connection, sql)
    assert table.num_rows == 2 and "temporary" in reason


def test_one_snapshot(shop: MariaServer) -> None:
    check_one_snapshot(shop)


LOGGED = {"log_bin": "log", "server_id": 1, "binlog_format": "ROW"}


@pytest.mark.parametrize(
    "log_filter", [{}, {"binlog_ignore_db": "shop"}, {"binlog_do_db": "other"}]
)
def test_one_snapshot_of_what_is_logged(log_filter: dict[str, str]) -> None:
    """And of what a binary log leaves out."""
    server = MariaServer(**LOGGED, **log_filter)
    try:
        check_one_snapshot(server)
    finally:
        server.stop()


@pytest.mark.skipif("DRAY_ALL_VERSIONS" not in os.environ, reason="needs an old MariaDB")
def test_commits_that_pass_the_lock() -> None:
    """An old server has no lock for commits that its binary log leaves out."""
    for log_filter in ({"binlog_ignore_db": "shop"}, {"binlog_do_db": "other"}, {}):
        server = MariaServer(FILTERING, **LOGGED, **log_filter)
        try:
            if not log_filter:
                check_one_snapshot(server)
            server.run(
                "CREATE TABLE par_logged (k int PRIMARY KEY)",
                f"INSERT INTO par_logged SELECT seq FROM seq_1_to_{ROWS}",
                "CREATE USER few IDENTIFIED BY 'x'",
                "GRANT SELECT ON shop.* TO few",
                "GRANT RELOAD ON *.* TO few",
            )
            few = f"mysql://few:x@127.0.0.1:{server.port}/shop"
            allowed = "binlog_do_db or binlog_ignore_db" if log_filter else "3 connections"
            for uri, why in [(few, "GRANT REPLICATION CLIENT ON"), (server.uri(), allowed)]:
                with dray.connect(uri) as connection:
                    table, reason = read(connection, "SELECT * FROM par_logged")
                assert table.num_rows == ROWS and why in reason, reason
        finally:
            server.stop()


def check_one_snapshot(shop: MariaServer) -> None:
    """Sums stay as they are while others move amounts between rows far apart, and add rows."""
    shop.run(
        "CREATE TABLE par_accounts (id int PRIMARY KEY, amount bigint NOT NULL, pad char(200))",
        f"INSERT INTO par_accounts SELECT seq * 10, 100, 'x' FROM seq_1_to_{ROWS}",
    )
    stop = threading.Event()
    moved = []

    def move(worker: int) -> None:
        with contextlib.closing(shop.connect()) as writer:
            cursor = writer.cursor()
            moves = 0
            while not stop.is_set():
                one, other = (moves * 7 % ROWS + 1) * 10, (ROWS - moves * 11 % ROWS) * 10
                first, second = sorted([one, other])
                cursor.execute("BEGIN")
                for i, amount in ((first, -7), (second, 7)):
                    cursor.execute(
                        f"UPDATE par_accounts SET amount = amount + {amount} WHERE id = {i}"
                    )
                # Two rows that cancel out, at ends that other workers read.
                key = (moves * 2 + worker) * 10 + 1
                cursor.execute(
                    f"INSERT INTO par_accounts VALUES ({key}, 50, 'a'), "
                    f"({ROWS * 10 - key + 2}, -50, 'b') "
                    "ON DUPLICATE KEY UPDATE amount = amount"
                )
                cursor.execute("COMMIT")
                moves += 1
            moved.append(moves)

    writers = [threading.Thread(target=move, args=(worker,)) for worker in range(2)]
    for writer in writers:
        writer.start()
    try:
        counts = set()
        for _ in range(15):
            with dray.connect(shop.uri()) as connection:
                table, reason = read(
                    connection, "SELECT id, amount FROM par_accounts", partitions=4
                )
            assert reason == "4 connections, one snapshot"
            ids, amounts = table["id"].to_pylist(), table["amount"].to_pylist()
            assert len(set(ids)) == len(ids), "no row twice"
            assert {i * 10 for i in range(1, ROWS + 1)} <= set(ids), "no row lost"
            assert sum(amounts) == ROWS * 100, "one snapshot"
            counts.add(len(ids))
            time.sleep(0.05)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert min(moved) > 10 and len(counts) > 1, "others wrote meanwhile"


def test_a_table_that_others_want_to_change(shop: MariaServer) -> None:
    """A change of the table waits until it is read."""
    shop.run(
        "CREATE TABLE par_changing (k int PRIMARY KEY, pad varchar(250))",
        f"INSERT INTO par_changing SELECT seq, REPEAT('x', 250) FROM seq_1_to_{ROWS * 4}",
    )
    with dray.connect(shop.uri()) as connection:
        result = connection.query("SELECT * FROM par_changing", partitions=2, batch_rows=1000)
        batches = result.batches()
        rows = next(batches).num_rows
        change = threading.Thread(target=shop.run, args=("TRUNCATE par_changing",))
        change.start()
        time.sleep(0.3)
        assert change.is_alive(), "the workers hold the table"
        assert "2 connections" in result.stats.path_reason
        rows += sum(batch.num_rows for batch in batches)
        change.join()
        assert rows == ROWS * 4
        assert connection.query("SELECT * FROM par_changing").arrow().num_rows == 0


def test_without_the_privilege(shop: MariaServer) -> None:
    uri = f"mysql://alone:x@127.0.0.1:{shop.port}/shop"
    with dray.connect(uri) as connection:
        table, reason = read(connection, "SELECT * FROM par_integers")
        assert table.num_rows == ROWS
        assert "GRANT RELOAD ON *.* TO 'alone'@'%'" in reason
    explained = subprocess.run(
        [binary(), "explain", uri, "SELECT * FROM par_integers", "--partitions", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "GRANT RELOAD ON *.* TO 'alone'@'%'" in explained.stdout


def test_a_lock_that_is_not_had(shop: MariaServer, connection: dray.Connection) -> None:
    """A backup that runs is not waited for, and nothing is left locked."""
    with contextlib.closing(shop.connect()) as backup:
        backup.cursor().execute("BACKUP STAGE START")
        table, reason = read(connection, "SELECT * FROM par_integers")
        assert table.num_rows == ROWS and "Lock wait timeout" in reason
        backup.cursor().execute("BACKUP STAGE END")
    assert "3 connections" in read(connection, "SELECT * FROM par_integers")[1]
    shop.run("UPDATE par_integers SET text = text WHERE seq = 1")


def test_workers_that_are_killed(shop: MariaServer, connection: dray.Connection) -> None:
    """The snapshot of a worker can't be had again: an error, and never a shorter result."""
    shop.run(
        "CREATE TABLE IF NOT EXISTS par_long (k int PRIMARY KEY, pad varchar(250))",
        f"INSERT IGNORE INTO par_long SELECT seq, REPEAT('x', 250) FROM seq_1_to_{ROWS * 4}",
    )
    batches = connection.query("SELECT * FROM par_long", partitions=2, batch_rows=500).batches()
    next(batches)
    workers = shop.rows(
        "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_is_read_only = 1"
    )
    assert workers, "their snapshots are open"
    for (worker,) in workers:
        with contextlib.suppress(Exception):
            shop.run(f"KILL {worker}")
    with pytest.raises(dray.Error, match="snapshot|killed|closed|connection"):
        for _ in batches:
            pass
    assert list(connection.query("SELECT 1 + 1")) == [(2,)]


def test_cancelling(shop: MariaServer, connection: dray.Connection) -> None:
    result = connection.query("SELECT * FROM par_integers", partitions=3, batch_rows=100)
    batches = result.batches()
    next(batches)
    result.close()
    assert list(connection.query("SELECT 1 + 1")) == [(2,)]
    left = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%FORCE INDEX%' "
    deadline = time.monotonic() + 10
    while shop.rows(left + "AND id <> CONNECTION_ID()")[0][0] != "0":
        assert time.monotonic() < deadline, "workers go on"
        time.sleep(0.05)


def test_the_limit_of_a_statement(shop: MariaServer) -> None:
    """The session's limit is one of the whole statement."""
    with dray.connect(shop.uri()) as connection:
        connection.query("SET SESSION max_statement_time = 2")
        result = connection.query("SELECT * FROM par_integers", partitions=2, batch_rows=100)
        batches = result.batches()
        next(batches)
        time.sleep(2.5)
        with pytest.raises(dray.Error, match="interrupted|max_statement_time"):
            for _ in batches:
                pass


def test_a_limit_that_is_lifted(shop: MariaServer) -> None:
    """By the session, and so for the other connections, too."""
    sql = "SELECT IF(seq <= 200, SHA2(REPEAT('x', 5000000), 512), '') FROM par_integers"
    shop.run("SET GLOBAL max_statement_time = 0.5")
    try:
        with dray.connect(shop.uri()) as connection:
            connection.query("SET SESSION max_statement_time = 0")
            table, reason = read(connection, sql, partitions=2)
        assert table.num_rows == ROWS and reason == "2 connections, one snapshot"
    finally:
        shop.run("SET GLOBAL max_statement_time = 60")


def test_small_tables_are_read_alone(connection: dray.Connection) -> None:
    result = connection.query("SELECT * FROM par_empty")
    assert result.arrow().num_rows == 0
    assert "small" in result.stats.path_reason
    result = connection.query("SELECT * FROM par_empty")
    assert result.arrow().num_rows == 0
    assert "last inspected" in result.stats.path_reason


def test_passwords_stay_out_of_reasons(shop: MariaServer, connection: dray.Connection) -> None:
    """Other connections that are refused say why, without the password."""
    shop.run("SET GLOBAL max_connections = 10")
    try:
        with contextlib.ExitStack() as others:
            for _ in range(9):
                with contextlib.suppress(Exception):
                    others.enter_context(contextlib.closing(shop.connect()))
            table, reason = read(connection, "SELECT * FROM par_integers", partitions=4)
            assert table.num_rows == ROWS
            assert "Too many connections" in reason and PASSWORD not in reason
    finally:
        shop.run("SET GLOBAL max_connections = 151")


class Switch(Proxy):
    def to(self, server: MariaServer) -> None:
        self._upstream = ("127.0.0.1", server.port)


def test_connections_to_another_server(shop: MariaServer) -> None:
    """A name may lead to several servers, whose tables differ."""
    other = MariaServer()
    proxy = Switch(("127.0.0.1", shop.port))
    try:
        other.run(
            "CREATE TABLE par_integers (k int PRIMARY KEY, seq int, text varchar(40))",
            "INSERT INTO par_integers VALUES (1, 1, 'other')",
        )
        uri = shop.uri("?ssl-mode=disabled").replace(str(shop.port), str(proxy.port))
        with dray.connect(uri) as connection:
            assert "3 connections" in read(connection, "SELECT * FROM par_integers")[1]
            proxy.to(other)
            table, reason = read(connection, "SELECT * FROM par_integers")
            assert table.num_rows == ROWS and "another server" in reason
    finally:
        proxy.close()
        other.stop()


def test_the_order_of_a_partitioned_table(shop: MariaServer, connection: dray.Connection) -> None:
    shop.run(
        "CREATE TABLE par_parts (k int PRIMARY KEY, seq int) PARTITION BY HASH (k) PARTITIONS 4",
        f"INSERT INTO par_parts SELECT seq, seq FROM seq_1_to_{ROWS}",
    )
    table, reason = read(connection, "SELECT * FROM par_parts")
    assert reason == "3 connections, one snapshot"
    assert sorted(table["seq"].to_pylist()) == list(range(1, ROWS + 1))
    table, reason = read(connection, "SELECT * FROM par_parts", ordered=True)
    assert table.num_rows == ROWS and "order of a partitioned table" in reason
    assert table["k"].to_pylist() == list(range(1, ROWS + 1))


def test_estimates(shop: MariaServer, connection: dray.Connection) -> None:
    """A table's size is known before its rows, however many connections read it."""
    shop.run("ANALYZE TABLE par_integers")
    for partitions in (3, "auto"):
        with connection.query("SELECT * FROM par_integers", partitions=partitions) as result:
            rows = result.estimate.rows
            assert rows is not None and ROWS / 2 < rows < ROWS * 2
            assert not result.estimate.rows_exact
    for sql in ("SELECT * FROM par_integers WHERE seq < 5", "SELECT count(*) FROM par_integers"):
        with connection.query(sql) as result:
            assert result.estimate.rows is None
    assert connection.query("SELECT * FROM par_empty").estimate.rows == 0


def test_fewer_connections_than_asked(shop: MariaServer) -> None:
    """The reason tells why."""
    shop.run(
        "CREATE USER few IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 4",
        "GRANT SELECT ON shop.* TO few",
        "GRANT RELOAD ON *.* TO few",
    )
    with dray.connect(f"mysql://few:x@127.0.0.1:{shop.port}/shop") as connection:
        table, reason = read(connection, "SELECT * FROM par_integers", partitions=4)
    assert table.num_rows == ROWS
    assert reason.startswith("2 connections, one snapshot; one of them failed: ")
    assert "max_user_connections" in reason


def test_a_column_that_is_named(shop: MariaServer, connection: dray.Connection) -> None:
    """A table without a primary key that can be divided, by the columns of its indexes."""
    shop.run(
        "CREATE TABLE par_named (id uuid PRIMARY KEY, k int, name varchar(40), day date NOT NULL, "
        "part varchar(40), plain int, UNIQUE INDEX `by ``k` (k), INDEX (name, k), INDEX (day), "
        "INDEX (part(3)))",
        "INSERT INTO par_named SELECT UUID(), IF(seq % 10 = 0, NULL, seq), "
        f"IF(seq % 7 = 0, NULL, MD5(seq)), '2000-01-01' + INTERVAL seq % 900 DAY, 'x', seq "
        f"FROM seq_1_to_{ROWS}",
        "ANALYZE TABLE par_named",
    )
    sql = "SELECT plain, k, name FROM par_named"
    expected = connection.query(sql, partitions=1).to_arrow().sort_by("plain")
    _, why = read(connection, sql)
    assert "its key begins with a uuid" in why

    def read_by(column: str, sql: str = sql, **options: bool) -> tuple[pa.Table, str]:
        result = connection.query(sql, partitions=3, partition_by=column, **options)
        table = result.to_arrow()
        assert result.stats is not None
        return table, result.stats.path_reason

    for column in ("k", "K", "name", "day"):
        table, why = read_by(column)
        assert "3 connections" in why
        assert table.sort_by("plain").equals(expected), column
    some = "SELECT plain FROM par_named WHERE plain <= 1000 OR k IS NULL"
    table, why = read_by("k", some)
    assert "3 connections" in why and table.num_rows == 1000 + (ROWS - 1000) // 10
    for column in ("plain", "part", "nowhere", "it's"):
        table, why = read_by(column)
        assert f'no index of its table begins with the column "{column}"' in why
        assert table.num_rows == ROWS
    _, why = read_by("k", ordered=True)
    assert "that of the primary key" in why
    listed = subprocess.run(
        [str(binary()), "explain", shop.uri(), sql, "--partitions", "2", "--partition-by", "day"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2 connections" in listed.stdout


def test_the_time_of_a_session(shop: MariaServer, connection: dray.Connection) -> None:
    """A time of day that becomes a datetime has the session's date, which all connections know."""
    shop.run(
        "CREATE TABLE par_times (k int PRIMARY KEY, t time)",
        f"INSERT INTO par_times SELECT seq, SEC_TO_TIME(seq) FROM seq_1_to_{ROWS}",
    )
    sql = (
        "SELECT k, CAST(t AS datetime) d FROM par_times "
        "WHERE t > TIMESTAMP '2001-09-09 00:00:10' AND t < TIMESTAMP '2001-09-10 00:00:00'"
    )
    connection.query("SET timestamp = 1000000000.5")
    table, reason = read(connection, sql)
    assert reason == "3 connections, one snapshot"
    assert table.num_rows == ROWS - 10
    assert str(min(table["d"].to_pylist())) == "2001-09-09 00:00:11"


def test_timestamps_where_clocks_change(shop: MariaServer) -> None:
    for zone, why in [
        ("SYSTEM", "time_zone is SYSTEM, where one time may come twice"),
        # The other connections have UTC.
        ("+02:00", "other sessions have other settings"),
        ("+00:00", "3 connections"),
    ]:
        with dray.connect(shop.uri()) as connection:
            connection.query(f"SET time_zone = '{zone}'")
            table, reason = read(connection, "SELECT seq FROM par_timestamps")
        assert table.num_rows == ROWS and why in reason, reason


@pytest.mark.parametrize("key", ["k DESC", "k DESC, seq", "k, seq DESC"])
def test_keys_that_descend(shop: MariaServer, connection: dray.Connection, key: str) -> None:
    shop.run(
        f"CREATE OR REPLACE TABLE par_descending (k int, seq int, PRIMARY KEY ({key}), KEY (seq))",
        f"INSERT INTO par_descending SELECT seq DIV 2, seq FROM seq_1_to_{ROWS}"
        if "seq" in key
        else f"INSERT INTO par_descending SELECT seq, seq FROM seq_1_to_{ROWS}",
        "ANALYZE TABLE par_descending",
    )
    expected = [int(seq) for (seq,) in shop.rows(f"SELECT seq FROM par_descending ORDER BY {key}")]
    sql = "SELECT seq FROM par_descending"
    table, reason = read(connection, sql, ordered=True)
    assert reason == "3 connections, one snapshot"
    assert table["seq"].to_pylist() == expected
    table, _ = read(connection, sql, partitions=1, ordered=True)
    assert table["seq"].to_pylist() == expected


@pytest.mark.parametrize(
    ("setting", "value"),
    [("wait_timeout", 2), ("idle_readonly_transaction_timeout", 2)],
)
def test_a_slow_reader(setting: str, value: int) -> None:
    """Whoever waits for it is ended by no limit of the server."""
    server = MariaServer(**{setting: value})
    try:
        server.run(
            "CREATE TABLE par_slow (k int PRIMARY KEY, pad varchar(250))",
            f"INSERT INTO par_slow SELECT seq, REPEAT('x', 200) FROM seq_1_to_{ROWS * 2}",
            "ANALYZE TABLE par_slow",
        )
        with dray.connect(server.uri()) as connection:
            result = connection.query("SELECT * FROM par_slow", partitions=2, batch_rows=100)
            batches = result.batches()
            rows = next(batches).num_rows
            time.sleep(4)
            rows += sum(batch.num_rows for batch in batches)
            assert rows == ROWS * 2
            assert result.stats is not None
            assert result.stats.path_reason == "2 connections, one snapshot"
    finally:
        server.stop()


def test_connections_that_failed_before(shop: MariaServer, connection: dray.Connection) -> None:
    """They are tried again: at once, if the user has changed what was wrong."""
    shop.run(
        "CREATE TABLE IF NOT EXISTS par_large (k int PRIMARY KEY, pad varchar(250))",
        f"INSERT IGNORE INTO par_large SELECT seq, REPEAT('x', 250) FROM seq_1_to_{ROWS * 6}",
        "ANALYZE TABLE par_large",
    )
    sql = "SELECT k FROM par_large WHERE k < 0 OR pad < 'y'"

    def reason() -> str:
        result = connection.query(sql)
        assert result.arrow().num_rows == ROWS * 6
        assert result.stats is not None
        return result.stats.path_reason

    connection.query("SET lc_time_names = 'de_DE'")
    assert "other settings" in reason()
    connection.query("SET lc_time_names = 'en_US'")
    assert "connections, one snapshot" in reason()
    with contextlib.closing(shop.connect()) as backup:
        backup.cursor().execute("BACKUP STAGE START")
        assert "Lock wait timeout" in reason()
        backup.cursor().execute("BACKUP STAGE END")
    assert "could not be had before: " in (before := reason()) and "Lock wait timeout" in before


def test_names_that_differ_in_case(shop: MariaServer, connection: dray.Connection) -> None:
    """Each table has its own columns, some of which have no NULL."""
    nulls = {"par_case": True, "PAR_CASE": False, "par_Case": False, "PAR_case": True}
    for name, has_null in nulls.items():
        null = "NULL" if has_null else "NOT NULL"
        shop.run(
            f"CREATE TABLE {name} (k int PRIMARY KEY, c int {null}, KEY (c))",
            f"INSERT INTO {name} SELECT seq, seq FROM seq_1_to_{ROWS}",
            f"ANALYZE TABLE {name}",
        )
        if has_null:
            shop.run(f"UPDATE {name} SET c = NULL WHERE k % 3 = 0")
    for name, has_null in nulls.items():
        result = connection.query(f"SELECT c FROM {name}", partitions=3, partition_by="c")
        table = result.arrow()
        assert result.stats is not None and "3 connections" in result.stats.path_reason
        assert table.num_rows == ROWS, name
        assert table["c"].null_count == (ROWS // 3 if has_null else 0)


def test_cancelling_while_connections_begin(shop: MariaServer) -> None:
    """The one that is asked whether they reach the same server is as good as before."""

    class Late(Proxy):
        first: socket.socket | None = None
        asked = threading.Event()
        interrupted = threading.Event()

        def up(self, client: socket.socket, server: socket.socket) -> None:
            self.first = self.first or server
            while data := client.recv(65_536):
                if server is self.first and b"IS_USED_LOCK" in data:
                    self.asked.set()
                server.sendall(data)

        def down(self, server: socket.socket, client: socket.socket) -> None:
            while data := server.recv(65_536):
                if server is self.first and self.asked.is_set():
                    self.interrupted.wait()
                client.sendall(data)

    proxy = Late(("127.0.0.1", shop.port))
    uri = shop.uri("?ssl-mode=disabled").replace(str(shop.port), str(proxy.port))

    def interrupt() -> None:
        proxy.asked.wait()
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.5)
        proxy.interrupted.set()

    interrupting = threading.Thread(target=interrupt)
    try:
        with dray.connect(uri) as connection:
            interrupting.start()
            with pytest.raises(KeyboardInterrupt):
                connection.query("SELECT * FROM par_integers", partitions=3)
            assert list(connection.query("SELECT 1 + 1")) == [(2,)]
    finally:
        proxy.close()
    interrupting.join()


def test_cancelling_behind_a_balancer(shop: MariaServer) -> None:
    """Another server may have somebody else's statement under the connection's number."""
    other = MariaServer()
    proxy = Switch(("127.0.0.1", shop.port))
    uri = shop.uri("?ssl-mode=disabled").replace(str(shop.port), str(proxy.port))

    def connect(least: int) -> tuple[dray.Connection, int]:
        while True:
            connection = dray.connect(uri)
            number = next(iter(connection.query("SELECT CONNECTION_ID()")))[0]
            if number >= least:
                return connection, number
            connection.close()

    slept = []

    def sleep() -> None:
        cursor = victim.cursor()
        cursor.execute("SELECT SLEEP(8)")
        slept.extend(cursor.fetchall())

    try:
        victim = other.connect()
        connection, number = connect(victim.thread_id())
        while victim.thread_id() < number:
            victim.close()
            victim = other.connect()
        assert victim.thread_id() == number
        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        proxy.to(other)
        with connection:
            result = connection.query(
                "SELECT a.seq FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b", batch_rows=1000
            )
            next(result.batches())
            result.close()
        sleeper.join()
        assert slept == [("0",)], "it was not interrupted"
        victim.close()
    finally:
        proxy.close()
        other.stop()
