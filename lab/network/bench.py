"""Compare Dray with its rivals over networks: its `auto` compression, its fixed compressions, Arrow
Flight and netcat. See README.md for the method.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from pathlib import Path

from lab import RESULTS
from lab.common import congestion, machine, race
from lab.common.contender import Setting
from lab.common.process import Failure
from lab.common.program import command_line
from lab.common.row import Row
from lab.common.testbed import LinkTestbed, Testbed
from lab.network import report, scenario
from lab.network.networks import DATA, NETWORKS, Network, table
from lab.network.report import Race

OUTPUT = RESULTS / "network"


def options() -> argparse.Namespace:
    parser = race.options("Compare Dray with its rivals over networks. Needs root.")
    networks, scenarios = [network.name for network in NETWORKS], list(scenario.SCENARIOS)
    parser.set_defaults(timeout=90.0)
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument(
        "--rows",
        type=int,
        default=500_000,
        help="rows of ontime and of pums (default: %(default)s)",
    )
    parser.add_argument(
        "--links", default=",".join(networks), help="networks (default: %(default)s)"
    )
    parser.add_argument("--data", default=",".join(DATA), help="tables (default: %(default)s)")
    parser.add_argument(
        "--only",
        default="*",
        help="patterns of contenders, like 'dray-*,flight-zstd' (default: all)",
    )
    parser.add_argument(
        "--scenarios", default=",".join(scenarios), help="scenarios, or none (default: %(default)s)"
    )
    parser.add_argument(
        "--share",
        type=float,
        help="fraction of the rows on all networks, instead of each network's own",
    )
    parser.add_argument("--no-check", action="store_true", help="do not measure the links first")
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        help="path of the results without suffix (default: %(default)s)",
    )
    parser.add_argument(
        "--congestion",
        default=",".join(congestion.default_pair()),
        help="congestion controls of the rivals (default: %(default)s)",
    )
    given = parser.parse_args()
    for option, known in (
        ("links", networks),
        ("data", list(DATA)),
        ("scenarios", scenarios),
        ("congestion", congestion.available()),
    ):
        names = [name for name in getattr(given, option).split(",") if name not in ("", "none")]
        if strange := [name for name in names if name not in known]:
            parser.error(f"--{option} {strange[0]}: expected some of {', '.join(known)}")
        setattr(given, option, names)
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    return given


def run(network: Network, given: argparse.Namespace, races: list[Race]) -> None:
    """Race on all tables over one network, and write the results after each race."""
    with network.testbed() as testbed:
        checked = "" if given.no_check else check(testbed)
        for name in given.data:
            data = table(name, given.scale_factor, given.rows, given.share or network.share)
            with tempfile.TemporaryDirectory(prefix="dray-lab-") as folder:
                setting = Setting(
                    data, given.dray, Path(folder), given.timeout, testbed, network.fetches
                )
                rows = [
                    row
                    for row in network.rows(setting, given.congestion)
                    if is_chosen(row, given.only)
                ]
                print(f"{network.title}: {data.title}", file=sys.stderr)
                race.measure_and_stop(rows, given.rounds)
            races.append(Race(network, data, rows, checked))
            write(given, races, [])


def check(testbed: Testbed) -> str:
    """Measure the link, and return the result as a sentence. A deviation is reported, but is no
    failure, because the rate of a veth link depends on the machine.
    """
    if not isinstance(testbed, LinkTestbed):
        return ""
    return f"Link before the race: {'; '.join(str(testbed.link.measure()).splitlines())}."


def is_chosen(row: Row, only: str) -> bool:
    return any(fnmatch.fnmatch(row.contender.name, pattern) for pattern in only.split(","))


def write(given: argparse.Namespace, races: list[Race], scenarios: list[dict]) -> str:
    """Write JSON and Markdown, and return the Markdown."""
    given.output.parent.mkdir(parents=True, exist_ok=True)
    markdown = report.as_markdown(given.machine, races, scenarios)
    content = report.as_json(given.machine, races, scenarios)
    Path(f"{given.output}.json").write_text(json.dumps(content, indent=1) + "\n")
    Path(f"{given.output}.md").write_text(markdown)
    return markdown


def main() -> int:
    given = options()
    given.machine = machine.description(given.dray)
    given.machine["command"] = command_line()
    races: list[Race] = []
    results: list[dict] = []
    failed = False
    race.stop_on_signal()
    with congestion.restored():
        for network in NETWORKS:
            if network.name in given.links:
                try:
                    run(network, given, races)
                except Failure as failure:
                    print(f"{network.title}: {failure}", file=sys.stderr)
                    failed = True
        for name in given.scenarios:
            try:
                results.append(scenario.SCENARIOS[name](given))
            except Failure as failure:
                print(f"{name}: {failure}", file=sys.stderr)
                results.append({"title": name, "lines": [f"Not measured: {failure}"]})
                failed = True
            write(given, races, results)
    print(write(given, races, results))
    return 1 if failed or any(row.failure for race in races for row in race.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
