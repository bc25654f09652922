"""Every type of section 5 of spec/types.md, compared with the text that servers write."""

from __future__ import annotations

import datetime as dt
import json
import os
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from mysql_server import SIGNING, MariaServer, sequence

import dray

UTC = dt.timezone.utc
LABELS = pa.dictionary(pa.int32(), pa.string())


def seconds(text: str) -> dt.timedelta:
    """A TIME: hours may be many."""
    sign = -1 if text.startswith("-") else 1
    hours, minutes, rest = text.lstrip("-").split(":")
    whole, _, fraction = rest.partition(".")
    return sign * dt.timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(whole),
        microseconds=int(fraction.ljust(6, "0") or 0),
    )


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def single(text: str) -> float:
    """The float of 32 bits that is nearest to a number."""
    return float(struct.unpack("f", struct.pack("f", float(text)))[0])


@dataclass(frozen=True)
class Case:
    """A column: its type, values that the server reads, and what they become.

    ``text`` is an expression that gives the server's exact text of column ``v``.
    """

    type: str
    values: list[str]
    data_type: pa.DataType
    read: Callable[[Any], Any]
    name: str | None = None
    text: str = "v"
    #: Servers that lack the type: beginnings of their versions.
    lacking: tuple[str, ...] = ()


INTEGERS = [
    Case(f"{name}{suffix}", [str(low), str(high), "0", "7"], of, int)
    for name, suffix, low, high, of in [
        ("tinyint", "", -128, 127, pa.int8()),
        ("tinyint(1)", "", -128, 127, pa.int8()),
        ("smallint", "", -(2**15), 2**15 - 1, pa.int16()),
        ("mediumint", "", -(2**23), 2**23 - 1, pa.int32()),
        ("int", "", -(2**31), 2**31 - 1, pa.int32()),
        ("bigint", "", -(2**63), 2**63 - 1, pa.int64()),
        ("tinyint", " unsigned", 0, 255, pa.uint8()),
        ("smallint", " unsigned", 0, 2**16 - 1, pa.uint16()),
        ("mediumint", " unsigned", 0, 2**24 - 1, pa.uint32()),
        ("int", " unsigned", 0, 2**32 - 1, pa.uint32()),
        ("bigint", " unsigned", 0, 2**64 - 1, pa.uint64()),
        ("int(8)", " unsigned zerofill", 0, 2**32 - 1, pa.uint32()),
    ]
]
#: A text of each type but `geometry`, which holds all of them.
GEOMETRIES = {
    "point": "POINT(1 2)",
    "linestring": "LINESTRING(0 0, 1 1, -1.5 1e300)",
    "polygon": "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "multipoint": "MULTIPOINT(0 0, 1 1)",
    "multilinestring": "MULTILINESTRING((0 0, 1 1), (2 2, 3 3))",
    "multipolygon": "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "geometrycollection": "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))",
}
CASES = [
    *INTEGERS,
    Case("year", ["0", "1901", "2155"], pa.int16(), int, "year"),
    Case(
        "float",
        ["0", "-1.5", "3.4028234e38", "1.17549435e-38", "16777217", "0.1", "123456.789"],
        pa.float32(),
        single,
        # The text of a float has six digits.
        text="v + 0e0",
    ),
    Case(
        "double",
        ["0", "-1.7976931348623157e308", "2.2250738585072014e-308", "0.1", "9007199254740993"],
        pa.float64(),
        float,
    ),
    *(
        Case(
            f"decimal({precision},{scale})",
            ["0", "-" + "9" * (precision - scale) + "." + "9" * scale, f"0.{'0' * scale}"],
            (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale),
            Decimal,
        )
        for precision, scale in [(1, 0), (5, 2), (18, 18), (38, 10), (39, 0), (65, 30), (65, 0)]
    ),
    Case("decimal(12,2) unsigned", ["0", "9999999999.99"], pa.decimal128(12, 2), Decimal),
    Case("bit(1)", ["b'0'", "b'1'"], pa.uint64(), int, "bit(1)", "v + 0"),
    Case("bit(9)", ["b'100000001'"], pa.uint64(), int, "bit(9)", "v + 0"),
    Case("bit(64)", [f"b'{'1' * 64}'", "0"], pa.uint64(), int, "bit(64)", "v + 0"),
    Case(
        "date",
        ["'1000-01-01'", "'9999-12-31'", "'1969-12-31'", "'2024-02-29'", "'0001-01-01'"],
        pa.date32(),
        dt.date.fromisoformat,
    ),
    Case(
        "datetime",
        ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'1969-12-31 23:59:59'"],
        pa.timestamp("us"),
        moment,
    ),
    Case("datetime(3)", ["'2024-02-29 12:34:56.789'"], pa.timestamp("us"), moment),
    Case("datetime(6)", ["'9999-12-31 23:59:59.999999'"], pa.timestamp("us"), moment),
    Case(
        "timestamp(6) null",
        ["'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.999999'"],
        pa.timestamp("us", "UTC"),
        lambda text: moment(text).replace(tzinfo=UTC),
    ),
    Case(
        "time",
        ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"],
        pa.duration("us"),
        seconds,
    ),
    Case("time(6)", ["'-838:59:58.999999'", "'12:00:00.5'"], pa.duration("us"), seconds),
    Case("char(5)", ["'ab'", "''", "'Grüße'"], pa.string(), str),
    Case("varchar(80)", ["''", "'a  '", "'🐴 \\0 \\n'", "'NULL'"], pa.string(), str),
    Case("longtext", ["repeat('ü', 200000)", "'x'"], pa.string(), str),
    Case("varchar(9) character set latin1", ["'Grüße'"], pa.string(), str),
    Case("binary(4)", ["0x00ff", "'ab'"], pa.binary(), bytes),
    Case("varbinary(40)", ["''", "0x00ff00"], pa.binary(), bytes),
    Case("longblob", ["repeat(0xff, 200000)", "''"], pa.binary(), bytes),
    Case("enum('a','','it''s','ü')", ["'ü'", "'a'", "''", "3", "'a'"], LABELS, str, "enum"),
    Case("set('a','b','ü')", ["''", "'b,a'", "'ü'", "7"], LABELS, str, "set"),
    Case("json", ["'{\"a\": [1, null]}'", "'\"x\"'"], pa.json_(), str, lacking=("mysql-5.6",)),
    *(
        Case(type, values, data_type, read, name, lacking=("mysql",))
        for type, values, data_type, read, name in [
            ("uuid", ["'123e4567-e89b-12d3-a456-426655440000'"], pa.uuid(), uuid.UUID, None),
            ("inet6", ["'2001:db8::ff00:42:8329'", "'::'"], pa.string(), str, "inet6"),
            ("inet4", ["'192.0.2.1'"], pa.string(), str, "inet4"),
        ]
    ),
    *(
        Case(name, [f"ST_GeomFromText('{text}')"], pa.binary(), bytes, name)
        for name, text in GEOMETRIES.items()
    ),
    Case(
        "geometry",
        ["ST_GeomFromText('POINT(1 2)', 4326)"]
        + [f"ST_GeomFromText('{text}')" for text in GEOMETRIES.values()],
        pa.binary(),
        bytes,
        "geometry",
    ),
]


