"""Traces of received rows over time, and a sampler of other values."""

from __future__ import annotations

import bisect
import statistics
import threading
import time
from collections.abc import Callable
from types import TracebackType

#: Pairs of a time in seconds and the number of rows received by then.
Trace = list[tuple[float, int]]
#: Length of the window over which a rate is measured, and distance between windows.
WINDOW_S, STEP_S = 1.0, 0.1
#: A rate has settled when SHARE of the remaining windows are within NEAR of the median of the later
#: half.
NEAR, SHARE = 0.25, 0.9


def rows_at(trace: Trace, at_s: float) -> float:
    """Rows received by `at_s`, interpolated linearly."""
    after = bisect.bisect_right(trace, at_s, key=lambda seen: seen[0])
    earlier = trace[after - 1] if after else (0.0, 0)
    if after == len(trace):
        return earlier[1]
    later = trace[after]
    return earlier[1] + (later[1] - earlier[1]) * (at_s - earlier[0]) / max(
        later[0] - earlier[0], 1e-9
    )


def between(trace: Trace, from_s: float, to_s: float) -> float:
    """Rows per second in an interval."""
    return (rows_at(trace, to_s) - rows_at(trace, from_s)) / max(to_s - from_s, 1e-9)


def settled_s(trace: Trace, from_s: float, to_s: float) -> float | None:
    """Seconds from the start of an interval until the rate has settled; None if it does not."""
    count = int((to_s - from_s - WINDOW_S) / STEP_S) + 1
    if count < 3:
        return None
    begins = [from_s + STEP_S * number for number in range(count)]
    rates = [between(trace, begin, begin + WINDOW_S) for begin in begins]
    at_last = statistics.median(rates[len(rates) // 2 :])
    near = [abs(rate - at_last) <= NEAR * at_last for rate in rates]
    settled = (i for i in range(count) if near[i] and sum(near[i:]) >= SHARE * (count - i))
    return next((begins[i] - from_s for i in settled), None)


def reached_s(trace: Trace, from_s: float, to_s: float, rate: float) -> float | None:
    """Seconds from the start of an interval until the rate, over a quarter of a window, reaches
    `rate`; None if it does not.
    """
    look_s = WINDOW_S / 4
    begin = from_s
    while begin + look_s <= to_s:
        if between(trace, begin, begin + look_s) >= rate:
            return begin - from_s
        begin += STEP_S / 2
    return None


class Sampler(threading.Thread):
    """Samples a value periodically, with the time of each sample."""

    def __init__(self, ask: Callable[[], int | None], every_s: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.ask = ask
        self.every_s = every_s
        self.samples: list[tuple[float, int]] = []
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(self.every_s):
            if (value := self.ask()) is not None:
                self.samples.append((time.monotonic(), value))

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.done.set()
        self.join()
