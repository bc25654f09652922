"""Every type of section 3 of spec/types.md, compared with PostgreSQL's own text."""

from __future__ import annotations

import datetime as dt
import os
import random
import uuid
from decimal import Decimal
from typing import Any

import postgres_text as pt
import psycopg
import pyarrow as pa
import pytest
from postgres_server import LOCALES
from postgres_text import Shape
from postgres_type_cases import CASES, COMPOSITES, PAIR, RELATION, Case, array_case
from postgres_types import DATABASE, Types, fill

import dray


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_values(types: Types, case: Case) -> None:
    if types.version < case.since:
        with pytest.raises(psycopg.DataError):
            fill(types, case)
        return
    fill(types, case)
    types.check(f"SELECT v FROM {case.table} ORDER BY id", case.shape)


def test_char_of_every_byte(types: Types) -> None:
    # Before version 16 the text is the bare byte, which is not UTF-8. The expected values follow
    # section 3 directly.
    numbers = [*range(128), *range(-128, 0)]
    want = ["", *map(chr, range(1, 128)), *(f"\\{byte:03o}" for byte in range(128, 256))]
    field, got = types.column(
        'SELECT v::"char" AS v FROM unnest($1::integer[]) AS t(v)'.replace("$1", f"ARRAY{numbers}")
    )
    assert field.equals(pt.CHAR.field("v"), check_metadata=True)
    assert got == want
    _, got = types.column(
        f'SELECT array_agg(v::"char" ORDER BY v & 255) FROM unnest(ARRAY{numbers}) AS t(v)'
    )
    assert got == [want]


@pytest.mark.parametrize(
    "array", ["'{{1,2},{3,4}}'::integer[]", "'{{::1},{::2}}'::inet[]", "'[2:2][3:3]={{a}}'::text[]"]
)
def test_arrays_of_more_dimensions(types: Types, array: str) -> None:
    sql = f"SELECT CASE WHEN i = 3 THEN {array} END AS grid FROM generate_series(1, 3) i"
    with pytest.raises(
        dray.Error, match=r'column "grid", row 3: .*more than one dimension.*::text.*unnest'
    ):
        types.query(sql).arrow()
    assert types.query(f"SELECT ({array})::text AS grid").arrow().num_rows == 1
    with pytest.raises(dray.Error, match='column "grid", row 1: .*more than one dimension'):
        types.query(
            "SELECT ROW(NULL, NULL, NULL, '{{a}}', NULL, NULL, NULL, NULL, NULL, "
            "NULL)::nested AS grid"
        ).arrow()


@pytest.mark.parametrize(("locale", "scale"), LOCALES.items())
def test_money(types: Types, locale: str, scale: int) -> None:
    user = f"money_{scale}"
    if not types.has("role", user):
        types.server.run(
            f"CREATE ROLE {user} LOGIN", f"ALTER ROLE {user} SET lc_monetary = '{locale}'"
        )
    uri = types.server.uri(DATABASE, user)
    shape = pt.money(scale)
    with psycopg.connect(uri) as oracle, dray.connect(uri) as connection:
        # As integers: the text depends on the locale, and a cast to numeric goes through a float's
        # digits in locales without any.
        extreme = oracle.execute("SELECT (-9223372036854775807 - 1)::numeric::text").fetchone()
        assert extreme == ("-9223372036854775808",)
        units = [-(2**63) + 1, 2**63 - 1, 0, -1, 123456]
        want = [Decimal(unit).scaleb(-scale, pt.EXACT) for unit in units]
        rows = ", ".join(f"({i}, '{value:f}'::numeric::money)" for i, value in enumerate(want))
        sql = f"SELECT v FROM (VALUES {rows}, (9, NULL)) t(id, v) ORDER BY id"
        exact = [value for (value,) in oracle.execute(f"SELECT v::numeric FROM ({sql}) t")]
        assert exact == [*want, None]
        got = connection.query(sql, extension=types.extension).arrow()
        assert got.schema.field("v").equals(shape.field("v"), check_metadata=True)
        assert pt.values(got.column("v")) == exact
        five = Decimal(5).quantize(Decimal(1).scaleb(-scale))
        priced = pt.composite("public.priced", what=pt.TEXT, price=shape)
        for nested, of, value in [
            ("ARRAY['5'::money, NULL]", pt.list_of(shape), [five, None]),
            ("ROW('x', '5')::priced", priced, {"what": "x", "price": five}),
            ("ARRAY[ROW('x', '5')::priced]", pt.list_of(priced), [{"what": "x", "price": five}]),
            ("'5'::d_money", shape, five),
            ("ARRAY['5'::d_money]", pt.list_of(shape), [five]),
        ]:
            got = connection.query(f"SELECT {nested} AS v", extension=types.extension).arrow()
            assert got.schema.field("v").type.equals(of.data_type, check_metadata=True), nested
            assert got.column("v").to_pylist() == [value], nested


