"""The rules of COPY: privileges, kinds of statements, and visibility."""

import time

import pytest
from client import Limits, ServerError


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as connection:
        connection.run(
            """
            CREATE SCHEMA s;
            CREATE TABLE s.t (a integer NOT NULL, b text, c integer);
            INSERT INTO s.t VALUES (1, 'x', 10), (2, 'y', 20), (3, NULL, 30);
            CREATE TABLE s.generated (a integer, twice integer GENERATED ALWAYS AS (a * 2) STORED);
            INSERT INTO s.generated VALUES (4);
            CREATE TABLE s.parent (a integer);
            CREATE TABLE s.child () INHERITS (s.parent);
            INSERT INTO s.parent VALUES (1);
            INSERT INTO s.child VALUES (2);
            CREATE TABLE s.parted (a integer) PARTITION BY LIST (a);
            CREATE VIEW s.v AS SELECT a FROM s.t;
            CREATE MATERIALIZED VIEW s.m AS SELECT a FROM s.t;
            CREATE SEQUENCE s.q;
            CREATE TABLE s.policed (a integer, owner text);
            INSERT INTO s.policed VALUES (1, 'reader'), (2, 'other');
            ALTER TABLE s.policed ENABLE ROW LEVEL SECURITY;
            CREATE POLICY own ON s.policed USING (owner = current_user);
            CREATE TABLE s.ruled (a integer);
            CREATE RULE also AS ON INSERT TO s.ruled DO ALSO SELECT 1;
            CREATE ROLE reader LOGIN;
            GRANT USAGE ON SCHEMA s TO reader;
            GRANT SELECT ON s.policed TO reader;
            CREATE ROLE columnist LOGIN;
            GRANT USAGE ON SCHEMA s TO columnist;
            GRANT SELECT (a) ON s.t TO columnist;
            CREATE ROLE nobody LOGIN
            """
        )


def refused(connection, what: str, sqlstate: str, match: str, options: str = ""):
    with pytest.raises(ServerError, match=match) as caught:
        connection.copy(what, options)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.result.copy_out is None
    assert connection.status == "I"
    return caught.value


def test_the_table_and_its_columns(connection):
    assert connection.copy("s.t").columns() == [[1, 2, 3], ["x", "y", None], [10, 20, 30]]
    assert connection.copy("s.t (c, a)").columns() == [[10, 20, 30], [1, 2, 3]]
    assert connection.copy("s.generated").columns() == [[4]]
    assert connection.copy("s.parent").columns() == [[1]]


def test_a_column_of_a_dropped_one(connection):
    connection.run(
        "CREATE TEMP TABLE d (a int, b int, c int); INSERT INTO d VALUES (1, 2, 3); "
        "ALTER TABLE d DROP b"
    )
    assert connection.copy("d").columns() == [[1], [3]]


@pytest.mark.parametrize(
    "what",
    [
        "s.v",
        "s.m",
        "s.parted",
        "s.q",
        "s.missing",
        "s.t (d)",
        "s.t (a, a)",
        "s.generated (twice)",
        "(SELECT 1 INTO x)",
        "(INSERT INTO s.t VALUES (9))",
        "(INSERT INTO s.ruled VALUES (9) RETURNING a)",
        "(SELECT missing)",
        "(SELECT 1 FROM)",
    ],
)
def test_refusals_are_those_of_copy(server, connection, what):
    """The errors are literally those of COPY."""

    def words(statement):
        try:
            connection.run(statement)
        except ServerError as error:
            return error.sqlstate, error.message, error.hint
        return None

    own = words(f"COPY {what} TO STDOUT (FORMAT binary)")
    assert words(f"SELECT pg_catalog.dray_load(); COPY {what} TO STDOUT (FORMAT dray)") == own
    # Version 18 allows materialized views, and version 19 partitioned tables.
    allowed = {"s.m": 18, "s.parted": 19}
    assert own is not None or (what in allowed and server.version >= allowed[what])