@pytest.fixture(scope="module")
def connection(mysql: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(mysql.uri()) as connection:
        yield connection


@pytest.mark.parametrize("case", CASES, ids=[case.type for case in CASES])
def test_values(mysql: MariaServer, connection: dray.Connection, case: Case) -> None:
    mysql.run("DROP TABLE IF EXISTS cases")
    create = f"CREATE TABLE cases (id int PRIMARY KEY, v {case.type})"
    if mysql.version.startswith(case.lacking):
        with pytest.raises(pymysql.Error):
            mysql.run(create)
        return
    mysql.run(
        create,
        *(f"INSERT INTO cases VALUES ({i}, {value})" for i, value in enumerate(case.values)),
        f"INSERT INTO cases VALUES ({len(case.values)}, NULL)",
    )
    texts = [text for (text,) in mysql.rows(f"SELECT {case.text} FROM cases ORDER BY id")]
    assert texts[-1] is None and None not in texts[:-1]
    want = [None if text is None else case.read(text) for text in texts]
    table = connection.query("SELECT v FROM cases ORDER BY id").arrow()
    table.validate(full=True)
    field = table.schema.field("v")
    assert field.type == case.data_type
    name = (field.metadata or {}).get(b"dray:mysql:type")
    # MySQL does not say what kind of geometry it is.
    is_plain = case.name in GEOMETRIES and not mysql.is_mariadb
    expected = "geometry" if is_plain else case.name
    assert name == (expected.encode() if expected else None)
    got = table.column("v").to_pylist()
    assert got == want
    # Statements that are run again are prepared.
    assert connection.query("SELECT v FROM cases ORDER BY id").arrow().equals(table)


ZERO = ["0000-00-00", "2024-00-00", "2024-02-00", "2024-02-31"]


@pytest.mark.parametrize("type", ["date", "datetime", "datetime(6)"])
def test_dates_that_the_calendar_lacks(
    mysql: MariaServer, connection: dray.Connection, type: str
) -> None:
    with mysql.connect() as oracle, oracle.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute("DROP TABLE IF EXISTS zero")
        cursor.execute(f"CREATE TABLE zero (id int PRIMARY KEY, v {type})")
        for i, text in enumerate(["2024-02-29", *ZERO]):
            cursor.execute(f"INSERT INTO zero VALUES ({i}, '{text}')")
        cursor.execute("SELECT v FROM zero ORDER BY id")
        texts = [text for (text,) in cursor.fetchall()]
    sql = "SELECT v FROM zero ORDER BY id"
    with pytest.raises(dray.Error, match=r'column "v", row 2: .*0000-00-00') as caught:
        connection.query(sql).arrow()
    assert caught.value.kind == "execution"
    assert "nonfinite" in str(caught.value)
    nulls = connection.query(sql, nonfinite="null").arrow().column("v")
    assert nulls.null_count == len(ZERO) and nulls[0].is_valid
    assert connection.query(sql, nonfinite="text").arrow().column("v").to_pylist() == texts


@pytest.mark.parametrize("type", ["timestamp", "timestamp(3)"])
def test_zero_timestamps(mysql: MariaServer, connection: dray.Connection, type: str) -> None:
    """The only one that the calendar lacks: others are refused by the server."""
    with mysql.connect() as oracle, oracle.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("DROP TABLE IF EXISTS zero")
        cursor.execute(f"CREATE TABLE zero (id int PRIMARY KEY, v {type} NULL)")
        cursor.execute("INSERT INTO zero VALUES (0, '2024-02-29 12:00:00'), (1, 0), (2, NULL)")
        cursor.execute("SELECT v FROM zero ORDER BY id")
        texts = [text for (text,) in cursor.fetchall()]
    assert texts[1].startswith("0000-00-00 00:00:00")
    sql = "SELECT v FROM zero ORDER BY id"
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=UTC)
    # Prepared, from the second time on.
    for _ in range(2):
        with pytest.raises(dray.ExecutionError, match=r'column "v", row 2: .*0000-00-00'):
            connection.query(sql).arrow()
        nulls = connection.query(sql, nonfinite="null").arrow().column("v")
        assert nulls.type == pa.timestamp("us", "UTC") and nulls.to_pylist() == [noon, None, None]
        table = connection.query(sql, nonfinite="text").arrow()
        assert table.schema.field("v").metadata[b"dray:mysql:type"] == type.encode()
        assert table.column("v").to_pylist() == texts


