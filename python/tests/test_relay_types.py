"""A source's rows have the types and the values that a client would get from the source itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import postgres_text as pt
import pyarrow as pa
import pytest
import test_mysql_types
from mysql_server import MariaServer
from postgres_server import PostgresServer
from postgres_type_cases import CASES, Case
from postgres_types import DATABASE, Types, fill
from relay_server import relay, sources

import dray
from dray._options import NonFinite


@pytest.fixture(scope="module")
def types(database: PostgresServer) -> Iterator[Types]:
    with (
        database.connect(DATABASE) as oracle,
        dray.connect(database.uri(DATABASE)) as connection,
    ):
        yield Types(database, oracle, connection, extension=True)


@pytest.fixture(scope="module")
def postgres_source(types: Types) -> Iterator[dray.Connection]:
    with (
        relay(*sources(types=types.server.uri(DATABASE))) as server,
        dray.connect(server.uri("types")) as connection,
    ):
        yield connection


@pytest.fixture(scope="module")
def maria_source(mariadb: MariaServer) -> Iterator[dray.Connection]:
    with (
        relay(*sources(shop=mariadb.uri())) as server,
        dray.connect(server.uri("shop")) as connection,
    ):
        yield connection


def outcome(
    connection: dray.Connection, sql: str, nonfinite: NonFinite = "error"
) -> pa.Table | tuple[str, str | None, str]:
    """A result, or its error."""
    try:
        table = connection.query(sql, nonfinite=nonfinite).arrow()
    except dray.Error as error:
        return error.kind, error.sqlstate, str(error)
    table.validate(full=True)
    return table


def values(table: pa.Table) -> list[list[object]]:
    """The values, of which Python can't hold some dates."""
    return [pt.values(column) for column in table.columns]


def check(
    direct: dray.Connection, relayed: dray.Connection, sql: str, nonfinite: NonFinite = "error"
) -> None:
    want, got = outcome(direct, sql, nonfinite), outcome(relayed, sql, nonfinite)
    if isinstance(want, pa.Table):
        assert isinstance(got, pa.Table), got
        assert got.schema.equals(want.schema, check_metadata=True), (got.schema, want.schema)
        assert values(got) == values(want)
    else:
        assert got == want


@pytest.mark.parametrize("case", CASES, ids=[case.table for case in CASES])
def test_postgres(types: Types, postgres_source: dray.Connection, case: Case) -> None:
    if types.version < case.since:
        pytest.skip(f"a type of PostgreSQL {case.since}")
    fill(types, case)
    # A direct client of this statement has the choice that a source's has.
    with dray.connect(types.server.uri(DATABASE)) as direct:
        check(direct, postgres_source, f"SELECT v FROM {case.table} ORDER BY id")


@pytest.mark.parametrize(
    "case", test_mysql_types.CASES, ids=[case.type for case in test_mysql_types.CASES]
)
def test_mariadb(
    mariadb: MariaServer, maria_source: dray.Connection, case: test_mysql_types.Case
) -> None:
    mariadb.run(
        "DROP TABLE IF EXISTS relayed",
        f"CREATE TABLE relayed (id int PRIMARY KEY, v {case.type})",
        *(f"INSERT INTO relayed VALUES ({i}, {value})" for i, value in enumerate(case.values)),
        f"INSERT INTO relayed VALUES ({len(case.values)}, NULL)",
    )
    with dray.connect(mariadb.uri()) as direct:
        check(direct, maria_source, "SELECT v FROM relayed ORDER BY id")


def test_dates_that_the_calendar_lacks(mariadb: MariaServer, maria_source: dray.Connection) -> None:
    with mariadb.connect() as oracle, oracle.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute("CREATE OR REPLACE TABLE relayed_zero (v date)")
        cursor.execute("INSERT INTO relayed_zero VALUES ('0000-00-00')")
    sql = "SELECT v FROM relayed_zero"
    with dray.connect(mariadb.uri()) as direct:
        check(direct, maria_source, sql, "null")
        check(direct, maria_source, sql, "text")
        check(direct, maria_source, sql)
    assert maria_source.query(sql, nonfinite="null").arrow()["v"].to_pylist() == [None]
    assert maria_source.query(sql, nonfinite="text").arrow()["v"].to_pylist() == ["0000-00-00"]
    with pytest.raises(dray.ExecutionError, match="0000-00-00.*choose nonfinite"):
        maria_source.query(sql).arrow()


def test_advice_that_a_client_can_follow(postgres_source: dray.Connection) -> None:
    """Of short results and of those for which PostgreSQL's extension is used."""
    for column, rows in [
        ("'infinity'::timestamp", 1),
        ("'NaN'::numeric(5, 2)", 1),
        ("CASE WHEN i = 200000 THEN 'infinity'::date ELSE '2024-02-29'::date END", 200_000),
    ]:
        sql = f"SELECT {column} AS v FROM generate_series(1, {rows}) i"
        with pytest.raises(dray.ExecutionError, match=f'column "v", row {rows}: .*choose nonfin'):
            postgres_source.query(sql).arrow()
        assert postgres_source.query(sql, nonfinite="null").arrow()["v"].null_count == 1
        text = postgres_source.query(sql, nonfinite="text").arrow()["v"]
        assert text.type == pa.string() and text[rows - 1].as_py() in ("infinity", "NaN")


def test_where_nonfinite_has_no_meaning(types: Types, tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    sqlite3.connect(file).close()
    (tmp_path / "own.csv").write_text("a\n1\n")
    with relay(
        str(tmp_path / "own.csv"),
        *sources(types=types.server.uri(DATABASE), notes=f"sqlite://{file}"),
    ) as server:
        for name in ("", "notes"):
            with (
                dray.connect(server.uri(name)) as connection,
                pytest.raises(dray.UsageError, match="nonfinite for whole results"),
            ):
                connection.query("SELECT 1", nonfinite="null")
        with (
            dray.connect(server.uri("types")) as connection,
            pytest.raises(dray.UsageError, match="nonfinite for whole results"),
        ):
            connection.partitions("SELECT 1", nonfinite="null")
