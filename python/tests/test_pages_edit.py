"""Objects of page files that are built and changed from Python. A file holds the same bytes as one
that is written from an Arrow table of the same values.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy
import pandas
import pyarrow as pa
import pytest

import dray

ROUNDS = int(os.environ.get("DRAY_TEST_ROUNDS", "3"))
THREADS = 4
TURNS = 100

TAGS = pa.list_(pa.string())
ITEM = pa.struct([("part", pa.int32()), ("price", pa.decimal128(9, 2)), ("tags", TAGS)])
ORDER = pa.struct([("day", pa.date32()), ("note", pa.string()), ("items", pa.list_(ITEM))])
ADDRESS = pa.struct([("street", pa.string()), ("zip", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("address", ADDRESS),
        pa.field("phones", pa.list_(pa.int64())),
        pa.field("corners", pa.list_(pa.int16(), 2)),
        pa.field("orders", pa.list_(ORDER)),
        pa.field("rates", pa.map_(pa.string(), pa.float32())),
    ]
)


def customer(random: random.Random, n: int) -> dict[str, Any]:
    def text() -> str | None:
        long = "ä long string " * random.randint(1, 9)
        return random.choice([None, "", "short", "12 letters..", long])

    def maybe(value: Any) -> Any:
        return None if random.random() < 0.2 else value

    def item() -> dict[str, Any]:
        price = maybe(Decimal(random.randint(-(10**8), 10**8)).scaleb(-2))
        tags = maybe([text() for _ in range(random.randint(0, 3))])
        return {"part": maybe(random.randint(0, 9)), "price": price, "tags": tags}

    def order() -> dict[str, Any] | None:
        day = maybe(dt.date(1990, 1, 1) + dt.timedelta(random.randint(0, 9000)))
        items = maybe([item() for _ in range(random.randint(0, 4))])
        return maybe({"day": day, "note": text(), "items": items})

    return {
        "id": n,
        "name": text(),
        "score": random.random(),
        "address": maybe({"street": text(), "zip": maybe(random.randint(0, 99999))}),
        "phones": maybe([maybe(random.randint(0, 1 << 60)) for _ in range(random.randint(0, 5))]),
        "corners": maybe([maybe(random.randint(0, 99)) for _ in range(2)]),
        "orders": maybe([order() for _ in range(random.randint(0, 4))]),
        "rates": maybe([(f"key {i}", maybe(i / 4)) for i in range(random.randint(0, 3))]),
    }


def written(path: Path, rows: Sequence[Mapping[str, Any]], key: Any = ()) -> bytes:
    """The file that a table of these rows becomes."""
    dray.write_pages(path, pa.Table.from_pylist(rows, SCHEMA), key=key)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten customers, all on one page."""
    rng = random.Random(7)
    rows = [{**customer(rng, n), "name": f"Customer {n}"} for n in range(10)]
    order = {"day": dt.date(2024, 2, 29), "note": "x" * 20, "items": [{"part": 1}, {"part": 2}]}
    rows[3] |= {"orders": [order, None, order], "phones": [1, 2, 3], "corners": [5, 6]}
    rows[3] |= {"address": {"street": "a street of some length", "zip": 1}, "rates": [("a", 1.0)]}
    written(tmp_path / "x.pages", rows, key="id")
    return tmp_path / "x.pages"


VIENNA = ZoneInfo("Europe/Vienna")
NOON = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000)
# Types, with values that they hold.
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None]),
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int16(), [-(1 << 15), 300]),
    (pa.int32(), [-(1 << 31), 70_000]),
    (pa.int64(), [-(1 << 63), 1 << 40]),
    (pa.uint8(), [0, 255]),
    (pa.uint16(), [65_535]),
    (pa.uint32(), [(1 << 32) - 1]),
    (pa.uint64(), [(1 << 64) - 1]),
    (pa.float16(), [numpy.float16(0.5), numpy.float16("nan")]),
    (pa.float32(), [0.1, -1e30, float("inf"), 3]),
    (pa.float64(), [0.1, -1e300, float("-inf"), -0.0, 1 << 53]),
    (pa.decimal128(9, 2), [Decimal("1.5"), Decimal("-9999999.99"), Decimal("1E+3")]),
    (pa.decimal128(38, 0), [10**38 - 1, Decimal(-1)]),
    (pa.decimal128(5, -2), [Decimal("1E+6"), 1200]),
    (pa.decimal256(76, 10), [Decimal(-(10**75)).scaleb(-10), Decimal("0.0000000001")]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (pa.date64(), [dt.date(1969, 12, 31)]),
    (pa.time32("s"), [dt.time(23, 59, 59)]),
    (pa.time32("ms"), [dt.time(1, 2, 3, 4000)]),
    (pa.time64("us"), [dt.time(1, 2, 3, 456_789)]),
    (pa.time64("ns"), [dt.time(1, 2, 3, 456_789)]),
    (pa.timestamp("s"), [NOON.replace(microsecond=0), dt.datetime(1, 1, 1)]),
    (pa.timestamp("ms"), [NOON]),
    (pa.timestamp("us"), [NOON, dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
    (pa.timestamp("ns"), [pandas.Timestamp("2024-02-29T12:00:00.123456789")]),
    (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=dt.timezone.utc)]),
    (pa.timestamp("ms", "Europe/Vienna"), [NOON.replace(tzinfo=VIENNA)]),
    (pa.duration("s"), [dt.timedelta(days=-1, seconds=5)]),
    (pa.duration("us"), [dt.timedelta(days=400, microseconds=1)]),
    (pa.duration("ns"), [pandas.Timedelta(1_000_001)]),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([14, -3, 5]), pa.MonthDayNano([0, 0, -1])]),
    (pa.string(), ["", "ä", "12 letters..", "13 letters...", "long " * 100]),
    (pa.large_string(), ["large"]),
    (pa.binary(), [b"", b"\0" * 12, b"\xff" * 13, bytearray(b"some bytes")]),
    (pa.binary(5), [b"12345"]),
    (pa.list_(pa.float64()), [[], [0.5, None], [float(n) for n in range(100)]]),
    (pa.list_(pa.field("item", pa.int16(), nullable=False)), [[1, 2, 3], ()]),
    (pa.list_(pa.int32(), 3), [[1, None, 3]]),
    (pa.list_(pa.list_(pa.string())), [[["a", None], None, [], ["a string in a list " * 2]]]),
    (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], []]),
    (pa.map_(pa.int32(), pa.list_(pa.string())), [[(1, ["a", "b" * 30])]]),
    (ADDRESS, [{"street": "a street of some length", "zip": None}, {"zip": 5}, {}]),
    (pa.struct([("inner", pa.struct([("x", pa.bool_())]))]), [{"inner": None}, {"inner": {}}]),
    (pa.dictionary(pa.int8(), pa.string()), ["red", "a colour of many letters"]),
    (pa.list_(ORDER), [[{"items": [{"part": 1, "tags": ["x", "y" * 20]}, None]}, None]]),
    (pa.struct([("corners", pa.list_(pa.int16(), 2)), ("t", pa.string())]), [{"corners": [1, 2]}]),
]


