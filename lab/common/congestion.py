"""TCP congestion control: chosen for the machine during a run, restored afterwards, and read back
from live sockets.

The rivals offer no option for their sockets, so the default of the kernel is what can be set. A
connection that is accepted takes the default of that moment, so servers need no restart."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.common.process import Failure

SYSCTL = Path("/proc/sys/net/ipv4")
TIMES_SEEN = 4


def available() -> list[str]:
    return (SYSCTL / "tcp_available_congestion_control").read_text().split()


def current() -> str:
    return (SYSCTL / "tcp_congestion_control").read_text().strip()


def default_pair() -> list[str]:
    """BBR, and the loss-based one that the machine has."""
    offered = available()
    loss_based = [name for name in ("cubic", "reno") if name in offered][:1]
    return [name for name in ("bbr",) if name in offered] + loss_based


@contextmanager
def restored() -> Iterator[None]:
    """Whatever happens inside, the machine keeps the congestion control it had."""
    before = current()
    try:
        yield
    finally:
        if current() != before:
            choose(before)


def choose(name: str) -> None:
    if current() == name:
        return
    try:
        (SYSCTL / "tcp_congestion_control").write_text(name)
    except OSError as error:
        raise Failure(
            f"cannot set the congestion control to {name} ({error.strerror}): "
            f"run as root, or pass --congestion {current()}"
        ) from error


@contextmanager
def allowed(name: str) -> Iterator[None]:
    """Inside, a network namespace takes this one as its default: it may have only what the machine
    allows to everyone.

    One process at a time, so that what is restored is what was there before all of them.
    """
    path = SYSCTL / "tcp_allowed_congestion_control"
    with (Path(tempfile.gettempdir()) / f"dray-congestion-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = path.read_text().split()
        if name in before:
            yield
            return
        path.write_text(" ".join([*before, name]))
        try:
            yield
        finally:
            path.write_text(" ".join(before))


class Observer(threading.Thread):
    """Watches the server's connections on a port until `ss` has told some times which congestion
    control they use.

    The last time counts: a server may choose another one after it has accepted a connection.
    `prefix` is what a command line begins with to run where the server does.
    """

    def __init__(self, port: int, prefix: tuple[str, ...] = ()) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.prefix = prefix
        self.seen: str | None = None
        self.done = threading.Event()

    def run(self) -> None:
        names = set(available())
        times = 0
        while times < TIMES_SEEN and not self.done.wait(0.02):
            command = [
                *self.prefix,
                "ss",
                "-tinH",
                "state",
                "established",
                "sport",
                "=",
                f":{self.port}",
            ]
            listing = subprocess.run(command, capture_output=True, text=True, check=False)
            seen = next((word for word in listing.stdout.split() if word in names), None)
            if seen is not None:
                self.seen = seen
                times += 1

    def finish(self) -> str | None:
        self.done.set()
        self.join()
        return self.seen
