"""What a hundred executors could read in a second: a calculation, not a measurement.

    python -m lab.scale.reach

The least of four bounds holds: the processors of the servers, their networks, the networks of the
executors, and what executors decode. The constants were measured on two processors (their reports
are named beside them), so that client and server shared these. All rates are of lineitem as Arrow.
What the table can't know is what disks do, and that processors of a host share its memory.
"""

from __future__ import annotations

from typing import NamedTuple

ARROW_GB = 1.01
ROWS = 6.0e6
COLUMNS = 16
#: Seconds for lineitem over one connection: lab/reports/2026-11-postgresql.md.
STOCK_S = 7.47
EXTENSION_S = 1.48
#: The same from the memory of `dray serve` over 10 Gbit/s with `light`, the link being the bound:
#: lab/reports/2026-11-networks.md.
SERVE_S = 0.34
#: As CSV at scale factor 0.3, and its rows: lab/reports/2026-11-24-partitions.md.
CSV_GB, CSV_ROWS = 0.230, 1.8e6

EXECUTORS = 100
#: Processors of a server.
PROCESSORS = 32
GBIT = 1 / 8


def wire_of_rows() -> float:
    """Bytes on the wire for a byte of Arrow, as PostgreSQL's rows: text without commas, four bytes
    a value and seven a row.
    """
    text = CSV_GB * 1e9 / CSV_ROWS - COLUMNS
    return (text + 4 * COLUMNS + 7) * ROWS / (ARROW_GB * 1e9)


#: The same for chunks with `light`; it is less if the link was not the bound.
WIRE_OF_CHUNKS = SERVE_S * 10 * GBIT / ARROW_GB


class Source(NamedTuple):
    name: str
    #: Hosts that take part.
    servers: int
    #: GB/s of Arrow for each of their processors.
    processor: float
    wire: float


SOURCES = [
    Source("one PostgreSQL, stock", 1, ARROW_GB / STOCK_S, wire_of_rows()),
    Source("one PostgreSQL with the extension", 1, ARROW_GB / EXTENSION_S, WIRE_OF_CHUNKS),
    Source("three replicas with it, a plan each", 3, ARROW_GB / EXTENSION_S, WIRE_OF_CHUNKS),
    Source("one `dray serve`, in memory", 1, ARROW_GB / SERVE_S, WIRE_OF_CHUNKS),
    Source("ten `dray serve`, a plan each", 10, ARROW_GB / SERVE_S, WIRE_OF_CHUNKS),
    Source("a hundred `dray serve`, a plan each", 100, ARROW_GB / SERVE_S, WIRE_OF_CHUNKS),
]


def reach(source: Source, gbit: float) -> tuple[float, str]:
    """GB/s of Arrow for all executors, and which bound it is."""
    return min(
        (source.servers * PROCESSORS * source.processor, "the servers' processors"),
        (source.servers * gbit * GBIT / source.wire, "the servers' networks"),
        (EXECUTORS * gbit * GBIT / source.wire, "the executors' networks"),
        # A client decodes at least as fast as it has received then.
        (EXECUTORS * ARROW_GB / SERVE_S, "one processor of each executor"),
    )


def main() -> None:
    print(f"{EXECUTORS} executors, {PROCESSORS} processors in each server; GB/s of Arrow:\n")
    print("| source | all hosts have 10 Gbit/s | 100 Gbit/s |")
    print("|---|---|---|")
    for source in SOURCES:
        cells = [f"{rate:,.1f}: {bound}" for rate, bound in (reach(source, g) for g in (10, 100))]
        print(f"| {source.name} | {' | '.join(cells)} |")
    print(
        f"\nBytes on the wire for one of Arrow: {wire_of_rows():.2f} as rows of PostgreSQL, ",
        end="",
    )
    print(f"{WIRE_OF_CHUNKS:.2f} as chunks with `light`.")


if __name__ == "__main__":
    main()