@pytest.mark.parametrize(("data_type", "values"), TYPES, ids=[str(t) for t, _ in TYPES])
def test_every_type(data_type: pa.DataType, values: list[Any], tmp_path: Path):
    """Built from dicts, and changed from other values and back, the bytes are those of a table."""
    schema = pa.schema([("v", data_type), ("n", pa.int32()), ("all", pa.list_(data_type))])
    rows = [{"v": v, "n": n, "all": [None, *values]} for n, v in enumerate([*values, None])]
    dray.write_pages(tmp_path / "table.pages", pa.Table.from_pylist(rows, schema))
    expected = (tmp_path / "table.pages").read_bytes()
    with dray.PageWriter(tmp_path / "built.pages", schema) as pages:
        for row in rows:
            pages.append(row)
    assert pages.written == dray.PagesWritten(len(rows), 1, len(expected))
    assert (tmp_path / "built.pages").read_bytes() == expected
    changed = tmp_path / "changed.pages"
    others = [rows[-1 - n] for n in range(len(rows))]
    dray.write_pages(changed, pa.Table.from_pylist(others, schema))
    with dray.edit_pages(changed) as file:
        for n, row in enumerate(rows):
            file[n].v = row["v"]
            file[n]["n"] = row["n"]
            if row["v"] is not None:
                file[n]["all"][0] = row["v"]
                file[n]["all"][0] = None
            file[n]["all"] = []
            file[n]["all"].extend(row["all"])
    assert changed.read_bytes() == expected
    with dray.edit_pages(changed) as file:
        for object in file:
            object.v, object.all = None, None
        for n, row in enumerate(rows):
            file[n] = row
    assert changed.read_bytes() == expected
    # Objects are copied as they are, and plain values are assigned again.
    with dray.PageWriter(tmp_path / "built.pages", dray.open_pages(changed)) as pages:
        for object in dray.open_pages(changed):
            pages.append(object)
    assert (tmp_path / "built.pages").read_bytes() == expected


def test_extension_types(tmp_path: Path):
    schema = pa.schema([pa.field("id", pa.uuid()), pa.field("b", pa.binary(16))])
    value = uuid.UUID(int=77)
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        pages.append({"id": value, "b": value.bytes})
        with pytest.raises(dray.UsageError, match="b: of type uuid.UUID, expected a value"):
            pages.append({"id": value, "b": value})
        with pytest.raises(dray.UsageError, match="id: 15 bytes, expected 16"):
            pages.append({"id": value.bytes[1:]})
    [object] = dray.open_pages(tmp_path / "x.pages")
    assert object == {"id": value, "b": value.bytes}


