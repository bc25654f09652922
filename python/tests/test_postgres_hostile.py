"""A server with hostile functions, operators, types and tables that shadow the system's own.

Whoever may create a schema and set a role's ``search_path`` must not get code run by the statements
that Dray itself sends. Every name in those statements is qualified.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from typing import Any

import adbc_client
import psycopg
import pyarrow as pa
import pytest
from postgres_server import VERSIONS, PostgresServer

import dray

DATABASE = "hostile"
ROLE = "victim"
# In two parts, so that no logged statement contains the whole.
TRAP = """
    RAISE LOG 'hos%', 'tile call';
    RAISE EXCEPTION 'a hostile function was called';
"""
CALLED = "hostile call"
DDL = f"""
CREATE SCHEMA evil;
CREATE FUNCTION evil.trap() RETURNS boolean LANGUAGE plpgsql AS $trap$ BEGIN {TRAP} END $trap$;
CREATE FUNCTION evil.try(statement text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog AS $try$
BEGIN
    EXECUTE statement;
EXCEPTION WHEN others THEN
    -- Some can't be copied: functions of "any", of internal types.
END $try$;
DO $$
DECLARE
    body text := '$trap$ BEGIN {TRAP.replace("'", "''")} END $trap$';
    f record;
BEGIN
    FOR f IN SELECT o.oid, o.oprname AS name, o.oprleft::regtype AS l, o.oprright::regtype AS r,
            o.oprresult::regtype AS result
        FROM pg_operator o WHERE o.oprleft <> 0 AND o.oprresult <> 0
    LOOP
        PERFORM evil.try(format(
            'CREATE FUNCTION evil.operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %s',
            f.oid, f.l, f.r, f.result, body));
        PERFORM evil.try(format(
            'CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.operator_%s)',
            f.name, f.l, f.r, f.oid));
    END LOOP;
    FOR f IN SELECT p.proname AS name, pg_get_function_identity_arguments(p.oid) AS arguments,
            pg_get_function_result(p.oid) AS result
        FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace
    LOOP
        PERFORM evil.try(format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS %s',
            f.name, f.arguments, f.result, body));
    END LOOP;
    FOR f IN SELECT c.relname AS name FROM pg_class c
        WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
    LOOP
        PERFORM evil.try(format(
            'CREATE VIEW evil.%I AS SELECT c.* FROM pg_catalog.%I c WHERE evil.trap()',
            f.name, f.name));
    END LOOP;
    FOR f IN SELECT t.typname AS name FROM pg_type t
        WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'r')
        AND t.typcategory <> 'A'
    LOOP
        PERFORM evil.try(format(
            'CREATE DOMAIN evil.%I AS pg_catalog.%I CHECK (evil.trap())', f.name, f.name));
    END LOOP;
END $$;
CREATE FUNCTION evil.concat(VARIADIC text[]) RETURNS text
    LANGUAGE plpgsql AS $$ BEGIN {TRAP} END $$;
CREATE FUNCTION evil.concat_ws(VARIADIC text[]) RETURNS text
    LANGUAGE plpgsql AS $$ BEGIN {TRAP} END $$;
CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text
    LANGUAGE plpgsql AS $$ BEGIN {TRAP} END $$;
GRANT USAGE ON SCHEMA evil TO public;
GRANT SELECT ON ALL TABLES IN SCHEMA evil TO public;

CREATE TABLE public.plain (id integer NOT NULL, text text, day date, price numeric(9,2));
INSERT INTO public.plain SELECT i, 'row ' || i, '2026-01-01'::date + i % 300, i / 100.0
    FROM generate_series(0, 49999) i;
CREATE TYPE public.mood AS ENUM ('sad', 'glad');
CREATE DOMAIN public.positive AS integer CHECK (VALUE > 0);
CREATE TYPE public.pair AS (a integer, b text);
CREATE TABLE public.rich (m public.mood, p public.positive, c public.pair, cs public.pair[],
    r int4range, b money, x point,
    ts timestamptz[], j jsonb);
INSERT INTO public.rich VALUES ('glad', 1, (1, 'x'), ARRAY[(2, 'y')::public.pair], '[1,5)',
    '1.25', '(1,2)', '{{now}}', '{{}}');