def test_partitioned_tables(server, connection):
    connection.run(
        """CREATE TABLE s.by_range (a integer NOT NULL, b text) PARTITION BY RANGE (a);
        CREATE TABLE s.low PARTITION OF s.by_range FOR VALUES FROM (0) TO (10);
        CREATE TABLE s.high (b text, a integer NOT NULL);
        ALTER TABLE s.by_range ATTACH PARTITION s.high FOR VALUES FROM (10) TO (20);
        INSERT INTO s.by_range VALUES (15, 'high'), (5, 'low')"""
    )
    if server.version >= 19:
        assert connection.copy("s.by_range").columns() == [[5, 15], ["low", "high"]]
        assert connection.copy("s.by_range (b)").columns() == [["low", "high"]]
    else:
        refused(connection, "s.by_range", "42809", "cannot copy from partitioned table")
    connection.run("DROP TABLE s.by_range")


def test_privileges(server):
    with server.connect("nobody") as nobody:
        refused(nobody, "s.t", "42501", "permission denied for schema s")
        refused(nobody, "pg_authid", "42501", "permission denied for table pg_authid")
    with server.connect("reader") as reader:
        refused(reader, "s.t", "42501", "permission denied for table t")
        refused(reader, "(SELECT a FROM s.t)", "42501", "permission denied for table t")
        refused(reader, "(SELECT * FROM s.v)", "42501", "permission denied for view v")
    with server.connect("reader") as reader:
        # The error must not reveal the kind of relation before the privilege is checked.
        for name, kind in [
            ("v", "view"),
            ("m", "materialized view"),
            ("parted", "table"),
            ("q", "sequence"),
        ]:
            refused(reader, f"s.{name}", "42501", f"permission denied for {kind} {name}")
    with server.connect("columnist") as columnist:
        assert columnist.copy("s.t (a)").columns() == [[1, 2, 3]]
        refused(columnist, "s.t", "42501", "permission denied for table t")
        refused(columnist, "s.t (a, b)", "42501", "permission denied for table t")
        refused(columnist, "(SELECT b FROM s.t)", "42501", "permission denied for table t")


def test_row_security(server, connection):
    with server.connect("reader") as reader:
        assert reader.copy("s.policed").columns() == [[1], ["reader"]]
        assert reader.copy("(SELECT a FROM s.policed)").columns() == [[1]]
        reader.run("SET row_security = off")
        refused(reader, "s.policed", "42501", "would be affected by row-level security")
    assert connection.copy("s.policed").columns() == [[1, 2], ["reader", "other"]]


def test_set_role(connection):
    connection.run("SET ROLE columnist")
    refused(connection, "s.t", "42501", "permission denied")


def test_kinds_of_queries(connection):
    assert connection.copy("(VALUES (1, 'a'), (2, NULL))").columns() == [[1, 2], ["a", None]]
    assert connection.copy("(WITH x AS (SELECT 5 AS a) SELECT * FROM x)").columns() == [[5]]
    assert connection.copy("(SELECT generate_series(1, 3), 'x')").columns() == [
        [1, 2, 3],
        ["x"] * 3,
    ]
    assert connection.copy("(SELECT * FROM s.v ORDER BY a DESC)").columns() == [[3, 2, 1]]
    assert connection.copy("(TABLE s.parent)").columns() == [[1, 2]]
    assert connection.copy("(SELECT 1 UNION ALL SELECT 2)").columns() == [[1, 2]]
    assert connection.copy("(SELECT)").messages()[-1].fields["rows"] == 1


def test_returning(connection):
    connection.run("BEGIN")
    assert connection.copy("(INSERT INTO s.t VALUES (7, 'z', 70) RETURNING a, b)").columns() == [
        [7],
        ["z"],
    ]
    assert connection.copy("(UPDATE s.t SET c = c + 1 RETURNING c)").columns() == [[11, 21, 31, 71]]
    assert connection.copy("(DELETE FROM s.t WHERE a = 7 RETURNING a)").columns() == [[7]]
    assert connection.copy(
        "(WITH x AS (DELETE FROM s.t RETURNING a) SELECT count(*) FROM x)"
    ).columns() == [[3]]
    connection.run("ROLLBACK")


