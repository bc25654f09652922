"""The server's answers to SQL, compared with DuckDB's: TPC-H's queries, and random queries over
tables of many types.
"""

from __future__ import annotations

import datetime
import decimal
import math
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest
from random_queries import Queries, table
from server import Server
from tpch_queries import QUERIES

import dray

ROUNDS = int(os.environ.get("DRAY_TEST_ROUNDS", "1"))
RANDOM_QUERIES = 300 * ROUNDS
SEED = int(os.environ.get("DRAY_TEST_SEED", "1"))
TPCH_TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dray.Connection, duckdb.DuckDBPyConnection]]:
    files = tmp_path_factory.mktemp("engine")
    rng = random.Random(SEED)
    for name, rows in (("t", 1500), ("u", 400), ("v", 0)):
        pyarrow.parquet.write_table(table(rng, rows), files / f"{name}.parquet", row_group_size=500)
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(folder, str(files), "--tpch", "0.01")
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    with dray.connect(server.unix) as connection:
        for name in [*TPCH_TABLES, "t", "u", "v"]:
            oracle.register("arrow", connection.query(f"SELECT * FROM {name}").arrow())
            oracle.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        yield connection, oracle
    server.stop()
    shutil.rmtree(folder)


def comparable(value: object) -> object:
    """The meaning of a value, whatever type an engine gave it."""
    match value:
        case bool() | None:
            return value
        case int() | decimal.Decimal() | float():
            return float(value)
        case datetime.datetime():
            return value.replace(tzinfo=None)
        case datetime.date():
            return datetime.datetime(value.year, value.month, value.day)
    return value


def order(row: tuple[object, ...]) -> list[tuple[str, object]]:
    # Numbers that differ only in their last digits stay neighbours.
    return [
        (type(value).__name__, f"{value:.10e}" if isinstance(value, float) else str(value))
        for value in row
    ]


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-4) or (math.isnan(a) and math.isnan(b))
    return a == b


def compare(sql: str, engines: tuple[dray.Connection, duckdb.DuckDBPyConnection]) -> None:
    connection, oracle = engines
    expected = [tuple(map(comparable, row)) for row in oracle.execute(sql).fetchall()]
    result = [tuple(map(comparable, row)) for row in connection.query(sql).rows()]
    assert len(result) == len(expected), (
        f"{len(result)} rows, and {len(expected)} from DuckDB: {sql}"
    )
    if " ORDER BY " not in sql or " OVER " in sql or "\n" in sql:
        result.sort(key=order)
        expected.sort(key=order)
    for ours, theirs in zip(result, expected):
        assert all(map(same, ours, theirs)), f"{ours}, and {theirs} from DuckDB: {sql}"


@pytest.mark.parametrize("number", QUERIES)
def test_tpch(number: int, engines: tuple[dray.Connection, duckdb.DuckDBPyConnection]) -> None:
    compare(QUERIES[number], engines)


def test_random_queries(engines: tuple[dray.Connection, duckdb.DuckDBPyConnection]) -> None:
    queries = Queries(SEED)
    for number in range(RANDOM_QUERIES):
        sql = queries.query()
        try:
            compare(sql, engines)
        except Exception as cause:
            raise AssertionError(f"query {number} of DRAY_TEST_SEED={SEED}: {sql}") from cause
