"""MonetDB and its text protocol: a server of 2021, in a package for Python that embeds it, and the
package itself, which has no protocol.

`python -m lab.systems.monetdb serve …` opens a database, and lets it listen; `fill …` leaves it to
a client that opens it in its own process.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
import threading
from pathlib import Path

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed
from lab.common.machine import package_version
from lab.common.program import compiled, python
from lab.data.sample import DATA
from lab.data.table import Table, cache_folder
from lab.systems.derby import LINEITEM
from lab.systems.frames import frame
from lab.systems.system import HERE, Entry, Program, System, jdbc

VERSION = "0.11"
#: Its libraries, which scripts/setup puts below the cache.
LIBRARIES = cache_folder().parent / "monetdb" / "monetdbe.libs"
#: The driver does not announce itself.
JDBC_DRIVER = "-Djdbc.drivers=nl.cwi.monetdb.jdbc.MonetDriver"
#: A database has the name of its folder.
DATABASE = "monetdb"


class MonetServer(LoadedServer):
    announcement = "listening"

    def __init__(self, setting: Setting, name: str = DATABASE) -> None:
        super().__init__(setting, name)
        # The embedded server forgets users, so that each start has another one.
        self.user = f"lab{self.port}"

    def initialise(self) -> None:
        """The server makes the folder, and fills it before it listens."""

    def load(self) -> None:
        """It is filled already."""

    def command(self) -> list[str]:
        address = self.setting.testbed.address
        return self.program("serve", address, self.port, self.user, self.setting.table.name)

    def program(self, way: str, *arguments: object) -> list[str]:
        is_installed(LIBRARIES, "run scripts/setup CACHE systems")
        table = self.setting.table
        statements = self.setting.folder / f"{self.name}.sql"
        copy = (
            f"COPY OFFSET 2 INTO {table.name} FROM '{table.csv()}' "
            "USING DELIMITERS ',', '\\n', '\"' NULL AS ''"
        )
        statements.write_text(f"{ddl(table)};\n{copy};\n")
        words = python(__name__, way, self.data_folder, statements, *arguments)
        return ["env", f"LD_LIBRARY_PATH={LIBRARIES}", *words]


class MonetFolder(MonetServer):
    """A folder that a client opens. What has filled it stays, as if it were the client's server."""

    announcement = "filled"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "monetdbe")
        self.port = None

    def command(self) -> list[str]:
        return self.program("fill")


def ddl(table: Table) -> str:
    """The statement that creates a table: PostgreSQL's of a sample, with its names quoted."""
    if table.name == "lineitem":
        return LINEITEM
    text = (DATA / f"{table.name}.sql").read_text().strip().removesuffix(";")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return re.sub(r"^    (\w+)", r'    "\1"', "\n".join(lines), flags=re.M)


class Embedded:
    """The library's functions that are needed."""

    def __init__(self, folder: Path) -> None:
        self.library = ctypes.CDLL(str(one("libmonetdbe")))
        self.library.monetdbe_query.restype = ctypes.c_char_p
        self.database = ctypes.c_void_p()
        folder.mkdir(exist_ok=True)
        failed = self.library.monetdbe_open(ctypes.byref(self.database), str(folder).encode(), None)
        if failed:
            raise SystemExit(f"cannot open {folder}: error {failed}")

    def close(self) -> None:
        if self.library.monetdbe_close(self.database):
            raise SystemExit("cannot close the database")

    def run(self, statement: str) -> None:
        result, rows = ctypes.c_void_p(), ctypes.c_longlong()
        error = self.library.monetdbe_query(
            self.database, statement.encode(), ctypes.byref(result), ctypes.byref(rows)
        )
        if error:
            raise SystemExit(f"{statement[:60]}: {error.decode()}")

    @staticmethod
    def set_option(name: str, value: str) -> None:
        ctypes.CDLL(str(one("libbat"))).GDKsetenv(name.encode(), value.encode())


def one(library: str) -> Path:
    return next(LIBRARIES.glob(f"{library}-*.so*"))


def opened(folder: Path, statements: Path) -> tuple[Embedded, bool]:
    """A database, and whether it is new: then it was filled."""
    is_new = not folder.exists()
    monetdb = Embedded(folder)
    for statement in statements.read_text().split(";\n") if is_new else ():
        if statement:
            monetdb.run(statement)
    return monetdb, is_new


def fill(folder: Path, statements: Path) -> None:
    opened(folder, statements)[0].close()
    print("filled", flush=True)
    threading.Event().wait()


def serve(folder: Path, statements: Path, address: str, port: int, user: str, table: str) -> None:
    monetdb, is_new = opened(folder, statements)
    if is_new:
        monetdb.run(
            "CREATE PROCEDURE set_hash(name string, hash string) "
            'EXTERNAL NAME clients."setPassword"'
        )
        monetdb.run("CREATE FUNCTION listen_at(port int) RETURNS int EXTERNAL NAME mapi.listen")
    # The embedded server keeps no hash of a password that it is given.
    digest = hashlib.sha512(user.encode()).hexdigest()
    monetdb.run(f"CREATE USER {user} WITH UNENCRYPTED PASSWORD '{user}' NAME '{user}' SCHEMA sys")
    monetdb.run(f"CALL set_hash('{user}', '{digest}')")
    monetdb.run(f"GRANT SELECT ON {table} TO {user}")
    monetdb.set_option("mapi_listenaddr", "localhost" if address == "127.0.0.1" else "all")
    monetdb.run(f"SELECT listen_at({port})")
    print("listening", flush=True)
    threading.Event().wait()


def entries(setting: Setting) -> list[Entry]:
    server = MonetServer(setting)
    address, sql = setting.testbed.address, setting.table.query

    def by_mapi() -> list[object]:
        mapi = one("libmapi")
        flags = [mapi, "-Wl,--disable-new-dtags", f"-Wl,-rpath,{LIBRARIES}"]
        program = compiled(HERE / "mapi.c", *map(str, flags), f"-Wl,-rpath-link,{LIBRARIES}")
        return [program, address, server.port, server.user, server.user, DATABASE, sql]

    def by_jdbc() -> list[object]:
        url = f"jdbc:monetdb://{address}:{server.port}/{DATABASE}"
        login = [f"user={server.user}", f"password={server.user}"]
        return list(jdbc(url, sql, *login, options=(JDBC_DRIVER,)))

    login = f"user={server.user}&password={server.user}"
    uri = f"monetdb://{address}:{server.port}/{DATABASE}?{login}"
    folder = MonetFolder(setting)
    in_process = frame("monetdb", folder, "monetdbe", str(folder.data_folder), sql)
    in_process.contender.over_tcp = False
    return [
        Entry(Program("monetdb-mapi", "libmapi, text", server, by_mapi), "MonetDB", True),
        Entry(Program("monetdb-jdbc", "JDBC", server, by_jdbc)),
        frame("monetdb", server, "pymonetdb", uri, sql),
        in_process,
    ]


def versions() -> dict[str, str]:
    return {"monetdbe": VERSION, "pymonetdb": package_version("pymonetdb")}


SYSTEM = System("monetdb", "MonetDB 11.41", entries, versions)

if __name__ == "__main__":
    way, folder, statements, *others = sys.argv[1:]
    if way == "fill":
        fill(Path(folder), Path(statements))
    else:
        address, port, user, table = others
        serve(Path(folder), Path(statements), address, int(port), user, table)
