"""`dray.dbapi`: PEP 249 over the package's own ADBC driver."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_manager
import pyarrow as pa
import pytest
from adbc_client import rows
from postgres_client import BIG as BIG_POSTGRES
from postgres_client import NUMBERS
from postgres_server import PostgresServer
from server import Server

import dray
import dray.dbapi as dbapi
from dray._adbc import has_own_tables

#: What PEP 249 asks of a module, a connection and a cursor.
MODULE = """apilevel threadsafety paramstyle connect Warning Error InterfaceError DatabaseError
DataError OperationalError IntegrityError InternalError ProgrammingError NotSupportedError Date Time
Timestamp DateFromTicks TimeFromTicks TimestampFromTicks Binary STRING BINARY NUMBER DATETIME
ROWID"""
CURSOR = """description rowcount callproc close execute executemany fetchone fetchmany fetchall
nextset arraysize setinputsizes setoutputsize"""


def child(code: str, *arguments: str, path: str | None = None) -> str:
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def shop(filled: PostgresServer) -> Iterator[dbapi.Connection]:
    with dbapi.connect(filled.uri()) as connection:
        yield connection


def test_names_of_pep_249(server: Server) -> None:
    assert set(MODULE.split()) <= set(dir(dbapi)) and dbapi.apilevel == "2.0"
    assert set(dbapi.__all__) == set(MODULE.split()) | {"Connection", "Cursor"}
    with dbapi.connect(server.unix) as connection, connection.cursor() as cursor:
        assert type(connection) is adbc_driver_manager.dbapi.Connection
        assert set(CURSOR.split()) <= set(dir(cursor))


def test_the_driver_is_the_packages_own(server: Server) -> None:
    with dbapi.connect(server.unix) as connection:
        assert connection.adbc_get_info()["driver_version"] == dray.__version__
    driver = Path(dray.__file__).with_name("libadbc_driver_dray.so")
    assert driver.is_file()
    code = """
import sys, dray.dbapi
with dray.dbapi.connect(sys.argv[1]):
    print(*{line.split()[-1] for line in open("/proc/self/maps") if "adbc_driver_dray" in line})
"""
    assert child(code, server.unix).split() == [str(driver)]


def test_rows(server: Server) -> None:
    with dbapi.connect(server.unix) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, text FROM numbers ORDER BY id LIMIT 5")
        assert [column[0] for column in cursor.description] == ["id", "text"]
        assert [column[1] == dbapi.STRING for column in cursor.description] == [False, True]
        assert cursor.fetchone() == (0, "row 0")
        assert cursor.fetchmany(2) == [(1, "row 1"), (2, "row 2")]
        assert cursor.fetchall() == [(3, "row 3"), (4, "row 4")]
        assert cursor.fetchone() is None
        cursor.execute("SELECT text FROM numbers WHERE id = $1 OR id = $2", (7, 9))
        assert sorted(cursor) == [("row 7",), ("row 9",)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("CAST(1 AS DECIMAL(9, 2))", "NUMBER"),
        ("CAST(1 AS DOUBLE)", "NUMBER"),
        ("1", "NUMBER"),
        ("DATE '2026-01-31'", "DATETIME"),
        ("TIMESTAMP '2026-01-31 12:00:00'", "DATETIME"),
        ("X'ff'", "BINARY"),
        ("'text'", "STRING"),
    ],
)
def test_type_objects(server: Server, sql: str, kind: str) -> None:
    with dbapi.connect(server.unix) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql}")
        equal = {
            name
            for name in ("BINARY", "DATETIME", "NUMBER", "STRING")
            if cursor.description[0][1] == getattr(dbapi, name)
        }
    assert equal == {kind}


def test_types_that_older_versions_of_pyarrow_lack(server: Server) -> None:
    code = """
import sys, pyarrow.lib
import adbc_driver_manager.dbapi
for name in ("Type_DECIMAL32", "Type_DECIMAL64"):
    delattr(pyarrow.lib, name)
import dray.dbapi
with dray.dbapi.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    cursor.execute("SELECT 1, CAST(1 AS DECIMAL(9, 2)), 'text'")
    print([column[1] == dray.dbapi.NUMBER for column in cursor.description])
