"""The clients of the PostgreSQL benchmark: a function for each driver, with its fastest options.

A driver is imported before any clock starts, and before the client's initial memory is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import itertools
import re
import site
import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lab.common.measurement import Client, Measurement, Stopwatch, median_fetch
from lab.common.program import program_name

HOST, USER, DATABASE = "127.0.0.1", "postgres", "postgres"
ROWS_PER_FETCH = 10_000
RECEIVE_BYTES = 1024 * 1024
LATENCY_QUERIES = 2000
WARM_UP_QUERIES = 200


class Query:
    """The options of all drivers."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.port: int = given.port
        self.sql: str = given.sql
        self.connections: int = given.connections
        self.partition_column: str | None = given.partition_column
        self.text_bytes_max: int = given.text_bytes_max
        self.extension: str = given.extension

    @property
    def uri(self) -> str:
        return f"postgresql://{USER}@{HOST}:{self.port}/{DATABASE}?sslmode=disable"

    @property
    def conninfo(self) -> str:
        return f"host={HOST} port={self.port} user={USER} dbname={DATABASE} sslmode=disable"

    def odbc(self, driver: str) -> str:
        # Without a declared cursor, the driver would buffer the whole result as text.
        return (
            f"Driver={{PostgreSQL {driver}}};Server={HOST};Port={self.port};Uid={USER};"
            f"Database={DATABASE};SSLmode=disable;UseDeclareFetch=1;Fetch={ROWS_PER_FETCH};"
            f"MaxVarcharSize={self.text_bytes_max};MaxLongVarcharSize={self.text_bytes_max};"
            "BoolsAsChar=0"
        )


def table_of(
    watch: Stopwatch, connect_s: float | None, execute_s: float | None, table: Any, **details: Any
) -> Measurement:
    transfer_s = watch.lap()
    return Measurement(
        connect_s,
        execute_s,
        transfer_s,
        watch.total(),
        table.num_rows,
        table.nbytes,
        details=details,
    )


# Into an Arrow table.


def dray_options(query: Query) -> dict[str, object]:
    """Options of `query`. They force the path, so that a missing extension is an error, unless
    Dray's own choice is measured.
    """
    extension: object = {"always": True, "never": False}.get(query.extension, query.extension)
    return {"extension": extension, "partitions": query.connections}


def dray_arrow(query: Query) -> Measurement:
    import dray

    options = dray_options(query)
    watch = Stopwatch()
    with dray.connect(query.uri) as connection:
        connect_s = watch.lap()
        result = connection.query(query.sql, **options)
        execute_s = watch.lap()
        table = result.arrow()
        return table_of(watch, connect_s, execute_s, table, stats=without_columns(result.stats))


def duckdb_arrow(query: Query) -> Measurement:
    """DuckDB's scanner, with a thread per connection; 0 leaves their number to DuckDB."""
    import duckdb

    config: dict[str, object] = {"allow_unsigned_extensions": "true"}
    if query.connections:
        config["threads"] = query.connections
    with duckdb.connect(config=config) as engine:
        engine.execute(f"LOAD '{scanner_path(duckdb.__version__)}'")
        engine.execute("SET preserve_insertion_order = false")
        watch = Stopwatch()
        engine.execute(f"ATTACH '{query.conninfo}' AS pg (TYPE postgres, READ_ONLY)")
        connect_s = watch.lap()
        table = engine.sql(query.sql.replace("FROM ", "FROM pg.public.")).to_arrow_table()
        return table_of(watch, connect_s, None, table)


def scanner_path(version: str) -> Path:
    file = (
        f"duckdb_extension_postgres_scanner/extensions/v{version}/postgres_scanner.duckdb_extension"
    )
    return next(
        Path(folder, file) for folder in site.getsitepackages() if Path(folder, file).exists()
    )


