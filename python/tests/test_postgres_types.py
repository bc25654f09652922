"""Every type of section 3 of spec/types.md, against PostgreSQL's own text output."""

from __future__ import annotations

import datetime as dt
import os
import random
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import postgres_text as pt
import psycopg
import pyarrow as pa
import pytest
from postgres_server import LOCALES, WAYS, PostgresServer
from postgres_text import Shape

import dray

DATABASE = "types"
# Types that the cases below are of.
DDL = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', '', 'it''s "so" \\ 🐴');
CREATE SCHEMA other;
CREATE TYPE other.mood AS ENUM ('x');
CREATE DOMAIN d_integer AS integer CHECK (VALUE < 1000);
CREATE DOMAIN d_twice AS d_integer NOT NULL;
CREATE DOMAIN d_decimal AS numeric(7,3);
CREATE DOMAIN d_numeric AS numeric;
CREATE DOMAIN d_text AS varchar(20);
CREATE DOMAIN d_char AS char(5);
CREATE DOMAIN d_json AS json;
CREATE DOMAIN d_uuid AS uuid;
CREATE DOMAIN d_mood AS mood;
CREATE DOMAIN d_date AS date;
CREATE DOMAIN d_inet AS inet;
CREATE DOMAIN d_bit AS bit(3);
CREATE DOMAIN d_oid AS oid;
CREATE DOMAIN d_array AS integer[];
CREATE DOMAIN d_range AS int4range;
CREATE DOMAIN d_money AS money;
CREATE TYPE pair AS (n integer, "Text, ""quoted"" ü" text);
CREATE DOMAIN d_pair AS pair;
CREATE TYPE nested AS (p pair, ps pair[], d d_decimal, a text[], r int4range, e mood, j jsonb, u uuid, n numeric(5,2), c char(3));
CREATE TYPE dates AS (d date, t timestamptz, x float8);
CREATE TYPE address AS (name text, host inet);
CREATE TYPE outer_address AS (a address, n integer);
CREATE TYPE of_array AS (hosts inet[]);
CREATE TYPE nothing AS ();
CREATE TYPE dropped AS (a integer, b text, c boolean);
ALTER TYPE dropped DROP ATTRIBUTE b;
CREATE TABLE relation (a integer, b text, c numeric(9,2));
ALTER TABLE relation DROP COLUMN a;
ALTER TABLE relation ADD COLUMN d date[];
CREATE TYPE textrange AS RANGE (subtype = text);
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TYPE inetrange AS RANGE (subtype = inet);
CREATE TYPE domainrange AS RANGE (subtype = d_decimal);
CREATE TYPE priced AS (what text, price money);
CREATE TYPE with_range AS (r textrange, m int4multirange);
"""

BIG = "9" * 131_072
SMALL = "0." + "0" * 16_382 + "1"
STRANGE = ["", " ", "NULL", "null", "a,b", '"quoted" \\ back', "{a}", "(a)", "Grüße 🐴\U0010ffff", "a\nb\tc\r\x01\x7f", "x" * 100_000]


@dataclass(frozen=True)
class Case:
    """A column: its type and the text that its values are made of. Before version `since` the server refuses them."""

    type: str
    texts: list[str]
    shape: Shape
    name: str = ""
    since: int = 0

    @property
    def id(self) -> str:
        return self.name or self.type

    @property
    def table(self) -> str:
        return "c_" + re.sub(r"\W", "_", self.id)


def literal(items: list[str | None]) -> str:
    """An array of these, with everything quoted."""
    quoted = [item if item is None else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items]
    return "{" + ",".join("NULL" if item is None else item for item in quoted) + "}"


def _numerics(precision: int, scale: int) -> list[str]:
    """The largest and smallest values of a declared numeric, zero, and NaN."""
    digits = "9" * precision
    if scale <= 0:
        largest, smallest = digits + "0" * -scale, "1" + "0" * -scale
    elif scale >= precision:
        largest, smallest = "0." + "0" * (scale - precision) + digits, "0." + "0" * (scale - 1) + "1"
    else:
        largest, smallest = f"{digits[:-scale]}.{digits[-scale:]}", "0." + "0" * (scale - 1) + "1"
    return [largest, f"-{largest}", smallest, f"-{smallest}", "0", "-0.0"]


DECLARED = [
    (1, 0), (4, 0), (5, 2), (9, 4), (18, 0), (19, 19), (38, 0), (38, 38), (38, 10), (37, 3), (39, 0), (39, 39), (60, 7), (76, 0),
    (76, 76), (76, 30), (5, -2), (2, -36), (2, -37), (3, -73), (3, 5), (1, 38), (10, 40), (2, 76),
    (77, 0), (100, 50), (1000, 0), (1000, 1000), (3, -74), (2, 77), (1, -1000),
]  # fmt: skip

DATES = ["4713-01-01 BC", "4714-11-24 BC", "0001-12-31 BC", "0001-01-01", "1582-10-10", "1969-12-31", "1970-01-01"]
DATES += ["2000-02-29", "9999-12-31", "10000-01-01", "5874897-12-31"]
STAMPS = ["4713-01-01 00:00:00 BC", "4714-11-24 00:00:00 BC", "0001-12-31 23:59:59.999999 BC", "0001-01-01 00:00:00"]
STAMPS += ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2000-01-01 00:00:00.000001", "2024-02-29 12:34:56.7"]
STAMPS += ["12345-06-07 08:09:10", "294246-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807"]
BEYOND = ["294247-01-10 04:00:54.775808", "294276-12-31 23:59:59.999999"]
INTERVALS = ["0", "1 year 2 mons 3 days 04:05:06.789", "-1 year -2 mons 3 days -00:00:00.000001", "1 mon -1 day"]
INTERVALS += ["-178000000 years", "178000000 years", "2147483647 mons", "-2147483648 mons", "2147483647 days", "-2147483648 days"]
INTERVALS += ["24:00:00", "-100:00:00", "2562047:47:16.854775", "-2562047:47:16.854775"]
LONG = ["2562047:47:16.854776", "-2562047:47:16.854776", "2562047788:00:54.775807"]
FLOATS = ["0", "-0", "1", "0.1", "-1.5", "NaN", "Infinity", "-Infinity"]
ZONED = ["04:05:06.789-08", "00:00:00+15:59:59", "24:00:00-15:59:59", "12:00:00+05:30", "12:00:00+00", "23:59:59.999999-00:00:01"]
ZONED += ["01:02:03.000001+00:30:15", "24:00:00+00", "12:00:00-03:30", "12:00:00+01:00:01"]
U = str(uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF))

SCALARS = [
    Case("boolean", ["t", "f"], pt.BOOLEAN),
    Case("smallint", ["-32768", "32767", "0"], pt.SMALLINT),
    Case("integer", ["-2147483648", "2147483647", "0"], pt.INTEGER),
    Case("bigint", ["-9223372036854775808", "9223372036854775807", "0"], pt.BIGINT),
    Case("real", [*FLOATS, "1e-45", "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "16777217"], pt.REAL),
    Case("double precision", [*FLOATS, "5e-324", "1.7976931348623157e308", "-1e-310", "0.30000000000000004"], pt.DOUBLE),
    Case(
        "numeric",
        ["0", "0.00", "-0.00", "1", "-1.10", "10000", "9999.9999", "0.0001", "1e20", "123456789012345678901234567890.12345678901",
         "NaN", "Infinity", "-Infinity", BIG, f"-{BIG}", SMALL, f"-{SMALL}", f"{BIG}.{'9' * 16383}", "1e131071", "0." + "0" * 16383,
         "0.00000000000000000000", "100000000", "1e-8", "10000.0001"],
        pt.NUMERIC,
    ),
    *(Case(f"numeric({p},{s})", _numerics(p, s), pt.numeric(p, s)) for p, s in DECLARED),
    Case("numeric(10,2)", ["1.00", "NaN", "-2.50"], pt.numeric(10, 2), name="numeric NaN"),
    Case("numeric(40,2)", ["1.00", "NaN", "-2.50"], pt.numeric(40, 2), name="wide numeric NaN"),
    Case("numeric(80,2)", ["1.00", "NaN", "-2.50"], pt.numeric(80, 2), name="widest numeric NaN"),
    Case("text", STRANGE, pt.TEXT),
    Case("varchar", STRANGE, pt.VARCHAR),
    Case("varchar(10)", ["", "0123456789", "äöüäöüäöü🐴"], pt.VARCHAR),
    Case("char(5)", ["", "a", "ab 🐴", "12345"], pt.CHARACTER),
    Case("char", ["", "a"], pt.CHARACTER),
    Case("name", ["", "a", "x" * 63, "Grüße"], pt.NAME),
    Case("refcursor", ["", "<cursor>"], pt.REFCURSOR),
    Case("json", ['{"a" : [1, null, "x"],  "a":2}', "null", '"🐴\\u00e4"', " 1e400 ", "[]"], pt.JSON),
    Case("jsonb", ['{"b" : [1, null, "x"],  "a":2}', "null", '"🐴\\u00e4"', "1e400", "[]"], pt.JSONB),
    Case("bytea", ["", "\\x" + bytes(range(256)).hex(), "\\x" + "00" * 100_000], pt.BYTEA),
    Case("date", DATES, pt.DATE),
    Case("date", ["2000-01-01", "infinity"], pt.DATE, name="date infinity"),
    Case("date", ["-infinity"], pt.DATE, name="date minus infinity"),
    Case("timestamp", STAMPS, pt.TIMESTAMP),
    Case("timestamp", [STAMPS[0], *BEYOND], pt.TIMESTAMP, name="timestamp beyond"),
    Case("timestamp", ["infinity", "-infinity"], pt.TIMESTAMP, name="timestamp infinity"),
    Case("timestamptz", [f"{stamp.removesuffix(' BC')}+00{' BC' * ('BC' in stamp)}" for stamp in STAMPS], pt.TIMESTAMPTZ),
    Case("timestamptz", ["2024-07-01 12:00:00+05:30", "2024-07-01 12:00:00 Europe/Vienna"], pt.TIMESTAMPTZ, name="zoned"),
    Case("timestamptz", [STAMPS[4], *BEYOND, "infinity", "-infinity"], pt.TIMESTAMPTZ, name="timestamptz beyond"),
    Case("timestamp(0)", ["2024-02-29 12:34:56"], pt.TIMESTAMP),
    Case("time", ["00:00:00", "23:59:59.999999", "12:34:56.7"], pt.TIME),
    Case("time", ["00:00:00", "24:00:00"], pt.TIME, name="time 24"),
    Case("timetz", ZONED, pt.TIMETZ),
    Case("interval", INTERVALS, pt.INTERVAL),
    Case("interval", ["1 day", *LONG], pt.INTERVAL, name="long interval"),
    Case("interval", ["1 day", "infinity", "-infinity"], pt.INTERVAL, name="interval infinity", since=17),
    Case("uuid", [U, str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))], pt.UUID),
    Case("bit(3)", ["101", "000"], pt.BIT),
    Case("bit(64)", ["10" * 32, "1" * 64], pt.BIT),
    Case("bit varying", ["", "1", "010101011", "1" * 70_001], pt.VARBIT),
    Case("oid", ["0", "4294967295"], pt.OID),
    Case("xid", ["0", "4294967295"], pt.XID),
    Case("cid", ["0", "4294967295"], pt.CID),
    Case("xid8", ["0", "18446744073709551615"], pt.XID8),
    Case("mood", ["sad", "", 'it\'s "so" \\ 🐴'], pt.enum("public.mood")),
    Case("other.mood", ["x"], pt.enum("other.mood")),
]

WRITTEN = {
    "inet": ["192.168.0.1", "10.0.0.0/8", "::1", "fe80::1/64"],
    "cidr": ["10.0.0.0/8", "::/0"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "point": ["(1.5,-2)", "(NaN,Infinity)", "(0.1,1e300)"],
    "lseg": ["[(0,0),(1,1)]"],
    "path": ["[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"],
    "box": ["(1,1),(0,0)"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "line": ["{1,2,3}"],
    "circle": ["<(0,0),1>"],
    "tsvector": ["'a':1A 'fat':2B,4C", "'it''s' 'ü'", ""],
    "tsquery": ["'a' & 'b' | !'c'", ""],
    "tid": ["(0,1)", "(4294967295,65535)"],
    "pg_lsn": ["0/0", "FFFFFFFF/FFFFFFFF"],
    "regclass": ["pg_class"],
    "regtype": ["integer", "mood[]"],
    "regproc": ["pg_typeof"],
    "regprocedure": ["abs(integer)"],
    "regoper": ["||/"],
    "regoperator": ["+(integer,integer)"],
    "regrole": ["postgres"],
    "regnamespace": ["pg_catalog"],
    "regconfig": ["english"],
    "regdictionary": ["simple"],
    "regcollation": ['"C"'],
    "pg_snapshot": ["10:20:10,14"],
    "txid_snapshot": ["10:20:10,14"],
    "jsonpath": ['$."a"[*]?(@ > 1)'],
    "aclitem": ["postgres=r*w/postgres"],
    "address": ['("a ""b"" ü",10.0.0.1)', "(,)"],
    "outer_address": ['("(x,::1)",5)'],
    "of_array": ['("{10.0.0.1,NULL}")'],
    "inetrange": ["[10.0.0.1,10.0.0.9)", "empty"],
    "nothing": ["()"],
}
DERIVED = {"address", "outer_address", "of_array", "inetrange", "nothing"}
for name, texts in WRITTEN.items():
    written = pt.written(f"public.{name}", base=False) if name in DERIVED else pt.written(name)
    SCALARS.append(Case(name, texts, written))

# Domains are as what they are of.
SCALARS += [
    Case("d_integer", ["999"], pt.INTEGER),
    Case("d_twice", ["999"], pt.INTEGER),
    Case("d_decimal", ["1234.567"], pt.numeric(7, 3)),
    Case("d_decimal", ["NaN"], pt.numeric(7, 3), name="d_decimal NaN"),
    Case("d_numeric", ["1234.567", "NaN"], pt.NUMERIC),
    Case("d_text", ["x", ""], pt.VARCHAR),
    Case("d_char", ["x"], pt.CHARACTER),
    Case("d_json", ["{}"], pt.JSON),
    Case("d_uuid", [U], pt.UUID),
    Case("d_mood", ["ok"], pt.enum("public.mood")),
    Case("d_date", ["2000-01-01"], pt.DATE),
    Case("d_date", ["infinity"], pt.DATE, name="d_date infinity"),
    Case("d_inet", ["::1"], pt.written("inet")),
    Case("d_bit", ["101"], pt.BIT),
    Case("d_oid", ["5"], pt.OID),
    Case("d_array", ["{1,NULL}", "{}"], pt.list_of(pt.INTEGER)),
    Case("d_array[]", ['{"{1,NULL}","{}",NULL}', "{}"], pt.list_of(pt.list_of(pt.INTEGER), name="public.d_array[]")),
    Case("d_range", ["[1,2)"], pt.range_of("int4range", pt.INTEGER)),
]

PAIR = pt.composite("public.pair", **{"n": pt.INTEGER, 'Text, "quoted" ü': pt.TEXT})
NESTED = pt.composite(
    "public.nested", p=PAIR, ps=pt.list_of(PAIR), d=pt.numeric(7, 3), a=pt.list_of(pt.TEXT), r=pt.range_of("int4range", pt.INTEGER),
    e=pt.enum("public.mood"), j=pt.JSONB, u=pt.UUID, n=pt.numeric(5, 2), c=pt.CHARACTER,
)  # fmt: skip
DATED = pt.composite("public.dates", d=pt.DATE, t=pt.TIMESTAMPTZ, x=pt.DOUBLE)
RELATION = pt.composite("public.relation", b=pt.TEXT, c=pt.numeric(9, 2), d=pt.list_of(pt.DATE))
INT4RANGE = pt.range_of("int4range", pt.INTEGER)
TSRANGE = pt.range_of("tsrange", pt.TIMESTAMP)
TEXTRANGE = pt.range_of("public.textrange", pt.TEXT)
INT4MULTI = pt.multirange_of("int4multirange", pt.INTEGER)
PAIRS = ["(1,x)", "(,)", '(5,"a ""b"" \\\\ , ü")', '(-1,"")']

COMPOSITES = [
    Case("pair", PAIRS, PAIR),
    Case("d_pair", PAIRS, PAIR),
    Case(
        "nested",
        [f'("(1,x)","{{""(2,y)"",NULL,""(,)""}}",1.5,"{{a,NULL,\\"\\"}}","[1,5)",ok,"{{""a"": 1}}",{U},1.25,ab)',
         "(,,,,,,,,,)", '("(,)",{},0,{},empty,"",null,' + f"{U},-999.99,)"],
        NESTED,
    ),
    Case("dates", ['(2000-01-01,"2000-01-01 00:00:00+00",NaN)', "(,,)"], DATED),
    Case("dates", ["(,,0)", "(infinity,-infinity,1)"], DATED, name="dates infinity"),
    Case("dropped", ["(1,t)", "(,)"], pt.composite("public.dropped", a=pt.INTEGER, c=pt.BOOLEAN)),
    Case("relation", ['(x,1.5,"{2000-01-01,NULL}")', "(,,)"], RELATION),
    Case("with_range", ['("[a,b)","{[1,2),[5,)}")', "(empty,{})"], pt.composite("public.with_range", r=TEXTRANGE, m=INT4MULTI)),
    Case("int4range", ["[1,5)", "(1,5]", "empty", "(,)", "[5,)", "(,5]", "[-2147483648,2147483647)"], INT4RANGE),
    Case("int8range", ["[1,5)", "empty", "(,)", "[-9223372036854775808,9223372036854775807)"], pt.range_of("int8range", pt.BIGINT)),
    Case("numrange", ["[1.10,5)", "(1,1e50]", "empty", "[NaN,NaN]", "(-Infinity,Infinity]"], pt.range_of("numrange", pt.NUMERIC)),
    Case("daterange", ["[4713-01-01 BC,2000-01-01]", "empty", "(,)"], pt.range_of("daterange", pt.DATE)),
    Case("daterange", ["[2000-01-01,2000-01-02)", "[-infinity,infinity]"], pt.range_of("daterange", pt.DATE), name="infinite days"),
    Case("tsrange", ['["2000-01-01 00:00:00","2000-01-01 00:00:00.5"]', "empty", "(,)"], TSRANGE),
    Case("tstzrange", ['["2000-01-01 00:00:00+01","2000-01-01 00:00:00.5+00")', "[infinity,infinity]"],
         pt.range_of("tstzrange", pt.TIMESTAMPTZ)),
    Case("textrange", ["[a,b)", '["",x]', '("a ""b"", [c) \\\\ ü",)', "empty", "(,)"], TEXTRANGE),
    Case("floatrange", ["[0.1,NaN)", "[-Infinity,Infinity]"], pt.range_of("public.floatrange", pt.DOUBLE)),
    Case("domainrange", ["[0.1,1000.555)", "empty"], pt.range_of("public.domainrange", pt.numeric(7, 3))),
    Case("int4multirange", ["{}", "{[1,2),[5,9)}", "{(,)}", "{(,1),[5,)}"], INT4MULTI),
    Case("int8multirange", ["{}", "{[1,2),[5,9)}"], pt.multirange_of("int8multirange", pt.BIGINT)),
    Case("nummultirange", ["{[1.10,2],(3,4.5)}"], pt.multirange_of("nummultirange", pt.NUMERIC)),
    Case("datemultirange", ["{[2000-01-01,2001-01-01)}", "{[2000-01-01,infinity)}"], pt.multirange_of("datemultirange", pt.DATE)),
    Case("tsmultirange", ['{["2000-01-01 00:00:00","2000-01-01 00:00:00.5"]}'], pt.multirange_of("tsmultirange", pt.TIMESTAMP)),
    Case("tstzmultirange", ['{["2000-01-01 00:00:00+00","2000-01-01 00:00:00.5+00"]}'],
         pt.multirange_of("tstzmultirange", pt.TIMESTAMPTZ)),
    Case("textmultirange", ['{[a,b),["c )] ,",d]}'], pt.multirange_of("public.textmultirange", pt.TEXT)),
    Case("inetmultirange", ["{[10.0.0.1,10.0.0.9)}"], pt.written("public.inetmultirange", base=False)),
]  # fmt: skip


def _array(case: Case, delimiter: str = ",") -> Case:
    """Arrays of a case's values, NULL among them, an empty one, and one that begins elsewhere."""
    items: list[str | None] = [text for text in case.texts if len(text) < 20_000]
    quoted = literal([*items, None])
    if delimiter != ",":
        quoted = "{" + delimiter.join([*(f'"{item}"' for item in items), "NULL"]) + "}"
    texts = [quoted, "{}", "{NULL}", f"[-5:{len(items) - 5}]={quoted}"]
    # An array of a domain has a name of its own.
    name = f"public.{case.type}[]" if case.type.startswith("d_") else ""
    return Case(f"{case.type}[]", texts, pt.list_of(case.shape, delimiter, name), f"{case.id}[]", case.since)