"""
    assert child(code, server.unix) == "[True, True, False]\n"


def test_placeholders_are_the_servers_own(server: Server, shop: dbapi.Connection) -> None:
    assert dbapi.paramstyle == "numeric_dollar"
    with shop.cursor() as cursor:
        cursor.execute("SELECT $2::text, $1::int4, $2::text", (1, "a"))
        assert cursor.fetchall() == [("a", 1, "a")]
        cursor.execute("SELECT $1::date", (dt.date(2026, 1, 31),))
        assert cursor.fetchone() == (dt.date(2026, 1, 31),)
    with dbapi.connect(server.unix) as dray_server:
        for connection in (dray_server, shop):
            with connection.cursor() as cursor, pytest.raises(dbapi.ProgrammingError):
                cursor.execute("SELECT ?", (1,))


def test_a_dray_server_commits_nothing(server: Server) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection = dbapi.connect(server.unix)
    with connection:
        connection.commit()
        connection.rollback()


@pytest.mark.parametrize(
    ("uri", "own"),
    [
        ("dray://localhost", True),
        ("dray://localhost:5433/?read_timeout=5", True),
        ("drays://to/ken@localhost/files", True),
        ("dray+unix:///run/dray.sock?token=a", True),
        ("dray://localhost/shop", False),
        ("drays://to/ken@[::1]:5433/shop?ca=x", False),
        ("dray://localhost?read_timeout=5&source=shop", False),
        ("dray+unix:///run/dray.sock?source=shop", False),
        ("postgresql://localhost/shop", False),
    ],
)
def test_uris_of_what_is_only_read(uri: str, own: bool) -> None:
    assert has_own_tables(uri) is own


def test_transactions(filled: PostgresServer, shop: dbapi.Connection) -> None:
    filled.run("DROP TABLE IF EXISTS dbapi_ledger", "CREATE TABLE dbapi_ledger (a integer)")
    with shop.cursor() as cursor:
        cursor.executemany("INSERT INTO dbapi_ledger VALUES ($1)", [(1,), (2,)])
        assert cursor.rowcount == 2
        shop.rollback()
        cursor.execute("INSERT INTO dbapi_ledger VALUES (3)")
        shop.commit()
    with dbapi.connect(filled.uri(), autocommit=True) as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO dbapi_ledger VALUES (4)")
        assert cursor.execute("SELECT a FROM dbapi_ledger ORDER BY a").fetchall() == [(3,), (4,)]


def test_tables_and_batches(shop: dbapi.Connection) -> None:
    with shop.cursor() as cursor:
        table = cursor.execute(NUMBERS).fetch_arrow_table()
        assert table.num_rows == BIG_POSTGRES
        assert table.schema.field("amount").type == pa.decimal128(12, 2)
    with shop.cursor(adbc_stmt_kwargs={"dray.batch_bytes": "1"}) as cursor:
        batches = list(cursor.execute(NUMBERS).fetch_record_batch())
        assert len(batches) > 3 and sum(batch.num_rows for batch in batches) == BIG_POSTGRES


def test_options(server: Server, filled: PostgresServer) -> None:
    with pytest.raises(dbapi.OperationalError, match="within 0.5 s|refused"):
        dbapi.connect("dray://127.0.0.1:1", timeout=0.5)
    for options in ({"token": "s3cret"}, {"local_socket": False}, {"read_timeout": 5}):
        with dbapi.connect(server.tcp, **options) as connection:
            assert rows(connection, "SELECT 1") == [(1,)]
    options = {"dray.partitions": "1"}
    for arguments in ({"db_kwargs": options}, {"conn_kwargs": options}):
        with dbapi.connect(filled.uri(), **arguments) as connection:
            assert connection.adbc_connection.get_option("dray.partitions") == "1"


def test_the_drivers_name_before_a_uri(server: Server, filled: PostgresServer) -> None:
    for uri in (f"dray:{server.unix}", f"dray:{server.tcp}", f"dray:{filled.uri()}"):
        with dbapi.connect(uri) as connection:
            assert rows(connection, "SELECT 1") == [(1,)]


def test_the_driver_under_the_name_that_tools_import(server: Server) -> None:
    import adbc_driver_dray
    import adbc_driver_dray.dbapi
    import adbc_driver_drays.dbapi

    assert adbc_driver_drays.dbapi.connect is adbc_driver_dray.dbapi.connect is dbapi.connect
    with (
        adbc_driver_dray.connect(server.unix, {"dray.compression": "lz4"}) as database,
        adbc_driver_manager.AdbcConnection(database) as connection,
    ):
        assert connection.get_option("dray.compression") == "lz4"


def test_the_package_alone_needs_nothing() -> None:
    code = """
import sys
for name in ("adbc_driver_manager", "pyarrow", "pandas", "polars", "numpy"):
    sys.modules[name] = None
import dray
try:
    import dray.dbapi
except ImportError as error:
    print(error)
"""
    assert "pip install 'dray[dbapi]'" in child(code)


def test_without_the_driver(server: Server, tmp_path: Path) -> None:
    package = Path(dray.__file__).parent
    shutil.copytree(package, tmp_path / "dray", ignore=shutil.ignore_patterns("libadbc*"))
    code = """
import sys, dray.dbapi
try:
    dray.dbapi.connect(sys.argv[1])
except dray.dbapi.InterfaceError as error:
    print(error)
"""
    said = child(code, server.unix, path=str(tmp_path))
    assert "has no ADBC driver" in said and "dray adbc install" in said


def test_errors(shop: dbapi.Connection) -> None:
    errors: list[tuple[str, Any, str]] = [
        ("SELECT * FROM nowhere", dbapi.ProgrammingError, "42P01"),
        ("SELECT 1 / 0", dbapi.DataError, "22012"),
    ]
    for sql, kind, sqlstate in errors:
        with shop.cursor() as cursor, pytest.raises(kind) as raised:
            cursor.execute(sql)
        assert raised.value.sqlstate == sqlstate
        shop.rollback()
