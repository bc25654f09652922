"""Values, against what PostgreSQL itself says about them."""

import json

import pytest
from client import ServerError

# The type, some literals, what the column must hold according to PostgreSQL (an expression over v),
# and how to read that.
TEXT = ("format('%s', v)", str)
NUMBER = ("v::text", int)
CASES = [
    ("boolean", ["true", "false"], "v::text", lambda text: text == "true"),
    ("smallint", ["0", "-32768", "32767"], *NUMBER),
    ("integer", ["0", "-2147483648", "2147483647"], *NUMBER),
    ("bigint", ["0", "-9007199254740992", "42"], *NUMBER),
    ("oid", ["0", "4294967295"], *NUMBER),
    ("real", ["0", "-0", "1.5", "NaN", "-Infinity", "1e-40"], "encode(float4send(v), 'hex')", str),
    (
        "double precision",
        ["0", "-0", "1.5", "NaN", "Infinity", "5e-324"],
        "encode(float8send(v), 'hex')",
        str,
    ),
    (
        "numeric(15,2)",
        ["0", "-0.01", "17", "9999999999999.99", "-9999999999999.99", "24710.35", "10000"],
        "(v * 100)::numeric(40,0)::text",
        int,
    ),
    (
        "numeric(18,5)",
        ["0.00001", "-1234567890123.45678", "10000.1"],
        "(v * 100000)::numeric(40,0)::text",
        int,
    ),
    ("numeric(6,0)", ["0", "999999", "-10000"], "v::text", int),
    (
        "numeric(38,10)",
        ["0", "-1.5", "9999999999999999999999999999.9999999999"],
        "(v * 10000000000)::numeric(60,0)::text",
        int,
    ),
    (
        "numeric(60,4)",
        ["0", "-1.5", "12345678901234567890123456789012345678901234567890.1234"],
        "(v * 10000)::numeric(80,0)::text",
        int,
    ),
    ("numeric", ["0", "-0.00", "1.50", "1e30", "1e-30", "NaN", "Infinity", "123456.000001"], *TEXT),
    ("text", ["", "a", "äöü €", "x" * 100, "y" * 3000, "z" * 70000], *TEXT),
    ("varchar(20)", ["", "abc"], *TEXT),
    ("character(5)", ["ab", "abcde"], "rpad(v::text, 5)", str),
    ('"char"', ["a", ""], *TEXT),
    ("name", ["pg_class", ""], *TEXT),
    ("bytea", [r"\x", r"\x00ff", r"\x" + "ab" * 5000], "encode(v, 'hex')", str),
    (
        "date",
        ["1970-01-01", "4713-01-01 BC", "5874897-12-31", "2000-02-29"],
        "(v - date '1970-01-01')::text",
        int,
    ),
    ("time", ["00:00", "23:59:59.999999"], "(extract(epoch from v) * 1000000)::bigint::text", int),
    (
        "timestamp",
        ["1970-01-01", "4713-01-01 00:00 BC", "2024-02-29 12:34:56.789012"],
        "(extract(epoch from v) * 1000000)::bigint::text",
        int,
    ),
    (
        "timestamptz",
        ["1970-01-01 00:00+02", "4713-01-01 00:00+00 BC", "2024-02-29 12:34:56.789012-08"],
        "(extract(epoch from v) * 1000000)::bigint::text",
        int,
    ),
    ("timetz", ["12:34:56.7+05:30", "00:00-08"], *TEXT),
    (
        "interval",
        ["1 year 2 mons 3 days 04:05:06.789", "-1 day"],
        "json_build_array(extract(year from v) * 12 + extract(month from v), extract(day from v),"
        " ((extract(hour from v) * 3600 + extract(minute from v) * 60 + extract(second from v)) * "
        "1000000000)::bigint)::text",
        json.loads,
    ),
    ("uuid", ["00112233-4455-6677-8899-aabbccddeeff"], "replace(v::text, '-', '')", str),
    ("json", ['{"a" :  1}', "[1,null]"], *TEXT),
    ("jsonb", ['{"a" :  1}', "[1,null]"], *TEXT),
    ("xml", ["<a>b</a>"], *TEXT),
    (
        "money",
        ["0", "-12.34", "92233720368547758.07"],
        "(v::numeric * 100)::numeric(40,0)::text",
        int,
    ),
    ("bit(5)", ["10101"], *TEXT),
    ("varbit", ["1", "", "101010101010"], *TEXT),
    ("inet", ["10.0.0.1/8", "::1"], *TEXT),
    ("cidr", ["10.0.0.0/8"], *TEXT),
    ("macaddr", ["08:00:2b:01:02:03"], *TEXT),
    ("point", ["(1,2)"], *TEXT),
    ("polygon", ["((0,0),(1,1),(1,0))"], *TEXT),
    ("tsvector", ["'a':1 'b'"], *TEXT),
    ("tsquery", ["'a' & 'b'"], *TEXT),
    ("regclass", ["pg_class"], *TEXT),
    ("pg_lsn", ["16/B374D848"], *TEXT),
    ("mood", ["sad", "happy"], *TEXT),
    ("posint", ["1", "7"], *NUMBER),
    ("money_amount", ["1.25", "-3"], "(v * 100)::numeric(40,0)::text", int),
    ("integer[]", ["{}", "{1,NULL,3}", "[5:6]={7,8}"], "to_json(v)::text", json.loads),
    ("text[]", ["{}", '{a,NULL,"b c"}'], "to_json(v)::text", json.loads),
    ("mood[]", ["{sad,happy}"], "to_json(v)::text", json.loads),
    ("inet[]", ["{10.0.0.1,NULL}"], "to_json(v)::text", json.loads),
    ("pair", ['(1,"a b")', "(,)"], "json_build_array((v).n, (v).t)::text", json.loads),
    (
        "pair[]",
        ['{"(1,a)",NULL}'],
        "(select json_agg(case when (p).n is null then null else json_build_array((p).n, (p).t) "
        "end) from unnest(v) p)::text",
        json.loads,
    ),
    (
        "int4range",
        ["[1,5)", "empty", "(,3)"],
        "json_build_array(lower(v), upper(v), lower_inc(v), upper_inc(v), isempty(v))::text",
        json.loads,
    ),
    (
        "int4multirange",
        ["{[1,5),[7,9)}", "{}"],
        "(select coalesce(json_agg(json_build_array(lower(r), upper(r), lower_inc(r), "
        "upper_inc(r), isempty(r))), '[]')"
        " from unnest(v) r)::text",
        json.loads,
    ),
]


TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN posint AS integer CHECK (VALUE > 0);
CREATE DOMAIN money_amount AS numeric(10,2);
CREATE TYPE pair AS (n integer, t text);
"""


@pytest.fixture(scope="module", autouse=True)
def types(server):
    with server.connect() as connection:
        connection.run(TYPES)
        yield
        connection.run("DROP TYPE pair, mood CASCADE; DROP DOMAIN posint, money_amount")


@pytest.mark.parametrize("compression", ["none", "light", "zstd"])
@pytest.mark.parametrize(
    "pg_type, literals, expression, read", CASES, ids=[case[0] for case in CASES]
)
def test_values_are_the_servers(
    server, connection, pg_type, literals, expression, read, compression
):
    if pg_type == "xml" and "--with-libxml" not in server.config("--configure"):
        # This server has no values of the type.
        return
    quoted = ["('{}')".format(literal.replace("'", "''")) for literal in literals]
    # NULLs first, last and between; a table, so that large values are compressed or moved out of
    # line.
    rows = ["(NULL)", *quoted, "(NULL)", *quoted, "(NULL)"]
    connection.run(f"CREATE TEMP TABLE t (v {pg_type}); INSERT INTO t VALUES {', '.join(rows)}")
    (found,) = connection.copy("t", f"compression '{compression}'").columns()
    expected = [
        row[0] if row[0] is None else read(row[0])
        for row in connection.rows(
            f"SELECT CASE WHEN v IS NOT DISTINCT FROM NULL THEN NULL ELSE {expression} END FROM t"
        )
    ]
    if read is int:
        # The decoder keeps numbers beyond 2^53 as text.
        found = [None if value is None else int(value) for value in found]
    assert found == expected


def test_null_heavy_and_many_rows(connection):
    query = """SELECT CASE WHEN i % 3 = 0 THEN i END::int, CASE WHEN i % 7 > 0 THEN i::text END,
        CASE WHEN i % 2 = 0 THEN i % 4 = 0 END,
        (CASE WHEN i % 5 = 0 THEN i / 100.0 END)::numeric(12,2),
        CASE WHEN i > 150000 THEN ARRAY[i, NULL] END FROM (SELECT generate_series(1, 200000) i) s"""
    found = connection.copy(f"({query})", "chunk_bytes_max 65536").columns()
    assert found[0] == [i if i % 3 == 0 else None for i in range(1, 200001)]
    assert found[1] == [str(i) if i % 7 else None for i in range(1, 200001)]
    assert found[2] == [i % 4 == 0 if i % 2 == 0 else None for i in range(1, 200001)]
    assert found[3] == [i if i % 5 == 0 else None for i in range(1, 200001)]
    assert found[4] == [[i, None] if i > 150000 else None for i in range(1, 200001)]


@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::date",
        "'-infinity'::timestamp",
        "'infinity'::timestamptz",
        "'24:00'::time",
        "'NaN'::numeric(5,2)",
        "'294276-12-31'::timestamp",
    ],
)
def test_values_without_an_equal(connection, value):
    null = "NULL::" + value.split("::")[1]
    with pytest.raises(ServerError, match='column "v", row 2: .*nonfinite') as caught:
        connection.copy(
            f"(SELECT v FROM (VALUES (1, NULL), (2, {value})) x (i, v))".replace("NULL", null)
        )
    assert caught.value.sqlstate == "22003"
    assert connection.copy(f"(SELECT {value})", "nonfinite 'null'").columns() == [[None]]
    text = connection.value(f"SELECT {value}::text")
    assert connection.copy(f"(SELECT {value})", "nonfinite text").columns() == [[text]]


def test_undeclared_numeric(connection):
    assert connection.copy("(SELECT 1.50)").columns() == [["1.50"]]
    assert connection.copy("(SELECT 1.50)", "numeric 'decimal(10,3)'").columns() == [[1500]]
    assert connection.copy("(SELECT 1.50)", "numeric float64").columns() == [["3ff8000000000000"]]
    assert connection.copy("(SELECT 'Infinity'::numeric)", "numeric float64").columns() == [
        ["7ff0000000000000"]
    ]
    for query in ("(SELECT 1e400)", "(SELECT ARRAY[-1e400])"):
        with pytest.raises(
            ServerError, match=r"0… \(40. characters\) is beyond float64; choose numeric=text"
        ) as caught:
            connection.copy(query, "numeric float64")
        assert caught.value.sqlstate == "22003"
    with pytest.raises(ServerError, match=r"1.55 is no decimal\(10,1\)"):
        connection.copy("(SELECT 1.55)", "numeric 'decimal(10,1)'")


def test_arrays_of_two_dimensions_are_refused(connection):
    with pytest.raises(ServerError, match="more than one dimension"):
        connection.copy("(SELECT '{{1},{2}}'::int[])")


def test_names_of_columns(connection):
    result = connection.copy('(SELECT 1 AS "ä b", 2 AS x, 3 AS x)')
    assert [field.name for field in result.schema()] == ["ä b", "x", "x"]


def test_no_columns(connection):
    result = connection.run(
        "SELECT pg_catalog.dray_load(); COPY (SELECT FROM generate_series(1, 3)) "
        "TO STDOUT (FORMAT dray)"
    )
    assert result.tags[-1] == "COPY 3" and result.copy_out == (1, 0)
    assert result.messages()[-1].fields["rows"] == 3


def test_no_rows(connection):
    assert connection.copy("(SELECT 1 WHERE false)").columns() == [[]]
