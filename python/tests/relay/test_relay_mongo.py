"""MongoDB as a source: what its documents become. The oracle is pymongo."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import time
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bson import (
    Binary,
    Code,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
    json_util,
)
from mongo_server import MongoServer
from relay_server import Relay, one, relay, sources
from server import binary

import dray

UTC = datetime.timezone.utc
DATE = datetime.datetime(2024, 1, 31, 12, 30, 0, 123000, UTC)
ID = ObjectId("0123456789abcdef01234567")
UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
TYPE = b"dray:mongodb:type"
#: Reads Extended JSON as pymongo does, with the types of all numbers.
CANONICAL = json_util.JSONOptions(
    json_mode=json_util.JSONMode.CANONICAL,
    tz_aware=True,
    uuid_representation=4,
)


@pytest.fixture(scope="session")
def mongo() -> Iterator[MongoServer]:
    server = MongoServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def source(mongo: MongoServer) -> Iterator[Relay]:
    with relay(*sources(shop=mongo.uri())) as server:
        yield server


@pytest.fixture
def shop(source: Relay) -> Iterator[dray.Connection]:
    with dray.connect(source.uri("shop")) as connection:
        yield connection


def find(connection: dray.Connection, collection: str, **members: Any) -> pa.Table:
    return connection.query(json.dumps({"find": collection, **members})).arrow()


def refused(connection: dray.Connection, statement: Any, match: str) -> dray.QueryError:
    text = statement if isinstance(statement, str) else json.dumps(statement)
    with pytest.raises(dray.QueryError, match=match) as caught:
        connection.query(text).arrow()
    # The session goes on.
    assert connection.query('{"listCollections": 1}').arrow().num_rows >= 0
    return caught.value


def loads(text: str) -> Any:
    return json_util.loads(text, json_options=CANONICAL)


#: Values, the type of their column, and what the column has.
COLUMNS: dict[str, tuple[list[Any], pa.DataType, list[Any]]] = {
    "boolean": ([True, False], pa.bool_(), [True, False]),
    "int32": ([1, -(2**31)], pa.int64(), [1, -(2**31)]),
    "integers": ([1, Int64(2**63 - 1)], pa.int64(), [1, 2**63 - 1]),
    "double": ([1.5, -0.0, 1e300], pa.float64(), [1.5, -0.0, 1e300]),
    "numbers": ([1, 2.5, Int64(2**53)], pa.float64(), [1.0, 2.5, 2.0**53]),
    "decimal": (
        [Decimal128("1.50"), Decimal128("-20"), 7],
        pa.decimal128(38, 2),
        [Decimal("1.50"), Decimal("-20.00"), Decimal("7.00")],
    ),
    "string": (["", "ü\0'\""], pa.string(), ["", "ü\0'\""]),
    "object_id": ([ID], pa.string(), [str(ID)]),
    "date": ([DATE, DATE.replace(year=1)], pa.timestamp("ms", "UTC"), [DATE, DATE.replace(year=1)]),
    "binary": ([Binary(b"\0\xff", 0), Binary(b"", 0)], pa.binary(), [b"\0\xff", b""]),
    "list": ([[1, None], []], pa.list_(pa.int64()), [[1, None], []]),
    "struct": (
        [{"x": 1, "y": "a"}, {"y": None, "x": 2}],
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        [{"x": 1, "y": "a"}, {"x": 2, "y": None}],
    ),
    "structs": (
        [[{"x": DATE}], [{"x": DATE}, {"x": DATE}]],
        pa.list_(pa.struct([("x", pa.timestamp("ms", "UTC"))])),
        [[{"x": DATE}], [{"x": DATE}, {"x": DATE}]],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(mongo: MongoServer, shop: dray.Connection, name: str) -> None:
    values, expected, contents = COLUMNS[name]
    documents = mongo.fill("columns", [{"v": value} for value in [*values, None]] + [{}])
    table = find(shop, "columns", projection={"_id": 0})
    assert table.column_names == ["v", "_rest"]
    found = table.schema.field("v").type
    assert found.equals(expected), found
    assert table["v"].to_pylist() == [*contents, None, None]
    assert table["_rest"].null_count == len(documents)
    if name == "double":
        assert math.copysign(1, table["v"][1].as_py()) == -1


def test_what_metadata_says(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill("named", [{"_id": ID, "u": UUID, "b": Binary(b"\1", 0), "j": {}}])
    schema = find(shop, "named").schema
    extension = b"ARROW:extension:name"
    assert schema.field("_id").metadata == {TYPE: b"objectId"}
    assert schema.field("b").metadata == {TYPE: b"binData(0)"}
    storage = [schema.field(name) for name in ("u", "j", "_rest")]
    named = [
        getattr(field.type, "extension_name", None) or (field.metadata or {})[extension].decode()
        for field in storage
    ]
    assert named == ["arrow.uuid", "arrow.json", "arrow.json"]

    assert find(shop, "named")["u"].to_pylist() in ([UUID.bytes], [UUID])


#: What only JSON holds, as relaxed Extended JSON.
JSON = {
    "regex": (Regex('^a"', "im"), '{"$regularExpression":{"pattern":"^a\\"","options":"im"}}'),
    "timestamp": (Timestamp(7, 9), '{"$timestamp":{"t":7,"i":9}}'),
    "code": (Code("f()"), '{"$code":"f()"}'),
    "min": (MinKey(), '{"$minKey":1}'),
    "max": (MaxKey(), '{"$maxKey":1}'),
    "nan": (Decimal128("NaN"), '{"$numberDecimal":"NaN"}'),
    "huge": (Decimal128("1E+6000"), '{"$numberDecimal":"1E+6000"}'),
    "empty": ({}, "{}"),
    "mixed": ([1, "a", DATE], '[1,"a",{"$date":"2024-01-31T12:30:00.123Z"}]'),
    "nested": ([[], [{"b": None}, {"c": Int64(1)}]], '[[],[{"b":null},{"c":1}]]'),
}


@pytest.mark.parametrize("name", JSON)
def test_json(mongo: MongoServer, shop: dray.Connection, name: str) -> None:
    value, expected = JSON[name]
    mongo.fill("json", [{"v": value}])
    table = find(shop, "json", projection={"_id": 0})
    assert table["v"].to_pylist() == [expected]
    # Where there is no column, the rest has it, as pymongo writes it.
    rest = find(shop, "json", schema={"w": "json"}, projection={"_id": 0})["_rest"].to_pylist()
    oracle = mongo.database["json"].find_one({}, {"_id": 0})
    assert json.loads(rest[0]) == json.loads(json_util.dumps(oracle, json_options=CANONICAL))


def test_documents_that_all_differ(mongo: MongoServer, shop: dray.Connection) -> None:
    values = [1, "a", 2.5, None, [1], {"x": 1}, DATE, ID, True, Decimal128("1"), Binary(b"x", 0)]
    documents = mongo.fill(
        "differ",
        [
            {"_id": i, f"f{i % 50}": values[i % len(values)], "common": values[i % len(values)]}
            for i in range(2000)
        ],
    )
    table = find(shop, "differ")
    names = ["_id", *(["f0", "common"] + [f"f{i}" for i in range(1, 50)]), "_rest"]
    assert table.column_names == names
    # Nothing is lost: each document is its columns and its rest.
    for document, row in zip(documents, table.to_pylist(), strict=True):
        rest = loads(row["_rest"]) if row["_rest"] else {}
        for name, value in document.items():
            if name in rest:
                assert row[name] is None and same(rest[name], value), (name, row)
            elif value is None:
                assert row[name] is None
            else:
                assert row[name] is not None, (name, row)
        assert all(row[name] is None for name in names[:-1] if name not in document)
    mixed = [loads(text) for text in table["common"].to_pylist() if text is not None]
    assert len(mixed) == sum(document["common"] is not None for document in documents)


def same(found: Any, value: Any) -> bool:
    """Whether Extended JSON has a document's value."""
    if isinstance(value, Decimal128):
        return str(found) == str(value)
    return bool(found == value)


