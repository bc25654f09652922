"""Compare Spark's connector with Spark's JDBC source: lineitem from PostgreSQL into a standalone
cluster of two executors of one core each.

It starts PostgreSQL and Spark on this machine. See README.md for the method.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from lab import RESULTS
from lab.common import machine, race
from lab.common.contender import Setting
from lab.common.process import (
    Failure,
    Process,
    cpu_s,
    free_port,
    memory_bytes,
    reset_peak,
)
from lab.common.program import command_line
from lab.postgres.bench import builds, fingerprint
from lab.postgres.data import DataSet, LineitemSet
from lab.postgres.server import USER, PostgresServer
from lab.spark import outside, report, standalone
from lab.spark.ways import TABLE, WHOLE, Way, Ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDRESS = "127.0.0.1"
EXECUTORS = 2
#: Rounds that do not count: Java compiles what is often run.
WARM_UPS = 2
PROGRAMS = Path("/usr/lib/postgresql/15/bin")


def options(description: str) -> argparse.Namespace:
    parser = race.options(description)
    parser.set_defaults(timeout=900.0)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dray"
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds (default: 5)")
    parser.add_argument("--parts", type=int, default=8, help="parts of the table (default: 8)")
    parser.add_argument(
        "--spark", type=Path, default=cache / "spark" / "pyspark", help="the package pyspark"
    )
    parser.add_argument(
        "--jar", type=Path, default=cache / "spark-connector" / "dray-spark.jar", help="of Dray"
    )
    parser.add_argument(
        "--drivers", type=Path, default=cache / "jdbc" / "drivers", help="folder of JDBC drivers"
    )
    parser.add_argument("--note", default="", help="a sentence for the report, about the machine")
    return parser.parse_args()


@contextmanager
def cluster(spark: Path, folder: Path, timeout_s: float) -> Iterator[tuple[str, Process]]:
    """A master and a worker; yields the master's address and the worker."""
    port = free_port()
    url = f"spark://{ADDRESS}:{port}"
    with ExitStack() as stack:
        for name, what, arguments in (
            ("master", standalone.MASTER, ("--port", str(port))),
            (
                "worker",
                standalone.WORKER,
                ("--cores", str(EXECUTORS), "--memory", "8g", "--work-dir", f"{folder}/work", url),
            ),
        ):
            process = standalone.daemon(spark, ADDRESS, folder / f"{name}.log", what, *arguments)
            stack.callback(process.stop)
            ready = "New state: ALIVE" if name == "master" else "Successfully registered"
            process.await_listening(None, None, ready, timeout_s)
        yield url, process


def settings(url: str, jars: list[Path], folder: Path) -> dict[str, object]:
    return {
        "spark.master": url,
        "spark.jars": ",".join(f"local:{jar}" for jar in jars),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "2g",
        "spark.executor.cores": 1,
        "spark.cores.max": EXECUTORS,
        "spark.sql.shuffle.partitions": EXECUTORS,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.local.dir": folder / "local",
    }


class Measuring:
    """Runs ways in turns, and keeps what each run took."""

    def __init__(self, server: PostgresServer, executors: list[int]) -> None:
        self.server = server
        self.executors = executors
        self.runs: dict[str, list[dict[str, float]]] = {}

    def run(self, way: Way, counts: bool) -> Decimal | int | None:
        for pid in self.executors:
            reset_peak(pid)
        before = [cpu_s(pid) or 0.0 for pid in self.executors]
        watch = self.server.watch()
        start = time.perf_counter()
        try:
            found = way.run()
            seconds = time.perf_counter() - start
        finally:
            usage = watch.finish()
        measured = {
            "seconds": seconds,
            "executors_cpu_s": sum((cpu_s(pid) or 0.0) for pid in self.executors) - sum(before),
            "server_cpu_s": usage.cpu_s or 0.0,
            "executor_peak_bytes": max(memory_bytes(pid, "VmHWM") or 0 for pid in self.executors),
        }
        if counts:
            self.runs.setdefault(way.name, []).append(measured)
        note = "" if counts else " (does not count)"
        print(
            f"# {way.group.name}: {way.label}: {seconds:.3f} s{note}", file=sys.stderr, flush=True
        )
        return found

    def median(self, name: str, field: str = "seconds") -> float:
        return statistics.median(run[field] for run in self.runs[name])


