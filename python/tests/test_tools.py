"""The tools of docs/tools.md, each with a Dray server and with PostgreSQL."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from postgres_server import VERSIONS, PostgresServer
from server import Server

import dray
import dray.dbapi

ORDERS = """
CREATE TABLE IF NOT EXISTS tool_orders (id bigint PRIMARY KEY, state text, price numeric(12,2));
INSERT INTO tool_orders SELECT i, CASE WHEN i % 10 > 0 THEN 'S' || i % 3 END, i / 4.0
FROM generate_series(0, 9999) i ON CONFLICT DO NOTHING
"""
#: The same rows from a Dray server.
SERIES = """
SELECT value AS id, CASE WHEN value % 10 > 0 THEN 'S' || value % 3 END AS state,
    CAST(value / CAST(4 AS DECIMAL(12, 2)) AS DECIMAL(12, 2)) AS price
FROM generate_series(0, 9999)
"""
TOTAL = decimal.Decimal("12498750.00")


@pytest.fixture(scope="module")
def shop(start_postgres: Callable[[int], PostgresServer]) -> PostgresServer:
    postgres = start_postgres(VERSIONS[-1])
    postgres.run(ORDERS)
    return postgres


@pytest.fixture(params=["dray", "postgresql"])
def source(server: Server, shop: PostgresServer, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A uri and a query of 10,000 orders."""
    if request.param == "dray":
        return server.unix, SERIES
    return shop.uri(), "SELECT * FROM tool_orders"


@pytest.fixture
def opened(source: tuple[str, str]) -> Iterator[tuple[dray.Connection, str]]:
    with dray.connect(source[0]) as connection:
        yield connection, source[1]


@pytest.fixture
def door(source: tuple[str, str]) -> Iterator[tuple[dray.dbapi.Connection, str]]:
    with dray.dbapi.connect(source[0]) as connection:
        yield connection, source[1]


def test_pandas_read_sql(door: tuple[dray.dbapi.Connection, str]) -> None:
    connection, sql = door
    frame = pd.read_sql(sql, connection, index_col="id")
    assert len(frame) == 10_000 and frame["price"].sum() == TOTAL
    assert frame["state"].isna().sum() == 1000
    for backend, integer in [("pyarrow", pd.ArrowDtype(pa.int64())), ("numpy_nullable", "Int64")]:
        frame = pd.read_sql(sql, connection, dtype_backend=backend)
        assert frame["id"].dtype == integer and frame["price"].sum() == TOTAL
        assert frame["state"].isna().sum() == 1000


def test_pandas_read_sql_of_a_table(server: Server, shop: PostgresServer) -> None:
    for uri, table, column in [(server.unix, "numbers", "text"), (shop.uri(), "tool_orders", "id")]:
        with dray.dbapi.connect(uri) as connection:
            frame = pd.read_sql(table, connection, columns=[column])
            assert list(frame.columns) == [column] and len(frame) >= 10_000


def test_polars_read_database(door: tuple[dray.dbapi.Connection, str]) -> None:
    connection, sql = door
    frame = pl.read_database(sql, connection)
    assert frame.schema == {"id": pl.Int64, "state": pl.String, "price": pl.Decimal(12, 2)}
    assert frame["price"].sum() == TOTAL and frame["state"].null_count() == 1000
    parts = list(pl.read_database(sql, connection, iter_batches=True, batch_size=4096))
    assert sum(part.height for part in parts) == 10_000
    frame = pl.read_database(
        f"SELECT id FROM ({sql}) t WHERE id = $1", connection, execute_options={"parameters": (5,)}
    )
    assert frame["id"].to_list() == [5]


def test_polars_read_database_uri(source: tuple[str, str], server: Server) -> None:
    uri, sql = source
    # `postgresql://` would ask for another driver, and `dray+unix` is no name of a module.
    frame = pl.read_database_uri(sql, f"dray:{uri}", engine="adbc")
    assert frame["price"].sum() == TOTAL
    count = pl.read_database_uri("SELECT count(*) FROM numbers", server.tcp, engine="adbc")
    assert count.item() == 200_000


def test_polars_scan(source: tuple[str, str]) -> None:
    uri, sql = source
    lazy = dray.scan(uri, sql=sql).filter(pl.col("id") < 8).select(pl.col("price").sum())
    assert lazy.collect().item() == decimal.Decimal("7.00")


def test_duckdb_reads_a_result(opened: tuple[dray.Connection, str]) -> None:
    connection, sql = opened
    result = connection.query(sql)  # noqa: F841
    assert duckdb.sql("SELECT sum(price) FROM result").fetchall() == [(TOTAL,)]
    reader = connection.query(sql).reader()  # noqa: F841
    states = duckdb.sql("SELECT state, count(*) FROM reader GROUP BY ALL ORDER BY ALL").fetchall()
    assert states == [("S0", 3000), ("S1", 3000), ("S2", 3000), (None, 1000)]


def test_duckdb_reads_a_cursor(door: tuple[dray.dbapi.Connection, str]) -> None:
    connection, sql = door
    with connection.cursor() as cursor:
        batches = cursor.execute(sql).fetch_record_batch()  # noqa: F841
        assert duckdb.sql("SELECT sum(price) FROM batches").fetchall() == [(TOTAL,)]


def test_duckdb_results_are_sorted(opened: tuple[dray.Connection, str]) -> None:
    connection, sql = opened
    result = connection.query(sql)  # noqa: F841
    relation = duckdb.sql("SELECT id, price FROM result")
    ordered = pa.table(dray.sort(relation, by="id:desc"))
    assert ordered["id"].to_pylist()[:2] == [9999, 9998]


def test_pyarrow(opened: tuple[dray.Connection, str], tmp_path: object) -> None:
    connection, sql = opened
    assert pa.table(connection.query(sql)).num_rows == 10_000
    reader = pa.RecordBatchReader.from_stream(connection.query(sql))
    pyarrow.dataset.write_dataset(reader, str(tmp_path), format="parquet")
    assert pyarrow.dataset.dataset(str(tmp_path)).to_table()["id"].to_numpy().sum() == 49_995_000


# Ibis calls what its neighbours deprecate.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ibis(opened: tuple[dray.Connection, str]) -> None:
    import ibis

    connection, sql = opened
    orders = ibis.memtable(connection.query(sql))
    counts = orders.group_by("state").agg(total=orders.price.sum()).to_pyarrow()
    assert sum(counts["total"].to_pylist()) == TOTAL
