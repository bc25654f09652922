"""Results as objects: the rows of every layout and source, in their order, read in place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from postgres_server import PostgresServer
from server import Server

import dray

ROWS = 30_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    order = pa.struct([("day", pa.date32()), ("price", pa.decimal128(9, 2))])
    orders = [[{"day": n % 9000, "price": n}] * (n % 4) if n % 11 else None for n in range(ROWS)]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [None if n % 7 == 0 else f"customer {n}" for n in range(ROWS)],
            "orders": pa.array(orders, pa.list_(order)),
        }
    )


@pytest.fixture(scope="module")
def connection(table: pa.Table) -> Iterator[dray.Connection]:
    # Paths of Unix sockets have to be short.
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    pq.write_table(table, folder / "customers.parquet")
    server = Server(folder, f"customers={folder / 'customers.parquet'}")
    with dray.connect(server.unix) as opened:
        yield opened
    server.stop()
    shutil.rmtree(folder)


SQL = "SELECT * FROM customers ORDER BY id DESC"


@pytest.mark.parametrize("layout", ["auto", "pages", "columns"])
def test_objects_are_the_rows(connection: dray.Connection, table: pa.Table, layout: str):
    objects = connection.objects(SQL, layout=layout)
    assert objects.schema.equals(table.schema)
    found = [row.dict() for row in objects]
    assert found == table.to_pylist()[::-1]
    assert objects.stats.rows == ROWS
    assert objects.stats.pages == (0 if layout == "columns" else objects.stats.chunks)
    assert list(objects) == []


def test_objects_outlive_what_they_came_with(connection: dray.Connection):
    with connection.objects(SQL) as objects:
        first = next(objects)
    assert (first.id, first["name"], len(first.orders)) == (ROWS - 1, f"customer {ROWS - 1}", 3)
    [row] = connection.objects("SELECT count(*) AS n FROM customers WHERE id < $1", [10])
    assert row.n == 10


def test_wrong_calls_say_what_to_do(connection: dray.Connection):
    with pytest.raises(dray.UsageError, match="expected auto, pages or columns"):
        connection.objects(SQL, layout="rows")
    with pytest.raises(dray.QueryError):
        connection.objects("SELECT * FROM nowhere")
    objects = connection.objects(SQL)
    with pytest.raises(dray.UsageError, match="busy with another result"):
        connection.query("SELECT 1")
    objects.close()
    with pytest.raises(dray.UsageError, match="closed"):
        next(objects)
    with pytest.raises(dray.LimitError):
        list(connection.objects("SELECT repeat('x', 3000000) AS x", row_bytes_max=1 << 20))
    assert [row.one for row in connection.objects("SELECT 1 AS one")] == [1]


def test_a_raising_progress_function_ends_the_statement(connection: dray.Connection):
    def stop(progress: dray.Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        list(connection.objects("SELECT a.id FROM customers a, customers b", progress=stop))
    assert [row.one for row in connection.objects("SELECT 1 AS one")] == [1]


def test_postgresql_gives_objects(postgres: PostgresServer):
    sql = (
        "SELECT n, array_agg(m ORDER BY m) AS m FROM (VALUES (1, 2), (1, 3), (7, NULL)) AS t (n, m)"
    )
    with dray.connect(postgres.uri()) as connection:
        objects = connection.objects(f"{sql} GROUP BY n ORDER BY n")
        assert [(row.n, list(row.m)) for row in objects] == [(1, [2, 3]), (7, [None])]
        assert objects.stats.pages == 0