@pytest.mark.skipif("DRAY_ALL_VERSIONS" not in os.environ, reason="needs MariaDB 11.8")
def test_vectors_of_mariadb(start_mysql: Callable[[str], MariaServer]) -> None:
    """They are bytes: little-endian floats of 32 bits. The server's text has six digits."""
    server = start_mysql(SIGNING)
    vectors = ["[1,2.5,-3]", "[0.1,12345.6,-3.4e38]", "[1.2e-38,0,-0.15625]"]
    server.run(
        "DROP TABLE IF EXISTS vectors",
        "CREATE TABLE vectors (id int PRIMARY KEY, v vector(3))",
        *(f"INSERT INTO vectors VALUES ({i}, VEC_FromText('{v}'))" for i, v in enumerate(vectors)),
        f"INSERT INTO vectors VALUES ({len(vectors)}, NULL)",
    )
    rows = server.rows("SELECT VEC_ToText(v), HEX(v) FROM vectors ORDER BY id")
    with dray.connect(server.uri()) as connection:
        for _ in range(2):
            table = connection.query("SELECT v, VEC_ToText(v) t FROM vectors ORDER BY id").arrow()
            assert table.schema.field("v").type == pa.binary()
            values = table.column("v").to_pylist()
            assert values == [None if data is None else bytes.fromhex(data) for _, data in rows]
            assert table.column("t").to_pylist() == [text for text, _ in rows]
    for value, vector, (text, _) in zip(values, vectors, rows, strict=False):
        floats = list(struct.unpack("<3f", value))
        assert floats == [single(number) for number in json.loads(vector)]
        assert floats == [single(number) for number in json.loads(text)]


