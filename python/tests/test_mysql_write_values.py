"""Values and types that are written into MariaDB, and those that do not fit."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from mysql_server import MariaServer
from mysql_target import MysqlTarget
from test_mysql_types import CASES, Case

import dray

DECIMALS = pa.array([decimal.Decimal("1.25"), decimal.Decimal("999.99")], pa.decimal128(5, 2))
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
DAY = dt.datetime(2024, 2, 29, 12, 30, 1, 123456)


# Every type that reading knows.


@pytest.mark.parametrize("case", CASES, ids=[case.type for case in CASES])
def test_round_trip(mysql_target: MysqlTarget, case: Case) -> None:
    """What was read and written again has the server's own text, in the same and in a new table."""
    target = mysql_target
    values = ", ".join(f"({i}, {value})" for i, value in enumerate([*case.values, "NULL"]))
    target.server.run(
        f"CREATE TABLE w.source (id int PRIMARY KEY, v {case.type} NULL) CHARACTER SET utf8mb4",
        f"INSERT INTO w.source VALUES {values}",
        "CREATE TABLE w.t LIKE w.source",
    )
    text = f"SELECT {case.text}, HEX(v) FROM w.{{}} ORDER BY id"
    want = target.server.rows(text.format("source"))
    with dray.connect(target.server.uri(database="w")) as other:
        table = other.query("SELECT * FROM source ORDER BY id").to_arrow()
        assert target.write(table, mode="append").rows == len(want)
        assert target.server.rows(text.format("t")) == want
        target.write(table, mode="replace")
        again = other.query("SELECT * FROM t ORDER BY id").to_arrow()
    assert again["v"].to_pylist() == table["v"].to_pylist()
    (created,) = target.server.rows(
        "SELECT column_type FROM information_schema.columns WHERE table_schema = 'w' "
        "AND table_name = 't' AND column_name = 'v'"
    )
    # Labels, lengths of text and digits of a second are not part of Arrow.
    if created[0] == case.type:
        assert target.server.rows(text.format("t")) == want


# What does not fit.

VALUES: list[tuple[str, pa.Array, str]] = [
    ("smallint", pa.array([1, 40000]), "column \"v\", row 2: 40000 can't be written as smallint"),
    ("int unsigned", pa.array([None, -1], pa.int64()), "row 2: -1 .*unsigned: it is out of range"),
    ("bigint", pa.array([2**63], pa.uint64()), "row 1: 9223372036854775808 .*bigint"),
    ("year", pa.array([0, 70]), "row 2: 70 .*year"),
    ("bit(3)", pa.array([7, 8]), "row 2: 8 .*bit"),
    ("float", pa.array([0.5, 0.1]), "row 2: 0.1 .*float.*rounded"),
    ("float", pa.array([2**24, 2**24 + 1]), "row 2: 16777217 .*float.*rounded"),
    ("double", pa.array([2**53 + 1]), "9007199254740993 .*rounded"),
    ("double", pa.array([0.0, float("nan")]), "row 2: NaN .*neither NaN"),
    ("double", pa.array([float("inf")]), "infinity"),
    ("decimal(4,1)", DECIMALS, "row 1: 1.25 .*decimal\\(4,1\\).*more digits"),
    ("decimal(4,2)", DECIMALS, "row 2: 999.99 .*decimal\\(4,2\\)"),
    ("decimal(2,0)", pa.array([99, 100]), "row 2: 100 .*decimal\\(2,0\\)"),
    ("decimal(5,2) unsigned", pa.array([decimal.Decimal("-0.01")]), "row 1: -0.01 .*range"),
    ("int", DECIMALS, "row 1: 1.25 .*whole"),
    ("varchar(3)", pa.array(["äöü", "abcd"]), 'row 2: "abcd" .*varchar\\(3\\)'),
    ("varchar(3)", pa.array(["abc "]), 'row 1: "abc "'),
    ("char(3)", pa.array(["a", "b "]), 'row 2: "b " .*blanks'),
    ("tinytext", pa.array(["x" * 256]), "too many bytes"),
    ("binary(3)", pa.array([b"abc", b"ab"]), "row 2: 6162 .*whole length"),
    ("varbinary(2)", pa.array([b"abc"]), "too many bytes"),
    ("enum('a','b')", pa.array(["b", "A"]), 'row 2: "A" .*none of the column'),
    ("enum('a','b')", pa.array(["2"]), 'row 1: "2"'),
    ("set('a','b')", pa.array(["a,b", "b,a"]), 'row 2: "b,a"'),
    ("date", pa.array([2**31 - 1], pa.date32()), "years 1 to 9999"),
    ("date", pa.array([1], pa.date64()).view(pa.int64()).view(pa.date64()), "time of day|date"),
    ("datetime(6)", pa.array([1001], pa.timestamp("ns")), "row 1: .*nanoseconds"),
    ("datetime(6)", pa.array([-(2**63)], NAIVE), "years 1 to 9999"),
    ("timestamp(3) null", pa.array([DAY], ZONED), "row 1: .*more digits after the second"),
    ("time", pa.array([86_400_000_000], pa.time64("us")), "out of range"),
    ("time(0)", pa.array([1], pa.time64("us")), "more digits after the second"),
    ("time", pa.array([839 * 3600], pa.duration("s")), "838:59:59"),
    ("json", pa.array([[float("nan")]]), "neither NaN"),
]  # fmt: skip

