"""netcat of the CSV: text through a socket into a sink that keeps nothing. No rival that parses it can be faster."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

from contender import Contender, Server, Setting, python
from measurement import Client, Measurement, Stopwatch
from process import Failure

FILE = "netcat.py"
SINK_BYTES = 1024 * 1024


class NetcatServer(Server):
    """OpenBSD's nc, reading a file that the page cache holds."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "netcat")

    def command(self) -> list[str]:
        return ["nc", "-l", "-N", "-n", "127.0.0.1", str(self.port)]

    def stdin(self) -> Path:
        return self.setting.lineitem.csv()


class NetcatContender(Contender):
    into_table = False

    def __init__(self, server: NetcatServer) -> None:
        super().__init__("netcat", "netcat of the CSV, dropped, TCP", server)

    def start_server(self) -> None:
        """nc serves one connection and ends, so each run has its own."""
        self.server.stop()
        self.server.start()

    def run_client(self) -> Measurement:
        measurement = super().run_client()
        expected = self.server.stdin().stat().st_size
        if measurement.wire_bytes != expected:
            raise Failure(f"expected {expected} bytes, the client got {measurement.wire_bytes}")
        return measurement

    def client_command(self) -> list[str]:
        return python(FILE, self.server.port)


def fetch(port: int) -> None:
    process = Client()
    buffer = bytearray(SINK_BYTES)
    watch = Stopwatch()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connect_s = watch.lap()
        received = wire_bytes = connection.recv_into(buffer)
        execute_s = watch.lap()
        while received:
            received = connection.recv_into(buffer)
            wire_bytes += received
        transfer_s = watch.lap()
    process.report(Measurement(connect_s, execute_s, transfer_s, watch.total(), None, None, wire_bytes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    fetch(parser.parse_args().port)
