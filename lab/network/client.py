"""The client of a scenario. It prints `ready`, waits for a line, and prints its result as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time

import dray

from lab.common.program import program_name


def begin() -> None:
    """Print that the connection is open, and wait for a line on standard input."""
    print("ready", flush=True)
    sys.stdin.readline()


def trace(given: argparse.Namespace) -> dict[str, object]:
    """Read a result batch by batch, and trace the number of rows over time.

    After `--sleep-after-rows` rows, the reader sleeps for `--sleep` seconds.
    """
    with dray.connect(given.uri) as connection:
        begin()
        start = time.monotonic()
        seen: list[tuple[float, int]] = []

        def note(progress: dray.Progress) -> None:
            # About twenty times a second. Batches are too large for a trace.
            seen.append((round(time.monotonic() - start, 4), progress.rows))

        result = connection.query(given.sql, compression=given.compression, progress=note)
        rows = 0
        slept: tuple[float, float] | None = None
        for batch in result.batches():
            rows += batch.num_rows
            del batch
            if given.sleep and slept is None and rows >= given.sleep_after_rows:
                before = time.monotonic()
                time.sleep(given.sleep)
                slept = before, time.monotonic()
        total_s = time.monotonic() - start
        stats = dataclasses.asdict(result.stats)
    return {
        "start": start,
        "total_s": total_s,
        "rows": rows,
        "trace": seen,
        "slept": slept,
        "stats": stats,
    }


def small(given: argparse.Namespace) -> dict[str, object]:
    """Run a small statement repeatedly with each compression in turn, on an open connection each.

    Returns the milliseconds of each run.
    """
    names = given.compression.split(",")
    connections = {name: dray.connect(given.uri) for name in names}
    begin()
    took_ms: dict[str, list[float]] = {name: [] for name in names}
    rows: set[int] = set()
    for _ in range(given.times):
        for name, connection in connections.items():
            start = time.perf_counter()
            rows.add(sum(1 for _row in connection.query(given.sql, compression=name)))
            took_ms[name].append((time.perf_counter() - start) * 1000)
    return {"took_ms": took_ms, "rows": sorted(rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("what", choices=["trace", "small"])
    parser.add_argument("uri")
    parser.add_argument("--sql", required=True)
    parser.add_argument("--compression", default="auto")
    parser.add_argument("--sleep", type=float, default=0.0)
    parser.add_argument("--sleep-after-rows", type=int, default=0)
    parser.add_argument("--times", type=int, default=500)
    given = parser.parse_args()
    result = trace(given) if given.what == "trace" else small(given)
    print(json.dumps(result), flush=True)
