"""Compare Dray with its rivals: lineitem from a server's memory into a pyarrow Table of another
process. See README.md for the method.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from lab import RESULTS
from lab.common import congestion, machine, plot, race
from lab.common.arrow_flight import FlightContender, FlightServer
from lab.common.contender import Contender, Setting
from lab.common.dray_contender import DrayContender, DrayLatency, DrayMemory, DrayServer
from lab.common.netcat import NetcatContender, NetcatServer
from lab.common.process import Failure
from lab.common.program import command_line
from lab.common.row import Row
from lab.data.lineitem import Lineitem
from lab.lineitem import report
from lab.lineitem.quack import QuackContender, QuackServer


def contenders(setting: Setting) -> list[Contender]:
    """All contenders, in the order of the report."""
    dray, flight = DrayServer(setting), FlightServer(setting)
    return [
        DrayContender(dray, over_tcp=False),
        DrayContender(dray, over_tcp=True),
        FlightContender(flight, over_tcp=False),
        FlightContender(flight),
        FlightContender(flight, compression="lz4"),
        FlightContender(flight, compression="zstd"),
        QuackContender(QuackServer(setting)),
        NetcatContender(NetcatServer(setting)),
        DrayContender(dray, over_tcp=False, stream=True),
        DrayContender(dray, over_tcp=True, stream=True),
        DrayLatency(dray),
        DrayMemory(dray),
    ]


def options() -> argparse.Namespace:
    parser = race.options("Compare Dray with Arrow Flight, Quack and netcat on this machine.")
    parser.add_argument(
        "--rounds", type=int, default=5, help="measured rounds after the warm-up (default: 5)"
    )
    parser.add_argument(
        "--only", default="", help="names of contenders, separated by commas (default: all)"
    )
    parser.add_argument(
        "--congestion",
        default=",".join(congestion.default_pair()),
        help="congestion controls over TCP, separated by commas (default: %(default)s)",
    )
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    for name in given.congestion.split(","):
        if name not in congestion.available():
            parser.error(
                f"--congestion {name}: the kernel offers {', '.join(congestion.available())}"
            )
    return given


def chosen(candidates: list[Contender], only: str) -> list[Contender]:
    """The contenders named by `--only`, or all of them."""
    names = [contender.name for contender in candidates]
    for name in only.split(",") if only else []:
        if name not in names:
            raise Failure(f"--only {name}: expected some of {', '.join(names)}")
    return [contender for contender in candidates if not only or contender.name in only.split(",")]


def write(path: Path, lineitem: Lineitem, described: dict[str, object], rows: list[Row]) -> str:
    """Write JSON, Markdown and a plot, and return the Markdown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    markdown = report.as_markdown(lineitem, described, rows)
    Path(f"{path}.json").write_text(
        json.dumps(report.as_json(lineitem, described, rows), indent=2) + "\n"
    )
    Path(f"{path}.md").write_text(markdown)
    title = (
        f"TPC-H lineitem SF{lineitem.scale_factor:g}, {lineitem.rows:,} rows, into another process"
    )
    plot.draw(Path(f"{path}.png"), title, described, rows)
    return markdown


def main() -> int:
    given = options()
    described = machine.description(given.dray)
    described["command"] = command_line()
    controls = given.congestion.split(",")
    try:
        rows = race.run(
            given,
            given.rounds,
            lambda setting: race.over(chosen(contenders(setting), given.only), controls),
        )
    except Failure as failure:
        return race.fail(failure)
    print(
        write(
            RESULTS / f"lineitem-sf{given.scale_factor:g}",
            Lineitem.of(given.scale_factor),
            described,
            rows,
        )
    )
    return 1 if any(row.failure for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