def test_a_statement_again_after_a_change(types: Types) -> None:
    with dray.connect(types.server.uri(DATABASE)) as connection:

        def value() -> Any:
            return (
                connection.query("SELECT '7'::money AS v", extension=types.extension)
                .arrow()
                .column("v")
                .to_pylist()[0]
            )

        digits = []
        for locale in (*LOCALES, *LOCALES):
            list(connection.query(f"SET lc_monetary = '{locale}'"))
            digits.append(str(value()))
        assert digits == ["7", "7.00", "7.000"] * 2


AVAILABLE = {
    "hstore": [
        (
            "hstore",
            ['"a"=>"1", "b"=>NULL, "c"=>"NULL"', "", '""=>""', r'"ü\"\\"=>"=>, \"🐴\""'],
            pt.HSTORE,
        )
    ],
    "citext": [("citext", ["Abc", "", "Grüße"], pt.CITEXT)],
    "cube": [("cube", ["(1, 2),(3, 4)", "(0)"], pt.written("public.cube"))],
    "ltree": [
        ("ltree", ["a.b.c", ""], pt.written("public.ltree")),
        ("lquery", ["*.a{1,2}"], pt.written("public.lquery")),
    ],
    "seg": [("seg", ["1.5 .. 2.5", "~3"], pt.written("public.seg"))],
    "isn": [("isbn", ["978-0-393-04002-9"], pt.written("public.isbn"))],
    "vector": [("vector(3)", ["[1,2.5,-3]"], pt.written("public.vector"))],
}


def test_types_of_extensions(types: Types) -> None:
    available = {
        name for (name,) in types.oracle.execute("SELECT name FROM pg_available_extensions")
    }
    # Debian has all of them but one, the wheel only that one.
    assert available & set(AVAILABLE) == (
        set(AVAILABLE) - {"vector"} if "hstore" in available else {"vector"}
    )
    assert types.version > 15 or "hstore" in available
    for extension in sorted(available & set(AVAILABLE)):
        types.oracle.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
        for name, texts, shape in AVAILABLE[extension]:
            scalar = Case(name, texts, shape)
            for case in (scalar, array_case(scalar)):
                fill(types, case)
                types.check(f"SELECT v FROM {case.table} ORDER BY id", case.shape)
    if "hstore" in available:
        if not types.has("type", "held"):
            types.oracle.execute("CREATE TYPE held AS (h hstore, c citext)")
        types.check(
            "SELECT ROW('a=>1', 'X')::held AS v",
            pt.composite("public.held", h=pt.HSTORE, c=pt.CITEXT),
        )


def test_xml(types: Types) -> None:
    (configured,) = types.oracle.execute(
        "SELECT setting FROM pg_config WHERE name = 'CONFIGURE'"
    ).fetchone() or ("",)
    has_xml = "--with-libxml" in configured
    assert has_xml or types.version != 15
    texts = [
        "<a/>",
        '<?xml version="1.0" encoding="UTF-8"?><ü x="1">🐴</ü>',
        '<?xml version="1.0" standalone="yes"?><a/>',
        "text &amp; <b/>",
    ]
    scalar = Case("xml", texts if has_xml else [], pt.XML)
    for case in (scalar, array_case(scalar)):
        fill(types, case)
        types.check(f"SELECT v FROM {case.table} ORDER BY id", case.shape)


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("SELECT ROW(1, 'x', NULL) AS v", pt.written("record")),
        ("SELECT ARRAY[ROW(1, 'x'), NULL] AS v", pt.list_of(pt.written("record"))),
        ("SELECT pg_sleep(0) AS v", pt.written("void")),
        ("SELECT 'literal' AS v", pt.TEXT),
        ("SELECT NULL AS v", pt.TEXT),
        ("SELECT r AS v FROM (VALUES (ROW('x', 1.5, NULL)::relation), (NULL)) t(r)", RELATION),
        ("SELECT t AS v FROM c_relation t ORDER BY id",
            pt.composite("public.c_relation", id=pt.INTEGER, v=RELATION)),
        ("SELECT sum(x) AS v FROM (VALUES (1.5::numeric(9,2)), (2)) t(x)", pt.NUMERIC),
        ("SELECT avg(x) AS v FROM (VALUES (1), (2)) t(x)", pt.NUMERIC),
        ("SELECT sum(x) AS v FROM (VALUES (9223372036854775807), (1)) t(x)", pt.NUMERIC),
        ("SELECT array_agg(x ORDER BY x) AS v FROM generate_series(1, 3) x",
            pt.list_of(pt.INTEGER)),
        ("SELECT count(*) AS v FROM pg_class", pt.BIGINT),
        ("SELECT prokind AS v FROM pg_proc ORDER BY oid LIMIT 5", pt.CHAR),
        ("SELECT proargtypes AS v FROM pg_proc ORDER BY oid", pt.OIDVECTOR),
        ("SELECT proacl AS v FROM pg_proc ORDER BY oid", pt.list_of(pt.written("aclitem"))),
        ("SELECT conkey AS v FROM pg_constraint ORDER BY oid", pt.list_of(pt.SMALLINT)),
        ("SELECT histogram_bounds AS v FROM pg_stats ORDER BY schemaname, tablename, attname",
            pt.written("anyarray")),
        ("SELECT ev_action AS v FROM pg_rewrite ORDER BY oid LIMIT 20", pt.written("pg_node_tree")),
    ],
)  # fmt: skip
def test_results_that_are_no_tables(types: Types, sql: str, shape: Shape) -> None:
    fill(types, next(case for case in COMPOSITES if case.id == "relation"))
    types.check(sql, shape)