# A domain that takes no NULL.
NOT_IN_ARRAYS = {"d_twice"}
ARRAYS = [_array(case, ";" if case.type == "box" else ",") for case in [*SCALARS, *COMPOSITES] if case.type not in NOT_IN_ARRAYS and not case.type.endswith("]")]
VECTORS = [
    Case("int2vector", ["", "1 -2 32767"], pt.INT2VECTOR),
    Case("oidvector", ["", "0 4294967295"], pt.OIDVECTOR),
]
CASES = [*SCALARS, *COMPOSITES, *ARRAYS, *VECTORS]


@dataclass(frozen=True)
class Types:
    """A database with the types, and two looks at it."""

    server: PostgresServer
    oracle: psycopg.Connection[Any]
    connection: dray.Connection
    extension: bool

    @property
    def version(self) -> int:
        return self.server.version

    def has(self, kind: str, name: str) -> bool:
        """Whether there is such a class, type or role."""
        return self.oracle.execute(f"SELECT to_reg{kind}(%s)", [name]).fetchone() != (None,)

    def texts(self, sql: str) -> list[str | None]:
        """The first column of a result as its type's output function writes it."""
        cursor = self.oracle.execute(sql)
        result = cursor.pgresult
        assert result is not None
        found = [result.get_value(row, 0) for row in range(result.ntuples)]
        return [None if text is None else bytes(text).decode() for text in found]

    def query(self, sql: str, **options: Any) -> dray.Result:
        return self.connection.query(sql, extension=self.extension, **options)

    def column(self, sql: str, **options: Any) -> tuple[pa.Field, list[Any]]:
        """The first column of a result, validated."""
        table = self.query(sql, **options).arrow()
        table.validate(full=True)
        return table.schema.field(0), pt.values(table.column(0))

    def check(self, sql: str, shape: Shape) -> None:
        """That the first column of a result is what PostgreSQL's text of it says, with all choices of nonfinite."""
        texts = self.texts(sql)
        want = [None if text is None else shape.read(text) for text in texts]
        missing = [row for row, value in enumerate(want, 1) if pt.has_infinity(value)]
        if missing:
            with pytest.raises(dray.Error, match=f'column "v", row {missing[0]}: .*nonfinite=null') as caught:
                self.query(sql).arrow()
            assert caught.value.kind in ("execution", "usage"), caught.value.kind
        for options, like in ({}, shape), ({"nonfinite": "null"}, shape), ({"nonfinite": "text"}, shape.texts()):
            if missing and not options:
                continue
            wanted = want if like is shape else [None if text is None else like.read(text) for text in texts]
            field, got = self.column(sql, **options)
            assert field.type == like.data_type, options
            # The extension knows of NOT NULL constraints.
            nullable = field.nullable or not self.extension
            assert field.equals(like.field("v", nullable), check_metadata=True), (field, field.metadata, like.field("v").metadata)
            assert got == [pt.without_infinities(value) for value in wanted], options


