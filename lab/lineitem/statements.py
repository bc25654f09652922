"""Measure small statements: the time of one, and how many a server answers in a second.

    python -m lab.lineitem.statements --dray PROGRAM --connections 16 --seconds 5

Server and clients share the processors of one host, and connect by a Unix socket. Each connection
of the second part is a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dray

from lab.common.program import program_name

LOOKUP = "FROM nation WHERE n_nationkey = 7"
#: A statement without a table, and a row of a table in memory. `{}` stands for a number that
#: differs from statement to statement: the server plans the second of each pair every time.
STATEMENTS = {
    "SELECT 1": "SELECT 1",
    "SELECT 1, a new text each time": "SELECT 1 AS c{}",
    "a row of nation": f"SELECT n_name {LOOKUP}",
    "a row of nation, a new text each time": f"SELECT n_name AS c{{}} {LOOKUP}",
}


def probe(uri: str, statement: str, count: int) -> list[float]:
    """Microseconds of each statement on one connection, from the query to its rows in Python."""
    times = []
    with dray.connect(uri) as connection:
        for number in range(count + count // 10):
            text = statement.format(number)
            asked = time.perf_counter()
            list(connection.query(text).rows())
            times.append((time.perf_counter() - asked) * 1e6)
    return times[count // 10 :]


def client(uri: str, seconds: float, start: float, done: multiprocessing.SimpleQueue[int]) -> None:
    """Run `SELECT 1` repeatedly from `start` on, and put the number of statements into `done`."""
    count = 0
    with dray.connect(uri) as connection:
        time.sleep(max(0, start - time.monotonic()))
        while time.monotonic() < start + seconds:
            list(connection.query("SELECT 1").rows())
            count += 1
    done.put(count)


def throughput(uri: str, connections: int, seconds: float) -> float:
    """Statements a second over all connections."""
    done: multiprocessing.SimpleQueue[int] = multiprocessing.SimpleQueue()
    start = time.monotonic() + 2
    clients = [
        multiprocessing.Process(target=client, args=(uri, seconds, start, done))
        for _ in range(connections)
    ]
    for process in clients:
        process.start()
    counts = [done.get() for _ in clients]
    for process in clients:
        process.join()
    return sum(counts) / seconds


def main() -> int:
    given = argparse.ArgumentParser(prog=program_name(), description=__doc__.splitlines()[0])
    given.add_argument("--dray", type=Path, required=True, help="path of the dray program")
    given.add_argument("--statements", type=int, default=5000)
    given.add_argument("--connections", type=int, default=16)
    given.add_argument("--seconds", type=float, default=5)
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "dray.sock"
        command = [options.dray, "serve", "--log", "error", "--tpch", "0.01", "--in-memory"]
        with subprocess.Popen(
            [*command, "--unix", socket], stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                uri = f"dray+unix://{socket}"
                for name, statement in STATEMENTS.items():
                    times = probe(uri, statement, options.statements)
                    median, worst = statistics.median(times), statistics.quantiles(times, n=100)[98]
                    print(f"{name}: median {median:.0f} µs, p99 {worst:.0f} µs")
                rate = throughput(uri, options.connections, options.seconds)
                print(f"{options.connections} connections: {rate:,.0f} statements a second")
            finally:
                server.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