def test_misfits_after_the_sample(mongo: MongoServer, shop: dray.Connection) -> None:
    documents: list[dict[str, Any]] = [{"_id": i, "n": i, "s": "x"} for i in range(1500)]
    documents[1200] = {"_id": 1200, "n": "many", "s": "x"}
    documents[1300] = {"_id": 1300, "n": 1.5, "s": {"a": Int64(1)}, "new": [DATE]}
    documents[1400] = {"_id": 1400, "n": 7.0, "s": None, "gone": None}
    mongo.fill("late", documents)
    table = find(shop, "late")
    assert table.schema.field("n").type == pa.int64() and table.num_rows == 1500
    rest = {i: text for i, text in enumerate(table["_rest"].to_pylist()) if text is not None}
    assert {i: loads(text) for i, text in rest.items()} == {
        1200: {"n": "many"},
        1300: {"n": 1.5, "s": {"a": 1}, "new": [DATE]},
        1400: {"gone": None},
    }
    assert rest[1300] == (
        '{"n":{"$numberDouble":"1.5"},"s":{"a":{"$numberLong":"1"}},'
        '"new":[{"$date":{"$numberLong":"1706704200123"}}]}'
    )
    numbers = table["n"].to_pylist()
    assert [numbers[i] for i in (1199, 1200, 1300, 1400)] == [1199, None, None, 7]
    # A larger sample has seen it.
    wide = find(shop, "late", sample=1500)
    assert wide.column_names == ["_id", "n", "s", "new", "gone", "_rest"]
    assert wide["n"].to_pylist()[1200] == '"many"' and wide["_rest"].null_count == 1500
    # An error if the user wants that.
    error = refused(shop, {"find": "late", "rest": False}, 'field "n" does not fit the type of')
    assert "the document with the _id 1200" in str(error) and "_rest" in str(error.hint)
    schema = {"_id": "int32"}
    refused(shop, {"find": "late", "rest": False, "schema": schema}, 'field "n" has no column: 0')