@pytest.fixture(scope="session")
def database(postgres: PostgresServer) -> PostgresServer:
    with postgres.connect() as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            connection.execute(f"CREATE DATABASE {DATABASE}")
            postgres.run(f"ALTER DATABASE {DATABASE} SET timezone = 'UTC'", DDL, database=DATABASE)
            if True in WAYS:
                postgres.run("CREATE EXTENSION dray", database=DATABASE)
    return postgres


@pytest.fixture(scope="module")
def types(database: PostgresServer, extension: bool) -> Iterator[Types]:
    with database.connect(DATABASE) as oracle, dray.connect(database.uri(DATABASE)) as connection:
        yield Types(database, oracle, connection, extension)


def fill(types: Types, case: Case) -> None:
    """Make the case's table, with a NULL after its values, unless it is there."""
    if types.has("class", case.table):
        return
    last = [] if case.type == "d_twice" else [None]
    with types.oracle.transaction():
        types.oracle.execute(f"CREATE TABLE {case.table} (id integer, v {case.type})")
        rows = list(enumerate([*case.texts, *last]))
        types.oracle.cursor().executemany(f"INSERT INTO {case.table} VALUES (%s, %s)", rows)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_values(types: Types, case: Case) -> None:
    if types.version < case.since:
        with pytest.raises(psycopg.DataError):
            fill(types, case)
        return
    fill(types, case)
    types.check(f"SELECT v FROM {case.table} ORDER BY id", case.shape)


