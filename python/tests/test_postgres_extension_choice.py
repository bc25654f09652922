"""Whether the extension is used: as requested, and if it is not available."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import psycopg2
import pytest
from postgres_client import Client
from postgres_server import EXTENSION_CHOICES, PostgresServer

import dray

pytestmark = pytest.mark.skipif(True not in EXTENSION_CHOICES, reason="there is no extension")

IS_LOADED = "SELECT current_setting('dray.encoding_threads', true) IS NOT NULL"
SQL = "SELECT i FROM generate_series(1, 100) i"
# Reasons why the library can't be loaded.
HINDRANCES = {
    "not allowed": "REVOKE EXECUTE ON FUNCTION pg_catalog.dray_load() FROM PUBLIC",
    "missing": "UPDATE pg_proc SET probin = '$libdir/gone' WHERE proname = 'dray_load'",
    "wrong": "UPDATE pg_proc SET probin = '/etc/passwd' WHERE proname = 'dray_load'",
    "not its function": "UPDATE pg_proc SET probin = '$libdir/plpgsql' WHERE proname = 'dray_load'",
    "dropped": "ALTER EXTENSION dray DROP FUNCTION dray_load(); DROP FUNCTION dray_load()",
}


def test_it_is_loaded_when_it_is_used(postgres: PostgresServer) -> None:
    with dray.connect(postgres.uri()) as connection:

        def is_loaded() -> bool:
            return bool(list(connection.query(IS_LOADED, extension=False))[0][0])

        assert not is_loaded()
        connection.query(SQL, extension=False, partitions=2).arrow()
        assert not is_loaded()
        assert connection.query(SQL).arrow().num_rows == 100
        assert is_loaded()
        assert connection.query(SQL, extension=True).arrow().num_rows == 100
    # The first statement of a transaction, one with parameters, and one that fails.
    for before, sql, params in [
        ("BEGIN", SQL, None),
        (None, "SELECT $1::integer AS i", [5]),
        (None, "SELECT 1 / 0", None),
    ]:
        with dray.connect(postgres.uri()) as connection:
            if before:
                connection.query(before).arrow()
            try:
                connection.query(sql, params, extension=True).arrow()
            except dray.ExecutionError as error:
                assert error.sqlstate == "22012"
            assert list(connection.query(IS_LOADED, extension=False)) == [(True,)]


def test_an_error_of_the_users_own(postgres: PostgresServer, extension: bool) -> None:
    """The error is raised while the statement is planned. It does not come from COPY, so there is
    no second attempt without the extension.
    """
    with postgres.connect() as oracle, dray.connect(postgres.uri()) as connection:
        oracle.execute("CREATE SEQUENCE raised; CREATE FUNCTION unsupported() "
            "RETURNS integer IMMUTABLE LANGUAGE plpgsql"
                       " AS $$ BEGIN PERFORM nextval('raised'); "
                           "RAISE feature_not_supported; END $$")  # fmt: skip
        try:
            with pytest.raises(dray.Error) as caught:
                connection.query(
                    "SELECT unsupported()", extension="auto" if extension else False
                ).arrow()
            assert caught.value.sqlstate == "0A000"
            assert oracle.execute("SELECT last_value, is_called FROM raised").fetchone() == (
                1,
                True,
            )
        finally:
            oracle.execute("DROP FUNCTION unsupported; DROP SEQUENCE raised")


def test_what_copy_does_not_take(postgres: PostgresServer) -> None:
    with postgres.connect() as oracle, dray.connect(postgres.uri()) as connection:
        oracle.execute(
            "CREATE TABLE ruled (n integer); CREATE RULE also AS ON INSERT "
            "TO ruled DO ALSO DELETE FROM ruled WHERE n < 0"
        )
        try:
            result = connection.query("INSERT INTO ruled VALUES (1), (2) RETURNING n")
            assert result.arrow().num_rows == 2
            assert "the extension does not run it: DO ALSO rules" in result.stats.path_reason
            assert oracle.execute("SELECT count(*) FROM ruled").fetchone() == (2,)
        finally:
            oracle.execute("DROP TABLE ruled")


def test_what_copy_does_not_take_in_a_transaction(client: Client) -> None:
    client.list("BEGIN")
    client.list("CREATE TABLE ruled (n integer)")
    client.list("CREATE TABLE log (n integer)")
    client.list("CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (NEW.n)")
    assert client.list("INSERT INTO ruled VALUES (1), (2) RETURNING n") == [(1,), (2,)]
    assert client.list("UPDATE ruled SET n = n + $1 RETURNING n", [1]) == [(2,), (3,)]
    changes = "WITH x AS (DELETE FROM ruled RETURNING n) SELECT n FROM x"
    result = client.query(changes)
    assert list(result.rows()) == [(2,), (3,)]
    if client.extension:
        assert "COPY refuses some changes" in result.stats.path_reason
    assert client.list("SELECT n FROM log") == [(1,), (2,)]
    client.list("ROLLBACK")


def test_more_types_than_the_extension_describes(postgres: PostgresServer) -> None:
    """Types double with each level. Expressions that are evaluated during planning are evaluated
    only once.
    """
    with postgres.connect() as oracle, dray.connect(postgres.uri()) as connection:
        oracle.execute(
            "CREATE SCHEMA deep; CREATE SEQUENCE deep.planned; CREATE TYPE deep.t0 AS (a integer)"
        )
        oracle.execute(
            "CREATE FUNCTION deep.plan() RETURNS bigint IMMUTABLE LANGUAGE sql "
            "AS 'SELECT nextval(''deep.planned'')'"
        )
        try:
            for i in range(15):
                oracle.execute(f"CREATE TYPE deep.t{i + 1} AS (a deep.t{i}, b deep.t{i})")
            result = connection.query("SELECT deep.plan() AS n, NULL::deep.t15 AS v")
            assert result.arrow().to_pylist() == [{"n": 1, "v": None}]
            assert (
                "the extension does not run it: the columns have over 20000 types"
                in result.stats.path_reason
            )
            assert oracle.execute("SELECT last_value, is_called FROM deep.planned").fetchone() == (
                1,
                True,
            )
        finally:
            oracle.execute("DROP SCHEMA deep CASCADE")


def test_types_that_are_nested_deep(postgres: PostgresServer) -> None:
    with postgres.connect() as oracle, dray.connect(postgres.uri()) as connection:
        oracle.execute("CREATE SCHEMA nested")
        try:
            oracle.execute("CREATE TYPE nested.t0 AS (a date)")
            for i in range(80):
                oracle.execute(f"CREATE TYPE nested.t{i + 1} AS (a nested.t{i})")
            sql = "SELECT ROW(NULL)::nested.t80 AS v, ARRAY[ROW(NULL)]::nested.t80[] AS a"
            rows, extended = (
                connection.query(sql, extension=extension).arrow() for extension in (False, True)
            )
            assert rows.to_pylist() == [{"v": "()", "a": "{()}"}]
            assert extended.equals(rows) and extended.schema.equals(rows.schema, True)
        finally:
            oracle.execute("DROP SCHEMA nested CASCADE")


@pytest.fixture(params=HINDRANCES)
def hindered(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database whose extension can't be loaded, seen by a role without privileges."""
    postgres.run("CREATE ROLE plain LOGIN", "CREATE DATABASE hindered")
    try:
        hindrance = HINDRANCES[request.param].split("; ")
        postgres.run(
            "SET allow_system_table_mods = on",
            "CREATE EXTENSION dray",
            *hindrance,
            database="hindered",
        )
        yield postgres.uri("hindered", "plain")
    finally:
        postgres.run("DROP DATABASE hindered WITH (FORCE)", "DROP ROLE plain")


