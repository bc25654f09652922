"""Compare ways to write lineitem into MariaDB over loopback TCP.

It starts a server in a temporary folder. Each way writes the same rows into a new table, in turns:
Dray from Parquet, by LOAD DATA and by prepared statements (`local_infile` off); MariaDB's own
command line by LOAD DATA LOCAL INFILE from CSV; and, once each because they take long, pymysql's
`executemany` and pandas' `to_sql`. Those named `create` let Dray create the table, without a key,
over one connection or two.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from lab.common import race
from lab.common.contender import Setting
from lab.common.program import program_name
from lab.data.lineitem import Lineitem
from lab.mysql.bench import START_S
from lab.mysql.client import DATABASE, HOST, PASSWORD, USER, uri
from lab.mysql.server import LINEITEM, MariaServer

#: Ways that take minutes have one round.
SLOW = ("pymysql", "pandas")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument(
        "--ways", default="dray-load,dray-insert,dray-create,dray-create-2,mariadb,pymysql,pandas"
    )
    return parser.parse_args()


def dray_write(port: int, parquet: Path, mode: str = "append", partitions: int = 1) -> None:
    import dray

    with dray.connect(uri(port) + "?ssl-mode=DISABLED") as connection:
        written = connection.write("lineitem", parquet, mode=mode, partitions=partitions)
        print(f"#   {written}", file=sys.stderr)


def mariadb(port: int, csv: Path) -> None:
    statement = (
        f"LOAD DATA LOCAL INFILE '{csv}' INTO TABLE lineitem CHARACTER SET utf8mb4 "
        "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES"
    )
    subprocess.run(
        [
            "mariadb",
            "--no-defaults",
            "--local-infile=1",
            f"-h{HOST}",
            f"-P{port}",
            f"-u{USER}",
            f"-p{PASSWORD}",
            DATABASE,
            "-e",
            statement,
        ],
        check=True,
    )


def pymysql(port: int, parquet: Path) -> None:
    from pymysql import connect

    table = pq.read_table(parquet)
    insert = f"INSERT INTO lineitem VALUES ({', '.join(['%s'] * table.num_columns)})"
    with connect(host=HOST, port=port, user=USER, password=PASSWORD, database=DATABASE) as server:
        for batch in table.to_batches(max_chunksize=10_000):
            columns = (column.to_pylist() for column in batch.columns)
            server.cursor().executemany(insert, list(zip(*columns, strict=True)))
        server.commit()


def pandas(port: int, parquet: Path) -> None:
    import sqlalchemy
    from pandas import read_parquet

    frame = read_parquet(parquet)
    engine = sqlalchemy.create_engine(uri(port).replace("mysql://", "mysql+pymysql://"))
    with engine.begin() as server:
        frame.to_sql("lineitem", server, if_exists="append", index=False, chunksize=10_000)


def main() -> None:
    given = options()
    with tempfile.TemporaryDirectory(prefix="dray-lab-mysql-") as name:
        folder = Path(name)
        lineitem = Lineitem.of(0.3)
        table = plain(pq.ParquetFile(lineitem.parquet()).read().slice(0, given.rows))
        parquet, csv = folder / "lineitem.parquet", folder / "lineitem.csv"
        pq.write_table(table, parquet)
        pyarrow.csv.write_csv(table, csv)
        server = MariaServer(Setting(lineitem, race.default_dray(), folder, START_S), [])
        try:
            server.start()
            compare(given, server, parquet, csv)
        finally:
            server.stop()


def plain(table: pa.Table) -> pa.Table:
    """The same table with strings that pyarrow writes as CSV."""
    fields = (
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in table.schema
    )
    return table.cast(pa.schema(fields))


def compare(given: argparse.Namespace, server: MariaServer, parquet: Path, csv: Path) -> None:
    ways: dict[str, Callable[[], None]] = {
        "dray-load": lambda: dray_write(server.port, parquet),
        "dray-insert": lambda: dray_write(server.port, parquet),
        "dray-create": lambda: dray_write(server.port, parquet, "replace"),
        "dray-create-2": lambda: dray_write(server.port, parquet, "replace", 2),
        "mariadb": lambda: mariadb(server.port, csv),
        "pymysql": lambda: pymysql(server.port, parquet),
        "pandas": lambda: pandas(server.port, parquet),
    }
    found: dict[str, list[float]] = {way: [] for way in given.ways.split(",")}
    for number, way in itertools.product(range(given.rounds), found):
        if way in SLOW and number > 0:
            continue
        server.sql(
            f"DROP TABLE IF EXISTS lineitem; {LINEITEM}; "
            f"SET GLOBAL local_infile = {'OFF' if way == 'dray-insert' else 'ON'}"
        )
        began = time.perf_counter()
        ways[way]()
        found[way].append(time.perf_counter() - began)
        rows = int(server.sql("SELECT count(*) FROM lineitem"))
        assert rows == given.rows, f"{way} has written {rows} of {given.rows} rows"
        print(f"# {way}: {found[way][-1]:.2f} s", file=sys.stderr, flush=True)
    version = server.sql("SELECT version()").strip()
    print(f"\nlineitem, {given.rows:,} rows, into MariaDB {version}\n")
    print("| way | median s | fastest–slowest |\n|---|---:|---:|")
    for way, seconds in found.items():
        median = statistics.median(seconds)
        print(f"| {way} | {median:.2f} | {min(seconds):.2f}–{max(seconds):.2f} |")


if __name__ == "__main__":
    main()
