"""Measure the latency of `SELECT 1` while other clients sort and join.

    python -m lab.lineitem.latency --dray PROGRAM --clients 24 --seconds 20

The server's network threads must not compute. Server, clients and probe are three processes that
share the processors of one host.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import dray

from lab.common.program import program_name

STATEMENTS = [
    "SELECT * FROM orders ORDER BY o_comment",
    "SELECT l_shipmode, count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
    "GROUP BY l_shipmode",
    "SELECT l_orderkey, l_extendedprice FROM lineitem "
    "ORDER BY l_extendedprice, l_orderkey LIMIT 1000",
    "SELECT count(*) FROM customer a JOIN customer b ON a.c_acctbal + b.c_acctbal = 3",
]


def load(
    uri: str, clients: int, seconds: float, done: multiprocessing.SimpleQueue[tuple[int, int]]
) -> None:
    """Run statements repeatedly in one thread per client, and put the numbers of statements that
    succeeded and failed into `done`.
    """
    end = time.monotonic() + seconds
    ended = [0] * clients
    failed = [0] * clients

    def client(number: int) -> None:
        with dray.connect(uri) as connection:
            while time.monotonic() < end:
                try:
                    for _ in connection.query(STATEMENTS[number % len(STATEMENTS)]).batches():
                        pass
                    ended[number] += 1
                except dray.Error as cause:
                    failed[number] += 1
                    print(f"client {number}: {cause}", file=sys.stderr)

    threads = [
        threading.Thread(target=client, args=(number,), daemon=True) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    done.put((sum(ended), sum(failed)))
    os._exit(0)


def probe(uri: str, seconds: float) -> list[float]:
    """Milliseconds of each `SELECT 1` on one connection, in ascending order."""
    times = []
    end = time.monotonic() + seconds
    with dray.connect(uri) as connection:
        while time.monotonic() < end:
            asked = time.perf_counter()
            connection.query("SELECT 1").arrow()
            times.append((time.perf_counter() - asked) * 1e3)
            time.sleep(0.005)
    return sorted(times)


def line(name: str, times: list[float]) -> str:
    def at(share: float) -> float:
        return times[min(int(len(times) * share), len(times) - 1)]

    return (
        f"{name}: {len(times)} times, median {at(0.5):.2f} ms, p99 {at(0.99):.2f} ms, "
        f"longest {times[-1]:.2f} ms"
    )


def main() -> int:
    given = argparse.ArgumentParser(prog=program_name(), description=__doc__.splitlines()[0])
    given.add_argument("--dray", type=Path, required=True, help="path of the dray program")
    given.add_argument("--scale-factor", default="1")
    given.add_argument("--clients", type=int, default=24)
    given.add_argument("--seconds", type=float, default=20)
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "dray.sock"
        command = [
            options.dray,
            "serve",
            "--log",
            "error",
            "--tpch",
            options.scale_factor,
            "--unix",
            socket,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                uri = f"dray+unix://{socket}"
                print(line("alone", probe(uri, 3)))
                done: multiprocessing.SimpleQueue[tuple[int, int]] = multiprocessing.SimpleQueue()
                clients = multiprocessing.Process(
                    target=load, args=(uri, options.clients, options.seconds + 2, done)
                )
                clients.start()
                time.sleep(1)
                print(line(f"beside {options.clients} clients", probe(uri, options.seconds)))
                ended, failed = done.get()
                print(f"statements meanwhile: {ended} succeeded, {failed} failed")
                clients.join()
                for _ in range(2):
                    server.terminate()
                    time.sleep(0.1)
                asked = time.perf_counter()
                server.wait(timeout=30)
                print(
                    f"the server ended {time.perf_counter() - asked:.2f} s after the second SIGTERM"
                )
            finally:
                server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
