"""Results as a reader of pyarrow, and the other names of a result's methods."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import data
import duckdb
import postgres_client
import pyarrow as pa
import pyarrow.dataset
import pytest
from postgres_server import PostgresServer
from server import Server

import dray

FAILING = "SELECT 1 / (value - 3000000) AS v FROM generate_series(1, 4000000)"


def test_reader(connection: dray.Connection, tmp_path: Path) -> None:
    reader = connection.query("SELECT id, text FROM numbers").reader()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema.names == ["id", "text"]
    pa.dataset.write_dataset(reader, tmp_path, format="parquet")
    assert pa.dataset.dataset(tmp_path).count_rows() == data.BIG


def test_nulls_and_empty_results(connection: dray.Connection) -> None:
    table = connection.query("SELECT * FROM nullable").reader().read_all()
    assert table.equals(connection.query("SELECT * FROM nullable").to_arrow())
    empty = connection.query("SELECT * FROM empty").reader().read_all()
    assert empty.num_rows == 0 and empty.schema.names[0] == "id"


def test_a_failure_keeps_its_exception(connection: dray.Connection) -> None:
    reader = connection.query(FAILING).reader()
    with pytest.raises(dray.ExecutionError, match="division by zero") as caught:
        while True:
            reader.read_next_batch()
    assert caught.value.sqlstate == "22012"
    with pytest.raises(dray.ExecutionError, match="division by zero"):
        connection.query(FAILING).reader().read_all()
    # Other languages get the text.
    failing = connection.query(FAILING).reader()  # noqa: F841
    with pytest.raises(duckdb.Error, match="division by zero"):
        duckdb.sql("SELECT count(v) FROM failing").fetchall()
    del failing, reader
    assert list(connection.query("SELECT 1")) == [(1,)]


def test_reader_of_postgres(filled: PostgresServer, extension: bool) -> None:
    with dray.connect(filled.uri()) as connection:
        choice = "auto" if extension else False
        reader = connection.query(postgres_client.NUMBERS, extension=choice).reader()
        assert reader.read_all().num_rows == postgres_client.BIG
        failing = "SELECT 1 / (id - 90000) FROM numbers"
        reader = connection.query(failing, extension=choice, partitions=1).reader()
        with pytest.raises(dray.ExecutionError, match="division by zero"):
            reader.read_all()


def test_a_reader_dropped_half_way(connection: dray.Connection) -> None:
    forever = "SELECT * FROM generate_series(1, 1000000000000)"
    reader = connection.query(forever).reader()
    assert reader.read_next_batch().num_rows > 0
    del reader
    assert list(connection.query("SELECT 1")) == [(1,)]
    with connection.query(forever) as result:
        reader = result.reader()
        reader.read_next_batch()
    with pytest.raises(dray.UsageError, match="the result is closed"):
        reader.read_next_batch()
    assert list(connection.query("SELECT 1")) == [(1,)]


def test_bounded_memory(server: Server) -> None:
    script = """
import resource, sys, pyarrow, dray
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with dray.connect(sys.argv[1]) as connection:
    connection.query("SELECT 1").reader().read_all()
    before, rows = peak(), 0
    sql = "SELECT value, value + 1 FROM generate_series(1, 40000000)"
    for batch in connection.query(sql).reader():
        rows += batch.num_rows
        del batch
    print(rows, peak() - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, server.unix], capture_output=True, text=True, check=True
    )
    rows, grown_kib = map(int, ran.stdout.split())
    assert rows == 40_000_000
    assert grown_kib < 64 * 1024


def test_other_names(connection: dray.Connection) -> None:
    sql = "SELECT i, d FROM nullable"
    assert connection.query(sql).arrow().equals(connection.query(sql).to_arrow())
    assert connection.query(sql).polars().equals(connection.query(sql).to_polars())
    pandas = connection.query("SELECT date32 FROM parquet_types").pandas(dates="object")
    assert pandas.equals(
        connection.query("SELECT date32 FROM parquet_types").to_pandas(dates="object")
    )
    assert list(connection.query(sql).numpy()) == list(connection.query(sql).to_numpy())
