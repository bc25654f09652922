"""Reading on connections that a driver opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import psycopg2
import pytest
import sqlalchemy
import sqlalchemy.orm
from postgres_server import PostgresServer
from psycopg.rows import dict_row
from sqlalchemy.pool import NullPool

import dray

Opener = Callable[[PostgresServer], Any]


def _sqlalchemy(driver: str) -> Opener:
    return lambda server: sqlalchemy.create_engine(
        server.uri().replace("postgresql:", f"postgresql+{driver}:"), poolclass=NullPool
    ).connect()


OPENERS: dict[str, Opener] = {
    "psycopg": lambda server: psycopg.connect(server.uri(), row_factory=dict_row),
    "psycopg2": lambda server: psycopg2.connect(server.uri()),
    "sqlalchemy-psycopg": _sqlalchemy("psycopg"),
    "sqlalchemy-psycopg2": _sqlalchemy("psycopg2"),
    "sqlalchemy-session": lambda server: sqlalchemy.orm.Session(
        sqlalchemy.create_engine(
            server.uri().replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool
        )
    ),
}


@pytest.fixture(params=OPENERS)
def connection(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Any]:
    connection = OPENERS[request.param](postgres)
    yield connection
    connection.close()


def run(connection: Any, sql: str) -> None:
    if hasattr(connection, "cursor"):
        connection.cursor().execute(sql)
    else:
        connection.execute(sqlalchemy.text(sql))


def test_its_transaction_and_temporary_tables(connection: Any, extension: bool) -> None:
    run(
        connection,
        "CREATE TEMPORARY TABLE mine (id integer, amount numeric(9,2), "
        "total numeric, tags text[], ip inet)",
    )
    run(
        connection,
        "INSERT INTO mine VALUES (1, 1.50, 0.10, ARRAY['a', NULL], '10.0.0.1'), "
        "(2, NULL, NULL, NULL, NULL)",
    )
    table = dray.read(connection, "SELECT * FROM mine ORDER BY id", extension=extension)
    assert table.to_pylist() == [
        {
            "id": 1,
            "amount": Decimal("1.50"),
            "total": "0.10",
            "tags": ["a", None],
            "ip": "10.0.0.1",
        },
        {"id": 2, "amount": None, "total": None, "tags": None, "ip": None},
    ]
    run(connection, "DROP TABLE mine")


def test_parameters_are_the_drivers(connection: Any, extension: bool) -> None:
    table = dray.read(
        connection, "SELECT %s::int AS n, %s AS s, '$1' AS d", [7, "it's"], extension=extension
    )
    assert table.to_pylist() == [{"n": 7, "s": "it's", "d": "$1"}]


def test_more_rows_than_a_batch(connection: Any, extension: bool) -> None:
    table = dray.read(
        connection,
        "SELECT i, repeat('x', i % 30) AS s FROM generate_series(1, 150000) i",
        extension=extension,
    )
    assert table.num_rows == 150_000
    assert table["i"].to_pylist() == list(range(1, 150_001))


def test_types_of_its_own(connection: Any, extension: bool) -> None:
    run(connection, "CREATE TYPE pair AS (a integer, b text)")
    sql = "SELECT ROW(1, 'x')::pair AS p, ARRAY[ROW(2, NULL)::pair] AS l, 5.5::money AS m"
    table = dray.read(connection, sql, extension=extension)
    assert table.to_pylist() == [
        {"p": {"a": 1, "b": "x"}, "l": [{"a": 2, "b": None}], "m": Decimal("5.50")}
    ]
    run(connection, "ROLLBACK" if hasattr(connection, "cursor") else "DROP TYPE pair")


def test_money_within_others(connection: Any, extension: bool) -> None:
    run(connection, "CREATE TYPE price AS (amount money)")
    sql = "SELECT ARRAY['5.5'::money] AS l, ROW('1')::price AS p, ARRAY[ROW('2')::price] AS ps"
    table = dray.read(connection, sql, extension=extension)
    amounts = [Decimal("5.50")], {"amount": Decimal("1.00")}, [{"amount": Decimal("2.00")}]
    assert table.to_pylist() == [dict(zip(("l", "p", "ps"), amounts))]
    run(connection, "ROLLBACK" if hasattr(connection, "cursor") else "DROP TYPE price")


def test_errors_are_the_drivers(connection: Any, extension: bool) -> None:
    with pytest.raises(Exception, match="division by zero") as raised:
        dray.read(connection, "SELECT 1 / 0", extension=extension)
    assert not isinstance(raised.value, dray.Error)


def test_values_without_a_place(connection: Any, extension: bool) -> None:
    with pytest.raises(Exception, match="infinity"):
        dray.read(connection, "SELECT 'infinity'::date AS d", extension=extension)


def test_text_that_is_not_utf8(connection: Any, extension: bool) -> None:
    run(
        connection,
        "CREATE FUNCTION pg_temp.as_text(bytea, integer) RETURNS text "
        "LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len'",
    )
    with pytest.raises(Exception, match='column "bad": a string is not UTF-8'):
        dray.read(
            connection, r"SELECT pg_temp.as_text('\x61ff62'::bytea, 1) AS bad", extension=extension
        )


def test_options(connection: Any, extension: bool) -> None:
    sql = "SELECT 1.5 AS n, 'infinity'::date AS d"
    table = dray.read(
        connection, sql, extension=extension, numeric="decimal(10,3)", nonfinite="null"
    )
    assert table.to_pylist() == [{"n": Decimal("1.500"), "d": None}]
    # With nonfinite=text all decimals become text, because any of them may be NaN.
    table = dray.read(
        connection,
        sql,
        extension=extension,
        numeric="decimal(10,3)",
        nonfinite="text",
        strings="large",
    )
    assert table.to_pylist() == [{"n": "1.5", "d": "infinity"}]
    assert str(table.schema.field("d").type) == "large_string"


def _in_transaction(connection: Any) -> bool:
    """Whether a driver's connection is in a transaction that has not failed."""
    return bool(connection.info.transaction_status == 2)