@pytest.mark.parametrize("begin", [False, True])
def test_what_can_not_be_loaded(hindered: str, begin: bool) -> None:
    with dray.connect(hindered) as connection:
        if begin:
            connection.query("BEGIN").arrow()
            connection.query("SET LOCAL application_name = 'kept'").arrow()
        for params in (None, [100]):
            result = connection.query(SQL.replace("100", "$1") if params else SQL, params)
            assert result.arrow().num_rows == 100
            assert "the extension dray can't be loaded: " in result.stats.path_reason
        with pytest.raises(
            dray.UsageError, match="the extension can't be used: .*can't be loaded: "
        ):
            connection.query(SQL, extension=True)
        assert list(connection.query("SHOW application_name")) == (
            [("kept",)] if begin else [("dray",)]
        )


@pytest.fixture
def latin(postgres: PostgresServer) -> Iterator[str]:
    """A database whose encoding lacks most characters."""
    postgres.run("CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0")
    try:
        postgres.run("CREATE EXTENSION dray", database="latin")
        yield postgres.uri("latin")
    finally:
        postgres.run("DROP DATABASE latin WITH (FORCE)")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [("SELECT '€'", "22P05"), ("SELECT sum(1) OVER (ROWS UNBOUNDED FOLLOWING)", "42P20")],
)
def test_a_first_statement_that_can_not_be_read(latin: str, sql: str, sqlstate: str) -> None:
    with dray.connect(latin) as connection:
        with pytest.raises(dray.Error) as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == sqlstate
        assert connection.query(SQL, extension=True).arrow().num_rows == 100


