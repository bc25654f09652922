"""A table that tests write, with rows that are slow to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hosted import Database
    from pyspark.sql import DataFrame, SparkSession

TASKS = 4
#: Ten megabytes for each task.
ROWS = TASKS * 10_000
LETTERS = 1024
DDL = "DROP TABLE IF EXISTS written; CREATE TABLE written (id bigint, filler text)"
WHOLE = (ROWS, ROWS, ROWS * (ROWS - 1) // 2, ROWS * LETTERS)
NOTHING = (0, 0, None, None)


def made(spark: SparkSession) -> DataFrame:
    filler = f"repeat(md5(CAST(id AS string)), {LETTERS // 32}) AS filler"
    return spark.range(0, ROWS, 1, TASKS).selectExpr("id", filler)


def write(spark: SparkSession, uri: str) -> None:
    writer = made(spark).write.format("dray").option("url", uri).option("dbtable", "written")
    # Rows are on their way soon.
    writer.option("batchBytes", "100000").mode("append").save()


def rows(database: Database) -> tuple[object, ...]:
    sql = "SELECT count(*), count(DISTINCT id), sum(id), sum(length(filler)) FROM written"
    with database.connect() as connection:
        (row,) = connection.execute(sql).fetchall()
        return tuple(row)


def unfinished(database: Database) -> list[str]:
    """The staging tables that there are."""
    sql = "SELECT oid::regclass::text FROM pg_class WHERE relname LIKE 'dray_unfinished_%'"
    with database.connect() as connection:
        return [name for (name,) in connection.execute(sql).fetchall()]


def is_writing(database: Database, address: str, count: int) -> bool:
    """Whether a host writes into a staging table, which has so many bytes already."""
    sql = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE host(client_addr) = %s "
        "AND state = 'active' AND query LIKE 'COPY %%') AND %s < (SELECT sum(pg_relation_size(oid))"
        " FROM pg_class WHERE relname LIKE 'dray_unfinished_%%' AND relkind = 'r')"
    )
    with database.connect() as connection:
        return connection.execute(sql, [address, count]).fetchone() == (True,)


def has_ended(database: Database) -> bool:
    """Whether no session writes any more."""
    return not [state for _, state in database.sessions() if state != "idle"]
