"""MonetDB and its text protocol: a server of 2021, in a package for Python that embeds it.

`python -m lab.systems.monetdb serve FOLDER ADDRESS PORT` opens a database, and lets it listen.
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
from lab.common.program import compiled, python
from lab.data.sample import DATA
from lab.data.table import Table, cache_folder
from lab.systems.derby import LINEITEM
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

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, DATABASE)
        # The embedded server forgets users, so that each start has another one.
        self.user = f"lab{self.port}"

    def initialise(self) -> None:
        """The server makes the folder, and fills it before it listens."""

    def load(self) -> None:
        """It is filled already."""

    def command(self) -> list[str]:
        is_installed(LIBRARIES, "run scripts/setup CACHE systems")
        table = self.setting.table
        statements = self.setting.folder / f"{self.name}.sql"
        copy = (
            f"COPY OFFSET 2 INTO {table.name} FROM '{table.csv()}' "
            "USING DELIMITERS ',', '\\n', '\"' NULL AS ''"
        )
        statements.write_text(f"{ddl(table)};\n{copy};\n")
        folder, address = self.data_folder, self.setting.testbed.address
        words = python(__name__, folder, address, self.port, self.user, statements, table.name)
        return ["env", f"LD_LIBRARY_PATH={LIBRARIES}", *words]


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


def serve(folder: Path, address: str, port: int, user: str, statements: Path, table: str) -> None:
    is_new = not folder.exists()
    monetdb = Embedded(folder)
    if is_new:
        for statement in statements.read_text().split(";\n"):
            if statement:
                monetdb.run(statement)
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

    return [
        Entry(Program("monetdb-mapi", "libmapi, text", server, by_mapi), "MonetDB", True),
        Entry(Program("monetdb-jdbc", "JDBC", server, by_jdbc)),
    ]


SYSTEM = System("monetdb", "MonetDB 11.41", entries, lambda: {"monetdbe": VERSION})

if __name__ == "__main__":
    folder, address, port, user, statements, table = sys.argv[1:]
    serve(Path(folder), address, int(port), user, Path(statements), table)