REFUSED: list[tuple[str, Any, str]] = [
    ("id", None, "id: it may not be missing"),
    ("id", "5", "id: of type str, expected a value for Int64"),
    ("id", True, "id: of type bool"),
    ("id", 1.0, "id: of type float"),
    ("id", 1 << 63, "id: 9223372036854775808 is out of the range of Int64"),
    ("name", 5, "name: of type int, expected a value for Utf8"),
    ("name", b"5", "name: of type bytes"),
    ("name", "\ud800", "surrogate"),
    ("score", "1", "score: of type str"),
    ("score", Decimal(1), "score: of type decimal.Decimal"),
    ("score", (1 << 53) + 1, "more digits than a float"),
    ("score", 10**400, "out of the range of Float64"),
    ("address", 5, "address: of type int, expected a dict"),
    ("address", {"zip": "x"}, "address.zip: of type str"),
    ("address", {"zap": 1}, "address: there is no field 'zap', but street, zip"),
    ("phones", 5, "phones: of type int, expected a list"),
    ("phones", "123", "phones: of type str, expected a list"),
    ("phones", {"1": 2}, "phones: of type dict, expected a list"),
    ("phones", [1, None, "x"], r"phones\[2\]: of type str"),
    ("corners", [1], "corners: 1 items, expected 2"),
    ("corners", [1, 40_000], r"corners\[1\]: 40000 is out of the range of Int16"),
    (
        "orders",
        [{"items": [{}, {"price": Decimal("0.001")}]}],
        r"\[0\].items\[1\].price: 0.001 has",
    ),
    ("orders", [{"items": [{"price": 10**7}]}], "out of the range of Decimal128"),
    ("orders", [{"day": dt.datetime(2024, 1, 1)}], r"orders\[0\].day: of type datetime.datetime"),
    ("orders", [{"items": [{"price": Decimal("NaN")}]}], "NaN is not finite"),
    ("rates", [("a", 1.0, 2)], r"rates\[0\]: a tuple of 3"),
    ("rates", [(None, 1.0)], r"rates\[0\].key: it may not be missing"),
    ("rates", {"a": "b"}, r"rates\[0\].value: of type str"),
    ("rates", {"a": 1e39}, r"rates\[0\].value: 1e\+39 is out of the range of Float32"),
]


@pytest.mark.parametrize(("field", "value", "message"), REFUSED)
def test_wrong_values_change_nothing(field: str, value: Any, message: str, path: Path):
    before = path.read_bytes()
    row = dray.open_pages(path)[3].dict()
    with dray.edit_pages(path) as file:
        with pytest.raises(dray.UsageError, match=message):
            file[3][field] = value
        with pytest.raises(dray.UsageError, match=message):
            file[3] = {**row, field: value}
        assert file[3] == row
        if isinstance(value, list) and field != "corners":
            with pytest.raises(dray.UsageError):
                file[3][field].extend(value)
            assert file[3] == row
    assert path.read_bytes() == before
    with dray.PageWriter(path, SCHEMA, key="id") as pages:
        for row in (object.dict() for object in dray.open_pages(path)):
            with pytest.raises(dray.UsageError, match=message):
                pages.append({**row, field: value})
            pages.append(row)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data_type", "value", "message"),
    [
        (pa.time32("s"), dt.time(1, 2, 3, 4), "01:02:03.000004 is more precise than Time32"),
        (pa.time64("us"), dt.time(1, tzinfo=dt.timezone.utc), "a time with a zone"),
        (pa.timestamp("s"), NOON, "more precise"),
        (pa.timestamp("us"), NOON.replace(tzinfo=VIENNA), "a datetime with a zone"),
        (pa.timestamp("us", "UTC"), NOON, "a datetime without a zone"),
        (pa.timestamp("ns"), dt.datetime(9999, 1, 1), "out of the range"),
        (pa.timestamp("us"), dt.date(2024, 1, 1), "of type datetime.date"),
        (pa.duration("ms"), dt.timedelta(microseconds=1), "more precise"),
        (pa.month_day_nano_interval(), (1, 2), "months, days and nanoseconds"),
        (pa.month_day_nano_interval(), (1 << 31, 0, 0), "months, days and nanoseconds"),
        (pa.float16(), 70_000.0, "out of the range of Float16"),
        (pa.float32(), 1e39, "out of the range of Float32"),
        (pa.float32(), 1e-50, "out of the range of Float32"),
        (pa.float32(), (1 << 24) + 1, "16777217 has more digits than a float"),
        (pa.float16(), 2049, "2049 has more digits than a float"),
        (pa.float16(), 70_000, "out of the range of Float16"),
        (pa.float16(), 1e-9, "out of the range of Float16"),
        (pa.null(), 5, "expected a value for Null"),
        (pa.decimal128(3, 1), Decimal("100"), "out of the range"),
        (pa.decimal128(5, -2), Decimal("150"), "more digits"),
        (pa.decimal256(76, 0), Decimal("1E+999999"), "out of the range"),
        (pa.int64(), numpy.datetime64(5, "ns"), "of type numpy.datetime64, expected"),
        (pa.int64(), numpy.timedelta64(5, "ns"), "of type numpy.timedelta64, expected"),
        (pa.decimal128(9, 2), numpy.timedelta64(5, "Y"), "no fixed length"),
        (pa.duration("s"), numpy.timedelta64(5), "no fixed length"),
        (pa.duration("s"), numpy.timedelta64(5, "ms"), "more precise"),
        (pa.duration("ns"), numpy.datetime64(5, "ns"), "of type numpy.datetime64, expected"),
        (pa.timestamp("ns"), numpy.timedelta64(5, "ns"), "of type numpy.timedelta64, expected"),
        (pa.timestamp("us"), numpy.datetime64(5, "ns"), "more precise"),
        (pa.timestamp("ns"), numpy.datetime64("9999-01-01", "D"), "out of the range"),
        (pa.timestamp("us", "UTC"), numpy.datetime64(5, "us"), "a datetime without a zone"),
        (pa.date32(), numpy.datetime64(1, "h"), "more precise"),
        (pa.date32(), numpy.datetime64(1 << 40, "D"), "out of the range"),
        (pa.int64(), numpy.array([5]), "of type numpy.ndarray, expected a single value"),
        (pa.dictionary(pa.int8(), pa.string()), 5, "of type int"),
        (pa.bool_(), 1, "of type int"),
    ],
)
def test_values_beyond_their_type(data_type: pa.DataType, value: Any, message: str, tmp_path: Path):
    with dray.PageWriter(tmp_path / "x.pages", pa.schema([("v", data_type)])) as pages:
        with pytest.raises(dray.UsageError, match=f"^v: .*{message}"):
            pages.append({"v": value})
    assert pages.written is not None and pages.written.objects == 0


