"""Compare compressions of MySQL's protocol over networks: by zlib, by zstd, and without.

A MariaDB, and the MySQL 8.0.33 that `scripts/setup` unpacks with DRAY_ALL_VERSIONS, have the rows
in memory and run at the far end of a link. Each fetch is a process of its own that drops its rows.
It needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from lab.common import race
from lab.common.contender import Setting
from lab.common.process import Failure
from lab.common.program import program_name, python
from lab.common.testbed import LinkTestbed, Testbed
from lab.data.lineitem import Lineitem
from lab.data.sample import Sample
from lab.data.table import Table
from lab.link.link import Link
from lab.mysql.bench import START_S
from lab.mysql.server import DISTRIBUTED, MariaServer

#: Networks, and the rows of lineitem in a fetch on each.
NETWORKS: dict[str, tuple[Callable[[], Link] | None, int]] = {
    "loopback": (None, 200_000),
    "1 Gbit/s": (lambda: Link.veth("1gbit"), 200_000),
    "100 Mbit/s, 25 ms": (lambda: Link.shaped("100mbit", 25.0), 100_000),
    "10 Mbit/s, 25 ms": (lambda: Link.shaped("10mbit", 25.0), 20_000),
}
SERVERS = {
    DISTRIBUTED: ["none", "zlib", "auto"],
    "mysql-8.0.33": ["none", "zlib", "zstd", "auto"],
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--servers", default=",".join(SERVERS), help="(default: %(default)s)")
    return parser.parse_args()


def fetch(testbed: Testbed, uri: str, sql: str) -> dict:
    command = [*testbed.near, *python("lab.mysql.compression", "--fetch", uri, sql)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failure(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def read(uri: str, sql: str) -> None:
    """The client's process. Its clock runs from before the login."""
    import dray

    began = time.perf_counter()
    with dray.connect(uri) as connection:
        rows = sum(batch.num_rows for batch in connection.query(sql).batches())
    print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))


def measure(version: str, tables: list[Table], folder: Path, rounds: int) -> None:
    for network, (make_link, rows_of_lineitem) in NETWORKS.items():
        with ExitStack() as stack:
            link = stack.enter_context(make_link()) if make_link else None
            testbed = LinkTestbed(link) if link else Testbed()
            setting = Setting(tables[0], race.default_dray(), folder, START_S, testbed)
            # It finds the data of the one before it.
            server = MariaServer(setting, tables, version)
            stack.callback(server.stop)
            server.start()
            for table in tables:
                # Its rows are wide.
                rows = rows_of_lineitem // (4 if table.name == "ontime" else 1)
                sql = f"SELECT * FROM {table.name} LIMIT {rows}"
                methods = SERVERS[version]
                found: dict[str, list[float]] = {method: [] for method in methods}
                for number in range(rounds):
                    for method in methods if number % 2 == 0 else reversed(methods):
                        uri = server.uri() + f"?ssl-mode=DISABLED&compress={method}"
                        fetched = fetch(testbed, uri, sql)
                        if fetched["rows"] != rows:
                            raise Failure(f"{fetched['rows']} of {rows} rows")
                        found[method].append(fetched["seconds"])
                cells = [
                    f"{statistics.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"
                    for seconds in found.values()
                ]
                print(f"| {network} | {table.name}, {rows:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--fetch"]:
        read(*sys.argv[2:])
        return
    given = options()
    tables: list[Table] = [Lineitem.of(0.3), Sample("ontime", 200_000)]
    for version in given.servers.split(","):
        print(f"\n{version}, seconds\n")
        print(f"| network | rows | {' | '.join(SERVERS[version])} |")
        print(f"|---|---|{'---:|' * len(SERVERS[version])}", flush=True)
        with tempfile.TemporaryDirectory(prefix="dray-lab-mysql-") as folder:
            measure(version, tables, Path(folder), given.rounds)


if __name__ == "__main__":
    main()
