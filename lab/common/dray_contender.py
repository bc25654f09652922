"""Dray: `dray serve` on TCP and a Unix socket, and a client that uses the Python package."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import math
import secrets
import statistics
import time

from lab.common.contender import Contender, Server, Setting
from lab.common.measurement import FETCHES, Client, Measurement, Stopwatch, median_fetch
from lab.common.process import Failure
from lab.common.program import program_name, python

LINEITEM = "SELECT * FROM lineitem"
LATENCY_QUERIES = 2000
LONG_RESULT_BYTES = 10_000_000_000
LONG_RESULT_CHUNK_BYTES = 1024 * 1024


class DrayServer(Server):
    announcement = "listening on"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "dray")
        self.unix_path = setting.folder / "dray.sock"
        # Dray requires a token on any address but loopback.
        self.token = None if setting.testbed.is_loopback() else secrets.token_hex(16)

    def command(self) -> list[str]:
        listeners = [
            "--listen",
            f"tcp://{self.setting.testbed.address}:{self.port}",
            "--unix",
            str(self.unix_path),
        ]
        if self.token is not None:
            file = self.setting.folder / "token"
            file.write_text(self.token)
            listeners += ["--token-file", str(file)]
        return [
            str(self.setting.dray),
            "serve",
            *self.setting.table.serve_arguments(),
            "--in-memory",
            *listeners,
        ]

    def tcp_uri(self) -> str:
        """A uri whose clients stay on TCP."""
        address = f"{self.setting.testbed.address}:{self.port}?local_socket=false"
        if self.token is None:
            return f"dray://{address}"
        return f"dray://{self.token}@{address}&plain_token=true"

    def start(self) -> None:
        if not self.setting.dray.exists():
            raise Failure(f"no dray program at {self.setting.dray}: build it, or pass --dray")
        if importlib.util.find_spec("dray") is None:
            raise Failure(
                "the Python package dray is not installed: install python/ into this environment"
            )
        super().start()


class DrayContender(Contender):
    """Fetches the table into a pyarrow Table, or drops it batch by batch.

    If `compression` is given, it is part of the contender's name.
    """

    def __init__(
        self, server: DrayServer, over_tcp: bool, stream: bool = False, compression: str = ""
    ) -> None:
        medium = "TCP" if over_tcp else "Unix socket"
        dropped = ", batches dropped" if stream else ""
        suffix = f"-{compression}" if compression else ""
        name = f"dray-{'tcp' if over_tcp else 'unix'}{'-stream' if stream else ''}{suffix}"
        super().__init__(
            name, f"Dray, {compression + ', ' if compression else ''}{medium}{dropped}", server
        )
        self.over_tcp = over_tcp
        self.into_table = not stream
        self.compression = compression

    def uri(self) -> str:
        return self.server.tcp_uri() if self.over_tcp else f"dray+unix://{self.server.unix_path}"

    def client_command(self) -> list[str]:
        setting = self.server.setting
        chosen = ["--sql", setting.table.query, "--fetches", setting.fetches]
        if self.compression:
            chosen += ["--compression", self.compression]
        return python(__name__, "table" if self.into_table else "stream", self.uri(), *chosen)


class DrayLatency(DrayContender):
    """Runs `SELECT 1` repeatedly on one open connection."""

    once = True

    def __init__(self, server: DrayServer) -> None:
        super().__init__(server, over_tcp=False, stream=True)
        self.name, self.label = (
            "dray-latency",
            f"Dray, Unix socket, SELECT 1, {LATENCY_QUERIES} times",
        )

    def client_command(self) -> list[str]:
        return python(__name__, "latency", self.uri())

    def expected_rows(self) -> int:
        return LATENCY_QUERIES


class DrayMemory(DrayContender):
    """Streams a result of over 10 GB in chunks of 1 MiB, to measure the memory at both ends."""

    once = True

    def __init__(self, server: DrayServer) -> None:
        super().__init__(server, over_tcp=False, stream=True)
        self.name, self.label = (
            "dray-memory",
            "Dray, Unix socket, a result of over 10 GB in 1 MiB chunks, dropped",
        )

    def copies(self) -> int:
        return math.ceil(LONG_RESULT_BYTES / self.server.setting.table.arrow_bytes())

    def client_command(self) -> list[str]:
        sql = " UNION ALL ".join([LINEITEM] * self.copies())
        return python(
            __name__,
            "memory",
            self.uri(),
            "--sql",
            sql,
            "--chunk-bytes-max",
            LONG_RESULT_CHUNK_BYTES,
        )

    def expected_rows(self) -> int:
        return super().expected_rows() * self.copies()


def fetch(uri: str, sql: str, stream: bool, options: dict[str, object]) -> Measurement:
    import dray

    watch = Stopwatch()
    with dray.connect(uri) as connection:
        connect_s = watch.lap()
        result = connection.query(sql, **options)
        execute_s = watch.lap()
        if stream:
            rows = arrow_bytes = 0
            for batch in result.batches():
                rows += batch.num_rows
                arrow_bytes += batch.nbytes
                del batch
        else:
            table = result.arrow()
        transfer_s = watch.lap()
        if not stream:
            rows, arrow_bytes = table.num_rows, table.nbytes
        stats = dataclasses.asdict(result.stats)
    return Measurement(
        connect_s,
        execute_s,
        transfer_s,
        watch.total(),
        rows,
        arrow_bytes,
        stats.get("wire_bytes"),
        details={"stats": stats},
    )


def fetch_latency(uri: str) -> Measurement:
    import dray

    watch = Stopwatch()
    with dray.connect(uri) as connection:
        connect_s = watch.lap()
        for _ in range(LATENCY_QUERIES // 10):
            connection.query("SELECT 1").arrow()
        execute_s = watch.lap()
        micros = []
        rows = 0
        for _ in range(LATENCY_QUERIES):
            start = time.perf_counter_ns()
            rows += connection.query("SELECT 1").arrow().num_rows
            micros.append((time.perf_counter_ns() - start) / 1000)
        transfer_s = watch.lap()
    details = {
        "median_us": statistics.median(micros),
        "p99_us": statistics.quantiles(micros, n=100)[98],
    }
    return Measurement(connect_s, execute_s, transfer_s, watch.total(), rows, None, details=details)


if __name__ == "__main__":
    # Imported before any clock starts, and before the client's initial memory is measured.
    import dray  # noqa: F401
    import pyarrow  # noqa: F401

    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("what", choices=["table", "stream", "memory", "latency"])
    parser.add_argument("uri")
    parser.add_argument("--sql", default=LINEITEM)
    parser.add_argument("--chunk-bytes-max", type=int)
    parser.add_argument("--compression")
    parser.add_argument("--fetches", type=int, default=FETCHES)
    given = parser.parse_args()
    asked = {"chunk_bytes_max": given.chunk_bytes_max, "compression": given.compression}
    chosen = {name: value for name, value in asked.items() if value is not None}
    process = Client()
    if given.what == "latency":
        process.report(fetch_latency(given.uri))
    elif given.what == "memory":
        process.report(fetch(given.uri, given.sql, stream=True, options=chosen))
    else:
        process.report(
            median_fetch(
                lambda: fetch(given.uri, given.sql, given.what == "stream", chosen), given.fetches
            )
        )