def test_char_of_every_byte(types: Types) -> None:
    # Before version 16 its text is the bare byte, which is no UTF-8: the expected is section 3's own rule.
    numbers = [*range(128), *range(-128, 0)]
    want = ["", *map(chr, range(1, 128)), *(f"\\{byte:03o}" for byte in range(128, 256))]
    field, got = types.column('SELECT v::"char" AS v FROM unnest($1::integer[]) AS t(v)'.replace("$1", f"ARRAY{numbers}"))
    assert field.equals(pt.CHAR.field("v"), check_metadata=True)
    assert got == want
    _, got = types.column(f'SELECT array_agg(v::"char" ORDER BY v & 255) FROM unnest(ARRAY{numbers}) AS t(v)')
    assert got == [want]


@pytest.mark.parametrize("array", ["'{{1,2},{3,4}}'::integer[]", "'{{::1},{::2}}'::inet[]", "'[2:2][3:3]={{a}}'::text[]"])
def test_arrays_of_more_dimensions(types: Types, array: str) -> None:
    sql = f"SELECT CASE WHEN i = 3 THEN {array} END AS grid FROM generate_series(1, 3) i"
    with pytest.raises(dray.Error, match=r'column "grid", row 3: .*more than one dimension.*::text.*unnest'):
        types.query(sql).arrow()
    assert types.query(f"SELECT ({array})::text AS grid").arrow().num_rows == 1
    with pytest.raises(dray.Error, match='column "grid", row 1: .*more than one dimension'):
        types.query("SELECT ROW(NULL, NULL, NULL, '{{a}}', NULL, NULL, NULL, NULL, NULL, NULL)::nested AS grid").arrow()


