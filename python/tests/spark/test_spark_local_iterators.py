"""Iterators, for which Spark runs a job for each part, and other jobs that read some parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import PostgresServer
from reading import failure, load, partitions, snapshots, wait_for
from relay_server import Relay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 8000
PARTS = 4
#: Rows move to the end of the table, which grows.
CHANGE = (
    "UPDATE iterated SET version = version + 1",
    "INSERT INTO iterated SELECT 0, version, filler FROM iterated WHERE id BETWEEN 1 AND 2000",
)


def rows_of_java(frame: DataFrame) -> Iterator[tuple[Any, ...]]:
    rows = frame._jdf.toLocalIterator()
    while rows.hasNext():
        row = rows.next()
        yield row.get(0), row.get(1)


ITERATORS: dict[str, Callable[[DataFrame], Iterator[tuple[Any, ...]]]] = {
    "frame": lambda frame: frame.toLocalIterator(),
    "prefetched": lambda frame: frame.toLocalIterator(prefetchPartitions=True),
    "rdd": lambda frame: frame.rdd.toLocalIterator(),
    "java": rows_of_java,
    "zipped": lambda frame: (row for row, _ in frame.rdd.zipWithIndex().toLocalIterator()),
}


@pytest.fixture(autouse=True)
def _table(postgres: PostgresServer) -> Iterator[None]:
    wait_for(lambda: snapshots(postgres) == 0)
    postgres.run(
        "DROP TABLE IF EXISTS iterated",
        "CREATE TABLE iterated AS SELECT i AS id, 0 AS version, repeat('x', 600) AS filler "
        f"FROM generate_series(1, {ROWS}) i",
        "ANALYZE iterated",
    )
    yield
    wait_for(lambda: snapshots(postgres) == 0)


@pytest.fixture(params=["direct", "relayed"])
def url(request: pytest.FixtureRequest, postgres: PostgresServer) -> str:
    if request.param == "direct":
        return postgres.uri()
    server: Relay = request.getfixturevalue("server")
    return server.uri("pg")


def scan(spark: SparkSession, url: str, **options: object) -> DataFrame:
    given = {"dbtable": "iterated", "numPartitions": PARTS, "pushDown": "false", **options}
    frame = load(spark, url, **given).select("id", "version")
    assert partitions(frame) == PARTS
    return frame


@pytest.mark.parametrize("kind", list(ITERATORS))
def test_all_parts_have_one_snapshot(
    spark: SparkSession, postgres: PostgresServer, url: str, kind: str
) -> None:
    rows = ITERATORS[kind](scan(spark, url))
    found = [tuple(next(rows))]
    postgres.run(*CHANGE)
    # Long after the snapshots of plans that nothing reads are given up.
    time.sleep(7)
    assert snapshots(postgres) >= 1
    found += [tuple(row) for row in rows]
    assert sorted(found) == [(i, 0) for i in range(1, ROWS + 1)]
    # All is read: the snapshot is not needed any more.
    wait_for(lambda: snapshots(postgres) == 0)


def test_one_after_the_other(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = scan(spark, postgres.uri())
    for version in range(2):
        for kind in ("frame", "rdd"):
            rows = ITERATORS[kind](frame)
            assert sorted(map(tuple, rows)) == [(i, version) for i in range(1, ROWS + 1)]
            wait_for(lambda: snapshots(postgres) == 0)
        postgres.run("UPDATE iterated SET version = version + 1")


@pytest.mark.parametrize("kind", ["frame", "rdd", "java"])
def test_a_lease_that_is_over(spark: SparkSession, postgres: PostgresServer, kind: str) -> None:
    frame = scan(spark, postgres.uri(), lease=4)
    rows = ITERATORS[kind](frame)
    first = tuple(next(rows))
    time.sleep(6)
    wait_for(lambda: snapshots(postgres) == 0)
    postgres.run(*CHANGE)
    rest: list[tuple[Any, ...]] = []
    said = failure(lambda: rest.extend(tuple(row) for row in rows))
    assert "as for toLocalIterator()" in said and "option lease" in said
    # The first part, and no row of another snapshot.
    assert first[1] == 0 and {row[1] for row in rest} <= {0}
    # A new iterator, and all parts at once, have a new snapshot.
    again = scan(spark, postgres.uri())
    assert {row.version for row in again.toLocalIterator()} == {1}
    assert {row.version for row in frame.rdd.collect()} == {1}


def test_an_iterator_that_is_given_up(spark: SparkSession, postgres: PostgresServer) -> None:
    frame = scan(spark, postgres.uri(), lease=8)
    rows = frame.toLocalIterator()
    next(rows)
    del rows
    time.sleep(1)
    assert snapshots(postgres) == 1
    # All that its frame reads meanwhile has the same snapshot, and the last part ends it.
    postgres.run("UPDATE iterated SET version = 1")
    assert {row.version for row in frame.collect()} == {0}
    wait_for(lambda: snapshots(postgres) == 0)
    assert {row.version for row in frame.collect()} == {1}
    # Otherwise the lease does.
    rows = frame.toLocalIterator()
    next(rows)
    wait_for(lambda: snapshots(postgres) == 0)


def test_enough_rows(spark: SparkSession, postgres: PostgresServer) -> None:
    """What has enough rows before the end of a part does not keep its snapshot."""
    frame = scan(spark, postgres.uri(), batchRows=100)
    rdd = frame._jdf.javaRDD()
    for version in range(2):
        # Of the first part, and of several.
        assert len(rdd.take(3)) == 3
        wait_for(lambda: snapshots(postgres) == 0)
        taken = rdd.take(ROWS // PARTS + 500)
        assert {taken[i].get(1) for i in range(0, len(taken), 100)} == {version}
        wait_for(lambda: snapshots(postgres) == 0)
        # Python may have got the whole first part.
        assert len(frame.rdd.take(3)) == 3
        assert {row.version for row in frame.rdd.take(ROWS // PARTS + 500)} == {version}
        assert not frame.rdd.isEmpty()
        wait_for(lambda: snapshots(postgres) == 0)
        assert len(frame.where("id % 7 = 3").take(800)) == 800
        assert len(frame.where("id % 7 = 3").head(3)) == 3
        assert frame.where("id % 7 = 3").limit(500).count() == 500
        wait_for(lambda: snapshots(postgres) == 0)
        postgres.run("UPDATE iterated SET version = version + 1")


def test_a_union(spark: SparkSession, postgres: PostgresServer) -> None:
    """Each scan has one snapshot, also if its parts come after those of others."""
    one, two = (scan(spark, postgres.uri()) for _ in range(2))
    union = one.selectExpr("1 AS scan", "*").union(two.selectExpr("2 AS scan", "*"))
    found = []
    for number, row in enumerate(union.toLocalIterator()):
        found.append(tuple(row))
        if number % 3000 == 1000:
            postgres.run("UPDATE iterated SET version = version + 1")
    versions: dict[int, set[int]] = {1: set(), 2: set()}
    for which, _, version in found:
        versions[which].add(version)
    assert sorted((which, i) for which, i, _ in found) == [
        (which, i) for which in (1, 2) for i in range(1, ROWS + 1)
    ]
    assert versions[1] == {0} and len(versions[2]) == 1


def test_a_cached_table(spark: SparkSession, postgres: PostgresServer) -> None:
    # Of a frame that was not planned before.
    frame = scan(spark, postgres.uri(), lease=6).where("id > 0").cache()
    assert frame.count() == ROWS
    rows = frame.toLocalIterator()
    next(rows)
    time.sleep(7)
    postgres.run(*CHANGE)
    assert len({row.id for row in rows}) >= ROWS - 1
    frame.unpersist()
