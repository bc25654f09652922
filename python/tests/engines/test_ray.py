"""Ray Data, whose read tasks are the parts of a plan, in processes of Ray's own.

Ray is large and starts a dozen processes, so `make test-all` runs this, and `make test` does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine_tables import (
    KINDS,
    PAIRS,
    ROWS,
    TOKEN,
    changing,
    check_whole,
    copied,
    pairs,
    parts_read,
)
from postgres_server import PostgresServer
from relay_server import Relay

import dray
from dray._relation import Relation

if "DRAY_ALL_VERSIONS" not in os.environ:
    pytest.skip("Ray is large: DRAY_ALL_VERSIONS brings it", allow_module_level=True)

import ray
from ray.data.datatype import DataType
from ray.data.expressions import col, udf

import dray.ray


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="error",
        object_store_memory=200_000_000,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def table_of(dataset: Any) -> pa.Table:
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()))


def test_each_row_once_while_rows_change(cluster: None, postgres: PostgresServer) -> None:
    with copied(postgres, "pairs") as table, changing(postgres, table):
        found = table_of(dray.ray.read(postgres.uri(), table=table, at_most=5))
        check_whole(found["id"].to_pylist(), found["amount"].to_pylist())


def test_types(cluster: None, postgres: PostgresServer) -> None:
    found = table_of(dray.ray.read(postgres.uri(), table="kinds"))
    assert found.equals(dray.read(postgres.uri(), "SELECT * FROM kinds"))
    assert found.select(list(KINDS)).to_pydict() == KINDS
    empty = dray.ray.read(postgres.uri(), table="nothing")
    assert empty.count() == 0 and empty.schema().names == ["id", "name"]


def test_the_source_is_asked_for_less(cluster: None, postgres: PostgresServer) -> None:
    dataset = dray.ray.read(postgres.uri(), table="pairs", at_most=3)
    start = postgres.log_bytes()
    few = dataset.filter(expr=(col("id") < 100) & (col("filler") == "xxx"))
    assert sorted(row["amount"] for row in few.select_columns(["amount"]).take_all()) == [-72, -2]
    statements = parts_read(postgres, start)
    assert 1 <= len(statements) <= 3
    for statement in statements:
        assert statement.startswith('SELECT "id", "amount", "filler" FROM ONLY "pairs"')
        assert '"id" < 100 AND "filler" = \'xxx\'' in statement
    assert dataset.count() == few.count() + ROWS - 2 == ROWS
    start = postgres.log_bytes()
    odd = dataset.select_columns(["id"]).filter(expr=col("id") % 2 == 1)
    assert odd.count() == PAIRS
    assert all(s.startswith('SELECT "id" FROM ONLY') for s in parts_read(postgres, start))
    assert len(dataset.limit(7).take_all()) == 7
    only = dray.ray.read(postgres.uri(), table="pairs", columns=["id"])
    assert only.schema().names == ["id"]


def translated(postgres: PostgresServer, where: Any) -> str | None:
    relation = Relation(postgres.uri(), None, None, "kinds", {})
    source = dray.ray.DrayDatasource(relation)
    condition = source._condition(where)
    return None if condition is None else condition.sql


def test_conditions(postgres: PostgresServer) -> None:
    """What the source is asked for, and that the rows are those that pyarrow's filter keeps."""
    whole = dray.read(postgres.uri(), "SELECT * FROM kinds")
    for where, sql in [
        (col("price") == Decimal("1.5"), "\"price\" = CAST('1.5' AS DECIMAL(12, 2))"),
        (col("price") == Decimal("1.555"), None),
        (col("id").is_in([1, 5]) | col("name").is_null(), '"id" IN (1, 5)) OR ("name" IS NULL'),
        (~col("id").is_in([1, 5]), None),
        (col("id").is_in([1, None]), None),
        (~(col("id") > 0), None),
        ((col("id") > 0) & (col("x") > 0), '"id" > 0'),
        ((col("id") > 0) | (col("x") > 0), None),
        (col("name") > "a", None),
        (col("name") == "a\\", None),
        (col("free") == "1", None),
        (col("small") != 7, '"small" <> 7'),
        (col("flag") == False, '"flag" = FALSE'),  # noqa: E712
    ]:
        found = translated(postgres, where)
        assert found == sql if sql is None else sql in (found or ""), where
        if found is not None:
            kept = dray.read(postgres.uri(), f"SELECT * FROM kinds WHERE {found}")
            filtered = whole.filter(where.to_pyarrow())
            assert set(filtered["id"].to_pylist()) <= set(kept["id"].to_pylist())


def test_a_dray_server(cluster: None, served: Relay) -> None:
    dataset = dray.ray.read(served.uri(), table="pairs", token=TOKEN, at_most=4)
    assert table_of(dataset).sort_by("id").equals(pairs())
    behind = dray.ray.read(served.uri("pg"), table="pairs", token=TOKEN, at_most=3)
    assert behind.filter(expr=col("id") < 1000).sum("amount") == 0
    behind = dray.ray.read(served.uri("maria"), table="pairs", token=TOKEN, at_most=3)
    assert behind.filter(expr=(col("id") < 1000) & (col("filler") == "xxx")).count() == 15


def test_texts_that_the_database_lacks(cluster: None, narrow: str) -> None:
    dataset = dray.ray.read(narrow, table="names")
    assert dataset.filter(expr=col("name") == "🐴").count() == 0
    assert [row["id"] for row in dataset.filter(expr=col("name") == "ü").take_all()] == [1]


