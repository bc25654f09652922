"""Writing into MariaDB by `dray load`, `dray copy` and the ADBC driver."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adbc_client import connect
from adbc_driver_manager import AdbcStatusCode, dbapi
from mysql_target import ROWS, TABLE, MysqlTarget
from server import binary

WAYS = pytest.mark.parametrize("mysql_target", ["load"], indirect=True)


def dray(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True)


@WAYS
def test_load_and_copy(mysql_target: MysqlTarget, tmp_path: Path) -> None:
    target, uri = mysql_target, mysql_target.server.uri(database="w")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,price\n1,1.50\n2,2.25\n")
    done = dray("load", tmp_path / "a.parquet", uri, "--table", "t")
    assert done.returncode == 0 and "t: 3 rows" in done.stderr, done.stderr
    assert target.rows() == ROWS
    done = dray("load", tmp_path / "a.parquet", uri, "-t", "t", "--mode", "append")
    assert done.returncode == 0 and target.rows() == ROWS * 2
    done = dray("load", tmp_path / "a.parquet", uri, "-t", "t")
    assert done.returncode == 1 and "already exists" in done.stderr, done.stderr
    done = dray("load", tmp_path / "b.csv", uri, "-t", "p", "--schema", "other", "--type",
                "price=double", "--quiet")  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert target.rows("other.p") == [("1", "1.5"), ("2", "2.25")]
    sql = "SELECT seq AS id, concat('row ', seq) AS name FROM seq_1_to_100000"
    done = dray("copy", uri, sql, uri, "-t", "copied")
    assert done.returncode == 0 and "copied: 100,000 rows" in done.stderr, done.stderr
    want = target.server.rows(f"SELECT count(*), sum(id), sum(length(name)) FROM ({sql}) s")
    assert target.rows("w.copied", "count(*), sum(id), sum(length(name))") == want
    # The source fails in the middle: nothing is there.
    failing = "SELECT CAST(if(seq < 50000, seq, 'x') AS int), exp(seq) FROM seq_1_to_100000"
    failed = dray("copy", uri, failing.replace("exp(seq)", "(SELECT seq UNION SELECT seq / 0.5 "
                  "FROM seq_1_to_2 LIMIT 5)"), uri, "-t", "failed")  # fmt: skip
    assert failed.returncode == 1, failed.stderr
    assert "failed" not in target.tables()
    done = dray("load", tmp_path / "a.parquet", uri, "-t", "u", "--connections", "2")
    assert done.returncode == 0 and set(target.rows("w.u")) == set(ROWS), done.stderr
    refused = dray("load", tmp_path / "a.parquet", uri, "-t", "u", "--mode", "append",
                   "--connections", "2")  # fmt: skip
    assert refused.returncode == 2 and "several transactions" in refused.stderr, refused.stderr


@pytest.fixture(params=[True, False], ids=["autocommit", "transactions"])
def adbc(mysql_target: MysqlTarget, request: pytest.FixtureRequest) -> Iterator[dbapi.Connection]:
    uri = mysql_target.server.uri(database="w")
    with connect(uri, autocommit=request.param) as connection:
        yield connection


def end(connection: dbapi.Connection) -> None:
    try:
        connection.commit()
    except dbapi.Error:
        # Autocommit is on.
        pass


@WAYS
def test_ingest(mysql_target: MysqlTarget, adbc: dbapi.Connection) -> None:
    target = mysql_target
    with adbc.cursor() as cursor:
        with pytest.raises(dbapi.Error, match="does not exist") as missing:
            cursor.adbc_ingest("t", TABLE, "append")
        assert missing.value.status_code == AdbcStatusCode.NOT_FOUND
        end(adbc)
        assert cursor.adbc_ingest("t", TABLE, "create") == 3
        with pytest.raises(dbapi.Error, match="already exists") as exists:
            cursor.adbc_ingest("t", TABLE, "create")
        assert exists.value.status_code == AdbcStatusCode.ALREADY_EXISTS
        assert cursor.adbc_ingest("t", TABLE.to_reader(), "append") == 3
        if not adbc._autocommit:
            assert len(target.rows()) == 3
            # A new table would end the transaction.
            with pytest.raises(dbapi.Error, match="a transaction is open"):
                cursor.adbc_ingest("u", TABLE, "create")
        assert cursor.adbc_ingest("t", TABLE.to_batches()[0], "create_append") == 3
        end(adbc)
        assert target.rows() == ROWS * 3
        assert cursor.adbc_ingest("t", TABLE.select(["name"]), "replace") == 3
        assert target.rows() == [(name,) for _, name in ROWS]
        assert cursor.adbc_ingest("v", TABLE, "create_append") == 3
        with pytest.raises(dbapi.Error, match='no column "w"') as other:
            cursor.adbc_ingest("t", pa.table({"w": [1]}), "append")
        assert other.value.status_code == AdbcStatusCode.ALREADY_EXISTS
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchall() == [(3,)]
        end(adbc)


@WAYS
def test_a_cancelled_ingest_says_what_is_left(mysql_target: MysqlTarget) -> None:
    server = mysql_target.server
    server.run("CREATE OR REPLACE USER keeper", "GRANT SELECT, INSERT, CREATE ON w.* TO keeper")
    with (
        connect(f"mysql://keeper@127.0.0.1:{server.port}/w") as connection,
        connection.cursor() as cursor,
    ):

        def cancelled() -> Iterator[pa.RecordBatch]:
            yield TABLE.to_batches()[0]
            cursor.adbc_cancel()
            while True:
                yield TABLE.to_batches()[0]

        reader = pa.RecordBatchReader.from_batches(TABLE.schema, cancelled())
        with pytest.raises(dbapi.Error, match="cancelled.*table .* may be left") as caught:
            cursor.adbc_ingest("t", reader, "create")
        assert caught.value.status_code == AdbcStatusCode.CANCELLED
        (left,) = mysql_target.tables()
        assert left.startswith("dray_unfinished_t_") and left in str(caught.value)


@WAYS
def test_ingest_into_other_databases(mysql_target: MysqlTarget, adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("t", TABLE, "create", catalog_name="other")
        cursor.adbc_ingest("t", TABLE, "append", db_schema_name="other")
        with pytest.raises(dbapi.NotSupportedError, match="in a database alone"):
            cursor.adbc_ingest("t", TABLE, "append", catalog_name="other", db_schema_name="w")
        end(adbc)
    assert mysql_target.rows("other.t") == ROWS * 2
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("mine", TABLE, "create", temporary=True)
        cursor.adbc_ingest("mine", TABLE, "append", temporary=True)
        cursor.execute("SELECT count(*) FROM mine")
        assert cursor.fetchone() == (6,)
    assert mysql_target.tables() == []


@WAYS
def test_pandas_and_polars(mysql_target: MysqlTarget) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    rows = [("1", "a"), ("2", "b")]
    with connect(mysql_target.server.uri(database="w"), autocommit=False) as connection:
        assert frame.to_sql("t", connection, index=False) == 2
        with pytest.raises(ValueError, match="exists"):
            frame.to_sql("t", connection, index=False)
        frame.to_sql("t", connection, index=False, if_exists="append")
        assert mysql_target.rows() == rows * 2
        with connection.cursor() as cursor:
            # pandas drops the table by a name in double quotes.
            cursor.execute("SET sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')")
        frame.to_sql("t", connection, index=False, if_exists="replace")
        assert pd.read_sql("SELECT * FROM t", connection).equals(frame)
        again = pl.from_pandas(frame)
        again.write_database("t", connection, if_table_exists="append", engine="adbc")
        again.write_database("other.p", connection, if_table_exists="replace", engine="adbc")
    assert mysql_target.rows() == rows * 2
    assert mysql_target.rows("other.p") == rows
