"""Quack, DuckDB's remote protocol: `quack_serve` of a table in memory, attached by another DuckDB.

The client does not preserve the order of rows, because only then does it fetch with all threads.
"""

from __future__ import annotations

import argparse
import site
import threading
from pathlib import Path

import duckdb

from lab.common.contender import Contender, Server, Setting
from lab.common.measurement import Client, Measurement, Stopwatch, median_fetch
from lab.common.program import program_name, python

TOKEN = "loopback only"


class QuackServer(Server):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "quack")

    def command(self) -> list[str]:
        return python(__name__, "serve", self.port, self.setting.table.parquet())


class QuackContender(Contender):
    def __init__(self, server: QuackServer) -> None:
        super().__init__("quack", "Quack (DuckDB), TCP", server)

    def client_command(self) -> list[str]:
        return python(__name__, "fetch", self.server.port)


def engine() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB with the extensions that are installed as Python packages."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("httpfs", "quack"):
        file = f"duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        path = next(
            Path(folder, file) for folder in site.getsitepackages() if Path(folder, file).exists()
        )
        connection.execute(f"LOAD '{path}'")
    return connection


def serve(port: int, parquet: Path) -> None:
    connection = engine()
    connection.execute(f"CREATE TABLE lineitem AS FROM '{parquet}'")
    connection.execute(f"CALL quack_serve('quack:localhost:{port}', token = '{TOKEN}')")
    threading.Event().wait()


def fetch(port: int) -> Measurement:
    with engine() as connection:
        connection.execute("SET preserve_insertion_order = false")
        watch = Stopwatch()
        connection.execute(f"ATTACH 'quack:localhost:{port}' AS remote (TOKEN '{TOKEN}')")
        connect_s = watch.lap()
        table = connection.sql("SELECT * FROM remote.lineitem").to_arrow_table()
        transfer_s = watch.lap()
        return Measurement(connect_s, None, transfer_s, watch.total(), table.num_rows, table.nbytes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("end", choices=["serve", "fetch"])
    parser.add_argument("port", type=int)
    parser.add_argument("parquet", type=Path, nargs="?")
    given = parser.parse_args()
    if given.end == "serve":
        serve(given.port, given.parquet)
    else:
        Client().report(median_fetch(lambda: fetch(given.port)))
