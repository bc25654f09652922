"""Page files, from Python and by the program: what is written comes back, in any order, and damage
is an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

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
