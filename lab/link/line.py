"""Lines between two namespaces: the emulator with two TUN devices, or a veth pair with token
buckets.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cache
from pathlib import Path

from lab.common.process import Failure, cpu_s, last_line
from lab.link.direction import Direction, rate_bits
from lab.link.namespace import Namespace, command

CRATE = Path(__file__).resolve().parent
DEVICE = "link0"
#: Addresses that exist only in the two namespaces.
NEAR_ADDRESS, FAR_ADDRESS, PREFIX_BITS = "10.99.0.1", "10.99.0.2", 30
#: Above this rate, the emulator itself would be the bottleneck.
EMULATED_BITS_MAX = 200 * 10**6
#: Long enough that the device drops no packet that would fit the emulator's queue.
DEVICE_QUEUE_PACKETS = 10_000
ANSWER_TIMEOUT_S = 10.0
REALTIME_PRIORITY = 10
#: Two packets of segmentation offload, or what the rate passes while a timer is late.
BURST_BYTES_MIN, BURST_S = 128 * 1024, 0.001
VETH_QUEUE_MS = 10


class Line(ABC):
    """A line between two existing namespaces."""

    def __init__(self, to_far: Direction, to_near: Direction, mtu: int) -> None:
        self.to_far = to_far
        self.to_near = to_near
        self.mtu = mtu

    @abstractmethod
    def connect(self, near: Namespace, far: Namespace) -> None: ...

    @abstractmethod
    def disconnect(self) -> None: ...

    @abstractmethod
    def counters(self) -> dict[str, dict[str, int]]:
        """Counters of the packets of each direction."""

    def start(self) -> None:
        """Start the schedule."""
        raise Failure("only an emulated link has a schedule")

    def cpu_s(self) -> float:
        """CPU seconds of the line itself."""
        return 0.0

    @property
    def round_trip_ms(self) -> float:
        return self.to_far.delay_ms + self.to_near.delay_ms

    def address(self, near: Namespace, far: Namespace) -> None:
        for namespace, address in ((near, NEAR_ADDRESS), (far, FAR_ADDRESS)):
            namespace.ip("address", "add", f"{address}/{PREFIX_BITS}", "dev", DEVICE)
            namespace.ip(
                "link",
                "set",
                DEVICE,
                "mtu",
                str(self.mtu),
                "txqueuelen",
                str(DEVICE_QUEUE_PACKETS),
                "up",
            )


class Emulated(Line):
    """The emulator of this folder between two TUN devices."""

    def __init__(self, to_far: Direction, to_near: Direction, mtu: int, seed: int) -> None:
        super().__init__(to_far, to_near, mtu)
        fastest = max(to_far.rate_max(), to_near.rate_max())
        if fastest > EMULATED_BITS_MAX:
            raise Failure(
                f"expected at most {EMULATED_BITS_MAX // 10**6} Mbit/s for the emulator, "
                f"found {fastest / 10**6:g}: use a veth link, which has no delay and no loss"
            )
        self.settings = [
            to_far.arguments(self.round_trip_ms, 2 * seed),
            to_near.arguments(self.round_trip_ms, 2 * seed + 1),
        ]
        self.popen: subprocess.Popen[str] | None = None

    def connect(self, near: Namespace, far: Namespace) -> None:
        for namespace in (near, far):
            namespace.ip("tuntap", "add", "dev", DEVICE, "mode", "tun")
        self.popen = subprocess.Popen(
            [str(emulator()), near.name, far.name, DEVICE, *self.settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C must not reach it: the line lasts until its namespaces are removed.
            start_new_session=True,
        )
        # Keeps packets on time on a busy machine. If it is not permitted, the check of the link
        # shows whether it mattered.
        with suppress(PermissionError):
            os.sched_setscheduler(self.popen.pid, os.SCHED_FIFO, os.sched_param(REALTIME_PRIORITY))
        self.answer("ready")
        self.address(near, far)

    def disconnect(self) -> None:
        if self.popen is None:
            return
        try:
            # The emulator ends at the end of its standard input.
            self.popen.communicate(timeout=ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.communicate()

    def start(self) -> None:
        self.ask("start", "started")

    def counters(self) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = json.loads(self.ask("counters"))
        return counted

    def cpu_s(self) -> float:
        return (cpu_s(self.popen.pid) if self.popen else None) or 0.0

    def ask(self, question: str, expected: str = "") -> str:
        assert self.popen is not None and self.popen.stdin is not None
        try:
            self.popen.stdin.write(f"{question}\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer(expected)

    def answer(self, expected: str) -> str:
        """The next line of the emulator. Each question has one line, so none stays buffered."""
        assert (
            self.popen is not None
            and self.popen.stdout is not None
            and self.popen.stderr is not None
        )
        ready, _, _ = select.select([self.popen.stdout], [], [], ANSWER_TIMEOUT_S)
        line = self.popen.stdout.readline().strip() if ready else ""
        if not line and self.popen.poll() is not None:
            raise Failure(f"the emulator ended: {last_line(self.popen.stderr.read())}")
        if not line or expected not in line:
            raise Failure(f"expected {expected or 'counters'} from the emulator, found {line!r}")
        return line


class Veth(Line):
    """A veth pair with a token bucket at each end: LAN rates, without delay or loss."""

    def connect(self, near: Namespace, far: Namespace) -> None:
        self.ends = {"to_far": near, "to_near": far}
        near.ip("link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", far.name)
        self.address(near, far)
        for namespace, direction in ((near, self.to_far), (far, self.to_near)):
            shape = bucket(rate_bits(direction.rate), direction.queue_bytes)
            command(
                "tc", "-n", namespace.name, "qdisc", "add", "dev", DEVICE, "root", "tbf", *shape
            )

    def disconnect(self) -> None:
        """The pair is removed with its namespaces."""

    def counters(self) -> dict[str, dict[str, int]]:
        return {direction: passed(space, DEVICE) for direction, space in self.ends.items()}


def bucket(bits: int, queue_bytes: int | None = None) -> list[str]:
    """The settings of a token bucket."""
    burst = max(BURST_BYTES_MIN, round(bits / 8 * BURST_S))
    limit = burst + (queue_bytes or round(bits / 8 * VETH_QUEUE_MS / 1000))
    return ["rate", f"{bits}bit", "burst", f"{burst}b", "limit", f"{limit}b"]


def passed(namespace: Namespace, device: str) -> dict[str, int]:
    """The counters of a device's token bucket."""
    shown = json.loads(
        command("tc", "-n", namespace.name, "-s", "-j", "qdisc", "show", "dev", device)
    )
    found = next(discipline for discipline in shown if discipline["kind"] == "tbf")
    return {
        "passed": found["packets"],
        "passed_bytes": found["bytes"],
        "overflowed": found["drops"],
    }


@cache
def emulator() -> Path:
    """Build the emulator in a target folder that no other build locks, and return its path."""
    target = (
        Path(os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache" / "dray" / "target")
        / "link"
    )
    manifest = str(CRATE / "Cargo.toml")
    command(
        "cargo",
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        manifest,
        "--target-dir",
        str(target),
    )
    return target / "release" / "dray-link"


def settle(line: Line) -> None:
    """Wait until all queued packets have arrived, if no more are sent."""
    longest_s = 0.0
    if isinstance(line, Emulated):
        for direction in (line.to_far, line.to_near):
            queue_s = direction.queue(line.round_trip_ms) * 8 / direction.rate_at_rest()
            longest_s = max(longest_s, queue_s + (direction.delay_ms + direction.reorder_ms) / 1000)
    time.sleep(longest_s)
