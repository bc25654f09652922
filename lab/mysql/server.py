"""MariaDB and MySQL in a temporary folder: Debian's MariaDB, or a MySQL that scripts/setup has put
below the cache (`mysql/VERSION`).
"""

from __future__ import annotations

import getpass
import shutil
from pathlib import Path

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, is_installed, run
from lab.common.program import compiled, output_of
from lab.data.sample import DATA
from lab.data.table import Table, cache_folder
from lab.mysql.client import DATABASE, PASSWORD, USER

#: Debian's MariaDB.
DISTRIBUTED = "mariadb"
SETTINGS = {
    "innodb-buffer-pool-size": "6G",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-doublewrite": "0",
    "innodb-log-file-size": "1G",
    "max-allowed-packet": "64M",
    "character-set-server": "utf8mb4",
}
LINEITEM = """CREATE TABLE lineitem (
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL,
    l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL,
    l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL,
    l_tax decimal(15,2) NOT NULL, l_returnflag varchar(1) NOT NULL,
    l_linestatus varchar(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL, l_shipinstruct varchar(25) NOT NULL,
    l_shipmode varchar(10) NOT NULL, l_comment varchar(44) NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber))"""


class MariaServer(LoadedServer):
    """A server on TCP and on a Unix socket, with the tables given.

    Parameters
    ----------
    version : str
        `mariadb` for Debian's, or a folder of the cache, such as `mysql-5.6`.
    """

    announcement = "ready for connections"

    def __init__(self, setting: Setting, tables: list[Table], version: str = DISTRIBUTED) -> None:
        super().__init__(setting, version)
        self.tables = tables
        self.version = version
        self.unix_path = setting.folder / f"{version}.sock"
        self.installed = cache_folder().parent / "mysql" / version

    def command(self) -> list[str]:
        distributed = self.version == DISTRIBUTED
        settings = {
            "datadir": self.data_folder,
            "user": getpass.getuser(),
            "socket": self.unix_path,
            "port": self.port,
            "bind-address": self.setting.testbed.address,
            "pid-file": self.setting.folder / f"{self.version}.pid",
            "secure-file-priv": "",
            **({} if distributed else {"basedir": self.installed}),
            **SETTINGS,
        }
        # A server that starts removes temporary tables of others from a shared folder.
        program = ["env", f"TMPDIR={self.setting.folder}"]
        if distributed:
            program += ["mariadbd"]
        else:
            libraries = f"LD_LIBRARY_PATH={self.installed / 'lib'}"
            program += [libraries, str(self.installed / "bin" / "mysqld")]
        words = [f"--{name}={value}" for name, value in settings.items()]
        if self.version.startswith("mysql-8"):
            words += ["--skip-log-bin", "--mysqlx=OFF"]
        return [*program, "--no-defaults", "--skip-name-resolve", *words]

    def initialise(self) -> None:
        if self.version != DISTRIBUTED:
            is_installed(self.installed, "scripts/setup installs it")
            # The log files of another size would be refused, and are made anew.
            shutil.copytree(self.installed / "data", self.data_folder)
            for file in self.data_folder.glob("ib_logfile*"):
                file.unlink()
            return
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.data_folder}"]
        options = ["--skip-test-db", "--auth-root-authentication-method=normal"]
        run([*command, f"--user={getpass.getuser()}", *options], "initialise a database")

    def load(self) -> None:
        self.sql(
            f"CREATE DATABASE {DATABASE}; CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; "
            f"GRANT ALL ON {DATABASE}.* TO {USER}@'%'; GRANT RELOAD ON *.* TO {USER}@'%'",
            database="",
        )
        # The users without a name that MySQL 5.6 comes with would match before `lab`.
        self.sql("DELETE FROM mysql.user WHERE user = ''; FLUSH PRIVILEGES", database="")
        for table in self.tables:
            load(self, table)

    def sql(self, statements: str, database: str = DATABASE) -> str:
        command = ["mariadb", "--no-defaults", "-uroot", f"-S{self.unix_path}", "-BN", database]
        return run([word for word in command if word], "run a statement", statements)

    def uri(self) -> str:
        address = self.setting.testbed.address
        return f"mysql://{USER}:{PASSWORD}@{address}:{self.port}/{DATABASE}"


def ddl(table: Table) -> str:
    """The statement that creates a table: PostgreSQL's of a sample, in the words of MariaDB."""
    if table.name == "lineitem":
        return LINEITEM
    text = (DATA / f"{table.name}.sql").read_text()
    return text.replace(" text", " varchar(100)").replace(" numeric", " decimal")


def load(server: MariaServer, table: Table) -> int:
    """Create and fill a table, and return its rows."""
    server.sql(ddl(table))
    columns = server.sql(
        "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_name = '{table.name}' AND table_schema = '{DATABASE}' "
        "ORDER BY ordinal_position"
    )
    names = [line.split("\t")[0] for line in columns.splitlines()]
    # An empty field is a missing value, and not 0.
    fields = ", ".join(f"@{i}" for i in range(len(names)))
    values = ", ".join(f"{name} = nullif(@{i}, '')" for i, name in enumerate(names))
    if table.name == "lineitem":
        fields, values = ", ".join(names), ""
    server.sql(
        f"SET sql_mode = ''; LOAD DATA INFILE '{table.csv()}' INTO TABLE {table.name} "
        "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' "
        f"IGNORE 1 LINES ({fields})" + (f" SET {values}" if values else "")
    )
    server.sql(f"ANALYZE TABLE {table.name}")
    return int(server.sql(f"SELECT count(*) FROM {table.name}"))


def drain_program() -> Path:
    """The program `drain.c`."""
    flags = output_of("mariadb_config", "--cflags", "--libs").split()
    return compiled(Path(__file__).with_name("drain.c"), *flags)
