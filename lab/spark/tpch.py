"""TPC-H's queries in Spark, whose tables are in PostgreSQL: by Dray, and by Spark's JDBC source.

    python -m lab.spark.tpch --scale-factor 0.1 --rounds 3

Each query has the same rows by each way, or the run fails.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from lab.common import race
from lab.common.process import Failure
from lab.common.tables import table
from lab.data.table import cache_folder
from lab.postgres.data import COPY_BYTES, DataSet, copy
from lab.postgres.server import USER, PostgresServer
from lab.spark.bench import ADDRESS, describe, options, running, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The queries of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "tests"))
from tpch_queries import QUERIES  # noqa: E402

FETCH_SIZE = 10_000
#: Tables that have several parts, and the keys by whose ranges JDBC divides them.
DIVIDED = {
    "lineitem": "l_orderkey",
    "orders": "o_orderkey",
    "partsupp": "ps_partkey",
    "customer": "c_custkey",
    "part": "p_partkey",
}
#: Of all tables. Spark would see blanks at the end of `char`, and the queries have none.
COLUMNS = {
    "region": "r_regionkey int PRIMARY KEY, r_name text, r_comment text",
    "nation": "n_nationkey int PRIMARY KEY, n_name text, n_regionkey int, n_comment text",
    "supplier": "s_suppkey int PRIMARY KEY, s_name text, s_address text, s_nationkey int, "
    "s_phone text, s_acctbal numeric(15,2), s_comment text",
    "part": "p_partkey int PRIMARY KEY, p_name text, p_mfgr text, p_brand text, p_type text, "
    "p_size int, p_container text, p_retailprice numeric(15,2), p_comment text",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15,2), "
    "ps_comment text, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "customer": "c_custkey int PRIMARY KEY, c_name text, c_address text, c_nationkey int, "
    "c_phone text, c_acctbal numeric(15,2), c_mktsegment text, c_comment text",
    "orders": "o_orderkey int PRIMARY KEY, o_custkey int, o_orderstatus text, "
    "o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text, "
    "o_shippriority int, o_comment text",
    "lineitem": "l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, "
    "l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), "
    "l_tax numeric(15,2), l_returnflag text, l_linestatus text, l_shipdate date, "
    "l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, "
    "l_comment text, PRIMARY KEY (l_orderkey, l_linenumber)",
}


class TpchSet(DataSet):
    """A table of TPC-H from the CSV of its generator."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, f"TPC-H {name}", DIVIDED.get(name, ""), 256)
        self.path = folder / f"{name}.csv"

    def load(self, connection: psycopg.Connection) -> None:
        connection.execute(f"CREATE TABLE {self.name} ({COLUMNS[self.name]})")
        with self.path.open("rb") as source:
            copy(connection, self.name, "HEADER", iter(lambda: source.read(COPY_BYTES), b""))