def test_generated_and_invisible_columns(mysql: MariaServer) -> None:
    """They are read as others are, if they are asked for."""
    if mysql.version == "mysql-5.6":
        return
    has_invisible = mysql.is_mariadb or mysql.version == "mysql-8.0.33"
    count = 20_000
    mysql.run(
        "DROP TABLE IF EXISTS made",
        "CREATE TABLE made (id int PRIMARY KEY, price decimal(8,2), "
        "twice decimal(9,2) GENERATED ALWAYS AS (price * 2) VIRTUAL, name varchar(20), "
        "upper_name varchar(20) GENERATED ALWAYS AS (upper(name)) STORED, "
        f"hidden int DEFAULT 7 {'INVISIBLE' if has_invisible else ''})",
        "INSERT INTO made (id, price, name) "
        f"SELECT seq, seq / 4, concat('ü', seq) FROM ({sequence(count)}) s",
        "ANALYZE TABLE made",
    )
    names = ["id", "price", "twice", "name", "upper_name"]
    all_names = names if has_invisible else [*names, "hidden"]
    with dray.connect(mysql.uri()) as connection:
        for sql, columns in [
            ("SELECT * FROM made", all_names),
            (f"SELECT {', '.join([*names, 'hidden'])} FROM made", [*names, "hidden"]),
        ]:
            # The second time prepared, and then over several connections.
            for partitions in (1, 1, 3):
                table = connection.query(sql, partitions=partitions).arrow().sort_by("id")
                assert table.column_names == columns
                assert table.column("id").to_pylist() == list(range(count))
                row = table.slice(count - 1).to_pylist()[0]
                assert row["twice"] == row["price"] * 2 == Decimal("9999.50")
                assert row["upper_name"] == f"Ü{count - 1}"
                assert set(table.column(columns[-1]).to_pylist()) == {7} or "hidden" not in columns


def test_null_alone(connection: dray.Connection) -> None:
    table = connection.query("SELECT NULL AS v").arrow()
    assert table.schema.field("v").type == pa.null() and table.num_rows == 1


def test_expressions(mysql: MariaServer, connection: dray.Connection) -> None:
    sql = (
        "SELECT 1 + 1 AS i, 1.50 * 2 AS d, 1e0 / 3 AS f, concat('a', 'ü') AS s, "
        "CAST('2024-02-29' AS date) AS day, 18446744073709551615 AS u, x'00ff' AS b, "
        "true AS t, sum(1) AS total, avg(1) AS mean, NOW(6) IS NULL AS no"
    )
    (texts,) = mysql.rows(sql)
    table = connection.query(sql).arrow()
    assert table.schema.field("u").type == pa.uint64()
    assert pa.types.is_decimal(table.schema.field("d").type)
    row = dict(zip(table.schema.names, texts, strict=True))
    got = table.to_pylist()[0]
    assert got["i"] == 2 and got["u"] == 2**64 - 1 and got["b"] == b"\x00\xff"
    assert got["d"] == Decimal(row["d"]) and got["mean"] == Decimal(row["mean"])
    assert got["f"] == float(row["f"]) and got["day"] == dt.date(2024, 2, 29)
    assert got["s"] == "aü"


def test_text_of_another_character_set(mysql: MariaServer) -> None:
    """The session's text is UTF-8, and a statement that changes it is not read wrongly."""
    with dray.connect(mysql.uri()) as other:
        list(other.query("SET NAMES latin1"))
        with pytest.raises(dray.Error, match="utf8mb4"):
            other.query("SELECT 'Grüße'").arrow()
        list(other.query("SET NAMES utf8mb4"))
        assert list(other.query("SELECT 'Grüße'")) == [("Grüße",)]


