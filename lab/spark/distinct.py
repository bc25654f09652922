"""Remove duplicates in Spark from a table in PostgreSQL, and sort it: by Dray, and by Spark's JDBC
source.

    python -m lab.spark.distinct --scale-factor 1 --rounds 3

It is the third experiment of the thesis in lab/objects, over the connector. Rows of lineitem are
drawn with replacement, as many as the table has, in random order. So about 37 of 100 are gone in
the end. The sums of what is left must be the server's own.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import psycopg

from lab.common import race
from lab.common.process import Failure
from lab.common.tables import table
from lab.data.lineitem import Lineitem
from lab.postgres.data import LineitemSet
from lab.postgres.server import PostgresServer
from lab.spark.bench import WARM_UPS, describe, options, running, write
from lab.spark.tpch import Way, ways

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "drawn"
KEY = ["l_orderkey", "l_linenumber"]
CHECKED = "count(*), sum(l_orderkey), sum(l_linenumber), sum(l_extendedprice)"


class DrawnSet(LineitemSet):
    """Rows of lineitem, drawn with replacement."""

    def __init__(self, lineitem: Lineitem) -> None:
        super().__init__(lineitem)
        self.name = TABLE

    def load(self, connection: psycopg.Connection) -> None:
        super().load(connection)
        count = "(SELECT count(*) FROM lineitem)"
        for statement in (
            "SELECT setseed(0.5)",
            "CREATE TEMP TABLE numbered AS "
            "SELECT row_number() OVER () AS number, line FROM lineitem AS line",
            "CREATE TEMP TABLE draws AS "
            f"SELECT row, 1 + floor(random() * {count})::bigint AS number "
            f"FROM generate_series(1, {count}) AS row",
            f"CREATE TABLE {TABLE} AS "
            "SELECT (line).* FROM draws JOIN numbered USING (number) ORDER BY row",
            "DROP TABLE numbered, draws, lineitem",
            # For JDBC's ranges.
            f"CREATE INDEX ON {TABLE} (l_orderkey)",
        ):
            connection.execute(statement)


def expected(server: PostgresServer) -> tuple[Any, ...]:
    with psycopg.connect(server.conninfo) as connection:
        text = f"SELECT {CHECKED} FROM (SELECT DISTINCT * FROM {TABLE}) AS few"
        found = connection.execute(text).fetchone()
    if found is None:
        raise Failure(f"{TABLE} has no sums")
    return found


def without_duplicates(frame: DataFrame) -> DataFrame:
    return frame.dropDuplicates().sort(KEY)


def check(way: Way, wanted: tuple[Any, ...]) -> None:
    (found,) = without_duplicates(way.load(TABLE)).selectExpr(*CHECKED.split(", ")).collect()
    if tuple(found) != wanted:
        raise Failure(f"{way.name} has {tuple(found)}, expected {wanted}")


def measure(tried: list[Way], rounds: int) -> dict[str, list[float]]:
    """Seconds of each way. The first rounds do not count."""
    found: dict[str, list[float]] = {way.name: [] for way in tried}
    for number in range(rounds + WARM_UPS):
        for way in random.Random(number).sample(tried, len(tried)):
            start = time.perf_counter()
            rows = without_duplicates(way.load(TABLE))
            rows.write.format("noop").mode("overwrite").save()
            seconds = time.perf_counter() - start
            print(f"# {way.name}: {seconds:.2f} s", file=sys.stderr, flush=True)
            if number >= WARM_UPS:
                found[way.name].append(seconds)
    return found


def as_markdown(described: dict[str, Any], found: dict[str, list[float]]) -> str:
    jdbc = statistics.median(found["JDBC"])
    content = [["", "median s", "fastest–slowest", "of JDBC's"]]
    for name, times in found.items():
        median = statistics.median(times)
        spread = f"{min(times):.2f}–{max(times):.2f}"
        content.append([name, f"{median:.2f}", spread, f"{median / jdbc:.2f}"])
    rows, left = described["rows"], described["left"]
    lines = [f"# Duplicates removed and sorted in Spark: {rows:,} rows, of which {left:,} stay", ""]
    lines += [described["note"], "", *table(content, texts=1), "", f"`{described['command']}`"]
    return "\n".join(lines) + "\n"


def main() -> int:
    given = options("Remove duplicates in Spark from a table in PostgreSQL, and sort it.")
    try:
        described = describe(given)
        lineitem = Lineitem.of(given.scale_factor)
        with (
            race.arena(given) as setting,
            running(given, setting, [DrawnSet(lineitem)]) as (server, spark, _),
        ):
            tried = ways(spark, server, given.parts, {TABLE: KEY[0]})
            wanted = expected(server)
            for way in tried:
                check(way, wanted)
            found = measure(tried, given.rounds)
    except Failure as failure:
        return race.fail(failure)
    described |= {"rows": lineitem.rows, "left": wanted[0]}
    described["load_average_end"] = os.getloadavg()[0]
    name = f"spark-distinct-sf{given.scale_factor:g}"
    write(name, described, found, as_markdown(described, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
