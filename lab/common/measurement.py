"""The measurements that a client process reports as one line of JSON on standard output."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from lab.common.process import memory_bytes

#: Fetches per client process. The first one warms up and is dropped.
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

    `execute_s` is None if the client does not expose when the first batch arrives, and `connect_s`
    if it does not expose when it has connected. `transfer_s` then includes them.
    """

    connect_s: float | None
    execute_s: float | None
    transfer_s: float
    total_s: float
    rows: int | None
    arrow_bytes: int | None
    wire_bytes: int | None = None
    client_peak_bytes: int = 0
    client_growth_bytes: int = 0
    #: User and system time of all threads of the client during the fetch.
    client_cpu_s: float | None = None
    #: Fetches of the process, of which this is the median.
    fetches: int = 1
    details: dict = field(default_factory=dict)


def median_fetch(fetch: Callable[[], Measurement], fetches: int = FETCHES) -> Measurement:
    """Fetch repeatedly in this process, and return the median of all fetches but the first.

    A single fetch is not dropped. The first one may wait for memory that a virtual machine has
    returned to its host, which can take longer than the fetch itself. Later ones reuse memory that
    the process has freed.
    """
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
    """User and system time of this process and its ended children so far."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Client:
    """Measures the memory of this client process from before it connects until it reports."""

    def __init__(self) -> None:
        self.loaded_bytes = memory_bytes("self", "VmRSS")

    def report(self, measurement: Measurement) -> None:
        measurement.client_peak_bytes = memory_bytes("self", "VmHWM")
        measurement.client_growth_bytes = measurement.client_peak_bytes - self.loaded_bytes
        print(json.dumps(asdict(measurement)), flush=True)