def test_read_only(connection):
    connection.run("BEGIN READ ONLY")
    assert connection.copy("s.parent").columns() == [[1]]
    with pytest.raises(ServerError, match="read-only transaction"):
        connection.copy("(INSERT INTO s.parent VALUES (1) RETURNING a)")
    connection.run("ROLLBACK")


def test_deferred_trigger_fails_before_the_end(connection):
    connection.run("""BEGIN; CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'after'; END$$; CREATE TEMP TABLE a (a int);
        CREATE TRIGGER a AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION pg_temp.f()""")
    with pytest.raises(ServerError, match="after") as caught:
        connection.copy("(INSERT INTO a VALUES (1) RETURNING a)")
    assert caught.value.result.copied[-100:].find(b"\x85") < 0 or not caught.value.result.tags[1:]
    connection.run("ROLLBACK")


def test_snapshot(server, connection):
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM s.parent")
    with server.connect() as other:
        other.run("INSERT INTO s.parent VALUES (100)")
        assert connection.copy("s.parent").columns() == [[1]]
        assert other.copy("s.parent").columns() == [[1, 100]]
        other.run("DELETE FROM ONLY s.parent WHERE a = 100")
    connection.run("COMMIT")


@pytest.mark.parametrize("what", ["s.changing", "(SELECT * FROM s.changing ORDER BY 1)"])
@pytest.mark.parametrize(
    "change",
    [
        "TRUNCATE s.changing; INSERT INTO s.changing VALUES (1), (2)",
        "ALTER TABLE s.changing ALTER a TYPE bigint",
        "CREATE TABLE s.next AS SELECT * FROM s.changing; DROP TABLE s.changing; "
        "ALTER TABLE s.next RENAME TO changing",
    ],
)
def test_rows_that_came_while_it_waited_for_a_lock(server, connection, change, what):
    connection.run(
        "DROP TABLE IF EXISTS s.changing; CREATE TABLE s.changing (a) AS VALUES (1), (2); "
        "SELECT pg_catalog.dray_load()"
    )
    with server.connect() as other:
        other.run(f"BEGIN; {change}")
        connection.send(f"COPY {what} TO STDOUT (FORMAT dray)")
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while other.value(waits) == "0":
            time.sleep(0.01)
        other.run("COMMIT")
    assert connection.read_result().columns() == [[1, 2]]


def test_own_changes_and_temporary_tables(connection):
    connection.run("BEGIN; CREATE TEMP TABLE mine (a integer); INSERT INTO mine VALUES (1)")
    assert connection.copy("mine").columns() == [[1]]
    connection.run("INSERT INTO mine VALUES (2)")
    assert connection.copy("(SELECT * FROM mine)").columns() == [[1, 2]]
    connection.run("ROLLBACK")
    assert connection.status == "I"


def test_load_by_other_means(server):
    with server.connect() as connection:
        with pytest.raises(ServerError, match='COPY format "dray" not recognized'):
            connection.run("COPY s.t TO STDOUT (FORMAT dray)")
        connection.run("LOAD 'dray'")
        assert connection.run("COPY s.t (a) TO STDOUT (FORMAT dray)").columns() == [[1, 2, 3]]
    with server.connect(options="-c session_preload_libraries=dray") as connection:
        assert connection.run("COPY s.t (a) TO STDOUT (FORMAT dray)").columns() == [[1, 2, 3]]
    with server.connect("nobody") as connection:
        assert connection.value("SELECT pg_catalog.dray_load()").startswith("dray ")


