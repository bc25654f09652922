"""HyPer, which speaks PostgreSQL's protocol: libpq, JDBC. Its COPY has no binary format."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from urllib.parse import quote

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed, run
from lab.common.machine import package_version
from lab.postgres.server import drain_program
from lab.systems.frames import frame
from lab.systems.system import Entry, Program, System, jdbc

USER = "lab"


class HyperServer(LoadedServer):
    announcement = "listening to"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "hyper")
        self.database = self.data_folder / "lab.hyper"

    def command(self) -> list[str]:
        package = importlib.util.find_spec("tableauhyperapi")
        folder = Path(package.origin).parent if package and package.origin else Path("none")
        program = folder / "bin" / "hyper" / "hyperd"
        is_installed(program, "install tableauhyperapi")
        listen = f"tab.tcp://{self.setting.testbed.address}:{self.port}"
        options = ["--no-password", "--skip-license", "--log-dir", str(self.data_folder)]
        return [str(program), "run", "--listen-connection", listen, "--init-user", USER, *options]

    def login(self, database: Path | str) -> str:
        where = f"host={self.setting.testbed.address} port={self.port}"
        return f"{where} user={USER} dbname='{database}' sslmode=disable"

    def load(self) -> None:
        table = self.setting.table
        create = f"CREATE TABLE {table.name} AS (SELECT * FROM external('{table.parquet()}'))"
        for database, statement in (
            ("", f'CREATE DATABASE "{self.database}"'),
            (self.database, create),
        ):
            psql = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", self.login(database), "-c", statement]
            run([*self.setting.testbed.far, *psql], "fill HyPer")


def entries(setting: Setting) -> list[Entry]:
    server = HyperServer(setting)
    sql = setting.table.query

    def drained(name: str, label: str, form: str) -> Program:
        return Program(
            f"hyper-{name}",
            label,
            server,
            lambda: [drain_program(), server.login(server.database), form, sql],
        )

    address = setting.testbed.address
    database = quote(str(server.database), safe="")
    uri = f"postgresql://{USER}@{address}:{server.port}/{database}?sslmode=disable"
    ways = {
        "connectorx-cursor": uri,
        "adbc-rows": uri,
        "psycopg": server.login(server.database),
    }

    def by_jdbc() -> list[object]:
        url = f"jdbc:postgresql://{address}:{server.port}/{database}"
        return list(jdbc(url, sql, f"user={USER}", "sslmode=disable"))

    return [
        Entry(Program("hyper-jdbc", "JDBC", server, by_jdbc)),
        Entry(drained("text", "libpq, rows as text", "text"), in_figures=True),
        Entry(drained("binary", "libpq, binary rows", "binary")),
        *(frame("hyper", server, way, where, sql) for way, where in ways.items()),
    ]


SYSTEM = System("hyper", "HyPer", entries, lambda: {"HyPer": package_version("tableauhyperapi")})
