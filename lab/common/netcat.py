"""netcat: sends the table as CSV to a client that drops it. Parsing CSV can only be slower.

Optionally a compressor writes to the socket, and a decompressor reads from it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from lab.common.contender import Contender, Server, Setting
from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu
from lab.common.process import Failure
from lab.common.program import program_name, python

SINK_BYTES = 1024 * 1024


class NetcatServer(Server):
    """OpenBSD's nc with a cached file, or a compressor that starts when a client connects.

    In a pipe before nc, a compressor would fill its buffers before the clock starts.
    """

    def __init__(self, setting: Setting, compressor: str = "") -> None:
        super().__init__(setting, "netcat")
        self.compressor = compressor

    def command(self) -> list[str]:
        address = [self.setting.testbed.address, str(self.port)]
        if self.compressor:
            return python(__name__, "serve", *address, *shlex.split(self.compressor))
        return ["nc", "-l", "-N", "-n", *address]

    def stdin(self) -> Path:
        return self.setting.table.csv()


class NetcatContender(Contender):
    into_table = False

    def __init__(self, server: NetcatServer, suffix: str = "", decompressor: str = "") -> None:
        what = f"CSV through {server.compressor}" if server.compressor else "netcat of the CSV"
        super().__init__(f"netcat{suffix}", f"{what}, dropped, TCP", server)
        self.decompressor = decompressor

    def start_server(self) -> None:
        """nc serves one connection and ends, so each run has its own."""
        self.server.stop()
        self.server.start()

    def run_client(self) -> Measurement:
        measurement = super().run_client()
        expected, found = self.server.stdin().stat().st_size, measurement.details["text_bytes"]
        if found != expected:
            raise Failure(f"expected {expected} bytes, the client received {found}")
        return measurement

    def client_command(self) -> list[str]:
        address = self.server.setting.testbed.address
        return python(__name__, "fetch", address, self.server.port, *shlex.split(self.decompressor))


def serve(address: str, port: int, compressor: list[str]) -> None:
    """Accept one client, and replace this process by a compressor that writes to it."""
    with socket.create_server((address, port)) as listener:
        connection, _peer = listener.accept()
    os.dup2(connection.fileno(), sys.stdout.fileno())
    os.execvp(compressor[0], compressor)


def fetch(address: str, port: int, decompressor: list[str]) -> Measurement:
    buffer = bytearray(SINK_BYTES)
    watch = Stopwatch()
    with socket.create_connection((address, port)) as connection:
        connect_s = watch.lap()
        if decompressor:
            child = subprocess.Popen(
                decompressor, stdin=connection, stdout=subprocess.PIPE, bufsize=0
            )
            receive = child.stdout.readinto
        else:
            receive = connection.recv_into
        received = text_bytes = receive(buffer)
        execute_s = watch.lap()
        while received:
            received = receive(buffer)
            text_bytes += received
        transfer_s = watch.lap()
        if decompressor and child.wait() != 0:
            raise SystemExit(f"{decompressor[0]} ended with code {child.returncode}")
    wire_bytes = None if decompressor else text_bytes
    details = {"text_bytes": text_bytes}
    return Measurement(
        connect_s, execute_s, transfer_s, watch.total(), None, None, wire_bytes, details=details
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("end", choices=["serve", "fetch"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("pipe", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.end == "serve":
        serve(given.address, given.port, given.pipe)
    else:
        client = Client()
        client.report(with_cpu(lambda: fetch(given.address, given.port, given.pipe)))
