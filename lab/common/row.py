"""One row of the comparison: a contender under one congestion control, and its runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from lab.common import congestion
from lab.common.contender import Contender
from lab.common.measurement import Measurement
from lab.common.process import Failure, Usage


@dataclass
class Run:
    """A measurement of the client, with what the server and the network said meanwhile."""

    client: Measurement
    #: Of the server's processes; CPU seconds are those of all the fetches of the client.
    server: Usage
    #: The memory of the server after loading, before any query.
    server_loaded_bytes: int
    #: Bytes that the network carried to the client a fetch, of whatever program; None on a Unix
    # socket.
    carried_bytes: int | None


@dataclass
class Row:
    contender: Contender
    #: The congestion control that is set where the server runs; None on a Unix socket, or if the
    # server asks for its own.
    congestion_set: str | None
    #: The one that `ss` saw on the server's own connections.
    congestion_seen: str | None = None
    runs: list[Run] = field(default_factory=list)
    failure: str | None = None
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
        """The congestion control of this row, with a word when the sockets' own was another or went
        unseen.
        """
        if self.congestion_set in (None, self.congestion_seen):
            return self.congestion_seen or "–"
        return f"{self.congestion_set} set, {self.congestion_seen or 'none'} seen"

    def measure(self, warm_up: bool) -> None:
        """Run once. A failure is kept as a sentence."""
        try:
            run = self.run(warm_up)
        except Failure as failure:
            self.failure = str(failure)
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
        # Asking `ss` costs time, so only the warm-up is watched, or the first run of those without
        # one.
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
        """As the client counted; else the least that the network carried, headers included."""
        counted = self.median("wire_bytes")
        carried = [run.carried_bytes for run in self.runs if run.carried_bytes is not None]
        return int(counted) if counted is not None else min(carried, default=None)
