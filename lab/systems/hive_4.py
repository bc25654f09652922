"""Hive itself: a HiveServer2 with its metastore in the same process, over a Parquet file, by the
clients of `hive.py`. Its JDBC driver is its own, and its beeline is Spark's.

Hive reads the file where it is; to read ORC, it lacks a library among these jars. A fetch reads and
sends at the same time, without a job of MapReduce or Tez, so that the protocol is measured and not
Hadoop's start of a job.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed, run
from lab.common.machine import package_version
from lab.common.program import python
from lab.data.table import cache_folder
from lab.systems.hive import clients
from lab.systems.system import Entry, System

#: The jars of `python/tests/hive/pom.xml`, which scripts/setup puts below the cache.
JARS = cache_folder().parent / "hive"
MAIN = "org.apache.hive.service.server.HiveServer2"
#: What Hive opens by reflection.
OPENED = (
    "lang lang.reflect util util.concurrent util.concurrent.atomic util.regex net io nio text time"
).split()
SETTINGS = {
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.server2.enable.doAs": "false",
    "hive.server2.webui.port": 0,
    "hive.server2.materializedviews.registry.impl": "DUMMY",
    "hive.execution.engine": "mr",
    "hive.support.concurrency": "false",
    "mapreduce.framework.name": "local",
    "fs.defaultFS": "file:///",
    # A whole table is a fetch without a job, whatever its size, and is not collected before.
    "hive.fetch.task.conversion": "more",
    "hive.fetch.task.conversion.threshold": -1,
    "hive.fetch.task.caching": "false",
    "hive.resultset.use.unique.column.names": "false",
}


class HiveServer(LoadedServer):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "hive-4")

    def command(self) -> list[str]:
        is_installed(JARS, "run scripts/setup CACHE systems")
        folder, address = self.data_folder, self.setting.testbed.address
        settings = {
            **SETTINGS,
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder / 'metastore'};create=true",
            "hive.metastore.warehouse.dir": folder / "warehouse",
            "hive.exec.scratchdir": folder / "scratch",
            "hive.exec.local.scratchdir": folder / "local",
            "hive.server2.thrift.port": self.port,
            "hive.server2.thrift.bind.host": address,
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>\n"
            for name, value in settings.items()
        )
        (folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
        opened = (f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED)
        log = f"-Dderby.stream.error.file={folder / 'derby.log'}"
        return ["java", "-Xmx4g", log, *opened, "-cp", f"{folder}:{JARS}/*", MAIN]

    def load(self) -> None:
        table = self.setting.table
        place = self.data_folder / table.name
        place.mkdir()
        (place / "table.parquet").symlink_to(table.parquet())
        command = python("lab.systems.hive", "execute", self.setting.testbed.address, self.port)
        far = self.setting.testbed.far
        run([*far, *command, ddl(table.name, table.parquet(), place)], "fill Hive")


def ddl(name: str, parquet: Path, place: Path) -> str:
    """The statement that creates a table over a folder with a Parquet file."""
    columns = ", ".join(
        f"`{field.name}` {hive_type(field.type)}" for field in pq.read_schema(parquet)
    )
    return f"CREATE EXTERNAL TABLE {name} ({columns}) STORED AS PARQUET LOCATION '{place}'"


def hive_type(of: pa.DataType) -> str:
    if pa.types.is_decimal(of):
        return f"decimal({of.precision},{of.scale})"
    if pa.types.is_string(of) or pa.types.is_string_view(of):
        return "string"
    return {pa.int32(): "int", pa.int64(): "bigint", pa.float64(): "double", pa.date32(): "date"}[
        of
    ]


def entries(setting: Setting) -> list[Entry]:
    return clients("hive-4", HiveServer(setting), f"{JARS}/*")


def versions() -> dict[str, str]:
    jar = next((jar.stem for jar in JARS.glob("hive-service-[0-9]*.jar")), "missing")
    return {"Hive": jar, "impyla": package_version("impyla")}


SYSTEM = System("hive-4", "Hive 4.0", entries, versions)
