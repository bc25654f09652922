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

TOKEN = "of the laboratory"


class QuackServer(Server):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "quack")

    def command(self) -> list[str]:
        table = self.setting.table
        return python(__name__, "serve", self.uri(), table.name, table.parquet())

    def uri(self) -> str:
        testbed = self.setting.testbed
        return f"quack:{'localhost' if testbed.is_loopback() else testbed.address}:{self.port}"


class QuackContender(Contender):
    server: QuackServer

    def __init__(self, server: QuackServer) -> None:
        super().__init__("quack", "Quack (DuckDB), TCP", server)

    def client_command(self) -> list[str]:
        setting = self.server.setting
        options = ["--fetches", setting.fetches]
        return python(__name__, "fetch", self.server.uri(), setting.table.name, *options)


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


def serve(uri: str, name: str, parquet: Path) -> None:
    connection = engine()
    connection.execute(f"CREATE TABLE {name} AS FROM '{parquet}'")
    options = f"token = '{TOKEN}', allow_other_hostname = true"
    connection.execute(f"CALL quack_serve('{uri}', {options})")
    threading.Event().wait()


def fetch(uri: str, name: str) -> Measurement:
    with engine() as connection:
        connection.execute("SET preserve_insertion_order = false")
        watch = Stopwatch()
        # On any host but localhost, TLS would be the default, and the server has none.
        connection.execute(f"ATTACH '{uri}' AS remote (TOKEN '{TOKEN}', DISABLE_SSL true)")
        connect_s = watch.lap()
        table = connection.sql(f"SELECT * FROM remote.{name}").to_arrow_table()
        transfer_s = watch.lap()
        return Measurement(connect_s, None, transfer_s, watch.total(), table.num_rows, table.nbytes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    ends = parser.add_subparsers(dest="end", required=True)
    end = ends.add_parser("serve")
    end.add_argument("uri")
    end.add_argument("table")
    end.add_argument("parquet", type=Path)
    end = ends.add_parser("fetch")
    end.add_argument("uri")
    end.add_argument("table")
    end.add_argument("--fetches", type=int, required=True)
    given = parser.parse_args()
    if given.end == "serve":
        serve(given.uri, given.table, given.parquet)
    else:
        Client().report(median_fetch(lambda: fetch(given.uri, given.table), given.fetches))
