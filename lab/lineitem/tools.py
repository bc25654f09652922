"""Measure lineitem by the package's own functions and by the tools that take its DB-API, in turns.

    python -m lab.lineitem.tools --dray PROGRAM --rounds 7

Each fetch opens a connection of its own. The first round is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas
import polars

import dray
import dray.dbapi
from lab.common.program import program_name

SQL = "SELECT * FROM lineitem"


def to_arrow(uri: str) -> object:
    with dray.connect(uri) as connection:
        return connection.query(SQL).to_arrow()


def fetch_arrow_table(uri: str) -> object:
    with dray.dbapi.connect(uri) as connection, connection.cursor() as cursor:
        return cursor.execute(SQL).fetch_arrow_table()


def read_sql(uri: str) -> object:
    with dray.dbapi.connect(uri) as connection:
        return pandas.read_sql(SQL, connection, dtype_backend="pyarrow")


def read_database_uri(uri: str) -> object:
    return polars.read_database_uri(SQL, f"dray:{uri}", engine="adbc")


def to_polars(uri: str) -> object:
    with dray.connect(uri) as connection:
        return connection.query(SQL).to_polars()


#: Each beside what it is compared with.
FETCHES: dict[str, Callable[[str], object]] = {
    "query().to_arrow()": to_arrow,
    "dbapi, fetch_arrow_table()": fetch_arrow_table,
    'pandas.read_sql(dtype_backend="pyarrow")': read_sql,
    "query().to_polars()": to_polars,
    "polars.read_database_uri": read_database_uri,
}


def measure(uri: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each fetch."""
    seconds: dict[str, list[float]] = {name: [] for name in FETCHES}
    for number in range(rounds + 1):
        for name, fetch in FETCHES.items():
            began = time.perf_counter()
            frame = fetch(uri)
            took = time.perf_counter() - began
            del frame
            if number > 0:
                seconds[name].append(took)
    return seconds


def main() -> int:
    given = argparse.ArgumentParser(prog=program_name(), description=__doc__.splitlines()[0])
    given.add_argument("--dray", type=Path, required=True, help="path of the dray program")
    given.add_argument("--scale-factor", default="1")
    given.add_argument("--rounds", type=int, default=7)
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "dray.sock"
        tables = ["--in-memory", "--tpch", options.scale_factor]
        command = [options.dray, "serve", "--log", "error", *tables, "--unix", socket]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                seconds = measure(f"dray+unix://{socket}", options.rounds)
            finally:
                server.terminate()
    first = statistics.median(seconds["query().to_arrow()"])
    print("| | median | range | of the first |\n|---|---:|---:|---:|")
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{min(times):.3f}–{max(times):.3f}"
        print(f"| `{name}` | {median:.3f} | {spread} | {median / first:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