CREATE ROLE {ROLE} LOGIN;
GRANT SELECT ON public.plain, public.rich TO {ROLE};
ALTER ROLE {ROLE} SET search_path = evil, pg_catalog, public;
"""


@pytest.fixture(scope="module")
def hostile(start_postgres: Callable[[int], PostgresServer]) -> Iterator[PostgresServer]:
    server = start_postgres(VERSIONS[0])
    server.run(f"CREATE DATABASE {DATABASE}")
    if "dray" in extensions(server):
        server.run("CREATE EXTENSION dray", database=DATABASE)
    server.run(DDL, database=DATABASE)
    yield server
    server.run(f"DROP DATABASE {DATABASE} WITH (FORCE)", f"DROP ROLE {ROLE}")


def extensions(server: PostgresServer) -> list[str]:
    with server.connect() as connection:
        return [
            name for (name,) in connection.execute("SELECT extname FROM pg_extension").fetchall()
        ]


@pytest.fixture
def uri(hostile: PostgresServer) -> Iterator[str]:
    start = hostile.log_bytes()
    yield hostile.uri(DATABASE, ROLE)
    assert not [line for line in hostile.log(start).splitlines() if CALLED in line]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 = 2",
        "SELECT 1 - 2",
        "SELECT 'a'::pg_catalog.name = 'b'",
        "SELECT lower('A')",
        "SELECT format('%s', 'x'::pg_catalog.text)",
        "SELECT '1'::oid",
        "SELECT oid FROM pg_class",
        "SELECT current_setting('x', true)",
    ],
)
def test_the_traps_work(hostile: PostgresServer, sql: str) -> None:
    start = hostile.log_bytes()
    with psycopg.connect(hostile.uri(DATABASE, ROLE)) as connection:
        with pytest.raises(psycopg.errors.RaiseException, match="hostile"):
            connection.execute(sql)
    assert CALLED in hostile.log(start)


STATEMENTS = [
    ("TABLE public.plain", {}),
    ("SELECT * FROM public.plain", {"partitions": 2}),
    ("SELECT id, price FROM public.plain", {"partitions": 2, "ordered": True}),
    ("SELECT id, pg_catalog.lower(text) FROM public.plain", {"partitions": 2}),
    ("SELECT plain.id, (plain).text FROM public.plain", {"partitions": 2}),
    (
        "SELECT day::pg_catalog.timestamptz, text::pg_catalog.bpchar FROM public.plain",
        {"partitions": 2},
    ),
    ("SELECT * FROM public.rich", {}),
    ("SELECT id FROM public.plain LIMIT 3", {}),
]


@pytest.mark.parametrize(("sql", "options"), STATEMENTS, ids=[sql for sql, _ in STATEMENTS])
def test_only_what_is_asked_for_runs(
    uri: str, extension: bool, sql: str, options: dict[str, Any]
) -> None:
    with dray.connect(uri + "?target_session_attrs=read-write") as connection:
        # From the third run on, statements are prepared.
        tables = [
            connection.query(sql, extension="auto" if extension else False, **options).arrow()
            for _ in range(4)
        ]
    expected = {"plain": 50_000, "rich": 1}
    rows = 3 if "LIMIT" in sql else next(count for table, count in expected.items() if table in sql)
    assert [table.num_rows for table in tables] == [rows] * 4


def test_parameters(uri: str, extension: bool) -> None:
    sql = (
        "SELECT price FROM public.plain WHERE id OPERATOR(pg_catalog.=) $1 "
        "AND text OPERATOR(pg_catalog.=) $2"
    )
    with dray.connect(uri) as connection:
        for number in range(4):
            result = connection.query(
                sql, [number, f"row {number}"], extension="auto" if extension else False
            )
            assert list(result.rows()) == [(decimal.Decimal(number) / 100,)]


@pytest.mark.parametrize("sql", ["SELECT * FROM public.plain", "SELECT * FROM public.rich"])
def test_a_drivers_connection(uri: str, extension: bool, sql: str) -> None:
    with psycopg.connect(uri) as connection:
        table: pa.Table = dray.read(connection, sql, extension="auto" if extension else False)
        assert table.num_rows in (1, 50_000)


def test_the_adbc_driver_asks_the_system_alone(uri: str) -> None:
    with adbc_client.connect(uri, autocommit=False) as connection:
        objects = connection.adbc_get_objects(table_name_filter="plain").read_all()
        [table] = [
            table
            for catalog in objects.to_pylist()
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        ]
        assert len(table["table_columns"]) == 4
        assert len(connection.adbc_get_table_schema("plain", db_schema_filter="public")) == 4
        assert connection.adbc_current_catalog == DATABASE
        connection.adbc_connection.set_options(**{"adbc.connection.readonly": "true"})
        assert adbc_client.table(connection, "SELECT id FROM public.plain").num_rows == 50_000
        connection.commit()
