"""Server processes: starts them with a log, waits for them, measures them through /proc, and stops
them by their pid.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TCP_LISTEN = "0A"


class Failure(Exception):
    """A contender could not be run; the message says why."""


class Timeout(Failure):
    """A client did not finish in time."""


def free_port() -> int:
    """A TCP port of the loopback interface that is not in use. It lies below the ports that Linux
    gives to clients: one of these could be taken before the server listens.
    """
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def memory_bytes(pid: int | str, field: str) -> int | None:
    """A memory field of /proc/PID/status, such as `VmRSS` (now) or `VmHWM` (peak), in bytes.

    None once the process has ended.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def reset_peak(pid: int | str) -> None:
    """Reset the peak memory of a process to its current memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@dataclass(frozen=True)
class Usage:
    """Memory and CPU time of a server while a client ran."""

    #: None if the process ended with its connection.
    peak_bytes: int | None
    cpu_s: float | None
    #: Most concurrent processes, if each connection has its own.
    backends_max: int | None = None


class Watch:
    """Measures peak memory and CPU seconds of one process from its construction on."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.cpu_before_s = cpu_s(pid)
        reset_peak(pid)

    def finish(self) -> Usage:
        after_s = cpu_s(self.pid)
        return Usage(
            memory_bytes(self.pid, "VmHWM"),
            None if after_s is None else after_s - self.cpu_before_s,
        )


def cpu_s(pid: int) -> float | None:
    """CPU seconds of a process and all its threads, in steps of 10 ms; None once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


class Process:
    """One server process whose output goes to a log."""

    def __init__(
        self,
        command: list[str],
        log: Path,
        stdin: Path = Path(os.devnull),
        stop_signal: int = signal.SIGTERM,
    ) -> None:
        self.command = command
        self.log = log
        self.stop_signal = stop_signal
        try:
            with log.open("wb") as output, stdin.open("rb") as source:
                self.popen = subprocess.Popen(
                    command, stdin=source, stdout=output, stderr=subprocess.STDOUT
                )
        except FileNotFoundError as error:
            raise Failure(f"{command[0]} is not installed") from error

    @property
    def pid(self) -> int:
        return self.popen.pid

    def await_listening(
        self, port: int | None, unix_path: Path | None, announcement: str, timeout_s: float
    ) -> None:
        """Wait until the process listens and has printed `announcement`.

        It does not connect, because some servers accept only one connection.

        Raises
        ------
        Failure
            If the process ends, or does not listen in time.
        """
        deadline = time.monotonic() + timeout_s
        while (
            not (port is None or is_listening(self.pid, port))
            or not (unix_path is None or unix_path.exists())
            or announcement not in self.output()
        ):
            if not self.is_running():
                code, message = self.popen.returncode, last_line(self.output())
                raise Failure(f"the server ended with code {code}: {message}")
            if time.monotonic() > deadline:
                message = last_line(self.output())
                raise Failure(f"the server did not listen within {timeout_s:.0f} s: {message}")
            time.sleep(0.02)

    def is_running(self) -> bool:
        return self.popen.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        if self.is_running():
            self.popen.send_signal(self.stop_signal)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


def is_listening(pid: int, port: int) -> bool:
    """Whether any process in the network namespace of `pid` listens on a port."""
    local_end = f":{port:04X}"
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        if Path(table).exists():
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(local_end) and fields[3] == TCP_LISTEN:
                    return True
    return False
