"""How customers travel: as pages, as columns, and as Dray chooses, over links of several rates.

`python -m lab.objects.layouts PROGRAM FILE` serves the Parquet file FILE, whose rows are nested.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from lab.common import race
from lab.common.process import Failure
from lab.common.program import program_name, python
from lab.link.link import Link

LAYOUTS = ("pages", "columns", "auto")
PORT = 20_200
TOKEN = "0123456789abcdef"
#: Rates, and how many bytes of pages are worth waiting for at each. No rate: one host.
RATES = {None: 400e6, "10gbit": 400e6, "1gbit": 200e6, "100mbit": 25e6, "10mbit": 4e6}
PAGE_BYTES_OF_ONE = 24_290


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("program", type=Path, help="the program dray")
    parser.add_argument("file", type=Path, help="a Parquet file with customers")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    return parser.parse_args()


@contextmanager
def served(given: argparse.Namespace, rate: str | None) -> Iterator[tuple[str, list[str], int]]:
    """The address of a server behind a link, how a client is started, and the server's process."""
    serve = [str(given.program), "serve", f"customers={given.file}", "--in-memory"]
    with tempfile.TemporaryDirectory() as folder:
        if rate is None:
            path = Path(folder, "socket")
            server = subprocess.Popen([*serve, "--unix", str(path)], stderr=subprocess.PIPE)
            while not path.exists():
                time.sleep(0.01)
            try:
                yield f"dray+unix://{path}", [], server.pid
            finally:
                stop(server)
            return
        token = Path(folder, "token")
        token.touch(0o600)
        token.write_text(TOKEN)
        make = Link.veth if rate.endswith("gbit") else Link.shaped
        with make(rate=rate) as link:
            listen = f"{link.far_address}:{PORT}"
            serve += ["--listen", f"tcp://{listen}", "--token-file", str(token)]
            server = subprocess.Popen([*link.far, *serve], stderr=subprocess.PIPE)
            link.await_listening(server)
            try:
                yield f"dray://{TOKEN}@{listen}?plain_token=true", link.near, server.pid
            finally:
                stop(server)


def stop(server: subprocess.Popen) -> None:
    server.kill()
    server.communicate()


def cpu_s(pid: int) -> float:
    """The CPU time of all threads of a process, by its clock (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> int:
    given = options()
    race.stop_on_signal()
    rows = pq.ParquetFile(given.file).metadata.num_rows
    for rate, page_bytes in RATES.items():
        count = min(rows, int(page_bytes / PAGE_BYTES_OF_ONE))
        sql = f"SELECT * FROM customers LIMIT {count}"
        found: dict[str, list[dict]] = {layout: [] for layout in LAYOUTS}
        with served(given, rate) as (uri, near, server):
            for number in range(given.rounds + 1):
                for layout in random.Random(number).sample(LAYOUTS, len(LAYOUTS)):
                    before = cpu_s(server)
                    command = [*near, *python(__spec__.name, uri, sql, layout)]
                    answer = subprocess.run(command, capture_output=True, text=True, check=False)
                    if answer.returncode:
                        raise Failure(answer.stderr)
                    run = json.loads(answer.stdout) | {"server_cpu_s": cpu_s(server) - before}
                    if number:
                        found[layout].append(run)
        print(f"{rate or 'one host'}: {count} customers")
        for layout, runs in found.items():
            times = [run["wall_s"] for run in runs]
            figures = {
                name: statistics.median(run[name] for run in runs)
                for name in ("client_cpu_s", "server_cpu_s", "wire_bytes", "pages", "chunks")
            }
            seen = {run["checksum"] for runs in found.values() for run in runs}
            if len(seen) > 1:
                raise Failure(f"the layouts differ: {seen}")
            print(
                f"  {layout:8} {statistics.median(times):7.3f} s "
                f"({min(times):.3f} to {max(times):.3f}), client {figures['client_cpu_s']:.3f} s "
                f"and server {figures['server_cpu_s']:.3f} s of CPU, "
                f"{figures['wire_bytes'] / 1e6:.2f} MB, {figures['pages']:.0f} pages of "
                f"{figures['chunks']:.0f} units",
                flush=True,
            )
    return 0


def client(uri: str, sql: str, layout: str) -> None:
    """Reads all objects, and one field of each."""
    import dray

    with dray.connect(uri) as connection:
        start, start_cpu = time.perf_counter(), time.process_time()
        objects = connection.objects(sql, layout=layout)
        total = sum(customer["c_custkey"] for customer in objects)
        wall_s, used_s = time.perf_counter() - start, time.process_time() - start_cpu
        stats = objects.stats
    found = {name: stats[name] for name in ("wire_bytes", "pages", "chunks")}
    print(json.dumps({"wall_s": wall_s, "client_cpu_s": used_s, "checksum": total} | found))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[3] in LAYOUTS:
        client(*sys.argv[1:])
    else:
        sys.exit(main())