def connectorx_arrow(query: Query) -> Measurement:
    import connectorx

    split: dict[str, object] = {}
    if query.connections > 1:
        split = {"partition_on": query.partition_column, "partition_num": query.connections}
    watch = Stopwatch()
    table = connectorx.read_sql(
        query.uri, query.sql, return_type="arrow", protocol="cursor", **split
    )
    return table_of(watch, None, None, table)


def adbc_arrow(query: Query) -> Measurement:
    import adbc_driver_postgresql.dbapi as adbc

    watch = Stopwatch()
    with adbc.connect(query.uri) as connection, connection.cursor() as cursor:
        connect_s = watch.lap()
        cursor.execute(query.sql)
        execute_s = watch.lap()
        return table_of(watch, connect_s, execute_s, cursor.fetch_arrow_table())


def arrow_odbc_arrow(query: Query) -> Measurement:
    """arrow-odbc with the ANSI driver: faster than the Unicode driver, and the same text."""
    import arrow_odbc
    import pyarrow

    watch = Stopwatch()
    connection = arrow_odbc.connect(query.odbc("ANSI"))
    connect_s = watch.lap()
    reader = connection.read_arrow_batches(
        query.sql,
        batch_size=ROWS_PER_FETCH,
        max_text_size=query.text_bytes_max,
        fetch_concurrently=True,
    )
    batches = iter(reader)
    first = list(itertools.islice(batches, 1))
    execute_s = watch.lap()
    return table_of(
        watch, connect_s, execute_s, pyarrow.Table.from_batches([*first, *batches], reader.schema)
    )


# Rows, which a loop in Python reads one by one and drops, and DataFrames.


def taken(
    watch: Stopwatch, connect_s: float | None, execute_s: float | None, rows: int, **details: Any
) -> Measurement:
    return Measurement(
        connect_s, execute_s, watch.lap(), watch.total(), rows, None, details=details
    )


def count(rows: Iterable[Any]) -> int:
    """Count rows in the cheapest loop that a program could have over them."""
    number = 0
    for _row in rows:
        number += 1
    return number


def dray_rows(query: Query) -> Measurement:
    import dray

    options = dray_options(query)
    watch = Stopwatch()
    with dray.connect(query.uri) as connection:
        connect_s = watch.lap()
        result = connection.query(query.sql, **options)
        execute_s = watch.lap()
        rows = count(result.rows())
        return taken(watch, connect_s, execute_s, rows, stats=without_columns(result.stats))


def fetched(cursor: Any, watch: Stopwatch, connect_s: float) -> Measurement:
    """Fetch the rows of a DB-API cursor. The first block counts as execution."""
    block = cursor.fetchmany(ROWS_PER_FETCH)
    execute_s = watch.lap()
    rows = 0
    while block:
        rows += count(block)
        block = cursor.fetchmany(ROWS_PER_FETCH)
    return taken(watch, connect_s, execute_s, rows)


def psycopg_rows(query: Query) -> Measurement:
    import psycopg

    watch = Stopwatch()
    with psycopg.connect(query.conninfo) as connection, connection.cursor(name="lab") as cursor:
        connect_s = watch.lap()
        cursor.execute(query.sql)
        return fetched(cursor, watch, connect_s)


def psycopg2_rows(query: Query) -> Measurement:
    import psycopg2

    watch = Stopwatch()
    connection = psycopg2.connect(query.conninfo)
    try:
        with connection.cursor(name="lab") as cursor:
            connect_s = watch.lap()
            cursor.execute(query.sql)
            return fetched(cursor, watch, connect_s)
    finally:
        connection.close()


def pyodbc_rows(query: Query) -> Measurement:
    import pyodbc

    watch = Stopwatch()
    connection = pyodbc.connect(query.odbc("Unicode"))
    try:
        connect_s = watch.lap()
        return fetched(connection.execute(query.sql), watch, connect_s)
    finally:
        connection.close()