@pytest.fixture(params=[psycopg, psycopg2])
def driver_connection(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Any]:
    connection = request.param.connect(postgres.uri())
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "options", [{"timeout": 3.0}, {"partitions": 2}, {"batch_rows": 5, "progress": print}]
)
def test_options_that_do_not_apply(driver_connection: Any, options: dict[str, Any]) -> None:
    named = ", ".join(options)
    with pytest.raises(dray.UsageError, match=f"^{named} can't be used with an open connection"):
        dray.read(driver_connection, "SELECT 1", **options)
    # A default is no choice.
    assert dray.read(driver_connection, "SELECT 1", timeout=10.0).num_rows == 1


def test_its_transaction_survives_our_questions(driver_connection: Any) -> None:
    run(driver_connection, "CREATE TEMPORARY TABLE mine (a integer)")
    with pytest.raises(Exception, match="nowhere"):
        dray.read(driver_connection, "SELECT * FROM nowhere", extension=False)
    for sql in (
        "/* c */ INSERT INTO mine VALUES (1) RETURNING a",
        "WITH x AS (INSERT INTO mine VALUES (1) RETURNING a) SELECT * FROM x",
    ):
        with pytest.raises(dray.QueryError, match="change nothing"):
            dray.read(driver_connection, sql, extension=False)
    assert _in_transaction(driver_connection)
    assert dray.read(driver_connection, "SELECT * FROM mine", extension=False).num_rows == 0


def test_autocommit_is_one_transaction(driver_connection: Any, extension: bool) -> None:
    driver_connection.autocommit = True
    # The transaction began before the statement that checks it.
    sql = "SELECT now() < statement_timestamp() AS is_within"
    assert dray.read(driver_connection, sql, extension=extension)["is_within"].to_pylist() == [True]
    assert driver_connection.info.transaction_status == 0
    with pytest.raises(Exception, match="division by zero"):
        dray.read(driver_connection, "SELECT 1 / 0 AS x", extension=extension)
    assert driver_connection.info.transaction_status == 0
    run(driver_connection, "BEGIN")
    dray.read(driver_connection, sql, extension=extension)
    assert _in_transaction(driver_connection)
    run(driver_connection, "ROLLBACK")


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemys_rollback(postgres: PostgresServer, extension: bool, driver: str) -> None:
    with _sqlalchemy(driver)(postgres) as connection:
        dray.read(connection, "SELECT 1 AS a", extension=extension)
        assert connection.in_transaction()
        inner = connection.connection.driver_connection
        assert _in_transaction(inner)
        connection.rollback()
        assert inner.info.transaction_status == 0
        dray.read(connection, "SELECT 1 AS a", extension=extension)
        connection.commit()
        assert inner.info.transaction_status == 0
        with connection.begin():
            dray.read(connection, "SELECT 1 AS a", extension=extension)
    with _sqlalchemy(driver)(postgres).execution_options(
        isolation_level="AUTOCOMMIT"
    ) as connection:
        dray.read(connection, "SELECT 1 AS a", extension=extension)
        assert not connection.in_transaction()
        assert connection.connection.driver_connection.info.transaction_status == 0