def test_an_installer_does_not_own_the_extension(server, connection):
    """Clients of other users call the function, so its installer must not be able to replace it."""
    connection.run("CREATE ROLE installer LOGIN")
    connection.run("CREATE DATABASE installed OWNER installer")
    with server.connect("installer", "installed") as installer:
        installer.run("CREATE EXTENSION dray")
        assert installer.copy("(SELECT 1)").columns() == [[1]]
        for statement in [
            "CREATE OR REPLACE FUNCTION pg_catalog.dray_load() RETURNS text LANGUAGE sql "
            "AS $$SELECT 'mine'$$",
            "CREATE FUNCTION pg_catalog.dray_load(i int DEFAULT 1) RETURNS text "
            "LANGUAGE sql AS $$SELECT 'mine'$$",
            "ALTER FUNCTION pg_catalog.dray_load() OWNER TO installer",
            "ALTER FUNCTION pg_catalog.dray_load() SET search_path = public",
            "ALTER EXTENSION dray DROP FUNCTION pg_catalog.dray_load()",
            "DROP FUNCTION pg_catalog.dray_load()",
            "CREATE EXTENSION dray SCHEMA public",
            "ALTER EXTENSION dray SET SCHEMA public",
        ]:
            with pytest.raises(ServerError) as caught:
                installer.run(statement)
            # Permission denied, duplicate object, feature not supported.
            assert caught.value.sqlstate in ("42501", "42710", "0A000"), (statement, caught.value)
        installer.run("DROP EXTENSION dray")
        error = pytest.raises(
            ServerError, installer.run, "CREATE EXTENSION dray SCHEMA public"
        ).value
        assert "must be installed in schema" in error.message
        with pytest.raises(ServerError) as caught:
            installer.run("SELECT pg_catalog.dray_load()")
        assert caught.value.sqlstate == "42883"


def test_other_copies_are_left_alone(connection):
    connection.run("SELECT pg_catalog.dray_load()")
    assert connection.run("COPY s.t TO STDOUT").copied == b"1\tx\t10\n2\ty\t20\n3\t\\N\t30\n"
    assert connection.run("COPY s.t TO STDOUT (FORMAT csv)").copied == b"1,x,10\n2,y,20\n3,,30\n"
    with pytest.raises(ServerError, match='COPY format "dray" not recognized'):
        connection.run("COPY s.t FROM STDIN (FORMAT dray)")
    with pytest.raises(ServerError, match='COPY format "dray" not recognized'):
        connection.run("COPY s.t TO '/tmp/x' (FORMAT dray)")


def test_within_functions_it_is_refused(connection):
    connection.run("SELECT pg_catalog.dray_load()")
    for statement in [
        "DO $$BEGIN EXECUTE 'COPY s.t TO STDOUT (FORMAT dray)'; END$$",
        "DO $$BEGIN COPY s.t TO STDOUT (FORMAT dray); END$$",
    ]:
        with pytest.raises(ServerError, match="cannot COPY to/from client"):
            connection.run(statement)


@pytest.mark.parametrize(
    "options, match",
    [
        ("speed 9", 'option "speed" is not known.*'),
        ("chunk_rows 5, chunk_rows 6", "given more than once"),
        ("format csv", "given more than once"),
        ("chunk_bytes_max 100", "chunk_bytes_max is 100, expected 4096 to 4294967295"),
        ("row_bytes_max 4096", "less than chunk_bytes_max"),
        ("compression brotli", 'compression "brotli", expected auto, none, light'),
        ("compression 'zstd:99'", "expected auto, none"),
        ("checksums maybe", "expected auto, on or off"),
        ("numeric 'decimal(99,1)'", "expected text, float64 or decimal"),
        ("nonfinite x", "expected error, null or text"),
        ("param_types ('int4')", "param_types has 1 parameters, param_values 0"),
        ("param_types ('nonsense'), param_values ('1')", 'type "nonsense" does not exist'),
        ("param_types ('int4'), param_values ('x')", "invalid input syntax for type integer"),
        (
            "param_types ('int4'), param_values ('1'), param_nulls ('2')",
            "expected a number from 1 to 1",
        ),
        ("param_types 5", "must be a list"),
    ],
)
def test_options_that_are_refused(connection, options, match):
    with pytest.raises(ServerError, match=match) as caught:
        connection.copy("s.t", options)
    assert caught.value.sqlstate in ("42601", "22023", "42704", "22P02")