def test_renamed_columns(cluster: None, postgres: PostgresServer) -> None:
    dataset = dray.ray.read(postgres.uri(), table="pairs", at_most=2)
    swapped = dataset.rename_columns({"id": "amount", "amount": "id"})
    assert sorted(swapped.schema().names) == ["amount", "filler", "id"]
    few = swapped.filter(expr=col("amount") < 4).select_columns(["amount", "id"]).take_all()
    expected = [(0, 0), (1, 0), (2, 2), (3, -2)]
    assert sorted((row["amount"], row["id"]) for row in few) == expected
    narrow = dataset.select_columns(["amount", "id"]).rename_columns({"id": "key"})
    assert narrow.schema().names == ["amount", "key"]
    assert narrow.filter(expr=col("key") < 10).sum("key") == 45
    again = dataset.rename_columns({"id": "key"}).rename_columns({"key": "id", "amount": "sum"})
    assert table_of(again.select_columns(["id"])).sort_by("id")["id"].to_pylist() == [*range(ROWS)]
    with pytest.raises(Exception, match="nowhere"):
        dataset.select_columns(["nowhere"]).take_all()


def test_names_that_ray_leaves_to_the_source(postgres: PostgresServer) -> None:
    """As Ray before 2.56 gives them: what a column is, and what it is called."""
    source = dray.ray.DrayDatasource(Relation(postgres.uri(), None, None, "pairs", {}))
    source = source.apply_predicate(col("id") < 4)
    source._projection_map = {"amount": "id", "id": "amount"}
    (task,) = source.get_read_tasks(1)
    table = pa.concat_tables(task())
    assert table.schema == task.schema and table.schema.names == ["id", "amount"]
    assert sorted(table.to_pydict()["amount"]) == [0, 1, 2, 3]
    assert sorted(table.to_pydict()["id"]) == [-2, 0, 0, 2]
    source._projection_map = {"amount": "id", "id": "id"}
    with pytest.raises(dray.UsageError, match="two columns have the same name"):
        source.get_read_tasks(1)


@udf(return_dtype=DataType.bool())
def is_long(texts: pa.Array) -> pa.Array:
    return pc.greater(pc.utf8_length(texts), 68)


def test_every_predicate_is_applied(postgres: PostgresServer) -> None:
    """Also what neither SQL nor pyarrow expresses: Ray before 2.56 forgets what it hands over."""
    source = dray.ray.DrayDatasource(Relation(postgres.uri(), None, None, "pairs", {}))
    for where in (is_long(col("filler")), col("id") % 70 == 69, (col("id") + 1) % 70 == 0):
        narrowed = source.apply_predicate(where)
        assert narrowed is not source
        tasks = narrowed.apply_projection({"id": "id"}).get_read_tasks(1)
        tables = [table for task in tasks for table in task()]
        assert {table.schema.names[0] for table in tables} == {"id"}
        assert sum(table.num_rows for table in tables) == ROWS // 70


def test_tasks(postgres: PostgresServer, served: Relay) -> None:
    """Read tasks as Ray runs them, and what is known of them before."""
    relation = Relation(served.uri(), None, None, "pairs", {"token": TOKEN, "at_most": 3})
    source = dray.ray.DrayDatasource(relation)
    tasks = source.get_read_tasks(200)
    assert 2 <= len(tasks) <= 3
    # The server does not know how long texts are.
    numbers = source.apply_projection({"id": "id", "amount": "amount"})
    size = numbers.estimate_inmemory_data_size()
    assert size is not None and ROWS * 8 < size < ROWS * 400
    assert sum(task.metadata.size_bytes for task in numbers.get_read_tasks(200)) == size
    assert TOKEN.encode() not in ray.cloudpickle.dumps(tasks)
    assert sum(table.num_rows for task in tasks for table in task()) == ROWS
    # To count, Ray asks for no column, and joins what it gets.
    tables = [table for task in source.apply_projection({}).get_read_tasks(9) for table in task()]
    assert pa.concat_tables(tables).num_rows == ROWS
    late = Relation(postgres.uri(), None, None, "pairs", {"lease": 1.0, "at_most": 2})
    tasks = dray.ray.DrayDatasource(late).get_read_tasks(2)
    time.sleep(1.1)
    with pytest.raises(dray.ExecutionError, match="lease ended"):
        list(tasks[0]())


def test_failures(cluster: None, postgres: PostgresServer) -> None:
    uri = postgres.uri()
    with pytest.raises(dray.UsageError, match=r"no option 'leese' \(did you mean 'lease'"):
        dray.ray.read(uri, table="pairs", leese=3)  # type: ignore[call-arg]
    with pytest.raises(dray.QueryError, match="nowhere"):
        dray.ray.read(uri, table="nowhere")
    with copied(postgres, "kinds") as table:
        dataset = dray.ray.read(uri, table=table, lease=1)
        time.sleep(1.1)
        postgres.run(f"DROP TABLE {table}")
        with pytest.raises(Exception, match=f"{table}.* does not exist"):
            dataset.take_all()


def test_connections_are_bounded(cluster: None, postgres: PostgresServer) -> None:
    dataset = dray.ray.read(postgres.uri(), "SELECT id FROM pairs", at_most=6, max_connections=1)
    start = postgres.log_bytes()
    assert dataset.count() == ROWS
    assert 2 <= len(parts_read(postgres, start)) <= 6
