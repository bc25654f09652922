"""Values of $1, $2 ...: as with any statement, whichever way they come."""

import pytest
from client import ServerError

# Where the query decides.
INFERRED = 2275
INT4, TEXT, DATE, NUMERIC, INT4_ARRAY = 23, 25, 1082, 1700, 1007


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as connection:
        connection.run(
            """CREATE TABLE p (a integer, b date, c text); INSERT INTO p VALUES (1, '2024-02-29',
            'x'), (2, NULL, 'y'); CREATE DOMAIN positive AS integer CHECK (VALUE > 0); CREATE DOMAIN
            present AS integer NOT NULL; CREATE TYPE temper AS ENUM ('sad', 'glad'); CREATE SCHEMA
            other; CREATE TYPE other.int4 AS ENUM ('a')"""
        )


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def both(connection, query: str, *parameters: tuple[int, str | None]) -> list[list]:
    """The columns, which are the same when values are bound and when they are options."""
    bound = connection.copy_bound(query, list(parameters))
    names = [
        "unknown" if oid == INFERRED else connection.value(f"SELECT {oid}::regtype")
        for oid, _ in parameters
    ]
    nulls = [quoted(str(i + 1)) for i, (_, text) in enumerate(parameters) if text is None]
    options = f"param_types ({', '.join(map(quoted, names))})"
    options += f", param_values ({', '.join(quoted(text or '') for _, text in parameters)})"
    written = connection.copy(
        query, options + (f", param_nulls ({', '.join(nulls)})" if nulls else "")
    )
    assert written.schema() == bound.schema()
    assert written.columns() == bound.columns()
    return bound.columns()


def test_types_that_are_given(connection):
    assert both(
        connection, "(SELECT $1 + 1, $2, $3)", (INT4, "5"), (TEXT, "it's"), (DATE, None)
    ) == [[6], ["it's"], [None]]
    assert both(
        connection,
        "(SELECT ($1 + 0)::numeric(10,2), $2)",
        (NUMERIC, "1.005"),
        (INT4_ARRAY, "{1,2}"),
    ) == [[101], [[1, 2]]]
    assert both(connection, "(SELECT a FROM p WHERE a = $1)", (INT4, "2")) == [[2]]
    # Not used, and nevertheless there.
    assert both(connection, "(SELECT 1)", (INT4, "2")) == [[1]]
    assert both(connection, "p (a)", (INT4, "2")) == [[1, 2]]


@pytest.mark.parametrize(
    "text", ["", "it's", "\\", "a\\'b", "E'\\", "$1", "\n", "Grüße 🐴", "x" * 3_000_000]
)
def test_texts(connection, text):
    assert both(connection, "(SELECT $1, length($2))", (INFERRED, text), (TEXT, text)) == [
        [text],
        [len(text)],
    ]


def test_types_that_are_inferred(connection):
    assert both(connection, "(SELECT a FROM p WHERE b = $1)", (INFERRED, "2024-02-29")) == [[1]]
    assert both(
        connection, "(SELECT a FROM p WHERE c = $1 AND a = $2)", (INFERRED, "y"), (INFERRED, "2")
    ) == [[2]]
    assert both(connection, "(SELECT $1)", (INFERRED, "5")) == [["5"]]
    assert both(connection, "(SELECT $1::temper, $1)", (INFERRED, "glad")) == [["glad"], ["glad"]]
    assert both(connection, "(SELECT $1::positive + $2)", (INFERRED, "5"), (INT4, "1")) == [[6]]
    assert both(connection, "(SELECT a FROM p WHERE a = ANY($1))", (INFERRED, "{2,3}")) == [[2]]
    assert both(
        connection, "(SELECT $1::date IS NULL, $2)", (INFERRED, None), (INFERRED, None)
    ) == [[True], [None]]
    assert both(connection, "(SELECT $1 + 1.5, pg_typeof($1)::text)", (INFERRED, "2")) == [
        ["3.5"],
        ["numeric"],
    ]
    # A name means what it means without a search path that hides it.
    connection.run("SET search_path = other, public, pg_catalog")
    assert connection.copy_bound("(SELECT $1 + $2)", [(INT4, "1"), (INFERRED, "2")]).columns() == [
        [3]
    ]