@pytest.mark.parametrize(("locale", "scale"), LOCALES.items())
def test_money(types: Types, locale: str, scale: int) -> None:
    user = f"money_{scale}"
    if not types.has("role", user):
        types.server.run(f"CREATE ROLE {user} LOGIN", f"ALTER ROLE {user} SET lc_monetary = '{locale}'")
    uri = types.server.uri(DATABASE, user)
    shape = pt.money(scale)
    with psycopg.connect(uri) as oracle, dray.connect(uri) as connection:
        # As integers: the text is of a language, and a cast to numeric goes through a float's digits in none.
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
            return connection.query("SELECT '7'::money AS v", extension=types.extension).arrow().column("v").to_pylist()[0]

        digits = []
        for locale in (*LOCALES, *LOCALES):
            list(connection.query(f"SET lc_monetary = '{locale}'"))
            digits.append(str(value()))
        assert digits == ["7", "7.00", "7.000"] * 2


AVAILABLE = {
    "hstore": [("hstore", ['"a"=>"1", "b"=>NULL, "c"=>"NULL"', "", '""=>""', r'"ü\"\\"=>"=>, \"🐴\""'], pt.HSTORE)],
    "citext": [("citext", ["Abc", "", "Grüße"], pt.CITEXT)],
    "cube": [("cube", ["(1, 2),(3, 4)", "(0)"], pt.written("public.cube"))],
    "ltree": [("ltree", ["a.b.c", ""], pt.written("public.ltree")), ("lquery", ["*.a{1,2}"], pt.written("public.lquery"))],
    "seg": [("seg", ["1.5 .. 2.5", "~3"], pt.written("public.seg"))],
    "isn": [("isbn", ["978-0-393-04002-9"], pt.written("public.isbn"))],
    "vector": [("vector(3)", ["[1,2.5,-3]"], pt.written("public.vector"))],
}


def test_types_of_extensions(types: Types) -> None:
    available = {name for (name,) in types.oracle.execute("SELECT name FROM pg_available_extensions")}
    # The distribution has them all but one, the wheel only that one.
    assert available & set(AVAILABLE) == (set(AVAILABLE) - {"vector"} if "hstore" in available else {"vector"})
    assert types.version > 15 or "hstore" in available
    for extension in sorted(available & set(AVAILABLE)):
        types.oracle.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
        for name, texts, shape in AVAILABLE[extension]:
            scalar = Case(name, texts, shape)
            for case in (scalar, _array(scalar)):
                fill(types, case)
                types.check(f"SELECT v FROM {case.table} ORDER BY id", case.shape)
    if "hstore" in available:
        if not types.has("type", "held"):
            types.oracle.execute("CREATE TYPE held AS (h hstore, c citext)")
        types.check("SELECT ROW('a=>1', 'X')::held AS v", pt.composite("public.held", h=pt.HSTORE, c=pt.CITEXT))


