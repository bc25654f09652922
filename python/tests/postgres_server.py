"""Real PostgreSQL servers of several versions, each a process of the test's own.

    installed files ──copy──▶ Installation ──initdb──▶ PostgresServer, and PgBouncer before it

The installations are copies: the user whom a server runs as may read them, wherever the originals
are, and the extension is installed into them without touching the machine's own."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

REPOSITORY = Path(__file__).parents[2]
EXTENSION = REPOSITORY / "pg_extension"
SUPERUSER = "postgres"
DEBIAN = Path("/usr/lib/postgresql")
CACHE = Path(
    os.environ.get("DRAY_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dray"
)
# Locales whose money has zero, two and three digits behind the point.
LOCALES = {"ja_JP.UTF-8": 0, "de_DE.UTF-8": 2, "ar_TN.UTF-8": 3}

# Debian's version, and those that scripts/setup unpacks: the newest one, and with
# DRAY_ALL_VERSIONS, as in `make test-all`, those between.
_DISTRIBUTED = max((int(path.name) for path in DEBIAN.glob("[0-9]*")), default=15)
_UNPACKED = {16, 18} if "DRAY_ALL_VERSIONS" in os.environ else {18}
VERSIONS = sorted({_DISTRIBUTED} | _UNPACKED)
# The values of the fixture `extension`: whether statements use the server's extension.
EXTENSION_CHOICES = [False, True] if (EXTENSION / "Makefile").exists() else [False]


class Installation:
    """A copy of the programs and files of one version."""

    def __init__(self, version: int, folder: Path) -> None:
        self.version = version
        distributed = DEBIAN / str(version)
        if version == _DISTRIBUTED:
            # Servers find their files relative to the program, so both keep their names.
            root = folder / distributed.relative_to("/")
            _copy(distributed / "bin", root / "bin")
            _copy(distributed / "lib", root / "lib")
            _copy(
                Path(f"/usr/share/postgresql/{version}"), folder / f"usr/share/postgresql/{version}"
            )
            (folder / "usr/include").symlink_to("/usr/include")
        else:
            original = CACHE / "postgresql" / str(version)
            if not original.exists():
                raise FileNotFoundError(f"no PostgreSQL {version} at {original}: run scripts/setup")
            original = original.resolve()
            root = folder / original.parent.name / original.name
            _copy(original, root)
            libraries = f"{original.parent.name}.libs"
            _copy(original.parent.parent / libraries, folder / libraries)
        self.bin = root / "bin"

    def install_extension(self, folder: Path) -> None:
        """Build the extension for this version in a folder of its own, and install it."""
        build = folder / f"extension-{self.version}"
        build.mkdir()
        for path in EXTENSION.iterdir():
            if path.name == "rust":
                # Cargo builds the library once for all versions.
                (build / "rust").symlink_to(path)
            elif path.is_dir() and path.name != "build":
                shutil.copytree(
                    path, build / path.name, ignore=shutil.ignore_patterns("*.o", "*.bc")
                )
            elif path.is_file() and path.suffix not in (".so", ".o"):
                shutil.copy(path, build)
        command = ["make", "-s", "-C", str(build), "install", f"PG_CONFIG={self.bin / 'pg_config'}"]
        environment = {"CARGO_TARGET_DIR": str(CACHE / "target" / "pg_extension")} | dict(
            os.environ
        )
        made = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert made.returncode == 0, made.stdout


def _copy(source: Path, target: Path) -> None:
    # The server does not need bitcode and static libraries.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("bitcode", "*.a"))


def make_locales(folder: Path) -> Path:
    """Compile :data:`LOCALES` into a folder, for a server's ``LOCPATH``."""
    for name in LOCALES:
        # localedef warns about gaps in the sources, writes everything, and then exits with an
        # error.
        made = subprocess.run(
            ["localedef", "--no-archive", "-i", name.split(".")[0], "-f", "UTF-8", folder / name],
            capture_output=True,
        )
        assert (folder / name / "LC_MONETARY").exists(), made.stderr
    return folder


