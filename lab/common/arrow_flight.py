"""Arrow Flight: DoGet of a table in memory, and `read_all` at the client.

The server sends batches of 64 Ki rows with plain utf8 strings. String views, and batches of 16 Ki
or 256 Ki rows, were not faster.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

from lab.common.contender import Contender, Server, Setting
from lab.common.measurement import Client, Measurement, Stopwatch, median_fetch
from lab.common.program import program_name, python
from lab.data.table import utf8_batches


class FlightServer(Server):
    """A process that serves the table on TCP and on a Unix socket."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "flight")
        self.unix_path = setting.folder / "flight.sock"

    def command(self) -> list[str]:
        return python(__name__, "serve", self.setting.table.parquet(), *self.locations())

    def locations(self) -> list[str]:
        return [
            f"grpc+tcp://{self.setting.testbed.address}:{self.port}",
            f"grpc+unix://{self.unix_path}",
        ]


class FlightContender(Contender):
    """Fetches by DoGet with a compression of Arrow IPC."""

    def __init__(
        self, server: FlightServer, over_tcp: bool = True, compression: str = "none"
    ) -> None:
        suffix = ("" if compression == "none" else f"-{compression}") if over_tcp else "-unix"
        medium = "TCP" if over_tcp else "Unix socket"
        super().__init__(f"flight{suffix}", f"Arrow Flight, {compression}, {medium}", server)
        self.over_tcp = over_tcp
        self.compression = compression

    def client_command(self) -> list[str]:
        tcp, unix = self.server.locations()
        fetches = self.server.setting.fetches
        return python(
            __name__,
            "fetch",
            tcp if self.over_tcp else unix,
            self.compression,
            "--fetches",
            fetches,
        )


class TableServer(flight.FlightServerBase):
    """Answers DoGet with the whole table; the ticket names the compression."""

    def __init__(self, location: str, table: pa.Table) -> None:
        super().__init__(location)
        self.table = table

    def do_get(
        self, _context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        compression = ticket.ticket.decode()
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        return flight.RecordBatchStream(self.table, options=options)


def serve(parquet: Path, locations: list[str]) -> None:
    table = pa.Table.from_batches(utf8_batches(parquet))
    pa.default_memory_pool().release_unused()
    servers = [TableServer(location, table) for location in locations]
    for server in servers[1:]:
        threading.Thread(target=server.serve, daemon=True).start()
    servers[0].serve()


def fetch(location: str, compression: str) -> Measurement:
    watch = Stopwatch()
    with flight.connect(location) as client:
        client.wait_for_available()
        connect_s = watch.lap()
        reader = client.do_get(flight.Ticket(compression))
        first = reader.read_chunk().data
        execute_s = watch.lap()
        table = pa.concat_tables([pa.Table.from_batches([first]), reader.read_all()])
        transfer_s = watch.lap()
        return Measurement(
            connect_s, execute_s, transfer_s, watch.total(), table.num_rows, table.nbytes
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    ends = parser.add_subparsers(dest="end", required=True)
    end = ends.add_parser("serve")
    end.add_argument("parquet", type=Path)
    end.add_argument("locations", nargs="+")
    end = ends.add_parser("fetch")
    end.add_argument("location")
    end.add_argument("compression")
    end.add_argument("--fetches", type=int, required=True)
    given = parser.parse_args()
    if given.end == "serve":
        serve(given.parquet, given.locations)
    else:
        Client().report(
            median_fetch(lambda: fetch(given.location, given.compression), given.fetches)
        )