def test_xml(types: Types) -> None:
    (configured,) = types.oracle.execute("SELECT setting FROM pg_config WHERE name = 'CONFIGURE'").fetchone() or ("",)
    has_xml = "--with-libxml" in configured
    assert has_xml or types.version != 15
    texts = ["<a/>", '<?xml version="1.0" encoding="UTF-8"?><ü x="1">🐴</ü>', '<?xml version="1.0" standalone="yes"?><a/>', "text &amp; <b/>"]
    scalar = Case("xml", texts if has_xml else [], pt.XML)
    for case in (scalar, _array(scalar)):
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
        ("SELECT t AS v FROM c_relation t ORDER BY id", pt.composite("public.c_relation", id=pt.INTEGER, v=RELATION)),
        ("SELECT sum(x) AS v FROM (VALUES (1.5::numeric(9,2)), (2)) t(x)", pt.NUMERIC),
        ("SELECT avg(x) AS v FROM (VALUES (1), (2)) t(x)", pt.NUMERIC),
        ("SELECT sum(x) AS v FROM (VALUES (9223372036854775807), (1)) t(x)", pt.NUMERIC),
        ("SELECT array_agg(x ORDER BY x) AS v FROM generate_series(1, 3) x", pt.list_of(pt.INTEGER)),
        ("SELECT count(*) AS v FROM pg_class", pt.BIGINT),
        ("SELECT prokind AS v FROM pg_proc ORDER BY oid LIMIT 5", pt.CHAR),
        ("SELECT proargtypes AS v FROM pg_proc ORDER BY oid", pt.OIDVECTOR),
        ("SELECT proacl AS v FROM pg_proc ORDER BY oid", pt.list_of(pt.written("aclitem"))),
        ("SELECT conkey AS v FROM pg_constraint ORDER BY oid", pt.list_of(pt.SMALLINT)),
        ("SELECT histogram_bounds AS v FROM pg_stats ORDER BY schemaname, tablename, attname", pt.written("anyarray")),
        ("SELECT ev_action AS v FROM pg_rewrite ORDER BY oid LIMIT 20", pt.written("pg_node_tree")),
    ],
)  # fmt: skip
def test_results_that_are_no_tables(types: Types, sql: str, shape: Shape) -> None:
    fill(types, next(case for case in COMPOSITES if case.id == "relation"))
    types.check(sql, shape)


def test_nullable_columns(types: Types) -> None:
    types.oracle.execute("CREATE TABLE IF NOT EXISTS whole (id integer PRIMARY KEY, v text NOT NULL, w text, CHECK (w IS NOT NULL))")
    types.oracle.execute("INSERT INTO whole VALUES (1, 'x', 'y') ON CONFLICT DO NOTHING")

    def nullable(sql: str) -> list[bool]:
        return [field.nullable for field in types.query(sql).arrow().schema]

    assert nullable("SELECT id, v, w FROM whole") == ([False, False, True] if types.extension else [True] * 3)
    # Rows that a join makes up.
    outer = "SELECT a.id, b.v FROM whole a LEFT JOIN whole b ON b.id = a.id + 1"
    assert nullable(outer)[1]
    assert list(types.query(outer)) == [(1, None)]
    for sql in (
        "SELECT b.v FROM whole b RIGHT JOIN whole a ON b.id = a.id + 1", "SELECT b.v FROM whole b FULL JOIN whole a ON b.id = a.id + 1",
        "SELECT v FROM whole GROUP BY GROUPING SETS ((v), ())", "SELECT NULL AS v UNION ALL SELECT v FROM whole",
        "SELECT v FROM (SELECT b.v FROM whole a LEFT JOIN whole b ON b.id = a.id + 1) t", "SELECT max(v) AS v FROM whole WHERE false",
        "SELECT (SELECT v FROM whole WHERE false) AS v", "WITH t AS (SELECT b.v FROM whole a LEFT JOIN whole b ON false) SELECT v FROM t",
        "SELECT v FROM whole TABLESAMPLE SYSTEM (0)",
    ):  # fmt: skip
        assert types.column(sql)[1] == [None if text is None else text for text in types.texts(sql)], sql


