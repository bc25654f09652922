"""A row of a comparison: a contender under one congestion control, and its runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from lab.common import congestion
from lab.common.contender import Contender
from lab.common.measurement import Measurement
from lab.common.process import Failure, Timeout, Usage


@dataclass
class Run:
    """Measurements of the client, the server and the network during one client process."""

    client: Measurement
    #: Usage of the server's processes. CPU seconds are the sum over all fetches of the client.
    server: Usage
    #: Memory of the server after loading the table and before any query.
    server_loaded_bytes: int
    #: Bytes per fetch that the network carried to clients of any program; None on a Unix socket.
    carried_bytes: int | None


@dataclass
class Row:
    contender: Contender
    #: The congestion control set where the server runs; None on a Unix socket, or if the server
    #: chooses its own.
    congestion_set: str | None
    #: The congestion control that `ss` saw on the server's connections.
    congestion_seen: str | None = None
    runs: list[Run] = field(default_factory=list)
    failure: str | None = None
    #: Whether the failure is that the client did not finish in time.
    timed_out: bool = False
    command: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return (
            f"{self.contender.label}, {self.congestion_set}"
            if self.congestion_set
            else self.contender.label
        )

    @property
    def congestion(self) -> str:
        """The congestion control, and whether the sockets used another one or were not seen."""
        if self.congestion_set in (None, self.congestion_seen):
            return self.congestion_seen or "–"
        return f"{self.congestion_set} set, {self.congestion_seen or 'none'} seen"

    def measure(self, warm_up: bool) -> None:
        """Run the client once, and record the run or the failure."""
        try:
            run = self.run(warm_up)
        except Failure as failure:
            self.failure = str(failure)
            self.timed_out = isinstance(failure, Timeout)
            return
        if not warm_up:
            self.runs.append(run)

    def run(self, warm_up: bool) -> Run:
        contender, server = self.contender, self.contender.server
        testbed = server.setting.testbed
        if self.congestion_set is not None:
            testbed.choose_congestion(self.congestion_set)
        contender.start_server()
        self.command = server.command()
        # `ss` takes time, so it observes only the warm-up, or the first run if there is no warm-up.
        is_first = warm_up or not (contender.warms_up or self.runs)
        watched = is_first and contender.over_tcp
        observer = congestion.Observer(server.port, testbed.far) if watched else None
        if observer is not None:
            observer.start()
        watch = server.watch()
        carried = testbed.carried_bytes()
        try:
            client = contender.run_client()
        finally:
            usage = watch.finish()
            if observer is not None:
                self.congestion_seen = observer.finish()
        carried = (
            (testbed.carried_bytes() - carried) // client.fetches if contender.over_tcp else None
        )
        return Run(client, usage, server.loaded_bytes, carried)

    def median(self, name: str) -> float | None:
        values = [getattr(run.client, name) for run in self.runs]
        return None if not values or None in values else statistics.median(values)

    def totals(self) -> list[float]:
        return [run.client.total_s for run in self.runs]

    def wire_bytes(self) -> int | None:
        """Bytes per fetch as the client counted them.

        If it does not count them: the fewest that the network carried, including headers.
        """
        counted = self.median("wire_bytes")
        carried = [run.carried_bytes for run in self.runs if run.carried_bytes is not None]
        return int(counted) if counted is not None else min(carried, default=None)
