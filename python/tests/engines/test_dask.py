"""Dask, whose partitions are the parts of a plan."""

from __future__ import annotations

import gc
import pickle
import time

import dask
import dask.dataframe
import pandas
import pyarrow as pa
import pytest
from engine_tables import ROWS, TOKEN, changing, check_whole, copied, pairs, parts_read
from postgres_server import PostgresServer
from relay_server import Relay

import dray
import dray.dask


def test_each_row_once_while_rows_change(postgres: PostgresServer) -> None:
    with copied(postgres, "pairs") as table, changing(postgres, table):
        for source in ({"table": table}, {"query": f"SELECT id, amount FROM {table}"}):
            frame = dray.dask.read(postgres.uri(), at_most=5, **source)
            assert 2 <= frame.npartitions <= 5 and not frame.known_divisions
            # The frame is the data of one moment, also if it is computed again.
            first, again = frame.compute(), frame.compute()
            check_whole(first["id"].tolist(), first["amount"].tolist())
            assert first.sort_values("id").equals(again.sort_values("id"))


def test_types(postgres: PostgresServer) -> None:
    whole = dray.read(postgres.uri(), "SELECT * FROM kinds")
    frame = dray.dask.read(postgres.uri(), table="kinds")
    expected = [pandas.ArrowDtype(field.type) for field in whole.schema]
    assert frame.dtypes.tolist() == expected
    found = frame.compute()
    assert found.dtypes.tolist() == expected
    for name in whole.column_names:
        assert pa.array(found[name]).to_pylist() == whole[name].to_pylist()
    wide = dray.dask.read(postgres.uri(), "SELECT 12345678901234567890.5::numeric(50,2) AS wide")
    assert str(wide.compute()["wide"][0]) == "12345678901234567890.50"
    empty = dray.dask.read(postgres.uri(), table="nothing")
    assert len(empty) == 0 and empty.compute().columns.tolist() == ["id", "name"]


def test_columns(postgres: PostgresServer) -> None:
    start = postgres.log_bytes()
    frame = dray.dask.read(postgres.uri(), table="pairs", columns=["id", "amount"], at_most=3)
    assert frame.columns.tolist() == ["id", "amount"]
    assert frame["id"].max().compute() == ROWS - 1
    assert len(frame) == ROWS and frame[frame.id < 10].amount.sum().compute() == 0
    assert all(s.startswith('SELECT "id", "amount" FROM') for s in parts_read(postgres, start))
    query = "SELECT filler, id FROM pairs"
    frame = dray.dask.read(postgres.uri(), query, columns=["id"], at_most=3)
    assert frame.compute().columns.tolist() == ["id"]
    assert frame.id.count().compute() == ROWS
    with pytest.raises(dray.UsageError, match=r"no column 'amuont' \(did you mean 'amount'"):
        dray.dask.read(postgres.uri(), table="pairs", columns=["amuont"])


def test_processes(served: Relay) -> None:
    frame = dray.dask.read(served.uri(), table="pairs", token=TOKEN, at_most=4)
    assert 2 <= frame.npartitions <= 4
    assert TOKEN.encode() not in pickle.dumps(frame.optimize().__dask_graph__())
    with dask.config.set(scheduler="processes", num_workers=2):
        found = frame.compute().sort_values("id")
    assert pa.Table.from_pandas(found, pairs().schema, preserve_index=False) == pairs()
    behind = dray.dask.read(served.uri("pg"), table="pairs", token=TOKEN, at_most=3)
    assert behind.amount.sum().compute() == 0
    behind = dray.dask.read(served.uri("maria"), table="pairs", token=TOKEN, columns=["id"])
    assert sorted(behind.id.compute()) == list(range(ROWS))


def test_plans_are_held(postgres: PostgresServer) -> None:
    """Whoever has the tasks reads the same rows, whether the frame is still there or not."""
    with copied(postgres, "pairs") as table:
        frame = dray.dask.read(postgres.uri(), table=table, at_most=3, lease=3)
        tasks = frame.to_delayed()
        del frame
        gc.collect()
        postgres.run(f"DELETE FROM {table}")
        assert sum(map(len, dask.compute(*tasks))) == ROWS
        time.sleep(3.1)
        with pytest.raises(dray.ExecutionError, match="lease ended"):
            dask.compute(*tasks)
        assert len(dray.dask.read(postgres.uri(), table=table)) == 0


def test_wrong_calls(postgres: PostgresServer) -> None:
    uri = postgres.uri()
    with pytest.raises(dray.UsageError, match=r"no option 'compresion' \(did you mean 'compre"):
        dray.dask.read(uri, table="pairs", compresion="lz4")  # type: ignore[call-arg]
    with pytest.raises(dray.UsageError, match="not the name of a table"):
        dray.dask.read(uri, table="pairs; DROP TABLE pairs")
    with pytest.raises(dray.QueryError, match="nowhere"):
        dray.dask.read(uri, table="nowhere")
    with pytest.raises(dray.UsageError, match="two columns have the same name"):
        dray.dask.read(uri, "SELECT 1 AS a, 2 AS a")
    with pytest.raises(dray.ConnectionError):
        dray.dask.read("dray://127.0.0.1:1", table="pairs", timeout=1)


def test_connections_are_bounded(postgres: PostgresServer) -> None:
    frame = dray.dask.read(postgres.uri(), table="pairs", at_most=8, max_connections=2)
    assert frame.npartitions == 2 and len(frame) == ROWS
