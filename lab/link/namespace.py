"""Network namespaces, named after the process that made them, and removed with their processes."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from lab.common import congestion
from lab.common.process import Failure

NAMES = Path("/run/netns")
PREFIX = "dray-link"
numbers = itertools.count()


def command(*words: str) -> str:
    """Run a command and return its output."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Failure(f"{words[0]} is not installed") from error
    if done.returncode != 0:
        message = done.stderr.strip() or "no message"
        raise Failure(f"{' '.join(words)} ended with code {done.returncode}: {message}")
    return done.stdout


def require_root() -> None:
    if os.geteuid() != 0:
        raise Failure("a link needs root to make network namespaces: run it with sudo")
    if shutil.which("ip") is None:
        raise Failure("a link needs the command ip: install iproute2")


def unique(end: str) -> Namespace:
    """A namespace with a unique name, not made yet."""
    return Namespace(f"{PREFIX}-{os.getpid()}-{next(numbers)}-{end}")


def pair() -> tuple[Namespace, Namespace]:
    """The namespaces of the two ends of a link, not made yet."""
    return unique("near"), unique("far")


def remove_orphans() -> None:
    """Remove the namespaces of processes that have ended without removing them."""
    for path in NAMES.glob(f"{PREFIX}-*"):
        match = re.fullmatch(rf"{PREFIX}-(\d+)-\d+-.+", path.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            Namespace(path.name).remove()


class Namespace:
    """A network namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: Prefix of a command line that runs in the namespace.
        self.inside = ["ip", "netns", "exec", name]

    def make(self) -> None:
        command("ip", "netns", "add", self.name)
        # IPv6 neighbour discovery would be counted with the packets.
        self.set("net.ipv6.conf.all.disable_ipv6", "1", optional=True)
        self.set("net.ipv6.conf.default.disable_ipv6", "1", optional=True)
        # A connection must not inherit the metrics of an earlier one, which may be a rival's.
        self.set("net.ipv4.tcp_no_metrics_save", "1")
        self.ip("link", "set", "lo", "up")

    def ip(self, *words: str) -> str:
        return command("ip", "-n", self.name, *words)

    def run(self, *words: str) -> str:
        return command(*self.inside, *words)

    def set(self, name: str, value: str, optional: bool = False) -> None:
        """Set a sysctl."""
        if optional and not Path("/proc/sys", *name.split(".")).exists():
            return
        self.run("sysctl", "-qw", f"{name}={value}")

    def congestion(self) -> str:
        return self.run("sysctl", "-n", "net.ipv4.tcp_congestion_control").strip()

    def choose_congestion(self, name: str) -> None:
        if name not in congestion.available():
            offered = ", ".join(congestion.available())
            raise Failure(
                f"expected one of the kernel's congestion controls {offered}, found {name}"
            )
        with congestion.allowed(name):
            self.set("net.ipv4.tcp_congestion_control", name)

    def is_listening(self) -> bool:
        """Whether any TCP or UDP socket in the namespace listens."""
        return bool(self.run("ss", "-lntuH").strip())

    def remove(self) -> None:
        """Kill the processes in the namespace and remove it, if it exists."""
        if not (NAMES / self.name).exists():
            return
        for pid in self.run_quietly("pids", self.name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.run_quietly("delete", self.name)

    def run_quietly(self, *words: str) -> str:
        """Run a command of `ip netns` and ignore failures, which would hide an earlier one."""
        return subprocess.run(
            ["ip", "netns", *words], capture_output=True, text=True, check=False
        ).stdout
