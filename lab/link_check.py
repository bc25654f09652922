"""Measures a link and compares it with its settings, before anything is measured over it."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from link_direction import Direction
from link_line import FAR_ADDRESS, NEAR_ADDRESS, Emulated, settle
from link_namespace import Namespace
from link_probe import IP_AND_UDP_BYTES
from process import Failure, last_line

if TYPE_CHECKING:
    from link import Link

PROBE = Path(__file__).resolve().parent / "link_probe.py"
PORT = 9
RATE_TOLERANCE = 0.05
ROUND_TRIP_TOLERANCE, ROUND_TRIP_TOLERANCE_MS = 0.1, 1.0
#: Of the binomial distribution: a check of two directions fails by chance once in 8,000 times.
LOSS_DEVIATIONS = 4
PINGS = 25
#: Of the loss: small packets, which leave the line idle half of the time.
LOSS_IP_BYTES, LOSS_PACKETS_PER_S, LOSS_S = 128, 4000, 3.0
#: Of the rate: more than passes, so that the line is never idle.
EXCESS, RATE_S = 1.5, 1.5
#: Ethernet's header counts for a token bucket; IP's and TCP's with timestamps do not count for a reader.
ETHERNET_BYTES, IP_AND_TCP_BYTES = 14, 52


@dataclass(frozen=True)
class Passage:
    """What was seen of one direction."""

    bits_per_second: float
    loss: float
    late: float
    cpu_share: float

    def __str__(self) -> str:
        return (
            f"{self.bits_per_second / 1e6:.2f} Mbit/s, loss {self.loss:.2%}, late {self.late:.2%}, "
            f"emulator at {self.cpu_share:.0%} of a core"
        )


@dataclass(frozen=True)
class Check:
    """What was seen of a link. `late` packets came after one that was sent later."""

    round_trip_ms: float
    to_far: Passage
    to_near: Passage

    def __str__(self) -> str:
        return f"round trip {self.round_trip_ms:.2f} ms\nto far: {self.to_far}\nto near: {self.to_near}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Probe:
    """One part of link_probe.py, in a namespace."""

    def __init__(self, namespace: Namespace, *words: object, is_ready_first: bool = False) -> None:
        command = [*namespace.inside, sys.executable, str(PROBE), *map(str, words)]
        self.part = str(words[0])
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if is_ready_first:
            assert self.popen.stdout is not None
            self.popen.stdout.readline()

    def result(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """What it printed last."""
        try:
            output, errors = self.popen.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise Failure(f"the probe {self.part} did not end within {timeout_s:.0f} s") from error
        if self.popen.returncode != 0:
            raise Failure(f"the probe {self.part} failed: {last_line(errors)}")
        return json.loads(output.splitlines()[-1])

    def stop(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()


@dataclass(frozen=True)
class Way:
    """A direction with its ends."""

    name: str
    direction: Direction
    source: Namespace
    target: Namespace
    address: str


def check(link: Link) -> Check:
    """Measure a link at rest. Raises Failure when it is not what it should be."""
    line = link.line
    ways = (
        Way("to far", line.to_far, link.near_namespace, link.far_namespace, FAR_ADDRESS),
        Way("to near", line.to_near, link.far_namespace, link.near_namespace, NEAR_ADDRESS),
    )
    round_trip_ms = measure_round_trip(ways[0])
    losses = measure_losses(ways)
    passages = []
    for way, (loss, late) in zip(ways, losses):
        cpu_before_s = line.cpu_s()
        measure = measure_datagrams if isinstance(line, Emulated) else measure_stream
        bits_per_second = measure(way, line.mtu)
        cpu_share = (line.cpu_s() - cpu_before_s) / RATE_S
        passages.append(Passage(bits_per_second, loss, late, cpu_share))
        settle(line)
    seen = Check(round_trip_ms, *passages)
    compare(seen, line.round_trip_ms, ways)
    return seen


def measure_round_trip(way: Way) -> float:
    echo = Probe(way.target, "echo", PORT, is_ready_first=True)
    try:
        round_trips_ms = Probe(way.source, "ping", way.address, PORT, PINGS).result(120)["round_trips_ms"]
    finally:
        echo.stop()
    if not round_trips_ms:
        raise Failure(f"none of {PINGS} echoes came back over the link")
    return statistics.median(round_trips_ms)


def measure_losses(ways: tuple[Way, Way]) -> list[tuple[float, float]]:
    """The share of packets that were lost, and that came late, in both directions at once, at half of the rate."""
    receivers = [Probe(way.target, "receive", PORT, 2, is_ready_first=True) for way in ways]
    senders = []
    for way in ways:
        bits_per_second = min(way.direction.rate_at_rest() / 2, LOSS_PACKETS_PER_S * LOSS_IP_BYTES * 8)
        senders.append(Probe(way.source, "send", way.address, PORT, LOSS_IP_BYTES, bits_per_second, LOSS_S))
    sent = [sender.result()["packets"] for sender in senders]
    received = [receiver.result() for receiver in receivers]
    for way, packets, seen in zip(ways, sent, received):
        expected = way.direction.loss
        lost = packets - seen["packets"]
        deviation = math.sqrt(packets * expected * (1 - expected))
        if abs(lost - packets * expected) > LOSS_DEVIATIONS * deviation:
            raise Failure(
                f"{way.name}: expected {packets * expected:.0f} of {packets} packets to be lost "
                f"({expected:.2%}, with a deviation of {deviation:.0f}), but {lost} were ({lost / packets:.2%})"
            )
    return [(1 - seen["packets"] / packets, seen["late"] / packets) for packets, seen in zip(sent, received)]


def measure_datagrams(way: Way, mtu: int) -> float:
    """Bits of IP packets per second that the line passes; those that are lost behind it have taken their time."""
    receiver = Probe(way.target, "receive", PORT, 2, is_ready_first=True)
    excess = way.direction.rate_at_rest() * EXCESS
    Probe(way.source, "send", way.address, PORT, max(mtu, IP_AND_UDP_BYTES + 8), excess, RATE_S).result()
    return receiver.result()["bits_per_second"] / (1 - way.direction.loss)


def measure_stream(way: Way, mtu: int) -> float:
    """Bits of Ethernet frames per second, as a token bucket counts them, by a loss-based control: nothing is lost."""
    receiver = Probe(way.target, "tcp-receive", PORT, is_ready_first=True)
    Probe(way.source, "tcp-send", way.address, PORT, "cubic", RATE_S).result()
    return receiver.result()["bits_per_second"] * (mtu + ETHERNET_BYTES) / (mtu - IP_AND_TCP_BYTES)


def compare(seen: Check, round_trip_ms: float, ways: tuple[Way, Way]) -> None:
    allowed_ms = max(ROUND_TRIP_TOLERANCE_MS, round_trip_ms * ROUND_TRIP_TOLERANCE)
    if abs(seen.round_trip_ms - round_trip_ms) > allowed_ms:
        raise Failure(f"expected a round trip of {round_trip_ms:g} ms, measured {seen.round_trip_ms:.2f} ms")
    for way, passage in zip(ways, (seen.to_far, seen.to_near)):
        rate = way.direction.rate_at_rest()
        if abs(passage.bits_per_second / rate - 1) > RATE_TOLERANCE:
            raise Failure(
                f"{way.name}: expected {rate / 1e6:g} Mbit/s, measured {passage.bits_per_second / 1e6:.2f}: "
                "the link, or the machine at this moment, is not as fast as its settings"
            )