def generated(scale_factor: float) -> list[TpchSet]:
    """All tables, which are generated on the first call."""
    folder = cache_folder() / f"sf{scale_factor:g}" / "tpch"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            made = Path(partial) / "made"
            generator = Path(sys.executable).parent / "tpchgen-cli"
            words = [generator, "csv", "-s", f"{scale_factor:g}", "-o", made, "-q"]
            try:
                subprocess.run(words, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise Failure(f"cannot generate TPC-H: {error}") from error
            made.rename(folder)
    return [TpchSet(name, folder) for name in COLUMNS]


@dataclass(frozen=True)
class Way:
    name: str
    load: Callable[[str], DataFrame]


def ways(
    spark: SparkSession, server: PostgresServer, parts: int, divided: dict[str, str]
) -> list[Way]:
    """Ways to load tables. `divided` has the keys of those that have several parts."""
    address = f"{ADDRESS}:{server.port}/postgres?sslmode=disable"
    most = keys(server, divided)

    def jdbc(name: str) -> DataFrame:
        reader = (
            spark.read.format("jdbc")
            .option("url", f"jdbc:postgresql://{address}")
            .options(driver="org.postgresql.Driver", user=USER, dbtable=name, fetchsize=FETCH_SIZE)
        )
        if name in divided:
            reader = reader.options(
                partitionColumn=divided[name],
                lowerBound=1,
                upperBound=most[name] + 1,
                numPartitions=parts,
            )
        return reader.load()

    def dray(extension: str, push_down: str) -> Callable[[str], DataFrame]:
        def load(name: str) -> DataFrame:
            return (
                spark.read.format("dray")
                .option("url", f"postgresql://{USER}@{address}")
                .options(dbtable=name, numPartitions=parts if name in divided else 1)
                .options(extension=extension, pushDown=push_down)
                .load()
            )

        return load

    return [
        Way("JDBC", jdbc),
        Way("Dray, stock", dray("never", "false")),
        Way("Dray, stock, pushDown", dray("never", "true")),
        Way("Dray, extension", dray("always", "false")),
        Way("Dray, extension, pushDown", dray("always", "true")),
    ]


def keys(server: PostgresServer, divided: dict[str, str]) -> dict[str, int]:
    """The greatest key of each table that is divided."""
    with psycopg.connect(server.conninfo) as connection:
        return {
            name: connection.execute(f"SELECT max({key}) FROM {name}").fetchone()[0]  # type: ignore[index]
            for name, key in divided.items()
        }


def comparable(rows: list[Any]) -> list[tuple[object, ...]]:
    """Rows in an order of their own, with decimals of one scale."""
    plain = [
        tuple(value.normalize() if isinstance(value, Decimal) else value for value in row)
        for row in rows
    ]
    return sorted(plain, key=repr)


def same(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> bool:
    """Whether rows are equal. Sums of floats depend on their order."""

    def equal(a: object, b: object) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-9)
        return a == b

    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(equal, a, b)) for a, b in zip(one, other, strict=True)
    )


def measure(
    spark: SparkSession, tried: list[Way], rounds: int
) -> dict[int, dict[str, list[float]]]:
    """Seconds of each query by each way. The first round does not count."""
    found: dict[int, dict[str, list[float]]] = {number: {} for number in QUERIES}
    for number, query in QUERIES.items():
        answers = {}
        for turn in range(rounds + 1):
            for way in tried if turn % 2 == 0 else reversed(tried):
                for name in COLUMNS:
                    way.load(name).createOrReplaceTempView(name)
                start = time.perf_counter()
                rows = spark.sql(query).collect()
                seconds = time.perf_counter() - start
                answers.setdefault(way.name, comparable(rows))
                if turn > 0:
                    found[number].setdefault(way.name, []).append(seconds)
        for name, answer in answers.items():
            if not same(answer, answers[tried[0].name]):
                raise Failure(f"query {number} has other rows by {name} than by {tried[0].name}")
        medians = {name: statistics.median(times) for name, times in found[number].items()}
        print(f"# query {number}: {medians}", file=sys.stderr, flush=True)
    return found


def as_markdown(
    described: dict[str, Any], names: list[str], found: dict[int, dict[str, list[float]]]
) -> str:
    content = [["query", *names]]
    totals = dict.fromkeys(names, 0.0)
    for number, times in found.items():
        medians = {name: statistics.median(times[name]) for name in names}
        content.append([str(number), *(f"{medians[name]:.2f}" for name in names)])
        for name in names:
            totals[name] += medians[name]
    content.append(["all", *(f"{totals[name]:.2f}" for name in names)])
    lines = [f"# TPC-H from PostgreSQL in Spark, scale factor {described['scale_factor']:g}", ""]
    lines += [f"Medians in seconds. {described['note']}", "", *table(content, texts=1), ""]
    lines += [f"`{described['command']}`"]
    return "\n".join(lines) + "\n"


def main() -> int:
    given = options("Run TPC-H's queries in Spark over tables in PostgreSQL.")
    try:
        described = describe(given) | {"scale_factor": given.scale_factor}
        sets: list[DataSet] = [*generated(given.scale_factor)]
        with (
            race.arena(given) as setting,
            running(given, setting, sets) as (server, spark, _),
        ):
            tried = ways(spark, server, given.parts, DIVIDED)
            found = measure(spark, tried, given.rounds)
    except Failure as failure:
        return race.fail(failure)
    described["load_average_end"] = os.getloadavg()[0]
    markdown = as_markdown(described, [way.name for way in tried], found)
    write(f"spark-tpch-sf{given.scale_factor:g}", described, found, markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
