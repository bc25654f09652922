"""Lazy frames of Polars: what is asked of the source, and that answers don't depend on it."""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet
import pytest
import random_queries
from polars.testing import assert_frame_equal
from postgres_server import PostgresServer
from server import Server

import dray
from dray._predicate import condition

ROWS = 3_000
ROUNDS = int(os.environ.get("DRAY_TEST_ROUNDS", "1")) * 60
FOREVER = "SELECT value AS v FROM generate_series(1, 1000000000000)"
col = pl.col


@pytest.fixture(scope="module")
def table() -> pyarrow.Table:
    return random_queries.table(random.Random(11), ROWS)


@pytest.fixture(scope="module")
def dray_uri(table: pyarrow.Table) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    pyarrow.parquet.write_table(table, folder / "t.parquet", row_group_size=500)
    server = Server(folder, str(folder / "t.parquet"))
    yield server.unix
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def postgres_uri(table: pyarrow.Table, postgres: PostgresServer) -> str:
    with postgres.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(
            "CREATE TABLE t (id bigint, k integer, i8 smallint, i16 smallint, i32 integer, "
            "i64 bigint, d numeric(12,2), f double precision, s text, c char(3), b boolean, "
            "day date, ts timestamp)"
        )
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))
    return postgres.uri()


class Predicates:
    """Random predicates, most of which a source can be asked for."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def integer(self) -> pl.Expr:
        r = self.rng
        name = r.choice(random_queries.INTEGERS)
        value = r.choice([r.randrange(-20, 20), r.randrange(-130, 130), 10**6, -(10**9), 2**40])
        column = col(name)
        return r.choice(
            [
                column > value,
                column >= value,
                column < value,
                column <= value,
                column == value,
                column != value,
                value < column,
                column.is_between(
                    value, value + 50, closed=r.choice(["both", "left", "right", "none"])
                ),
                column.is_in([value, 1, 2]),
            ]
        )

    def date(self) -> pl.Expr:
        day = random_queries.FIRST_DAY + dt.timedelta(self.rng.randrange(-10, 1010))
        column = col("day")
        return self.rng.choice(
            [column > day, column <= day, column == day, column != day, day >= column]
        )

    def text(self) -> pl.Expr:
        words = [
            "",
            "a",
            "A",
            "ab",
            "b%",
            "b_c",
            "ä",
            "éclair",
            "a'b",
            "日本",
            " pad ",
            "x",
            "a\\b",
        ]
        column, word = col(self.rng.choice("sc")), self.rng.choice(words)
        return self.rng.choice(
            [column == word, column != word, column < word, column >= word, column == word + " "]
        )

    def other(self) -> pl.Expr:
        moment = dt.datetime(2021, 6, 1, 12)
        return self.rng.choice(
            [
                col("f") > 0.5,
                col("d") <= 100,
                col("ts") >= moment,
                col("s").str.starts_with("a"),
                col("k").eq_missing(3),
                col("i32") + 1 > col("i64"),
                col("b"),
                ~col("b"),
                col("b") == True,  # noqa: E712
            ]
        )

    def predicate(self, depth: int = 3) -> pl.Expr:
        r = self.rng
        if depth == 0 or r.random() < 0.2:
            null = col(r.choice(random_queries.COLUMNS))
            leaves: list[Callable[[], pl.Expr]] = [
                self.integer, self.integer, self.date, self.text, self.other, null.is_null,
                null.is_not_null,
            ]  # fmt: skip
            return r.choice(leaves)()
        left = self.predicate(depth - 1)
        if r.random() < 0.25:
            return ~left
        right = self.predicate(depth - 1)
        return left & right if r.random() < 0.5 else left | right


def check_predicates(uri: str, **options: Any) -> None:
    """Random predicates give the same rows as on a frame that is in memory."""
    seeds = [int(os.environ["DRAY_TEST_SEED"])] if "DRAY_TEST_SEED" in os.environ else range(ROUNDS)
    lazy = dray.scan(uri, "t", **options)
    # The source's own values: char(n) has blanks.
    whole = lazy.collect().sort("id")
    assert whole.height == ROWS
    for seed in seeds:
        predicates = Predicates(seed)
        predicate = predicates.predicate()
        names = predicates.rng.sample(random_queries.COLUMNS, 3)
        want = whole.filter(predicate).select("id", *names)
        got = lazy.filter(predicate).select("id", *names).collect().sort("id")
        assert got.equals(want), f"DRAY_TEST_SEED={seed}: {predicate}"


def test_predicates_of_files(dray_uri: str) -> None:
    check_predicates(dray_uri)


def test_predicates_of_postgres(postgres_uri: str, extension: bool) -> None:
    check_predicates(postgres_uri, extension="auto" if extension else False)


def translated(predicate: pl.Expr, **kinds: Any) -> str | None:
    """What a source would be asked for, of columns of these kinds."""
    types: dict[str, Any] = {
        "integer": pl.Int64, "text": pl.String, "loose text": pl.String, "date": pl.Date,
        "boolean": pl.Boolean, "other": pl.Float64,
    }  # fmt: skip
    found: list[str | None] = []

    def source(columns: Any, predicate: pl.Expr | None, rows: Any, batch: Any) -> Any:
        found.append(None if predicate is None else condition(predicate, kinds))
        yield pl.DataFrame(schema=schema)

    schema = {name: types[kind] for name, kind in kinds.items()}
    pl.io.plugins.register_io_source(source, schema=schema).filter(predicate).collect()
    return found[0]


def test_conditions() -> None:
    for predicate, want in [
        (col("i") > 5, '("i" > (5))'),
        (5 > col("i"), '("i" < (5))'),
        (col("i").is_between(-1, 3, closed="left"), '("i" >= (-1) AND "i" < (3))'),
        (col("t") == "it's", "(\"t\" = 'it''s')"),
        (col("t") > "x", "(\"t\" > 'x')"),
        (col("t") == "a\\b", None),
        (col("l") == "x", "(\"l\" = 'x')"),
        (col("l") != "x", None),
        (col("l") < "x", None),
        (~((col("l") == "x") | (col("i") == 1)), '("i" <> (1))'),
        (col("d") < dt.date(2024, 2, 29), "(\"d\" < DATE '2024-02-29')"),
        (col("b") & ~col("b"), '("b" AND (NOT "b"))'),
        (col("f").is_null() & (col("f") > 0.5), '("f" IS NULL)'),
        (col("f").is_null() | (col("f") > 0.5), None),
    ]:
        got = translated(
            predicate,
            i="integer", t="text", l="loose text", d="date", b="boolean", f="other",
        )  # fmt: skip
        # Polars may order the halves of a conjunction.
        assert got == want, predicate
    assert translated(col('a"b') == 1, **{'a"b': "integer"}) == '("a""b" = (1))'


def test_statements(filled: PostgresServer) -> None:
    """The source is asked for what is needed, and no more."""
    start = filled.log_bytes()
    lazy = dray.scan(filled.uri(), "public.numbers", extension=False)
    assert lazy.filter(col("id") == 7).select("text").collect().rows() == [("row 7",)]
    assert lazy.head(3).collect().height == 3
    query = dray.scan(filled.uri(), sql="SELECT id, text FROM numbers; -- all", extension=False)
    assert query.filter(col("text") == "row 9").select("id").collect().rows() == [(9,)]
    sorted_down = dray.scan(filled.uri(), sql="SELECT id FROM numbers ORDER BY id DESC")
    assert sorted_down.head(2).collect()["id"].to_list() == [99_999, 99_998]
    assert sorted_down.filter(col("id") < 5).collect()["id"].to_list() == [4, 3, 2, 1, 0]
    log = filled.log(start)
    assert '"text" FROM "public"."numbers" WHERE ("id" = (7))' in log
    assert 'FROM "public"."numbers" LIMIT 3' in log
    assert "AS dray_scan WHERE (\"text\" = 'row 9')" in log


def test_head_and_filter_keep_their_order(dray_uri: str) -> None:
    ordered = dray.scan(dray_uri, sql="SELECT id, k FROM t ORDER BY id")
    whole = ordered.collect()
    for engine in ("in-memory", "streaming"):
        for lazy, want in [
            (ordered.head(10).filter(col("id") > 5), whole.head(10).filter(col("id") > 5)),
            (ordered.filter(col("id") > 5).head(10), whole.filter(col("id") > 5).head(10)),
            (ordered.slice(5, 10), whole.slice(5, 10)),
        ]:
            assert lazy.collect(engine=engine).equals(want)  # type: ignore[call-overload]
    table = dray.scan(dray_uri, "t")
    assert table.head(10).filter(col("id") >= 0).collect().height == 10
    assert table.filter(col("id") > 2990).head(5).collect().height == 5
    assert table.select(pl.len()).collect().item() == ROWS
    assert table.filter(col("id") < 10).select(pl.len()).collect().item() == 10


def test_empty_results_and_missing_values(connection: dray.Connection, server: Server) -> None:
    assert_frame_equal(
        dray.scan(server.unix, "nullable").collect(),
        connection.query("SELECT * FROM nullable").to_polars(),
    )
    # Polars has no time zones such as "+05:30", which other columns have.
    empty = dray.scan(server.unix, sql="SELECT id, string FROM empty").collect()
    assert empty.height == 0 and empty.columns == ["id", "string"]
    none = dray.scan(server.unix, "numbers").filter(col("id") < 0).collect()
    assert none.height == 0 and none.schema == {"id": pl.Int64, "text": pl.String}
    assert dray.scan(server.unix, "nullable").filter(col("i").is_null()).collect().height == 1


def test_names_of_tables(server: Server, filled: PostgresServer) -> None:
    assert dray.scan(server.unix, ("dray", "tables")).collect().height > 5
    assert dray.scan(server.unix, 'dray."tables"').collect().height > 5
    filled.run(
        'CREATE SCHEMA IF NOT EXISTS "my.schema"',
        'CREATE TABLE IF NOT EXISTS "my.schema"."A ""b""; DROP TABLE pets" ("x y" integer)',
    )
    path = ("my.schema", 'A "b"; DROP TABLE pets')
    assert dray.scan(filled.uri(), path).collect().columns == ["x y"]
    text = '"my.schema"."A ""b""; DROP TABLE pets"'
    assert dray.scan(filled.uri(), text).filter(col("x y") > 1).collect().height == 0
    for wrong in ["", "a b", "a.", ".a", "a..b", 'a"b', "SELECT 1", "a;b c"]:
        with pytest.raises(dray.UsageError, match="is not the name of a table"):
            dray.scan(server.unix, wrong)
    with pytest.raises(dray.QueryError):
        dray.scan(server.unix, "NUMBERS")


def test_wrong_calls(server: Server, filled: PostgresServer) -> None:
    for arguments in ({}, {"table": "numbers", "sql": "SELECT 1"}):
        with pytest.raises(dray.UsageError, match="either a table or sql="):
            dray.scan(server.unix, **arguments)  # type: ignore[arg-type]
    for sql in ("SELECT 1; SELECT 2", "SELECT 1) AS a, (SELECT 2", "DELETE FROM numbers"):
        with pytest.raises(dray.UsageError, match="one query"):
            dray.scan(server.unix, sql=sql)
    with pytest.raises(dray.UsageError, match="same name"):
        dray.scan(filled.uri(), sql="SELECT 1 AS a, 2 AS a")
    with pytest.raises(dray.UsageError, match="no parameters"):
        dray.scan(server.unix, "numbers", params=[1])
    with pytest.raises(dray.ConnectionError):
        dray.scan("dray+unix:///nowhere/dray.sock", "numbers")
    lazy = dray.scan(server.unix, sql="SELECT id FROM numbers WHERE id < $1", params=[3])
    assert lazy.filter(col("id") > 0).collect().height == 2


def test_types_without_operators(filled: PostgresServer) -> None:
    """Values that come as text, but are compared as something else in the server."""
    filled.run(
        "DROP TABLE IF EXISTS odd",
        "CREATE TABLE odd (id integer, j jsonb, u uuid, n numeric, c char(5), o oid, r refcursor, "
        "p point, t timetz)",
        "INSERT INTO odd VALUES (1, '1', '00000000-0000-0000-0000-000000000001', 5.00, 'ab', 7, "
        "'x', '(1,2)', '04:05+00'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    lazy = dray.scan(filled.uri(), "odd")
    for predicate in [
        col("n") == "5.00",
        col("n") != "5.0",
        col("c") == "ab   ",
        col("c") != "ab",
        col("o") > 3,
        col("r") == "x",
        col("t").is_not_null(),
        col("p") == "(1,2)",
    ]:
        assert lazy.filter(predicate).select("id").collect().rows() == [(1,)], predicate
    assert lazy.filter(col("n") == "5").collect().height == 0
    assert lazy.filter(col("c") == "ab").collect().height == 0
    assert lazy.filter(col("r").is_null()).select("id").collect().rows() == [(2,)]


def test_texts_that_the_database_lacks(filled: PostgresServer) -> None:
    filled.run("DROP DATABASE IF EXISTS narrow")
    filled.run("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    filled.run("CREATE TABLE t AS SELECT 1 AS id, 'ü'::text AS name", database="narrow")
    lazy = dray.scan(filled.uri("narrow"), "t")
    assert lazy.filter(col("name") == "🐴").collect().height == 0
    assert lazy.filter((col("name") == "🐴") | (col("id") == 1)).collect().height == 1
    assert lazy.filter(col("name") == "ü").collect().height == 1


def test_values_that_arrow_lacks(filled: PostgresServer) -> None:
    filled.run(
        "DROP TABLE IF EXISTS endless",
        "CREATE TABLE endless (day date)",
        "INSERT INTO endless VALUES ('infinity'), ('2024-01-01'), (NULL)",
    )
    lazy = dray.scan(filled.uri(), "endless", nonfinite="null")
    assert lazy.filter(col("day").is_null()).collect().height == 2
    assert lazy.filter(col("day") > dt.date(2000, 1, 1)).collect().height == 1
    text = dray.scan(filled.uri(), "endless", nonfinite="text")
    assert text.filter(col("day") == "infinity").collect().height == 1


def test_failures(server: Server, filled: PostgresServer) -> None:
    failing = "SELECT 1 / (value - 3000000) AS v FROM generate_series(1, 4000000)"
    for engine in ("in-memory", "streaming"):
        with pytest.raises(dray.ExecutionError, match="division by zero"):
            dray.scan(server.unix, sql=failing).collect(engine=engine)  # type: ignore[call-overload]
    filled.run("DROP TABLE IF EXISTS moving", "CREATE TABLE moving (a integer)")
    lazy = dray.scan(filled.uri(), "moving")
    filled.run("ALTER TABLE moving ALTER a TYPE text", "INSERT INTO moving VALUES ('x')")
    with pytest.raises(
        dray.UsageError, match=r"was Int32 when scan\(\) was called.*call scan\(\) again"
    ):
        lazy.collect()


def test_stopping_early_ends_the_statement(server: Server) -> None:
    lazy = dray.scan(server.unix, sql=FOREVER)
    assert lazy.head(10).collect().height == 10
    assert lazy.filter(col("v") > 5).head(10).collect().height == 10


def test_an_interrupt_ends_the_statement(server: Server) -> None:
    script = f"""
import os, signal, sys, threading, dray
lazy = dray.scan(sys.argv[1], sql={FOREVER!r})
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
lazy.select("v").sum().collect()
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, server.unix], capture_output=True, text=True, timeout=20
    )
    assert ran.returncode != 0 and "KeyboardInterrupt" in ran.stderr


def test_bounded_memory(server: Server) -> None:
    script = """
import resource, sys, polars, dray
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def total(rows):
    sql = f"SELECT value AS v FROM generate_series(1, {rows})"
    return dray.scan(sys.argv[1], sql=sql).sum().collect(engine="streaming").item()
total(100000)
before = peak()
print(total(60000000), peak() - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, server.unix], capture_output=True, text=True, check=True
    )
    total, grown_kib = map(int, ran.stdout.split())
    assert total == 60_000_000 * 60_000_001 // 2
    assert grown_kib < 128 * 1024
