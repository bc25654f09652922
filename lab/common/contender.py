"""A contender: a server that holds a table in memory, and a client that fetches it in a process of
its own.
"""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from lab.common.measurement import FETCHES, Measurement
from lab.common.process import Failure, Process, Timeout, Watch, free_port, last_line, memory_bytes
from lab.common.testbed import Testbed
from lab.data.table import Table


@dataclass(frozen=True)
class Setting:
    """Settings that all contenders of a run share."""

    table: Table
    dray: Path
    folder: Path
    timeout_s: float
    testbed: Testbed = field(default_factory=Testbed)
    #: Fetches per client process. If there are several, the first one is dropped.
    fetches: int = FETCHES


class Server(ABC):
    """A server process. Contenders that differ only in their client share one."""

    #: Output that tells that the server is ready, if its sockets listen earlier.
    announcement = ""

    def __init__(self, setting: Setting, name: str) -> None:
        self.setting = setting
        self.name = name
        self.port = free_port()
        self.unix_path: Path | None = None
        self.process: Process | None = None
        self.loaded_bytes = 0

    @abstractmethod
    def command(self) -> list[str]:
        """The command line of a server that loads the table into memory and then listens."""

    def stdin(self) -> Path:
        return Path("/dev/null")

    def start(self) -> None:
        """Start the server and wait until it listens. A running server is kept, and one that has
        ended is replaced.
        """
        if self.process is not None and self.process.is_running():
            return
        if self.unix_path is not None:
            self.unix_path.unlink(missing_ok=True)
        command = [*self.setting.testbed.far, *self.command()]
        self.process = Process(command, self.setting.folder / f"{self.name}.log", self.stdin())
        try:
            self.process.await_listening(
                self.port, self.unix_path, self.announcement, self.setting.timeout_s
            )
        except Failure:
            self.stop()
            raise
        self.loaded_bytes = memory_bytes(self.process.pid, "VmRSS")

    def watch(self) -> Watch:
        """Begin to measure the server's memory and CPU time for one client."""
        return Watch(self.process.pid)

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None


class Contender(ABC):
    """A client and the server it fetches a table from."""

    over_tcp = True
    #: Whether the client builds a table from one fetch, so that totals can be compared.
    into_table = True
    #: Whether it runs once after the rounds instead of in each of them.
    once = False
    #: Limit of rounds for a slow rival.
    rounds_max: int | None = None
    #: Whether it takes part in the warm-up round. A client that drops its first fetch, or takes
    #: a minute, does not.
    warms_up = True

    def __init__(self, name: str, label: str, server: Server) -> None:
        self.name = name
        self.label = label
        self.server = server

    @abstractmethod
    def client_command(self) -> list[str]:
        """The command line of a client that prints one `Measurement` as JSON."""

    def expected_rows(self) -> int | None:
        return self.server.setting.table.rows

    def start_server(self) -> None:
        self.server.start()

    def run_client(self) -> Measurement:
        """Run the client in a process of its own.

        Raises
        ------
        Failure
            If the client fails, times out, or fetches another number of rows than expected.
        """
        setting = self.server.setting
        command = [*setting.testbed.near, *self.client_command()]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=setting.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            message = f"the client did not finish within {setting.timeout_s:.0f} s"
            raise Timeout(message) from error
        if done.returncode != 0:
            raise Failure(last_line(done.stderr))
        measurement = Measurement(**json.loads(done.stdout.splitlines()[-1]))
        expected = self.expected_rows()
        if None not in (measurement.rows, expected) and measurement.rows != expected:
            raise Failure(f"expected {expected} rows, the client fetched {measurement.rows}")
        return measurement

    def stop(self) -> None:
        self.server.stop()
