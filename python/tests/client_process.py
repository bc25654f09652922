"""Clients in processes of their own, for tests that interrupt them in a given state."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time


CLIENT = """
import signal, sys, time, dray
uri, sql, state, timeout, extension = sys.argv[1:]
interrupts = 0
def interrupt(*_):
    # Tests repeat the second one. Further ones must not disturb the end.
    global interrupts
    interrupts += 1
    if interrupts <= 2:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
def go():
    print("ready", flush=True)
    sys.stdin.readline()
    print("going", flush=True)
options = {}
if uri.startswith("postgresql"):
    options = {"extension": extension == "True", "partitions": 1}
try:
    limits = {"read_timeout": float(timeout)} if timeout else {}
    if state == "connecting":
        go()
        dray.connect(uri, timeout=float(timeout or 60))
    connection = dray.connect(uri, timeout=30, **limits)
    if state == "waiting":
        go()
    result = connection.query(sql, batch_rows=1000, **options)
    rows = result.rows()
    next(rows)
    go()
    for row in rows:
        pass
except KeyboardInterrupt:
    print("interrupted")
except dray.ConnectionError as error:
    print("gave up:", error)
"""


class Client:
    """A client that reaches some state, and goes on when it is told to."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ended = 0.0
        self.out = ""
        self._reader: threading.Thread | None = None

    def wait_until(self, word: str) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line == f"{word}\n", (
            self.command[3:],
            line,
            self.process.poll() and self.process.stderr.read(),
        )

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.wait_until("going")

    def follow(self) -> None:
        """Starts a thread that records the output and when the process ends."""

        def read() -> None:
            self.out, errors = self.process.communicate()
            self.ended = time.monotonic()
            self.out += errors

        self._reader = threading.Thread(target=read)
        self._reader.start()

    def interrupt(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def seconds_after(self, began: float) -> float:
        assert self._reader is not None
        self._reader.join(timeout=20)
        if self._reader.is_alive():
            self.process.kill()
            self._reader.join()
            raise AssertionError(f"{self.command[3:]} did not end")
        return self.ended - began


def interrupt_until_they_end(clients: list[Client]) -> None:
    """Interrupts clients repeatedly: a signal is lost if the one before it was not noticed yet."""
    deadline = time.monotonic() + 20
    while any(client.process.poll() is None for client in clients):
        assert time.monotonic() < deadline, "clients do not end"
        for client in clients:
            client.interrupt()
        time.sleep(0.2)


def python(uri: str, sql: str, state: str, timeout: str = "", extension: bool = False) -> Client:
    return Client([sys.executable, "-c", CLIENT, uri, sql, state, timeout, str(extension)])
