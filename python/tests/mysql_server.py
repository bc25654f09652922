"""Real MariaDB and MySQL servers, each a process of the test's own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pymysql
from postgres_server import CACHE, free_port

USER = "tester"
PASSWORD = "it's a secret"
DATABASE = "shop"

#: Debian's MariaDB, and servers that scripts/setup unpacks: the oldest and a newer one of MySQL,
#: and with DRAY_ALL_VERSIONS, as in `make test-all`, some more.
DISTRIBUTED = "mariadb"
VERSIONS = [DISTRIBUTED, "mysql-5.6", "mysql-8.0"]
if "DRAY_ALL_VERSIONS" in os.environ:
    VERSIONS += ["mysql-5.7", "mysql-8.0.33", "mariadb-11.4"]
#: A MariaDB that has parsec, with DRAY_ALL_VERSIONS.
SIGNING = "mariadb-11.8"
#: One whose locks let commits pass that the binary log leaves out, with DRAY_ALL_VERSIONS.
FILTERING = "mariadb-10.11.5"


def sequence(count: int) -> str:
    """A query of the numbers from 0, in a column ``seq``, for any server."""
    digit = " UNION ALL ".join(f"SELECT {i} AS i" for i in range(10))
    places = range(len(str(count - 1)))
    number = " + ".join(f"{10**place} * d{place}.i" for place in places)
    tables = " JOIN ".join(f"({digit}) d{place}" for place in places)
    return f"SELECT {number} AS seq FROM {tables} HAVING seq < {count}"


class MariaServer:
    """A server with a data directory of its own, on a free port of 127.0.0.1 and on a Unix socket.

    Its user ``tester`` may do everything.
    """

    def __init__(self, version: str = DISTRIBUTED, **settings: Any) -> None:
        # Paths of Unix sockets have to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="dray-maria-"))
        self.socket = self.folder / "socket"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.version = version
        self.is_mariadb = version.startswith("mariadb")
        self._settings = settings
        self._installed = CACHE / "mysql" / version
        try:
            self._make_data()
            self.start()
            password = PASSWORD.replace("'", "''")
            # MySQL 8.0's own method needs TLS, or a key that the server must be asked for.
            native = "WITH mysql_native_password " if version.startswith("mysql-8") else ""
            self.run(
                f"CREATE DATABASE {DATABASE}",
                f"CREATE USER {USER} IDENTIFIED {native}BY '{password}'",
                f"GRANT ALL ON *.* TO {USER} WITH GRANT OPTION",
                database=None,
            )
        except BaseException:
            self.stop()
            raise

    def _make_data(self) -> None:
        if self.version != DISTRIBUTED:
            assert self._installed.exists(), f"no server at {self._installed}: run scripts/setup"
            shutil.copytree(self._installed / "data", self.folder / "data")
            return
        made = subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={self.folder / 'data'}",
                f"--user={getpass.getuser()}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A server that starts removes temporary tables of others from a shared folder.
            env={**os.environ, "TMPDIR": str(self.folder)},
        )
        assert made.returncode == 0, made.stdout

    def start(self) -> None:
        folder = "/usr" if self.version == DISTRIBUTED else self._installed
        program = "mariadbd" if self.is_mariadb else "mysqld"
        if self.version != DISTRIBUTED:
            program = str(self._installed / "bin" / program)
        settings = {
            "basedir": folder,
            "datadir": self.folder / "data",
            "socket": self.socket,
            "port": self.port,
            "bind-address": "127.0.0.1",
            "pid-file": self.folder / "pid",
            "user": getpass.getuser(),
            "innodb-flush-log-at-trx-commit": 0,
            "innodb-buffer-pool-size": "64M",
            "character-set-server": "utf8mb4",
            "max-allowed-packet": "64M",
            # Tests must fail rather than hang.
            "loose-max-statement-time": 60,
            "loose-performance-schema": "OFF",
            # Its build takes a minute for its own certificate, and seconds for a handshake.
            **({"ssl": "OFF"} if self.version == "mariadb-11.4" else {}),
            **{name.replace("_", "-"): value for name, value in self._settings.items()},
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                [program, "--no-defaults", "--skip-name-resolve", "--loose-mysqlx=OFF", *arguments],
                stdout=log,
                stderr=log,
                cwd="/",
                env={
                    "PATH": f"{os.environ['PATH']}:/usr/sbin",
                    "LC_ALL": "C",
                    "TMPDIR": str(self.folder),
                    "LD_LIBRARY_PATH": str(self._installed / "lib"),
                },
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            running = self.process.poll() is None and time.monotonic() < deadline
            assert running, f"{self.version} did not start: {self.log()}"
            time.sleep(0.02)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            # A socket of a server that was killed refuses, too.
            return probe.connect_ex(str(self.socket)) == 0

    def uri(self, options: str = "", *, database: str = DATABASE, scheme: str = "mysql") -> str:
        """The uri of the server over TCP; options begin with ``?``."""
        password = PASSWORD.replace("'", "%27").replace(" ", "%20")
        return f"{scheme}://{USER}:{password}@127.0.0.1:{self.port}/{database}{options}"

    def unix(self) -> str:
        """The uri of the server over its Unix socket."""
        return f"mysql://root@localhost/{DATABASE}?socket={self.socket}"

    def connect(self, database: str | None = DATABASE) -> pymysql.Connection[Any]:
        """A connection of root's in autocommit mode. It returns values as the server's own text."""
        return pymysql.connect(
            unix_socket=str(self.socket),
            ssl_disabled=True,
            user="root",
            database=database,
            autocommit=True,
            charset="utf8mb4",
            conv={},
            init_command="SET time_zone = '+00:00'",
        )

    def run(self, *statements: str, database: str | None = DATABASE) -> None:
        """Run statements that return no rows."""
        with contextlib.closing(self.connect(database)) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, each value as the server's own text."""
        with contextlib.closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return list(cursor.fetchall())

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """End the server at once, as a crash does."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
