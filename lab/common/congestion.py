"""TCP congestion control: sets the machine's default during a run, restores it afterwards, and
reads back what sockets use.

The rivals have no option for it, so only the kernel's default can be set. An accepted connection
takes the current default, so servers need no restart.
"""

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
OBSERVATIONS_MAX = 4


def available() -> list[str]:
    return (SYSCTL / "tcp_available_congestion_control").read_text().split()


def current() -> str:
    return (SYSCTL / "tcp_congestion_control").read_text().strip()


def default_pair() -> list[str]:
    """BBR and a loss-based congestion control, as far as the machine has them."""
    offered = available()
    loss_based = [name for name in ("cubic", "reno") if name in offered][:1]
    return [name for name in ("bbr",) if name in offered] + loss_based


@contextmanager
def restored() -> Iterator[None]:
    """Restore the machine's congestion control at the end of the block."""
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
    """Allow every process to use a congestion control during the block.

    The default of a network namespace must be one of those. A lock admits one process at a time,
    so that the last one restores the original state.
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
    """Observes with `ss` which congestion control a server's connections on a port use.

    It stops after a few observations. The last one counts, because a server may change the
    congestion control after it has accepted a connection. `prefix` begins a command line that runs
    where the server does.
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
        while times < OBSERVATIONS_MAX and not self.done.wait(0.02):
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