def test_options(connection):
    connection.run("SELECT pg_catalog.dray_load()")
    result = connection.copy(
        "(SELECT i, i::text FROM (SELECT generate_series(1, 10000) i) s)",
        "chunk_rows 1000, checksums on, compression 'zstd:1'",
    )
    started, finished, chunks = result.messages()[0], result.messages()[-1], result.chunks()
    assert started.fields["compression"] == "zstd" and started.fields["level"] == 1
    assert started.fields["checksums"] == 1 and started.fields["rows_known"] == 1
    assert [chunk.fields["rows"] for chunk in chunks] == [1000] * 10
    assert finished.fields["chunks"] == 10


def test_chunks_keep_their_limits(connection):
    limits = Limits(chunk_bytes_max=4096, decoded_bytes_max=6000, row_bytes_max=1 << 20)
    query = (
        "(SELECT i, repeat('x', (i * 37) % 5000), i::numeric(9,1) FROM "
        "(SELECT generate_series(1, 700) i) s)"
    )
    for compression in ("none", "light", "lz4"):
        options = (
            "chunk_bytes_max 4096, decoded_bytes_max 6000, row_bytes_max 1048576, compression "
            f"{compression}"
        )
        found = connection.copy(query, options).columns(limits)
        assert found[0] == list(range(1, 701)) and found[1] == [
            "x" * (i * 37 % 5000) for i in range(1, 701)
        ]


def test_rows_larger_than_a_chunk(connection):
    limits = Limits(row_bytes_max=1 << 30)
    query = (
        "(SELECT i, repeat(md5(i::text), CASE WHEN i = 3 THEN 1000000 ELSE 1 END) "
        "FROM (SELECT generate_series(1, 5) i) s)"
    )
    found = connection.copy(query, "row_bytes_max 100000000").columns(limits)
    assert [len(value) for value in found[1]] == [32, 32, 32_000_000, 32, 32]
    # A frame spans several messages, none of which is larger than a chunk.
    error = pytest.raises(
        ServerError, connection.copy, query, "row_bytes_max 1048576, compression none"
    ).value
    assert error.sqlstate == "54000" and "raise row_bytes_max" in error.message


def test_statement_log_and_completion(server, connection):
    assert connection.copy("s.t (a)").tags == ["SELECT 1", "COPY 3"]
    assert "COPY s.t (a) TO STDOUT (FORMAT dray)" in server.log.read_text(errors="replace")


def test_everything_in_the_catalog(connection):
    """The catalog has types of all kinds, and views over functions."""
    # Both reads of a relation see the same rows, and the same statistics of other backends.
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.run("SET LOCAL stats_fetch_consistency = snapshot")
    names = [
        row[0]
        for row in connection.rows(
            """
            SELECT oid::regclass FROM pg_class
            WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') AND relname !~
                'aios|hba|ident_file|shmem|backend_memory|config|statistic_ext_data|locks|stat_|wal'
            """
        )
    ]
    assert len(names) > 80
    for name in names:
        columns = connection.copy(f"(TABLE {name})").columns()
        text = [
            part.split("\t")
            for part in connection.run(f"COPY (TABLE {name}) TO STDOUT")
            .copied.decode()
            .splitlines()
        ]
        assert len(columns[0]) == len(text), name
        for column, expected in zip(columns, zip(*text)):
            assert [value is None for value in column] == [value == "\\N" for value in expected], (
                name
            )
            if column and all(
                isinstance(value, int) and not isinstance(value, bool) for value in column
            ):
                assert [str(value) for value in column] == list(expected), name
    connection.run("ROLLBACK")


