"""MariaDB and MySQL: the C library, the command line, ODBC, JDBC and Dray."""

from __future__ import annotations

from collections.abc import Callable

from lab.common.contender import Setting
from lab.common.machine import program_version
from lab.common.program import python
from lab.data.table import cache_folder
from lab.mysql.client import DATABASE, PASSWORD, USER
from lab.mysql.server import DISTRIBUTED, MariaServer, drain_program
from lab.systems.frames import frame
from lab.systems.relay import RelayServer
from lab.systems.system import Entry, Program, System, jdbc, odbc

#: The option of MariaDB's ODBC driver that compresses the protocol.
ODBC_COMPRESSED = 2048
#: The driver would keep the whole result otherwise.
ODBC_STREAMED = "NO_CACHE=1;FORWARDONLY=1"


def entries(setting: Setting, version: str) -> list[Entry]:
    server = MariaServer(setting, [setting.table], version)
    clients = Clients(server)
    found = []
    for is_compressed in (False, True):
        suffix, what = ("-compressed", ", compressed") if is_compressed else ("", "")
        paper = "MySQL+C" if is_compressed else "MySQL"

        def client(
            name: str,
            label: str,
            command: Callable[[bool], list[object]],
            is_compressed: bool = is_compressed,
            suffix: str = suffix,
            what: str = what,
        ) -> Program:
            return Program(
                f"{version}-{name}{suffix}",
                f"{label}{what}",
                server,
                lambda: command(is_compressed),
            )

        text = client("text", "libmariadb, text", clients.text)
        if version == DISTRIBUTED:
            found.append(Entry(client("odbc", "ODBC", clients.odbc), paper, True))
            found += [] if is_compressed else [Entry(text)]
        else:
            # MariaDB's ODBC driver asks for a variable that MySQL 5.6 lacks.
            found.append(Entry(text, paper, True))
        found.append(Entry(client("jdbc", "JDBC", clients.jdbc)))
        if not is_compressed:
            found += [
                Entry(client("binary", "libmariadb, binary", clients.binary)),
                Entry(client("program", "mariadb --quick", clients.program)),
            ]
    found += clients.frames()
    dray = Program(
        f"{version}-dray", "Dray, into an Arrow table", server, clients.dray, into_table=True
    )
    found.append(Entry(dray, in_figures=version == DISTRIBUTED))
    relay = RelayServer(server, f"{server.uri()}?ssl-mode=DISABLED")
    found.append(Entry(relay.client(setting.table.query), in_figures=version == DISTRIBUTED))
    if version == DISTRIBUTED:
        # What the relay gives a database that Dray knows by a driver alone.
        by_odbc = RelayServer(server, f"odbc:{clients.connection_string()}", "ODBC")
        found.append(Entry(by_odbc.client(setting.table.query)))
    return found


class Clients:
    """The command lines of the clients of one server."""

    def __init__(self, server: MariaServer) -> None:
        self.server = server
        self.address = server.setting.testbed.address
        self.sql = server.setting.table.query

    def odbc(self, is_compressed: bool) -> list[object]:
        option = f";OPTION={ODBC_COMPRESSED}" if is_compressed else ""
        return odbc(self.connection_string() + option, self.sql)

    def connection_string(self) -> str:
        return (
            f"Driver={{MariaDB Unicode}};{ODBC_STREAMED};Server={self.address};"
            f"Port={self.server.port};Uid={USER};Pwd={PASSWORD};Database={DATABASE}"
        )

    def frames(self) -> list[Entry]:
        uri = self.server.uri()
        ways = {
            "connectorx": uri,
            "arrow-odbc": self.connection_string(),
            "pandas": uri.replace("mysql://", "mysql+pymysql://"),
        }
        if self.server.version != DISTRIBUTED:
            del ways["arrow-odbc"]
        name = self.server.version
        return [frame(name, self.server, way, at, self.sql) for way, at in ways.items()]

    def drained(self, form: str, is_compressed: bool) -> list[object]:
        login = [self.address, self.server.port, USER, PASSWORD, DATABASE]
        packed = "compressed" if is_compressed else "plain"
        return [drain_program(), *login, form, packed, self.sql]

    def text(self, is_compressed: bool) -> list[object]:
        return self.drained("text", is_compressed)

    def binary(self, is_compressed: bool) -> list[object]:
        return self.drained("binary", is_compressed)

    def program(self, is_compressed: bool) -> list[object]:
        login = [f"-h{self.address}", f"-P{self.server.port}", f"-u{USER}", f"-p{PASSWORD}"]
        packed = ["--compress"] if is_compressed else []
        words = ["mariadb", "--no-defaults", "--quick", "-BN", *packed, *login, DATABASE]
        return list(python("lab.systems.client", "lines", *words, "-e", self.sql))

    def jdbc(self, is_compressed: bool) -> list[object]:
        url = f"jdbc:mariadb://{self.address}:{self.server.port}/{DATABASE}"
        login = [f"user={USER}", f"password={PASSWORD}", "sslMode=disable"]
        return list(jdbc(url, self.sql, *login, f"useCompression={is_compressed}".lower()))

    def dray(self) -> list[object]:
        uri = f"{self.server.uri()}?ssl-mode=DISABLED"
        return list(python("lab.systems.client", "dray", uri, self.sql))


def versions() -> dict[str, str]:
    return {"MariaDB": program_version(["mariadbd", "--version"])}


def mysql_versions() -> dict[str, str]:
    program = cache_folder().parent / "mysql" / "mysql-5.6" / "bin" / "mysqld"
    library = f"LD_LIBRARY_PATH={program.parent.parent / 'lib'}"
    return {"MySQL": program_version(["env", library, str(program), "--version"])}


MARIADB = System("mariadb", "MariaDB 10.11", lambda s: entries(s, DISTRIBUTED), versions)
MYSQL = System("mysql", "MySQL 5.6", lambda s: entries(s, "mysql-5.6"), mysql_versions)
