"""What a client process reports: one JSON line on standard output."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from lab.common.process import memory_bytes

#: How often one client process fetches. The first fetch warms up and is dropped.
FETCHES = 4


class Stopwatch:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()

    def lap(self) -> float:
        now = time.perf_counter()
        elapsed, self.last = now - self.last, now
        return elapsed

    def total(self) -> float:
        return self.last - self.start


@dataclass
class Measurement:
    """One fetch of one client.

    `execute_s` is None where the client hides the moment of the first batch, `connect_s` where it
    connects by itself; `transfer_s` then includes them."""

    connect_s: float | None
    execute_s: float | None
    transfer_s: float
    total_s: float
    rows: int | None
    arrow_bytes: int | None
    wire_bytes: int | None = None
    client_peak_bytes: int = 0
    client_growth_bytes: int = 0
    #: User and system time of the client during the fetch, all its threads.
    client_cpu_s: float | None = None
    #: How many fetches of the process it stands for.
    fetches: int = 1
    details: dict = field(default_factory=dict)


def median_fetch(fetch: Callable[[], Measurement], fetches: int = FETCHES) -> Measurement:
    """Fetch again and again in this process, and return the median fetch of all but the first, if
    there are more.

    A virtual machine may have given free memory back to its host, and waits longer for it than any
    fetch takes. What a process has just freed it gets again at once."""
    measured = [with_cpu(fetch) for _ in range(fetches)][min(1, fetches - 1) :]
    median = sorted(measured, key=lambda measurement: measurement.total_s)[len(measured) // 2]
    median.fetches = fetches
    return median


def with_cpu(fetch: Callable[[], Measurement]) -> Measurement:
    before_s = cpu_s()
    measurement = fetch()
    measurement.client_cpu_s = cpu_s() - before_s
    return measurement


def cpu_s() -> float:
    """User and system time so far, with that of children that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Client:
    """The memory of this client process, from before the connection to the report."""

    def __init__(self) -> None:
        self.loaded_bytes = memory_bytes("self", "VmRSS")

    def report(self, measurement: Measurement) -> None:
        measurement.client_peak_bytes = memory_bytes("self", "VmHWM")
        measurement.client_growth_bytes = measurement.client_peak_bytes - self.loaded_bytes
        print(json.dumps(asdict(measurement)), flush=True)