MISMATCHES: list[tuple[str, pa.Array]] = [
    ("int", pa.array(["1"])),
    ("int", pa.array([1.0])),
    ("float(7,2)", pa.array([1.5], pa.float32())),
    ("decimal(5,2)", pa.array([1.0])),
    ("text", pa.array([1])),
    ("text", pa.array([b"x"])),
    ("blob", pa.array(["x"])),
    ("date", pa.array(["2024-01-01"])),
    ("date", pa.array([DAY], NAIVE)),
    ("datetime", pa.array([DAY], ZONED)),
    ("timestamp null", pa.array([DAY], NAIVE)),
    ("int", pa.array([[1]])),
    ("time", pa.array([(1, 2, 3)], pa.month_day_nano_interval())),
]

SERVER: list[tuple[str, pa.Array, str, str]] = [
    ("varchar(9) character set latin1", pa.array(["ü", "🐴"]), "Incorrect string.*row 2", "22007"),
    ("text character set ascii", pa.array(["a", "ü"]), "Incorrect string.*row 2", "22007"),
    ("text character set utf8mb3", pa.array(["🐴"]), "Incorrect string.*row 1", "22007"),
    ("int CHECK (v < 5)", pa.array([1, 9]), "CONSTRAINT", "23000"),
    ("int UNIQUE", pa.array([7, 8, 7]), "Duplicate entry '7'", "23000"),
    ("json", pa.array(["{}", "{"]), "json|CONSTRAINT", ""),
    ("inet6", pa.array(["::1", "x"]), "inet6 value: 'x'.*row 2", "22007"),
    ("uuid", pa.array(["x"]), "uuid value: 'x'.*row 1", "22007"),
    ("timestamp null", pa.array([1, 2**32], pa.timestamp("s", "UTC")), "v.*row 2", ""),
    ("geometry", pa.array([b"xx"]), "geometry", ""),
]


@pytest.mark.parametrize("mysql_target", ["load"], indirect=True)
@pytest.mark.parametrize(("kind", "values", "match"), VALUES)
def test_values_that_do_not_fit(
    mysql_target: MysqlTarget, kind: str, values: pa.Array, match: str
) -> None:
    mysql_target.server.run(f"CREATE TABLE w.t (v {kind})")
    error = mysql_target.fails(pa.table({"v": values}), match, mode="append")
    assert isinstance(error, dray.ExecutionError) and error.sqlstate == "22003"
    assert 'column "v", row' in str(error)
    assert mysql_target.rows() == []


@pytest.mark.parametrize("mysql_target", ["load"], indirect=True)
@pytest.mark.parametrize(("kind", "values"), MISMATCHES)
def test_types_that_do_not_match(mysql_target: MysqlTarget, kind: str, values: pa.Array) -> None:
    mysql_target.server.run(f"CREATE TABLE w.t (v {kind})")
    match = 'column "v": .*can\'t be written as'
    error = mysql_target.fails(pa.table({"v": values}), match, mode="append")
    assert isinstance(error, dray.QueryError) and error.sqlstate == "42804" and error.hint


@pytest.mark.parametrize(("kind", "values", "match", "sqlstate"), SERVER)
def test_what_the_server_refuses(
    mysql_target: MysqlTarget, kind: str, values: pa.Array, match: str, sqlstate: str
) -> None:
    """LOAD DATA changes such values or leaves out their rows: here both are errors."""
    mysql_target.server.run(f"CREATE TABLE w.t (v {kind}) CHARACTER SET utf8mb4")
    error = mysql_target.fails(pa.table({"v": values}), match, mode="append")
    assert not sqlstate or error.sqlstate == sqlstate
    assert mysql_target.rows() == []