def test_options_without_types(connection):
    assert connection.copy(
        "(SELECT a FROM p WHERE b = $1)", "param_values ('2024-02-29')"
    ).columns() == [[1]]
    assert connection.copy(
        "(SELECT $1::int, $2)", "param_values ('1', '2'), param_nulls ('2')"
    ).columns() == [[1], [None]]
    # What a name declares counts when the value is read.
    options = "param_types ('numeric(10,2)'), param_values ('1.005')"
    assert connection.copy("(SELECT ($1 + 0)::numeric(10,2))", options).columns() == [[101]]


@pytest.mark.parametrize(
    ("query", "parameters", "sqlstate", "match"),
    [
        ("(SELECT $1 + 1)", [(INT4, "x")], "22P02", "invalid input syntax for type integer"),
        (
            "(SELECT a FROM p WHERE a = $1)",
            [(INFERRED, "x")],
            "22P02",
            "invalid input syntax for type integer",
        ),
        (
            "(SELECT a FROM p WHERE a = $1)",
            [(INFERRED, "3000000000")],
            "22003",
            "out of range for type integer",
        ),
        (
            "(SELECT $1::temper)",
            [(INFERRED, "so-so")],
            "22P02",
            "invalid input value for enum temper",
        ),
        ("(SELECT $1::positive)", [(INFERRED, "0")], "23514", "violates check constraint"),
        ("(SELECT $1::present)", [(INFERRED, None)], "23502", "does not allow null"),
        ("(SELECT b FROM p WHERE b = $1)", [(INFERRED, "2024-02-30")], "22008", "out of range"),
        (
            "(SELECT $1 IS NULL)",
            [(INFERRED, "x")],
            "42P18",
            r"could not determine data type of parameter \$1",
        ),
        (
            "(SELECT 1)",
            [(INFERRED, "x")],
            "42P18",
            r"could not determine data type of parameter \$1",
        ),
        ("(SELECT $3)", [(INT4, "1")], "42P18", r"could not determine data type of parameter \$2"),
        (
            "(SELECT $2)",
            [(INT4, "1")],
            "08P01",
            "the statement has 2 parameters, 1 values were given",
        ),
        ("(SELECT $1)", [], "08P01", "the statement has 1 parameters, 0 values were given"),
        (
            "(SELECT $1::int + $1::date)",
            [(INFERRED, "1")],
            "42846",
            "cannot cast type integer to date",
        ),
        (
            "(SELECT $1 || a FROM p WHERE c = $1 AND b = $1)",
            [(INFERRED, "1")],
            "42883",
            "operator does not exist",
        ),
        ("(SELECT missing, $1)", [(INFERRED, "1")], "42703", "missing"),
        ("(SELECT $1::record)", [(INFERRED, "(1)")], "0A000", "input of anonymous composite types"),
    ],
)
def test_what_is_refused(connection, query, parameters, sqlstate, match):
    """Bound or as options, and with the SQLSTATE that the query itself has."""

    def refused(run, *arguments) -> str:
        with pytest.raises(ServerError, match=match) as caught:
            run(*arguments)
        assert caught.value.result.copy_out is None and connection.status == "I"
        return caught.value.sqlstate

    assert refused(connection.copy_bound, query, parameters) == sqlstate
    if parameters:
        values = ", ".join(quoted(text or "") for _, text in parameters)
        names = ", ".join("'unknown'" if oid == INFERRED else "'int4'" for oid, _ in parameters)
        options = f"param_types ({names}), param_values ({values})"
        options += ", param_nulls ('1')" if parameters[0][1] is None else ""
        assert refused(connection.copy, query, options) == sqlstate
    connection.send_bound(
        query[1:-1], [(0 if oid == INFERRED else oid, text) for oid, text in parameters]
    )
    connection.socket.sendall(b"S\0\0\0\4")
    own = pytest.raises(ServerError, connection.read_result).value
    assert own.sqlstate == sqlstate


