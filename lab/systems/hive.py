"""Hive's protocol, HiveServer2: Spark's Thrift server over a Parquet file, by Hive's JDBC driver,
which the paper used as well, by beeline, by impyla and by Dray's relay.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed, run
from lab.common.machine import package_version
from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu
from lab.common.program import program_name, python
from lab.systems.relay import RelayServer
from lab.systems.system import ROWS_PER_FETCH, Entry, Program, System, jdbc

USER = "lab"
#: Results are sent while they are made, instead of being collected before.
SETTINGS = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.thriftServer.incrementalCollect": "true",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
}


def spark() -> Path:
    package = importlib.util.find_spec("pyspark")
    folder = Path(package.origin).parent if package and package.origin else Path("pyspark")
    is_installed(folder, "install pyspark")
    return folder


class SparkServer(LoadedServer):
    announcement = "ThriftBinaryCLIService on port"
    #: Its catalog is in memory.
    keeps_data = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "spark")

    def command(self) -> list[str]:
        address = self.setting.testbed.address
        settings = {
            **SETTINGS,
            "spark.driver.bindAddress": address,
            "spark.driver.host": address,
            "spark.local.dir": self.data_folder,
            # Its catalog of Hive's would write derby.log where the benchmark was started.
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={self.data_folder}",
            "spark.sql.warehouse.dir": self.data_folder / "warehouse",
        }
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        listen = {"thrift.port": self.port, "thrift.bind.host": address}
        hive = [
            word
            for name, value in listen.items()
            for word in ("--hiveconf", f"hive.server2.{name}={value}")
        ]
        main = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
        program = [f"{spark()}/bin/spark-submit", "--master", "local[*]", "--class", main]
        environment = ["env", f"SPARK_HOME={spark()}", f"SPARK_LOCAL_IP={address}"]
        return [*environment, *program, *words, "spark-internal", *hive]

    def load(self) -> None:
        table = self.setting.table
        statement = f"CREATE TABLE {table.name} USING parquet LOCATION '{table.parquet()}'"
        command = python(__name__, "execute", self.setting.testbed.address, self.port, statement)
        run([*self.setting.testbed.far, *command], "fill Spark")


def entries(setting: Setting) -> list[Entry]:
    return clients("hive", SparkServer(setting), f"{spark()}/jars/*")


def clients(name: str, server: LoadedServer, jars: str) -> list[Entry]:
    """The clients of a server of Hive's protocol. `jars` are those of its JDBC driver."""
    setting = server.setting
    address, sql = setting.testbed.address, setting.table.query

    def url() -> str:
        return f"jdbc:hive2://{address}:{server.port}/default"

    def by_jdbc() -> list[object]:
        return list(jdbc(url(), sql, f"user={USER}", jars=jars))

    def by_beeline() -> list[object]:
        form = ["--outputformat=csv2", "--showHeader=false", "--silent=true", "--incremental=true"]
        words = ["env", f"SPARK_HOME={spark()}", f"{spark()}/bin/beeline", "-u", url(), "-n", USER]
        return list(python("lab.systems.client", "lines", *words, *form, "-e", sql))

    relay = RelayServer(server, f"hive://{USER}:{USER}@{address}:{server.port}/default")
    return [
        Entry(Program(f"{name}-jdbc", "JDBC", server, by_jdbc), "Hive", in_figures=True),
        Entry(Program(f"{name}-beeline", "beeline", server, by_beeline)),
        Entry(
            Program(
                f"{name}-impyla",
                "impyla, columns",
                server,
                lambda: list(python(__name__, "fetch", address, server.port, sql)),
            )
        ),
        Entry(relay.client(sql), in_figures=True),
    ]


def versions() -> dict[str, str]:
    return {name: package_version(name) for name in ("pyspark", "impyla")}


SYSTEM = System("hive", "Spark, Hive's protocol", entries, versions)


def cursor_at(address: str, port: int):
    import impala.dbapi

    return impala.dbapi.connect(address, port, auth_mechanism="PLAIN", user=USER).cursor()


def fetch(address: str, port: int, sql: str) -> Measurement:
    """Run a query. Rows come in columns, which are counted and dropped."""
    watch = Stopwatch()
    cursor = cursor_at(address, port)
    connect_s = watch.lap()
    cursor.execute(sql)
    execute_s = watch.lap()
    rows = 0
    cursor.set_arraysize(ROWS_PER_FETCH)
    while (batch := cursor.fetchcbatch()) is not None:
        rows += len(batch)
    transfer_s = watch.lap()
    return Measurement(connect_s, execute_s, transfer_s, watch.total(), rows, None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("way", choices=["execute", "fetch"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("sql")
    given = parser.parse_args()
    import impala.dbapi  # noqa: F401

    if given.way == "execute":
        cursor_at(given.address, given.port).execute(given.sql)
    else:
        client = Client()
        client.report(with_cpu(lambda: fetch(given.address, given.port, given.sql)))
