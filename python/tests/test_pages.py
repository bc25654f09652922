"""Page files, from Python and by the program: what is written comes back, in any order, and damage
is an error.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import numpy
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dray

BINARY = os.environ["DRAY_BINARY"]
ROWS = 20_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Customers with their orders; some names are missing, and so are some lists."""
    item = pa.struct([("part", pa.int32()), ("price", pa.decimal128(9, 2))])
    orders = pa.list_(pa.struct([("day", pa.date32()), ("items", pa.list_(item))]))

    def orders_of(n: int) -> list | None:
        if n % 11 == 0:
            return None
        items = [{"part": n + i, "price": Decimal(n) / 100} for i in range(n % 4)]
        return [{"day": n % 9000, "items": items}] * (n % 3)

    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [None if n % 7 == 0 else f"Customer number {n % 1000}" for n in range(ROWS)],
            "orders": pa.array([orders_of(n) for n in range(ROWS)], orders),
        }
    )


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "customers.pages"
    written = dray.write_pages(path, table, key="id")
    assert (written.objects, written.bytes) == (ROWS, path.stat().st_size)
    return path


def program(*arguments: object, code: int = 0) -> str:
    """What the program prints; on failure what it prints as its error."""
    ran = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return ran.stderr if code else ran.stdout


def test_objects_in_any_order(table: pa.Table, path: Path):
    file = dray.open_pages(path)
    rows = table.to_pylist()
    assert len(file) == ROWS
    assert file[0] == rows[0]
    assert [file[n] for n in (17, 19_999, -1, 3)] == [rows[n] for n in (17, 19_999, -1, 3)]
    assert file[5:5000:997] == rows[5:5000:997]
    assert list(file) == rows
    assert "customers.pages" in repr(file) and "20000 objects" in repr(file)
    with pytest.raises(IndexError):
        file[ROWS]
    with pytest.raises(IndexError):
        file[-ROWS - 1]


def test_objects_by_key(table: pa.Table, path: Path, tmp_path: Path):
    file = dray.open_pages(path)
    assert file.key == ["id"]
    assert file.find(4711) == [table.slice(4711, 1).to_pylist()[0]]
    assert file.find(-1) == file.find(1 << 70) == []
    with pytest.raises(dray.UsageError, match="takes an integer"):
        file.find("4711")
    with pytest.raises(dray.UsageError, match="2 values for a key of 1 fields"):
        file.find(1, 2)
    dray.write_pages(tmp_path / "two.pages", table, key=["name", "id"])
    two = dray.open_pages(tmp_path / "two.pages")
    assert two.ordinals("Customer number 8", 2008) == [2008]
    dray.write_pages(tmp_path / "names.pages", table, key="name")
    names = dray.open_pages(tmp_path / "names.pages")
    assert names.ordinals("Customer number 8") == [n for n in range(8, ROWS, 1000) if n % 7]
    names.check()
    dray.write_pages(tmp_path / "none.pages", table)
    with pytest.raises(dray.UsageError, match="no key index"):
        dray.open_pages(tmp_path / "none.pages").find(1)


def test_it_is_an_arrow_stream(table: pa.Table, path: Path):
    file = dray.open_pages(path)
    assert pa.table(file) == table
    assert pa.table(file) == table, "it can be read again"
    assert polars.DataFrame(file).height == ROWS
    assert pa.schema(file) == table.schema


def test_any_source(table: pa.Table, tmp_path: Path):
    path = tmp_path / "x.pages"
    dray.write_pages(path, table.to_reader(max_chunksize=777))
    assert pa.table(dray.open_pages(path)) == table
    pq.write_table(table, tmp_path / "x.parquet")
    dray.write_pages(path, tmp_path / "x.parquet")
    assert pa.table(dray.open_pages(path)).num_rows == ROWS
    empty = dray.write_pages(path, table.slice(0, 0), key="id")
    assert (empty.objects, empty.pages) == (0, 0)
    assert list(dray.open_pages(path)) == dray.open_pages(path).find(1) == []