def test_nullable_columns(types: Types) -> None:
    types.oracle.execute(
        "CREATE TABLE IF NOT EXISTS whole (id integer PRIMARY KEY, v text NOT NULL, w text, "
        "CHECK (w IS NOT NULL))"
    )
    types.oracle.execute("INSERT INTO whole VALUES (1, 'x', 'y') ON CONFLICT DO NOTHING")

    def nullable(sql: str) -> list[bool]:
        return [field.nullable for field in types.query(sql).arrow().schema]

    assert nullable("SELECT id, v, w FROM whole") == (
        [False, False, True] if types.extension else [True] * 3
    )
    # Joins add rows of NULLs.
    outer = "SELECT a.id, b.v FROM whole a LEFT JOIN whole b ON b.id = a.id + 1"
    assert nullable(outer)[1]
    assert list(types.query(outer)) == [(1, None)]
    for sql in (
        "SELECT b.v FROM whole b RIGHT JOIN whole a ON b.id = a.id + 1",
        "SELECT b.v FROM whole b FULL JOIN whole a ON b.id = a.id + 1",
        "SELECT v FROM whole GROUP BY GROUPING SETS ((v), ())",
        "SELECT NULL AS v UNION ALL SELECT v FROM whole",
        "SELECT v FROM (SELECT b.v FROM whole a LEFT JOIN whole b ON b.id = a.id + 1) t",
        "SELECT max(v) AS v FROM whole WHERE false",
        "SELECT (SELECT v FROM whole WHERE false) AS v",
        "WITH t AS (SELECT b.v FROM whole a LEFT JOIN whole b ON false) SELECT v FROM t",
        "SELECT v FROM whole TABLESAMPLE SYSTEM (0)",
    ):  # fmt: skip
        assert types.column(sql)[1] == [
            None if text is None else text for text in types.texts(sql)
        ], sql


def test_all_of_the_catalog(types: Types) -> None:
    """Every table and view of a new server is readable, with all of its columns."""
    names = types.texts(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE relkind IN ('r', 'v') "
        "AND relnamespace IN ('pg_catalog'::regnamespace, "
        "'information_schema'::regnamespace) ORDER BY 1"
    )
    assert len(names) > 150
    for name in names:
        sql = f"SELECT * FROM {name} LIMIT 200"
        try:
            described = types.oracle.execute(sql).description or []
        except psycopg.Error as error:
            # Some views need features that this machine lacks.
            with pytest.raises(dray.Error) as caught:
                types.query(sql).arrow()
            assert caught.value.sqlstate == error.sqlstate
            continue
        table = types.query(sql).arrow()
        table.validate(full=True)
        assert table.column_names == [column.name for column in described], name


