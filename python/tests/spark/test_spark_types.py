"""Each type of a database in Spark: its type, and its values as Spark writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from reading import failure, load
from relay_server import relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: PostgreSQL's value, the type of its column in Spark, and the value as Spark's cast to a string
#: has it, in the time zone America/New_York.
POSTGRES = {
    "boolean": ("true", "boolean", "true"),
    "smallint": ("(-32768)::smallint", "smallint", "-32768"),
    "integer": ("2147483647", "int", "2147483647"),
    "bigint": ("(-9223372036854775808)::bigint", "bigint", "-9223372036854775808"),
    "oid": ("4294967295::oid", "bigint", "4294967295"),
    "real": ("1.5::real", "float", "1.5"),
    "nan": ("'NaN'::float8", "double", "NaN"),
    "double": ("-0.1::float8", "double", "-0.1"),
    "decimal": ("1.10::numeric(9,2)", "decimal(9,2)", "1.10"),
    "decimal_38": (
        "'-99999999999999999999999999999999999999'::numeric(38,0)",
        "decimal(38,0)",
        "-99999999999999999999999999999999999999",
    ),
    "decimal_5": ("0.00012::numeric(3,5)", "decimal(5,5)", "0.00012"),
    "decimal_rounded": ("12300::numeric(5,-2)", "decimal(7,0)", "12300"),
    "numeric": ("1.23456789012345678901234567890123456789012345::numeric", "string", None),
    "text": ("'ä€😀'", "string", "ä€😀"),
    "char": ("'a'::char(3)", "string", "a  "),
    "json": ("'{\"a\": 1}'::json", "string", '{"a": 1}'),
    "bytea": ("'\\x610062'::bytea", "binary", "a\x00b"),
    "date": ("'0001-01-01'::date", "date", "0001-01-01"),
    "timestamp": (
        "'2024-02-29 23:59:59.999999'::timestamp",
        "timestamp_ntz",
        "2024-02-29 23:59:59.999999",
    ),
    "timestamptz": (
        "'2024-07-01 12:00:00.000001+00'::timestamptz",
        "timestamp",
        "2024-07-01 08:00:00.000001",
    ),
    "time": ("'23:59:59.999999'::time", "time(6)", "23:59:59.999999"),
    "interval": (
        "'1 year 2 months -3 days 04:05:06.000007'::interval",
        "interval",
        "1 years 2 months -3 days 4 hours 5 minutes 6.000007 seconds",
    ),
    "uuid": (
        "'0123ABCD-89ab-cdef-0123-456789abcdef'::uuid",
        "string",
        "0123abcd-89ab-cdef-0123-456789abcdef",
    ),
    "integers": ("ARRAY[1, NULL, 3]", "array<int>", "[1, null, 3]"),
    "uuids": (
        "ARRAY['0123abcd-89ab-cdef-0123-456789abcdef'::uuid]",
        "array<string>",
        "[0123abcd-89ab-cdef-0123-456789abcdef]",
    ),
    "intervals": ("ARRAY['-1 day'::interval]", "array<interval>", "[-1 days]"),
    "decimals": ("ARRAY[1.5::numeric(4,1)]::numeric(4,1)[]", "array<decimal(4,1)>", "[1.5]"),
    "texts": ("ARRAY['a', '']", "array<string>", "[a, ]"),
    "struct": (
        "ROW(1, 'one', ARRAY[ROW(2, NULL)::inner_type])::outer_type",
        "struct<i:int,t:string,inner:array<struct<a:int,b:timestamp_ntz>>>",
        "{1, one, [{2, null}]}",
    ),
    "range": (
        "int4range(1, 5)",
        "struct<lower:int,upper:int,lower_inclusive:boolean,upper_inclusive:boolean,empty:boolean>",
        "{1, 5, true, false, false}",
    ),
    "inet": ("'10.0.0.1/8'::inet", "string", "10.0.0.1/8"),
    "bits": ("B'0101'", "string", "0101"),
}


@pytest.fixture(scope="module")
def typed(postgres: PostgresServer) -> PostgresServer:
    postgres.run(
        "DROP TABLE IF EXISTS typed",
        "DROP TYPE IF EXISTS outer_type",
        "DROP TYPE IF EXISTS inner_type",
        "CREATE TYPE inner_type AS (a integer, b timestamp)",
        'CREATE TYPE outer_type AS (i integer, t text, "inner" inner_type[])',
    )
    values = ", ".join(f'{value} AS "{name}"' for name, (value, _, _) in POSTGRES.items())
    nulls = ", ".join(f'NULL AS "{name}"' for name in POSTGRES)
    postgres.run(
        f"CREATE TABLE typed AS SELECT 1 AS id, {values}",
        f"INSERT INTO typed SELECT 2, {nulls}",
    )
    return postgres


def test_postgres(spark: SparkSession, typed: PostgresServer) -> None:
    frame = load(spark, typed.uri(), dbtable="typed")
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert types == {"id": "int"} | {name: kind for name, (_, kind, _) in POSTGRES.items()}
    texts = [f"CAST(`{name}` AS STRING) AS `{name}`" for name in POSTGRES]
    row, null = frame.orderBy("id").selectExpr(*texts).collect()
    expected = {name: text for name, (_, _, text) in POSTGRES.items() if text is not None}
    assert {name: row[name] for name in expected} == expected
    assert row["numeric"].startswith("1.2345678901234567890")
    assert set(null) == {None}


def test_fields_of_structs(spark: SparkSession, typed: PostgresServer) -> None:
    frame = load(spark, typed.uri(), dbtable="typed").where("id = 1")
    for field, text in [
        ("`struct`.i", "1"),
        ("`struct`.t", "one"),
        ("`struct`.inner.a", "[2]"),
        ("`struct`.inner[0].b", None),
        ("`range`.upper", "5"),
    ]:
        (row,) = frame.selectExpr(f"CAST({field} AS STRING)").collect()
        assert row[0] == text, field
    # Beside others, in conditions, and for aggregates.
    first = frame.where("`struct`.i = 1")
    (row,) = first.selectExpr("`struct`.t", "`range`.lower", "text").collect()
    assert tuple(row) == ("one", 1, "ä€😀")
    assert frame.selectExpr("max(`struct`.i)").collect()[0][0] == 1


def test_each_column_alone(spark: SparkSession, typed: PostgresServer) -> None:
    """Spark reads few columns of a table by other code than many."""
    frame = load(spark, typed.uri(), dbtable="typed")
    for name, (_, kind, text) in POSTGRES.items():
        if text is not None:
            where = frame.where("id = 1").selectExpr(f"CAST(`{name}` AS STRING)")
            assert where.collect()[0][0] == text, name
            assert frame.where(f"`{name}` IS NULL").count() == 1, name


def test_nullable_columns_of_all_rows(spark: SparkSession, postgres: PostgresServer) -> None:
    """Booleans are bits, and NULLs come at any place of a batch."""
    query = (
        "SELECT i AS id, nullif(i % 2 = 0, i % 7 = 0) AS even, nullif('t' || i, 't' || i / 5 * 5) "
        "AS t, CASE WHEN i % 3 > 0 THEN ARRAY[i, NULL] END AS list FROM generate_series(1, 9999) i"
    )
    frame = load(spark, postgres.uri(), query=query, batchRows=100)
    spark_sql = (
        "SELECT id, nullif(id % 2 = 0, id % 7 = 0) AS even, nullif('t' || id, 't' || int(id / 5) * "
        "5) AS t, CASE WHEN id % 3 > 0 THEN array(int(id), NULL) END AS list FROM range(1, 10000)"
    )
    assert (
        frame.selectExpr("bigint(id)", "even", "t", "list")
        .exceptAll(spark.sql(spark_sql))
        .collect()
        == []
    )
    assert frame.count() == 9999


def test_structs_of_several_batches(spark: SparkSession, typed: PostgresServer) -> None:
    query = (
        "SELECT ROW(i, 'x' || i, NULL)::outer_type AS s, "
        "ARRAY[ROW(i, NULL)::inner_type] AS list FROM generate_series(1, 9999) i"
    )
    frame = load(spark, typed.uri(), query=query, batchRows=100)
    sums = "sum(s.i)", "sum(list[0].a)", "count_if(s.t = 'x' || s.i)", "count(s.inner)"
    (row,) = frame.selectExpr(*sums).collect()
    assert tuple(row) == (49_995_000, 49_995_000, 9999, 0)
    assert sum(row.s.i for row in frame.collect()) == 49_995_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1::numeric(50,2)", "column c has decimals of 50 digits"),
        ("'infinity'::date", "nonfinite"),
    ],
)
def test_what_spark_does_not_hold(
    spark: SparkSession, postgres: PostgresServer, value: str, expected: str
) -> None:
    query = f"SELECT {value} AS c"
    assert expected in failure(lambda: load(spark, postgres.uri(), query=query).collect())


def test_options_of_types(spark: SparkSession, postgres: PostgresServer) -> None:
    query = "SELECT 1.5::numeric AS n, '-infinity'::date AS d"
    (row,) = (
        load(spark, postgres.uri(), query=query, numeric="decimal(10,3)", nonfinite="null")
        .selectExpr("CAST(n AS STRING)", "d")
        .collect()
    )
    assert tuple(row) == ("1.500", None)


#: The same for MariaDB.
MARIA = {
    "tinyint unsigned": ("255", "smallint", "255"),
    "smallint unsigned": ("65535", "int", "65535"),
    "int unsigned": ("4294967295", "bigint", "4294967295"),
    "bigint unsigned": ("18446744073709551615", "decimal(20,0)", "18446744073709551615"),
    "decimal(38,10)": ("-1.5", "decimal(38,10)", "-1.5000000000"),
    "datetime(6)": ("'2024-02-29 23:59:59.999999'", "timestamp_ntz", "2024-02-29 23:59:59.999999"),
    "timestamp(6)": ("'2024-07-01 12:00:00'", "timestamp", None),
    "time(6)": ("'-838:59:59.000001'", "interval day to second", None),
    "varbinary(9)": ("'abc'", "binary", "abc"),
    "longtext": ("'ä€😀'", "string", "ä€😀"),
    "double": ("0.1", "double", "0.1"),
    "bit(9)": ("b'101010101'", None, None),
    "year": ("2024", None, "2024"),
    "set('a','b')": ("'a,b'", "string", "a,b"),
}


def test_mariadb(spark: SparkSession, maria: MariaServer) -> None:
    columns = ", ".join(f"`{kind}` {kind} NULL" for kind in MARIA)
    values = ", ".join(value for value, _, _ in MARIA.values())
    nulls = ", ".join("NULL" for _ in MARIA)
    maria.run(
        f"CREATE OR REPLACE TABLE typed (id int, {columns})",
        f"INSERT INTO typed VALUES (1, {values}), (2, {nulls})",
    )
    frame = load(spark, maria.uri(), dbtable="typed")
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    known = {kind: found for kind, (_, found, _) in MARIA.items() if found is not None}
    assert {kind: types[kind] for kind in known} == known
    texts = [f"CAST(`{kind}` AS STRING) AS `{kind}`" for kind in MARIA]
    row, null = frame.orderBy("id").selectExpr(*texts).collect()
    expected = {kind: text for kind, (_, _, text) in MARIA.items() if text is not None}
    assert {kind: row[kind] for kind in expected} == expected
    assert set(null) == {None}


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(
        {
            "u8": pa.array([255, None], pa.uint8()),
            "u64": pa.array([2**64 - 1, None], pa.uint64()),
            "half": pa.array([0.5, None], pa.float32()),
            "ms": pa.array([1, None], pa.timestamp("ms")),
            "ns": pa.array([1_000, None], pa.timestamp("ns", "UTC")),
            "word": pa.array(["a", None]).dictionary_encode(),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "map": pa.array([[("k", 1), ("l", None)], None], pa.map_(pa.string(), pa.uint16())),
            "large": pa.array([[b"x", None], None], pa.large_list(pa.large_binary())),
            "nothing": pa.nulls(2),
            "deep": pa.array([[{"a": [1]}, None], None], pa.list_(
                pa.struct([("a", pa.list_(pa.uint32()))]))),
        }
    )  # fmt: skip
    pyarrow.parquet.write_table(table, tmp_path / "every.parquet")
    late = pa.table({"ns": pa.array([1], pa.timestamp("ns"))})
    pyarrow.parquet.write_table(late, tmp_path / "late.parquet")
    with relay(str(tmp_path / "every.parquet"), str(tmp_path / "late.parquet")) as server:
        every = load(spark, server.uri(), dbtable="every")
        assert [field.dataType.simpleString() for field in every.schema.fields] == [
            "smallint", "decimal(20,0)", "float", "timestamp_ntz", "timestamp", "string", "binary",
            "map<string,int>", "array<binary>", "void", "array<struct<a:array<bigint>>>",
        ]  # fmt: skip
        texts = [f"CAST(`{name}` AS STRING)" for name in every.columns if name != "nothing"]
        row, null = every.selectExpr(*texts).collect()
        assert tuple(row) == (
            "255", "18446744073709551615", "0.5", "1970-01-01 00:00:00.001",
            "1969-12-31 19:00:00.000001", "a", "ab", "{k -> 1, l -> null}", "[x, null]",
            "[{[1]}, null]",
        )  # fmt: skip
        assert set(null) == {None}
        said = failure(lambda: load(spark, server.uri(), dbtable="late").collect())
        assert "column ns has a value of 1 ns" in said
