"""A table over several connections: one snapshot, every row once, and nothing split that must not
be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pyarrow.compute
import pytest
from postgres_server import PostgresServer

import dray

ROWS = 200_000
DDL = f"""
CREATE TABLE many (id integer NOT NULL, filler text, amount numeric(12,2));
INSERT INTO many SELECT i, repeat('x', i % 50), i / 100.0 FROM generate_series(1, {ROWS}) i;
CREATE TABLE parted (id integer, filler text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (30000);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (30000) TO (MAXVALUE);
INSERT INTO parted SELECT i, repeat('y', 20) FROM generate_series(1, 100000) i;
CREATE TABLE parent (id integer);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT generate_series(1, 1000);
INSERT INTO child SELECT generate_series(1001, 2000);
CREATE VIEW seen AS SELECT * FROM many;
CREATE FUNCTION wild(integer) RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT $1';
CREATE FUNCTION tame(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE TABLE guarded (id integer, owner name);
INSERT INTO guarded SELECT i, CASE WHEN i % 2 = 0 THEN 'half' ELSE 'other' END FROM generate_series(1, 20000) i;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (owner = current_user);
CREATE TABLE guarded_by_time (id integer, until timestamptz);
INSERT INTO guarded_by_time SELECT i, 'infinity' FROM generate_series(1, 20000) i;
ALTER TABLE guarded_by_time ENABLE ROW LEVEL SECURITY;
CREATE POLICY lasts ON guarded_by_time USING (until > now());
CREATE ROLE half LOGIN;
GRANT SELECT ON guarded, guarded_by_time, many TO half;
CREATE TABLE columns_only (id integer, secret integer);
INSERT INTO columns_only SELECT i, i FROM generate_series(1, 10000) i;
GRANT SELECT (id) ON columns_only TO half;
CREATE TABLE empty_table (id integer);
CREATE TABLE words (word text, at timestamptz);
INSERT INTO words SELECT 'now', '2024-01-01'::timestamptz + i * interval '7 minutes' FROM generate_series(1, 10000) i;
CREATE DOMAIN a_day AS date;
CREATE TABLE sparse (id integer, filler text);
INSERT INTO sparse SELECT i, repeat('z', 1900) FROM generate_series(1, 320) i;
CREATE FUNCTION slow(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM pg_sleep(0.012); RETURN $1; END';
CREATE FUNCTION tenant(words) RETURNS text LANGUAGE sql AS $$ SELECT set_config('shop.tenant', '5', false) $$;
ANALYZE;
"""


@pytest.fixture(scope="session")
def big(postgres: PostgresServer) -> PostgresServer:
    with postgres.connect() as connection:
        if connection.execute("SELECT to_regclass('many')").fetchone() == (None,):
            postgres.run(DDL)
    return postgres


@pytest.fixture
def client(big: PostgresServer) -> Iterator[dray.Connection]:
    with dray.connect(big.uri()) as connection:
        yield connection


def read(
    client: dray.Connection, sql: str, extension: bool, **options: object
) -> tuple[pa.Table, str]:
    result = client.query(sql, extension=extension, **{"partitions": 3, **options})  # type: ignore[arg-type]
    table = result.arrow()
    return table, result.stats["path_reason"]


SPLITTABLE = [
    ("SELECT * FROM many", ROWS),
    ("SELECT id, amount FROM public.many AS m WHERE m.id > 100 OR m.id < 5", ROWS - 96),
    ('SELECT upper(filler) AS "UPPER", tame(id) FROM "many" WHERE filler IS NOT NULL -- all', ROWS),
    ("SELECT id, filler FROM parted", 100_000),
    (
        "SELECT id, id::text AS t, -id AS n FROM many WHERE filler LIKE ('%') AND id BETWEEN 1 AND 9e9",
        ROWS,
    ),
    (
        "SELECT at::date AS day, CAST(w.at AS time) AS t, word FROM words w WHERE at::date > '2020-01-01'",
        10_000,
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


def test_order_can_be_kept(client: dray.Connection, extension: bool) -> None:
    table, reason = read(
        client, "SELECT id, filler FROM many", extension, partitions=4, ordered=True
    )
    assert "4 connections" in reason
    whole, _ = read(client, "SELECT id, filler FROM many", extension, partitions=1)
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
    "SELECT id::date FROM (SELECT now() AS id) t",
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
    assert "parameters" in result.stats["path_reason"]


def test_small_tables_are_not_split_by_themselves(client: dray.Connection) -> None:
    result = client.query("SELECT * FROM empty_table")
    assert result.arrow().num_rows == 0
    assert "one connection" in result.stats["path_reason"]


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
        # Each connection would have a time of its own.
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


# What has a value of its own in each transaction and is not called like a function: how it is made,
# read, and undone, and what is said of it.
HIDDEN = {
    "operator": (
        ["CREATE FUNCTION moment(integer, integer) RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT transaction_timestamp()'",
         "CREATE OPERATOR @@@ (FUNCTION = moment, LEFTARG = integer, RIGHTARG = integer)"],
        ["SELECT id @@@ -1 AS t FROM many", "SELECT id OPERATOR(public.@@@) 1 AS t FROM many"],
        "DROP FUNCTION moment CASCADE", "the operator @@@",
    ),
    "operator of a word": (
        ["CREATE FUNCTION equal(integer, money) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT now() IS NOT NULL'",
         "CREATE OPERATOR = (FUNCTION = equal, LEFTARG = integer, RIGHTARG = money)"],
        ["SELECT 1 AS t FROM many WHERE id IN ('1'::money, '2'::money)"],
        "DROP FUNCTION equal CASCADE", "the operator =",
    ),
    "cast": (
        ["CREATE FUNCTION written(integer) RETURNS text LANGUAGE sql STABLE AS 'SELECT transaction_timestamp()::text'",
         "CREATE CAST (integer AS text) WITH FUNCTION written(integer)"],
        ["SELECT id::text AS t FROM many", "SELECT CAST(id AS text) AS t FROM many"],
        "DROP FUNCTION written CASCADE", "may cast integer to text by written",
    ),
    "cast that nobody writes": (
        ["CREATE FUNCTION written(money) RETURNS text LANGUAGE sql STABLE AS 'SELECT transaction_timestamp()::text'",
         "CREATE CAST (money AS text) WITH FUNCTION written(money) AS IMPLICIT"],
        ["SELECT lower('1'::money) AS t FROM many"],
        "DROP FUNCTION written CASCADE", "may cast money to text by written",
    ),
    "domain": (
        ["CREATE FUNCTION holds(text) RETURNS boolean LANGUAGE sql AS 'SELECT clock_timestamp() IS NOT NULL'",
         "CREATE DOMAIN checked AS text CHECK (holds(VALUE))"],
        ["SELECT 'x'::checked AS t FROM many", "SELECT checked 'x' AS t FROM many"],
        "DROP DOMAIN checked; DROP FUNCTION holds", "may cast to checked",
    ),
    "type": (
        ["CREATE TYPE moody",
         "CREATE FUNCTION moody_in(cstring) RETURNS moody LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
         "CREATE FUNCTION moody_out(moody) RETURNS cstring LANGUAGE internal STRICT AS 'textout'",
         "CREATE TYPE moody (INPUT = moody_in, OUTPUT = moody_out, LIKE = text)",
         "CREATE TABLE moods (t moody[])", "INSERT INTO moods VALUES ('{x}')"],
        ["SELECT t FROM moods", "SELECT * FROM moods"],
        "DROP TYPE moody CASCADE; DROP TABLE moods", "has the function moody_out",
    ),
    "order": (
        ["CREATE FUNCTION compared(money, money) RETURNS integer LANGUAGE sql STABLE AS 'SELECT 0'",
         "CREATE OPERATOR CLASS strange FOR TYPE money USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=,"
         " OPERATOR 5 >, FUNCTION 1 compared(money, money)"],
        ["SELECT greatest(id - id, 5) AS t FROM many"],
        "DROP OPERATOR FAMILY strange USING btree; DROP FUNCTION compared", "compared by compared",
    ),
    "another schema": (
        ["CREATE SCHEMA elsewhere",
         "CREATE FUNCTION elsewhere.tame(integer) RETURNS timestamptz LANGUAGE sql AS 'SELECT transaction_timestamp()'"],
        ["SELECT elsewhere.tame(id) AS t FROM many", 'SELECT "elsewhere" . tame(id) AS t FROM many'],
        "DROP SCHEMA elsewhere CASCADE", "calls tame, which is not immutable",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_what_hides_that_it_differs(big: PostgresServer, extension: bool, name: str) -> None:
    made, statements, undo, what = HIDDEN[name]
    big.run(*made)
    try:
        for sql in statements:
            # What may have called a function leaves a session of which others know nothing.
            with dray.connect(big.uri()) as client:
                table, reason = read(client, sql, extension)
                assert "one connection: " in reason and what in reason, reason
                assert len(set(map(str, table["t"].to_pylist()))) == 1
        with dray.connect(big.uri()) as client:
            # It does not matter to what does not use it.
            assert (
                "3 connections"
                in read(client, "SELECT id, amount AS n FROM many AS m", extension)[1]
            )
            if name == "another schema":
                assert "3 connections" in read(client, "SELECT tame(id) FROM many", extension)[1]
    finally:
        big.run(*undo.split("; "))


def test_settings_that_policies_read(big: PostgresServer, extension: bool) -> None:
    """Each session has what was set when it began: they may be others for those that begin later."""
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


def test_rows_beyond_the_known_end(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    """Writers add, change and remove rows all the while: a snapshot has exactly the sum that it had
    at its beginning.
    """
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(big.uri(), autocommit=True) as connection:
            i = 0
            while not stop.is_set():
                i += 1
                # Each transaction keeps the number of rows and the sum of their ids.
                with connection.transaction():
                    connection.execute(
                        "UPDATE many SET filler = %s WHERE id = %s", (f"w{i}", i % ROWS + 1)
                    )
                    connection.execute("UPDATE many SET id = id + 1 WHERE id = %s", (i % 1000 + 1,))
                    connection.execute(
                        "UPDATE many SET id = id - 1 WHERE ctid = (SELECT max(ctid) FROM many WHERE id = %s)",
                        (i % 1000 + 2,),
                    )

    def rewrite() -> None:
        with psycopg.connect(big.uri(), autocommit=True) as connection:
            connection.execute("CREATE INDEX IF NOT EXISTS many_id ON many (id)")
            while not stop.is_set():
                connection.execute("CLUSTER many USING many_id")
                connection.execute("VACUUM FULL many")
                stop.wait(0.05)

    threads = [threading.Thread(target=write), threading.Thread(target=rewrite)]
    for thread in threads:
        thread.start()
    try:
        in_parts = attempts = 0
        while in_parts < 4 and attempts < 60:
            attempts += 1
            table, reason = read(client, "SELECT id FROM many", extension, partitions=4)
            # Who rewrites the table may stand before the workers in the queue for its lock: then
            # one connection reads it.
            assert "one snapshot" in reason or "lock" in reason
            in_parts += "one snapshot" in reason
            assert table.num_rows == ROWS
            assert pa.compute.sum(table["id"]).as_py() == ROWS * (ROWS + 1) // 2
        assert in_parts == 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        big.run("DROP INDEX IF EXISTS many_id")


def test_a_table_that_is_inherited_from_meanwhile(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    big.run(
        "CREATE TABLE heir (id integer NOT NULL, filler text, amount numeric(12,2)); INSERT INTO heir SELECT -1 FROM many"
    )
    try:
        options = {
            "extension": extension,
            "partitions": 2,
            "batch_rows": 500,
            "chunk_bytes_max": 4096,
        }
        result = client.query("SELECT id, repeat(filler, 40) FROM many", **options)  # type: ignore[arg-type]
        batches = result.batches()
        ids = next(batches).column(0).to_pylist()
        big.run("ALTER TABLE heir INHERIT many")
        for batch in batches:
            ids += batch.column(0).to_pylist()
        assert "one snapshot" in result.stats["path_reason"]
        assert len(ids) == len(set(ids)) == ROWS and min(ids) == 1
        table, reason = read(client, "SELECT id FROM many", extension)
        assert table.num_rows == 2 * ROWS and "inherited from" in reason
    finally:
        # That it ever was inherited from is forgotten with the next ANALYZE.
        big.run("DROP TABLE heir", "ANALYZE many")


def test_half_read_and_read_again(client: dray.Connection, extension: bool) -> None:
    for ordered in (False, True):
        options = {"extension": extension, "partitions": 3, "batch_rows": 1000, "ordered": ordered}
        with client.query("SELECT * FROM many", **options) as result:  # type: ignore[arg-type]
            assert next(iter(result.batches())).num_rows >= 1000
        table, _ = read(client, "SELECT id FROM many", extension, ordered=ordered)
        assert table.num_rows == ROWS


def test_a_worker_that_is_terminated(
    big: PostgresServer, client: dray.Connection, extension: bool
) -> None:
    """Its part is read again, from where it was."""
    with big.connect() as other:
        other.autocommit = True
        for ordered in (False, True):
            terminated = 0
            rows = 0
            ids: set[int] = set()
            result = client.query(
                "SELECT id, repeat(filler, 40) FROM many",
                extension=extension,
                partitions=2,
                batch_rows=500,
                chunk_bytes_max=4096,
                ordered=ordered,
            )
            for i, batch in enumerate(result.batches()):
                if i in (2, 20):
                    killed = other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                        " AND pid <> pg_backend_pid() AND query LIKE '%ctid OPERATOR%' AND state = 'active' LIMIT 1"
                    ).fetchall()
                    terminated += len(killed)
                rows += batch.num_rows
                ids.update(batch.column(0).to_pylist())
            assert terminated > 0
            assert rows == len(ids) == ROWS
            assert "one of them failed: " in result.stats["path_reason"]


def test_no_connection_to_spare(big: PostgresServer, extension: bool) -> None:
    big.run("CREATE ROLE single LOGIN CONNECTION LIMIT 1; GRANT SELECT ON many TO single")
    try:
        with dray.connect(big.uri(user="single")) as client:
            table, reason = read(client, "SELECT id FROM many", extension)
            assert table.num_rows == ROWS
            assert "one connection: another connection can't be had" in reason
            # The transaction that was begun for it is over.
            client.query("CREATE TEMPORARY TABLE t AS SELECT 1").arrow()
    finally:
        big.run("DROP OWNED BY single; DROP ROLE single")


def test_statement_timeout(big: PostgresServer, extension: bool) -> None:
    """It is the whole statement's, not each part's."""
    with dray.connect(big.uri(options="?options=-c%20statement_timeout%3D1s")) as client:
        began = time.monotonic()
        with pytest.raises(
            dray.ExecutionError, match="canceling statement due to statement timeout"
        ) as caught:
            read(client, "SELECT slow(id) FROM sparse", extension, partitions=2)
        assert caught.value.sqlstate == "57014"
        assert 0.9 < time.monotonic() - began < 2
        assert (
            "2 connections"
            in read(client, "SELECT slow(id) FROM sparse WHERE id < 40", extension, partitions=2)[1]
        )


def test_errors_within_a_part(client: dray.Connection, extension: bool) -> None:
    with pytest.raises(dray.ExecutionError, match="division by zero"):
        read(client, "SELECT 1 / (id - 150000) FROM many", extension)
    assert read(client, "SELECT id FROM many", extension)[0].num_rows == ROWS