def test_catalog_changes(types: Types) -> None:
    types.oracle.execute("DROP TYPE IF EXISTS growing, moods CASCADE")
    types.oracle.execute("CREATE TYPE growing AS (a integer); CREATE TYPE moods AS ENUM ('a')")
    types.check("SELECT ROW(1)::growing AS v", pt.composite("public.growing", a=pt.INTEGER))
    types.check("SELECT 'a'::moods AS v", pt.enum("public.moods"))
    types.oracle.execute("ALTER TYPE moods ADD VALUE 'b'")
    types.check("SELECT 'b'::moods AS v", pt.enum("public.moods"))
    types.oracle.execute("ALTER TYPE growing ADD ATTRIBUTE b text")
    types.check(
        "SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, b=pt.TEXT)
    )
    types.oracle.execute("ALTER TYPE growing RENAME ATTRIBUTE b TO c")
    # The same statement again: its earlier description is outdated.
    types.check(
        "SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, c=pt.TEXT)
    )
    types.oracle.execute("ALTER TYPE growing ALTER ATTRIBUTE c TYPE bytea")
    types.check(
        "SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, c=pt.BYTEA)
    )
    types.oracle.execute("ALTER TYPE growing DROP ATTRIBUTE a")
    types.check("SELECT ROW('x')::growing AS v", pt.composite("public.growing", c=pt.BYTEA))


def test_rows_have_python_values(types: Types) -> None:
    sql = """SELECT true, 5::smallint, 1.5::float4, 1.50::numeric(5,2), 1.50::numeric, 'x',
    '\\x00'::bytea, '2000-01-02'::date,
        '03:04:05.000006'::time, '2000-01-02 03:04'::timestamp,
        '2000-01-02 03:04+00'::timestamptz, '1 mon 2 days 3 s'::interval,
        '00000000-0000-0000-0000-000000000007'::uuid, ARRAY[1, NULL], ROW(1, 'x')::pair,
        int4range(1, NULL), NULL::integer"""
    (row,) = types.query(sql.replace("'\\x", "E'\\\\x")).rows()
    span = {
        "lower": 1,
        "upper": None,
        "lower_inclusive": True,
        "upper_inclusive": False,
        "empty": False,
    }
    noon = dt.datetime(2000, 1, 2, 3, 4)
    assert row == (
        True, 5, 1.5, Decimal("1.50"), "1.50", "x", b"\0", dt.date(2000, 1, 2),
        dt.time(3, 4, 5, 6), noon,
        noon.replace(tzinfo=dt.timezone.utc), dray.Interval(1, 2, 3_000_000_000), uuid.UUID(int=7),
        [1, None],
        {"n": 1, 'Text, "quoted" ü': "x"}, span, None,
    )  # fmt: skip
    assert str(row[3]) == "1.50" and type(row[11]) is dray.Interval


def test_no_rows_have_types(types: Types) -> None:
    sql = (
        "SELECT NULL::numeric(5,2) AS a, NULL::pair AS b, NULL::date[] AS c, NULL::mood "
        "AS d WHERE false"
    )
    got = types.query(sql).arrow()
    assert got.num_rows == 0
    assert got.schema.types == [
        pa.decimal128(5, 2),
        PAIR.data_type,
        pa.list_(pt.DATE.field("item")),
        pa.string(),
    ]


def test_as_many_columns_as_a_result_may_have(types: Types) -> None:
    sql = "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(1664))
    assert types.query(sql).arrow().to_pylist() == [{f"c{i}": i for i in range(1664)}]
    assert types.query("SELECT").arrow().num_columns == 0


def test_stored_out_of_line(types: Types) -> None:
    if not types.has("class", "toasted"):
        types.oracle.execute(
            "CREATE TABLE toasted (id integer, a text, b text, c bytea, d jsonb, e integer[], "
            "f numeric)"
        )
        types.oracle.execute("ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL")
        types.oracle.execute(
            "INSERT INTO toasted SELECT i, repeat(md5(i::text), 3000), "
            "repeat('x', 300000), decode(repeat(md5(i::text), 5000), 'hex'), "
            "jsonb_build_object('k', repeat('y', 100000)), array_agg(g), "
            "(repeat('7', 20000) || '.5')::numeric "
            "FROM generate_series(1, 5) i, generate_series(1, 20000) g GROUP BY i"
        )
    for column, shape in zip(
        "abcdef", (pt.TEXT, pt.TEXT, pt.BYTEA, pt.JSONB, pt.list_of(pt.INTEGER), pt.NUMERIC)
    ):
        types.check(f"SELECT {column} AS v FROM toasted ORDER BY id", shape)