def test_styles_of_dates(driver_connection: Any, extension: bool) -> None:
    run(driver_connection, "SET DateStyle TO 'German'")
    with pytest.raises(dray.UsageError, match="DateStyle is German"):
        dray.read(driver_connection, "SELECT 1", extension=extension)
    run(driver_connection, "SET DateStyle TO 'ISO, DMY'")
    assert dray.read(driver_connection, "SELECT 1 AS a", extension=extension).num_rows == 1


WHOLE = "(0.1,0.30000000000000004)"


def test_digits_of_floats(driver_connection: Any, extension: bool) -> None:
    def digits() -> str:
        cursor = driver_connection.cursor()
        cursor.execute("SHOW extra_float_digits")
        return str(cursor.fetchone()[0])

    sql = f"SELECT '{WHOLE}'::point AS p, ARRAY['{WHOLE}'::point] AS ps"
    for autocommit in (True, False):
        driver_connection.autocommit = autocommit
        run(driver_connection, "SET extra_float_digits = -3")
        assert dray.read(driver_connection, sql, extension=extension).to_pylist() == [
            {"p": WHOLE, "ps": [WHOLE]}
        ]
        assert digits() == "-3"
        with pytest.raises(Exception, match="division by zero"):
            dray.read(
                driver_connection,
                "SELECT 1 / (n - 1), point(n, n) FROM generate_series(1, 1) n",
                extension=extension,
            )
        if not autocommit:
            driver_connection.rollback()
            run(driver_connection, "SET LOCAL extra_float_digits = -5")
            with pytest.raises(Exception, match="infinity"):
                dray.read(
                    driver_connection, "SELECT 'infinity'::date, point(1, 1)", extension=extension
                )
            driver_connection.rollback()
        assert digits() == "-3"
    driver_connection.rollback()


def test_functions_of_somebody_else(driver_connection: Any, extension: bool) -> None:
    raises = "LANGUAGE plpgsql AS $$BEGIN RAISE 'hijacked'; END$$"
    run(driver_connection, "CREATE SCHEMA hostile")
    run(driver_connection, f"CREATE FUNCTION hostile.unnest(oid[]) RETURNS SETOF oid {raises}")
    for name, left, right in (
        ("a", "oid", "integer"),
        ("b", "oid", "oid"),
        ("c", '"char"', '"char"'),
        ("d", "name", "name"),
    ):
        run(
            driver_connection,
            f"CREATE FUNCTION hostile.{name}({left}, {right}) RETURNS boolean {raises}",
        )
        for operator in ("=", "<>"):
            sql = (
                f"CREATE OPERATOR hostile.{operator} (FUNCTION = hostile.{name}, LEFTARG = "
                f"{left}, RIGHTARG = {right})"
            )
            run(driver_connection, sql)
    run(driver_connection, "CREATE TYPE hostile.pair AS (a integer, b text)")
    run(driver_connection, "SET LOCAL search_path TO hostile, pg_catalog")
    table = dray.read(
        driver_connection,
        "SELECT ROW(1, 'x')::pair AS p, int4range(1, 2) AS r",
        extension=extension,
    )
    assert table["p"].to_pylist() == [{"a": 1, "b": "x"}]
    driver_connection.rollback()


@pytest.mark.parametrize(
    "sql", ["SHOW work_mem", "SELECT 1; SELECT 2", "SELECT 1) TO STDOUT --", ""]
)
def test_what_it_does_not_run(connection: Any, sql: str) -> None:
    with pytest.raises(dray.UsageError):
        dray.read(connection, sql)


def test_what_is_no_connection() -> None:
    with pytest.raises(dray.UsageError, match="can't read from a "):
        dray.read(5, "SELECT 1")
