"""What a hundred executors take for a terabyte: a simulation of the tasks of one Spark stage.

    python -m lab.scale.waves

Executors of one core take parts in turn. A part first waits, then its bytes flow, at the least rate
of what it shares with the other parts that flow: its server's processors and network, and the store
behind the servers. No part is faster than one processor of its server, its executor's network, and
what an executor decodes. The constants are those of `reach.py`, and were measured on two
processors. What stores reach is an assumption, and so is that files are read as fast as memory.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from lab.scale.reach import (
    ARROW_GB,
    EXECUTORS,
    EXTENSION_S,
    GBIT,
    PROCESSORS,
    SERVE_S,
    STOCK_S,
    WIRE_OF_CHUNKS,
    wire_of_rows,
)

TABLE_GB = 1000.0
#: From asking for a part until its first bytes: docs/scale.md.
FILES_PART_S = 0.15
POSTGRES_PART_S = 0.01
#: Parts of row groups or ranges of blocks are not of one size.
SPREAD = 0.2
#: A byte in the store's Parquet files for one of Arrow: lineitem, as its generator writes it.
STORED = 0.23
NETWORKS = (10, 100)
PARTS = (100, 1_000, 16_000)


class Servers(NamedTuple):
    name: str
    count: int
    #: GB/s of Arrow for each of their processors.
    processor: float
    #: Bytes on the wire for one of Arrow.
    wire: float
    #: Seconds until a part's first bytes.
    part_s: float
    #: GB/s of the store behind all of them, in its own bytes.
    store: float | None = None


FILES = (ARROW_GB / SERVE_S, WIRE_OF_CHUNKS, FILES_PART_S)
SOURCES = [
    Servers("one PostgreSQL, stock", 1, ARROW_GB / STOCK_S, wire_of_rows(), POSTGRES_PART_S),
    Servers(
        "one PostgreSQL with the extension",
        1,
        ARROW_GB / EXTENSION_S,
        WIRE_OF_CHUNKS,
        POSTGRES_PART_S,
    ),
    Servers("three replicas with it", 3, ARROW_GB / EXTENSION_S, WIRE_OF_CHUNKS, POSTGRES_PART_S),
    Servers("ten `dray serve`, a store of 10 GB/s", 10, *FILES, 10.0),
    Servers("a hundred `dray serve`, a store of 10 GB/s", 100, *FILES, 10.0),
    Servers("a hundred `dray serve`, a store of 100 GB/s", 100, *FILES, 100.0),
]


class Flow(NamedTuple):
    """A part that is being read."""

    server: int
    #: GB of Arrow still to come.
    left: float


def alone(servers: Servers, gbit: float) -> float:
    """GB/s of Arrow of a part that shares nothing."""
    return min(servers.processor, gbit * GBIT / servers.wire, ARROW_GB / SERVE_S)


def rates(servers: Servers, gbit: float, flows: list[Flow]) -> list[float]:
    """GB/s of Arrow of each part that flows."""
    at = [0] * servers.count
    for flow in flows:
        at[flow.server] += 1
    most = alone(servers, gbit)
    host = min(PROCESSORS * servers.processor, gbit * GBIT / servers.wire)
    found = [min(most, host / at[flow.server]) for flow in flows]
    if servers.store is not None:
        # The store gives all the same share of what they ask for.
        scale = min(1.0, servers.store / STORED / sum(found)) if found else 1.0
        found = [rate * scale for rate in found]
    return found


def simulate(servers: Servers, gbit: float, parts: int, seed: int = 0) -> float:
    """Seconds until the last part has been read."""
    drawn = random.Random(seed)
    sizes = [drawn.uniform(1 - SPREAD, 1 + SPREAD) for _ in range(parts)]
    scale = TABLE_GB / sum(sizes)
    queue = [Flow(i % servers.count, sizes[i] * scale) for i in range(parts)]
    queue.reverse()
    now = 0.0
    waiting: list[tuple[float, Flow]] = []
    flows: list[Flow] = []
    while queue or waiting or flows:
        while queue and len(waiting) + len(flows) < EXECUTORS:
            waiting.append((now + servers.part_s, queue.pop()))
        speed = rates(servers, gbit, flows)
        ends = [flow.left / rate for flow, rate in zip(flows, speed, strict=True)]
        # Those that wait are in the order in which they began.
        step = min([*ends, *([waiting[0][0] - now] if waiting else [])])
        now += step
        flows = [
            Flow(flow.server, flow.left - rate * step)
            for flow, rate, end in zip(flows, speed, ends, strict=True)
            if end > step
        ]
        while waiting and waiting[0][0] <= now:
            flows.append(waiting.pop(0)[1])
    return now


def main() -> None:
    print(f"Seconds for {TABLE_GB:,.0f} GB of Arrow by {EXECUTORS} executors:\n")
    heads = [f"{gbit} Gbit/s, {parts:,} parts" for gbit in NETWORKS for parts in PARTS]
    print(f"| source | {' | '.join(heads)} |")
    print("|---|" + "---:|" * len(heads))
    for servers in SOURCES:
        cells = [f"{simulate(servers, gbit, parts):,.0f}" for gbit in NETWORKS for parts in PARTS]
        print(f"| {servers.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