# For each type an expression of random() that generates values.
DRAWN: dict[str, tuple[str, Shape]] = {
    "smallint": ("(random() * 65535 - 32768)::integer", pt.SMALLINT),
    "bigint": ("((random() - 0.5) * 1.8e19)::bigint", pt.BIGINT),
    "real": ("((random() - 0.5) * 10 ^ (random() * 70 - 35))::real", pt.REAL),
    "float8": ("(random() - 0.5) * 10 ^ (random() * 600 - 300)", pt.DOUBLE),
    "numeric": (
        "round(((random() - 0.5) * 10 ^ (random() * 40 - 20))::numeric * random()::numeric, "
            "(random() * 30)::integer)", pt.NUMERIC),
    "numeric(15,2)": ("((random() - 0.5) * 10 ^ (random() * 13))::numeric", pt.numeric(15, 2)),
    "numeric(38,19)": (
        "((random() - 0.5)::numeric * (10 ^ (random() * 18))::numeric * random()::numeric)",
        pt.numeric(38, 19)),
    "numeric(76,38)": (
        "((random() - 0.5)::numeric * ('1e' || (random() * 36)::integer)::numeric * "
            "random()::numeric * random()::numeric)",
        pt.numeric(76, 38)),
    "numeric(9,-3)": ("((random() - 0.5) * 10 ^ (random() * 11))::numeric", pt.numeric(9, -3)),
    "numeric(4,9)": ("((random() - 0.5) * 0.00001)::numeric", pt.numeric(4, 9)),
    "date": ("'2000-01-01'::date + ((random() - 0.3) * 2000000)::integer", pt.DATE),
    "timestamp": ("to_timestamp((random() - 0.3) * 100000000000)::timestamp + random() * '1 "
        "second'::interval", pt.TIMESTAMP),
    "timestamptz": ("to_timestamp((random() - 0.3) * 100000000000)", pt.TIMESTAMPTZ),
    "time": ("random() * '86399 seconds'::interval", pt.TIME),
    "timetz": ("((random() * '86399 seconds'::interval)::time::text || '+' || (random() * "
        "14)::integer)::timetz", pt.TIMETZ),
    "interval": ("make_interval(months => ((random() - 0.5) * 1e6)::integer, days => ((random() - "
        "0.5) * 1e6)::integer, "
                 "secs => (random() - 0.5) * 1e9)", pt.INTERVAL),
    "text": ("repeat(chr((random() * 50000)::integer + 1) || md5(random()::text), "
        "(random() * 4)::integer)", pt.TEXT),
    "bytea": ("decode(repeat(md5(random()::text), (random() * 5)::integer), 'hex')", pt.BYTEA),
    "uuid": ("md5(random()::text)::uuid", pt.UUID),
    "varbit": ("(random() * 2e9)::integer::bit(31)::varbit", pt.VARBIT),
    "integer[]": ("ARRAY[(random() * 1e9)::integer, NULL, id]", pt.list_of(pt.INTEGER)),
    "text[]": ("ARRAY[md5(random()::text), '', NULL, 'a\"b,{}' || id]", pt.list_of(pt.TEXT)),
    "numeric[]": ("ARRAY[round(random()::numeric, (random() * 20)::integer), NULL, 'NaN']",
        pt.list_of(pt.NUMERIC)),
    "int8range": ("int8range(id, id + (random() * 1e9)::bigint)",
        pt.range_of("int8range", pt.BIGINT)),
    "pair": ("ROW((random() * 1e9)::integer, CASE WHEN random() < 0.5 "
        "THEN md5(id::text) || '\",(' END)::pair", PAIR),
}  # fmt: skip
ROWS = 3000


def test_random_values(types: Types) -> None:
    seed = int(os.environ.get("DRAY_SEED") or random.randrange(10**6))
    print(f"DRAY_SEED={seed}")
    types.oracle.execute("DROP TABLE IF EXISTS drawn")
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(DRAWN))
    # Some columns have no NULL, some a few, some many.
    drawn = ", ".join(
        f"CASE WHEN random() >= {(0, 0.1, 0.9)[i % 3]} THEN {expression} END"
        for i, (expression, _) in enumerate(DRAWN.values())
    )
    types.oracle.execute(f"SELECT setseed({seed / 10**6})")
    types.oracle.execute(f"CREATE TABLE drawn (id integer, {columns})")
    types.oracle.execute(f"INSERT INTO drawn SELECT id, {drawn} FROM generate_series(1, {ROWS}) id")
    cursor = types.oracle.execute("SELECT * FROM drawn ORDER BY id")
    result = cursor.pgresult
    assert result is not None
    got = types.query("SELECT * FROM drawn ORDER BY id", batch_rows=1000).arrow()
    got.validate(full=True)
    assert got.num_rows == ROWS
    for i, (name, (_, shape)) in enumerate(DRAWN.items(), 1):
        texts = [result.get_value(row, i) for row in range(ROWS)]
        want = [None if text is None else shape.read(bytes(text).decode()) for text in texts]
        assert got.schema.field(i).type == shape.data_type, name
        assert pt.values(got.column(i)) == want, name
