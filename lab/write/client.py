"""Writes lineitem once from an Arrow table in memory, and prints the seconds as JSON.

python -m lab.write.client WAY CONNINFO PARQUET ROWS
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TABLE = "lineitem"


def dray(uri: str, table: pa.Table) -> Callable[[], Any]:
    import dray as package

    connection = package.connect(uri)
    return lambda: connection.write(TABLE, table, mode="append")


def dray_new(connections: int) -> Callable[[str, pa.Table], Callable[[], Any]]:
    """Replaces the table, over so many connections."""

    def way(uri: str, table: pa.Table) -> Callable[[], Any]:
        import dray as package

        connection = package.connect(uri)
        return lambda: connection.write(TABLE, table, mode="replace", partitions=connections)

    return way


def adbc_postgresql(uri: str, table: pa.Table) -> Callable[[], Any]:
    from adbc_driver_postgresql import dbapi

    connection = dbapi.connect(uri)

    def write() -> None:
        with connection.cursor() as cursor:
            cursor.adbc_ingest(TABLE, table, mode="append")
        connection.commit()

    return write


def duckdb(uri: str, table: pa.Table) -> Callable[[], Any]:
    import duckdb as package
    import duckdb_extension_postgres_scanner as extension

    (path,) = Path(next(iter(extension.__path__))).rglob("*.duckdb_extension")
    connection = package.connect(config={"threads": 1})
    connection.execute(f"LOAD '{path}'")
    connection.execute(f"ATTACH '{uri}' AS pg (TYPE postgres)")
    connection.register("source", table)
    return lambda: connection.execute(f"INSERT INTO pg.{TABLE} SELECT * FROM source")


def pandas_multi(uri: str, table: pa.Table) -> Callable[[], Any]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri.replace("postgresql://", "postgresql+psycopg2://"))
    frame = table.to_pandas()
    return lambda: frame.to_sql(
        TABLE, engine, if_exists="append", index=False, method="multi", chunksize=1000
    )


WAYS = {
    "dray": dray,
    "new1": dray_new(1),
    "new2": dray_new(2),
    "new3": dray_new(3),
    "adbc": adbc_postgresql,
    "duckdb": duckdb,
    "pandas": pandas_multi,
}


def main() -> None:
    way, uri, path, rows = sys.argv[1:]
    table = pq.read_table(path).slice(0, int(rows)).combine_chunks()
    write = WAYS[way](uri, table)
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    write()
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    grown = (after.ru_maxrss - before.ru_maxrss) / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "grown_mib": grown}))


if __name__ == "__main__":
    main()
