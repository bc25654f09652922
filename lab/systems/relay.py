"""Dray by the relay: `dray serve --source` beside a database."""

from __future__ import annotations

import secrets
from pathlib import Path

from lab.common.contender import Server
from lab.common.loaded_server import LoadedServer, is_installed
from lab.common.program import python
from lab.data.table import cache_folder
from lab.systems.system import JAVA, Program

SOURCE = "lab"
#: The bridge to JDBC drivers, which scripts/jdbc puts below the cache.
BRIDGE = cache_folder().parent / "jdbc" / "dray-jdbc.jar"


class RelayServer(Server):
    """A Dray server that passes statements on to a database, which it starts too.

    Parameters
    ----------
    uri : str
        The database, as `docs/sources.md` names it.
    by : str
        The kind of driver. Empty: Dray speaks the protocol itself.
    """

    announcement = "listening on"

    def __init__(self, database: LoadedServer, uri: str, by: str = "") -> None:
        suffix = f"-{by.lower()}" if by else ""
        super().__init__(database.setting, f"{database.name}-relay{suffix}")
        self.database = database
        self.by = by
        self.uri = uri
        self.uri_file = self.private("uri", uri)
        self.token = secrets.token_hex(16)
        self.token_file = self.private("token", self.token)

    def private(self, what: str, text: str) -> Path:
        file = self.setting.folder / f"{self.name}.{what}"
        file.touch(mode=0o600)
        file.write_text(text)
        return file

    def command(self) -> list[str]:
        address = f"tcp://{self.setting.testbed.address}:{self.port}"
        source = ["--source-file", f"{SOURCE}={self.uri_file}", "--token-file", self.token_file]
        words = [self.setting.dray, "serve", *source, "--listen", address]
        if self.uri.startswith("jdbc:"):
            is_installed(BRIDGE, "run scripts/jdbc CACHE")
            words = ["env", f"DRAY_JDBC_JAR={BRIDGE}", *words, "--jdbc-classpath", JAVA / "jars"]
        return [str(word) for word in words]

    def start(self) -> None:
        self.database.start()
        super().start()

    def client(self, statement: str) -> Program:
        # A client of the same host and user would leave TCP for a Unix socket.
        address = f"{self.setting.testbed.address}:{self.port}/{SOURCE}?local_socket=false"
        uri = f"dray://{self.token}@{address}&plain_token=true"
        by = f" and {self.by}" if self.by else ""
        label = f"Dray, by the relay{by}, into an Arrow table"
        command = python("lab.systems.client", "dray", uri, statement)
        return Program(self.name, label, self, lambda: list(command), into_table=True)