def pandas_frame(query: Query) -> Measurement:
    import pandas
    import sqlalchemy

    engine = sqlalchemy.create_engine(query.uri.replace("postgresql:", "postgresql+psycopg2:"))
    watch = Stopwatch()
    with engine.connect() as connection:
        connect_s = watch.lap()
        frame = pandas.read_sql(sqlalchemy.text(query.sql), connection)
        return taken(watch, connect_s, None, len(frame))


def dray_frame(query: Query) -> Measurement:
    import dray

    options = dray_options(query)
    watch = Stopwatch()
    with dray.connect(query.uri) as connection:
        connect_s = watch.lap()
        result = connection.query(query.sql, **options)
        execute_s = watch.lap()
        rows = len(result.pandas())
        return taken(watch, connect_s, execute_s, rows, stats=without_columns(result.stats))


# Lower bounds: bytes that are neither parsed nor kept, and a backend that sends nothing.


def copy_psycopg(query: Query, form: str) -> Measurement:
    import psycopg

    watch = Stopwatch()
    with psycopg.connect(query.conninfo) as connection, connection.cursor() as cursor:
        connect_s = watch.lap()
        with cursor.copy(f"COPY ({query.sql}) TO STDOUT (FORMAT {form})") as copy:
            wire_bytes = len(copy.read())
            execute_s = watch.lap()
            while block := copy.read():
                wire_bytes += len(block)
        transfer_s = watch.lap()
    return Measurement(connect_s, execute_s, transfer_s, watch.total(), None, None, wire_bytes)


def copy_binary(query: Query) -> Measurement:
    return copy_psycopg(query, "binary")


def copy_csv(query: Query) -> Measurement:
    return copy_psycopg(query, "csv")


#: The messages at the end of a COPY: CopyDone, CommandComplete with the rows, ReadyForQuery.
COPY_END = re.compile(rb"c\0\0\0\x04C\0\0\0.COPY (\d+)\0Z\0\0\0\x05[IT]$", re.DOTALL)


def copy_socket(query: Query) -> Measurement:
    """COPY without a driver: parses no message, and recognises only the end."""
    buffer = bytearray(RECEIVE_BYTES)
    watch = Stopwatch()
    with socket.create_connection((HOST, query.port)) as connection:
        parameters = f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
        connection.sendall(struct.pack("!ii", 8 + len(parameters), 3 << 16) + parameters)
        greeting = b""
        while not greeting.endswith(b"Z\0\0\0\x05I"):
            greeting += connection.recv(RECEIVE_BYTES)
        connect_s = watch.lap()
        text = f"COPY ({query.sql}) TO STDOUT (FORMAT binary)\0".encode()
        connection.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)
        wire_bytes, execute_s, end, tail = 0, None, None, b""
        while end is None:
            received = connection.recv_into(buffer)
            if not received:
                raise ConnectionError(f"the server ended the connection: {tail!r}")
            execute_s = watch.lap() if execute_s is None else execute_s
            wire_bytes += received
            tail = (tail + bytes(buffer[max(0, received - 64) : received]))[-64:]
            if b"ERROR" in tail:
                raise RuntimeError(f"the server refused: {tail!r}")
            end = COPY_END.search(tail)
        transfer_s = watch.lap()
    return Measurement(
        connect_s, execute_s, transfer_s, watch.total(), int(end[1]), None, wire_bytes
    )


def scan_append(query: Query) -> Measurement:
    """The time that the backend measures itself; see scan_append/."""
    import psycopg

    with psycopg.connect(query.conninfo) as connection:
        figures = {}
        for step, append in (("deform_s", "false"), ("append_s", "true")):
            call = f"SELECT rows, bytes, seconds FROM lab_scan_append(%s, {append})"
            rows, appended_bytes, figures[step] = connection.execute(call, [query.sql]).fetchone()
        details = {**figures, "appended_bytes": appended_bytes}
        return Measurement(
            None, None, figures["append_s"], figures["append_s"], rows, None, 0, details=details
        )


# Tiny queries on one open connection.