def test_scalars_of_other_libraries(tmp_path: Path):
    fields = {"i": pa.int16(), "f": pa.float32(), "b": pa.bool_(), "t": pa.timestamp("us")}
    schema = pa.schema({**fields, "l": pa.list_(pa.int64()), "s": pa.string()})
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        pages.append(
            {
                "i": numpy.int32(5),
                "f": numpy.float32(0.1),
                "b": numpy.bool_(True),
                "t": numpy.datetime64("2024-02-29T12:00", "us"),
                "l": numpy.arange(3),
                "s": numpy.str_("text"),
            }
        )
        pages.append({"i": pa.scalar(5), "f": pandas.NA, "t": pandas.NaT, "l": pa.array([1, None])})
        pages.append({name: pa.scalar(None) for name in fields})
        pages.append({name: numpy.ma.masked for name in [*fields, "s"]})
        pages.append(
            {
                "i": numpy.ma.array(5, mask=True),
                "f": numpy.ma.array(0.5),
                "t": numpy.ma.array("2024-02-29", "datetime64[D]", mask=True),
                "l": numpy.ma.array([1, 2], mask=[True, False]),
            }
        )
    rows = [object.dict() for object in dray.open_pages(tmp_path / "x.pages")]
    noon = dt.datetime(2024, 2, 29, 12)
    first = {"i": 5, "f": float(numpy.float32(0.1)), "b": True, "t": noon}
    assert rows[0] == {**first, "l": [0, 1, 2], "s": "text"}
    assert rows[1] == {"i": 5, "f": None, "b": None, "t": None, "l": [1, None], "s": None}
    assert set(rows[2].values()) == set(rows[3].values()) == {None}
    assert rows[4] == {"i": None, "f": 0.5, "b": None, "t": None, "l": [None, 2], "s": None}


@pytest.mark.parametrize("data_type", [pa.decimal256(76, 0), pa.float64(), pa.int64()])
def test_integers_that_python_does_not_show(data_type: pa.DataType, tmp_path: Path):
    with dray.PageWriter(tmp_path / "x.pages", pa.schema([("v", data_type)])) as pages:
        with pytest.raises(dray.UsageError, match="^v: a value of type int is out of the range"):
            pages.append({"v": 1 << 20_000})


def test_integers_are_not_what_they_show(tmp_path: Path):
    class Five(int):
        def __str__(self) -> str:
            return "six"

        __repr__ = __str__

        def bit_length(self) -> int:
            return 10_000

    with dray.PageWriter(tmp_path / "x.pages", pa.schema({"d": pa.decimal128(9, 2)})) as pages:
        pages.append({"d": Five(-5)})
    assert dray.open_pages(tmp_path / "x.pages")[0].d == -5


def test_missing_structs_and_lists_of_other_libraries(tmp_path: Path):
    schema = pa.schema({"s": ADDRESS, "l": TAGS, "m": pa.map_(pa.string(), pa.int32())})
    rows: list[dict[str, Any]] = [
        {"s": {"street": "x", "zip": 1}, "l": ["a", None], "m": [("k", 1)]},
        {"s": None, "l": None, "m": None},
        {"s": {"street": None, "zip": None}, "l": [], "m": []},
    ]
    table = pa.Table.from_pylist(rows, schema)
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        for n in range(len(rows)):
            pages.append({name: table[name][n] for name in schema.names})
        pages.append({"s": pandas.NA, "l": pandas.NA, "m": pandas.NA})
        for missing in (pa.scalar(None, pa.struct(list(schema))), pandas.NA):
            with pytest.raises(dray.UsageError, match="expected a dict"):
                pages.append(missing)
    objects = dray.open_pages(tmp_path / "x.pages")
    assert [object.dict() for object in objects] == [*rows, rows[1]]
    fields = pa.schema({"s": pa.struct({"as_py": pa.int8(), "is_valid": pa.bool_()})})
    with dray.PageWriter(tmp_path / "y.pages", fields) as pages:
        pages.append({"s": {"as_py": 5, "is_valid": False}})
        [object] = pa.Table.from_pylist([{"s": {"as_py": 5, "is_valid": False}}]).to_pylist()
        pages.append(object)
    with dray.edit_pages(tmp_path / "y.pages") as file:
        file[0].s = dray.open_pages(tmp_path / "y.pages")[1].s
        assert file[0].s == {"as_py": 5, "is_valid": False}