def test_row_numbers_count_all_batches(mysql_target: MysqlTarget) -> None:
    mysql_target.server.run("CREATE TABLE w.t (v smallint)")
    batches = [pa.record_batch({"v": [1] * 5000})] * 4 + [pa.record_batch({"v": [1, 2, 70000]})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    mysql_target.fails(reader, "row 20003: 70000", mode="append")
    assert mysql_target.rows() == []


def test_bad_input(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    target.fails(twice, 'two columns named "a"')
    target.fails(pa.table({}), "no columns")
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    target.fails(pa.table({"v": union}), 'column "v": .*no type for Arrow')
    interval = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    target.fails(pa.table({"v": interval}), "no type for Arrow")
    wide = pa.array([decimal.Decimal(1)], pa.decimal256(66, 0))
    target.fails(pa.table({"v": wide}), "no type for Arrow")
    table = pa.table({"id": [1]})
    target.fails(table, 'types names "x"', types={"x": "int"})
    target.fails(table, "creates no table", types={"id": "bigint"}, mode="append")
    for name in ("int); DROP TABLE t", "", "int, x int", "int) ENGINE=MyISAM"):
        target.fails(table, "is no type", types={"id": name})
    target.fails(table, "[Uu]nknown data type", types={"id": "integr"})
    target.fails(pa.table({f"c{i}": [i] for i in range(5000)}), "[Tt]oo many columns")
    assert target.tables() == []


def test_wide_tables(mysql_target: MysqlTarget) -> None:
    table = pa.table({f"c{i}": pa.array([i, None], pa.int16()) for i in range(1000)})
    mysql_target.write(table)
    assert mysql_target.rows() == [tuple(map(str, range(1000))), (None,) * 1000]


def test_hostile_strings(mysql_target: MysqlTarget) -> None:
    """All bytes come back, in columns of several character sets."""
    target = mysql_target
    target.server.run(
        "CREATE TABLE w.t (id int, u text CHARACTER SET utf8mb4, l text CHARACTER SET latin1, "
        "w text CHARACTER SET utf16, b longblob, v varbinary(4), j json) CHARACTER SET utf8mb4"
    )
    texts = ["'\"`", "\\", "\\\\N", "\\N", "NULL", "", " ", "\t\n\r\0\x1a\b", "a\\", "%_;--",
             "ü€"]  # fmt: skip
    every = [*texts, "🐴", "\U0010ffff\ufffe"]
    rows = [
        {"id": i, "u": text, "l": text if text in texts else None, "w": text,
         "b": text.encode("utf-16"), "v": bytes([i, 0, 255, 10]), "j": json.dumps(text)}
        for i, text in enumerate(every)
    ]  # fmt: skip
    rows.append({"id": 99, "b": bytes(range(256)) * 300})
    schema = pa.schema([("id", pa.int32()), ("u", pa.string()), ("l", pa.string()),
                        ("w", pa.string()), ("b", pa.binary()), ("v", pa.binary()),
                        ("j", pa.string())])  # fmt: skip
    target.write(pa.Table.from_pylist(rows, schema), mode="append")
    found = target.ask("SELECT * FROM t ORDER BY id")
    assert found == [tuple(row.get(name) for name in schema.names) for row in rows]
    assert target.rows(columns="id, HEX(u), HEX(w), HEX(b)")[:-1] == [
        (str(i), text.encode().hex().upper(), text.encode("utf-16-be").hex().upper(),
         text.encode("utf-16").hex().upper())
        for i, text in enumerate(every)
    ]  # fmt: skip


def test_types_of_new_tables(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    columns: dict[str, tuple[pa.Array, str, Any]] = {
        "null": (pa.nulls(1), "longtext", None),
        "bool": (pa.array([True]), "tinyint(1)", "1"),
        "int8": (pa.array([-5], pa.int8()), "tinyint(4)", "-5"),
        "uint8": (pa.array([255], pa.uint8()), "tinyint(3) unsigned", "255"),
        "uint32": (pa.array([2**32 - 1], pa.uint32()), "int(10) unsigned", str(2**32 - 1)),
        "uint64": (pa.array([2**64 - 1], pa.uint64()), "bigint(20) unsigned", str(2**64 - 1)),
        "half": (pa.array([1.5], pa.float32()).cast(pa.float16()), "float", "1.5"),
        "double": (pa.array([0.1]), "double", "0.1"),
        "decimal": (DECIMALS[1:], "decimal(5,2)", "999.99"),
        "negative": (pa.array([decimal.Decimal(1200)], pa.decimal128(5, -2)), "decimal(7,0)",
                     "1200"),
        "wide": (pa.array([decimal.Decimal("1." + "1" * 38)], pa.decimal256(60, 38)),
                 "decimal(60,38)", "1." + "1" * 38),
        "large": (pa.array(["ä"], pa.large_string()), "longtext", "ä"),
        "view": (pa.array(["a view that is not inline"], pa.string_view()), "longtext",
                 "a view that is not inline"),
        "binary": (pa.array([b"\0\xff"], pa.large_binary()), "longblob", b"\0\xff"),
        "fixed": (pa.array([b"abc"], pa.binary(3)), "binary(3)", b"abc"),
        "dictionary": (pa.array(["x"]).dictionary_encode(), "longtext", "x"),
        "encoded": (pa.RunEndEncodedArray.from_arrays([1], ["r"]), "longtext", "r"),
        "date64": (pa.array([dt.date(1600, 2, 29)], pa.date64()), "date", "1600-02-29"),
        "time32": (pa.array([dt.time(1, 2, 3)], pa.time32("s")), "time", "01:02:03"),
        "stamp": (pa.array([DAY], pa.timestamp("ns")), "datetime(6)", str(DAY)),
        "zoned": (pa.array([DAY], pa.timestamp("ms", "Asia/Tokyo"), safe=False), "timestamp(3)",
                  str(DAY)[:-3]),
        "duration": (pa.array([-90_061_500], pa.duration("ms")), "time(3)", "-25:01:01.500"),
        "list": (pa.array([[1, None]]), "longtext", "[1,null]"),
        "struct": (pa.array([{"x": 1, "y": [None, "a"]}]), "longtext", '{"x":1,"y":[null,"a"]}'),
        "map": (pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string())), "longtext", '{"1":"a"}'),
    }  # fmt: skip
    table = pa.table({name: array for name, (array, _, _) in columns.items()})
    target.write(table)
    found = target.server.rows(
        "SELECT column_name, column_type FROM information_schema.columns "
        "WHERE table_schema = 'w' AND table_name = 't' AND is_nullable = 'YES'"
    )
    assert dict(found) == {name: kind for name, (_, kind, _) in columns.items()}
    (row,) = target.rows()
    assert dict(zip(columns, row)) == {name: value for name, (_, _, value) in columns.items()}


def test_types_as_asked(mysql_target: MysqlTarget) -> None:
    table = pa.table({"n": [1, 2], "e": ["b", None], "i": ["2001:db8::", "::1"], "f": [1, 2]})
    types = {"n": "decimal(10,2)", "e": "enum('a','b''c','b')", "i": "inet6", "f": "double"}
    mysql_target.write(table, types=types)
    assert mysql_target.rows() == [("1.00", "b", "2001:db8::", "1"), ("2.00", None, "::1", "2")]


def test_floats_bit_for_bit(mysql_target: MysqlTarget) -> None:
    import struct

    rng = random.Random(7)
    doubles = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(5000)]
    singles = [struct.unpack("f", rng.randbytes(4))[0] for _ in range(5000)]
    finite = lambda numbers: [n if abs(n) < float("inf") else None for n in numbers]  # noqa: E731
    singles = finite([*singles, 1e-45, 0.1, 3.4e38])
    table = pa.table(
        {"d": finite([*doubles, 5e-324, 1e22, 0.1]), "f": pa.array(singles, pa.float32())}
    )
    mysql_target.write(table)
    found = mysql_target.dray.query("SELECT * FROM t").to_arrow()
    assert found["d"].to_pylist() == table["d"].to_pylist()
    assert found["f"].to_pylist() == table["f"].to_pylist()
    # The server has no -0.
    mysql_target.write(pa.table({"d": [-0.0]}), mode="append")


