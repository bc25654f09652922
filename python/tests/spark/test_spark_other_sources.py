"""Databases behind a Dray server whose SQL the connector does not know."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from mysql_server import DATABASE, PASSWORD, USER, MariaServer
from reading import failure, load, partitions
from relay_server import Relay, relay, sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "CREATE TABLE notes (id integer, name varchar(9), word varchar(9))"
ROWS = [(1, "one", "eins"), (2, "two", None), (3, None, "drei")]
INSERT = "INSERT INTO notes VALUES (1, 'one', 'eins'), (2, 'two', NULL), (3, NULL, 'drei')"
GIVEN = {
    "dbtable": {"dbtable": "notes"},
    "query": {"query": "SELECT id, name, word FROM notes ORDER BY id;"},
}


@pytest.fixture(scope="module")
def others(mariadb: MariaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    path = tmp_path_factory.mktemp("sqlite") / "notes.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{TABLE}; {INSERT};")
    mariadb.run("DROP TABLE IF EXISTS notes", TABLE, INSERT)
    # In MariaDB, a name in double quotes would be a text.
    odbc = (
        f"odbc:Driver={{MariaDB Unicode}};Server=127.0.0.1;Port={mariadb.port};UID={USER};"
        f"PWD={{{PASSWORD}}};Database={DATABASE}"
    )
    with relay(*sources(lite=f"sqlite:{path}", odbc=odbc)) as server:
        yield server


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", ["lite", "odbc"])
def test_rows(spark: SparkSession, others: Relay, name: str, given: str) -> None:
    for push_down in ("false", "true"):
        notes = load(spark, others.uri(name), pushDown=push_down, numPartitions=4, **GIVEN[given])
        assert partitions(notes) == 1
        assert [tuple(row) for row in notes.orderBy("id").collect()] == ROWS
        texts = notes.select("word", "name").orderBy("name").collect()
        assert [tuple(row) for row in texts] == [("drei", None), ("eins", "one"), (None, "two")]
        assert [row.id for row in notes.where("name = 'two'").select("id").collect()] == [2]
        assert notes.count() == 3
        assert len(notes.limit(2).collect()) == 2
        (row,) = notes.selectExpr("max(word)", "count(name)", "sum(id)").collect()
        assert tuple(row) == ("eins", 2, 6)
        assert notes.join(notes.withColumnRenamed("name", "other"), "id").count() == 3
    explained = notes.select("name")._jdf.queryExecution().executedPlan().toString()
    statement = "SELECT * FROM notes" if given == "dbtable" else GIVEN["query"]["query"][:-1]
    assert f"dray [{statement}]" in explained


@pytest.mark.parametrize("name", ["lite", "odbc"])
def test_what_is_refused(spark: SparkSession, others: Relay, name: str) -> None:
    notes = load(spark, others.uri(name), dbtable="notes", snapshot="month end")
    assert "this database has no snapshot that several scans" in failure(notes.collect)
    missing = failure(lambda: load(spark, others.uri(name), dbtable="missing"))
    assert "missing" in missing
