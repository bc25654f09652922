"""Values of every type of section 3 of spec/types.md, as text that PostgreSQL reads."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

import postgres_text as pt
from postgres_text import Shape

# The user-defined types of the cases below.
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
CREATE TYPE nested AS (p pair, ps pair[], d d_decimal, a text[], r int4range, e mood, j jsonb,
    u uuid, n numeric(5,2), c char(3));
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
STRANGE = [
    "",
    " ",
    "NULL",
    "null",
    "a,b",
    '"quoted" \\ back',
    "{a}",
    "(a)",
    "Grüße 🐴\U0010ffff",
    "a\nb\tc\r\x01\x7f",
    "x" * 100_000,
]


@dataclass(frozen=True)
class Case:
    """A column: its type and the text of its values. Before version `since` the server refuses
    them.
    """

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
    """The text of an array of these items, all of them quoted."""
    quoted = [
        item if item is None else '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for item in items
    ]
    return "{" + ",".join("NULL" if item is None else item for item in quoted) + "}"


def _numerics(precision: int, scale: int) -> list[str]:
    """The largest and smallest values of a declared numeric, and zero."""
    digits = "9" * precision
    if scale <= 0:
        largest, smallest = digits + "0" * -scale, "1" + "0" * -scale
    elif scale >= precision:
        largest, smallest = (
            "0." + "0" * (scale - precision) + digits,
            "0." + "0" * (scale - 1) + "1",
        )
    else:
        largest, smallest = f"{digits[:-scale]}.{digits[-scale:]}", "0." + "0" * (scale - 1) + "1"
    return [largest, f"-{largest}", smallest, f"-{smallest}", "0", "-0.0"]


DECLARED = [
    (1, 0), (4, 0), (5, 2), (9, 4), (18, 0), (19, 19), (38, 0), (38, 38), (38, 10), (37, 3),
    (39, 0), (39, 39), (60, 7), (76, 0),
    (76, 76), (76, 30), (5, -2), (2, -36), (2, -37), (3, -73), (3, 5), (1, 38), (10, 40), (2, 76),
    (77, 0), (100, 50), (1000, 0), (1000, 1000), (3, -74), (2, 77), (1, -1000),
]  # fmt: skip

DATES = [
    "4713-01-01 BC",
    "4714-11-24 BC",
    "0001-12-31 BC",
    "0001-01-01",
    "1582-10-10",
    "1969-12-31",
    "1970-01-01",
]
DATES += ["2000-02-29", "9999-12-31", "10000-01-01", "5874897-12-31"]
STAMPS = [
    "4713-01-01 00:00:00 BC",
    "4714-11-24 00:00:00 BC",
    "0001-12-31 23:59:59.999999 BC",
    "0001-01-01 00:00:00",
]
STAMPS += [
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2000-01-01 00:00:00.000001",
    "2024-02-29 12:34:56.7",
]
STAMPS += ["12345-06-07 08:09:10", "294246-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807"]
BEYOND = ["294247-01-10 04:00:54.775808", "294276-12-31 23:59:59.999999"]
INTERVALS = [
    "0",
    "1 year 2 mons 3 days 04:05:06.789",
    "-1 year -2 mons 3 days -00:00:00.000001",
    "1 mon -1 day",
]
INTERVALS += [
    "-178000000 years",
    "178000000 years",
    "2147483647 mons",
    "-2147483648 mons",
    "2147483647 days",
    "-2147483648 days",
]
INTERVALS += ["24:00:00", "-100:00:00", "2562047:47:16.854775", "-2562047:47:16.854775"]
LONG = ["2562047:47:16.854776", "-2562047:47:16.854776", "2562047788:00:54.775807"]
FLOATS = ["0", "-0", "1", "0.1", "-1.5", "NaN", "Infinity", "-Infinity"]
ZONED = [
    "04:05:06.789-08",
    "00:00:00+15:59:59",
    "24:00:00-15:59:59",
    "12:00:00+05:30",
    "12:00:00+00",
    "23:59:59.999999-00:00:01",
]
ZONED += ["01:02:03.000001+00:30:15", "24:00:00+00", "12:00:00-03:30", "12:00:00+01:00:01"]
U = str(uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF))

SCALARS = [
    Case("boolean", ["t", "f"], pt.BOOLEAN),
    Case("smallint", ["-32768", "32767", "0"], pt.SMALLINT),
    Case("integer", ["-2147483648", "2147483647", "0"], pt.INTEGER),
    Case("bigint", ["-9223372036854775808", "9223372036854775807", "0"], pt.BIGINT),
    Case(
        "real",
        [*FLOATS, "1e-45", "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "16777217"],
        pt.REAL,
    ),
    Case(
        "double precision",
        [*FLOATS, "5e-324", "1.7976931348623157e308", "-1e-310", "0.30000000000000004"],
        pt.DOUBLE,
    ),
    Case(
        "numeric",
        [
            "0",
            "0.00",
            "-0.00",
            "1",
            "-1.10",
            "10000",
            "9999.9999",
            "0.0001",
            "1e20",
            "123456789012345678901234567890.12345678901",
            "NaN",
            "Infinity",
            "-Infinity",
            BIG,
            f"-{BIG}",
            SMALL,
            f"-{SMALL}",
            f"{BIG}.{'9' * 16383}",
            "1e131071",
            "0." + "0" * 16383,
            "0.00000000000000000000",
            "100000000",
            "1e-8",
            "10000.0001",
        ],
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
    Case(
        "json", ['{"a" : [1, null, "x"],  "a":2}', "null", '"🐴\\u00e4"', " 1e400 ", "[]"], pt.JSON
    ),
    Case(
        "jsonb", ['{"b" : [1, null, "x"],  "a":2}', "null", '"🐴\\u00e4"', "1e400", "[]"], pt.JSONB
    ),
    Case("bytea", ["", "\\x" + bytes(range(256)).hex(), "\\x" + "00" * 100_000], pt.BYTEA),
    Case("date", DATES, pt.DATE),
    Case("date", ["2000-01-01", "infinity"], pt.DATE, name="date infinity"),
    Case("date", ["-infinity"], pt.DATE, name="date minus infinity"),
    Case("timestamp", STAMPS, pt.TIMESTAMP),
    Case("timestamp", [STAMPS[0], *BEYOND], pt.TIMESTAMP, name="timestamp beyond"),
    Case("timestamp", ["infinity", "-infinity"], pt.TIMESTAMP, name="timestamp infinity"),
    Case(
        "timestamptz",
        [f"{stamp.removesuffix(' BC')}+00{' BC' * ('BC' in stamp)}" for stamp in STAMPS],
        pt.TIMESTAMPTZ,
    ),
    Case(
        "timestamptz",
        ["2024-07-01 12:00:00+05:30", "2024-07-01 12:00:00 Europe/Vienna"],
        pt.TIMESTAMPTZ,
        name="zoned",
    ),
    Case(
        "timestamptz",
        [STAMPS[4], *BEYOND, "infinity", "-infinity"],
        pt.TIMESTAMPTZ,
        name="timestamptz beyond",
    ),
    Case("timestamp(0)", ["2024-02-29 12:34:56"], pt.TIMESTAMP),
    Case("time", ["00:00:00", "23:59:59.999999", "12:34:56.7"], pt.TIME),
    Case("time", ["00:00:00", "24:00:00"], pt.TIME, name="time 24"),
    Case("timetz", ZONED, pt.TIMETZ),
    Case("interval", INTERVALS, pt.INTERVAL),
    Case("interval", ["1 day", *LONG], pt.INTERVAL, name="long interval"),
    Case(
        "interval",
        ["1 day", "infinity", "-infinity"],
        pt.INTERVAL,
        name="interval infinity",
        since=17,
    ),
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

# Domains map like their base types.
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
    Case(
        "d_array[]",
        ['{"{1,NULL}","{}",NULL}', "{}"],
        pt.list_of(pt.list_of(pt.INTEGER), name="public.d_array[]"),
    ),
    Case("d_range", ["[1,2)"], pt.range_of("int4range", pt.INTEGER)),
]

PAIR = pt.composite("public.pair", **{"n": pt.INTEGER, 'Text, "quoted" ü': pt.TEXT})
NESTED = pt.composite(
    "public.nested", p=PAIR, ps=pt.list_of(PAIR), d=pt.numeric(7, 3), a=pt.list_of(pt.TEXT),
    r=pt.range_of("int4range", pt.INTEGER),
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
        [f'("(1,x)","{{""(2,y)"",NULL,""(,)""}}",1.5,"{{a,NULL,\\"\\"}}","[1,5)",ok,"{{""a"": '
            f'1}}",{U},1.25,ab)',
         "(,,,,,,,,,)", '("(,)",{},0,{},empty,"",null,' + f"{U},-999.99,)"],
        NESTED,
    ),
    Case("dates", ['(2000-01-01,"2000-01-01 00:00:00+00",NaN)', "(,,)"], DATED),
    Case("dates", ["(,,0)", "(infinity,-infinity,1)"], DATED, name="dates infinity"),
    Case("dropped", ["(1,t)", "(,)"], pt.composite("public.dropped", a=pt.INTEGER, c=pt.BOOLEAN)),
    Case("relation", ['(x,1.5,"{2000-01-01,NULL}")', "(,,)"], RELATION),
    Case("with_range", ['("[a,b)","{[1,2),[5,)}")', "(empty,{})"],
        pt.composite("public.with_range", r=TEXTRANGE, m=INT4MULTI)),
    Case("int4range",
        ["[1,5)", "(1,5]", "empty", "(,)", "[5,)", "(,5]", "[-2147483648,2147483647)"], INT4RANGE),
    Case("int8range", ["[1,5)", "empty", "(,)", "[-9223372036854775808,9223372036854775807)"],
        pt.range_of("int8range", pt.BIGINT)),
    Case("numrange", ["[1.10,5)", "(1,1e50]", "empty", "[NaN,NaN]", "(-Infinity,Infinity]"],
        pt.range_of("numrange", pt.NUMERIC)),
    Case("daterange", ["[4713-01-01 BC,2000-01-01]", "empty", "(,)"],
        pt.range_of("daterange", pt.DATE)),
    Case("daterange", ["[2000-01-01,2000-01-02)", "[-infinity,infinity]"],
        pt.range_of("daterange", pt.DATE), name="infinite days"),
    Case("tsrange", ['["2000-01-01 00:00:00","2000-01-01 00:00:00.5"]', "empty", "(,)"], TSRANGE),
    Case("tstzrange",
        ['["2000-01-01 00:00:00+01","2000-01-01 00:00:00.5+00")', "[infinity,infinity]"],
         pt.range_of("tstzrange", pt.TIMESTAMPTZ)),
    Case("textrange", ["[a,b)", '["",x]', '("a ""b"", [c) \\\\ ü",)', "empty", "(,)"], TEXTRANGE),
    Case("floatrange", ["[0.1,NaN)", "[-Infinity,Infinity]"],
        pt.range_of("public.floatrange", pt.DOUBLE)),
    Case("domainrange", ["[0.1,1000.555)", "empty"],
        pt.range_of("public.domainrange", pt.numeric(7, 3))),
    Case("int4multirange", ["{}", "{[1,2),[5,9)}", "{(,)}", "{(,1),[5,)}"], INT4MULTI),
    Case("int8multirange", ["{}", "{[1,2),[5,9)}"], pt.multirange_of("int8multirange", pt.BIGINT)),
    Case("nummultirange", ["{[1.10,2],(3,4.5)}"], pt.multirange_of("nummultirange", pt.NUMERIC)),
    Case("datemultirange", ["{[2000-01-01,2001-01-01)}", "{[2000-01-01,infinity)}"],
        pt.multirange_of("datemultirange", pt.DATE)),
    Case("tsmultirange", ['{["2000-01-01 00:00:00","2000-01-01 00:00:00.5"]}'],
        pt.multirange_of("tsmultirange", pt.TIMESTAMP)),
    Case("tstzmultirange", ['{["2000-01-01 00:00:00+00","2000-01-01 00:00:00.5+00"]}'],
         pt.multirange_of("tstzmultirange", pt.TIMESTAMPTZ)),
    Case("textmultirange", ['{[a,b),["c )] ,",d]}'],
        pt.multirange_of("public.textmultirange", pt.TEXT)),
    Case("inetmultirange", ["{[10.0.0.1,10.0.0.9)}"],
        pt.written("public.inetmultirange", base=False)),
]  # fmt: skip


def array_case(case: Case, delimiter: str = ",") -> Case:
    """Arrays of a case's values, with a NULL, an empty array, and one with another lower bound."""
    items: list[str | None] = [text for text in case.texts if len(text) < 20_000]
    quoted = literal([*items, None])
    if delimiter != ",":
        quoted = "{" + delimiter.join([*(f'"{item}"' for item in items), "NULL"]) + "}"
    texts = [quoted, "{}", "{NULL}", f"[-5:{len(items) - 5}]={quoted}"]
    # Arrays of domains have names of their own.
    name = f"public.{case.type}[]" if case.type.startswith("d_") else ""
    return Case(
        f"{case.type}[]", texts, pt.list_of(case.shape, delimiter, name), f"{case.id}[]", case.since
    )


# This domain does not allow NULL.
NOT_IN_ARRAYS = {"d_twice"}
ARRAYS = [
    array_case(case, ";" if case.type == "box" else ",")
    for case in [*SCALARS, *COMPOSITES]
    if case.type not in NOT_IN_ARRAYS and not case.type.endswith("]")
]
VECTORS = [
    Case("int2vector", ["", "1 -2 32767"], pt.INT2VECTOR),
    Case("oidvector", ["", "0 4294967295"], pt.OIDVECTOR),
]
CASES = [*SCALARS, *COMPOSITES, *ARRAYS, *VECTORS]
