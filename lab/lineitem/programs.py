"""Compare two builds of the program, and of the package: exports, statements, a sort, in turns.

    python -m lab.lineitem.programs OLD NEW --packages FOLDER FOLDER --rounds 5

A package is a folder that `pip install --target` has filled. Without packages, both programs are
measured with the package of this environment.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from lab.common.process import free_port
from lab.common.program import program_name, python
from lab.data.lineitem import Lineitem

#: Statements over `files`, a Parquet file, and the generated tables in memory.
STATEMENTS = {
    "Parquet, 4 groups": """SELECT l_returnflag, l_linestatus, sum(l_quantity),
        sum(l_extendedprice * (1 - l_discount)), avg(l_discount), count(*) FROM files
        WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "Parquet, 1.5 million groups": """SELECT count(*), max(most) FROM
        (SELECT l_orderkey, max(l_extendedprice) AS most FROM files GROUP BY l_orderkey)""",
    "Parquet, texts": """SELECT count(*) FROM files
        WHERE upper(substr(l_comment, 3, 20)) LIKE '%REGULAR%' OR l_comment LIKE '%ironic%'""",
    "join": """SELECT o_orderdate, sum(l_extendedprice) FROM lineitem JOIN orders
        ON l_orderkey = o_orderkey WHERE o_orderdate < DATE '1995-03-15' GROUP BY o_orderdate""",
}
FETCH = "SELECT * FROM lineitem"
SORT_BY = "l_comment,l_orderkey"


class Build:
    """A program with the package whose client measures it, and its server."""

    def __init__(self, program: Path, package: Path | None, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.unix_uri = f"dray+unix://{folder / 'dray.sock'}"
        self.port = free_port()
        paths = [str(package)] if package else []
        self.environment = os.environ | {"PYTHONPATH": ":".join([*paths, os.getcwd()])}

    def server(self, lineitem: Lineitem) -> subprocess.Popen[str]:
        """The server, which listens when this returns."""
        tables = ["--tpch", f"{lineitem.scale_factor:g}", f"files={lineitem.parquet()}"]
        sockets = ["--unix", self.folder / "dray.sock", "--listen", f"tcp://127.0.0.1:{self.port}"]
        server = subprocess.Popen(
            [self.program, "serve", "--log", "error", *tables, *sockets],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        server.stdout.readline()
        return server

    def fetches(self, uri: str, sql: str) -> float:
        """The median of three fetches of a process after its first."""
        client = python("lab.lineitem.programs", "--client", uri, sql)
        printed = subprocess.check_output(client, env=self.environment, text=True)
        return statistics.median(json.loads(printed))

    def command(self, *arguments: object) -> float:
        """Seconds of a command of the program."""
        began = time.perf_counter()
        subprocess.run([self.program, *map(str, arguments)], check=True)
        return time.perf_counter() - began

    def measure(self, lineitem: Lineitem) -> dict[str, float]:
        """Seconds of each thing, once."""
        tcp_uri = f"dray://127.0.0.1:{self.port}?local_socket=false"
        csv, sorted_file = self.folder / "out.csv", self.folder / "out.parquet"
        return {
            "export, Unix socket": self.fetches(self.unix_uri, FETCH),
            "export, TCP": self.fetches(tcp_uri, FETCH),
            **{name: self.fetches(self.unix_uri, sql) for name, sql in STATEMENTS.items()},
            "export into CSV": self.command("export", "-q", self.unix_uri, FETCH, "-o", csv),
            "dray sort": self.command(
                "sort", "-q", lineitem.parquet(), "--by", SORT_BY, "-o", sorted_file
            ),
        }


def client(uri: str, sql: str) -> list[float]:
    """Seconds of three fetches by this environment's package, after one that is not counted."""
    import dray

    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        with dray.connect(uri) as connection:
            table = connection.query(sql).to_arrow()
        seconds.append(time.perf_counter() - began)
        del table
    return seconds[1:]


def compare(builds: list[Build], lineitem: Lineitem, rounds: int) -> None:
    """Measure in turns, in the other order every second round, and print a table."""
    seconds: list[dict[str, list[float]]] = [{} for _ in builds]
    for number in range(rounds):
        turns = list(zip(builds, seconds, strict=True))
        for build, of_build in turns if number % 2 == 0 else reversed(turns):
            for name, took in build.measure(lineitem).items():
                of_build.setdefault(name, []).append(took)
    print("| | old | | new | | new / old |\n|---|---:|---:|---:|---:|---:|")
    for name in seconds[0]:
        medians = [statistics.median(of_build[name]) for of_build in seconds]
        cells = [
            f"{median:.3f} | {min(of_build[name]):.3f}–{max(of_build[name]):.3f}"
            for median, of_build in zip(medians, seconds, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} | {medians[1] / medians[0]:.2f} |")


def main() -> int:
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(client(*sys.argv[2:])))
        return 0
    given = argparse.ArgumentParser(prog=program_name(), description=__doc__.splitlines()[0])
    given.add_argument("programs", type=Path, nargs=2)
    given.add_argument("--packages", type=Path, nargs=2, default=[None, None])
    given.add_argument("--scale-factor", type=float, default=1)
    given.add_argument("--rounds", type=int, default=3)
    options = given.parse_args()
    lineitem = Lineitem.of(options.scale_factor)
    with ExitStack() as stack:
        builds = []
        for program, package in zip(options.programs, options.packages, strict=True):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            builds.append(Build(program, package, folder))
            stack.callback(stack.enter_context(builds[-1].server(lineitem)).terminate)
        compare(builds, lineitem, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