def test_bytes_that_are_no_text(connection):
    for bad in (b"a\0b", b"\xff"):
        for oid in (INFERRED, TEXT):
            error = pytest.raises(
                ServerError, connection.copy_bound, "(SELECT $1::text)", [(oid, bad)]
            ).value
            assert error.sqlstate == "22021" and "invalid byte sequence" in error.message


def test_the_parameter_is_named(server, connection):
    with pytest.raises(ServerError, match="integer"):
        connection.copy_bound("(SELECT $1 + 1, $2 + 2)", [(INFERRED, "1"), (INFERRED, "x")])
    assert "CONTEXT:  parameter $2" in server.log.read_text(errors="replace")


def test_options_that_do_not_fit(connection):
    for options, match in [
        ("param_types ('int4')", "param_types has 1 parameters, param_values 0"),
        ("param_values ('1'), param_nulls ('2')", "expected a number from 1 to 1"),
        ("param_values ('1'), param_types ('nowhere')", 'type "nowhere" does not exist'),
    ]:
        with pytest.raises(ServerError, match=match):
            connection.copy("(SELECT $1)", options)
    with pytest.raises(ServerError, match="also bound") as caught:
        connection.copy_bound("(SELECT $1)", [(INFERRED, "1")], "param_values ('1')")
    assert caught.value.sqlstate == "22023"


def test_many_parameters(connection):
    for count in (1000, 65_535):
        query = f"(SELECT $1 + ${count})"
        assert connection.copy_bound(
            query, [(INT4, str(i)) for i in range(1, count + 1)]
        ).columns() == [[count + 1]]


def test_texts_in_another_encoding(server):
    with server.connect() as connection:
        connection.run("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    with server.connect(database="latin", client_encoding="UTF8") as connection:
        connection.run("CREATE EXTENSION dray")
        assert both(connection, "(SELECT $1, octet_length($2))", (INFERRED, "é"), (TEXT, "é")) == [
            ["é"],
            [1],
        ]
        error = pytest.raises(
            ServerError, connection.copy_bound, "(SELECT $1)", [(INFERRED, "🐴")]
        ).value
        assert error.sqlstate == "22P05"


def test_bound_values_are_not_in_the_statement(server, connection):
    connection.send_bound("SELECT pg_catalog.dray_load()", [])
    connection.send_bound(
        "COPY (SELECT pg_sleep(60), $1) TO STDOUT (FORMAT dray)", [(INFERRED, "s3cret")]
    )
    connection.socket.sendall(b"S\0\0\0\4")
    with server.connect() as other:
        query = "SELECT query FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT pg_sleep(60)%'"
        while not (found := other.rows(query)):
            pass
        assert found == [["COPY (SELECT pg_sleep(60), $1) TO STDOUT (FORMAT dray)"]]
        connection.cancel()
    with pytest.raises(ServerError, match="canceling statement"):
        connection.read_result()


def test_changes_and_parallel_plans(server, connection):
    connection.run("CREATE TEMP TABLE c (a integer, b text)")
    assert both(
        connection, "(INSERT INTO c VALUES ($1, $2) RETURNING b)", (INFERRED, "7"), (INFERRED, "z")
    ) == [["z"]]
    assert connection.rows("SELECT count(*), sum(a) FROM c") == [["2", "14"]]
    name = "debug_parallel_query" if server.version >= 16 else "force_parallel_mode"
    connection.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
        f"SET min_parallel_table_scan_size = 0; SET {name} = on"
    )
    assert both(connection, "(SELECT a FROM p WHERE c = $1)", (INFERRED, "y")) == [[2]]
