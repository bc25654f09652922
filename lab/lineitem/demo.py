"""A demonstration: lineitem from `dray serve` into Arrow over both transports, beside Arrow Flight.

It uses the machine's congestion control and changes no settings.
"""

from __future__ import annotations

import statistics
import sys

from lab.common import congestion, race
from lab.common.arrow_flight import FlightContender, FlightServer
from lab.common.contender import Setting
from lab.common.dray_contender import DrayContender, DrayServer
from lab.common.process import Failure
from lab.common.row import Row
from lab.common.tables import MIB, client_peak, number, peak, server_peak, table
from lab.data.lineitem import Lineitem

HEADINGS = [
    "",
    "congestion",
    "rows",
    "seconds",
    "rows/s",
    "GB/s",
    "wire MB",
    "client MiB",
    "server MiB",
]
ROUNDS = 3


def entries(setting: Setting) -> list[Row]:
    dray = DrayServer(setting)
    contenders = [
        DrayContender(dray, over_tcp=False),
        DrayContender(dray, over_tcp=True),
        FlightContender(FlightServer(setting)),
    ]
    return race.over(contenders, [congestion.current()])


def cells(row: Row, lineitem: Lineitem) -> list[str]:
    """The cells of one row, in the order of HEADINGS."""
    seconds = statistics.median(row.totals())
    return [
        row.contender.label,
        row.congestion,
        f"{lineitem.rows:,}",
        f"{seconds:.3f}",
        f"{lineitem.rows / seconds:,.0f}",
        number(lineitem.arrow_bytes() / seconds, 1e-9, 2),
        number(row.wire_bytes(), 1e-6, 0),
        number(peak(row, client_peak), 1 / MIB, 0),
        number(peak(row, server_peak), 1 / MIB, 0),
    ]


def main() -> int:
    given = race.options("Fetch lineitem into Arrow from Dray and from Arrow Flight.").parse_args()
    try:
        rows = race.run(given, ROUNDS, entries)
    except Failure as failure:
        return race.fail(failure)
    lineitem = Lineitem.of(given.scale_factor)
    print(
        f"\nTPC-H lineitem, scale factor {given.scale_factor:g}, from a server's memory into a "
        f"pyarrow Table.\nMedians of {ROUNDS} client processes, each the median of its fetches "
        "after the first.\nMemory is the peak of each process.\n"
    )
    print("\n".join(table([HEADINGS, *(cells(row, lineitem) for row in rows if row.runs)])))
    for row in rows:
        if row.failure:
            print(f"{row.title}: {row.failure}")
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