def test_dictionaries_of_several_batches(tmp_path: Path):
    """A page has more categories than indexes of 8 bits tell apart, and in no order."""
    words = [[f"word {chunk} {n:02}" for n in range(100)] for chunk in "ba"]
    keys = pa.array(range(100), pa.int8())
    columns = [pa.DictionaryArray.from_arrays(keys, pa.array(some), ordered=True) for some in words]
    table = pa.concat_tables([pa.table({"d": column}) for column in columns])
    dray.write_pages(tmp_path / "x.pages", table)
    file = dray.open_pages(tmp_path / "x.pages")
    with dray.PageWriter(tmp_path / "y.pages", table.schema) as pages:
        for row in file:
            pages.append(row)
    for path in ("x.pages", "y.pages"):
        found = pa.table(dray.open_pages(tmp_path / path))
        assert found.schema.types == [pa.dictionary(pa.int32(), pa.string())]
        assert found["d"].to_pylist() == words[0] + words[1]


def test_a_failure_keeps_the_old_file(table: pa.Table, tmp_path: Path):
    path = tmp_path / "x.pages"
    dray.write_pages(path, table.slice(0, 10))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise ValueError("the source is gone")

    with pytest.raises(dray.ExecutionError, match="the source is gone"):
        dray.write_pages(path, pa.RecordBatchReader.from_batches(table.schema, batches()))
    with pytest.raises(dray.ExecutionError, match='the key "ids" is not one field'):
        dray.write_pages(path, table, key="ids")
    with pytest.raises(dray.UsageError):
        dray.write_pages(path, [1, 2, 3])
    assert len(dray.open_pages(path)) == 10
    assert os.listdir(tmp_path) == ["x.pages"]


