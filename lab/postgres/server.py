"""A PostgreSQL server in a temporary folder: starts it, loads it, and measures its backends.

postmaster ──fork──> a backend for each connection, found in /proc by its parent
    └─ /proc/PID/stat: CPU seconds of children that have ended
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg

from lab.common.contender import Server, Setting
from lab.common.process import Failure, Process, Usage, last_line, memory_bytes
from lab.common.program import compiled, output_of
from lab.postgres.data import DataSet

USER = "postgres"
#: A table larger than a quarter of this would be scanned through a small ring buffer, and so be
# read from the kernel's cache each time.
SHARED_BUFFERS = "8GB"
SETTINGS = {
    "max_connections": "50",
    "shared_buffers": SHARED_BUFFERS,
    "fsync": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1d",
    "maintenance_work_mem": "512MB",
    "work_mem": "64MB",
}
WATCH_INTERVAL_S = 0.01
BACKENDS_END_S = 10.0


class PostgresServer(Server):
    """Debian's PostgreSQL with all tables, vacuumed and read once into shared buffers."""

    #: Whether another server object goes on with the data.
    keeps_data = False

    def __init__(
        self, setting: Setting, programs: Path, data_sets: list[DataSet], name: str = "postgres"
    ) -> None:
        super().__init__(setting, name)
        self.programs = programs
        self.data_sets = data_sets
        self.data_folder = setting.folder / f"{name}-data"
        #: Number of rows of each table.
        self.rows: dict[str, int] = {}
        #: Missing parts of the server, and why each is missing.
        self.missing: dict[str, str] = {}
        #: Private memory of a backend before its first query.
        self.idle_backend_bytes = 0

    @property
    def conninfo(self) -> str:
        """For the Unix socket, which is there on every testbed."""
        return f"host={self.setting.folder} port={self.port} user={USER} dbname=postgres"

    def command(self) -> list[str]:
        chosen = {"listen_addresses": self.setting.testbed.address, **SETTINGS}
        settings = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        folders = [
            "-D",
            str(self.data_folder),
            "-k",
            str(self.setting.folder),
            "-p",
            str(self.port),
        ]
        return [*as_owner(), str(self.programs / "postgres"), *folders, *settings]

    def start(self) -> None:
        if self.process is not None and self.process.is_running():
            return
        if self.process is not None:
            raise Failure(f"the server has ended: {last_line(self.process.output())}")
        is_new = not self.data_folder.exists()
        if is_new:
            self.initialise()
        # Its data is temporary, so it may be stopped without a checkpoint, unless another server
        # goes on with it.
        self.process = Process(
            [*self.setting.testbed.far, *self.command()],
            self.setting.folder / f"{self.name}.log",
            stop_signal=signal.SIGINT if self.keeps_data else signal.SIGQUIT,
        )
        self.process.await_listening(
            self.port, None, "ready to accept connections", self.setting.timeout_s
        )
        if is_new:
            self.fill()
        with psycopg.connect(self.conninfo) as connection:
            connection.execute("SELECT 1").fetchall()
            self.idle_backend_bytes = memory_bytes(connection.info.backend_pid, "RssAnon")
        self.loaded_bytes = memory_bytes(self.process.pid, "VmRSS")

    def fill(self) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            self.create_extension(connection)
            self.create_yardstick(connection)
            for data_set in self.data_sets:
                self.load(connection, data_set)

    def initialise(self) -> None:
        # The server does not run as root, and must be able to enter the folder.
        self.setting.folder.chmod(0o711)
        self.data_folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.data_folder, USER, USER)
            self.setting.folder.chmod(0o1777)
        command = [
            str(self.programs / "initdb"),
            "-D",
            str(self.data_folder),
            "-U",
            USER,
            "-A",
            "trust",
            "-N",
        ]
        run([*as_owner(), *command, "--encoding=UTF8", "--locale=C.UTF-8"], "initialise a database")

    def create_extension(self, connection: psycopg.Connection) -> None:
        try:
            connection.execute("CREATE EXTENSION dray")
        except psycopg.Error as error:
            self.missing["extension"] = (
                f"the server lacks the extension dray: {str(error).splitlines()[0]}"
            )

    def create_yardstick(self, connection: psycopg.Connection) -> None:
        """Build `scan_append/` in the temporary folder, and declare its function."""
        folder = self.setting.folder / "scan_append"
        folder.mkdir(mode=0o755)
        source = Path(__file__).resolve().with_name("scan_append")
        try:
            paths = [f"VPATH={source}", f"PG_CONFIG={self.programs / 'pg_config'}"]
            run(
                ["make", "-s", "-C", folder, "-f", source / "Makefile", *paths], "build scan_append"
            )
            connection.execute(
                "CREATE FUNCTION lab_scan_append(query text, append boolean, OUT rows bigint, "
                "OUT bytes bigint, OUT seconds double precision) "
                f"AS '{folder}/scan_append' LANGUAGE c STRICT"
            )
        except (Failure, psycopg.Error) as error:
            self.missing["scan_append"] = str(error).splitlines()[0]

    def load(self, connection: psycopg.Connection, data_set: DataSet) -> None:
        start = time.monotonic()
        with connection.transaction():
            data_set.load(connection)
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {data_set.name}")
        (self.rows[data_set.name],) = connection.execute(
            f"SELECT count(*) FROM {data_set.name}"
        ).fetchone()
        (size,) = connection.execute(
            "SELECT pg_table_size(%s::regclass)", [data_set.name]
        ).fetchone()
        seconds = time.monotonic() - start
        print(
            f"loaded {data_set.name}: {self.rows[data_set.name]:,} rows, {size / 1e6:,.0f} MB, "
            f"{seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    def watch(self) -> BackendWatch:
        return BackendWatch(self.process.pid)


class BackendWatch(threading.Thread):
    """Measures memory and CPU seconds of the backends that start and end during its lifetime.

    Memory is the sum of the backends' private memory (`RssAnon`), sampled every 10 ms; pages of
    shared buffers do not count. CPU seconds are the increase of what the kernel accounts for the
    postmaster's ended children. They are exact to a tick of 10 ms, and include fork and login.
    """

    def __init__(self, postmaster: int) -> None:
        super().__init__(daemon=True)
        self.postmaster = postmaster
        self.before = children(postmaster)
        self.cpu_before_s = ended_children_cpu_s(postmaster)
        self.peak_bytes = 0
        self.backends_max = 0
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.done.wait(WATCH_INTERVAL_S):
            backends = children(self.postmaster) - self.before
            total = sum(private_bytes(pid) for pid in backends)
            self.peak_bytes = max(self.peak_bytes, total)
            self.backends_max = max(self.backends_max, len(backends))

    def finish(self) -> Usage:
        """Wait until the backends have ended, and return their usage."""
        self.done.set()
        self.join()
        deadline = time.monotonic() + BACKENDS_END_S
        while children(self.postmaster) - self.before and time.monotonic() < deadline:
            time.sleep(WATCH_INTERVAL_S)
        cpu_s = ended_children_cpu_s(self.postmaster) - self.cpu_before_s
        return Usage(self.peak_bytes or None, cpu_s, self.backends_max)


def children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def private_bytes(pid: int) -> int:
    """The private memory of a process; 0 once it has ended."""
    with contextlib.suppress(OSError):
        return memory_bytes(pid, "RssAnon") or 0
    return 0


def ended_children_cpu_s(pid: int) -> float:
    """CPU seconds of children that the process has waited for: fields 16 and 17 of its `stat`."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def as_owner() -> list[str]:
    """A prefix that runs a command as a user other than root, and ends it with the benchmark."""
    owner = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.getuid() == 0 else []
    return ["setpriv", "--pdeathsig=QUIT", *owner, "--"]


def run(command: list[object], purpose: str) -> str:
    """Run a command and return its output, or raise Failure with its last line of errors."""
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, cwd="/"
        )
    except OSError as error:
        raise Failure(f"cannot {purpose}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"cannot {purpose}: {last_line(done.stderr)}")
    return done.stdout


def drain_program() -> Path:
    """The program `drain.c`."""
    flags = ["-I", output_of("pg_config", "--includedir").strip(), "-lpq"]
    return compiled(Path(__file__).with_name("drain.c"), *flags)