def timed(ask: Callable[[], object]) -> Measurement:
    watch = Stopwatch()
    for _ in range(WARM_UP_QUERIES):
        ask()
    execute_s = watch.lap()
    micros = []
    for _ in range(LATENCY_QUERIES):
        start = time.perf_counter_ns()
        ask()
        micros.append((time.perf_counter_ns() - start) / 1000)
    median_us = statistics.median(micros)
    details = {"median_us": median_us, "p99_us": statistics.quantiles(micros, n=100)[98]}
    return Measurement(None, execute_s, watch.lap(), median_us / 1e6, None, None, details=details)


def libpq_latency(query: Query) -> Measurement:
    """libpq's PQexec, through psycopg's thin wrapper."""
    import psycopg

    with psycopg.connect(query.conninfo, autocommit=True) as connection:
        sql = query.sql.encode()

        def ask() -> list[bytes | None]:
            result = connection.pgconn.exec_(sql)
            return [
                result.get_value(row, column)
                for row in range(result.ntuples)
                for column in range(result.nfields)
            ]

        return timed(ask)


def psycopg_latency(query: Query) -> Measurement:
    import psycopg

    with psycopg.connect(query.conninfo, autocommit=True) as connection:
        return timed(lambda: connection.execute(query.sql).fetchall())


def dray_latency(query: Query) -> Measurement:
    import dray

    options = dray_options(query)
    with dray.connect(query.uri) as connection:
        return timed(lambda: list(connection.query(query.sql, **options).rows()))


def dray_arrow_latency(query: Query) -> Measurement:
    import dray

    options = dray_options(query)
    with dray.connect(query.uri) as connection:
        return timed(lambda: connection.query(query.sql, **options).arrow())


def without_columns(stats: Any) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(stats).items() if name != "columns"}


#: The function of each driver, and the modules it needs.
DRIVERS: dict[str, tuple[Callable[[Query], Measurement], tuple[str, ...]]] = {
    "dray-arrow": (dray_arrow, ("dray", "pyarrow")),
    "duckdb": (duckdb_arrow, ("duckdb", "pyarrow")),
    "connectorx": (connectorx_arrow, ("connectorx", "pyarrow")),
    "adbc": (adbc_arrow, ("adbc_driver_postgresql.dbapi", "pyarrow")),
    "arrow-odbc": (arrow_odbc_arrow, ("arrow_odbc", "pyarrow")),
    "dray-rows": (dray_rows, ("dray",)),
    "psycopg": (psycopg_rows, ("psycopg",)),
    "psycopg2": (psycopg2_rows, ("psycopg2",)),
    "pyodbc": (pyodbc_rows, ("pyodbc",)),
    "pandas": (pandas_frame, ("pandas", "sqlalchemy", "psycopg2")),
    "dray-pandas": (dray_frame, ("dray", "pandas", "pyarrow")),
    "copy-binary": (copy_binary, ("psycopg",)),
    "copy-csv": (copy_csv, ("psycopg",)),
    "copy-socket": (copy_socket, ()),
    "scan-append": (scan_append, ("psycopg",)),
    "libpq-latency": (libpq_latency, ("psycopg",)),
    "psycopg-latency": (psycopg_latency, ("psycopg",)),
    "dray-latency": (dray_latency, ("dray",)),
    "dray-arrow-latency": (dray_arrow_latency, ("dray", "pyarrow")),
}


def prefer_oom_kill() -> None:
    """Have the kernel kill this client first, rather than the server, if memory runs out."""
    Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("driver", choices=DRIVERS)
    parser.add_argument("port", type=int)
    parser.add_argument("sql")
    parser.add_argument("--fetches", type=int, default=1)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--partition-column")
    parser.add_argument("--text-bytes-max", type=int, default=64)
    parser.add_argument("--extension", choices=("auto", "always", "never"), default="never")
    given = parser.parse_args()
    fetch, modules = DRIVERS[given.driver]
    prefer_oom_kill()
    for module in modules:
        importlib.import_module(module)
    process = Client()
    process.report(median_fetch(lambda: fetch(Query(given)), given.fetches))