TIMES = [
    (pa.timestamp("ns"), numpy.datetime64("2024-02-29T12:00:00.123456789", "ns")),
    (pa.timestamp("us"), numpy.datetime64("2024-02-29T12:00", "h")),
    (pa.timestamp("s"), numpy.datetime64("-2024-02", "M")),
    (pa.timestamp("s"), numpy.datetime64("1969", "Y")),
    (pa.timestamp("ms"), numpy.datetime64(-3_000_000_000_000, "fs")),
    (pa.timestamp("ns"), numpy.array("2024-02-29", "datetime64[s]")),
    (pa.date32(), numpy.datetime64("2024-02-29", "D")),
    (pa.date64(), numpy.datetime64("1960-02-29T00:00", "ns")),
    (pa.duration("ns"), numpy.timedelta64(-5, "ns")),
    (pa.duration("s"), numpy.timedelta64(5, "W")),
    (pa.duration("ms"), numpy.timedelta64(5_000, "us")),
]


@pytest.mark.parametrize(("data_type", "value"), TIMES)
def test_times_of_numpy(data_type: pa.DataType, value: Any, tmp_path: Path):
    schema = pa.schema({"v": data_type, "all": pa.list_(data_type)})
    missing = type(value[()])("NaT")
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        pages.append({"v": value, "all": numpy.array([value, missing])})
        pages.append({"v": missing})
    table = pa.table(dray.open_pages(tmp_path / "x.pages"))
    units = {"timestamp": "datetime64", "date32": "datetime64", "date64": "datetime64"}
    kind = units.get(str(data_type).split("[")[0], "timedelta64")
    unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(data_type)) or data_type.unit
    stored = numpy.asarray(value).astype(f"{kind}[{unit}]").astype("int64")
    integer = pa.int32() if data_type == pa.date32() else pa.int64()
    assert table["v"].cast(integer).to_pylist() == [int(stored), None]
    assert table["all"][0].values.cast(integer).to_pylist() == [int(stored), None]


def test_objects_are_changed_in_place(path: Path):
    old = dray.open_pages(path)
    before = [object.dict() for object in old]
    assert old.key == ["id"]
    with dray.edit_pages(path) as file:
        assert isinstance(file[3], Mapping) and isinstance(file[3].orders, Sequence)
        assert len(file) == 10 and file.key == ["id"] and file[-1].id == 9
        assert [object.id for object in file] == [object.id for object in file[:]] == [*range(10)]
        assert file[3] == before[3] and file[3].orders == before[3]["orders"]
        [three] = file.find(3)
        three.name = "new"
        three.score = 5
        three.address.street = None
        three.address["zip"] = 99
        three.orders[0].items[1].part = 7
        three.orders[0].items[0].price = Decimal("1.5")
        three.orders[2].items.append({"part": 3, "tags": ["a tag of many letters"]})
        three.orders.insert(1, {"note": "inserted"})
        three.orders[2] = {"day": dt.date(2025, 1, 1)}
        three.phones[1] = None
        three.phones += [4, 5]
        three.corners[0] = 1
        three.rates[0] = ("c", None)
        three.rates.append(("d", 2.5))
        file[5].address = file[3].address
        file[6] = {"id": 66, "score": 1.0}
        file[7].orders = None
        assert three.orders[3].items[2].tags == ["a tag of many letters"]
        assert [*three.orders[0]] == ["day", "note", "items"] and "note" in three.orders[0]
        assert three.orders[0].get("nothing", 1) == 1 and len(three.orders[0]) == 3
        assert three.orders[0].values()[0] == dt.date(2024, 2, 29)
        assert repr(three.address) == "ObjectEditor({'street': None, 'zip': 99})"
        assert repr(three.phones) == "ListEditor([1, None, 3, 4, 5])"
    order = before[3]["orders"][0]
    tagged = {"part": 3, "price": None, "tags": ["a tag of many letters"]}
    first, second = ({**item, "tags": None, "price": None} for item in order["items"])
    expected = [dict(row) for row in before]
    expected[3] |= {
        "name": "new",
        "score": 5.0,
        "address": {"street": None, "zip": 99},
        "orders": [
            {**order, "items": [{**first, "price": Decimal("1.50")}, {**second, "part": 7}]},
            {"day": None, "note": "inserted", "items": None},
            {"day": dt.date(2025, 1, 1), "note": None, "items": None},
            {**order, "items": [first, second, tagged]},
        ],
        "phones": [1, None, 3, 4, 5],
        "corners": [1, 6],
        "rates": [("c", None), ("d", 2.5)],
    }
    expected[5]["address"] = {"street": None, "zip": 99}
    expected[6] = {**dict.fromkeys(expected[6]), "id": 66, "score": 1.0}
    expected[7]["orders"] = None
    assert [object.dict() for object in old] == before, "objects that were open stay as they were"
    new = dray.open_pages(path)
    new.check()
    assert [object.dict() for object in new] == expected
    assert new.ordinals(66) == [6] and new.ordinals(6) == []
    assert path.read_bytes() == written(path.with_name("expected.pages"), expected, key="id")