def measure(
    measuring: Measuring, ways: list[Way], rounds: int, expected: dict[str, object]
) -> None:
    for number in range(rounds + WARM_UPS):
        for way in random.Random(number).sample(ways, len(ways)):
            found = measuring.run(way, number >= WARM_UPS)
            wanted = expected["rows" if way.group == WHOLE else "sum"]
            if found is not None and found != wanted:
                raise Failure(f"{way.name} has read {found}, expected {wanted}")


def tuned(measuring: Measuring, ways: Ways) -> int:
    """The fastest size of JDBC's fetches."""
    candidates = ways.tuning()
    for counts in (False, True):
        for way in candidates:
            measuring.run(way, counts)
    return int(min(candidates, key=lambda way: measuring.median(way.name)).name)


def keyed(server: PostgresServer) -> tuple[tuple[int, int], dict[str, object]]:
    """Give the table its primary key, which JDBC's partitions need; return bounds and sums."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (l_orderkey, l_linenumber)")
        connection.execute(f"ANALYZE {TABLE}")
        least, most, rows, total = connection.execute(
            f"SELECT min(l_orderkey), max(l_orderkey), count(*), sum(l_quantity) FROM {TABLE}"
        ).fetchone() or (0, 0, 0, 0)
    return (least, most), {"rows": rows, "sum": total}


@contextmanager
def running(
    given: argparse.Namespace, setting: Setting, data_sets: list[DataSet]
) -> Iterator[tuple[PostgresServer, SparkSession, list[int]]]:
    """PostgreSQL with tables and the extension, an application, and its executors."""
    with ExitStack() as stack:
        server = PostgresServer(setting, PROGRAMS, data_sets)
        stack.callback(server.stop)
        server.start()
        if "extension" in server.missing:
            raise Failure(server.missing["extension"])
        url, worker = stack.enter_context(cluster(given.spark, setting.folder, given.timeout))
        jars = [given.jar, *given.drivers.glob("postgresql-*.jar")]
        spark = stack.enter_context(
            standalone.application(given.spark, ADDRESS, settings(url, jars, setting.folder))
        )
        deadline = time.monotonic() + given.timeout
        while len(found := standalone.executors(worker.pid)) < EXECUTORS:
            if time.monotonic() > deadline:
                raise Failure(f"{len(found)} of {EXECUTORS} executors have started")
            time.sleep(0.1)
        yield server, spark, found


def compare(given: argparse.Namespace, setting: Setting) -> tuple[Measuring, dict[str, object]]:
    with (
        running(given, setting, [LineitemSet(setting.table)]) as (server, spark, executors),
        outside.started(EXECUTORS) as pool,
    ):
        bounds, expected = keyed(server)
        files = setting.folder / "parquet"
        ways = Ways(spark, (ADDRESS, server.port, USER), bounds, given.parts, pool, files)
        ways.write_parquet()
        measuring = Measuring(server, executors)
        fetch_size = tuned(measuring, ways)
        every = ways.all(fetch_size)
        measure(measuring, every, given.rounds, expected)
        described: dict[str, object] = {
            "ways": [(way.name, way.label, way.group.name) for way in every],
            "rows": expected["rows"],
            "spark": spark.version,
            "tuning": {name: runs for name, runs in measuring.runs.items() if name.isdigit()},
        }
    return measuring, described


def describe(given: argparse.Namespace) -> dict[str, object]:
    described = machine.description(given.dray)
    postgres = machine.program_version([str(PROGRAMS / "postgres"), "--version"])
    described["versions"].update({"postgres": postgres, **builds(PROGRAMS)})
    return described | {
        "command": command_line(),
        "note": given.note,
        "parts": given.parts,
        "jar build": fingerprint(given.jar),
    }


def write(name: str, described: dict[str, object], runs: object, markdown: str) -> None:
    """Write JSON and Markdown below `results`, and print the latter."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(described | {"runs": runs}, indent=2, default=str)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    (RESULTS / f"{name}.md").write_text(markdown)
    print(markdown)


def main() -> int:
    given = options("Compare Spark's connector with Spark's JDBC source on this machine.")
    try:
        described = describe(given)
        with race.arena(given) as setting:
            described["table"] = setting.table.title
            measuring, found = compare(given, setting)
    except Failure as failure:
        return race.fail(failure)
    described |= found | {"load_average_end": os.getloadavg()[0]}
    runs = {name: runs for name, runs in measuring.runs.items() if not name.isdigit()}
    markdown = report.as_markdown(described, runs)
    write(f"spark-sf{given.scale_factor:g}", described, runs, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
