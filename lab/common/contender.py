"""A contender: a server that holds a table in memory, and a way to fetch it in a fresh client
process.
"""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from lab.common.measurement import FETCHES, Measurement
from lab.common.process import Failure, Process, Watch, free_port, last_line, memory_bytes
from lab.common.testbed import Testbed
from lab.data.table import Table


@dataclass(frozen=True)
class Setting:
    """What all contenders of one run share."""

    table: Table
    dray: Path
    folder: Path
    timeout_s: float
    testbed: Testbed = field(default_factory=Testbed)
    #: How often a client process fetches; only the first is dropped, if there are more.
    fetches: int = FETCHES


class Server(ABC):
    """A server process. Contenders that differ only in the client share one."""

    #: What it prints once it serves, if its sockets listen before that.
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
        """The command line that loads the table into memory, and then listens."""

    def stdin(self) -> Path:
        return Path("/dev/null")

    def start(self) -> None:
        """Start and wait until it listens; a server that runs stays, and one that has died is
        replaced.
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
        """Begin to watch what the server takes for one client."""
        return Watch(self.process.pid)

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None


class Contender(ABC):
    """A named way to haul a table from a server to a client."""

    over_tcp = True
    #: A client that keeps no table, or does not fetch the table once, is not compared by its
    # total.
    into_table = True
    #: Runs once after the rounds instead of in each of them.
    once = False
    #: A slow rival may have fewer rounds than the race.
    rounds_max: int | None = None
    #: A client that begins with a fetch of its own to warm up, or takes a minute, needs no round
    # for it.
    warms_up = True

    def __init__(self, name: str, label: str, server: Server) -> None:
        self.name = name
        self.label = label
        self.server = server

    @abstractmethod
    def client_command(self) -> list[str]:
        """The command line of a client that prints one measurement."""

    def expected_rows(self) -> int | None:
        return self.server.setting.table.rows

    def start_server(self) -> None:
        self.server.start()

    def run_client(self) -> Measurement:
        """Fetch once in a fresh process.

        Raises Failure when the client fails, runs out of time, or brings another number of rows.
        """
        setting = self.server.setting
        command = [*setting.testbed.near, *self.client_command()]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=setting.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"the client was not done after {setting.timeout_s:.0f} s") from error
        if done.returncode != 0:
            raise Failure(last_line(done.stderr))
        measurement = Measurement(**json.loads(done.stdout.splitlines()[-1]))
        expected = self.expected_rows()
        if None not in (measurement.rows, expected) and measurement.rows != expected:
            raise Failure(f"expected {expected} rows, the client got {measurement.rows}")
        return measurement

    def stop(self) -> None:
        self.server.stop()