def change(random: random.Random, object: dray.ObjectEditor, row: dict[str, Any]):
    """Changes an object and its dict in the same way."""
    other = customer(random, random.randint(0, 1 << 40))
    name = random.choice(list(other))
    value = row[name]
    if isinstance(value, dict) and random.random() < 0.8:
        part = random.choice(list(value))
        value[part] = (other["address"] or {}).get(part)
        object.address[part] = value[part]
        return
    if not isinstance(value, list) or random.random() < 0.2:
        object[name] = row[name] = other[name]
        return
    list_of = object[name]
    news = other[name] or []
    at = random.randint(0, len(value))
    end = random.randint(at, len(value))
    if name == "corners":
        if news:
            list_of[:] = value[:] = news
        return
    match random.randint(0, 6):
        case 0:
            list_of[at:end] = value[at:end] = news
        case 1:
            del list_of[at:end], value[at:end]
        case 2:
            list_of.extend(news)
            value.extend(news)
        case 3 if news:
            list_of.insert(at, news[0])
            value.insert(at, news[0])
        case 4 if news and at < len(value):
            list_of[at] = value[at] = news[0]
        case 5 if news:
            list_of.append(news[-1])
            value.append(news[-1])
        case 6 if name == "orders" and at < len(value) and value[at] is not None:
            order = value[at]
            news = [item for order in news if order for item in order["items"] or []]
            if order["items"] and news:
                list_of[at].items[-1].tags = order["items"][-1]["tags"] = news[0]["tags"]
                list_of[at].items[0].price = order["items"][0]["price"] = news[0]["price"]
            elif news:
                list_of[at].items = order["items"] = news


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_changes(seed: int, tmp_path: Path):
    """What remains after many changes is what a table of the final values becomes."""
    rng = random.Random(seed)
    rows = [customer(rng, n) for n in range(rng.choice([1, 40, 3000]))]
    path = tmp_path / "x.pages"
    written(path, rows, key=["name", ("address", "zip")])
    for _ in range(3):
        with dray.edit_pages(path) as file:
            for _ in range(2000):
                n = rng.randrange(len(rows))
                change(rng, file[n], rows[n])
                if rng.random() < 0.05:
                    assert file[n] == pa.Table.from_pylist([rows[n]], SCHEMA).to_pylist()[0]
        expected = written(tmp_path / "expected.pages", rows, key=["name", ("address", "zip")])
        assert path.read_bytes() == expected, f"seed {seed}"


def test_many_changes_of_one_page(path: Path):
    """Pages are compacted; what was looked up is where it was."""
    rows = [object.dict() for object in dray.open_pages(path)]
    with dray.edit_pages(path) as file:
        for i in range(100_000):
            n = i % 10
            file[n].name = rows[n]["name"] = "x" * (i % 40)
    assert path.read_bytes() == written(path.with_name("expected.pages"), rows, key="id")


def test_objects_outgrow_their_page(tmp_path: Path):
    """All objects of a full page grow, one to several times the size of a page."""
    rows = [customer(random.Random(n), n) for n in range(2000)]
    path = tmp_path / "x.pages"
    written(path, rows)
    with dray.edit_pages(path) as file:
        for n, row in enumerate(rows):
            row["name"] = "longer " * (40 if n % 3 else 4)
            file[n].name = row["name"]
        rows[77]["phones"] = [*range(200_000)]
        file[77].phones = range(200_000)
        file[77].phones.append(1)
        rows[77]["phones"].append(1)
        rows[78]["name"] = file[78].name = "y" * 1_000_000
    assert path.read_bytes() == written(tmp_path / "expected.pages", rows)
    assert len(dray.open_pages(path)[77].phones) == 200_001
    with dray.edit_pages(path) as file:
        file[77].phones.clear()
        file[78].name = ""
    rows[77]["phones"], rows[78]["name"] = [], ""
    assert path.read_bytes() == written(tmp_path / "expected.pages", rows)


def test_items_that_moved_are_refused(path: Path):
    moved = "have moved or were replaced.*look it up again"
    with dray.edit_pages(path) as file:
        orders = file[3].orders
        first, last, items = orders[0], orders[2], orders[2].items
        last_item = items[1]
        orders.append(None)
        orders[0].items.insert(0, {})
        assert (first.day, last_item.part, len(items)) == (dt.date(2024, 2, 29), 2, 2)
        del orders[1]
        assert first.day == dt.date(2024, 2, 29), "it is before what was removed"
        for use in (lambda: last.day, lambda: items[0], lambda: setattr(last_item, "part", 1)):
            with pytest.raises(dray.UsageError, match=moved):
                use()
        last_item = orders[1].items[1]
        assert (len(orders), last_item.part) == (3, 2)
        orders[1] = orders[1].dict()
        with pytest.raises(dray.UsageError, match=moved):
            last_item.part = 1
        address = file[3].address
        file[3].address = None
        for use in (lambda: address.zip, lambda: setattr(address, "zip", 1), address.dict):
            with pytest.raises(dray.UsageError, match="missing by now"):
                use()
        file[3].address = {"zip": 5}
        address.zip += 1
        assert file[3].address == {"zip": 6, "street": None}
        three = file[3]
        file[3] = {"id": 33, "score": 0.0}
        assert three.id == 33 and three.orders is None
        with pytest.raises(dray.UsageError, match=moved):
            first.day  # noqa: B018
    for use in (lambda: three.id, lambda: setattr(three, "id", 1), lambda: file[0]):
        with pytest.raises(dray.UsageError, match="the block .* has ended"):
            use()


def test_items_that_did_not_move_are_used(path: Path):
    with dray.edit_pages(path) as file:
        orders = file[3].orders
        orders[:] = [{"note": str(n), "items": [{"part": n}]} for n in range(10)]
        del orders[0]
        first, third, items = orders[0], orders[2], orders[0].items
        del orders[5]
        assert (first.note, third.note, items[0].part) == ("1", "3", 1)
        del orders[2]
        items[0].part = 7
        assert (first.note, file[3].orders[0].items[0].part) == ("1", 7)
        with pytest.raises(dray.UsageError, match="have moved or were replaced"):
            third.note  # noqa: B018
        orders[0] = {"note": "new"}
        assert (first.note, first.items) == ("new", None)
        del orders[0]
        with pytest.raises(dray.UsageError, match="have moved or were replaced"):
            first.note  # noqa: B018


