"""Clients that are the same for several systems: `python -m lab.systems.client lines COMMAND…`
counts the lines of a program, `dray URI SQL [NAME=VALUE…]` fetches by Dray into an Arrow table.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc

from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu

READ_BYTES = 1024 * 1024


def lines(*command: str) -> Measurement:
    """Run a program that prints a row a line, and throw its output away."""
    watch = Stopwatch()
    rows = 0
    # It must not outlive a client that took too long.
    bound = ["setpriv", "--pdeathsig=KILL", "--", *command]
    with subprocess.Popen(bound, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        while block := program.stdout.read(READ_BYTES):
            rows += block.count(b"\n")
    transfer_s = watch.lap()
    if program.returncode != 0:
        raise SystemExit(f"{command[0]} ended with code {program.returncode}")
    return Measurement(None, None, transfer_s, watch.total(), rows, None)


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
WAYS = {"lines": lines, "dray": dray}

if __name__ == "__main__":
    way, *words = sys.argv[1:]
    if way == "dray":
        # Imported before the clock starts, and before the client's first memory is measured.
        import dray as _dray  # noqa: F401
    client = Client()
    client.report(with_cpu(lambda: WAYS[way](*words)))
