"""DB2's protocol, DRDA: Derby's network server, by its JDBC client, and Dray by the same."""

from __future__ import annotations

import re

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, run
from lab.common.machine import package_version
from lab.common.process import Failure
from lab.data.sample import DATA
from lab.data.table import Table
from lab.systems.frames import frame
from lab.systems.relay import RelayServer
from lab.systems.system import JAVA, Entry, Program, System, java, jdbc

LINEITEM = """CREATE TABLE lineitem (
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL,
    l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL,
    l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL,
    l_tax decimal(15,2) NOT NULL, l_returnflag varchar(1) NOT NULL,
    l_linestatus varchar(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL, l_shipinstruct varchar(25) NOT NULL,
    l_shipmode varchar(10) NOT NULL, l_comment varchar(44) NOT NULL)"""


class DerbyServer(LoadedServer):
    announcement = "ready to accept connections"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "derby")

    def command(self) -> list[str]:
        home = f"-Dderby.system.home={self.data_folder}"
        where = ["-h", self.setting.testbed.address, "-p", self.port, "-noSecurityManager"]
        main = "org.apache.derby.drda.NetworkServerControl"
        return java(main, "start", *where, options=(home, "-Xmx4g"))

    def url(self) -> str:
        return f"jdbc:derby://{self.setting.testbed.address}:{self.port}/lab"

    def load(self) -> None:
        table = self.setting.table
        header = 1
        statements = [
            f"CONNECT '{self.url()};create=true'",
            ddl(table),
            "CALL SYSCS_UTIL.SYSCS_IMPORT_TABLE_BULK"
            f"(null, '{table.name.upper()}', '{table.csv()}', ',', '\"', 'UTF-8', 0, {header})",
        ]
        command = java("org.apache.derby.tools.ij")
        output = run(
            [*self.setting.testbed.far, *command],
            "fill Derby",
            "".join(f"{one};\n" for one in statements),
        )
        # Errors end neither `ij` nor its script.
        if error := next((line for line in output.splitlines() if "ERROR" in line), None):
            raise Failure(f"cannot fill Derby: {error}")


def ddl(table: Table) -> str:
    """The statement that creates a table: PostgreSQL's of a sample, in the words of Derby."""
    if table.name == "lineitem":
        return LINEITEM
    lines = (DATA / f"{table.name}.sql").read_text().strip().removesuffix(";").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    # Some names are words of its SQL.
    quoted = re.sub(r"^    (\w+)", lambda name: f'    "{name[1].upper()}"', text, flags=re.M)
    return quoted.replace(" text", " varchar(100)")


def entries(setting: Setting) -> list[Entry]:
    server = DerbyServer(setting)
    client = Program("derby-jdbc", "JDBC", server, lambda: jdbc(server.url(), setting.table.query))
    # Each client has a Java of its own there, whose start its time includes.
    relay = RelayServer(server, server.url(), "JDBC").client(setting.table.query)
    return [
        Entry(client, "DB2", in_figures=True),
        frame("derby", server, "jaydebeapi", server.url(), setting.table.query),
        Entry(relay, in_figures=True),
    ]


def versions() -> dict[str, str]:
    jars = (JAVA / "jars").glob("derbynet-*.jar")
    return {
        "Derby": next((jar.stem for jar in jars), "missing"),
        "jaydebeapi": package_version("jaydebeapi"),
    }


SYSTEM = System("derby", "Derby, DB2's protocol", entries, versions)
