"""Arrow Flight, and DuckDB by Quack."""

from __future__ import annotations

from lab.common.arrow_flight import FlightContender, FlightServer
from lab.common.contender import Setting
from lab.common.machine import package_version
from lab.lineitem.quack import QuackContender, QuackServer
from lab.systems.system import Entry, System


def flight(setting: Setting) -> list[Entry]:
    server = FlightServer(setting)
    found = []
    for compression in ("none", "lz4", "zstd"):
        contender = FlightContender(server, compression=compression)
        contender.label = f"DoGet, {compression}, into an Arrow table"
        found.append(Entry(contender, in_figures=compression == "none"))
    return found


def quack(setting: Setting) -> list[Entry]:
    contender = QuackContender(QuackServer(setting))
    contender.label = "DuckDB, into an Arrow table"
    return [Entry(contender, in_figures=True)]


FLIGHT = System("flight", "Arrow Flight", flight, lambda: {"pyarrow": package_version("pyarrow")})
QUACK = System(
    "quack",
    "DuckDB, Quack",
    quack,
    lambda: {name: package_version(name) for name in ("duckdb", "duckdb-extension-quack")},
)
