"""Nested results, from PostgreSQL and from a Dray server: the rows of the tables, put together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from server import Server

import dray

BINARY = os.environ["DRAY_BINARY"]
SPEC = """
sql = "SELECT c_custkey, c_name, c_acctbal FROM customer"
order = ["c_custkey"]

[many.orders]
sql = "SELECT o_orderkey, o_custkey, o_orderdate, o_totalprice FROM orders"
on = { o_custkey = "c_custkey" }
order = ["o_orderdate:desc", "o_orderkey"]

[many.orders.many.items]
sql = "SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity FROM lineitem"
on = { l_orderkey = "o_orderkey" }
order = ["l_linenumber"]

[many.orders.many.items.one.part]
sql = "SELECT p_partkey, p_name FROM part"
on = { p_partkey = "l_partkey" }

[many.orders.many.items.one.supplier]
sql = "SELECT s_suppkey, s_name FROM supplier"
on = { s_suppkey = "l_suppkey" }
"""
TABLES = {
    "customer": ["c_custkey", "c_name", "c_acctbal"],
    "orders": ["o_orderkey", "o_custkey", "o_orderdate", "o_totalprice"],
    "lineitem": ["l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity"],
    "part": ["p_partkey", "p_name"],
    "supplier": ["s_suppkey", "s_name"],
}


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("tpch"), "--tpch", "0.01")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def tables(tpch: Server) -> dict[str, pa.Table]:
    with dray.connect(tpch.unix) as connection:
        return {
            name: connection.query(f"SELECT {', '.join(columns)} FROM {name}").to_arrow()
            for name, columns in TABLES.items()
        }


@pytest.fixture(scope="module")
def expected(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """The objects, put together row by row in Python."""
    rows = {name: table.to_pylist() for name, table in tables.items()}
    parts = {row.pop("p_partkey"): row for row in rows["part"]}
    suppliers = {row.pop("s_suppkey"): row for row in rows["supplier"]}
    items: dict[int, list] = {}
    for row in sorted(rows["lineitem"], key=lambda row: row["l_linenumber"]):
        order = row.pop("l_orderkey")
        row |= {"part": parts[row["l_partkey"]], "supplier": suppliers[row["l_suppkey"]]}
        items.setdefault(order, []).append(row)
    orders: dict[int, list] = {}
    newest = sorted(rows["orders"], key=lambda row: row["o_orderkey"])
    newest.sort(key=lambda row: row["o_orderdate"], reverse=True)
    for row in newest:
        customer = row.pop("o_custkey")
        orders.setdefault(customer, []).append(row | {"items": items[row["o_orderkey"]]})
    customers = sorted(rows["customer"], key=lambda row: row["c_custkey"])
    return [row | {"orders": orders.get(row["c_custkey"], [])} for row in customers]


def test_customers_of_a_dray_server(tpch: Server, expected: list[dict[str, Any]]):
    with dray.connect(tpch.unix) as connection:
        nested = dray.nest(connection, SPEC)
        assert pa.table(nested).to_pylist() == expected
        with pytest.raises(dray.UsageError, match="read already"):
            pa.table(nested)
        spilled = dray.nest(connection, SPEC, memory="16MiB")
        assert pa.table(spilled).to_pylist() == expected


def test_customers_of_postgresql(
    postgres: PostgresServer, tables: dict[str, pa.Table], expected: list[dict[str, Any]]
):
    with dray.connect(postgres.uri()) as connection:
        for name, table in tables.items():
            connection.write(name, table, mode="replace")
        try:
            assert pa.table(dray.nest(connection, SPEC)).to_pylist() == expected
            # The server's own JSON of one customer says the same.
            sql = """SELECT json_agg(o_orderkey ORDER BY o_orderdate DESC, o_orderkey)::text
                     FROM orders WHERE o_custkey = 7"""
            keys = json.loads(next(iter(connection.query(sql)))[0])
            own = next(row for row in expected if row["c_custkey"] == 7)
            assert [order["o_orderkey"] for order in own["orders"]] == keys
            connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ").close()
            connection.query("DELETE FROM orders WHERE o_custkey = 7").close()
            connection.query(
                "DELETE FROM lineitem l WHERE NOT EXISTS (SELECT FROM orders o "
                "WHERE o.o_orderkey = l.l_orderkey)"
            ).close()
            changed = pa.table(dray.nest(connection, SPEC)).to_pylist()
            assert changed == [
                row | {"orders": []} if row["c_custkey"] == 7 else row for row in expected
            ], "an open transaction sees its own changes"
            connection.query("ROLLBACK").close()
        finally:
            for name in tables:
                connection.query(f"DROP TABLE {name}").close()


PAIRS = """
sql = "SELECT p FROM nest_parents"
order = ["p"]

