"""`dray load` and `dray copy`, into PostgreSQL."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from postgres_server import PostgresServer
from server import Server, binary

TABLE = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", None, "ü"]})
ROWS = [(1, "a"), (2, None), (None, "ü")]


@pytest.fixture
def oracle(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    with postgres.connect() as oracle:
        oracle.execute("DROP SCHEMA IF EXISTS p CASCADE")
        oracle.execute("CREATE SCHEMA p")
        yield oracle


def dray(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary(), *map(str, arguments)], capture_output=True, text=True, **options
    )  # type: ignore[call-overload,no-any-return]


def found(oracle: psycopg.Connection, table: str = "p.t") -> list[tuple[object, ...]]:
    return oracle.execute(f"SELECT * FROM {table}").fetchall()


def test_load(postgres: PostgresServer, oracle: psycopg.Connection, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(TABLE, tmp_path / "b.arrow", compression="uncompressed")
    (tmp_path / "c.csv").write_text("id,name\n7,x\n8,y\n")
    (tmp_path / "d.ndjson").write_text('{"id": 9, "name": "z"}\n')
    place = ["--table", "t", "--schema", "p"]
    done = dray("load", tmp_path / "a.parquet", postgres.uri(), *place)
    assert done.returncode == 0 and "t: 3 rows" in done.stderr, done.stderr
    assert found(oracle) == ROWS
    again = dray("load", tmp_path / "a.parquet", postgres.uri(), *place)
    assert again.returncode == 1 and "already exists" in again.stderr
    # Files in their order.
    both = [tmp_path / "a.parquet", tmp_path / "b.arrow"]
    done = dray("load", *both, postgres.uri(), *place, "--mode", "replace", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert found(oracle) == ROWS * 2
    for name in ("c.csv", "d.ndjson"):
        done = dray("load", tmp_path / name, postgres.uri(), *place, "--mode", "append")
        assert done.returncode == 0, done.stderr
    assert found(oracle)[6:] == [(7, "x"), (8, "y"), (9, "z")]
    other = dray("load", tmp_path / "a.parquet", tmp_path / "c.csv", postgres.uri(), *place)
    assert other.returncode == 2 and "column 'id' is Int32 in" in other.stderr


def test_load_types_and_values_that_do_not_fit(
    postgres: PostgresServer, oracle: psycopg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "c.csv").write_text("id,v\n7,1.5\n8,2.25\n")
    place = ["-t", "t", "--schema", "p", "--type", "id=smallint"]
    done = dray("load", tmp_path / "c.csv", postgres.uri(), *place)
    assert done.returncode == 0, done.stderr
    (tmp_path / "d.csv").write_text("id,v\n7,1.5\n70000,2.25\n")
    done = dray("load", tmp_path / "d.csv", postgres.uri(), *place[:4], "--mode", "append")
    assert done.returncode == 1
    assert 'column "id", row 2: 70000 can\'t be written as smallint' in done.stderr
    assert len(found(oracle)) == 2
    missing = dray("load", tmp_path / "none.csv", postgres.uri(), *place)
    assert missing.returncode == 2 and "none.csv" in missing.stderr


def test_copy(postgres: PostgresServer, oracle: psycopg.Connection, server: Server) -> None:
    oracle.execute("CREATE DATABASE copied")
    try:
        sql = "SELECT i, i::numeric / 8 AS n, 'row ' || i AS t FROM generate_series(1, 200000) i"
        to = postgres.uri("copied")
        done = dray("copy", postgres.uri(), sql, to, "--table", "t")
        assert done.returncode == 0 and "t: 200,000 rows" in done.stderr, done.stderr
        with postgres.connect("copied") as other:
            sums = "SELECT count(*), sum(i), sum(n), sum(length(t)) FROM "
            (want,) = oracle.execute(f"{sums} ({sql}) s").fetchall()
            assert other.execute(sums + "t").fetchall() == [want]
            served = dray("copy", server.unix, "SELECT 1 AS one, 'x' AS x", to, "-t", "served")
            assert served.returncode == 0, served.stderr
            assert other.execute("SELECT * FROM served").fetchall() == [(1, "x")]
        # The source fails in the middle: nothing is there.
        failing = "SELECT 1 / (100000 - i) FROM generate_series(1, 200000) i"
        failed = dray("copy", postgres.uri(), failing, to, "-t", "failed")
        assert failed.returncode == 1 and "division by zero" in failed.stderr
        with postgres.connect("copied") as other:
            assert other.execute("SELECT to_regclass('failed')").fetchone() == (None,)
    finally:
        oracle.execute("DROP DATABASE copied (FORCE)")


def test_several_connections(
    postgres: PostgresServer, oracle: psycopg.Connection, tmp_path: Path
) -> None:
    table = pa.table({"id": range(200_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    place = ["-t", "t", "--schema", "p", "--connections"]
    done = dray("load", tmp_path / "a.parquet", postgres.uri(), *place, "3")
    assert done.returncode == 0 and "t: 200,000 rows" in done.stderr, done.stderr
    sums = "SELECT count(*), sum(id), count(DISTINCT id) FROM p.t"
    want = [(200_000, sum(range(200_000)), 200_000)]
    assert oracle.execute(sums).fetchall() == want
    sql = "SELECT * FROM p.t"
    copy = dray("copy", postgres.uri(), sql, postgres.uri(), *place, "2", "--mode", "replace")
    assert copy.returncode == 0, copy.stderr
    assert oracle.execute(sums).fetchall() == want
    for more, why in [(["2", "--mode", "append"], "several transactions"), (["0"], "1 to 64")]:
        refused = dray("load", tmp_path / "a.parquet", postgres.uri(), *place, *more)
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    nameless = dray("load", tmp_path / "a.parquet", postgres.uri(), "-t", "")
    assert nameless.returncode == 2 and "the table has an empty name" in nameless.stderr
    nowhere = dray("copy", postgres.uri(), sql, postgres.uri(), "-t", "t", "--schema", "")
    assert nowhere.returncode == 2 and "the schema has an empty name" in nowhere.stderr


def test_what_is_refused(postgres: PostgresServer, server: Server, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    into = dray("load", tmp_path / "a.parquet", server.unix, "-t", "t")
    assert into.returncode == 2 and "only reads" in into.stderr and "PostgreSQL" in into.stderr
    into = dray("copy", postgres.uri(), "SELECT 1", server.unix, "-t", "t")
    assert into.returncode == 2 and "only reads" in into.stderr
    nowhere = dray("copy", postgres.uri(), "SELECT 1", "-t", "t")
    assert nowhere.returncode == 2 and "name the database to write into" in nowhere.stderr


def test_ctrl_c(postgres: PostgresServer, oracle: psycopg.Connection) -> None:
    sql = "SELECT * FROM generate_series(1, 1000000000) i"
    program = subprocess.Popen(
        [binary(), "copy", postgres.uri(), sql, postgres.uri(), "-t", "endless", "--schema", "p"],
        stderr=subprocess.PIPE,
    )
    time.sleep(2)
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=10)
    assert program.returncode == 130
    assert oracle.execute("SELECT to_regclass('p.endless')").fetchone() == (None,)