def test_parallel_plans(server, connection):
    name = "debug_parallel_query" if server.version >= 16 else "force_parallel_mode"
    connection.run(
        f"""
        CREATE TABLE IF NOT EXISTS s.big AS SELECT i AS a FROM generate_series(1, 200000) i;
        SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
        SET min_parallel_table_scan_size = 0; SET {name} = on
        """
    )
    assert sorted(connection.copy("s.big").columns()[0]) == list(range(1, 200001))
    assert connection.copy("(SELECT count(*) FROM s.big)").columns() == [[200000]]


def test_columns_that_cannot_be_null(server, connection):
    # Version 18 keeps the constraint of the child.
    drop = "ALTER TABLE k ALTER a DROP NOT NULL;" if server.version < 18 else ""
    connection.run(f"""BEGIN; CREATE TEMP TABLE n (a int NOT NULL, b int);
        INSERT INTO n VALUES (1, 2); CREATE TEMP TABLE k () INHERITS (n); {drop}
        CREATE TEMP TABLE o (a int NOT NULL)""")
    if server.version >= 18:
        connection.run("ALTER TABLE n ADD CONSTRAINT later NOT NULL b NOT VALID")

    def nullable(query):
        return [field.nullable for field in connection.copy(query).schema()]

    assert nullable("n") == [False, True]
    assert nullable("(SELECT b, a, a + 1 FROM ONLY n)") == [True, False, True]
    assert nullable("(SELECT a FROM n)") == [True]
    assert nullable("(SELECT o.a FROM n LEFT JOIN o USING (a))") == [True]
    assert nullable("(SELECT a FROM o GROUP BY ROLLUP (a))") == [True]
    # Version 18 plans a group as a relation of its own.
    assert nullable("(SELECT a FROM o GROUP BY a)") == [server.version >= 18]
    assert nullable("(SELECT a FROM o UNION ALL SELECT NULL)") == [True]
    assert nullable("(SELECT (SELECT a FROM o WHERE false) FROM o)") == [True]
    connection.run("ROLLBACK")


def test_a_constraint_that_is_younger_than_the_rows(server, connection):
    other_way = server.version >= 18
    connection.run("CREATE TABLE s.filled (a int, b int); INSERT INTO s.filled VALUES (1, NULL)")
    if other_way:
        connection.run("ALTER TABLE s.filled ADD CONSTRAINT later NOT NULL b NOT VALID")

    def column(query):
        result = connection.copy(query)
        return result.schema()[0].nullable, result.columns()[0]

    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    with server.connect() as other:
        other.run("UPDATE s.filled SET b = 2")
        other.run(
            "ALTER TABLE s.filled VALIDATE CONSTRAINT later"
            if other_way
            else "ALTER TABLE s.filled ALTER b SET NOT NULL"
        )
    assert column("(SELECT b FROM s.filled)") == (True, [None])
    # This one is older.
    assert column("s.t (a)") == (False, [1, 2, 3])
    connection.run("COMMIT")
    assert column("(SELECT b FROM s.filled)") == (False, [2])
    connection.run("DROP TABLE s.filled")


def test_progress(server, connection):
    connection.run("SELECT pg_catalog.dray_load()")
    connection.send(
        "COPY (SELECT i FROM (SELECT generate_series(1, 30000000) i) s) TO STDOUT "
        "(FORMAT dray, compression none)"
    )
    for _ in range(20):
        connection.read_message()
    with server.connect() as other:
        ((command, kind, rows),) = other.rows(
            "SELECT command, type, tuples_processed FROM pg_stat_progress_copy"
        )
        assert (command, kind) == ("COPY TO", "PIPE") and int(rows) > 0
        connection.cancel()
    with pytest.raises(ServerError, match="canceling statement"):
        connection.read_result()


def test_extended_protocol(connection):
    """Parse, Bind, Execute, as drivers send them."""
    for _ in range(2):
        assert connection.copy_bound("s.t (a)", []).columns() == [[1, 2, 3]]