def test_threads_share_a_file(table: pa.Table, path: Path):
    file = dray.open_pages(path)
    rows = table.to_pylist()
    wrong = []

    def look(first: int):
        wrong.extend(n for n in range(first, ROWS, 397) if file[n] != rows[n])

    threads = [threading.Thread(target=look, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_damage_is_an_error(table: pa.Table, path: Path, tmp_path: Path):
    data = path.read_bytes()
    cut = tmp_path / "cut.pages"
    cut.write_bytes(data[: len(data) // 2])
    with pytest.raises(dray.ExecutionError, match="objects are whole and can be salvaged"):
        dray.open_pages(cut)
    damaged = bytearray(data)
    damaged[len(data) // 3] ^= 4
    cut.write_bytes(damaged)
    file = dray.open_pages(cut)
    with pytest.raises(dray.ExecutionError, match=r"page \d+, objects \d+ to \d+"):
        file.check()
    assert file[0] == table.slice(0, 1).to_pylist()[0]
    with pytest.raises(pa.ArrowException, match="checksum"):
        pa.table(file)
    cut.write_bytes(b"PAR1")
    with pytest.raises(dray.UsageError, match="not a page file"):
        dray.open_pages(cut)
    with pytest.raises(dray.UsageError, match="No such file"):
        dray.open_pages(tmp_path / "nothing.pages")


def test_program_exports_sorts_and_reads(table: pa.Table, path: Path, tmp_path: Path):
    pq.write_table(table, tmp_path / "customers.parquet")
    made = tmp_path / "made.pages"
    program("sort", tmp_path / "customers.parquet", "--by", "id:desc", "-o", made, "--key", "id")
    assert pa.table(dray.open_pages(made)).to_pylist() == table.to_pylist()[::-1]
    first = json.loads(program("pages", made, "--find", 4710))
    assert first["name"] == "Customer number 710"
    two = program("pages", made, "--get", 0, "--get", ROWS - 1).splitlines()
    assert [json.loads(line)["id"] for line in two] == [ROWS - 1, 0]
    shown = program("pages", made, "--check")
    assert "20,000 objects" in shown and "all of it checked" in shown and "key: id" in shown
    program("pages", made, "--convert", tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").num_rows == ROWS
    assert "give --find for each" in program("pages", made, "--find", 1, "--find", 2, code=2)
    assert "there is no object 20000" in program("pages", made, "--get", ROWS, code=2)
    made.write_bytes(made.read_bytes()[:-1])
    assert "can be salvaged" in program("pages", made, code=1)
    program("pages", made, "--salvage", "--convert", tmp_path / "saved.pages")
    assert len(dray.open_pages(tmp_path / "saved.pages")) == ROWS


def test_objects_are_read_in_place(table: pa.Table, path: Path):
    customer = dray.open_pages(path)[4733]
    row = table.slice(4733, 1).to_pylist()[0]
    assert isinstance(customer, dray.Object) and isinstance(customer, Mapping)
    assert (customer.id, customer["id"], customer.get("id")) == (4733, 4733, 4733)
    assert customer.name == row["name"]
    assert customer.dict() == dict(customer) == row
    assert [*customer] == customer.keys() == ["id", "name", "orders"]
    assert customer.items()[0] == ("id", 4733)
    assert "id" in customer and "price" not in customer and 1 not in customer
    assert customer.get("price") is None and customer.get("price", 1) == 1
    assert {"id", "dict"} <= set(dir(customer))
    order = customer.orders[0]
    item = order.items[-1]
    assert dray.Object.items(order) == [("day", order.day), ("items", [item])]
    assert repr(item) == "Object({'part': 4733, 'price': Decimal('47.33')})"
    with pytest.raises(AttributeError, match='no field "price"'):
        customer.price  # noqa: B018
    with pytest.raises(KeyError, match="price"):
        customer["price"]


def test_lists_are_sequences(table: pa.Table, path: Path):
    file = dray.open_pages(path)
    orders = next(customer.orders for customer in file if len(customer.orders or ()) == 2)
    assert isinstance(orders, Sequence) and len(orders) == 2
    assert orders == orders.list() and orders != orders.list()[:1]
    assert [*orders] == [orders[0], orders[1]] == orders[:] == orders[::-1][::-1]
    assert orders[-1] == orders[1] and orders[5:] == []
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"item {index} of 2"):
            orders[index]
    with pytest.raises(TypeError):
        orders["1"]
    with pytest.raises(dray.UsageError, match="not numbers"):
        orders.memoryview()


def test_numbers_are_not_copied(tmp_path: Path):
    item = pa.field("item", pa.float64(), nullable=False)
    values = pa.array([[0.5, -1.0, 3e300], []], pa.list_(item))
    gaps = pa.array([[1, None], [3]], pa.list_(pa.int16()))
    dray.write_pages(tmp_path / "x.pages", pa.table({"values": values, "gaps": gaps}))
    objects = [*dray.open_pages(tmp_path / "x.pages")]
    viewed, array = objects[0]["values"].memoryview(), numpy.asarray(objects[0]["values"])
    again = numpy.asarray(objects[0]["values"])
    assert array.ctypes.data == again.ctypes.data, "both are the page's memory"
    del objects[0]
    gc.collect()
    assert viewed.tolist() == array.tolist() == [0.5, -1.0, 3e300], "the page is kept"
    assert viewed.format == "d" and viewed.readonly and not array.flags.writeable
    assert len(objects[0]["values"].memoryview()) == 0
    assert numpy.asarray(objects[0]["values"]).shape == (0,)
    with pytest.raises(dray.UsageError, match="not numbers"):
        objects[0].gaps.memoryview()


@pytest.mark.parametrize("name", ["parquet_types", "arrow_types"])
def test_values_of_every_type(connection: dray.Connection, name: str, tmp_path: Path):
    """Objects have the values that results have."""
    sql = f"SELECT * FROM {name} ORDER BY id"
    dray.write_pages(tmp_path / "x.pages", connection.query(sql))
    names = connection.query(sql).arrow().column_names
    rows = [dict(zip(names, row, strict=True)) for row in connection.query(sql).rows()]
    objects = [*dray.open_pages(tmp_path / "x.pages")]
    assert [object.dict() for object in objects] == rows
    assert [{name: object[name] for name in names} for object in objects] == rows
    types = [[type(value) for value in row.values()] for row in rows]
    assert [[type(value) for value in object.dict().values()] for object in objects] == types


def test_two_fields_of_one_name(tmp_path: Path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "a"])
    dray.write_pages(tmp_path / "x.pages", table)
    [object] = dray.open_pages(tmp_path / "x.pages")
    assert object.b == 2
    assert object.values() == [1, 2, 3]
    for read in (lambda: object.a, object.dict, lambda: object["a"]):
        with pytest.raises(dray.UsageError, match='several fields "a".*values'):
            read()