[many.children]
sql = "SELECT p, c FROM nest_children"
on = { p = "p" }
order = ["c"]
"""
TABLES_OF_PAIRS = [
    "CREATE TABLE nest_parents (p int)",
    "CREATE TABLE nest_children (p int, c int)",
    "INSERT INTO nest_parents VALUES (1), (2)",
    "INSERT INTO nest_children VALUES (1, 10), (2, 20)",
]


def test_an_open_transaction_of_postgresql(postgres: PostgresServer):
    check_open_transactions(postgres, "SET SESSION CHARACTERISTICS AS")


def test_an_open_transaction_of_mysql(mysql: MariaServer):
    check_open_transactions(mysql, "SET SESSION")


def check_open_transactions(server: PostgresServer | MariaServer, session: str) -> None:
    """A transaction has one snapshot, or is refused: its statements would see what others commit
    in between.
    """
    server.run(*TABLES_OF_PAIRS)
    try:
        with dray.connect(server.uri()) as connection:

            def begin(isolation: str) -> None:
                connection.query(f"{session} TRANSACTION ISOLATION LEVEL {isolation}").close()
                connection.query("START TRANSACTION").close()

            def parents(spec: str = PAIRS) -> list[int]:
                return pa.table(dray.nest(connection, spec))["p"].to_pylist()

            begin("READ COMMITTED")
            with pytest.raises(dray.UsageError, match="each statement of this transaction has its"):
                parents()
            # A single statement has one snapshot anyway, and the transaction goes on.
            assert parents(PAIRS.partition("[many")[0]) == [1, 2]
            connection.query("ROLLBACK").close()
            for isolation in ("REPEATABLE READ", "SERIALIZABLE"):
                begin(isolation)
                assert parents() == [1, 2]
                connection.query("ROLLBACK").close()
            begin("REPEATABLE READ")
            assert list(connection.query("SELECT count(*) FROM nest_children")) == [(2,)]
            # A child whose parent comes after the snapshot.
            server.run("INSERT INTO nest_parents VALUES (3)")
            server.run("INSERT INTO nest_children VALUES (3, 30)")
            assert parents() == [1, 2]
            connection.query("COMMIT").close()
            assert parents() == [1, 2, 3]
    finally:
        server.run("DROP TABLE nest_parents", "DROP TABLE nest_children")


def test_program(tpch: Server, expected: list[dict[str, Any]], tmp_path: Path):
    (tmp_path / "customers.toml").write_text(SPEC)

    def program(*arguments: object, code: int = 0) -> str:
        command = [BINARY, "nest", tpch.unix, tmp_path / "customers.toml", *arguments]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert ran.returncode == code, ran.stderr
        return ran.stderr

    program("-o", tmp_path / "customers.pages", "--key", "c_custkey")
    file = dray.open_pages(tmp_path / "customers.pages")
    assert list(file) == expected
    assert file.find(7) == [expected[6]]
    program("-o", tmp_path / "customers.parquet", "--memory", "32MiB")
    assert pq.read_table(tmp_path / "customers.parquet").to_pylist() == expected
    program("-o", tmp_path / "customers.jsonl")
    with open(tmp_path / "customers.jsonl") as lines:
        assert json.loads(next(lines))["c_name"] == expected[0]["c_name"]
    (tmp_path / "customers.toml").write_text(SPEC.replace("o_custkey = ", "o_cust = "))
    assert "o_cust" in program("-o", tmp_path / "x.parquet", code=2)
    assert not (tmp_path / "x.parquet").exists()


def test_rows_without_a_parent(tpch: Server):
    with dray.connect(tpch.unix) as connection:
        some = SPEC.replace("FROM customer", "FROM customer WHERE c_custkey > 9")
        with pytest.raises(dray.ExecutionError, match="^orders: a row with the key 1 has no par"):
            dray.nest(connection, some)
        dropped = some.replace('order = ["o_orderdate', 'orphans = "drop"\norder = ["o_orderdate')
        assert pa.table(dray.nest(connection, dropped)).num_rows == 1500 - 9
        with pytest.raises(dray.UsageError, match="can't read the specification"):
            dray.nest(connection, "nothing.toml")
        with pytest.raises(dray.UsageError, match="unknown field"):
            dray.nest(connection, SPEC + "\nnonsense = 1")
        with pytest.raises(dray.ExecutionError, match="the statement of supplier failed"):
            dray.nest(connection, SPEC.replace("FROM supplier", "FROM suppliers"))
        assert list(connection.query("SELECT 1")) == [(1,)]


def test_a_specification_in_a_folder_with_an_equals_sign(tpch: Server, tmp_path: Path):
    path = tmp_path / "day=1" / "numbers.toml"
    path.parent.mkdir()
    text = 'sql = "SELECT 7 AS n"'
    path.write_text(text)
    with dray.connect(tpch.unix) as connection:
        for spec in (path, str(path), text):
            assert pa.table(dray.nest(connection, spec)).to_pylist() == [{"n": 7}]


def test_a_signal_ends_it(tpch: Server, tmp_path: Path):
    """While a statement runs, and while its rows are sorted: on the disk, in several seconds."""
    many = "SELECT value, 0 - value AS less FROM generate_series(1, 3000000)"
    spec = f"""
        sql = "{many}"
        order = ["value:desc"]
        [many.others]
        sql = "{many}"
        on = {{ less = "value" }}
        orphans = "drop"
    """

    class Alarm(Exception):
        pass

    def alarm(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with dray.connect(tpch.unix) as connection:
            for seconds in (0.05, 0.3, 0.6, 0.9):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                with pytest.raises(Alarm):
                    dray.nest(connection, spec, memory="8MiB", spill=tmp_path)
                assert list(connection.query("SELECT 1")) == [(1,)]
                assert list(tmp_path.iterdir()) == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
