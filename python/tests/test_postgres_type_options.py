"""How the user's options, the session's settings and the database's encoding affect values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import postgres_text as pt
import psycopg
import pyarrow as pa
import pytest
from postgres_server import EXTENSION_CHOICES
from postgres_types import DATABASE, Types

import dray

NUMERICS = (
    "SELECT v FROM (VALUES (1, 1.10), (2, -12345678.9), (3, NULL), (4, 0.000)) t(id, v) ORDER BY id"
)


def test_numeric_as_float64(types: Types) -> None:
    _, got = types.column(NUMERICS, numeric="float64")
    assert got == [
        value.hex() if value is not None else None for value in (1.1, -12345678.9, None, 0.0)
    ]
    rows = [
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "1e308",
        "1e-320",
        "0.1",
        "123456789012345678901234567890",
        "9007199254740993",
    ]
    sql = (
        "SELECT v::numeric AS v FROM (VALUES "
        f"{', '.join(f'({i}, {row}::numeric)' for i, row in enumerate(rows))}) t(id, v) "
        "ORDER BY id"
    )
    want = [value.hex() for (value,) in types.oracle.execute(f"SELECT v::float8 FROM ({sql}) t")]
    field, got = types.column(sql, numeric="float64")
    assert field.type == pa.float64() and got == want
    # PostgreSQL's own cast fails, and infinity would be another value.
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        types.oracle.execute("SELECT 1e400::numeric::float8")
    with pytest.raises(dray.Error, match='column "v", row 1'):
        types.query("SELECT 1e400 AS v", numeric="float64").arrow()


def test_numeric_as_decimal(types: Types) -> None:
    for precision, scale in (12, 4), (38, 3), (39, 3), (76, 20):
        shape = pt.numeric(precision, scale)
        field, got = types.column(NUMERICS, numeric=f"decimal({precision},{scale})")
        assert field.type == shape.data_type
        assert got == [None if text is None else shape.read(text) for text in types.texts(NUMERICS)]
    field, got = types.column("SELECT 7::numeric AS v", numeric="decimal(5)")
    assert (field.type, got) == (pa.decimal128(5, 0), [Decimal(7)])
    for option in ("decimal(9,2)", "decimal(12,0)", "decimal(40,0)"):
        with pytest.raises(
            dray.Error, match=r'column "v", row [12]: .*is no decimal.*numeric=text'
        ):
            types.query(NUMERICS, numeric=option).arrow()
    with pytest.raises(dray.Error, match=r'column "v", row 1: ') as caught:
        types.query("SELECT 1e131071 AS v", numeric="decimal(76,0)").arrow()
    # Messages don't repeat thousands of digits.
    assert len(str(caught.value)) < 500
    # The option does not affect a declared numeric.
    field, got = types.column("SELECT 1.5::numeric(5,2) AS v", numeric="decimal(12,4)")
    assert (field.type, got) == (pa.decimal128(5, 2), [Decimal("1.50")])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numeric_as_decimal_not_finite(types: Types, value: str) -> None:
    sql = f"SELECT v FROM (VALUES (1, 1.5), (2, '{value}'::numeric)) t(id, v) ORDER BY id"
    with pytest.raises(dray.Error, match=f'column "v", row 2: .*{value}.*nonfinite=null'):
        types.query(sql, numeric="decimal(10,2)").arrow()
    _, got = types.column(sql, numeric="decimal(10,2)", nonfinite="null")
    assert got == [Decimal("1.50"), None]
    field, got = types.column(sql, numeric="decimal(10,2)", nonfinite="text")
    assert (field.type, got) == (pa.string(), ["1.5", value])


def test_numeric_within_others(types: Types) -> None:
    _, got = types.column("SELECT ARRAY[1.5, NULL] AS v", numeric="decimal(5,2)")
    assert got == [[Decimal("1.50"), None]]
    field, got = types.column("SELECT numrange(1.5, NULL) AS v", numeric="float64")
    assert field.type[0].type == pa.float64() and got[0]["lower"] == (1.5).hex()
    _, got = types.column("SELECT ARRAY[1.5, 'NaN'] AS v", numeric="decimal(5,2)", nonfinite="null")
    assert got == [[Decimal("1.50"), None]]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"numeric": "decimal"}, "decimal"),
        ({"numeric": "decimal(77,0)"}, "76"),
        ({"numeric": "decimal(0,0)"}, "decimal"),
        ({"numeric": "decimal(5,6)"}, "decimal"),
        ({"numeric": "decimal(5,-1)"}, "decimal"),
        ({"numeric": "double"}, "float64"),
        ({"nonfinite": "keep"}, "error, null or text"),
        ({"extension": "sometimes"}, "sometimes"),
    ],
)
def test_wrong_options(types: Types, options: dict[str, Any], what: str) -> None:
    with pytest.raises(dray.UsageError, match=what):
        types.connection.query("SELECT 1", **options)
    assert list(types.query("SELECT 1")) == [(1,)]


SETTINGS = [
    "DateStyle = 'German, DMY'", "IntervalStyle = 'iso_8601'", "bytea_output = 'escape'",
    "TimeZone = 'Asia/Kathmandu'",
    "extra_float_digits = -5", "client_encoding = 'LATIN1'", "xmloption = 'document'",
    "search_path = 'pg_catalog'",
    "array_nulls = off", "standard_conforming_strings = off", "lc_monetary = 'ja_JP.UTF-8'",
]  # fmt: skip


def test_settings_of_a_role_change_no_value(types: Types) -> None:
    if not types.has("role", "strange"):
        types.server.run(
            "CREATE ROLE strange SUPERUSER LOGIN",
            *(f"ALTER ROLE strange SET {setting}" for setting in SETTINGS),
        )
    sql = """SELECT 'Grüße'::text AS a, 0.1::float8 AS b, '2000-01-02'::date AS c,
    '2000-01-02 03:04:05'::timestamp AS d,
        '2000-01-02 03:04:05+00'::timestamptz AS e, '1 mon 2 days 00:00:03'::interval AS f,
        decode('00ff', 'hex') AS g,
        '04:05:06+01'::timetz AS h, int4range(1, 2) AS i, ARRAY['a', NULL] AS j,
        '2000-01-02'::date::text AS k,
        daterange('2000-01-02', NULL) AS l, 'it''s'::name AS m, 1.10::numeric AS n,
        '(0.1,0.30000000000000004)'::point AS o"""
    with dray.connect(types.server.uri(DATABASE, "strange")) as connection:
        for options in ({}, {"nonfinite": "text"}):
            got = connection.query(sql, extension=types.extension, **options).arrow()
            want = types.query(sql, **options).arrow()
            assert got.schema.equals(want.schema, check_metadata=True)
            differing = {
                name for name in want.column_names if not got.column(name).equals(want.column(name))
            }
            # As text, timestamps are in the session's zone, and intervals in its style.
            assert differing == ({"e", "f"} if options else set())


def test_latin1(types: Types) -> None:
    _create_database(types, "latin1", "LATIN1")
    text = bytes(range(1, 256)).decode("latin1")
    with (
        types.server.connect("latin1") as oracle,
        dray.connect(types.server.uri("latin1")) as connection,
    ):
        if oracle.execute("SELECT to_regclass('t')").fetchone() == (None,):
            oracle.execute(
                "CREATE TYPE größe AS ENUM ('weiß'); CREATE TYPE paar AS (ä text, b größe)"
            )
            oracle.execute(
                'CREATE TABLE t ("spälte" text, j json, e größe, p paar, a text[], c char(3), '
                "n name)"
            )
            oracle.execute(
                "INSERT INTO t VALUES (%s, '{\"ü\": 1}', 'weiß', ROW('é', 'weiß'), "
                "'{ö,NULL}', 'ü', 'ñ')",
                [text],
            )
        got = connection.query("SELECT * FROM t", extension=types.extension).arrow()
        got.validate(full=True)
        assert got.column_names == ["spälte", "j", "e", "p", "a", "c", "n"]
        assert got.to_pylist() == [
            {
                "spälte": text,
                "j": '{"ü": 1}',
                "e": "weiß",
                "p": {"ä": "é", "b": "weiß"},
                "a": ["ö", None],
                "c": "ü  ",
                "n": "ñ",
            }
        ]
        (name,) = oracle.execute("SELECT format('%I.%I', 'public', 'größe')").fetchone() or ("",)
        assert got.schema.field("e").metadata == {pt.TYPE_KEY: name.encode()}
        assert list(connection.query("SELECT $1::text", ["ü"], extension="auto")) == [("ü",)]
        with pytest.raises(dray.Error) as caught:
            connection.query("SELECT '🐴'", extension="auto" if types.extension else False).arrow()
        assert caught.value.sqlstate == "22P05"
        assert connection.query(
            "SELECT 'ß' AS v", extension=types.extension
        ).arrow().to_pylist() == [{"v": "ß"}]


def test_sql_ascii(types: Types) -> None:
    _create_database(types, "ascii", "SQL_ASCII")
    with dray.connect(types.server.uri("ascii")) as connection:
        good = "SELECT 'Grüße 🐴' AS v"
        assert connection.query(good, extension=types.extension).arrow().to_pylist() == [
            {"v": "Grüße 🐴"}
        ]
        # The meaning of such bytes is unknown.
        bad = (
            "SELECT CASE WHEN i < 3 THEN 'x' ELSE convert_from('\\x61ff62', 'SQL_ASCII') END "
            "AS v FROM generate_series(1, 5) i"
        )
        with pytest.raises(
            dray.Error, match='column "v".*UTF-8|UTF-8.*column "v"|invalid byte sequence'
        ):
            connection.query(bad, extension=types.extension).arrow()
        assert connection.query(good, extension=types.extension).arrow().num_rows == 1
        raw = "SELECT convert_to(convert_from('\\x61ff62', 'SQL_ASCII'), 'SQL_ASCII') AS v"
        assert connection.query(raw, extension=types.extension).arrow().to_pylist() == [
            {"v": b"a\xffb"}
        ]


def _create_database(types: Types, name: str, encoding: str) -> None:
    if (
        types.oracle.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
        is None
    ):
        types.server.run(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
        )
        if True in EXTENSION_CHOICES:
            types.server.run("CREATE EXTENSION dray", database=name)
