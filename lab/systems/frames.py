"""Tables and data frames by packages for Python: `python -m lab.systems.frames WAY WHERE SQL`.

WHERE is a uri, for ODBC and psycopg a connection string, for monetdbe a folder; MongoDB's SQL is
the name of a collection. What a user gets is compared here, so the type that a package gives a
decimal is its own choice.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial

from lab.common.contender import Server
from lab.common.loaded_server import is_installed
from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu
from lab.common.program import python
from lab.data.table import cache_folder
from lab.systems.system import JAVA, JAVA_OPTIONS, Entry, Program

#: The longest text in the tables, which ODBC's driver for Arrow wants to know.
TEXT_BYTES_MAX = 1000
DERBY_DRIVER = "org.apache.derby.client.ClientAutoloadedDriver"
#: Folders of packages that the environment can't have: pymongoarrow needs an older pyarrow, and
#: monetdbe's wheel is for another Python.
FOLDERS = {
    "pymongoarrow": cache_folder() / "pymongoarrow",
    "monetdbe": cache_folder().parent / "monetdb",
}


def connectorx(uri: str, sql: str, protocol: str | None = None) -> Measurement:
    import connectorx as package

    watch = Stopwatch()
    table = package.read_sql(uri, sql, return_type="arrow", protocol=protocol)
    seconds = watch.lap()
    return Measurement(None, None, seconds, watch.total(), table.num_rows, table.nbytes)


def arrow_odbc(connection_string: str, sql: str) -> Measurement:
    import arrow_odbc as package
    import pyarrow as pa

    watch = Stopwatch()
    reader = package.read_arrow_batches_from_odbc(
        sql, connection_string, max_text_size=TEXT_BYTES_MAX
    )
    if reader is None:
        raise SystemExit("the statement has no result")
    table = pa.Table.from_batches(reader)
    seconds = watch.lap()
    return Measurement(None, None, seconds, watch.total(), table.num_rows, table.nbytes)


def adbc_postgres(uri: str, sql: str, use_copy: bool = True) -> Measurement:
    from adbc_driver_postgresql import dbapi

    watch = Stopwatch()
    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        connect_s = watch.lap()
        if not use_copy:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        cursor.execute(sql)
        table = cursor.fetch_arrow_table()
        transfer_s = watch.lap()
        total_s = watch.total()
    return Measurement(connect_s, None, transfer_s, total_s, table.num_rows, table.nbytes)


def pandas(uri: str, sql: str) -> Measurement:
    import pandas as package
    import sqlalchemy

    watch = Stopwatch()
    with sqlalchemy.create_engine(uri).connect() as connection:
        connect_s = watch.lap()
        frame = package.read_sql(sqlalchemy.text(sql), connection)
        transfer_s = watch.lap()
        total_s = watch.total()
    return Measurement(connect_s, None, transfer_s, total_s, len(frame), None)


def psycopg(connection_string: str, sql: str) -> Measurement:
    import psycopg as package

    watch = Stopwatch()
    with package.connect(connection_string) as connection:
        return from_connection(connection, sql, watch)


def pymonetdb(uri: str, sql: str) -> Measurement:
    import pymonetdb as package

    watch = Stopwatch()
    with package.connect(uri) as connection:
        return from_connection(connection, sql, watch)


def jaydebeapi(url: str, sql: str) -> Measurement:
    import jaydebeapi as package
    import jpype

    jpype.startJVM(*JAVA_OPTIONS, classpath=[f"{JAVA}/jars/*"])
    watch = Stopwatch()
    with package.connect(DERBY_DRIVER, url) as connection:
        return from_connection(connection, sql, watch)


def from_connection(connection: object, sql: str, watch: Stopwatch) -> Measurement:
    """A data frame by pandas from a connection of Python's database interface."""
    import pandas as package

    connect_s = watch.lap()
    frame = package.read_sql(sql, connection)
    transfer_s = watch.lap()
    return Measurement(connect_s, None, transfer_s, watch.total(), len(frame), None)


def pymongoarrow(uri: str, collection: str) -> Measurement:
    import pymongo
    from pymongoarrow.api import find_arrow_all

    watch = Stopwatch()
    with pymongo.MongoClient(uri) as client:
        table = find_arrow_all(client.get_default_database()[collection], {})
        seconds = watch.lap()
    return Measurement(None, None, seconds, watch.total(), table.num_rows, table.nbytes)


def monetdbe(folder: str, sql: str) -> Measurement:
    import monetdbe as package

    watch = Stopwatch()
    connection = package.connect(folder)
    connect_s = watch.lap()
    cursor = connection.cursor()
    cursor.execute(sql)
    execute_s = watch.lap()
    frame = cursor.fetchdf()
    transfer_s = watch.lap()
    return Measurement(connect_s, execute_s, transfer_s, watch.total(), len(frame), None)


#: Each way with its title and the packages that are imported before the clock starts.
WAYS = {
    "connectorx": (connectorx, "ConnectorX, an Arrow table", ["connectorx"]),
    "arrow-odbc": (arrow_odbc, "arrow-odbc, an Arrow table", ["arrow_odbc", "pyarrow"]),
    "adbc-postgres": (adbc_postgres, "ADBC, an Arrow table", ["adbc_driver_postgresql.dbapi"]),
    # HyPer has no COPY in binary form.
    "connectorx-cursor": (
        partial(connectorx, protocol="cursor"),
        "ConnectorX by a cursor, an Arrow table",
        ["connectorx"],
    ),
    "adbc-rows": (
        partial(adbc_postgres, use_copy=False),
        "ADBC without COPY, an Arrow table",
        ["adbc_driver_postgresql.dbapi"],
    ),
    "pandas": (pandas, "pandas, a data frame", ["pandas", "sqlalchemy"]),
    "psycopg": (psycopg, "pandas by psycopg, a data frame", ["pandas", "psycopg"]),
    "pymonetdb": (pymonetdb, "pandas by pymonetdb, a data frame", ["pandas", "pymonetdb"]),
    "jaydebeapi": (jaydebeapi, "pandas by JayDeBeApi, a data frame", ["pandas", "jaydebeapi"]),
    "pymongoarrow": (pymongoarrow, "PyMongoArrow, an Arrow table", ["pymongoarrow.api"]),
    "monetdbe": (monetdbe, "monetdbe in process, a data frame", ["monetdbe", "pandas"]),
}


def frame(system: str, server: Server, way: str, where: str, sql: str) -> Entry:
    """The entry of a way to get a table or a data frame from a server."""
    _, title, _ = WAYS[way]

    def command() -> list[object]:
        words = python(__name__, way, where, sql)
        folder = FOLDERS.get(way)
        if folder is None:
            return list(words)
        is_installed(folder / way, "run make setup-systems")
        return ["env", f"PYTHONPATH={folder}", *words]

    return Entry(
        Program(f"{system}-{way}", title, server, command, into_table=True), local_only=True
    )


if __name__ == "__main__":
    fetch, _, packages = WAYS[sys.argv[1]]
    for name in packages:
        importlib.import_module(name)
    client = Client()
    client.report(with_cpu(lambda: fetch(*sys.argv[2:])))
