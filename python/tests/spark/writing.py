"""What the tests of writing share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def save(frame: DataFrame, url: str, table: str, mode: str = "append", **options: object) -> None:
    """Writes a frame into a table by these options."""
    writer = frame.write.format("dray").option("url", url).option("dbtable", table).mode(mode)
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save()


def made_by(
    spark: SparkSession, count: int, make: Callable[[int, Iterator[int]], Iterator[int]]
) -> DataFrame:
    """A frame of so many rows in two partitions, which a function makes in the task."""
    numbers = spark.sparkContext.range(count, numSlices=2).mapPartitionsWithIndex(make)
    return spark.createDataFrame(numbers.map(lambda number: (number,)), "id bigint")


def rows(postgres: PostgresServer, sql: str) -> list[tuple[object, ...]]:
    """What the server itself answers."""
    with postgres.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(sql).fetchall()


def unfinished(postgres: PostgresServer) -> list[str]:
    """The staging tables that there are."""
    sql = "SELECT oid::regclass::text FROM pg_class WHERE relname LIKE 'dray_unfinished_%'"
    return [str(name) for (name,) in rows(postgres, sql)]