def test_json(mysql_target: MysqlTarget) -> None:
    value = {"s": '"\\ \n\x01ü🐴', "d": decimal.Decimal("12345678901234567890.10"),
             "b": True, "y": b"\x01\xff", "l": [{"a": None}]}  # fmt: skip
    items = pa.list_(pa.struct([("a", pa.int8())]))
    kind = pa.struct(
        [("s", pa.string()), ("d", pa.decimal128(25, 2)), ("b", pa.bool_()), ("y", pa.binary()),
         ("l", items)]
    )  # fmt: skip
    mysql_target.write(pa.table({"v": pa.array([value, None], kind)}))
    (text,), (missing,) = mysql_target.rows()
    assert missing is None and "12345678901234567890.10," in text
    assert json.loads(text) == {"s": '"\\ \n\x01ü🐴', "d": 12345678901234567890.10, "b": True,
                                "y": "\\x01ff", "l": [{"a": None}]}  # fmt: skip


@pytest.mark.parametrize("mysql_target", ["load"], indirect=True)
@pytest.mark.parametrize(
    "named",
    [
        "bit(1)) AS SELECT b'1' AS v, User, authentication_string FROM mysql.user -- ",
        "bit(1), x int",
        "date DEFAULT (SLEEP(60))",
        "year) ENGINE=MyISAM -- ",
    ],
)
def test_metadata_that_is_sql(mysql_target: MysqlTarget, named: str) -> None:
    """The metadata of a file's column may be anything."""
    field = pa.field("v", pa.uint64(), metadata={"dray:mysql:type": named})
    mysql_target.write(pa.table([pa.array([1, 0], pa.uint64())], pa.schema([field])))
    described = mysql_target.server.rows("SHOW COLUMNS FROM w.t")
    assert [column[:2] for column in described] == [("v", "bigint(20) unsigned")]
    assert mysql_target.rows() == [("1",), ("0",)]


