"""Fetch whole tables from many systems, each by its own clients, over the networks of a paper, and
put its figures beside them. Needs root. See README.md for the method.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from lab import RESULTS
from lab.common import congestion, machine, race
from lab.common.contender import Setting
from lab.common.dray_contender import DrayContender
from lab.common.process import Failure
from lab.common.program import command_line
from lab.common.row import Row
from lab.common.testbed import LinkTestbed, Testbed
from lab.data.lineitem import Lineitem
from lab.data.sample import Sample
from lab.data.table import Table
from lab.systems import report, results
from lab.systems.catalog import SYSTEMS
from lab.systems.encoded import dbms_x_bytes
from lab.systems.networks import FIGURES, NETWORKS, Network
from lab.systems.system import Entry, System

OUTPUT = RESULTS / "systems"
#: The table of figures 3 and 4: about a million rows of lineitem, unless the scale factor is less.
MILLION = "million"
MILLION_SCALE_FACTOR = 0.167
#: A client that takes longer runs in one round only.
LONG_S = 10.0
TABLES = ("lineitem", "pums", "ontime", MILLION)
#: Bytes on disk for lineitem at scale factor 1: CSV and Parquet, and in a temporary folder the copy
#: of a server at a time, with its log or the file that it is filled from.
FILES_BYTES, SERVER_BYTES = 1_000_000_000, 2_000_000_000


def options() -> argparse.Namespace:
    parser = race.options("Compare the client protocols of many systems. Needs root.")
    names = ",".join(system.name for system in SYSTEMS)
    # The paper's hour at scale factor 10.
    parser.set_defaults(timeout=360.0)
    parser.add_argument("--systems", default=names, help="systems (default: %(default)s)")
    parser.add_argument(
        "--tables",
        default=",".join(TABLES),
        help=f"tables; {MILLION} is that of figures 3 and 4 (default: %(default)s)",
    )
    parser.add_argument(
        "--networks", default=",".join(NETWORKS), help="networks (default: %(default)s)"
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        help="rows of pums and ontime (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument(
        "--congestion",
        default=congestion.current(),
        help="congestion control of all but Dray, which has its own (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="measure each link first")
    parser.add_argument(
        "--add",
        action="store_true",
        help="keep what an earlier run measured of other systems, tables and networks",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        help="path of the results without suffix (default: %(default)s)",
    )
    given = parser.parse_args()
    for option, known in (
        ("systems", [system.name for system in SYSTEMS]),
        ("tables", TABLES),
        ("networks", NETWORKS),
        ("congestion", congestion.available()),
    ):
        chosen = [name for name in getattr(given, option).split(",") if name]
        if strange := [name for name in chosen if name not in known]:
            parser.error(f"--{option} {strange[0]}: expected some of {', '.join(known)}")
        setattr(given, option, chosen)
    if given.rounds < 1 or given.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    return given


def check_space(given: argparse.Namespace) -> None:
    """Check that the disks have space for lineitem.

    Raises
    ------
    Failure
        If one of them has not.
    """
    if "lineitem" not in given.tables:
        return
    files = Lineitem.of(given.scale_factor).folder
    exist = all((files / f"lineitem.{form}").exists() for form in ("csv", "parquet"))
    sizes = {files: 0 if exist else FILES_BYTES, Path(tempfile.gettempdir()): SERVER_BYTES}
    disks: dict[int, tuple[Path, float]] = {}
    for folder, size in sizes.items():
        there = next(path for path in (folder, *folder.parents) if path.exists())
        _, others = disks.get(there.stat().st_dev, (there, 0.0))
        disks[there.stat().st_dev] = there, others + size * given.scale_factor
    for there, needed in disks.values():
        free = shutil.disk_usage(there).free
        if free < needed:
            raise Failure(
                f"lineitem at scale factor {given.scale_factor:g} needs about {needed / 1e9:,.1f} "
                f"GB in {there}, which has {free / 1e9:,.1f} GB free: choose a smaller "
                "--scale-factor, or other folders by XDG_CACHE_HOME and TMPDIR"
            )


def table_of(name: str, given: argparse.Namespace) -> Table:
    if name == MILLION:
        return Lineitem.of(min(MILLION_SCALE_FACTOR, given.scale_factor))
    return Lineitem.of(given.scale_factor) if name == "lineitem" else Sample(name, given.rows)


def networks_of(table: str, given: argparse.Namespace) -> list[Network]:
    return list(FIGURES) if table == MILLION else [NETWORKS[name] for name in given.networks]


def fetch(system: System, name: str, given: argparse.Namespace, found: dict, machine: int) -> None:
    """Measure a system with one table over all networks. It keeps its data between them."""
    networks = networks_of(name, given)
    table = table_of(name, given)
    with tempfile.TemporaryDirectory(prefix="dray-lab-") as folder:
        failures: dict[str, str] = {}
        unlinked = Setting(table, given.dray, Path(folder), given.timeout, fetches=1)
        for network in networks:
            print(f"# {system.title}, {name}, {network.title}", file=sys.stderr, flush=True)
            with network.testbed() as testbed:
                checked = check(testbed) if given.check else ""
                setting = replace(unlinked, testbed=testbed)
                try:
                    entries = system.entries(setting)
                except Failure as failure:
                    found["absent"].append((f"{system.title}, {name}", str(failure)))
                    return
                entries = [entry for entry in entries if entry.runs_over(network)]
                rows = race_of(system, entries, given, failures)
            found["races"].append(
                {
                    "system": system.name,
                    "system_title": system.title,
                    "table": name,
                    "table_title": table.title,
                    "rows": table.rows,
                    "csv_bytes": table.csv().stat().st_size,
                    "network": network.name,
                    "network_title": network.title,
                    "figure": network.figure,
                    "x": network.x,
                    "link": checked,
                    "rounds": given.rounds,
                    "timeout_s": given.timeout,
                    "ended": now(),
                    "machine": machine,
                    "load_average": os.getloadavg()[0],
                    "clients": [as_json(e, r) for e, r in zip(entries, rows, strict=True)],
                }
            )
            write(given, found)


def race_of(
    system: System, entries: list[Entry], given: argparse.Namespace, failures: dict[str, str]
) -> list[Row]:
    """Measure clients over one network. `failures` has servers that could not be filled."""
    (control,) = given.congestion
    rows = []
    for entry in entries:
        contender = entry.contender
        # The server is warm already, and each client is a process of its own.
        contender.warms_up = False
        own = isinstance(contender, DrayContender)
        rows.append(Row(contender, None if own or not contender.over_tcp else control))
    try:
        prepare(system, rows, failures)
        race.measure(rows, given.rounds, LONG_S)
    finally:
        for row in rows:
            row.contender.stop()
    return rows


def prepare(system: System, rows: list[Row], failures: dict[str, str]) -> None:
    """Start and fill the servers. The first client of each fetches once where the server is, so
    that later ones find the table in memory.
    """
    warm: set[str] = set()
    for row in rows:
        contender = row.contender
        server = contender.server
        if server.name not in failures and server.name not in warm and system.can_warm:
            try:
                contender.start_server()
                command = [*server.setting.testbed.far, *contender.client_command()]
                # If it fails, so does the one that is measured, and tells why.
                subprocess.run(command, capture_output=True, timeout=server.setting.timeout_s)
                warm.add(server.name)
            except subprocess.TimeoutExpired:
                warm.add(server.name)
            except Failure as failure:
                if server.process is None:
                    failures[server.name] = str(failure)
        if server.name in failures:
            row.failure = failures[server.name]


def check(testbed: Testbed) -> str:
    """Measure the link, and return the result as a sentence."""
    if not isinstance(testbed, LinkTestbed):
        return ""
    return "; ".join(str(testbed.link.measure()).splitlines())


def as_json(entry: Entry, row: Row) -> dict:
    contender = entry.contender
    return {
        "name": contender.name,
        "label": contender.label,
        "paper": entry.paper,
        "in_figures": entry.in_figures,
        "note": entry.note,
        "into_table": contender.into_table,
        "congestion": row.congestion,
        "failure": row.failure,
        "timed_out": row.timed_out,
        "carried_bytes": min(
            (run.carried_bytes for run in row.runs if run.carried_bytes is not None), default=None
        ),
        "runs": [asdict(run) for run in row.runs],
    }


def write(given: argparse.Namespace, found: dict) -> None:
    """Write the results, and the reports of them."""
    given.output.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{given.output}.json").write_text(json.dumps(found, indent=1) + "\n")
    report.write(given.output, found)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def begin(given: argparse.Namespace, chosen: list[System]) -> dict:
    """Results without those that this run measures, and with `--add` what earlier ones measured.

    Raises
    ------
    Failure
        If an earlier run measured a table of another size.
    """
    found: dict = dict(machines=[], commands=[], systems={}, absent=[], encoded={}, races=[])
    path = Path(f"{given.output}.json")
    if given.add and path.exists():
        found = results.load(path)
        again = {
            (system.name, table, network.name)
            for system in chosen
            for table in given.tables
            for network in networks_of(table, given)
        }
        found["races"] = [
            one
            for one in found["races"]
            if (one["system"], one["table"], one["network"]) not in again
        ]
        begun = [f"{system.title}, {table}" for system in chosen for table in given.tables]
        found["absent"] = [one for one in found["absent"] if one[0] not in begun]
        for one in found["races"]:
            name = one["table"]
            if name in given.tables and one["table_title"] != table_of(name, given).title:
                raise Failure(
                    f"{path} has {one['table_title']}, and this run "
                    f"{table_of(name, given).title}: choose another --output"
                )
    found["commands"].append(command_line())
    for system in SYSTEMS:
        known = found["systems"].pop(system.name, None)
        if system in chosen:
            known = {"title": system.title, "versions": system.versions()}
        if known is not None:
            found["systems"][system.name] = known
    return found


def description(dray: Path) -> dict:
    """The machine, with the versions that all systems share."""
    described = results.described(machine.description(dray))
    for name in ("matplotlib", "duckdb-extension-quack", "netcat"):
        described["versions"].pop(name, None)
    return described


def main() -> int:
    given = options()
    race.stop_on_signal()
    chosen = [system for system in SYSTEMS if system.name in given.systems]
    try:
        check_space(given)
        found = begin(given, chosen)
        here = results.place_of(found, description(given.dray))
        for name in given.tables:
            if name != MILLION:
                found["encoded"][name] = dbms_x_bytes(table_of(name, given).parquet())
            for system in chosen:
                fetch(system, name, given, found, here)
    except Failure as failure:
        return race.fail(failure)
    print(f"{given.output}.html, {given.output}-tables.md")
    failed = [c for one in found["races"] for c in one["clients"] if c["failure"]]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