def test_a_schema(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill(
        "orders",
        [
            {"_id": ID, "total": Decimal128("12.5"), "when": DATE, "items": [{"a": 1}], "n": 5.0},
            {"_id": ObjectId(), "total": 3, "when": None, "items": "none", "n": 5.5},
        ],
    )
    schema = {
        "_id": "string",
        "total": "decimal(18,2)",
        "when": "timestamp",
        "items": "json",
        "n": "int32",
        "missing": ["float64"],
        "nested": {"x": "binary"},
    }
    table = find(shop, "orders", schema=schema)
    assert table.column_names == [*schema, "_rest"]
    assert table.schema.field("total").type == pa.decimal128(18, 2)
    assert table.schema.field("n").type == pa.int32()
    assert table.schema.field("missing").type.equals(pa.list_(pa.float64()))
    first, second = table.to_pylist()
    assert (first["_id"], first["total"], first["when"]) == (str(ID), Decimal("12.50"), DATE)
    assert (first["items"], first["n"], first["_rest"]) == ('[{"a":1}]', 5, None)
    assert (second["total"], second["items"], second["n"]) == (Decimal("3.00"), '"none"', None)
    assert second["_rest"] == '{"n":{"$numberDouble":"5.5"}}'
    exact = find(
        shop, "orders", schema={"when": "timestamp"}, projection={"_id": 0, "when": 1}, rest=False
    )
    assert exact.to_pydict() == {"when": [DATE, None]}


def test_pushdown(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill("numbers", [{"_id": i, "a": i % 10, "b": f"{i:03}"} for i in range(500)])
    table = find(
        shop,
        "numbers",
        filter={"a": {"$in": [3, 4]}, "_id": {"$gte": {"$numberLong": "100"}}},
        projection={"b": 1, "a": 1},
        sort={"a": -1, "b": -1},
        skip=1,
        limit=3,
    )
    assert table.select(["a", "b"]).to_pylist() == [
        {"a": 4, "b": "484"},
        {"a": 4, "b": "474"},
        {"a": 4, "b": "464"},
    ]
    text = {
        "aggregate": "numbers",
        "pipeline": [
            {"$match": {"_id": {"$lt": 100}}},
            {"$group": {"_id": "$a", "sum": {"$sum": "$_id"}}},
            {"$sort": {"_id": 1}},
        ],
    }
    groups = shop.query(json.dumps(text)).arrow()
    assert groups["sum"].to_pylist() == [sum(range(a, 100, 10)) for a in range(10)]
    date = {"$date": "2024-01-31T12:30:00.123Z"}
    mongo.fill("dates", [{"d": DATE}, {"d": DATE.replace(year=2023)}])
    assert find(shop, "dates", filter={"d": date}).num_rows == 1
    # Doubles are read with all their digits.
    doubles = [2.3826322386300755e-33, 0.1 + 0.2, 1e23, 5e-324, 1.7976931348623157e308]
    mongo.fill("doubles", [{"_id": value} for value in doubles])
    for value in doubles:
        assert find(shop, "doubles", filter={"_id": value})["_id"].to_pylist() == [value]


def test_estimates_for_those_who_watch(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill("counted", ({"v": i} for i in range(2500)))

    def estimate(**members: Any) -> tuple[int | None, int]:
        statement = json.dumps({"find": "counted", **members})
        with shop.query(statement, progress=lambda progress: None) as result:
            assert not result.estimate.rows_exact
            return result.estimate.rows, result.arrow().num_rows

    assert estimate() == estimate(filter={}, sort={"v": -1}) == (2500, 2500)
    assert estimate(skip=500, limit=10, projection={"v": 1}) == (10, 10)
    assert estimate(schema={"v": "int32"}) == (2500, 2500)
    assert estimate(filter={"v": 7}) == (None, 1)
    # Nobody watches, so nobody asks.
    with shop.query('{"find": "counted"}') as result:
        assert result.estimate.rows is None


def test_results_without_documents(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill("few", [{"a": 1}])
    nothing = {"a": {"$lt": 0}}
    assert find(shop, "few", filter=nothing).column_names == ["_rest"]
    table = find(shop, "few", filter=nothing, schema={"a": "int64"})
    assert table.column_names == ["a", "_rest"] and table.num_rows == 0
    assert find(shop, "few", filter=nothing, rest=False).num_rows == 0
    mongo.database["few"].delete_many({})
    assert find(shop, "few").num_rows == 0
    error = refused(shop, {"find": "fwe"}, 'the database shop has no collection "fwe"')
    assert error.sqlstate == "42P01"
    refused(shop, {"find": "fwe", "schema": {"a": "int64"}}, "no collection")
    refused(shop, {"aggregate": "fwe", "pipeline": []}, "no collection")


def test_large_documents(mongo: MongoServer, shop: dray.Connection) -> None:
    """As large as a document can be, and several that a batch can't hold together."""
    large = "x" * ((16 << 20) - 200)
    mongo.fill("large", [{"_id": 1, "t": large}])
    assert find(shop, "large")["t"].to_pylist() == [large]
    for i in range(2, 6):
        mongo.database["large"].insert_one({"_id": i, "t": {"a" * i: large[:5_000_000]}})
    result = shop.query('{"find": "large"}', batch_rows=1)
    sizes = [batch.num_rows for batch in result.batches()]
    assert sum(sizes) == 5
    table = find(shop, "large", schema={"_id": "int64"})
    assert [len(text or "") > 5_000_000 for text in table["_rest"].to_pylist()] == [True] * 5
    # A row over the client's limit is an error.
    with pytest.raises(dray.Error, match="row_bytes_max"):
        shop.query(
            '{"find": "large"}',
            row_bytes_max=1 << 20,
            decoded_bytes_max=1 << 20,
            chunk_bytes_max=1 << 20,
        ).arrow()
    assert one(shop, '{"find": "large", "projection": {"t": 0}, "limit": 1, "rest": false}') == 1


def test_deep_nesting(mongo: MongoServer, shop: dray.Connection) -> None:
    def nested(levels: int) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for _ in range(levels):
            document = {"a": document}
        return document

    mongo.fill("deep", [{"_id": 1, "v": nested(150)}])
    text = find(shop, "deep", schema={"v": "json"}, projection={"_id": 0})["v"].to_pylist()[0]
    assert text == '{"a":' * 150 + "{}" + "}" * 150
    # With structs as far as they go.
    inferred = find(shop, "deep")
    assert inferred.num_rows == 1 and inferred["_rest"].null_count == 1
    mongo.fill("deep", [{"_id": 1, "v": nested(300)}])
    refused(shop, {"find": "deep", "schema": {"v": "json"}}, "nested deeper than 200 levels")


def test_statements_that_are_refused(shop: dray.Connection) -> None:
    for statement, match in [
        ("SELECT * FROM orders", "the statement is not JSON that MongoDB takes"),
        ("", "the statement is not JSON|statement"),
        ({"find": "orders", "where": 1}, 'has no member "where", only filter, projection'),
        ({"drop": "orders"}, "exactly one member of find, aggregate, listCollections"),
        ({"insert": "orders", "documents": [{}]}, "exactly one member"),
        ({"find": "orders", "filter": {"$nope": 1}}, "MongoDB's error 2, BadValue"),
        ({"aggregate": "orders", "pipeline": [{"$nope": 1}]}, "MongoDB's error"),
        ({"find": "orders", "schema": {"a": "number"}}, '"number" is no type, expected string'),
    ]:
        refused(shop, statement, match)
    with pytest.raises(dray.QueryError, match="has no parameters"):
        shop.query('{"find": "orders"}', [1]).arrow()


def test_reading_only(mongo: MongoServer, shop: dray.Connection) -> None:
    mongo.fill("orders", [{"_id": 1}])
    mongo.database["copy"].drop()
    for stage in ({"$out": "copy"}, {"$merge": {"into": "copy"}}):
        text = {"aggregate": "orders", "pipeline": [{"$match": {}}, stage]}
        error = refused(shop, text, "the source shop is read-only: a pipeline must not have")
        assert error.sqlstate == "25006" and "--source-writable" in str(error.hint)
    assert "copy" not in mongo.database.list_collection_names()
    with relay(*sources(shop=mongo.uri()), "--source-writable", "shop") as server:
        for stage in ({"$out": "copy"}, {"$merge": {"into": "copy"}}):
            # A plan runs nothing.
            text = {"aggregate": "orders", "pipeline": [stage]}
            for statement, code in [(text, 1), ({**text, "schema": {"n": "int64"}}, 0)]:
                command = [binary(), "explain", "--plan", server.uri("shop"), json.dumps(statement)]
                planned = subprocess.run(command, capture_output=True, text=True)
                assert planned.returncode == code, planned.stderr
                assert code == 0 or "can't be planned without running it" in planned.stderr
                assert "copy" not in mongo.database.list_collection_names()
        with dray.connect(server.uri("shop")) as writer:
            text = {"aggregate": "orders", "pipeline": [{"$out": "copy"}]}
            assert writer.query(json.dumps(text)).arrow().num_rows == 0
    assert mongo.database["copy"].count_documents({}) == 1


def test_plans_and_programs(
    mongo: MongoServer, source: Relay, shop: dray.Connection, tmp_path: Any
) -> None:
    mongo.fill("orders", [{"_id": i, "n": [i]} for i in range(3)])
    uri, text = source.uri("shop"), '{"find": "orders"}'

    def run(*arguments: str) -> str:
        ran = subprocess.run([binary(), *arguments], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert "n" in run("explain", uri, text, "--plan")
    assert "_rest" in run("explain", uri, text)
    assert json.loads(run("query", uri, text, "--format", "json").splitlines()[2])["n"] == [2]
    run("export", uri, text, "-o", str(tmp_path / "orders.parquet"))
    assert pq.read_table(tmp_path / "orders.parquet")["n"].to_pylist() == [[0], [1], [2]]
    listed = shop.query('{"listCollections": 1, "nameOnly": true}').arrow()
    assert "orders" in listed["name"].to_pylist()
    tables = subprocess.run([binary(), "tables", uri], capture_output=True, text=True)
    assert tables.returncode == 2 and '{"listCollections": 1}' in tables.stderr


def test_many_documents_in_flat_memory(mongo: MongoServer) -> None:
    count = 500_000
    start = time.monotonic()
    mongo.fill(
        "many", ({"_id": i, "a": i / 2, "s": f"text {i}", "t": [i, i + 1]} for i in range(count))
    )
    filled = time.monotonic() - start
    with relay(*sources(shop=mongo.uri())) as server:
        with dray.connect(f"{server.uri('shop')}?local_socket=false") as client:
            find(client, "many", limit=1)
            before = server.memory()
            rows = total = 0
            for batch in client.query('{"find": "many"}').batches():
                rows += batch.num_rows
                total += sum(batch.column("_id").to_pylist())
                assert batch.column("_rest").null_count == batch.num_rows
            assert (rows, total) == (count, count * (count - 1) // 2), filled
            assert server.memory() - before < 150 << 20
    mongo.database["many"].drop()
