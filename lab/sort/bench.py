"""Compare Dray's sort with its rivals: the cases of a paper, lineitem, DataFusion's queries, and a
range of memory limits. See README.md for the method.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

from lab import RESULTS
from lab.common import machine, race
from lab.common.process import Failure
from lab.common.program import command_line
from lab.data.table import cache_folder
from lab.sort import report
from lab.sort.contender import ENGINES, MEMORY, PARQUET, Engine, Row, Setting
from lab.sort.data import Case, cases

OUTPUT = RESULTS / "sort"
PARTS = ("catalog-sales", "customer", "duckdb", "tpch", "narrow", "curve")
FORMS = (MEMORY, PARQUET)
#: Data size / memory limit on the curve.
RATIOS = (0.25, 0.5, 1, 2, 4, 8, 16)
PACKAGES = (
    "dray",
    "duckdb",
    "chdb",
    "chdb-core",
    "datafusion",
    "polars",
    "tableauhyperapi",
    "pyarrow",
    "pandas",
    "numpy",
)


def options() -> argparse.Namespace:
    parser = race.options("Compare Dray's sort with its rivals.")
    parser.set_defaults(timeout=600.0)
    parser.add_argument(
        "--tpcds-scale-factor", type=float, help="scale factor of TPC-DS (default: that of TPC-H)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="measured rounds after the one that checks results (default: %(default)s)",
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="parts (default: %(default)s)")
    parser.add_argument(
        "--cases",
        default="*",
        help="patterns of cases, like 'tpch-q1*,tpch-q3' (default: all)",
    )
    parser.add_argument(
        "--only",
        default="*",
        help="patterns of contenders, like 'dray,duckdb,polars*' (default: all)",
    )
    parser.add_argument(
        "--forms",
        default=",".join(FORMS),
        help="forms of the data (default: %(default)s); the curve uses Parquet only",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="threads and processors of each contender (default: %(default)s)",
    )
    parser.add_argument(
        "--memory",
        type=float,
        default=8.0,
        help="memory limit in GB, except on the curve (default: %(default)g)",
    )
    parser.add_argument(
        "--headroom",
        type=float,
        default=0.5,
        help="GB above the limit before a run is killed (default: %(default)g)",
    )
    parser.add_argument(
        "--ratios",
        default=",".join(f"{ratio:g}" for ratio in RATIOS),
        help="data size / memory limit on the curve (default: %(default)s)",
    )
    parser.add_argument(
        "--report", action="store_true", help="only rewrite the report of the last run"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        help="path of the results without suffix (default: %(default)s)",
    )
    given = parser.parse_args()
    given.tpcds_scale_factor = given.tpcds_scale_factor or given.scale_factor
    for option, known in (("parts", PARTS), ("forms", FORMS)):
        names = getattr(given, option).split(",")
        if strange := [name for name in names if name not in known]:
            parser.error(f"--{option} {strange[0]}: expected some of {', '.join(known)}")
        setattr(given, option, names)
    given.ratios = [float(ratio) for ratio in given.ratios.split(",")]
    if not any(matches(engine.name, given.only) for engine in ENGINES):
        parser.error(
            f"--only {given.only}: expected some of {', '.join(engine.name for engine in ENGINES)}"
        )
    if given.rounds < 1 or given.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return given


def entrants(given: argparse.Namespace, form: str, on_curve: bool = False) -> list[Engine]:
    """The engines that match `--only` and support the form."""
    able = [
        engine for engine in ENGINES if form in engine.forms and (on_curve or not engine.curve_only)
    ]
    return [engine for engine in able if matches(engine.name, given.only)]


def matches(name: str, patterns: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns.split(","))


def rows_of(case: Case, form: str, given: argparse.Namespace, setting: Setting) -> list[list[Row]]:
    """The rows of a case, in groups that are measured in alternation."""
    if case.part != "curve":
        memory_bytes = int(given.memory * 1e9)
        return [
            [Row(setting, engine, case, form, memory_bytes) for engine in entrants(given, form)]
        ]
    spilling = [engine for engine in entrants(given, form, on_curve=True) if engine.spills]
    sizes = [int(case.arrow_bytes() / ratio) for ratio in given.ratios]
    return [[Row(setting, engine, case, form, size) for engine in spilling] for size in sizes]


def measure(rows: list[Row], rounds: int) -> None:
    """Measure in turns, so that a machine that slows down affects all contenders alike."""
    for number in range(rounds + 1):
        for row in rows:
            if row.runs_in(number, rounds):
                row.measure(checks=number == 0)
                figure = f"{row.runs[-1].seconds:.3f} s" if row.runs else "correct"
                stage = "check" if number == 0 else f"round {number}/{rounds}"
                memory = (
                    f" with {row.memory_bytes / 1e6:,.0f} MB" if row.case.part == "curve" else ""
                )
                print(
                    f"{stage}: {row.title}{memory}: {row.failure or figure}",
                    file=sys.stderr,
                    flush=True,
                )


def compare(given: argparse.Namespace) -> dict[str, object]:
    """Measure all parts, and write the results after each case."""
    found: dict[str, object] = {"machine": describe(given), "cases": []}
    # On a disk, because a folder in memory would hide the cost of spilling.
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sort-", dir=cache_folder()) as folder:
        setting = Setting(
            given.dray, Path(folder), given.threads, int(given.headroom * 1e9), given.timeout
        )
        for part in given.parts:
            try:
                known = cases(part, given.scale_factor, given.tpcds_scale_factor)
                for case in [case for case in known if matches(case.name, given.cases)]:
                    for form in [PARQUET] if part == "curve" else given.forms:
                        measure_case(case, form, given, setting, found)
            except Failure as failure:
                print(f"{part}: {failure}", file=sys.stderr)
                found["cases"].append(
                    {
                        "part": part,
                        "name": part,
                        "title": part,
                        "failure": str(failure),
                        "rows_measured": [],
                    }
                )
            write(given, found)
    return found


def measure_case(
    case: Case, form: str, given: argparse.Namespace, setting: Setting, found: dict
) -> None:
    groups = rows_of(case, form, given, setting)
    for rows in groups:
        measure(rows, given.rounds)
    found["cases"].append(
        {
            "part": case.part,
            "name": case.name,
            "title": case.title,
            "form": form,
            "table": case.table,
            "scale_factor": case.scale_factor,
            "keys": case.keys,
            "columns": case.columns,
            "rows": case.rows,
            "arrow_bytes": case.arrow_bytes(),
            "parquet_bytes": case.parquet().stat().st_size,
            "rows_measured": [row.as_json() for rows in groups for row in rows],
        }
    )
    write(given, found)


def describe(given: argparse.Namespace) -> dict[str, object]:
    described = machine.description(given.dray)
    del described["congestion_control_default"]
    versions = described["versions"]
    for name in (*machine.PACKAGES, "netcat"):
        versions.pop(name, None)
    versions.update({name: machine.package_version(name) for name in PACKAGES})
    versions["sqlite"] = sqlite3.sqlite_version
    versions["dray program build"] = build(given.dray)
    described["command"] = command_line()
    described["limits"] = {
        "threads": given.threads,
        "memory_bytes": int(given.memory * 1e9),
        "headroom_bytes": int(given.headroom * 1e9),
        "rounds": given.rounds,
    }
    described["engines"] = {
        engine.name: {"label": engine.label, "setting": engine.setting, "note": engine.note}
        for engine in ENGINES
    }
    return described


def build(program: Path) -> str:
    """A fingerprint of the program, because builds share a version number."""
    if not program.exists():
        raise Failure(f"no dray program at {program}: build it, or pass --dray")
    return hashlib.sha256(program.read_bytes()).hexdigest()[:12]


def write(given: argparse.Namespace, found: dict) -> None:
    """Write the results as JSON and HTML."""
    found["machine"]["changed_during_run"] = found["machine"]["versions"][
        "dray program build"
    ] != build(given.dray)
    found["machine"]["load_average_end"] = os.getloadavg()[0]
    given.output.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{given.output}.json").write_text(json.dumps(found, indent=1) + "\n")
    Path(f"{given.output}.html").write_text(report.html(found))


def main() -> int:
    given = options()
    race.stop_on_signal()
    try:
        if given.report:
            found = json.loads(Path(f"{given.output}.json").read_text())
            Path(f"{given.output}.html").write_text(report.html(found))
        else:
            found = compare(given)
    except Failure as failure:
        return race.fail(failure)
    print(f"{given.output}.html")
    # A rival that runs out of memory is a result. A failure of Dray or a wrong result is an error.
    failed = [row for case in found["cases"] for row in case["rows_measured"] if row["failure"]]
    wrong = [row for row in failed if row["engine"] == "dray" or row["failure"].startswith("wrong")]
    missing = any(case.get("failure") for case in found["cases"])
    return 1 if wrong or missing or found["machine"]["changed_during_run"] else 0


if __name__ == "__main__":
    sys.exit(main())