# The library's answer, and the advice.
OTHER_VERSIONS = {
    "0.0.9": f"install dray {dray.__version__} at the server, then ALTER EXTENSION dray UPDATE",
    "0.99.0": "upgrade the client to dray 0.99.0",
}


@pytest.fixture(params=OTHER_VERSIONS)
def other_version(
    postgres: PostgresServer, request: pytest.FixtureRequest
) -> Iterator[tuple[str, str]]:
    """A database whose library reports another version once it is loaded."""
    postgres.run("CREATE DATABASE other_version")
    try:
        postgres.run(
            "CREATE EXTENSION dray", "SET allow_system_table_mods = on",
            "ALTER EXTENSION dray DROP FUNCTION pg_catalog.dray_load()",
            "ALTER FUNCTION pg_catalog.dray_load() RENAME TO dray_load_own",
            f"CREATE FUNCTION pg_catalog.dray_load() RETURNS text STABLE LANGUAGE sql AS $$ SELECT"
            f" replace(pg_catalog.dray_load_own(), '{dray.__version__}', '{request.param}') $$",
            "CREATE TABLE inserted (n integer)",
            database="other_version",
        )  # fmt: skip
        yield postgres.uri("other_version"), request.param
    finally:
        postgres.run("DROP DATABASE other_version WITH (FORCE)")


def test_a_library_of_another_version(other_version: tuple[str, str]) -> None:
    uri, version = other_version
    expected = (
        f"the server's library is dray {version}, this client dray {dray.__version__}: "
        f"{OTHER_VERSIONS[version]}"
    )
    for begin in (False, True):
        for sql, params in [(SQL, None), (SQL.replace("100", "$1"), [100]), (SQL, None)]:
            with dray.connect(uri) as connection:
                if begin:
                    connection.query("BEGIN").arrow()
                with pytest.raises(dray.UsageError) as caught:
                    connection.query(sql, params, extension=True)
                assert expected in str(caught.value)
                result = connection.query(sql, params)
                assert result.arrow().num_rows == 100
                assert expected in result.stats.path_reason
    # The statement runs only once.
    with dray.connect(uri) as connection:
        sql = "INSERT INTO inserted VALUES (1), (2) RETURNING n"
        assert connection.query(sql).arrow().num_rows == 2
        assert list(connection.query("SELECT count(*) FROM inserted")) == [(2,)]
    for driver in (psycopg, psycopg2):
        with driver.connect(uri) as connection:
            assert dray.read(connection, SQL).num_rows == 100
            with pytest.raises(dray.UsageError) as caught:
                dray.read(connection, SQL, extension=True)
            assert expected in str(caught.value)
            assert dray.read(connection, SQL, extension=False).num_rows == 100


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
def test_what_a_driver_can_not_load(hindered: str, driver: Any) -> None:
    connection = driver.connect(hindered)
    try:
        connection.cursor().execute("SET LOCAL application_name = 'kept'")
        assert dray.read(connection, SQL).num_rows == 100
        with pytest.raises(dray.UsageError, match="the extension can't be used: "):
            dray.read(connection, SQL, extension=True)
        assert dray.read(connection, SQL, extension=False).num_rows == 100
        assert dray.read(connection, "SELECT current_setting('application_name') AS n")[
            "n"
        ].to_pylist() == ["kept"]
    finally:
        connection.close()
