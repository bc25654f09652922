"""Reads a result once, and prints the seconds as JSON: `python -m lab.mysql.client WAY PORT SQL`.

A driver is imported before the clock starts.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial

HOST, USER, PASSWORD, DATABASE = "127.0.0.1", "lab", "lab", "lab"
ROWS_PER_FETCH = 10_000

#: Runs a statement at a port, and returns the rows.
Way = Callable[[int, str], int]


def uri(port: int) -> str:
    return f"mysql://{USER}:{PASSWORD}@{HOST}:{port}/{DATABASE}"


def dray_table(partitions: int = 1) -> Way:
    import dray

    def read(port: int, sql: str) -> int:
        with dray.connect(uri(port) + "?ssl-mode=DISABLED") as connection:
            return connection.query(sql, partitions=partitions).arrow().num_rows

    return read


def dray_stream(partitions: int = 1) -> Way:
    import dray

    def read(port: int, sql: str) -> int:
        with dray.connect(uri(port) + "?ssl-mode=DISABLED") as connection:
            result = connection.query(sql, partitions=partitions)
            return sum(batch.num_rows for batch in result.batches())

    return read


def connectorx() -> Way:
    import connectorx

    def read(port: int, sql: str) -> int:
        return connectorx.read_sql(uri(port), sql, return_type="arrow").num_rows

    return read


def arrow_odbc() -> Way:
    import arrow_odbc

    def read(port: int, sql: str) -> int:
        driver = "Driver={MariaDB Unicode};NO_CACHE=1;FORWARDONLY=1"
        batches = arrow_odbc.read_arrow_batches_from_odbc(
            sql,
            f"{driver};Server={HOST};Port={port};Uid={USER};Pwd={PASSWORD};Database={DATABASE}",
            max_text_size=1000,
        )
        return sum(batch.num_rows for batch in batches)

    return read


def pymysql_rows() -> Way:
    import pymysql.cursors

    def read(port: int, sql: str) -> int:
        connection = pymysql.connect(
            host=HOST, port=port, user=USER, password=PASSWORD, database=DATABASE
        )
        with connection, connection.cursor(pymysql.cursors.SSCursor) as cursor:
            return rows_of(cursor, sql)

    return read


def mysqlclient_rows() -> Way:
    import MySQLdb
    import MySQLdb.cursors

    def read(port: int, sql: str) -> int:
        connection = MySQLdb.connect(
            host=HOST, port=port, user=USER, password=PASSWORD, database=DATABASE
        )
        return rows_of(connection.cursor(MySQLdb.cursors.SSCursor), sql)

    return read


def connector_rows() -> Way:
    import mysql.connector

    def read(port: int, sql: str) -> int:
        connection = mysql.connector.connect(
            host=HOST, port=port, user=USER, password=PASSWORD, database=DATABASE
        )
        # In C if the wheel has it, else in Python.
        return rows_of(connection.cursor(), sql)

    return read


def pandas_frame() -> Way:
    import pandas
    import sqlalchemy

    def read(port: int, sql: str) -> int:
        engine = sqlalchemy.create_engine(uri(port).replace("mysql://", "mysql+pymysql://"))
        return len(pandas.read_sql(sqlalchemy.text(sql), engine.connect()))

    return read


def rows_of(cursor, sql: str) -> int:
    cursor.execute(sql)
    count = 0
    while rows := cursor.fetchmany(ROWS_PER_FETCH):
        count += len(rows)
    return count


WAYS = {
    "dray": dray_table,
    "dray-stream": dray_stream,
    "dray-2": partial(dray_table, 2),
    "dray-2-stream": partial(dray_stream, 2),
    "connectorx": connectorx,
    "arrow-odbc": arrow_odbc,
    "pymysql": pymysql_rows,
    "mysqlclient": mysqlclient_rows,
    "mysql-connector": connector_rows,
    "pandas": pandas_frame,
}


def main(way: str, port: str, sql: str) -> None:
    read = WAYS[way]()
    began, before = time.perf_counter(), time.process_time()
    rows = read(int(port), sql)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "rows": rows, "cpu_s": cpu_s, "peak_bytes": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
