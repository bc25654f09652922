"""Partitioned results through the ADBC driver: planned by one connection, read by others."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from adbc_client import connect, library
from adbc_driver_manager import dbapi
from postgres_parallel import ROWS
from postgres_server import PostgresServer

import dray

READER = """
import sys
from adbc_driver_manager import dbapi
library, uri, *parts = sys.argv[1:]
with dbapi.connect(library, uri, autocommit=True) as connection:
    for part in parts:
        with connection.cursor() as cursor:
            cursor.adbc_read_partition(bytes.fromhex(part))
            table = cursor.fetch_arrow_table()
            print(table.num_rows, sum(table.column("id").to_pylist()))
"""


@pytest.fixture
def adbc(big: PostgresServer) -> Iterator[dbapi.Connection]:
    with connect(big.uri(), {"dray.at_most": "4"}) as connection:
        yield connection


def read(connection: dbapi.Connection, part: bytes) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.adbc_read_partition(part)
        return cursor.fetch_arrow_table()


def test_other_processes_read(adbc: dbapi.Connection, big: PostgresServer) -> None:
    with adbc.cursor() as cursor:
        parts, schema = cursor.adbc_execute_partitions("SELECT id, filler FROM many")
    assert len(parts) == 4 and schema.names == ["id", "filler"]
    # The cursor is closed; the connection holds the snapshot and is free.
    big.run("INSERT INTO many SELECT 0, 'new', 0 FROM generate_series(1, 1000)")
    try:
        readers = [
            subprocess.run(
                [sys.executable, "-c", READER, str(library()), big.uri(), *map(bytes.hex, some)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for some in (parts[:2], parts[2:])
        ]
    finally:
        big.run("DELETE FROM many WHERE id = 0")
    read_by_all = [line.split() for reader in readers for line in reader.stdout.splitlines()]
    assert len(read_by_all) == 4
    assert sum(int(rows) for rows, _ in read_by_all) == ROWS
    assert sum(int(total) for _, total in read_by_all) == ROWS * (ROWS + 1) // 2
    # Parts are those of the package.
    with dray.read_partition(parts[0]) as result:
        assert result.to_arrow().num_rows == int(read_by_all[0][0]) and result.receipt


def test_the_planner_reads_too(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        parts, schema = cursor.adbc_execute_partitions("SELECT id, amount FROM many")
        tables = [read(adbc, part) for part in parts]
        assert all(table.schema == schema for table in tables)
        assert sum(table.num_rows for table in tables) == ROWS
        # A result that is given up leaves the connection without a transaction.
        cursor.adbc_read_partition(parts[0])
        cursor.fetchone()
    with adbc.cursor() as cursor:
        assert cursor.execute("SELECT 1 AS one").fetchall() == [(1,)]
        assert read(adbc, parts[0]).num_rows == tables[0].num_rows


def test_parameters_and_one_part(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        parts, _ = cursor.adbc_execute_partitions("SELECT id FROM many WHERE id <= $1", [7])
        assert len(parts) == 1 and read(adbc, parts[0]).num_rows == 7
        parts, _ = cursor.adbc_execute_partitions("SELECT count(*) AS n FROM many")
        assert read(adbc, parts[0]).to_pylist() == [{"n": ROWS}]


def test_failures(adbc: dbapi.Connection, big: PostgresServer) -> None:
    with adbc.cursor() as cursor:
        for sql, kind, what in (
            ("SELECT nothing FROM many", dbapi.ProgrammingError, "nothing"),
            ("DELETE FROM many", dbapi.Error, "only queries become partitions"),
        ):
            with pytest.raises(kind, match=what):
                cursor.adbc_execute_partitions(sql)
        parts, _ = cursor.adbc_execute_partitions("SELECT id FROM many")
    for part, what in (
        (parts[0][:-1], "it is cut off"),
        (parts[0].replace(b"id FROM", b"di FROM"), "was changed or damaged"),
        (b"nonsense", "not a descriptor"),
    ):
        with pytest.raises(dbapi.Error, match=what):
            read(adbc, part)
    with connect(big.uri(), autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("SELECT 1").fetchall()
        with pytest.raises(dbapi.Error, match="a part can't be read in a transaction"):
            read(other, parts[0])
        with pytest.raises(dbapi.Error, match="a transaction is open"):
            cursor.adbc_execute_partitions("SELECT id FROM many")
        other.rollback()
        assert read(other, parts[0]).num_rows > 0


def test_the_connection_is_the_lease(big: PostgresServer, adbc: dbapi.Connection) -> None:
    with connect(big.uri()) as planner, planner.cursor() as cursor:
        parts, _ = cursor.adbc_execute_partitions("SELECT id FROM many")
    with pytest.raises(dbapi.Error, match="the plan's snapshot is gone"):
        read(adbc, parts[0])
    options: Any = {"dray.lease": "1"}
    with connect(big.uri(), options) as planner, planner.cursor() as cursor:
        parts, _ = cursor.adbc_execute_partitions("SELECT id FROM many")
        time.sleep(1.3)
        with pytest.raises(dbapi.Error, match="the plan's lease ended"):
            read(adbc, parts[0])


def test_a_dray_server(server: Any) -> None:
    sql = "SELECT id, text FROM numbers WHERE id > $1"
    with connect(server.unix, {"dray.at_most": "3"}) as planner, planner.cursor() as cursor:
        whole = cursor.execute(sql, [100]).fetch_arrow_table()
        parts, schema = cursor.adbc_execute_partitions(sql, [100])
        assert len(parts) == 3 and schema == whole.schema
        tables = [read(planner, part) for part in parts[:1]]
        with connect(server.unix) as other:
            tables += [read(other, part) for part in parts[1:]]
        assert pa.concat_tables(tables).sort_by("id").equals(whole.sort_by("id"))
        cursor.execute("SELECT 1 AS one")
        assert cursor.fetchall() == [(1,)]
