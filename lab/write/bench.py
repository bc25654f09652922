"""Compare ways to write lineitem from an Arrow table into an UNLOGGED table of PostgreSQL.

It starts a server in a temporary folder. Ways run in turns; before each, the table is truncated.
The yardstick is the server's own COPY … FROM a file of the same bytes. new1, new2 and new3 replace
the table over so many connections; an event trigger makes new tables UNLOGGED, unless --logged.
"insert" is INSERT … SELECT from another UNLOGGED table.
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

import psycopg

from lab import RESULTS

DEFAULT_TABLE = Path.home() / ".cache/dray/lab/sf1/lineitem.parquet"
DDL = """CREATE UNLOGGED TABLE lineitem (
    l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer,
    l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2),
    l_tax numeric(15,2), l_returnflag text, l_linestatus text, l_shipdate date,
    l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text)"""
UNLOGGED = """CREATE FUNCTION unlogged() RETURNS event_trigger LANGUAGE plpgsql AS $$
    DECLARE made record;
    BEGIN
        FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
            EXECUTE format('ALTER TABLE %s SET UNLOGGED', made.objid::regclass);
        END LOOP;
    END $$;
    CREATE EVENT TRIGGER unlogged ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
        EXECUTE FUNCTION unlogged()"""
SETTINGS = {
    "shared_buffers": "4GB",
    "fsync": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1d",
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=DEFAULT_TABLE, help="a Parquet file")
    parser.add_argument("--rows", type=int, default=10**9, help="at most so many rows")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default="file,dray,adbc,duckdb",
                        help="also new1, new2, new3, insert, pandas")  # fmt: skip
    parser.add_argument("--logged", action="store_true", help="new tables are logged")
    parser.add_argument("--postgres", type=Path, default=Path("/usr/lib/postgresql/15/bin"))
    return parser.parse_args()


class Server:
    def __init__(self, programs: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dray-lab-write-"))
        self.owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.owner:
            shutil.chown(self.folder, "postgres", "postgres")
        data = self.folder / "data"
        init = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"]
        subprocess.run([*self.owner, *init], check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = [word for item in SETTINGS.items() for word in ("-c", "=".join(item))]
        command = [programs / "postgres", "-D", data, "-k", self.folder, "-c",
                   "listen_addresses=", *settings]  # fmt: skip
        log = open(self.folder / "log", "w")
        # Not through runuser, which would not pass the signal on.
        owner = {"user": "postgres", "group": "postgres"} if self.owner else {}
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **owner)
        self.uri = f"postgresql://postgres@/postgres?host={self.folder}"
        for _ in range(100):
            try:
                self.connection = psycopg.connect(self.uri, autocommit=True)
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise SystemExit((self.folder / "log").read_text())

    def stop(self) -> None:
        self.connection.close()
        self.process.send_signal(subprocess.signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.folder)


def client(way: str, server: Server, given: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, "-m", "lab.write.client", way, server.uri, given.table,
               str(given.rows)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{way} failed: {done.stderr[-2000:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def from_file(server: Server) -> dict[str, float]:
    began = time.perf_counter()
    path = server.folder / "lineitem.bin"
    server.connection.execute(f"COPY lineitem FROM '{path}' (FORMAT binary)")
    return {"seconds": time.perf_counter() - began, "cpu": 0.0, "grown_mib": 0.0}


def insert_select(server: Server) -> dict[str, float]:
    began = time.perf_counter()
    server.connection.execute("INSERT INTO lineitem SELECT * FROM staged")
    return {"seconds": time.perf_counter() - began, "cpu": 0.0, "grown_mib": 0.0}


WAYS = {"file": from_file, "insert": insert_select}


def main() -> None:
    given = options()
    server = Server(given.postgres)
    try:
        execute = server.connection.execute
        execute(DDL)
        # The file of the server's own COPY has what Dray has written.
        client("dray", server, given)
        execute(f"COPY lineitem TO '{server.folder / 'lineitem.bin'}' (FORMAT binary)")
        (rows,) = execute("SELECT count(*) FROM lineitem").fetchone() or (0,)
        size = (server.folder / "lineitem.bin").stat().st_size
        ways = given.ways.split(",")
        if "insert" in ways:
            execute("CREATE UNLOGGED TABLE staged AS SELECT * FROM lineitem")
        if not given.logged:
            execute(UNLOGGED)
        found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(given.rounds):
            for way in ways if number % 2 == 0 else reversed(ways):
                execute("TRUNCATE lineitem")
                execute("CHECKPOINT")
                by_server = WAYS.get(way)
                measured = by_server(server) if by_server else client(way, server, given)
                (written,) = execute("SELECT count(*) FROM lineitem").fetchone() or (0,)
                assert written == rows, (way, written, rows)
                found[way].append(measured)
                print(f"# {way}: {measured}", file=sys.stderr, flush=True)
        print(f"{rows} rows, {size} bytes of COPY binary, PostgreSQL "
              f"{server.connection.info.parameter_status('server_version')}\n")  # fmt: skip
        print("| way | median s | fastest–slowest | client CPU s | client memory grown, MiB |")
        print("|---|---:|---:|---:|---:|")
        for way, runs in found.items():
            seconds = [run["seconds"] for run in runs]
            cpu, grown = (
                statistics.median(run[key] for run in runs) for key in ("cpu", "grown_mib")
            )
            print(f"| {way} | {statistics.median(seconds):.2f} | {min(seconds):.2f}–"
                  f"{max(seconds):.2f} | {cpu:.2f} | {grown:.0f} |")  # fmt: skip
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "write.json").write_text(json.dumps(found, indent=2))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