class PostgresServer:
    """A server with a data directory of its own, on a free port of 127.0.0.1 and on a Unix socket.
    It trusts every user.
    """

    def __init__(
        self,
        installation: Installation,
        settings: Mapping[str, Any] | None = None,
        locales: Path | None = None,
    ) -> None:
        self.version = installation.version
        self.installation = installation
        # Paths of Unix sockets have to be short.
        self.folder = Path(tempfile.mkdtemp(prefix=f"dray-pg{self.version}-"))
        self._user = server_user(self.folder)
        self._environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"} | (
            {"LOCPATH": str(locales)} if locales else {}
        )
        data = self.folder / "data"
        self._make(data)
        self.port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "shared_buffers": "32MB",
            "autovacuum": "off",
            # JIT compilation takes longer than any plan of the tests.
            "jit": "off",
            "max_connections": 40,
            # Tests must fail rather than hang.
            "statement_timeout": "30s",
            "log_statement": "all",
            "log_line_prefix": "%p %a ",
            **(settings or {}),
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                [installation.bin / "postgres", "-D", data, *arguments],
                stdout=log, stderr=log, cwd="/", env=self._environment, **self._user,
            )  # fmt: skip
        self._wait()

    def uri(self, database: str = SUPERUSER, user: str = SUPERUSER, options: str = "") -> str:
        """The uri of the server over TCP; options begin with ``?``."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}{options}"

    @property
    def unix(self) -> str:
        """The uri of the server over its Unix socket."""
        return f"host={self.folder} port={self.port} user={SUPERUSER} dbname={SUPERUSER}"

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection[Any]:
        """A connection in autocommit mode, for tests to inspect the server."""
        return psycopg.connect(self.uri(database), autocommit=True, application_name="test")

    def run(self, *statements: str, database: str = SUPERUSER) -> None:
        """Run statements that return no rows."""
        with self.connect(database) as connection:
            for statement in statements:
                connection.execute(statement)

    def log(self, start: int = 0) -> str:
        """The text of the log from a byte on."""
        with (self.folder / "log").open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def log_bytes(self) -> int:
        return (self.folder / "log").stat().st_size

    def crashes(self) -> list[str]:
        """The lines of the log about processes that crashed."""
        pattern = (
            "terminated by signal|server process .* exited|PANIC|panicked|all server processes "
            "terminated"
        )
        return [line for line in self.log().splitlines() if re.search(pattern, line)]

    def wait_for_statement(self, statement: str, count: int) -> None:
        """Wait until this many other sessions run a statement that contains the text."""
        sql = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
            "AND pid <> pg_backend_pid() "
            "AND strpos(query, %s) > 0"
        )
        deadline = time.monotonic() + 60
        with self.connect() as connection:
            while (row := connection.execute(sql, [statement]).fetchone()) != (count,):
                assert time.monotonic() < deadline, (
                    f"{row} sessions run {statement!r}, expected {count}"
                )
                time.sleep(0.02)

    def stop(self) -> None:
        # An immediate shutdown: the server ends all of its sessions without writing anything.
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, data: Path) -> None:
        """Make the files of a new server."""
        kind = ("-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--locale=C")
        self._run("initdb", "-D", data, "--no-sync", *kind)

    def _run(self, program: str, *arguments: object) -> None:
        command = [self.installation.bin / program, *map(str, arguments)]
        ran = subprocess.run(
            command,
            cwd="/",
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self._user,
        )
        assert ran.returncode == 0, ran.stdout.decode(errors="replace")

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.connect().close()
            except psycopg.OperationalError:
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, f"PostgreSQL {self.version} did not start: {self.log()}"
                time.sleep(0.02)


class PgBouncer:
    """The pooler in transaction mode, with one server connection for all clients."""

    def __init__(self, server: PostgresServer, pool_size: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dray-bouncer-"))
        user = server_user(self.folder)
        self.port = free_port()
        (self.folder / "users").write_text(f'"{SUPERUSER}" ""\n')
        (self.folder / "ini").write_text(f"""
[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {self.folder / "users"}
pool_mode = transaction
default_pool_size = {pool_size}
logfile = {self.folder / "log"}
pidfile =
""")
        for name in ("users", "ini"):
            (self.folder / name).chmod(0o644)
        self.process = subprocess.Popen(
            ["/usr/sbin/pgbouncer", "-q", self.folder / "ini"],
            cwd="/",
            stderr=subprocess.DEVNULL,
            **user,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.uri()).close()
                return
            except psycopg.OperationalError as error:
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, f"PgBouncer did not start: {error}: {self.log()}"
                time.sleep(0.02)

    def uri(self) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{SUPERUSER}"

    def log(self) -> str:
        return (self.folder / "log").read_text() if (self.folder / "log").exists() else "no log"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


def server_user(folder: Path) -> dict[str, Any]:
    """The user to run a server as, since PostgreSQL refuses to run as root. The folder is given to
    that user.
    """
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(SUPERUSER)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A TCP port of the loopback interface that is not in use. It lies below the ports that Linux
    gives to clients: one of these could be taken before the server listens.
    """
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
