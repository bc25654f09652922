"""The ADBC driver, through Python's driver manager, with a Dray server."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adbc_client import connect, library, rows
from adbc_driver_manager import AdbcStatement, AdbcStatusCode, dbapi
from data import BIG
from server import Server

import dray

ENDLESS = "SELECT value, value * 2 AS double FROM generate_series(1, 100000000000)"
SILENT = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"


@pytest.fixture
def adbc(server: Server) -> Iterator[dbapi.Connection]:
    with connect(server.unix) as connection:
        yield connection


def status(raised: pytest.ExceptionInfo[dbapi.Error]) -> AdbcStatusCode:
    return AdbcStatusCode(raised.value.status_code)


@pytest.mark.parametrize("table", ["parquet_types", "arrow_types", "nullable", "empty", "lines"])
def test_types_are_those_of_the_package(
    adbc: dbapi.Connection, connection: dray.Connection, table: str
) -> None:
    sql = f"SELECT * FROM {table}"
    expected = connection.query(sql).arrow()
    with adbc.cursor() as cursor:
        fetched = cursor.execute(sql).fetch_arrow_table()
        assert fetched.schema.equals(expected.schema, check_metadata=True)
        # NaN is not equal to itself.
        assert str(fetched.to_pylist()) == str(expected.to_pylist())
        assert cursor.adbc_execute_schema(sql).equals(expected.schema, check_metadata=True)
    described = adbc.adbc_get_table_schema(table)
    assert described.equals(expected.schema, check_metadata=True)


def test_a_stream_comes_in_batches(adbc: dbapi.Connection) -> None:
    with adbc.cursor(
        adbc_stmt_kwargs={"dray.batch_rows": "1000", "dray.batch_bytes": "1"}
    ) as cursor:
        reader = cursor.execute("SELECT * FROM numbers").fetch_record_batch()
        batches = list(reader)
    assert len(batches) > 5 and sum(batch.num_rows for batch in batches) == BIG


def test_parameters(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        cursor.execute("SELECT text FROM numbers WHERE id = $1", (17,))
        assert cursor.fetchall() == [("row 17",)]
        cursor.execute("SELECT $1 + 1, $2", (1, "a"))
        assert cursor.fetchall() == [(2, "a")]
        # A row of parameters after the other.
        three = pa.table({"id": pa.array([3, 1, 2], pa.int64())})
        cursor.execute("SELECT text FROM numbers WHERE id = $1", three)
        assert cursor.fetchall() == [("row 3",), ("row 1",), ("row 2",)]
        cursor.execute("SELECT text FROM numbers WHERE id = $1", three.slice(0, 0))
        assert cursor.fetchall() == []
        assert cursor.description[0][0] == "text"
        # Parameters are used once.
        with pytest.raises(dbapi.Error):
            cursor.execute("SELECT text FROM numbers WHERE id = $1")


def test_parameters_are_described(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        schema = cursor.adbc_prepare("SELECT text FROM numbers WHERE id = $1 OR id = $2")
        assert [field.type for field in schema] == [pa.null(), pa.null()]
        assert cursor.adbc_execute_schema("SELECT id FROM numbers WHERE id = $1").names == ["id"]
        with pytest.raises(dbapi.NotSupportedError, match="have no names"):
            cursor.execute("SELECT $1", {"a": 1})


def test_parameters_are_of_their_statement(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        # Refused, then run again without parameters.
        with pytest.raises(dbapi.NotSupportedError, match="have no names"):
            cursor.execute("SELECT $1", {"a": 1})
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute("SELECT $1")
        # Only described.
        assert cursor.adbc_execute_schema("SELECT $1 AS a", (1,)).names == ["a"]
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute("SELECT $1 AS b")
        assert cursor.adbc_execute_schema("SELECT $1 AS a", (1,)).names == ["a"]
        assert cursor.execute("SELECT 2").fetchone() == (2,)
    # Others bind before they set the SQL.
    with AdbcStatement(adbc.adbc_connection) as statement:
        schema, batch = pa.record_batch({"a": [3]}).__arrow_c_array__()
        statement.bind(batch, schema)
        statement.set_sql_query("SELECT $1 AS a")
        stream, _ = statement.execute_query()
        assert pa.RecordBatchReader.from_stream(stream).read_all().to_pydict() == {"a": [3]}


def test_other_types_for_a_later_row(adbc: dbapi.Connection) -> None:
    reader = pa.RecordBatchReader.from_batches(
        pa.schema({"a": pa.int64()}), [pa.record_batch({"a": [1, 2]})]
    )
    with adbc.cursor() as cursor:
        cursor.execute("SELECT $1 AS a", reader)
        assert cursor.fetch_arrow_table().to_pydict() == {"a": [1, 2]}


def test_errors_have_status_and_sqlstate(adbc: dbapi.Connection) -> None:
    for sql, kind, code, sqlstate in [
        ("SELECT * FROM nowhere", dbapi.ProgrammingError, AdbcStatusCode.NOT_FOUND, "42P01"),
        ("SELEC 1", dbapi.ProgrammingError, AdbcStatusCode.INVALID_ARGUMENT, "42601"),
        ("SELECT 1 / 0", dbapi.DataError, AdbcStatusCode.INVALID_DATA, "22012"),
    ]:
        with adbc.cursor() as cursor, pytest.raises(kind) as raised:
            cursor.execute(sql)
        assert (status(raised), raised.value.sqlstate) == (code, sqlstate), raised.value
    with adbc.cursor() as cursor, pytest.raises(dbapi.ProgrammingError, match="no SQL") as raised:
        cursor.adbc_statement.execute_query()
    assert status(raised) == AdbcStatusCode.INVALID_STATE


def test_an_error_in_mid_stream_keeps_its_sqlstate(adbc: dbapi.Connection) -> None:
    sql = "SELECT 1 / (value - 500000) AS n FROM generate_series(1, 1000000)"
    with adbc.cursor(adbc_stmt_kwargs={"dray.batch_bytes": "1"}) as cursor:
        cursor.execute(sql)
        with pytest.raises(dbapi.DataError, match="zero") as raised:
            cursor.fetch_arrow_table()
        assert raised.value.sqlstate == "22012"
        assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_cancel_from_another_thread(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        cursor.execute(ENDLESS)
        timer = threading.Timer(0.2, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError) as raised:
            while cursor.fetchone():
                pass
        assert status(raised) == AdbcStatusCode.CANCELLED
        timer.join()
        # The first batch of this one never comes.
        timer = threading.Timer(0.2, adbc.adbc_cancel)
        timer.start()
        began = time.monotonic()
        with pytest.raises(dbapi.OperationalError) as raised:
            cursor.execute(SILENT)
        assert status(raised) == AdbcStatusCode.CANCELLED and time.monotonic() - began < 10
        timer.join()
        assert cursor.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(dbapi.ProgrammingError, match="nothing runs"):
            cursor.execute("SELECT 1").fetchall()
            cursor.adbc_cancel()


def test_one_statement_at_a_time(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as first, adbc.cursor() as second:
        first.execute(ENDLESS)
        with pytest.raises(dbapi.ProgrammingError, match="busy with another result") as raised:
            second.execute("SELECT 1")
        assert status(raised) == AdbcStatusCode.INVALID_STATE
        # A result that is dropped half-read frees the connection.
        first.fetchone()
        first.execute("SELECT 2")
        # So does a small one that nobody has read yet.
        assert second.execute("SELECT 1").fetchone() == (1,)
        assert first.fetchone() == (2,)


def test_executing_again_invalidates_the_result(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        statement = cursor.adbc_statement
        statement.set_sql_query(ENDLESS)
        stream, _ = statement.execute_query()
        reader = pa.RecordBatchReader._import_from_c(stream.address)
        reader.read_next_batch()
        statement.set_sql_query("SELECT 1 AS a")
        again, _ = statement.execute_query()
        with pytest.raises(pa.ArrowInvalid, match="executed again"):
            reader.read_next_batch()
        reader.close()
        assert pa.RecordBatchReader._import_from_c(again.address).read_all().num_rows == 1


def test_a_result_outlives_its_statement(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        reader = pa.RecordBatchReader.from_stream(
            cursor.execute("SELECT * FROM numbers").fetch_arrow()
        )
    assert reader.read_all().num_rows == BIG


def test_options(server: Server) -> None:
    with connect(server.unix, {"dray.compression": "zstd:5"}) as connection:
        assert connection.adbc_connection.get_option("dray.compression") == "zstd:5"
        connection.adbc_connection.set_options(**{"dray.checksums": "on"})
        with connection.cursor(adbc_stmt_kwargs={"dray.strings": "view"}) as cursor:
            statement = cursor.adbc_statement
            assert statement.get_option("dray.checksums") == "on"
            assert statement.get_option_int("dray.batch_rows") == 65536
            cursor.execute("SELECT text FROM numbers LIMIT 1")
            assert cursor.fetch_arrow_table().schema.field("text").type == pa.string_view()
            with pytest.raises(dbapi.NotSupportedError, match="no option dray.nothing"):
                statement.set_options(**{"dray.nothing": "1"})
            with pytest.raises(dbapi.ProgrammingError, match="expected auto, on, off") as raised:
                statement.set_options(**{"dray.checksums": "maybe"})
            assert status(raised) == AdbcStatusCode.INVALID_ARGUMENT
            with pytest.raises(dbapi.ProgrammingError) as raised:
                statement.get_option("dray.nothing")
            assert status(raised) == AdbcStatusCode.NOT_FOUND
            statement.set_options(**{"dray.partitions": "2"})
            with pytest.raises(dbapi.ProgrammingError, match="for PostgreSQL"):
                cursor.execute("SELECT 1")


def test_connecting_fails_with_a_reason() -> None:
    for uri, code in [
        ("dray://127.0.0.1:1", AdbcStatusCode.IO),
        ("oracle://localhost", AdbcStatusCode.INVALID_ARGUMENT),
    ]:
        with pytest.raises(dbapi.Error) as raised:
            connect(uri, {"dray.timeout": "5"})
        assert status(raised) == code, raised.value
    with pytest.raises(dbapi.ProgrammingError, match="no uri was set"):
        dbapi.connect(str(library()))


def test_a_token_is_the_password(server: Server) -> None:
    # This server has no token, and takes any.
    with connect(server.unix, {"password": "s3cret"}) as connection:
        assert rows(connection, "SELECT 1") == [(1,)]
    with pytest.raises(dbapi.ProgrammingError, match="has no users"):
        connect(server.unix, {"username": "me"})


def test_there_are_no_transactions(server: Server) -> None:
    with pytest.warns(match="Cannot disable autocommit"):
        connection = connect(server.unix, autocommit=False)
    with connection:
        connection.commit()
        connection.rollback()
        with pytest.raises(dbapi.NotSupportedError, match="has no transactions"):
            connection.adbc_connection.set_autocommit(False)
        with pytest.raises(dbapi.ProgrammingError, match="autocommit is on") as raised:
            connection.adbc_connection.commit()
        assert status(raised) == AdbcStatusCode.INVALID_STATE
        assert connection.adbc_connection.get_option("adbc.connection.readonly") == "true"


def test_what_is_not_implemented_says_so(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        with pytest.raises(dbapi.NotSupportedError, match="only reads.*no bulk ingest"):
            cursor.adbc_ingest("t", pa.table({"a": [1]}))
        with pytest.raises(dbapi.NotSupportedError, match="Substrait plans are not implemented"):
            cursor.execute(b"plan")


def test_objects(adbc: dbapi.Connection) -> None:
    [catalog] = adbc.adbc_get_objects(depth="catalogs").read_all().to_pylist()
    assert catalog == {"catalog_name": "datafusion", "catalog_db_schemas": None}
    [catalog] = adbc.adbc_get_objects(depth="db_schemas").read_all().to_pylist()
    assert [schema["db_schema_name"] for schema in catalog["catalog_db_schemas"]] == [
        "dray",
        "public",
    ]
    objects = adbc.adbc_get_objects(table_name_filter="num%", column_name_filter="_d").read_all()
    [catalog] = objects.to_pylist()
    tables = {
        schema["db_schema_name"]: schema["db_schema_tables"]
        for schema in catalog["catalog_db_schemas"]
    }
    [table] = tables["public"]
    assert (table["table_name"], table["table_type"]) == ("numbers", "table")
    [column] = table["table_columns"]
    assert (column["column_name"], column["ordinal_position"]) == ("id", 1)
    assert column["xdbc_type_name"] == "Int64"
    nothing = adbc.adbc_get_objects(catalog_filter="nowhere").read_all()
    assert nothing.num_rows == 0
    assert adbc.adbc_get_table_types() == ["table", "view"]


def test_a_table_that_is_missing(adbc: dbapi.Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError) as raised:
        adbc.adbc_get_table_schema("nowhere")
    assert status(raised) == AdbcStatusCode.NOT_FOUND
    table = adbc.adbc_get_table_schema("numbers", db_schema_filter="public")
    assert table.names == ["id", "text"]
    assert adbc.adbc_get_table_schema("tables", db_schema_filter="dray").names[0] == "table_name"


def test_info(adbc: dbapi.Connection) -> None:
    info = adbc.adbc_get_info()
    assert info["vendor_name"] == "Dray" and info["vendor_version"] == dray.__version__
    assert info["driver_name"] == "Dray ADBC driver"
    assert info["driver_adbc_version"] == 1_001_000
    assert adbc.adbc_current_catalog == "datafusion" and adbc.adbc_current_db_schema == "public"


def test_pandas_and_polars(adbc: dbapi.Connection) -> None:
    sql = "SELECT id, text FROM numbers ORDER BY id LIMIT 3"
    frame = pd.read_sql(sql, adbc)
    assert list(frame["text"]) == ["row 0", "row 1", "row 2"]
    assert pl.read_database(sql, adbc)["id"].to_list() == [0, 1, 2]


# pandas does not close the cursor of a statement that fails.
@pytest.mark.filterwarnings("ignore:A adbc_driver_manager.dbapi.Cursor was not:ResourceWarning")
def test_pandas_after_an_error(adbc: dbapi.Connection) -> None:
    with pytest.raises(pd.errors.DatabaseError, match="nowhere"):
        pd.read_sql("SELECT * FROM nowhere", adbc)
    gc.collect()
    assert len(pd.read_sql("SELECT id FROM numbers LIMIT 3", adbc)) == 3


def test_statistics_are_row_counts(adbc: dbapi.Connection) -> None:
    [catalog] = adbc.adbc_get_statistics(table_name_filter="num%").read_all().to_pylist()
    assert catalog["catalog_name"] == "datafusion"
    [schema] = catalog["catalog_db_schemas"]
    [numbers] = [row for row in schema["db_schema_statistics"] if row["table_name"] == "numbers"]
    assert numbers == {
        "table_name": "numbers",
        "column_name": None,
        "statistic_key": 6,
        "statistic_value": BIG,
        "statistic_is_approximate": False,
    }
    assert adbc.adbc_get_statistics(db_schema_filter="nowhere").read_all().num_rows == 0
    assert adbc.adbc_get_statistic_names().read_all().num_rows == 0
