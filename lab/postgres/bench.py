"""Compare Dray with other clients of PostgreSQL: whole tables over loopback TCP, into Arrow tables,
rows and DataFrames.

It starts and loads a PostgreSQL server. See README.md for the method.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from lab import RESULTS
from lab.common import congestion, machine, plot, race
from lab.common.contender import Setting
from lab.common.process import Failure
from lab.common.program import command_line
from lab.common.row import Row
from lab.postgres import report
from lab.postgres.contender import PostgresContender, contenders, tiny_contenders
from lab.postgres.data import DataSet, data_sets
from lab.postgres.report import Section
from lab.postgres.server import PostgresServer, run

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PACKAGES = (
    "duckdb-extension-postgres-scanner",
    "connectorx",
    "adbc-driver-postgresql",
    "arrow-odbc",
    "psycopg",
    "psycopg-binary",
    "psycopg2-binary",
    "pyodbc",
    "sqlalchemy",
    "pandas",
)
#: Rows of each table but lineitem, whose size is the scale factor's.
ROWS = 1_000_000
TINY_TABLE = "lineitem"


def options() -> argparse.Namespace:
    parser = race.options("Compare Dray with other clients of PostgreSQL on this machine.")
    parser.set_defaults(timeout=900.0)
    parser.add_argument(
        "--rounds", type=int, default=5, help="measured rounds after the warm-up (default: 5)"
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=ROWS,
        help="rows of each table but lineitem (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        default="",
        help="patterns of contenders, separated by commas, like 'dray-*' (default: all)",
    )
    parser.add_argument(
        "--tables",
        default="",
        help="tables, separated by commas, and tiny for tiny queries (default: all)",
    )
    parser.add_argument(
        "--postgres",
        type=Path,
        default=PROGRAMS,
        help="folder of the server's programs (default: %(default)s)",
    )
    parser.add_argument(
        "--congestion",
        default=congestion.current(),
        help="congestion control (default: %(default)s)",
    )
    parser.add_argument(
        "--output", default="", help="name of the results in results/ (default: postgres-sfN)"
    )
    given = parser.parse_args()
    if given.rounds < 1 or given.rows < 1:
        parser.error("--rounds and --rows must be at least 1")
    if given.congestion not in congestion.available():
        offered = ", ".join(congestion.available())
        parser.error(f"--congestion {given.congestion}: the kernel offers {offered}")
    return given


def chosen_tables(setting: Setting, given: argparse.Namespace) -> list[DataSet]:
    """The tables named by `--tables`, or all. Tiny queries need lineitem."""
    known = data_sets(setting.table, given.rows)
    names = set(given.tables.split(",")) if given.tables else {data_set.name for data_set in known}
    for name in names - {"tiny"} - {data_set.name for data_set in known}:
        raise Failure(
            f"--tables {name}: expected some of "
            f"{', '.join(data_set.name for data_set in known)}, tiny"
        )
    if "tiny" in names:
        names.add(TINY_TABLE)
    return [data_set for data_set in known if data_set.name in names]


def rows_of(candidates: list[PostgresContender], given: argparse.Namespace) -> list[Row]:
    patterns = given.only.split(",") if given.only else ["*"]
    return [
        Row(contender, given.congestion)
        for contender in candidates
        if any(Path(contender.name).match(pattern) for pattern in patterns)
    ]


def compare(given: argparse.Namespace, described: dict[str, object]) -> list[Row]:
    """Measure table after table. All of them take hours, so results are written after each."""
    chosen = given.tables.split(",") if given.tables else []
    sections: list[Section] = []
    tiny: list[Row] = []
    with race.arena(given) as setting:
        tables = chosen_tables(setting, given)
        server = PostgresServer(setting, given.postgres, tables)
        try:
            server.start()
            for data_set in tables:
                if not chosen or data_set.name in chosen:
                    print(f"# {data_set.title}", file=sys.stderr, flush=True)
                    sections.append(Section(data_set, rows_of(contenders(server, data_set), given)))
                    race.measure(sections[-1].rows, given.rounds)
                    write(given, described, server, sections, tiny)
            table = next((data_set for data_set in tables if data_set.name == TINY_TABLE), None)
            if table is not None and (not chosen or "tiny" in chosen):
                tiny = rows_of(tiny_contenders(server, table), given)
                race.measure(tiny, given.rounds)
            print(write(given, described, server, sections, tiny))
        finally:
            server.stop()
    return [row for section in sections for row in section.rows] + tiny


def write(
    given: argparse.Namespace,
    described: dict[str, object],
    server: PostgresServer,
    sections: list[Section],
    tiny: list[Row],
) -> str:
    """Write JSON, Markdown and a plot for each table, and return the Markdown."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / (given.output or f"postgres-sf{given.scale_factor:g}")
    described["load_average_end"] = os.getloadavg()[0]
    described["changed_during_run"] = [
        name
        for name, build in builds(given.postgres).items()
        if described["versions"][name] != build
    ]
    markdown = report.as_markdown(described, server, sections, tiny)
    found = report.as_json(described, server, sections, tiny)
    Path(f"{path}.json").write_text(json.dumps(found, indent=2) + "\n")
    Path(f"{path}.md").write_text(markdown)
    for section in sections:
        title = f"{section.data_set.title}, from PostgreSQL"
        plot.draw(Path(f"{path}-{section.data_set.name}.png"), title, described, section.rows)
    return markdown


def builds(programs: Path) -> dict[str, str]:
    """Fingerprints of Dray's client and extension, because builds share a version number."""
    package = importlib.util.find_spec("dray")
    libraries = run([programs / "pg_config", "--pkglibdir"], "find the server's libraries").strip()
    files = {
        "dray package": next(Path(package.origin).parent.glob("_dray*.so"), None)
        if package
        else None,
        "dray extension": Path(libraries, "dray.so"),
    }
    return {f"{name} build": fingerprint(file) for name, file in files.items()}


def fingerprint(file: Path | None) -> str:
    if file is None or not file.exists():
        return "not installed"
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def describe(given: argparse.Namespace) -> dict[str, object]:
    described = machine.description(given.dray)
    for name in ("duckdb-extension-quack", "netcat"):
        del described["versions"][name]
    described["versions"].update({name: machine.package_version(name) for name in PACKAGES})
    described["versions"]["postgres"] = machine.program_version(
        [str(given.postgres / "postgres"), "--version"]
    )
    described["versions"].update(builds(given.postgres))
    described["command"] = command_line()
    return described


def main() -> int:
    given = options()
    try:
        described = describe(given)
        rows = compare(given, described)
    except Failure as failure:
        return race.fail(failure)
    return 1 if any(row.failure for row in rows) or described["changed_during_run"] else 0


if __name__ == "__main__":
    sys.exit(main())