def test_lists_that_moved_are_not_assigned(path: Path):
    with dray.edit_pages(path) as file:
        orders = file[3].orders
        orders[:] = [{"note": str(n), "items": [{"part": n}]} for n in range(3)]
        stale = orders[1].items
        orders[1].items = stale
        del orders[0]
        with pytest.raises(dray.UsageError, match="have moved or were replaced"):
            orders[1].items = stale
        assert orders[1].items == [{"part": 2, "price": None, "tags": None}]
        phones = file[3].phones
        file[3].phones = None
        with pytest.raises(dray.UsageError, match="missing by now"):
            file[3].phones = phones
        file[3].phones = [1]
        file[3].phones = phones
        file[3].phones += [2]
        assert phones == [1, 2]


def test_threads_share_a_file(tmp_path: Path):
    """Values and exceptions are made by code of Python, in which threads take turns."""
    schema = pa.schema([("id", pa.uuid()), ("ids", pa.list_(pa.uuid()))])
    value = uuid.UUID(int=7)
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        together(lambda: pages.append({"id": value, "ids": [value]}))
    with dray.edit_pages(tmp_path / "x.pages") as file:

        def use():
            assert file[5].id == value and file[5].ids[0] == value
            assert dray.ObjectEditor.dict(file[6]) == {"id": value, "ids": [value]}
            with pytest.raises(dray.UsageError, match="of type int"):
                file[6].id = 5
            file[7].ids.append(value)

        together(use)
        assert file[7].ids == [value] * (THREADS * TURNS + 1)

    with pytest.raises(dray.UsageError, match="has ended"):
        file[5].id  # noqa: B018


