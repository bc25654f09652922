"""Measures a link and compares it with its settings."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lab.common.process import Failure, last_line
from lab.common.program import python
from lab.link.direction import Direction
from lab.link.line import FAR_ADDRESS, NEAR_ADDRESS, Emulated, settle
from lab.link.namespace import Namespace
from lab.link.probe import IP_AND_UDP_BYTES

if TYPE_CHECKING:
    from lab.link.link import Link

PROBE = "lab.link.probe"
PORT = 9
RATE_TOLERANCE = 0.05
ROUND_TRIP_TOLERANCE, ROUND_TRIP_TOLERANCE_MS = 0.1, 1.0
#: Standard deviations of the binomial distribution. A check of two directions fails by chance once
#: in 8,000 times.
LOSS_DEVIATIONS = 4
PINGS = 25
#: Idle time after which a receiver stops.
IDLE_S = 2
#: Measurement of loss: small packets that use at most half of the rate.
LOSS_IP_BYTES, LOSS_PACKETS_PER_S, LOSS_S = 128, 4000, 3.0
#: Measurement of the rate: more packets than the line passes, so that it is never idle.
EXCESS, RATE_S = 1.5, 1.5
#: A token bucket counts Ethernet's header. A reader does not see those of IP and TCP with
#: timestamps.
ETHERNET_BYTES, IP_AND_TCP_BYTES = 14, 52


@dataclass(frozen=True)
class Passage:
    """The measurements of one direction."""

    bits_per_second: float
    #: CPU seconds of the emulator per second at full rate.
    cpu_share: float
    #: Packets sent to measure loss, those that were lost, and those that arrived after a later one.
    sent: int
    lost: int
    late: int

    def __str__(self) -> str:
        return (
            f"{self.bits_per_second / 1e6:.2f} Mbit/s, emulator at {self.cpu_share:.0%} of a core; "
            f"of {self.sent} packets {self.lost} lost ({self.lost / self.sent:.2%}), "
            f"{self.late} late"
        )


@dataclass(frozen=True)
class Check:
    """The measurements of a link."""

    round_trip_ms: float
    to_far: Passage
    to_near: Passage

    def __str__(self) -> str:
        return (
            f"round trip {self.round_trip_ms:.2f} ms\n"
            f"to far: {self.to_far}\nto near: {self.to_near}"
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Probe:
    """A process that runs a part of probe.py in a namespace."""

    def __init__(self, namespace: Namespace, *words: object, is_ready_first: bool = False) -> None:
        command = [*namespace.inside, *python(PROBE, *words)]
        self.part = str(words[0])
        self.popen = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if is_ready_first:
            assert self.popen.stdout is not None
            self.popen.stdout.readline()

    def result(self, timeout_s: float = 30.0) -> dict[str, Any]:
        """The result that the probe printed last."""
        try:
            output, errors = self.popen.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise Failure(f"the probe {self.part} did not end within {timeout_s:.0f} s") from error
        if self.popen.returncode != 0:
            raise Failure(f"the probe {self.part} failed: {last_line(errors)}")
        printed: dict[str, Any] = json.loads(output.splitlines()[-1])
        return printed

    def stop(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()


@dataclass(frozen=True)
class Flow:
    """A direction of a link and its two ends."""

    name: str
    direction: Direction
    source: Namespace
    target: Namespace
    address: str


def measure(link: Link) -> Check:
    """Measure both directions of a link before its schedule starts."""
    line = link.line
    flows = flows_of(link)
    round_trip_ms = measure_round_trip(flows[0])
    passages = []
    for flow, (sent, lost, late) in zip(flows, measure_losses(flows)):
        cpu_before_s = line.cpu_s()
        measure_rate = measure_datagrams if isinstance(line, Emulated) else measure_stream
        bits_per_second = measure_rate(flow, line.mtu)
        passages.append(
            Passage(bits_per_second, (line.cpu_s() - cpu_before_s) / RATE_S, sent, lost, late)
        )
        settle(line)
    return Check(round_trip_ms, *passages)


def compare(seen: Check, link: Link) -> None:
    """Raise Failure if a link differs from its settings."""
    round_trip_ms = link.line.round_trip_ms
    allowed_ms = max(ROUND_TRIP_TOLERANCE_MS, round_trip_ms * ROUND_TRIP_TOLERANCE)
    if abs(seen.round_trip_ms - round_trip_ms) > allowed_ms:
        raise Failure(
            f"expected a round trip of {round_trip_ms:g} ms, measured {seen.round_trip_ms:.2f} ms"
        )
    for flow, passage in zip(flows_of(link), (seen.to_far, seen.to_near)):
        loss, rate = flow.direction.loss, flow.direction.rate_at_rest()
        expected, deviation = passage.sent * loss, math.sqrt(passage.sent * loss * (1 - loss))
        if abs(passage.lost - expected) > LOSS_DEVIATIONS * deviation:
            raise Failure(
                f"{flow.name}: expected a loss of {expected:.0f} of {passage.sent} packets "
                f"({loss:.2%}, standard deviation {deviation:.0f}), measured {passage.lost}"
            )
        if abs(passage.bits_per_second / rate - 1) > RATE_TOLERANCE:
            raise Failure(
                f"{flow.name}: expected {rate / 1e6:g} Mbit/s, "
                f"measured {passage.bits_per_second / 1e6:.2f}: the machine may be too slow or busy"
            )


def flows_of(link: Link) -> tuple[Flow, Flow]:
    near, far = link.near_namespace, link.far_namespace
    return (
        Flow("to far", link.line.to_far, near, far, FAR_ADDRESS),
        Flow("to near", link.line.to_near, far, near, NEAR_ADDRESS),
    )


def measure_round_trip(flow: Flow) -> float:
    echo = Probe(flow.target, "echo", PORT, is_ready_first=True)
    try:
        round_trips_ms = Probe(flow.source, "ping", flow.address, PORT, PINGS).result(120)[
            "round_trips_ms"
        ]
    finally:
        echo.stop()
    if not round_trips_ms:
        raise Failure(f"none of {PINGS} echoes returned over the link")
    return float(statistics.median(round_trips_ms))


def measure_losses(flows: tuple[Flow, Flow]) -> list[tuple[int, int, int]]:
    """Packets sent, lost and late, for both directions at once at no more than half of the rate."""
    receivers = [Probe(flow.target, "receive", PORT, IDLE_S, is_ready_first=True) for flow in flows]
    senders = []
    for flow in flows:
        bits_per_second = min(
            flow.direction.rate_at_rest() / 2, LOSS_PACKETS_PER_S * LOSS_IP_BYTES * 8
        )
        senders.append(
            Probe(flow.source, "send", flow.address, PORT, LOSS_IP_BYTES, bits_per_second, LOSS_S)
        )
    sent = [sender.result()["packets"] for sender in senders]
    received = [receiver.result() for receiver in receivers]
    return [
        (packets, packets - seen["packets"], seen["late"]) for packets, seen in zip(sent, received)
    ]


def measure_datagrams(flow: Flow, mtu: int) -> float:
    """Bits of IP packets per second over UDP. Lost packets count, because they occupy the line."""
    receiver = Probe(flow.target, "receive", PORT, IDLE_S, is_ready_first=True)
    excess = flow.direction.rate_at_rest() * EXCESS
    Probe(
        flow.source, "send", flow.address, PORT, max(mtu, IP_AND_UDP_BYTES + 8), excess, RATE_S
    ).result()
    return float(receiver.result()["bits_per_second"]) / (1 - flow.direction.loss)


def measure_stream(flow: Flow, mtu: int) -> float:
    """Bits of Ethernet frames per second over TCP, as a token bucket counts them.

    The congestion control is loss-based, because the link loses no packets.
    """
    receiver = Probe(flow.target, "tcp-receive", PORT, is_ready_first=True)
    Probe(flow.source, "tcp-send", flow.address, PORT, "cubic", RATE_S).result()
    return (
        float(receiver.result()["bits_per_second"])
        * (mtu + ETHERNET_BYTES)
        / (mtu - IP_AND_TCP_BYTES)
    )
