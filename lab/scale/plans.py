"""Plans of many parts: how long planning takes, how large a plan is, and what memory it takes.

    python -m lab.scale.plans files --dray PROGRAM
    python -m lab.scale.plans postgres --uri postgresql://…

`files` makes Parquet files with as many row groups as a plan may have parts, and serves them.
`postgres` makes a table of half a gigabyte, which has 512 parts: PostgreSQL's have at least 128
blocks. Each plan is made by a process of its own, three times; the medians count.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet

import dray
from lab.common.program import python

PARTS_MAX = 65_536
PARTS = (1, 10, 100, 1_000, 10_000, PARTS_MAX)
POSTGRES_PARTS = (1, 10, 100, 512)
TABLE = "dray_lab_blocks"
ROUNDS = 3


def memory_kb(process: int | str, what: str = "VmHWM") -> int:
    """The largest resident memory of a process so far."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{what}:\s+(\d+) kB", text, re.MULTILINE)
    assert found
    return int(found[1])


def plan(uri: str, table: str, at_most: int) -> None:
    """Make one plan, read its last part, and print what it took."""
    with dray.connect(uri) as connection:
        before = memory_kb("self")
        start = time.perf_counter()
        with connection.partitions(f"SELECT * FROM {table}", at_most=at_most) as made:
            planned = time.perf_counter() - start
            parts = made.partitions
            start = time.perf_counter()
            with dray.read_partition(parts[-1]) as result:
                rows = result.to_arrow().num_rows
            print(
                json.dumps(
                    {
                        "parts": len(parts),
                        "seconds": planned,
                        "bytes": sum(map(len, parts)),
                        "client_mb": (memory_kb("self") - before) / 1024,
                        "part_seconds": time.perf_counter() - start,
                        "part_rows": rows,
                    }
                )
            )


def measure(uri: str, table: str, numbers: tuple[int, ...], server: int | None) -> None:
    """Print a table of all numbers of parts."""
    print("| parts | seconds to plan | bytes of the plan | client grew | one part | server |")
    print("|---:|---:|---:|---:|---:|---:|")
    for at_most in numbers:
        runs = []
        for _ in range(ROUNDS):
            command = python("lab.scale.plans", "plan", uri, table, at_most)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"a plan of {at_most} parts failed: {done.stderr.splitlines()[-1]}")
            runs.append(json.loads(done.stdout))
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        peak = "" if server is None else f"{memory_kb(server) / 1024:,.0f} MB"
        print(
            f"| {middle['parts']:,.0f} | {middle['seconds']:.3f} | {middle['bytes']:,.0f} "
            f"| {middle['client_mb']:,.0f} MB | {middle['part_seconds'] * 1000:.1f} ms | {peak} |",
            flush=True,
        )


def files(program: str) -> None:
    """Serve files of many row groups, and plan over them."""
    with tempfile.TemporaryDirectory(prefix="dray-scale-") as folder:
        path = Path(folder) / "groups"
        path.mkdir()
        # A file has fewer than 32,768 row groups.
        rows = pyarrow.table({"id": range(PARTS_MAX), "x": [0.5] * PARTS_MAX})
        for i in range(4):
            pyarrow.parquet.write_table(rows, path / f"{i}.parquet", row_group_size=4)
        socket = Path(folder) / "socket"
        command = [program, "serve", "--unix", str(socket), f"groups={path}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                while "listening" not in (line := server.stdout.readline()):
                    if not line:
                        sys.exit("the server did not start")
                measure(f"dray+unix://{socket}", "groups", PARTS, server.pid)
            finally:
                server.kill()


def postgres(uri: str) -> None:
    """Make a table of 65,536 blocks, and plan over it."""
    with dray.connect(uri) as connection:
        connection.query(
            f"CREATE TABLE IF NOT EXISTS {TABLE} AS SELECT i AS id, repeat('x', 1900) AS filler "
            f"FROM generate_series(1, {4 * PARTS_MAX}) i"
        ).to_arrow()
        connection.query(f"ANALYZE {TABLE}").to_arrow()
    measure(uri, TABLE, POSTGRES_PARTS, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("files").add_argument("--dray", required=True)
    commands.add_parser("postgres").add_argument("--uri", required=True)
    one = commands.add_parser("plan")
    one.add_argument("uri")
    one.add_argument("table")
    one.add_argument("at_most", type=int)
    given = parser.parse_args()
    if given.command == "files":
        files(given.dray)
    elif given.command == "postgres":
        postgres(given.uri)
    else:
        plan(given.uri, given.table, given.at_most)


if __name__ == "__main__":
    main()
