"""Compare ways to read tables from MariaDB over loopback TCP, one connection each.

It starts a server in a temporary folder and loads lineitem, ontime and PUMS. Ways run in turns,
each in a process of its own. The yardsticks throw the rows away: MariaDB's own library in C, with
text and with a prepared statement (drain.c), and its command line (`mariadb --quick`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import RESULTS
from lab.common.process import Failure
from lab.common.program import program_name, python
from lab.data.lineitem import Lineitem
from lab.data.sample import DATA, Sample
from lab.data.table import Table
from lab.mysql.client import DATABASE, HOST, PASSWORD, USER, WAYS

DRAINS = ("drain-text", "drain-binary", "mariadb-quick")
#: Ways that take minutes have fewer rounds.
SLOW = {"pymysql": 1, "pandas": 1, "mysql-connector": 1, "mysqlclient": 1}
SETTINGS = {
    "innodb-buffer-pool-size": "6G",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-doublewrite": "0",
    "innodb-log-file-size": "1G",
    "max-allowed-packet": "64M",
    "character-set-server": "utf8mb4",
}
LINEITEM = """CREATE TABLE lineitem (
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL,
    l_linenumber int NOT NULL, l_quantity decimal(15,2) NOT NULL,
    l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL,
    l_tax decimal(15,2) NOT NULL, l_returnflag varchar(1) NOT NULL,
    l_linestatus varchar(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL, l_shipinstruct varchar(25) NOT NULL,
    l_shipmode varchar(10) NOT NULL, l_comment varchar(44) NOT NULL,
    PRIMARY KEY (l_orderkey, l_linenumber))"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--tables", default="lineitem,ontime,pums", help="(default: %(default)s)")
    parser.add_argument("--scale-factor", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of ontime and pums")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--ways", default="drain-text,drain-binary,mariadb-quick," + ",".join(WAYS))
    return parser.parse_args()


class Server:
    """A MariaDB in a temporary folder."""

    def __init__(self, port: int = 20_400) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dray-lab-maria-"))
        self.socket = self.folder / "socket"
        user = f"--user={os.environ.get('USER') or 'root'}"
        data = f"--datadir={self.folder / 'data'}"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", data, user, "--skip-test-db",
             "--auth-root-authentication-method=normal"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.port = port
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            ["/usr/sbin/mariadbd", "--no-defaults", data, user, f"--socket={self.socket}",
             f"--port={self.port}", f"--bind-address={HOST}", "--skip-name-resolve", *settings],
            stdout=log, stderr=log,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                message = (self.folder / "log").read_text()
                self.stop()
                raise Failure(message)
            time.sleep(0.1)
        self.sql(
            f"CREATE DATABASE {DATABASE}; CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; "
            f"GRANT ALL ON {DATABASE}.* TO {USER}@'%'",
            database="",
        )

    def sql(self, statements: str, database: str = DATABASE) -> str:
        command = ["mariadb", "--no-defaults", "-uroot", f"-S{self.socket}", "-BN", database]
        done = subprocess.run(
            [word for word in command if word], input=statements, capture_output=True, text=True
        )
        if done.returncode:
            raise Failure(done.stderr)
        return done.stdout

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def table_of(name: str, given: argparse.Namespace) -> Table:
    return Lineitem.of(given.scale_factor) if name == "lineitem" else Sample(name, given.rows)


def ddl(table: Table) -> str:
    """The statement that creates a table: PostgreSQL's of a sample, in the words of MariaDB."""
    if table.name == "lineitem":
        return LINEITEM
    text = (DATA / f"{table.name}.sql").read_text()
    return text.replace(" text", " varchar(100)").replace(" numeric", " decimal")


def load(server: Server, table: Table) -> int:
    server.sql(ddl(table))
    columns = server.sql(
        "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_name = '{table.name}' AND table_schema = '{DATABASE}' "
        "ORDER BY ordinal_position"
    )
    names = [line.split("\t")[0] for line in columns.splitlines()]
    # An empty field is a missing value, and not 0.
    fields = ", ".join(f"@{i}" for i in range(len(names)))
    values = ", ".join(f"{name} = nullif(@{i}, '')" for i, name in enumerate(names))
    if table.name == "lineitem":
        fields, values = ", ".join(names), ""
    server.sql(
        f"SET sql_mode = ''; LOAD DATA INFILE '{table.csv()}' INTO TABLE {table.name} "
        "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' "
        f"IGNORE 1 LINES ({fields})" + (f" SET {values}" if values else "")
    )
    server.sql(f"ANALYZE TABLE {table.name}")
    return int(server.sql(f"SELECT count(*) FROM {table.name}"))


def build_drain(folder: Path) -> Path:
    program = folder / "drain"
    flags = subprocess.run(
        ["mariadb_config", "--cflags", "--libs"], capture_output=True, text=True, check=True
    )
    source = Path(__file__).with_name("drain.c")
    subprocess.run(["cc", "-O2", source, "-o", program, *flags.stdout.split()], check=True)
    return program


def run(way: str, server: Server, drain: Path, sql: str) -> dict:
    if way == "mariadb-quick":
        command = ["mariadb", "--no-defaults", "--quick", "-BN", f"-h{HOST}", f"-P{server.port}",
                   f"-u{USER}", f"-p{PASSWORD}", DATABASE, "-e", sql]  # fmt: skip
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {"seconds": time.perf_counter() - began}
    if way in DRAINS:
        command = [drain, HOST, server.port, USER, PASSWORD, DATABASE, way.split("-")[1], sql]
    else:
        command = python("lab.mysql.client", way, server.port, sql)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{way}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    given = options()
    ways = given.ways.split(",")
    server = Server()
    try:
        drain = build_drain(server.folder)
        version = server.sql("SELECT version()").strip()
        results: dict[str, dict[str, list[dict]]] = {}
        for name in given.tables.split(","):
            table = table_of(name, given)
            rows = load(server, table)
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


if __name__ == "__main__":
    main()
