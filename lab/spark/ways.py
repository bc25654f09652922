"""Ways to read lineitem into Spark, and what each is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TYPE_CHECKING

from lab.common.process import Failure
from lab.spark import outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "lineitem"
CATALOG = "bysource"
#: Sizes of fetches of JDBC, of which the fastest is taken. The driver's own default is all rows.
FETCH_SIZES = (1_000, 10_000, 50_000)
#: What Spark itself does with columns that are there already.
PARQUET = "Spark's own Parquet files, cached by the kernel"
EXTENSION = {"stock": "never", "extension": "always"}


@dataclass(frozen=True)
class Group:
    name: str
    heading: str


WHOLE = Group("whole", "All columns into the noop sink")
SUM = Group("sum", "SELECT sum(l_quantity): one column is read, Spark sums")
PUSHED = Group("pushed", "SELECT sum(l_quantity): the database sums, one row of each part travels")


@dataclass(frozen=True)
class Way:
    """A contender of a group. `run` returns what it has read, which is compared."""

    name: str
    label: str
    group: Group
    run: Callable[[], Decimal | int | None]


class Ways:
    """All ways, of one application and one database.

    Parameters
    ----------
    conninfo : tuple of host, port and user
        Of the PostgreSQL server, whose database is `postgres`.
    bounds : tuple of int
        The least and the greatest key.
    files : Path
        Where the table's copy in Parquet is.
    """

    def __init__(
        self,
        spark: SparkSession,
        conninfo: tuple[str, int, str],
        bounds: tuple[int, int],
        parts: int,
        pool: Pool,
        files: Path,
    ) -> None:
        self.spark = spark
        self.files = files
        host, port, self.user = conninfo
        self.uri = f"postgresql://{self.user}@{host}:{port}/postgres?sslmode=disable"
        self.jdbc_url = f"jdbc:postgresql://{host}:{port}/postgres?sslmode=disable"
        self.bounds = bounds
        self.parts = parts
        self.pool = pool
        catalog = f"spark.sql.catalog.{CATALOG}"
        for name, value in {
            "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            ".url": self.jdbc_url,
            ".driver": "org.postgresql.Driver",
            ".user": self.user,
            ".pushDownAggregate": "true",
        }.items():
            spark.conf.set(catalog + name, value)

    def jdbc(self, fetch_size: int) -> DataFrame:
        least, most = self.bounds
        options = {
            "url": self.jdbc_url,
            "driver": "org.postgresql.Driver",
            "user": self.user,
            "dbtable": TABLE,
            "partitionColumn": "l_orderkey",
            "lowerBound": least,
            "upperBound": most + 1,
            "numPartitions": self.parts,
            "fetchsize": fetch_size,
        }
        return self.spark.read.format("jdbc").options(**options).load()

    def dray(self, server: str, aggregates: str | None = None) -> DataFrame:
        """With `aggregates`, the database sums: `whole`, or `parts` by themselves."""
        options = {
            "url": self.uri,
            "dbtable": TABLE,
            "numPartitions": self.parts,
            "extension": EXTENSION[server],
            "pushDown": str(aggregates is not None).lower(),
            "aggregates": aggregates or "auto",
        }
        return self.spark.read.format("dray").options(**options).load()

    def tuning(self) -> list[Way]:
        """The sizes of JDBC's fetches."""
        return [
            Way(
                str(size),
                f"JDBC, fetchsize {size:,}",
                WHOLE,
                lambda size=size: sunk(self.jdbc(size)),
            )
            for size in FETCH_SIZES
        ]

    def all(self, fetch_size: int) -> list[Way]:
        jdbc = f"Spark's JDBC source, fetchsize {fetch_size:,}"
        found = [
            Way("jdbc-whole", jdbc, WHOLE, lambda: sunk(self.jdbc(fetch_size))),
            Way("jdbc-sum", jdbc, SUM, lambda: total(self.jdbc(fetch_size))),
            Way("jdbc-pushed", "Spark's JDBC catalog", PUSHED, self.pushed_by_jdbc),
            Way("parquet-whole", PARQUET, WHOLE, lambda: sunk(self.parquet())),
            Way("parquet-sum", PARQUET, SUM, lambda: total(self.parquet())),
        ]
        for server in EXTENSION:
            found += [
                Way(
                    f"dray-{server}-whole",
                    f"Dray, {server}",
                    WHOLE,
                    lambda server=server: sunk(self.dray(server)),
                ),
                Way(
                    f"dray-{server}-batches",
                    f"Dray, {server}, batches without rows",
                    WHOLE,
                    lambda server=server: batches(self.dray(server)),
                ),
                Way(
                    f"outside-{server}",
                    f"Dray outside of Spark, {server}",
                    WHOLE,
                    lambda server=server: self.outside(server),
                ),
                Way(
                    f"dray-{server}-sum",
                    f"Dray, {server}",
                    SUM,
                    lambda server=server: total(self.dray(server)),
                ),
                Way(
                    f"dray-{server}-pushed",
                    f"Dray, {server}",
                    PUSHED,
                    lambda server=server: pushed(self.dray(server, "whole")),
                ),
                Way(
                    f"dray-{server}-parts",
                    f"Dray, {server}, parts by themselves",
                    PUSHED,
                    lambda server=server: by_parts(self.dray(server, "parts")),
                ),
            ]
        return found

    def write_parquet(self) -> None:
        """Copy the table into files, as many as there are parts."""
        self.dray("stock").write.parquet(str(self.files))

    def parquet(self) -> DataFrame:
        return self.spark.read.parquet(str(self.files))

    def outside(self, server: str) -> int:
        sql = f"SELECT * FROM {TABLE}"
        extension = server == "extension"
        return outside.read_all(self.pool, self.uri, sql, self.parts, extension).rows

    def pushed_by_jdbc(self) -> Decimal:
        return pushed(self.spark.table(f"{CATALOG}.public.{TABLE}"))


def sunk(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def batches(frame: DataFrame) -> None:
    """Have executors read all batches, and make no rows of them."""
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    if scan.executeColumnar().count() == 0:
        raise Failure("no batch was read")


def total(frame: DataFrame) -> Decimal:
    (row,) = frame.selectExpr("sum(l_quantity)").collect()
    found: Decimal = row[0]
    return found


def pushed(frame: DataFrame) -> Decimal:
    """The sum, if the database makes it."""
    plan = plan_of_total(frame)
    if "HashAggregate" in plan:
        raise Failure(f"the database does not sum: {plan}")
    return total(frame)


def by_parts(frame: DataFrame) -> Decimal:
    """The sum of the parts' sums, if the database makes these."""
    plan = plan_of_total(frame)
    if "each part by itself" not in plan:
        raise Failure(f"the database does not sum parts: {plan}")
    return total(frame)


def plan_of_total(frame: DataFrame) -> str:
    summed = frame.selectExpr("sum(l_quantity)")
    plan: str = summed._jdf.queryExecution().executedPlan().toString()
    return plan
