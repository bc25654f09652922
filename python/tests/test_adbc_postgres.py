"""The ADBC driver, through Python's driver manager, with PostgreSQL."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adbc_client import connect, rows, table
from adbc_driver_manager import AdbcStatusCode, dbapi
from postgres_client import BIG, FOREVER, NUMBERS, SILENT
from postgres_server import PostgresServer
from postgres_types import DATABASE

import dray

SCHEMA = """
DROP SCHEMA IF EXISTS shop CASCADE;
CREATE SCHEMA shop;
CREATE TABLE shop.customers (id integer PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE shop.orders (
    id bigint GENERATED ALWAYS AS IDENTITY,
    customer integer REFERENCES shop.customers (id),
    amount numeric(10,2) DEFAULT 0 CHECK (amount >= 0),
    double_amount numeric(12,2) GENERATED ALWAYS AS (amount * 2) STORED,
    PRIMARY KEY (id, customer)
);
COMMENT ON COLUMN shop.orders.amount IS 'in euros';
CREATE VIEW shop.seen AS SELECT id FROM shop.orders;
CREATE MATERIALIZED VIEW shop.kept AS SELECT id FROM shop.orders;
CREATE TABLE shop."odd ""name" ("a'b" integer);
"""


@pytest.fixture(scope="session")
def shop(postgres: PostgresServer) -> PostgresServer:
    postgres.run(SCHEMA)
    return postgres


@pytest.fixture
def adbc(filled: PostgresServer, extension: bool) -> Iterator[dbapi.Connection]:
    options = {"dray.extension": "auto" if extension else "never"}
    with connect(filled.uri(), options) as connection:
        yield connection


@pytest.fixture
def transactions(filled: PostgresServer) -> Iterator[dbapi.Connection]:
    with connect(filled.uri(), autocommit=False) as connection:
        yield connection


def status(raised: pytest.ExceptionInfo[dbapi.Error]) -> AdbcStatusCode:
    return AdbcStatusCode(raised.value.status_code)


def count(server: PostgresServer, table: str) -> int:
    with server.connect() as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None
        return int(row[0])


def shown(values: pa.Table) -> list[str]:
    """The columns as text, since NaN differs from itself, and Python lacks some dates."""
    return [column.to_string(window=1_000_000) for column in values.combine_chunks().columns]


def test_types_are_those_of_the_package(database: PostgresServer, extension: bool) -> None:
    uri = database.uri(DATABASE)
    choice: Any = "auto" if extension else False
    options = {"dray.extension": "auto" if extension else "never", "dray.nonfinite": "null"}
    with (
        connect(uri, options) as adbc,
        dray.connect(uri) as connection,
        database.connect(DATABASE) as oracle,
        adbc.cursor() as cursor,
    ):
        tables = oracle.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert tables
        for schema, name in tables:
            sql = f'SELECT * FROM "{schema}"."{name}"'
            result = connection.query(sql, extension=choice, nonfinite="null")
            expected = result.arrow()
            fetched = cursor.execute(sql).fetch_arrow_table()
            assert fetched.schema.equals(expected.schema, check_metadata=True), sql
            assert shown(fetched) == shown(expected), sql
            assert cursor.adbc_execute_schema(sql).equals(expected.schema, check_metadata=True), sql
            described = adbc.adbc_get_table_schema(name, db_schema_filter=schema)
            assert described.equals(expected.schema, check_metadata=True), sql


def test_a_table_comes_whole(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        table = cursor.execute(NUMBERS).fetch_arrow_table()
    assert table.num_rows == BIG and table.schema.field("amount").type == pa.decimal128(12, 2)


def test_parameters(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        cursor.execute("SELECT text FROM numbers WHERE id = $1", (17,))
        assert cursor.fetchall() == [("row 17",)]
        three = pa.table({"id": pa.array([3, 1, 70000], pa.int64())})
        cursor.execute("SELECT text FROM numbers WHERE id = $1", three)
        assert cursor.fetchall() == [("row 3",), ("row 1",), ("row 70000",)]
        wide = pa.table({"id": pa.array([3, 2**40], pa.int64())})
        cursor.execute("SELECT $1 AS a", wide)
        assert cursor.fetchall() == [(3,), (2**40,)]
        # The first batch decides.
        cursor.execute("SELECT $1 AS a", pa.concat_tables([three, wide]))
        with pytest.raises(dbapi.DataError, match="other types than the first"):
            cursor.fetchall()
        cursor.execute("SELECT $1::int8 AS a", three)
        assert cursor.fetchall() == [(3,), (1,), (70000,)]
        assert cursor.adbc_execute_schema("SELECT $1::date AS day").field("day").type == pa.date32()
        schema = cursor.adbc_prepare("SELECT $2::int4, $1::text")
        assert len(schema) == 2
        with pytest.raises(dbapi.Error) as raised:
            cursor.execute("SELECT 1", (5,))
        assert raised.value.sqlstate == "07001"


def test_errors_have_status_and_sqlstate(adbc: dbapi.Connection, filled: PostgresServer) -> None:
    duplicate = "INSERT INTO pets VALUES (1, 'again')"
    code = AdbcStatusCode
    for sql, kind, expected, sqlstate in [
        ("SELECT * FROM nowhere", dbapi.ProgrammingError, code.NOT_FOUND, "42P01"),
        ("SELEC 1", dbapi.ProgrammingError, code.INVALID_ARGUMENT, "42601"),
        ("SELECT 1 / 0", dbapi.DataError, code.INVALID_DATA, "22012"),
        (duplicate, dbapi.IntegrityError, code.INTEGRITY, "23505"),
        ("CREATE TABLE pets ()", dbapi.ProgrammingError, code.ALREADY_EXISTS, "42P07"),
    ]:
        with adbc.cursor() as cursor, pytest.raises(kind) as raised:
            cursor.execute(sql)
        assert (status(raised), raised.value.sqlstate) == (expected, sqlstate), raised.value
    with connect(filled.uri(user="reader")) as reader, reader.cursor() as cursor:
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.execute("SELECT amount FROM numbers")
        assert status(raised) == code.UNAUTHORIZED
    with connect(filled.uri(options="?options=-cstatement_timeout%3D1s")) as hasty:
        with pytest.raises(dbapi.OperationalError) as raised:
            rows(hasty, SILENT)
        assert (status(raised), raised.value.sqlstate) == (code.TIMEOUT, "57014")


def test_an_error_in_mid_stream_keeps_its_sqlstate(adbc: dbapi.Connection) -> None:
    sql = "SELECT 1 / (400000 - i) AS n FROM generate_series(1, 1000000) i"
    with adbc.cursor(adbc_stmt_kwargs={"dray.batch_bytes": "1"}) as cursor:
        cursor.execute(sql)
        with pytest.raises(dbapi.DataError, match="division by zero") as raised:
            cursor.fetch_arrow_table()
        assert (status(raised), raised.value.sqlstate) == (AdbcStatusCode.INVALID_DATA, "22012")
        assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_cancel_from_another_thread(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        for sql, cancel in [(FOREVER, cursor.adbc_cancel), (SILENT, adbc.adbc_cancel)]:
            timer = threading.Timer(0.3, cancel)
            timer.start()
            with pytest.raises(dbapi.OperationalError) as raised:
                cursor.execute(sql)
                while cursor.fetchone():
                    pass
            assert status(raised) == AdbcStatusCode.CANCELLED
            timer.join()
            assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_changes_and_their_counts(adbc: dbapi.Connection, filled: PostgresServer) -> None:
    with adbc.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS changed")
        cursor.execute("CREATE TABLE changed (a integer, b text)")
        assert cursor.rowcount == -1
        cursor.execute("INSERT INTO changed VALUES (1, 'x'), (2, 'y')")
        assert cursor.rowcount == 2
        cursor.executemany("INSERT INTO changed VALUES ($1, $2)", [(3, "z"), (4, None), (5, "w")])
        assert cursor.rowcount == 3
        cursor.execute("UPDATE changed SET b = 'v' WHERE a > $1", (3,))
        assert cursor.rowcount == 2
        cursor.execute("INSERT INTO changed VALUES (6, 'u') RETURNING a")
        assert cursor.fetchall() == [(6,)]
        cursor.execute("SELECT a FROM changed")
        assert cursor.rowcount == -1
    assert count(filled, "changed") == 6


def test_transactions(transactions: dbapi.Connection, filled: PostgresServer) -> None:
    filled.run("DROP TABLE IF EXISTS ledger", "CREATE TABLE ledger (a integer PRIMARY KEY)")
    with transactions.cursor() as cursor:
        # Nothing has begun yet.
        transactions.commit()
        transactions.rollback()
        cursor.execute("INSERT INTO ledger VALUES (1)")
        assert count(filled, "ledger") == 0
        transactions.commit()
        assert count(filled, "ledger") == 1
        cursor.execute("INSERT INTO ledger VALUES (2)")
        transactions.rollback()
        assert count(filled, "ledger") == 1
        # A failed transaction can't be committed.
        cursor.execute("INSERT INTO ledger VALUES (3)")
        with pytest.raises(dbapi.IntegrityError):
            cursor.execute("INSERT INTO ledger VALUES (1)")
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.execute("SELECT 1")
        assert (status(raised), raised.value.sqlstate) == (AdbcStatusCode.INVALID_STATE, "25P02")
        with pytest.raises(dbapi.ProgrammingError, match="rolled back") as raised:
            transactions.commit()
        assert raised.value.sqlstate == "25P02"
        assert cursor.execute("SELECT count(*) FROM ledger").fetchone() == (1,)
        # Switching autocommit on commits.
        cursor.execute("INSERT INTO ledger VALUES (4)")
        transactions.adbc_connection.set_autocommit(True)
        assert count(filled, "ledger") == 2
        cursor.execute("INSERT INTO ledger VALUES (5)")
        assert count(filled, "ledger") == 3
        with pytest.raises(dbapi.ProgrammingError, match="autocommit is on"):
            transactions.adbc_connection.commit()


def test_settings_end_with_a_transaction(transactions: dbapi.Connection) -> None:
    sql = "SELECT extract(epoch FROM '2024-01-01 00:00'::timestamptz)::integer"
    expected = rows(transactions, sql)
    for end in (transactions.commit, transactions.rollback):
        rows(transactions, "SET LOCAL TIME ZONE 'Asia/Tokyo'")
        for _ in range(4):
            assert rows(transactions, sql) != expected
        end()
        for _ in range(4):
            assert rows(transactions, sql) == expected


def test_what_is_not_committed_is_rolled_back(filled: PostgresServer) -> None:
    filled.run("DROP TABLE IF EXISTS lost", "CREATE TABLE lost (a integer)")
    with connect(filled.uri(), autocommit=False) as connection:
        rows(connection, "INSERT INTO lost VALUES (1)")
    assert count(filled, "lost") == 0


def test_isolation_and_read_only(transactions: dbapi.Connection) -> None:
    inner = transactions.adbc_connection
    level = "adbc.connection.transaction.isolation_level"
    inner.set_options(**{level: "adbc.connection.transaction.isolation.serializable"})
    assert inner.get_option(level) == "adbc.connection.transaction.isolation.serializable"
    with transactions.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("serializable",)
        with pytest.raises(dbapi.ProgrammingError, match="a transaction is open"):
            inner.set_options(**{"adbc.connection.readonly": "true"})
        transactions.commit()
        inner.set_options(**{"adbc.connection.readonly": "true"})
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.execute("CREATE TABLE never (a integer)")
        assert (status(raised), raised.value.sqlstate) == (AdbcStatusCode.INVALID_STATE, "25006")
        transactions.rollback()
        inner.set_autocommit(True)
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute("CREATE TABLE never (a integer)")
    with pytest.raises(dbapi.NotSupportedError, match="linearizable"):
        inner.set_options(**{level: "adbc.connection.transaction.isolation.linearizable"})


def test_objects(shop: PostgresServer) -> None:
    with connect(shop.uri()) as connection:
        catalogs = connection.adbc_get_objects(depth="catalogs").read_all().to_pylist()
        assert {"catalog_name": "postgres", "catalog_db_schemas": None} in catalogs
        schemas = connection.adbc_get_objects(
            depth="db_schemas", catalog_filter="postgres", db_schema_filter="sh_p"
        ).read_all()
        assert schemas.to_pylist()[0]["catalog_db_schemas"] == [
            {"db_schema_name": "shop", "db_schema_tables": None}
        ]
        objects = connection.adbc_get_objects(
            catalog_filter="postgres", db_schema_filter="shop"
        ).read_all()
        [catalog] = objects.to_pylist()
        [schema] = catalog["catalog_db_schemas"]
        tables = {table["table_name"]: table for table in schema["db_schema_tables"]}
        assert {name: table["table_type"] for name, table in tables.items()} == {
            "customers": "table",
            "orders": "table",
            'odd "name': "table",
            "seen": "view",
            "kept": "materialized_view",
        }
        check_orders(tables["orders"])
        views = connection.adbc_get_objects(
            depth="tables", db_schema_filter="shop", table_types_filter=["view"]
        ).read_all()
        [schema] = [
            schema for catalog in views.to_pylist() for schema in catalog["catalog_db_schemas"]
        ]
        assert [table["table_name"] for table in schema["db_schema_tables"]] == ["seen"]
        assert "materialized_view" in connection.adbc_get_table_types()
        everything = connection.adbc_get_objects(depth="db_schemas").read_all().to_pylist()
        names = [
            schema["db_schema_name"]
            for catalog in everything
            for schema in catalog["catalog_db_schemas"]
        ]
        assert "public" in names and "pg_catalog" not in names


def check_orders(table: dict[str, Any]) -> None:
    columns = {column["column_name"]: column for column in table["table_columns"]}
    assert list(columns) == ["id", "customer", "amount", "double_amount"]
    amount = columns["amount"]
    assert amount["ordinal_position"] == 3 and amount["remarks"] == "in euros"
    assert amount["xdbc_type_name"] == "numeric(10,2)" and amount["xdbc_column_def"] == "0"
    assert amount["xdbc_is_nullable"] == "YES" and columns["id"]["xdbc_is_nullable"] == "NO"
    assert columns["id"]["xdbc_is_autoincrement"] is True
    assert columns["double_amount"]["xdbc_is_generatedcolumn"] is True
    constraints = {
        constraint["constraint_type"]: constraint for constraint in table["table_constraints"]
    }
    assert constraints["PRIMARY KEY"]["constraint_column_names"] == ["id", "customer"]
    assert constraints["CHECK"]["constraint_column_names"] == ["amount"]
    key = constraints["FOREIGN KEY"]
    assert key["constraint_column_names"] == ["customer"]
    assert key["constraint_column_usage"] == [
        {
            "fk_catalog": "postgres",
            "fk_db_schema": "shop",
            "fk_table": "customers",
            "fk_column_name": "id",
        }
    ]


def test_a_table_that_is_missing_leaves_the_transaction(
    shop: PostgresServer, transactions: dbapi.Connection
) -> None:
    with transactions.cursor() as cursor:
        cursor.execute("SELECT 1").fetchall()
        for name, schema in [("nowhere", None), ("orders", "nowhere"), ("orders", None)]:
            with pytest.raises(dbapi.ProgrammingError) as raised:
                transactions.adbc_get_table_schema(name, db_schema_filter=schema)
            assert status(raised) == AdbcStatusCode.NOT_FOUND
        with pytest.raises(dbapi.ProgrammingError):
            transactions.adbc_get_table_schema(
                "orders", catalog_filter="x", db_schema_filter="shop"
            )
        table = transactions.adbc_get_table_schema('odd "name', db_schema_filter="shop")
        assert table.names == ["a'b"]
        # The transaction has not failed.
        assert cursor.execute("SELECT 2").fetchone() == (2,)


def test_current_schema(shop: PostgresServer) -> None:
    with connect(shop.uri()) as connection:
        assert connection.adbc_current_catalog == "postgres"
        assert connection.adbc_current_db_schema == "public"
        connection.adbc_current_db_schema = "shop"
        assert connection.adbc_current_db_schema == "shop"
        assert connection.adbc_get_table_schema("customers").names == ["id", "name"]
        with pytest.raises(dbapi.ProgrammingError, match="there is no schema nowhere"):
            connection.adbc_current_db_schema = "nowhere"
        assert connection.adbc_current_db_schema == "shop"
        with pytest.raises(dbapi.NotSupportedError):
            connection.adbc_current_catalog = "template1"


def test_no_rollback_undoes_the_current_schema(shop: PostgresServer) -> None:
    with connect(shop.uri(), autocommit=False) as connection, connection.cursor() as cursor:
        connection.adbc_current_db_schema = "shop"
        cursor.execute("SELECT count(*) FROM customers").fetchone()
        with pytest.raises(dbapi.ProgrammingError, match="a transaction is open") as raised:
            connection.adbc_current_db_schema = "public"
        assert status(raised) == AdbcStatusCode.INVALID_STATE
        connection.rollback()
        assert connection.adbc_current_db_schema == "shop"
        connection.adbc_current_db_schema = "public"
        connection.rollback()
        assert connection.adbc_current_db_schema == "public"


def test_a_list_can_be_cancelled_until_it_is_read(adbc: dbapi.Connection) -> None:
    reader = adbc.adbc_get_objects(depth="catalogs")
    adbc.adbc_cancel()
    assert reader.read_all().num_rows >= 1


def test_values_of_a_dictionary_as_parameters(adbc: dbapi.Connection) -> None:
    rows = pa.record_batch({"a": pa.array(["x", None, "y"]).dictionary_encode()})
    with adbc.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE bound (a text)")
        cursor.executemany("INSERT INTO bound VALUES ($1)", rows)
        cursor.execute("SELECT a FROM bound")
        assert cursor.fetch_arrow_table().column("a").to_pylist() == ["x", None, "y"]


def test_info(adbc: dbapi.Connection, filled: PostgresServer) -> None:
    info = adbc.adbc_get_info()
    assert info["vendor_name"] == "PostgreSQL"
    assert str(info["vendor_version"]).startswith(str(filled.version))


def test_login_by_options(filled: PostgresServer) -> None:
    uri = f"postgresql://127.0.0.1:{filled.port}/postgres"
    with connect(uri, {"username": "reader", "password": "p&'w"}) as connection:
        assert rows(connection, "SELECT current_user::text") == [("reader",)]
    with connect(filled.unix, {"username": "reader"}) as connection:
        assert rows(connection, "SELECT current_user::text") == [("reader",)]
    with pytest.raises(dbapi.ProgrammingError) as raised:
        connect(filled.uri(), {"dray.token": "t"})
    assert status(raised) == AdbcStatusCode.INVALID_ARGUMENT


def test_partitions(big: PostgresServer) -> None:
    options = {"dray.partitions": "2"}
    for autocommit in (True, False):
        with connect(big.uri(), options, autocommit=autocommit) as connection:
            assert table(connection, "SELECT * FROM many").num_rows == count(big, "many")


def test_pandas_and_polars(adbc: dbapi.Connection, transactions: dbapi.Connection) -> None:
    sql = "SELECT id, text FROM numbers ORDER BY id LIMIT 3"
    for connection in (adbc, transactions):
        assert list(pd.read_sql(sql, connection)["text"]) == ["row 0", "row 1", "row 2"]
        assert list(pd.read_sql_table("pets", connection, schema="public")["id"])[:2] == [1, 2]
        assert pl.read_database(sql, connection)["id"].to_list() == [0, 1, 2]


# pandas does not close the cursor of a statement that fails.
@pytest.mark.filterwarnings("ignore:A adbc_driver_manager.dbapi.Cursor was not:ResourceWarning")
def test_pandas_rolls_back(transactions: dbapi.Connection) -> None:
    with pytest.raises(pd.errors.DatabaseError, match="nowhere"):
        pd.read_sql("SELECT * FROM nowhere", transactions)
    gc.collect()
    assert len(pd.read_sql("SELECT id FROM numbers LIMIT 3", transactions)) == 3


def statistics(connection: dbapi.Connection, table: str) -> dict[tuple[str | None, int], float]:
    found = connection.adbc_get_statistics(table_name_filter=table).read_all().to_pylist()
    rows = [
        row
        for catalog in found
        for schema in catalog["catalog_db_schemas"]
        for row in schema["db_schema_statistics"]
    ]
    assert all(row["statistic_is_approximate"] and row["table_name"] == table for row in rows)
    return {(row["column_name"], row["statistic_key"]): row["statistic_value"] for row in rows}


def test_statistics_are_those_of_analyze(adbc: dbapi.Connection, filled: PostgresServer) -> None:
    filled.run(
        "DROP TABLE IF EXISTS measured",
        "CREATE TABLE measured (id integer, parity integer, word text)",
        "INSERT INTO measured SELECT i, i % 2, CASE WHEN i % 4 = 0 THEN 'four' END "
        "FROM generate_series(1, 1000) i",
    )
    width, distinct, nulls, rows = 0, 1, 5, 6
    # What is known without it.
    assert statistics(adbc, "measured") == {("id", width): 4, ("parity", width): 4}
    filled.run("ANALYZE measured")
    assert statistics(adbc, "measured") == {
        (None, rows): 1000,
        ("id", width): 4,
        ("id", nulls): 0,
        ("id", distinct): 1000,
        ("parity", width): 4,
        ("parity", nulls): 0,
        ("parity", distinct): 2,
        ("word", width): 5,
        ("word", nulls): 750,
        ("word", distinct): 1,
    }
    with connect(filled.uri(user="reader")) as reader:
        # Statistics of columns are only for those who may read them.
        assert statistics(reader, "measured") == {(None, rows): 1000}
    assert adbc.adbc_get_statistics(catalog_filter="nowhere").read_all().num_rows == 0


def test_statistics_of_partitioned_and_system_tables(
    adbc: dbapi.Connection, filled: PostgresServer
) -> None:
    filled.run(
        "DROP TABLE IF EXISTS measured_parts",
        "CREATE TABLE measured_parts (a integer) PARTITION BY RANGE (a)",
        "CREATE TABLE measured_low PARTITION OF measured_parts FOR VALUES FROM (0) TO (10)",
        "INSERT INTO measured_parts SELECT i % 10 FROM generate_series(1, 100) i",
        "ANALYZE measured_parts",
    )
    assert statistics(adbc, "measured_parts")[(None, 6)] == 100
    assert statistics(adbc, "measured_parts")[("a", 1)] == 10
    assert statistics(adbc, "measured_low")[("a", 1)] == 10
    assert statistics(adbc, "pg_class") == {}
    found = adbc.adbc_get_statistics(db_schema_filter="pg_catalog", table_name_filter="pg_class")
    assert found.read_all().num_rows == 1


def test_rows_of_parameters_have_one_type(adbc: dbapi.Connection) -> None:
    with adbc.cursor() as cursor:
        for values, kind in [
            ([42, None, -42], pa.int32()),
            ([None, 1], pa.int32()),
            ([1, None, 2**40], pa.int64()),
        ]:
            rows = pa.record_batch({"n": pa.array(values, pa.int64()), "s": ["x"] * len(values)})
            cursor.execute("SELECT $1 AS n, $2 AS s", rows)
            found = cursor.fetch_arrow_table()
            assert found["n"].type == kind and found["n"].to_pylist() == values
        # A single row is as a literal would be.
        cursor.execute("SELECT substr('abcdef', $1)", [3])
        assert cursor.fetchone() == ("cdef",)
        cursor.execute("CREATE TEMPORARY TABLE cut (t text)")
        cursor.executemany("INSERT INTO cut SELECT substr('abcdef', $1)", [(2,), (3,), (None,)])
        cursor.execute("SELECT t FROM cut")
        assert cursor.fetchall() == [("bcdef",), ("cdef",), (None,)]
