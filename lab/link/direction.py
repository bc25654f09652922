"""The settings of one direction of a link, and their notation: `150mbit,20mbit@5s`, `25ms`, `1%`,
`3s+2s`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

from lab.common.process import Failure

RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "kib": 2**10, "mib": 2**20}
TIME_UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0}
#: Time that the default queue holds in addition to a round trip.
QUEUE_S = 0.1
NS = 10**9


def amount(text: str, units: dict[str, int] | dict[str, float], expected: str) -> float:
    """Parse a number with one of the units."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in units:
        raise Failure(f"expected {expected}, found {text!r}")
    return float(match[1]) * units[match[2]]


def rate_bits(text: str) -> int:
    bits = round(amount(text, RATE_UNITS, "a rate like 100mbit"))
    if bits < 1:
        raise Failure(f"expected a rate above 0, found {text!r}")
    return bits


def seconds(text: str) -> float:
    return amount(text, TIME_UNITS, "a time like 25ms or 5s")


def size_bytes(text: str) -> int:
    return round(amount(text, SIZE_UNITS, "a size like 500kb"))


def fraction(text: str) -> float:
    """Parse `1%` or `0.01`."""
    percent = text.strip().endswith("%")
    value = amount(text.strip().rstrip("%"), {"": 1.0}, "a fraction like 1% or 0.01") / (
        100 if percent else 1
    )
    if value > 1:
        raise Failure(f"expected a fraction of at most 100%, found {text!r}")
    return value


def rate_steps(text: str) -> list[tuple[float, int]]:
    """Parse `150mbit,20mbit@5s` to pairs of a start in seconds and a rate in bits per second."""
    steps = []
    for number, step in enumerate(text.split(",")):
        rate, _, begin = step.partition("@")
        if number and not begin:
            raise Failure(f"expected a rate with its start, like 20mbit@5s, found {step!r}")
        steps.append((seconds(begin) if begin else 0.0, rate_bits(rate)))
    if any(earlier[0] >= later[0] for earlier, later in itertools.pairwise(steps)):
        raise Failure(f"expected rates in the order of their starts, found {text!r}")
    return steps


def interval(text: str) -> tuple[float, float]:
    """Parse `3s+2s`, from second 3 to second 5, to a start and an end."""
    begin, plus, duration = text.partition("+")
    if not plus or seconds(duration) == 0:
        raise Failure(f"expected a start and a duration, like 3s+2s, found {text!r}")
    return seconds(begin), seconds(begin) + seconds(duration)


@dataclass(frozen=True)
class Direction:
    """The settings of one direction.

    Attributes
    ----------
    rate : str
        Bits of IP packets per second, optionally with a schedule: `150mbit,20mbit@5s,150mbit@15s`.
    delay_ms : float
        Time between leaving the line and arriving.
    loss : float
        Probability that a packet is lost, independent of all others.
    reorder : float
        Probability that a packet has an additional delay, `reorder_ms`, so that later ones overtake
        it.
    queue_bytes : int, optional
        Capacity of the queue. The default is a round trip and 100 ms at the highest rate.
    cuts, stalls : tuple of str
        Intervals like `3s+2s`. During a cut, packets that leave the queue are lost. During a stall,
        no packet leaves it.
    """

    rate: str
    delay_ms: float = 0.0
    loss: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 5.0
    queue_bytes: int | None = None
    cuts: tuple[str, ...] = ()
    stalls: tuple[str, ...] = ()

    def rate_at_rest(self) -> int:
        """Bits per second before the schedule starts."""
        return rate_steps(self.rate)[0][1]

    def rate_max(self) -> int:
        return max(bits for _, bits in rate_steps(self.rate))

    def is_scheduled(self) -> bool:
        return len(rate_steps(self.rate)) > 1 or bool(self.cuts or self.stalls)

    def queue(self, round_trip_ms: float) -> int:
        """Capacity of the queue in bytes."""
        if self.queue_bytes is not None:
            return self.queue_bytes
        return round(self.rate_max() / 8 * (round_trip_ms / 1000 + QUEUE_S))

    def arguments(self, round_trip_ms: float, seed: int) -> str:
        """The settings in the emulator's notation."""
        rates = ",".join(f"{round(begin * NS)}:{bits}" for begin, bits in rate_steps(self.rate))
        words = [
            f"rate={rates}",
            f"delay={round(self.delay_ms / 1000 * NS)}",
            f"loss={self.loss}",
            f"reorder={self.reorder}",
            f"reorder_delay={round(self.reorder_ms / 1000 * NS)}",
            f"queue={self.queue(round_trip_ms)}",
            f"seed={seed}",
        ]
        for name, intervals in (("cut", self.cuts), ("stall", self.stalls)):
            pairs = [
                f"{round(begin * NS)}:{round(end * NS)}" for begin, end in map(interval, intervals)
            ]
            words += [f"{name}={','.join(pairs)}"] if pairs else []
        return " ".join(words)

    def with_changes(self, words: str) -> Direction:
        """A copy with changes like `rate=… delay=… loss=… reorder=… queue=…`."""
        changes: dict[str, object] = {}
        for word in words.split():
            name, _, value = word.partition("=")
            if name == "rate":
                rate_steps(value)
                changes["rate"] = value
            elif name == "delay":
                changes["delay_ms"] = seconds(value) * 1000
            elif name in ("loss", "reorder"):
                changes[name] = fraction(value)
            elif name == "queue":
                changes["queue_bytes"] = size_bytes(value)
            else:
                raise Failure(f"expected rate=, delay=, loss=, reorder= or queue=, found {word!r}")
        return replace(self, **changes)  # type: ignore[arg-type]
