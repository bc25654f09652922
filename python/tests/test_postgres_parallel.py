"""Reading a table over several connections: one snapshot, every row once, and only statements that
may be split.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_parallel import ROWS, read
from postgres_server import PostgresServer

import dray


@pytest.fixture
def client(big: PostgresServer) -> Iterator[dray.Connection]:
    with dray.connect(big.uri()) as connection:
        yield connection


SPLITTABLE = [
    ("SELECT * FROM many", ROWS),
    ("SELECT id, amount FROM public.many AS m WHERE m.id > 100 OR m.id < 5", ROWS - 96),
    ('SELECT upper(filler) AS "UPPER", tame(id) FROM "many" WHERE filler IS NOT NULL -- all', ROWS),
    ("SELECT id, filler FROM parted", 100_000),
    (
        "SELECT id, id::text AS t, -id AS n FROM many WHERE filler LIKE ('%') "
        "AND id BETWEEN 1 AND 9e9",
        ROWS,
    ),
    (
        "SELECT at::date AS day, CAST(w.at AS time) AS t, word FROM words w "
        "WHERE at::date > '2020-01-01'",
        10_000,
    ),
    (
        "SELECT filler, id + 1 AS next FROM (SELECT * FROM many WHERE id % 2 = 0 -- even\n) AS q "
        "WHERE (id > 100)",
        ROWS // 2 - 50,
    ),
    (
        "SELECT * FROM (SELECT id, upper(filler) AS u FROM (SELECT * FROM parted) AS p) q "
        "WHERE u <> ''",
        100_000,
    ),
    ("SELECT at::date AS day FROM (SELECT * FROM words) AS w", 10_000),
    # As Spark's connector writes filters.
    (
        "SELECT extract(month FROM at)::integer AS month, date_trunc('day', at) AS day FROM words "
        "WHERE (date_part('year', at) > 2000) AND (word <> E'a\\\\b'::text)",
        10_000,
    ),
    (
        "SELECT id FROM many WHERE (filler IS NOT DISTINCT FROM 'xxx'::text) "
        "AND (filler <> 'now or never'::text)",
        ROWS // 50,
    ),
]


@pytest.mark.parametrize(("sql", "rows"), SPLITTABLE)
def test_every_row_once(client: dray.Connection, extension: bool, sql: str, rows: int) -> None:
    table, reason = read(client, sql, extension)
    assert "3 connections, one snapshot" in reason
    whole, _ = read(client, sql, extension, partitions=1)
    assert table.num_rows == rows
    assert table.schema == whole.schema
    order = [(name, "ascending") for name in table.column_names]
    assert table.sort_by(order).equals(whole.sort_by(order))


def test_rows_without_columns(client: dray.Connection, extension: bool) -> None:
    result = client.query("SELECT FROM many", extension=extension, partitions=3)
    assert result.arrow().num_columns == 0
    assert result.stats is not None and result.stats.rows == ROWS


def test_order_can_be_kept(big: PostgresServer, client: dray.Connection, extension: bool) -> None:
    table, reason = read(
        client, "SELECT id, filler FROM many", extension, partitions=4, ordered=True
    )
    assert "4 connections" in reason
    # A scan may begin where another one is.
    with dray.connect(big.uri(options="?options=-c%20synchronize_seqscans%3Doff")) as alone:
        whole, _ = read(alone, "SELECT id, filler FROM many", extension, partitions=1)
    assert table.equals(whole)


NOT_SPLITTABLE = [
    "SELECT id FROM many ORDER BY id",
    "SELECT id FROM many LIMIT 10",
    "SELECT DISTINCT filler FROM many",
    "SELECT count(*) FROM many",
    "SELECT sum(id) OVER () FROM many LIMIT 5",
    "SELECT id FROM seen",
    "SELECT id FROM parent",
    "SELECT wild(id) FROM many",
    "SELECT id, random() FROM many",
    "SELECT id, now() FROM many",
    "SELECT word::timestamptz FROM words",
    "SELECT date_trunc('day', word::timestamptz) FROM words",
    "SELECT at > 'now'::text::timestamptz FROM words",
    "SELECT id::date FROM (SELECT now() AS id) t",
    "SELECT at::date FROM (SELECT word AS at FROM words) q",
    "SELECT n FROM (SELECT count(*) AS n FROM many) q",
    "SELECT g FROM (SELECT generate_series(1, 2) AS g FROM sparse) q",
    "SELECT id FROM (SELECT id, random() AS r FROM many) q WHERE r < 0.5 AND r >= 2",
    "SELECT id FROM (SELECT id FROM many LIMIT 10) q",
    "SELECT id FROM (SELECT id FROM seen) q",
    "SELECT at::date, word::date FROM words",
    "SELECT CAST(word AS date) FROM words",
    "SELECT tstzrange('[' || word || ',)') FROM words",
    "SELECT (word::text).timestamptz FROM words",
    "SELECT a_day(word) FROM words",
    "SELECT generate_series(1, 2), id FROM parent",
    "SELECT a.id FROM many a, parent b WHERE a.id = b.id",
    "SELECT id FROM many WHERE id IN (SELECT id FROM parent)",
    "SELECT id FROM parent FOR UPDATE",
    "SELECT id FROM ONLY many WHERE id < 5",
    "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace",
    "WITH m AS (SELECT id FROM many) SELECT * FROM m",
    "VALUES (1), (2)",
    "SELECT * FROM generate_series(1, 10)",
]


@pytest.mark.parametrize("sql", NOT_SPLITTABLE)
def test_what_is_not_split(client: dray.Connection, extension: bool, sql: str) -> None:
    table, reason = read(client, sql, extension)
    assert "one connection: " in reason, reason
    whole, _ = read(client, sql, extension, partitions=1)
    assert table.num_rows == whole.num_rows


def test_parameters_are_not_split(client: dray.Connection) -> None:
    result = client.query("SELECT id FROM many WHERE id > $1", [10], partitions=2)
    assert result.arrow().num_rows == ROWS - 10
    assert "parameters" in result.stats.path_reason


def test_small_tables_are_not_split_by_themselves(client: dray.Connection) -> None:
    result = client.query("SELECT * FROM empty_table")
    assert result.arrow().num_rows == 0
    assert "one connection" in result.stats.path_reason


def test_empty_table_in_parts(client: dray.Connection, extension: bool) -> None:
    table, reason = read(client, "SELECT * FROM empty_table", extension, partitions=4)
    assert "one snapshot" in reason
    assert table.num_rows == 0
    assert table.column_names == ["id"]


def test_a_transaction_keeps_to_itself(client: dray.Connection, extension: bool) -> None:
    client.query("BEGIN").arrow()
    client.query("INSERT INTO parent VALUES (-1)").arrow()
    table, reason = read(client, "SELECT id FROM many", extension)
    assert "one connection" in reason
    client.query("ROLLBACK").arrow()
    assert table.num_rows == ROWS


def test_settings_keep_to_their_session(client: dray.Connection, extension: bool) -> None:
    client.query("SET ROLE half").arrow()
    table, reason = read(client, "SELECT id FROM guarded", extension)
    assert "one connection" in reason
    assert table.num_rows == 10_000


def test_settings_that_later_sessions_have(big: PostgresServer, extension: bool) -> None:
    sql = "SELECT id, '2024-01-02 23:00+00'::timestamptz::text AS t FROM many"
    with dray.connect(big.uri(user="half")) as client:
        assert "3 connections" in read(client, sql, extension)[1]
        big.run("ALTER ROLE half SET TimeZone = 'Asia/Tokyo'")
        try:
            table, reason = read(client, sql, extension)
        finally:
            big.run("ALTER ROLE half RESET TimeZone")
        assert "one connection" in reason and "other settings" in reason
        assert len(table["t"].unique()) == 1


def test_a_function_called_like_a_column(client: dray.Connection, extension: bool) -> None:
    for sql in ("SELECT w.word FROM words w", "SELECT (w).word FROM public.words w"):
        read(client, sql, extension, partitions=1)
        assert "3 connections" in read(client, "SELECT m.id FROM many m", extension)[1]
    assert read(client, "SELECT w.tenant FROM words w LIMIT 1", extension)[0].to_pylist() == [
        {"tenant": "5"}
    ]
    _, reason = read(client, "SELECT m.id FROM many m", extension)
    assert "one connection" in reason and "tenant" in reason


def test_row_security_in_parts(big: PostgresServer, extension: bool) -> None:
    with dray.connect(big.uri(user="half")) as client:
        table, reason = read(client, "SELECT id FROM guarded", extension)
        assert table.num_rows == 10_000 and "3 connections" in reason
        # Each connection would have its own time.
        table, reason = read(client, "SELECT id FROM guarded_by_time", extension)
        assert (
            table.num_rows == 20_000
            and "a policy of its table may differ between connections: it calls now" in reason
        )
        with pytest.raises(dray.QueryError, match="permission denied"):
            read(client, "SELECT secret FROM columns_only", extension)
        table, reason = read(client, "SELECT id FROM columns_only", extension)
        assert table.num_rows == 10_000
        assert "one connection" in reason


# Objects whose value may differ between transactions, although they don't look like function calls:
# how they are created, statements that use them, how they are dropped, and the reason given.
HIDDEN = {
    "operator": (
        ["CREATE FUNCTION moment(integer, integer) RETURNS timestamptz LANGUAGE sql STABLE "
            "AS 'SELECT transaction_timestamp()'",
         "CREATE OPERATOR @@@ (FUNCTION = moment, LEFTARG = integer, RIGHTARG = integer)"],
        ["SELECT id @@@ -1 AS t FROM many", "SELECT id OPERATOR(public.@@@) 1 AS t FROM many"],
        "DROP FUNCTION moment CASCADE", "the operator @@@",
    ),
    "operator of a word": (
        ["CREATE FUNCTION equal(integer, money) RETURNS boolean LANGUAGE sql STABLE "
            "AS 'SELECT now() IS NOT NULL'",
         "CREATE OPERATOR = (FUNCTION = equal, LEFTARG = integer, RIGHTARG = money)"],
        ["SELECT 1 AS t FROM many WHERE id IN ('1'::money, '2'::money)"],
        "DROP FUNCTION equal CASCADE", "the operator =",
    ),
    "cast": (
        ["CREATE FUNCTION written(integer) RETURNS text LANGUAGE sql STABLE "
            "AS 'SELECT transaction_timestamp()::text'",
         "CREATE CAST (integer AS text) WITH FUNCTION written(integer)"],
        ["SELECT id::text AS t FROM many", "SELECT CAST(id AS text) AS t FROM many"],
        "DROP FUNCTION written CASCADE", "may cast integer to text by written",
    ),
    "cast that nobody writes": (
        ["CREATE FUNCTION written(money) RETURNS text LANGUAGE sql STABLE "
            "AS 'SELECT transaction_timestamp()::text'",
         "CREATE CAST (money AS text) WITH FUNCTION written(money) AS IMPLICIT"],
        ["SELECT lower('1'::money) AS t FROM many"],
        "DROP FUNCTION written CASCADE", "may cast money to text by written",
    ),
    "domain": (
        ["CREATE FUNCTION holds(text) RETURNS boolean LANGUAGE sql "
            "AS 'SELECT clock_timestamp() IS NOT NULL'",
         "CREATE DOMAIN checked AS text CHECK (holds(VALUE))"],
        ["SELECT 'x'::checked AS t FROM many", "SELECT checked 'x' AS t FROM many"],
        "DROP DOMAIN checked; DROP FUNCTION holds", "may cast to checked",
    ),
    "type": (
        ["CREATE TYPE moody",
         "CREATE FUNCTION moody_in(cstring) RETURNS moody "
             "LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
         "CREATE FUNCTION moody_out(moody) RETURNS cstring LANGUAGE internal STRICT AS 'textout'",
         "CREATE TYPE moody (INPUT = moody_in, OUTPUT = moody_out, LIKE = text)",
         "CREATE TABLE moods (t moody[])", "INSERT INTO moods VALUES ('{x}')"],
        ["SELECT t FROM moods", "SELECT * FROM moods"],
        "DROP TYPE moody CASCADE; DROP TABLE moods", "has the function moody_out",
    ),
    "order": (
        ["CREATE FUNCTION compared(money, money) RETURNS integer LANGUAGE sql STABLE AS 'SELECT 0'",
         "CREATE OPERATOR CLASS strange FOR TYPE money USING btree "
             "AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=,"
         " OPERATOR 5 >, FUNCTION 1 compared(money, money)"],
        ["SELECT greatest(id - id, 5) AS t FROM many"],
        "DROP OPERATOR FAMILY strange USING btree; DROP FUNCTION compared", "compared by compared",
    ),
    "another schema": (
        ["CREATE SCHEMA elsewhere",
         "CREATE FUNCTION elsewhere.tame(integer) RETURNS timestamptz LANGUAGE sql "
             "AS 'SELECT transaction_timestamp()'"],
        ["SELECT elsewhere.tame(id) AS t FROM many",
            'SELECT "elsewhere" . tame(id) AS t FROM many'],
        "DROP SCHEMA elsewhere CASCADE", "calls tame, which is not immutable",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hides_that_it_differs(big: PostgresServer, extension: bool, name: str) -> None:
    made, statements, undo, what = HIDDEN[name]
    big.run(*made)
    try:
        for sql in statements:
            # A statement that may have called a function changes its session, so each one gets a
            # new connection.
            with dray.connect(big.uri()) as client:
                table, reason = read(client, sql, extension)
                assert "one connection: " in reason and what in reason, reason
                assert len(set(map(str, table["t"].to_pylist()))) == 1
        with dray.connect(big.uri()) as client:
            # Statements that don't use the object are split.
            assert (
                "3 connections"
                in read(client, "SELECT id, amount AS n FROM many AS m", extension)[1]
            )
            if name == "another schema":
                assert "3 connections" in read(client, "SELECT tame(id) FROM many", extension)[1]
    finally:
        big.run(*undo.split("; "))


def test_settings_that_policies_read(big: PostgresServer, extension: bool) -> None:
    """A session keeps the settings with which it began; later sessions may get others."""
    policy = "CREATE POLICY own ON tenants USING (tenant::text = current_setting('app.tenant'))"
    big.run(
        "CREATE TABLE tenants AS SELECT i AS id, i % 2 AS tenant FROM generate_series(1, 20000) i",
        "ALTER TABLE tenants ENABLE ROW LEVEL SECURITY", policy, "GRANT SELECT ON tenants TO half",
        "ALTER ROLE half SET app.tenant = '1'",
    )  # fmt: skip
    try:
        sql = "SELECT id, tenant FROM tenants"
        with dray.connect(big.uri(user="half")) as client:
            table, reason = read(client, sql, extension)
            assert "3 connections" in reason and table["tenant"].to_pylist() == [1] * 10_000
            big.run("ALTER ROLE half SET app.tenant = '0'")
            table, reason = read(client, sql, extension)
            assert "one connection" in reason and "other settings" in reason
            assert table["tenant"].to_pylist() == [1] * 10_000
        for using, what in [
            ("pg_backend_pid() > 0", "calls pg_backend_pid"),
            ("id > 0 AND current_date > '2000-01-01'", "calls now"),
            ("current_setting('app.day', true)::date IS NULL", "may depend on the time"),
            ("random() > -1", "calls random"),
            (
                "current_setting('app.' || tenant, true) IS NULL",
                "a setting whose name is not clear",
            ),
        ]:
            big.run(f"ALTER POLICY own ON tenants USING ({using})")
            with dray.connect(big.uri(user="half")) as client:
                table, reason = read(client, sql, extension)
                assert (
                    "a policy of its table may differ between connections" in reason
                    and what in reason
                ), reason
                assert table.num_rows == 20_000
    finally:
        big.run("DROP TABLE tenants", "ALTER ROLE half RESET app.tenant")