# MySQL's type json, whose numbers are doubles unless they are integers.


@pytest.fixture
def mysql8(start_mysql: Callable[[str], MariaServer]) -> Iterator[MysqlTarget]:
    target = MysqlTarget(start_mysql("mysql-8.0"))
    try:
        yield target
    finally:
        target.close()


def json_field(name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={"ARROW:extension:name": "arrow.json"})


def test_json_of_mysql_in_new_tables(mysql8: MysqlTarget) -> None:
    """What json would change becomes text."""
    floats = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, 123456789.123456789]
    number = decimal.Decimal("12345678901234567890.10")
    text = '{"b": 12345678901234567890.10, "a":  1.10}'
    columns = {
        pa.field("floats", pa.list_(pa.float64())): (floats, "longtext"),
        pa.field("deep", pa.struct([("d", pa.decimal128(25, 2))])): ({"d": number}, "longtext"),
        json_field("j"): (text, "longtext"),
        pa.field("integers", pa.list_(pa.uint64())): ([2**64 - 1, None], "json"),
        pa.field("words", pa.map_(pa.string(), pa.string())): ([("a", "1.5")], "json"),
    }
    arrays = [pa.array([value], field.type) for field, (value, _) in columns.items()]
    mysql8.write(pa.table(arrays, pa.schema(list(columns))))
    described = mysql8.server.rows("SHOW COLUMNS FROM w.t")
    assert [column[:2] for column in described] == [
        (field.name, kind) for field, (_, kind) in columns.items()
    ]
    ((found, deep, kept, integers, words),) = mysql8.rows()
    assert json.loads(found) == floats
    assert (deep, kept) == ('{"d":12345678901234567890.10}', text)
    assert json.loads(integers) == [2**64 - 1, None] and json.loads(words) == {"a": "1.5"}


def test_json_of_mysql_in_columns_that_exist(mysql8: MysqlTarget) -> None:
    """Numbers come back as they were, or are errors."""
    mysql8.server.run("CREATE TABLE w.t (v json)")
    rng = random.Random(5)
    texts = ["0.1", "-1.50", "1e5", "2.5e-7", str(2**64 - 1), str(-(2**63))]
    texts.append('"0.30000000000000004"')
    for _ in range(5000):
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 14)))
        texts.append(f"{rng.choice(['', '-'])}{rng.randint(1, 9)}.{digits}e{rng.randint(-8, 22)}")
    mysql8.write(pa.table([pa.array(texts)], pa.schema([json_field("v")])), mode="append")
    found = [text for (text,) in mysql8.rows()]
    assert [decimal.Decimal(text.strip('"')) for text in found] == [
        decimal.Decimal(text.strip('"')) for text in texts
    ]
    mysql8.server.run("TRUNCATE w.t")
    mysql8.write(pa.table({"v": [[0.1, 1.5], [1e22]]}), mode="append")
    assert [json.loads(text) for (text,) in mysql8.rows()] == [[0.1, 1.5], [1e22]]
    mysql8.server.run("TRUNCATE w.t")
    wide = pa.array([[decimal.Decimal("12345678901234567.5")]], pa.list_(pa.decimal128(20, 1)))
    for values in (
        pa.array(["1", "[0.30000000000000004]"])[1:],
        pa.array([str(2**64)]),
        pa.array([[0.1 + 0.2]]),
        wide,
    ):
        error = mysql8.fails(
            pa.table({"v": values}), "row 1: .*json rounds a number.*longtext", mode="append"
        )
        assert error.sqlstate == "22003"