def test_parameters_in_another_character_set(mysql: MariaServer) -> None:
    with dray.connect(mysql.uri()) as other:
        list(other.query("SET NAMES latin1"))
        with pytest.raises(dray.UsageError, match="character_set_client"):
            other.query("SELECT hex(?)", ["ü"])
        list(other.query("SET NAMES utf8mb4"))
        assert list(other.query("SELECT hex(?)", ["ü"])) == [("C3BC",)]


def test_time_zones(mysql: MariaServer) -> None:
    """TIMESTAMP is read and written in UTC, or it is an error."""
    mysql.run(
        "DROP TABLE IF EXISTS moments",
        "DROP PROCEDURE IF EXISTS moved",
        "DROP PROCEDURE IF EXISTS moved_and_failed",
        "CREATE TABLE moments (v timestamp NULL)",
        "INSERT INTO moments VALUES ('2024-02-29 12:00:00')",
        "CREATE PROCEDURE moved() BEGIN SET time_zone = '+05:00'; SELECT v FROM moments; END",
        "CREATE PROCEDURE moved_and_failed() BEGIN SET time_zone = '+05:00'; "
        "SELECT v FROM nowhere; END",
    )
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=UTC)
    sql = "SELECT v FROM moments"
    with dray.connect(mysql.uri()) as other:
        assert list(other.query(sql)) == [(noon,)]
        assert list(other.query(sql + " WHERE v = ?", [noon])) == [(noon,)]
        statements = ["CALL moved()", sql]
        if mysql.is_mariadb:
            for_one = "zone = '+05:00' FOR " + sql
            statements += [
                f"SET  STATEMENT time_{for_one}",
                "EXECUTE IMMEDIATE concat('SET ', 'STATEMENT time_', "
                f"'{for_one.replace(chr(39), chr(39) * 2)}')",
            ]
        for moved in statements:
            with pytest.raises(dray.UsageError, match="time_zone"):
                other.query(moved).arrow()
        with pytest.raises(dray.UsageError, match="time_zone"):
            other.query("SELECT ?", [noon])
        list(other.query("SET time_zone = '+00:00'"))
        assert list(other.query(sql)) == [(noon,)]
        with pytest.raises(dray.QueryError, match="nowhere"):
            other.query("CALL moved_and_failed()").arrow()
        with pytest.raises(dray.UsageError, match="time_zone"):
            other.query(sql).arrow()
    # Servers before MySQL 5.7 and MariaDB 10.2 report no changes.
    if mysql.version == "mysql-5.6":
        return
    mysql.run(
        "DROP PROCEDURE IF EXISTS untracked",
        "CREATE PROCEDURE untracked() SET SESSION session_track_system_variables = 'autocommit'",
    )
    for untracked in [
        ["SET session_track_system_variables = 'autocommit'"],
        ["SET @@session.session_track_system_variables = ''"],
        ["CALL untracked()"],
        ["PREPARE p FROM \"SET session_track_system_variables = ''\"", "EXECUTE p"],
    ]:
        with dray.connect(mysql.uri()) as other:
            for statement in untracked:
                list(other.query(statement))
            assert list(other.query(sql)) == [(noon,)]
            list(other.query("SET time_zone = '+05:00'"))
            with pytest.raises(dray.UsageError, match="time_zone"):
                other.query(sql).arrow()
            list(other.query("SET time_zone = '+00:00'"))
            assert list(other.query(sql)) == [(noon,)]
            with pytest.raises(dray.UsageError, match="time_zone"):
                other.query("CALL moved()").arrow()


def test_one_value_of_each_label(mysql: MariaServer, connection: dray.Connection) -> None:
    """Labels of many batches are one dictionary in a table."""
    mysql.run(
        "DROP TABLE IF EXISTS labels",
        "CREATE TABLE labels (id int PRIMARY KEY, v enum('a','b','c'))",
        "INSERT INTO labels SELECT seq, elt(1 + seq % 3, 'a', 'b', 'c') "
        f"FROM ({sequence(10_000)}) s",
    )
    sql = "SELECT v FROM labels ORDER BY id"
    table = connection.query(sql, batch_rows=1000).arrow()
    assert table.column("v").to_pylist() == [("abc")[i % 3] for i in range(10_000)]
    batches = list(connection.query(sql, batch_rows=1000).batches())
    assert len(batches) > 1
    assert pa.Table.from_batches(batches).column("v").to_pylist() == table.column("v").to_pylist()
