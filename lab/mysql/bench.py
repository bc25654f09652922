"""Compare ways to read tables from MariaDB over loopback TCP, one connection each.

It starts a server in a temporary folder and loads lineitem, ontime and PUMS. Ways run in turns,
each in a process of its own. The yardsticks throw the rows away: MariaDB's own library in C, with
text and with a prepared statement (drain.c), and its command line (`mariadb --quick`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import RESULTS
from lab.common import race
from lab.common.contender import Setting
from lab.common.process import Failure
from lab.common.program import program_name, python
from lab.data.lineitem import Lineitem
from lab.data.sample import Sample
from lab.data.table import Table
from lab.mysql.client import DATABASE, HOST, PASSWORD, USER, WAYS
from lab.mysql.server import MariaServer, drain_program

START_S = 60.0
DRAINS = ("drain-text", "drain-binary", "mariadb-quick")
#: Ways that take minutes have fewer rounds.
SLOW = {"pymysql": 1, "pandas": 1, "mysql-connector": 1, "mysqlclient": 1}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--tables", default="lineitem,ontime,pums", help="(default: %(default)s)")
    parser.add_argument("--scale-factor", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of ontime and pums")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--ways", default="drain-text,drain-binary,mariadb-quick," + ",".join(WAYS))
    return parser.parse_args()


def table_of(name: str, given: argparse.Namespace) -> Table:
    return Lineitem.of(given.scale_factor) if name == "lineitem" else Sample(name, given.rows)


def run(way: str, server: MariaServer, drain: Path, sql: str) -> dict:
    if way == "mariadb-quick":
        command = ["mariadb", "--no-defaults", "--quick", "-BN", f"-h{HOST}", f"-P{server.port}",
                   f"-u{USER}", f"-p{PASSWORD}", DATABASE, "-e", sql]  # fmt: skip
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {"seconds": time.perf_counter() - began}
    if way in DRAINS:
        form = way.split("-")[1]
        command = [drain, HOST, server.port, USER, PASSWORD, DATABASE, form, "plain", sql]
    else:
        command = python("lab.mysql.client", way, server.port, sql)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{way}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if way in DRAINS:
        # A connection is part of a driver's time, but not of the yardstick's.
        found["seconds"] = found["total_s"] - found["connect_s"]
    return found


def main() -> None:
    given = options()
    ways = given.ways.split(",")
    tables = [table_of(name, given) for name in given.tables.split(",")]
    folder = Path(tempfile.mkdtemp(prefix="dray-lab-maria-"))
    server = MariaServer(Setting(tables[0], race.default_dray(), folder, START_S), tables)
    try:
        drain = drain_program()
        server.start()
        version = server.sql("SELECT version()").strip()
        results: dict[str, dict[str, list[dict]]] = {}
        for table in tables:
            name = table.name
            rows = int(server.sql(f"SELECT count(*) FROM {name}"))
            found = results[name] = {way: [] for way in ways}
            sql = f"SELECT * FROM {name}"
            for number in range(given.rounds):
                for way in ways if number % 2 == 0 else reversed(ways):
                    if number >= SLOW.get(way, given.rounds):
                        continue
                    measured = run(way, server, drain, sql)
                    if measured.get("rows", rows) != rows:
                        raise Failure(f"{way} read {measured['rows']} of {rows} rows")
                    found[way].append(measured)
                    print(f"# {name} {way}: {measured}", file=sys.stderr, flush=True)
            print(f"\n{name}, {rows:,} rows, MariaDB {version}\n")
            print("| way | median s | fastest–slowest | client CPU s | client peak, MB |")
            print("|---|---:|---:|---:|---:|")
            for way, runs in found.items():
                seconds = [one["seconds"] for one in runs]
                cpu, peak = (
                    f"{statistics.median(one[key] for one in runs) / unit:.2f}"
                    if key in runs[0] else ""
                    for key, unit in (("cpu_s", 1), ("peak_bytes", 1e6))
                )  # fmt: skip
                print(f"| {way} | {statistics.median(seconds):.2f} | {min(seconds):.2f}–"
                      f"{max(seconds):.2f} | {cpu} | {peak} |", flush=True)  # fmt: skip
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "mysql.json").write_text(json.dumps(results, indent=2))
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
