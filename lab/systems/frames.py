"""Tables and data frames by packages for Python: `python -m lab.systems.frames WAY WHERE SQL`.

WHERE is a uri, or for ODBC a connection string. What a user gets is compared here, so the type
that a package gives a decimal is its own choice.
"""

from __future__ import annotations

import importlib
import sys

from lab.common.contender import Server
from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu
from lab.common.program import python
from lab.systems.system import Entry, Program

#: The longest text in the tables, which ODBC's driver for Arrow wants to know.
TEXT_BYTES_MAX = 1000


def connectorx(uri: str, sql: str) -> Measurement:
    import connectorx as package

    watch = Stopwatch()
    table = package.read_sql(uri, sql, return_type="arrow")
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


def adbc_postgres(uri: str, sql: str) -> Measurement:
    from adbc_driver_postgresql import dbapi

    watch = Stopwatch()
    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        connect_s = watch.lap()
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


#: Each way with its title and the packages that are imported before the clock starts.
WAYS = {
    "connectorx": (connectorx, "ConnectorX, an Arrow table", ["connectorx"]),
    "arrow-odbc": (arrow_odbc, "arrow-odbc, an Arrow table", ["arrow_odbc", "pyarrow"]),
    "adbc-postgres": (adbc_postgres, "ADBC, an Arrow table", ["adbc_driver_postgresql.dbapi"]),
    "pandas": (pandas, "pandas, a data frame", ["pandas", "sqlalchemy"]),
}


def frame(system: str, server: Server, way: str, where: str, sql: str) -> Entry:
    """The entry of a way to get a table or a data frame from a server."""
    _, title, _ = WAYS[way]
    command = python(__name__, way, where, sql)
    program = Program(f"{system}-{way}", title, server, lambda: list(command), into_table=True)
    return Entry(program, local_only=True)


if __name__ == "__main__":
    fetch, _, packages = WAYS[sys.argv[1]]
    for name in packages:
        importlib.import_module(name)
    client = Client()
    client.report(with_cpu(lambda: fetch(*sys.argv[2:])))