def together(run: Callable[[], object]):
    """Runs this many times in each of some threads, which Python switches as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            turns = [threads.submit(run) for _ in range(THREADS * TURNS)]
        for turn in turns:
            turn.result()
    finally:
        sys.setswitchinterval(interval)


def test_names_and_numbers_that_are_not_there(path: Path):
    before = path.read_bytes()
    with dray.edit_pages(path) as file:
        with pytest.raises(AttributeError, match='no field "nam"'):
            file[3].nam = "x"
        with pytest.raises(AttributeError, match='no field "nam"'):
            file[3].nam  # noqa: B018
        with pytest.raises(KeyError):
            file[3]["nam"] = "x"
        for wrong in (
            lambda: file[10],
            lambda: file[3].phones[3],
            lambda: file[3].phones.__setitem__(-4, 1),
            lambda: file[3].phones.__delitem__(3),
            lambda: file.__setitem__(10, {}),
        ):
            with pytest.raises(IndexError):
                wrong()
        with pytest.raises(dray.UsageError, match="follow each other"):
            file[3].phones[::2] = [1, 2]
        for wrong in (
            lambda: file[3].corners.append(1),
            lambda: file[3].corners.clear(),
            lambda: file[3].corners.__setitem__(slice(0, 1), []),
        ):
            with pytest.raises(dray.UsageError, match="always has 2 items"):
                wrong()
        file[3].corners[0:1] = [5]
    assert path.read_bytes() == before


def test_an_exception_keeps_the_old_file(path: Path):
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), dray.edit_pages(path) as file:
        file[3].name = "x"
        1 / 0  # noqa: B018
    with pytest.raises(ZeroDivisionError), dray.PageWriter(path, SCHEMA) as pages:
        pages.append({"id": 1, "score": 1.0})
        1 / 0  # noqa: B018
    assert path.read_bytes() == before
    with pytest.raises(dray.UsageError, match="within a with block"):
        pages.append({"id": 1, "score": 1.0})
    damaged = bytearray(before)
    damaged[5000] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(dray.ExecutionError, match="page 0"), dray.edit_pages(path) as file:
        file[3].name = "x"
    with pytest.raises(dray.UsageError, match="No such file"):
        with dray.edit_pages(path.with_name("nothing.pages")):
            pass
    assert path.read_bytes() == damaged
    assert os.listdir(path.parent) == ["x.pages"]


def test_files_are_replaced_as_they_were(path: Path):
    path.chmod(0o600)
    link = path.with_name("link.pages")
    link.symlink_to(path.name)
    unchanged = path.stat().st_ino
    with dray.edit_pages(path) as file:
        assert file[3].name == "Customer 3"
    assert path.stat().st_ino == unchanged, "nothing was changed"
    with dray.edit_pages(link) as file:
        file[3].name = "through a link"
    assert link.is_symlink() and dray.open_pages(path)[3].name == "through a link"
    assert path.stat().st_mode & 0o777 == 0o600


def test_relative_paths_stay_where_they_were(path: Path, monkeypatch: pytest.MonkeyPatch):
    (path.parent / "other").mkdir()
    monkeypatch.chdir(path.parent)
    with dray.PageWriter("new.pages", SCHEMA) as pages:
        monkeypatch.chdir("other")
        pages.append({"id": 1, "score": 1.0})
    monkeypatch.chdir(path.parent)
    with dray.edit_pages("x.pages") as file:
        monkeypatch.chdir("other")
        file[3].name = "changed"
    assert os.listdir(".") == []
    assert sorted(os.listdir(path.parent)) == ["new.pages", "other", "x.pages"]
    assert dray.open_pages(path)[3].name == "changed"


def test_an_edit_never_discards_another(path: Path):
    with pytest.raises(dray.UsageError, match="was replaced meanwhile.*edit it again"):
        with dray.edit_pages(path) as late:
            with dray.edit_pages(path) as file:
                file[3].name = "first"
            late[4].name = "second"
    assert [object.name for object in dray.open_pages(path)[3:5]] == ["first", "Customer 4"]
    with dray.edit_pages(path) as late:
        with dray.edit_pages(path) as file:
            file[4].name = "second"
        assert late[4].name == "Customer 4", "what only reads may be late"
    with pytest.raises(dray.UsageError, match="was replaced meanwhile"):
        with dray.edit_pages(path) as file:
            file[4].name = "third"
            path.unlink()
    assert os.listdir(path.parent) == []


def test_writers_refuse_what_is_no_schema(tmp_path: Path):
    def enter(schema: Any, **options: Any) -> Callable[[], object]:
        return lambda: dray.PageWriter(tmp_path / "x.pages", schema, **options).__enter__()

    twice = pa.schema([pa.field("a", pa.int8()), pa.field("a", pa.int8())])
    union = pa.schema([("a", pa.dense_union([pa.field("x", pa.int8())]))])
    for wrong, error, message in [
        (enter({"a": "int"}), dray.UsageError, "dict is no schema"),
        (enter(twice), dray.UsageError, 'there are 2 fields "a"'),
        (enter(SCHEMA, key="nothing"), dray.ExecutionError, 'the key "nothing" is not one field'),
        (enter(union), dray.UsageError, "a union"),
    ]:
        with pytest.raises(error, match=message):
            wrong()
    assert os.listdir(tmp_path) == []
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    dray.write_pages(tmp_path / "x.pages", table)
    with pytest.raises(dray.UsageError, match='there are 2 fields "a"'):
        with dray.edit_pages(tmp_path / "x.pages"):
            pass


def test_names_with_points_are_keys(tmp_path: Path):
    schema = pa.schema([("zip.code", pa.int32()), ("a", pa.struct([("b.c", pa.int32())]))])
    with dray.PageWriter(tmp_path / "x.pages", schema, key=[["zip.code"], ["a", "b.c"]]) as pages:
        for n in range(100):
            pages.append({"zip.code": n % 7, "a": {"b.c": n}})
    with dray.edit_pages(tmp_path / "x.pages") as file:
        file[99]["zip.code"] = 70
    file = dray.open_pages(tmp_path / "x.pages")
    assert file.key == [["zip.code"], ["a", "b.c"]]
    dray.write_pages(tmp_path / "y.pages", file, key=file.key)
    assert (tmp_path / "y.pages").read_bytes() == (tmp_path / "x.pages").read_bytes()
    assert file.ordinals(5, 12) == [12] and file.ordinals(70, 99) == [99]


def test_lists_are_searched(path: Path):
    order = dray.open_pages(path)[3].orders[0].dict()
    with dray.edit_pages(path) as file:
        for lists in (dray.open_pages(path)[3], file[3]):
            phones, orders = lists.phones, lists.orders
            assert (phones.index(2), phones.index(3, 1), phones.index(1, -3, 1)) == (1, 2, 0)
            assert (orders.index(order), orders.index(orders[2], 1), orders.index(None)) == (
                0,
                2,
                1,
            )
            assert (phones.count(3), orders.count(order), phones.count("x")) == (1, 2, 0)
            for wrong in (lambda: phones.index(4), lambda: phones.index(1, 1)):  # noqa: B023
                with pytest.raises(ValueError, match="not in list"):
                    wrong()


def test_fields_with_names_of_methods(tmp_path: Path):
    fields = {"items": pa.list_(pa.int32()), "dict": pa.int32(), "get": pa.string()}
    schema = pa.schema(fields)
    row = {"items": [1, 2], "dict": 5, "get": "x"}
    with dray.PageWriter(tmp_path / "x.pages", schema) as pages:
        pages.append(row)
    [object] = dray.open_pages(tmp_path / "x.pages")
    with dray.edit_pages(tmp_path / "x.pages") as file:
        file[0].items.append(3)
        file[0].dict = 6
        assert dray.ObjectEditor.dict(file[0]) == {**row, "items": [1, 2, 3], "dict": 6}
        file[0] = object
        assert file[0] == row


def test_values_that_use_the_file(path: Path):
    """Python code that runs while a value is converted may use the file."""
    with dray.edit_pages(path) as file:

        class Own(Mapping):
            def __getitem__(self, name: str) -> Any:
                file[4].score = 4.0
                return {"street": file[3].name, "zip": 1}[name]

            def __iter__(self):
                return iter(["street", "zip"])

            def __len__(self) -> int:
                return 2

        file[3].address = Own()
        assert file[3].address == {"street": "Customer 3", "zip": 1} and file[4].score == 4.0
        file[3].phones = (file[n].id for n in range(10))
        assert file[3].phones == [*range(10)]
        file[3].orders.extend(file[3].orders)
        assert len(file[3].orders) == 6
