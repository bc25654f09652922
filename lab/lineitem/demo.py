"""A first look: lineitem from `dray serve` into Arrow over both transports, beside Arrow Flight in
the same run.

It changes nothing on the machine: the rows over TCP use the congestion control that is set.
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
    """The figures of one row, in the order of HEADINGS."""
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
    given = race.options(
        "Fetch lineitem from Dray, and from Arrow Flight, into Arrow."
    ).parse_args()
    try:
        rows = race.run(given, ROUNDS, entries)
    except Failure as failure:
        return race.fail(failure)
    lineitem = Lineitem.of(given.scale_factor)
    print(
        f"\nTPC-H lineitem, scale factor {given.scale_factor:g}, from a server's memory into a pyarrow Table;"
    )
    print(
        f"medians of {ROUNDS} client processes, each of them the median of its fetches but the first;"
    )
    print("memory is the peak of each process.\n")
    print("\n".join(table([HEADINGS, *(cells(row, lineitem) for row in rows if row.runs)])))
    for row in rows:
        if row.failure:
            print(f"{row.title}: {row.failure}")
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
