"""Clients as processes of their own: `python -m lab.systems.client WAY ARGUMENT…`.

`lines COMMAND…` counts the lines of a program, `run COMMAND…` only waits for it, and the others
fetch the rows of a statement by a package: `dray URI SQL [NAME=VALUE…]`,
`clickhouse HOST:PORT SQL COMPRESSION`, `flight-sql LOCATION SQL`.
"""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu

READ_BYTES = 1024 * 1024
#: A batch of a wide table is longer than what the driver takes by itself.
MESSAGE_BYTES_MAX = 1 << 30


def output(command: tuple[str, ...]) -> Iterator[bytes]:
    """What a program prints, in blocks as they come, until it has ended."""
    # It must not outlive a client that took too long.
    bound = ["setpriv", "--pdeathsig=KILL", "--", *command]
    with subprocess.Popen(bound, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        while block := program.stdout.read1(READ_BYTES):
            yield block
    if program.returncode != 0:
        raise SystemExit(f"{command[0]} ended with code {program.returncode}")


def lines(*command: str) -> Measurement:
    """Run a program that prints a row a line, and throw its output away. Its time ends with the
    last row: beeline takes 20 seconds to exit.
    """
    watch = Stopwatch()
    rows = 0
    for block in output(command):
        rows += block.count(b"\n")
        watch.lap()
    return Measurement(None, None, watch.total(), watch.total(), rows, None)


def run(*command: str) -> Measurement:
    """Run a program that drops the rows itself, and does not tell how many."""
    watch = Stopwatch()
    for _ in output(command):
        pass
    transfer_s = watch.lap()
    return Measurement(None, None, transfer_s, watch.total(), None, None)


def clickhouse(address: str, sql: str, compression: str) -> Measurement:
    from clickhouse_driver import Client as ClickHouse

    watch = Stopwatch()
    host, _, port = address.partition(":")
    with ClickHouse(host, port=int(port), compression=compression or False) as client:
        columns = client.execute(sql, columnar=True)
        transfer_s = watch.lap()
        return Measurement(None, None, transfer_s, watch.total(), len(columns[0]), None)


def flight_sql(location: str, sql: str) -> Measurement:
    from adbc_driver_flightsql import DatabaseOptions, dbapi

    watch = Stopwatch()
    options = {DatabaseOptions.WITH_MAX_MSG_SIZE.value: str(MESSAGE_BYTES_MAX)}
    with dbapi.connect(location, db_kwargs=options) as connection, connection.cursor() as cursor:
        connect_s = watch.lap()
        cursor.execute(sql)
        execute_s = watch.lap()
        table = cursor.fetch_arrow_table()
        transfer_s = watch.lap()
        total_s = watch.total()
    return Measurement(
        connect_s,
        execute_s,
        transfer_s,
        total_s,
        table.num_rows,
        table.nbytes,
        details=first_column_sum(table),
    )


def dray(uri: str, sql: str, *options: str) -> Measurement:
    import dray as package

    chosen = {name: VALUES.get(value, value) for name, value in (o.split("=") for o in options)}
    watch = Stopwatch()
    with package.connect(uri) as connection:
        connect_s = watch.lap()
        result = connection.query(sql, **chosen)
        execute_s = watch.lap()
        table = result.arrow()
        transfer_s = watch.lap()
        stats = dataclasses.asdict(result.stats)
        stats.pop("columns", None)
        details = {"stats": stats, **first_column_sum(table)}
        return Measurement(
            connect_s,
            execute_s,
            transfer_s,
            watch.total(),
            table.num_rows,
            table.nbytes,
            details=details,
        )


def first_column_sum(table: pa.Table) -> dict[str, int]:
    """The sum of the first column, if it has integers, for the check of `Program`."""
    column = table.column(0)
    return {"first_column_sum": pc.sum(column).as_py()} if pa.types.is_integer(column.type) else {}


#: Values of options that are no text.
VALUES = {"true": True, "false": False}
WAYS = {
    "lines": lines,
    "run": run,
    "dray": dray,
    "clickhouse": clickhouse,
    "flight-sql": flight_sql,
}
#: The packages that ways import. They are imported before the clock starts, and before the client's
#: first memory is measured.
PACKAGES = {
    "dray": "dray",
    "clickhouse": "clickhouse_driver",
    "flight-sql": "adbc_driver_flightsql.dbapi",
}

if __name__ == "__main__":
    way, *words = sys.argv[1:]
    if way in PACKAGES:
        importlib.import_module(PACKAGES[way])
    client = Client()
    client.report(with_cpu(lambda: WAYS[way](*words)))
