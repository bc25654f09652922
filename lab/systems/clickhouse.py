"""ClickHouse's native protocol: Debian's server of 2018, its own client, and one in Python."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed, run
from lab.common.machine import package_version
from lab.common.program import output_of, python
from lab.data.table import Table
from lab.systems.system import Entry, Program, System

SERVER, CLIENT = Path("/usr/sbin/clickhouse-server"), "clickhouse-client"
CONFIGURATION = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<tcp_port>{port}</tcp_port><listen_host>{address}</listen_host><timezone>UTC</timezone>
<path>{folder}/</path><tmp_path>{folder}/tmp/</tmp_path>
<mark_cache_size>1073741824</mark_cache_size>
<users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<profiles><default><max_memory_usage>10000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>::/0</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas>
</yandex>
"""
TYPES = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date",
    pa.string(): "String",
    pa.string_view(): "String",
}


class ClickHouseServer(LoadedServer):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "clickhouse")
        self.configuration = setting.folder / "clickhouse.xml"

    def command(self) -> list[str]:
        is_installed(SERVER, "install clickhouse-server and clickhouse-client")
        # It reads users from a second file, which may be the same.
        text = CONFIGURATION.format(
            port=self.port, address=self.setting.testbed.address, folder=self.data_folder
        )
        self.configuration.write_text(text.replace("users.xml", self.configuration.name))
        return [str(SERVER), f"--config-file={self.configuration}"]

    def client(self, statement: str, *options: object) -> list[object]:
        login = ["--host", self.setting.testbed.address, "--port", self.port]
        return [shutil.which(CLIENT) or CLIENT, *login, *options, "--query", statement]

    def load(self) -> None:
        table = self.setting.table
        file = self.setting.folder / f"{table.name}.tsv"
        rows = f"SELECT * FROM '{table.parquet()}'"
        duckdb.sql(
            f"COPY ({rows}) TO '{file}' "
            r"(DELIMITER '\t', QUOTE '', ESCAPE '', NULLSTR '\N', HEADER false)"
        )
        try:
            for statement, source in (
                (f"CREATE TABLE {table.name} ({ddl(table)}) ENGINE = Log", Path("/dev/null")),
                (f"INSERT INTO {table.name} FORMAT TabSeparated", file),
            ):
                command = [*self.setting.testbed.far, *self.client(statement)]
                shell = ["sh", "-c", 'exec "$@" < "$0"', source, *command]
                run(shell, "fill ClickHouse")
        finally:
            file.unlink()


def ddl(table: Table) -> str:
    return ", ".join(columns(pq.read_schema(table.parquet()), table.name != "lineitem"))


def columns(schema: pa.Schema, is_nullable: bool) -> Iterator[str]:
    for field in schema:
        kind = field.type
        name = f"Decimal({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else None
        name = name or TYPES.get(kind, "String")
        yield f"`{field.name}` {f'Nullable({name})' if is_nullable else name}"


def entries(setting: Setting) -> list[Entry]:
    server = ClickHouseServer(setting)
    sql = setting.table.query

    def program(way: str, *options: object) -> list[object]:
        return list(python("lab.systems.client", way, *server.client(sql, *options)))

    def by_python(compression: str) -> list[object]:
        address = f"{setting.testbed.address}:{server.port}"
        return list(python("lab.systems.client", "clickhouse", address, sql, compression))

    def client(name: str, label: str, command: object) -> Program:
        return Program(f"clickhouse-{name}", label, server, command)

    plain, packed = ("--compression", 0), ("--compression", 1)
    dropped = ("--format", "Null")
    uncounted = "the client drops the rows without telling their number"
    return [
        Entry(
            client("null", "its client, dropped", lambda: program("run", *plain, *dropped)),
            in_figures=True,
            note=uncounted,
        ),
        Entry(
            client(
                "null-lz4", "its client, LZ4, dropped", lambda: program("run", *packed, *dropped)
            ),
            note=uncounted,
        ),
        Entry(
            client(
                "text",
                "its client, LZ4, as text",
                lambda: program("lines", *packed, "--format", "TabSeparated"),
            )
        ),
        Entry(client("python", "clickhouse-driver, columns", lambda: by_python(""))),
        Entry(client("python-lz4", "clickhouse-driver, LZ4, columns", lambda: by_python("lz4"))),
    ]


def versions() -> dict[str, str]:
    found = {"clickhouse-driver": package_version("clickhouse-driver")}
    if SERVER.exists():
        found["ClickHouse"] = output_of("dpkg-query", "-f", "${Version}", "-W", "clickhouse-server")
    return found


SYSTEM = System("clickhouse", "ClickHouse 18.16", entries, versions)
