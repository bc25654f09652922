"""Bulk ingest of the ADBC driver into PostgreSQL, through Python's driver manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adbc_client import connect
from adbc_driver_manager import AdbcStatusCode, dbapi
from postgres_server import PostgresServer
from server import Server

TABLE = pa.table({"id": [1, 2, None], "name": ["a", None, "ü"]})
ROWS = [(1, "a"), (2, None), (None, "ü")]


@pytest.fixture(params=[True, False], ids=["autocommit", "transactions"])
def adbc(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[dbapi.Connection]:
    postgres.run("DROP SCHEMA IF EXISTS ingest CASCADE", "CREATE SCHEMA ingest",
                 "DROP TABLE IF EXISTS ingested")  # fmt: skip
    with connect(postgres.uri(), autocommit=request.param) as connection:
        yield connection


def found(server: PostgresServer, table: str) -> list[tuple[Any, ...]]:
    with server.connect() as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def end(connection: dbapi.Connection) -> None:
    try:
        connection.commit()
    except dbapi.Error:
        # Autocommit is on.
        pass


def test_modes(postgres: PostgresServer, adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        with pytest.raises(dbapi.Error, match="does not exist") as missing:
            cursor.adbc_ingest("ingested", TABLE, "append")
        assert missing.value.status_code == AdbcStatusCode.NOT_FOUND
        assert cursor.adbc_ingest("ingested", TABLE, "create") == 3
        with pytest.raises(dbapi.Error, match="already exists") as exists:
            cursor.adbc_ingest("ingested", TABLE, "create")
        assert exists.value.status_code == AdbcStatusCode.ALREADY_EXISTS
        assert cursor.adbc_ingest("ingested", TABLE.to_reader(), "append") == 3
        assert cursor.adbc_ingest("ingested", TABLE.to_batches()[0], "create_append") == 3
        end(adbc)
        assert found(postgres, "ingested") == ROWS * 3
        assert cursor.adbc_ingest("ingested", TABLE.select(["id"]), "replace") == 3
        cursor.execute("SELECT count(*) AS n FROM ingested")
        assert cursor.fetchall() == [(3,)]
        end(adbc)
    assert found(postgres, "ingested") == [(1,), (2,), (None,)]


def test_schemas_catalogs_and_temporary_tables(
    postgres: PostgresServer, adbc: dbapi.Connection
) -> None:
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("t", TABLE, "create", db_schema_name="ingest")
        cursor.adbc_ingest("t", TABLE, "append", db_schema_name="ingest",
                           catalog_name="postgres")  # fmt: skip
        end(adbc)
        assert found(postgres, "ingest.t") == ROWS * 2
        with pytest.raises(dbapi.NotSupportedError, match='"elsewhere".*"postgres".*connect to'):
            cursor.adbc_ingest("t", TABLE, "create", catalog_name="elsewhere")
    # A cursor keeps the options of its last ingest.
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("mine", TABLE, "create", temporary=True)
        cursor.adbc_ingest("mine", TABLE, "append", temporary=True)
        cursor.execute("SELECT count(*) FROM pg_temp.mine")
        assert cursor.fetchone() == (6,)
        with pytest.raises(dbapi.Error, match="temporary table has no schema") as caught:
            cursor.adbc_ingest("x", TABLE, "create", temporary=True, db_schema_name="ingest")
        assert caught.value.status_code == AdbcStatusCode.INVALID_STATE


def test_errors_leave_the_connection_usable(
    postgres: PostgresServer, adbc: dbapi.Connection
) -> None:
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("ingested", pa.table({"v": pa.array([1], pa.int16())}))
        with pytest.raises(dbapi.Error, match='column "v", row 2: 40000') as caught:
            cursor.adbc_ingest("ingested", pa.table({"v": [1, 40000]}), "append")
        assert caught.value.sqlstate == "22003"
        for strange, match in (({"w": [1]}, 'no column "w"'), ({"v": [b"a"]}, 'column "v"')):
            with pytest.raises(dbapi.Error, match=match) as caught:
                cursor.adbc_ingest("ingested", pa.table(strange), "append")
            assert caught.value.status_code == AdbcStatusCode.ALREADY_EXISTS
        cursor.execute("SELECT count(*) FROM ingested")
        assert cursor.fetchone() == (1,)
        end(adbc)
    assert found(postgres, "ingested") == [(1,)]


def test_pandas_and_polars(postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS ingested")
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    with connect(postgres.uri(), autocommit=False) as connection:
        assert frame.to_sql("ingested", connection, index=False) == 2
        with pytest.raises(ValueError, match="exists"):
            frame.to_sql("ingested", connection, index=False)
        frame.to_sql("ingested", connection, index=False, if_exists="append")
        assert found(postgres, "ingested") == [(1, "a"), (2, "b")] * 2
        frame.to_sql("ingested", connection, index=False, if_exists="replace")
        assert pd.read_sql("SELECT * FROM ingested", connection).equals(frame)
        again = pl.from_pandas(frame)
        again.write_database("ingested", connection, if_table_exists="append", engine="adbc")
        again.write_database("ingest_polars", connection, if_table_exists="replace", engine="adbc")
    assert found(postgres, "ingested") == [(1, "a"), (2, "b")] * 2
    assert found(postgres, "ingest_polars") == [(1, "a"), (2, "b")]


def test_dray_servers_take_nothing(server: Server) -> None:
    with connect(server.unix) as connection, connection.cursor() as cursor:
        with pytest.raises(dbapi.NotSupportedError, match="only reads"):
            cursor.adbc_ingest("t", TABLE)
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_several_connections(postgres: PostgresServer, adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"dray.ingest.partitions": "2"})
        assert cursor.adbc_statement.get_option("dray.ingest.partitions") == "2"
        if adbc._autocommit:
            assert cursor.adbc_ingest("ingested", TABLE, "create") == 3
            assert sorted(found(postgres, "ingested"), key=str) == sorted(ROWS, key=str)
            with pytest.raises(dbapi.Error, match="several transactions"):
                cursor.adbc_ingest("ingested", TABLE, "append")
        else:
            # Whoever asks for it has to turn autocommit on.
            with pytest.raises(dbapi.Error, match="a transaction is open"):
                cursor.adbc_ingest("ingested", TABLE, "create")
        with pytest.raises(dbapi.Error, match="dray.ingest.partitions"):
            cursor.adbc_statement.set_options(**{"dray.ingest.partitions": "many"})


def test_permanent_tables_behind_temporary_ones(
    postgres: PostgresServer, adbc: dbapi.Connection
) -> None:
    """Without the option temporary, data goes to a permanent table."""
    with adbc.cursor() as cursor:
        cursor.adbc_ingest("ingested", TABLE, "create")
        cursor.adbc_ingest("ingested", TABLE.select(["id"]), "create", temporary=True)
        cursor.adbc_ingest("ingested", TABLE, "append", temporary=False)
        cursor.execute("SELECT count(*) FROM pg_temp.ingested")
        assert cursor.fetchone() == (3,)
        end(adbc)
        assert found(postgres, "ingested") == ROWS * 2
        cursor.execute("DROP TABLE public.ingested")
        with pytest.raises(dbapi.Error, match="does not exist") as missing:
            cursor.adbc_ingest("ingested", TABLE, "append", temporary=False)
        assert missing.value.status_code == AdbcStatusCode.NOT_FOUND
        cursor.execute("SET search_path TO nowhere, ingest, public")
        cursor.execute("CREATE TABLE ingest.ingested AS SELECT 1::bigint AS id, 'x' AS name")
        cursor.adbc_ingest("ingested", TABLE, "append", temporary=False)
        end(adbc)
    assert found(postgres, "ingest.ingested") == [(1, "x"), *ROWS]


def test_tables_without_a_name(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        with pytest.raises(dbapi.Error, match="target_table is empty"):
            cursor.adbc_ingest("", TABLE)
        with pytest.raises(dbapi.Error, match="64 bytes"):
            cursor.adbc_ingest("x" * 64, TABLE)
