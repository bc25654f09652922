"""A PostgreSQL server for tests, with the extension installed."""

import contextlib
import fcntl
import os
import pwd
import random
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from client import Connection

EXTENSION = Path(__file__).parents[1]
# PostgreSQL refuses to run as root.
USER = "postgres"


class Server:
    """A running server: `with Server(pg_config) as server: server.connect()`."""

    def __init__(
        self,
        pg_config: str,
        features: str = "",
        encoding: str = "UTF8",
        settings: dict | None = None,
    ):
        self.pg_config = pg_config
        self.encoding = encoding
        self.settings = settings or {}
        self.bin = Path(self.config("--bindir"))
        self.version = int(re.search(r"\d+", self.config("--version"))[0])
        if features is not None:
            install(pg_config, features)

    def config(self, what: str) -> str:
        return subprocess.check_output([self.pg_config, what], text=True).strip()

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dray-pg-"))
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.port = free_port()
        locale = "C.UTF-8" if self.encoding == "UTF8" else "C"
        self.run(
            "initdb",
            "-D",
            self.data,
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            self.encoding,
            f"--locale={locale}",
        )
        settings = {
            "port": self.port,
            "unix_socket_directories": self.folder,
            "fsync": "off",
            # Vacuuming changes rows of the catalog in place, whatever the snapshot of a reader.
            "autovacuum": "off",
            "max_connections": 60,
            "log_statement": "all",
        } | self.settings
        with open(self.data / "pg_hba.conf", "a") as file:
            file.write("host all all 127.0.0.0/8 trust\n")
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "start")
        with self.connect() as connection:
            connection.run("CREATE EXTENSION dray")
        return self

    def __exit__(self, *error):
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def run(self, program: str, *arguments):
        user = {"user": USER} if os.geteuid() == 0 else {}
        command = [self.bin / program, *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **user)

    def connect(
        self, user: str = "postgres", database: str = "postgres", **parameters
    ) -> Connection:
        return Connection(self.port, user, database, **parameters)

    def crashes(self) -> list[str]:
        """The lines of the log about backends that crashed."""
        pattern = (
            "terminated by signal|server process .* exited|PANIC|panicked|memory allocation of"
        )
        return [
            line
            for line in self.log.read_text(errors="replace").splitlines()
            if re.search(pattern, line)
        ]


def install(pg_config: str, features: str = ""):
    """Builds and installs the extension. A lock serializes the builds of several processes."""
    make = ["make", "-s", "-C", EXTENSION, f"PG_CONFIG={pg_config}", f"CARGO_FEATURES={features}"]
    with (EXTENSION / "Makefile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([*make, "install"], check=True, stdout=subprocess.DEVNULL)


def free_port() -> int:
    """A TCP port of the loopback interface that is not in use. It lies below the ports that Linux
    gives to clients: one of these could be taken before the server listens.
    """
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
