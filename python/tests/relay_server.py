"""A real Dray server that passes statements on to databases, as a process of the test's own."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mysql_server import MariaServer
from postgres_server import PostgresServer
from server import Server

import dray

# The sources of the fixture `server`.
NAMES = ["pg", "maria"]
FOREVER = {
    "pg": "SELECT generate_series(1, 1000000000000) AS i",
    "maria": "SELECT a.seq AS i FROM seq_1_to_1000000000 a",
}
SILENT = {"pg": "SELECT pg_sleep(25)", "maria": "SELECT sleep(25)"}


class Relay(Server):
    """`dray serve --source …`, with its log and the uris of its sources."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        super().__init__(folder, *arguments)

    def uri(self, source: str = "", token: str = "") -> str:
        """Over TCP, or the Unix socket that clients move to."""
        sender = f"{token}@" if token else ""
        return f"dray://{sender}{self.address}/{source}"

    def log(self) -> str:
        return (self.folder / "server.log").read_text()

    def memory(self) -> int:
        """The most memory that the server had so far, in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        raise AssertionError("no VmHWM")


@contextmanager
def relay(*arguments: str) -> Iterator[Relay]:
    # Paths of Unix sockets have to be short.
    folder = Path(tempfile.mkdtemp(prefix="dray-relay-"))
    server = Relay(folder, *arguments)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def sources(**uris: str) -> list[str]:
    return [argument for name, uri in uris.items() for argument in ("--source", f"{name}={uri}")]


def one(connection: dray.Connection, sql: str) -> object:
    ((value,),) = list(connection.query(sql).rows())
    return value


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(postgres: PostgresServer, maria: MariaServer, name: str, text: str) -> bool:
    """Whether a database runs a statement that contains the text."""
    if name == "maria":
        found = maria.rows(
            "SELECT info FROM information_schema.processlist WHERE id <> connection_id()"
        )
        return any(text in (info or "") for (info,) in found)
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
        "AND strpos(query, %s) > 0"
    )
    with postgres.connect() as oracle:
        return oracle.execute(sql, [text]).fetchone() != (0,)