def test_all_of_the_catalog(types: Types) -> None:
    """Every table and view that a server is born with is readable, with all of its columns."""
    names = types.texts(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE relkind IN ('r', 'v') "
        "AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY 1"
    )
    assert len(names) > 150
    for name in names:
        sql = f"SELECT * FROM {name} LIMIT 200"
        try:
            described = types.oracle.execute(sql).description or []
        except psycopg.Error as error:
            # Such as views of memory that this machine does not have.
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
    types.check("SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, b=pt.TEXT))
    types.oracle.execute("ALTER TYPE growing RENAME ATTRIBUTE b TO c")
    # The same statement, described as before.
    types.check("SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, c=pt.TEXT))
    types.oracle.execute("ALTER TYPE growing ALTER ATTRIBUTE c TYPE bytea")
    types.check("SELECT ROW(1, 'x')::growing AS v", pt.composite("public.growing", a=pt.INTEGER, c=pt.BYTEA))
    types.oracle.execute("ALTER TYPE growing DROP ATTRIBUTE a")
    types.check("SELECT ROW('x')::growing AS v", pt.composite("public.growing", c=pt.BYTEA))


NUMERICS = "SELECT v FROM (VALUES (1, 1.10), (2, -12345678.9), (3, NULL), (4, 0.000)) t(id, v) ORDER BY id"


def test_numeric_as_float64(types: Types) -> None:
    _, got = types.column(NUMERICS, numeric="float64")
    assert got == [value.hex() if value is not None else None for value in (1.1, -12345678.9, None, 0.0)]
    rows = ["'NaN'", "'Infinity'", "'-Infinity'", "1e308", "1e-320", "0.1", "123456789012345678901234567890", "9007199254740993"]
    sql = f"SELECT v::numeric AS v FROM (VALUES {', '.join(f'({i}, {row}::numeric)' for i, row in enumerate(rows))}) t(id, v) ORDER BY id"
    want = [value.hex() for (value,) in types.oracle.execute(f"SELECT v::float8 FROM ({sql}) t")]
    field, got = types.column(sql, numeric="float64")
    assert field.type == pa.float64() and got == want
    # PostgreSQL's own cast refuses it; an infinity would be another value.
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
        with pytest.raises(dray.Error, match=r'column "v", row [12]: .*is no decimal.*numeric=text'):
            types.query(NUMERICS, numeric=option).arrow()
    with pytest.raises(dray.Error, match=r'column "v", row 1: ') as caught:
        types.query("SELECT 1e131071 AS v", numeric="decimal(76,0)").arrow()
    # All of its digits help nobody.
    assert len(str(caught.value)) < 500
    # A declared numeric is what it was declared, whatever the option says.
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
    assert field.type[0].type == pa.float64() and got[0]["lower"] == 1.5.hex()
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
    "DateStyle = 'German, DMY'", "IntervalStyle = 'iso_8601'", "bytea_output = 'escape'", "TimeZone = 'Asia/Kathmandu'",
    "extra_float_digits = -5", "client_encoding = 'LATIN1'", "xmloption = 'document'", "search_path = 'pg_catalog'",
    "array_nulls = off", "standard_conforming_strings = off", "lc_monetary = 'ja_JP.UTF-8'",
]  # fmt: skip


def test_settings_of_a_role_change_no_value(types: Types) -> None:
    if not types.has("role", "strange"):
        types.server.run("CREATE ROLE strange SUPERUSER LOGIN", *(f"ALTER ROLE strange SET {setting}" for setting in SETTINGS))
    sql = """SELECT 'Grüße'::text AS a, 0.1::float8 AS b, '2000-01-02'::date AS c, '2000-01-02 03:04:05'::timestamp AS d,
        '2000-01-02 03:04:05+00'::timestamptz AS e, '1 mon 2 days 00:00:03'::interval AS f, decode('00ff', 'hex') AS g,
        '04:05:06+01'::timetz AS h, int4range(1, 2) AS i, ARRAY['a', NULL] AS j, '2000-01-02'::date::text AS k,
        daterange('2000-01-02', NULL) AS l, 'it''s'::name AS m, 1.10::numeric AS n,
        '(0.1,0.30000000000000004)'::point AS o"""
    with dray.connect(types.server.uri(DATABASE, "strange")) as connection:
        for options in ({}, {"nonfinite": "text"}):
            got = connection.query(sql, extension=types.extension, **options).arrow()
            want = types.query(sql, **options).arrow()
            assert got.schema.equals(want.schema, check_metadata=True)
            differing = {name for name in want.column_names if not got.column(name).equals(want.column(name))}
            # As text, a moment is of the session's zone, and an interval in its style.
            assert differing == ({"e", "f"} if options else set())


def test_latin1(types: Types) -> None:
    _create_database(types, "latin1", "LATIN1")
    text = bytes(range(1, 256)).decode("latin1")
    with types.server.connect("latin1") as oracle, dray.connect(types.server.uri("latin1")) as connection:
        if oracle.execute("SELECT to_regclass('t')").fetchone() == (None,):
            oracle.execute("CREATE TYPE größe AS ENUM ('weiß'); CREATE TYPE paar AS (ä text, b größe)")
            oracle.execute('CREATE TABLE t ("spälte" text, j json, e größe, p paar, a text[], c char(3), n name)')
            oracle.execute("INSERT INTO t VALUES (%s, '{\"ü\": 1}', 'weiß', ROW('é', 'weiß'), '{ö,NULL}', 'ü', 'ñ')", [text])
        got = connection.query("SELECT * FROM t", extension=types.extension).arrow()
        got.validate(full=True)
        assert got.column_names == ["spälte", "j", "e", "p", "a", "c", "n"]
        assert got.to_pylist() == [
            {"spälte": text, "j": '{"ü": 1}', "e": "weiß", "p": {"ä": "é", "b": "weiß"}, "a": ["ö", None], "c": "ü  ", "n": "ñ"}
        ]
        (name,) = oracle.execute("SELECT format('%I.%I', 'public', 'größe')").fetchone() or ("",)
        assert got.schema.field("e").metadata == {pt.TYPE_KEY: name.encode()}
        assert list(connection.query("SELECT $1::text", ["ü"], extension="auto")) == [("ü",)]
        with pytest.raises(dray.Error) as caught:
            connection.query("SELECT '🐴'", extension="auto" if types.extension else False).arrow()
        assert caught.value.sqlstate == "22P05"
        assert connection.query("SELECT 'ß' AS v", extension=types.extension).arrow().to_pylist() == [{"v": "ß"}]


def test_sql_ascii(types: Types) -> None:
    _create_database(types, "ascii", "SQL_ASCII")
    with dray.connect(types.server.uri("ascii")) as connection:
        good = "SELECT 'Grüße 🐴' AS v"
        assert connection.query(good, extension=types.extension).arrow().to_pylist() == [{"v": "Grüße 🐴"}]
        # Nobody knows what such bytes mean.
        bad = "SELECT CASE WHEN i < 3 THEN 'x' ELSE convert_from('\\x61ff62', 'SQL_ASCII') END AS v FROM generate_series(1, 5) i"
        with pytest.raises(dray.Error, match='column "v".*UTF-8|UTF-8.*column "v"|invalid byte sequence'):
            connection.query(bad, extension=types.extension).arrow()
        assert connection.query(good, extension=types.extension).arrow().num_rows == 1
        raw = "SELECT convert_to(convert_from('\\x61ff62', 'SQL_ASCII'), 'SQL_ASCII') AS v"
        assert connection.query(raw, extension=types.extension).arrow().to_pylist() == [{"v": b"a\xffb"}]


def _create_database(types: Types, name: str, encoding: str) -> None:
    if types.oracle.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
        types.server.run(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
        if True in WAYS:
            types.server.run("CREATE EXTENSION dray", database=name)


def test_rows_have_python_values(types: Types) -> None:
    sql = """SELECT true, 5::smallint, 1.5::float4, 1.50::numeric(5,2), 1.50::numeric, 'x', '\\x00'::bytea, '2000-01-02'::date,
        '03:04:05.000006'::time, '2000-01-02 03:04'::timestamp, '2000-01-02 03:04+00'::timestamptz, '1 mon 2 days 3 s'::interval,
        '00000000-0000-0000-0000-000000000007'::uuid, ARRAY[1, NULL], ROW(1, 'x')::pair, int4range(1, NULL), NULL::integer"""
    (row,) = types.query(sql.replace("'\\x", "E'\\\\x")).rows()
    span = {"lower": 1, "upper": None, "lower_inclusive": True, "upper_inclusive": False, "empty": False}
    noon = dt.datetime(2000, 1, 2, 3, 4)
    assert row == (
        True, 5, 1.5, Decimal("1.50"), "1.50", "x", b"\0", dt.date(2000, 1, 2), dt.time(3, 4, 5, 6), noon,
        noon.replace(tzinfo=dt.timezone.utc), dray.Interval(1, 2, 3_000_000_000), uuid.UUID(int=7), [1, None],
        {"n": 1, 'Text, "quoted" ü': "x"}, span, None,
    )  # fmt: skip
    assert str(row[3]) == "1.50" and type(row[11]) is dray.Interval


def test_no_rows_have_types(types: Types) -> None:
    sql = "SELECT NULL::numeric(5,2) AS a, NULL::pair AS b, NULL::date[] AS c, NULL::mood AS d WHERE false"
    got = types.query(sql).arrow()
    assert got.num_rows == 0
    assert got.schema.types == [pa.decimal128(5, 2), PAIR.data_type, pa.list_(pt.DATE.field("item")), pa.string()]


def test_as_many_columns_as_a_result_may_have(types: Types) -> None:
    sql = "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(1664))
    assert types.query(sql).arrow().to_pylist() == [{f"c{i}": i for i in range(1664)}]
    assert types.query("SELECT").arrow().num_columns == 0


def test_stored_out_of_line(types: Types) -> None:
    if not types.has("class", "toasted"):
        types.oracle.execute("CREATE TABLE toasted (id integer, a text, b text, c bytea, d jsonb, e integer[], f numeric)")
        types.oracle.execute("ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL")
        types.oracle.execute(
            "INSERT INTO toasted SELECT i, repeat(md5(i::text), 3000), repeat('x', 300000), decode(repeat(md5(i::text), 5000), 'hex'), "
            "jsonb_build_object('k', repeat('y', 100000)), array_agg(g), (repeat('7', 20000) || '.5')::numeric "
            "FROM generate_series(1, 5) i, generate_series(1, 20000) g GROUP BY i"
        )
    for column, shape in zip("abcdef", (pt.TEXT, pt.TEXT, pt.BYTEA, pt.JSONB, pt.list_of(pt.INTEGER), pt.NUMERIC)):
        types.check(f"SELECT {column} AS v FROM toasted ORDER BY id", shape)


# Values drawn by the server: an expression of random() for each type.
DRAWN: dict[str, tuple[str, Shape]] = {
    "smallint": ("(random() * 65535 - 32768)::integer", pt.SMALLINT),
    "bigint": ("((random() - 0.5) * 1.8e19)::bigint", pt.BIGINT),
    "real": ("((random() - 0.5) * 10 ^ (random() * 70 - 35))::real", pt.REAL),
    "float8": ("(random() - 0.5) * 10 ^ (random() * 600 - 300)", pt.DOUBLE),
    "numeric": (
        "round(((random() - 0.5) * 10 ^ (random() * 40 - 20))::numeric * random()::numeric, (random() * 30)::integer)", pt.NUMERIC),
    "numeric(15,2)": ("((random() - 0.5) * 10 ^ (random() * 13))::numeric", pt.numeric(15, 2)),
    "numeric(38,19)": ("((random() - 0.5)::numeric * (10 ^ (random() * 18))::numeric * random()::numeric)", pt.numeric(38, 19)),
    "numeric(76,38)": (
        "((random() - 0.5)::numeric * ('1e' || (random() * 36)::integer)::numeric * random()::numeric * random()::numeric)",
        pt.numeric(76, 38)),
    "numeric(9,-3)": ("((random() - 0.5) * 10 ^ (random() * 11))::numeric", pt.numeric(9, -3)),
    "numeric(4,9)": ("((random() - 0.5) * 0.00001)::numeric", pt.numeric(4, 9)),
    "date": ("'2000-01-01'::date + ((random() - 0.3) * 2000000)::integer", pt.DATE),
    "timestamp": ("to_timestamp((random() - 0.3) * 100000000000)::timestamp + random() * '1 second'::interval", pt.TIMESTAMP),
    "timestamptz": ("to_timestamp((random() - 0.3) * 100000000000)", pt.TIMESTAMPTZ),
    "time": ("random() * '86399 seconds'::interval", pt.TIME),
    "timetz": ("((random() * '86399 seconds'::interval)::time::text || '+' || (random() * 14)::integer)::timetz", pt.TIMETZ),
    "interval": ("make_interval(months => ((random() - 0.5) * 1e6)::integer, days => ((random() - 0.5) * 1e6)::integer, "
                 "secs => (random() - 0.5) * 1e9)", pt.INTERVAL),
    "text": ("repeat(chr((random() * 50000)::integer + 1) || md5(random()::text), (random() * 4)::integer)", pt.TEXT),
    "bytea": ("decode(repeat(md5(random()::text), (random() * 5)::integer), 'hex')", pt.BYTEA),
    "uuid": ("md5(random()::text)::uuid", pt.UUID),
    "varbit": ("(random() * 2e9)::integer::bit(31)::varbit", pt.VARBIT),
    "integer[]": ("ARRAY[(random() * 1e9)::integer, NULL, id]", pt.list_of(pt.INTEGER)),
    "text[]": ("ARRAY[md5(random()::text), '', NULL, 'a\"b,{}' || id]", pt.list_of(pt.TEXT)),
    "numeric[]": ("ARRAY[round(random()::numeric, (random() * 20)::integer), NULL, 'NaN']", pt.list_of(pt.NUMERIC)),
    "int8range": ("int8range(id, id + (random() * 1e9)::bigint)", pt.range_of("int8range", pt.BIGINT)),
    "pair": ("ROW((random() * 1e9)::integer, CASE WHEN random() < 0.5 THEN md5(id::text) || '\",(' END)::pair", PAIR),
}  # fmt: skip
ROWS = 3000


def test_random_values(types: Types) -> None:
    seed = int(os.environ.get("DRAY_SEED") or random.randrange(10**6))
    print(f"DRAY_SEED={seed}")
    types.oracle.execute("DROP TABLE IF EXISTS drawn")
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(DRAWN))
    # Some columns have no NULL, some a few, some have little else.
    drawn = ", ".join(
        f"CASE WHEN random() >= {(0, 0.1, 0.9)[i % 3]} THEN {expression} END" for i, (expression, _) in enumerate(DRAWN.values())
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
