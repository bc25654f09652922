"""Unusual data from the other side of an interface: NUL bytes in names, rare flags, dictionaries
that differ between chunks, broken streams.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from server import Server

import dray
from dray.errors import Error

PARTS = 5
ROWS = 3000
# More entries than 8-bit keys can tell apart, once all parts are combined.
WORDS = [[f"part {part} word {word}" for word in range(100)] for part in range(PARTS)]


def part(number: int) -> pa.Table:
    rows = range(number * ROWS, (number + 1) * ROWS)
    indices = pa.array([None if row % 7 == 0 else row % 100 for row in rows], pa.int8())
    few = pa.array([row % 3 for row in rows], pa.int8())
    three = pa.array([f"{number}a", "b", "c"])
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "many": pa.DictionaryArray.from_arrays(indices, pa.array(WORDS[number])),
            "few": pa.DictionaryArray.from_arrays(few, three),
            "within": pa.StructArray.from_arrays(
                [pa.DictionaryArray.from_arrays(few, three)], ["d"]
            ),
        }
    )


def flags() -> pa.Table:
    ordered = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.int16()), ["low", "high"], ordered=True
    )
    plain = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int16()), ["low", "high"])
    pairs = [[("a", 1), ("b", None)], [], None]
    maps = pa.array(pairs, pa.map_(pa.string(), pa.int64(), keys_sorted=True))
    return pa.table(
        {
            "ordered": ordered,
            "plain": plain,
            "sorted": maps,
            "unsorted": pa.array(pairs, pa.map_(pa.string(), pa.int64())),
            "within": pa.StructArray.from_arrays(
                [ordered, maps], fields=[pa.field("d", ordered.type), pa.field("m", maps.type)]
            ),
        }
    )


def write(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    for name in ("parts", "arrows"):
        (folder / name).mkdir()
    for number in range(PARTS):
        pyarrow.parquet.write_table(part(number), folder / "parts" / f"{number}.parquet")
        write(part(number), folder / "arrows" / f"{number}.arrow")
    write(flags(), folder / "flags.arrow")
    server = Server(
        folder,
        f"parts={folder / 'parts'}",
        f"arrows={folder / 'arrows'}",
        f"flags={folder / 'flags.arrow'}",
    )
    yield server
    server.stop()
    shutil.rmtree(folder)


def words(table: pa.Table, column: str) -> list[Any]:
    rows = zip(table.column("row").to_pylist(), table.column(column).to_pylist())
    return [value for _, value in sorted(rows, key=lambda row: row[0])]


@pytest.mark.parametrize("strings", ["utf8", "large", "view"])
@pytest.mark.parametrize("table", ["parts", "arrows"])
@pytest.mark.parametrize("column", ["many", "few", "within"])
@pytest.mark.parametrize("batch_rows", [1000, 1_000_000])
def test_dictionaries_of_different_chunks(
    server: Server, strings: Any, table: str, column: str, batch_rows: int
) -> None:
    # A filter of the engine would combine rows of several Arrow files, whose 8-bit keys can't tell
    # all entries apart, so these are read without one.
    condition = "" if (table, column) == ("arrows", "many") else "WHERE row % 2 = 0"
    expected = [
        value for number in range(PARTS) for value in part(number).column(column).to_pylist()
    ]
    expected = expected[::2] if condition else expected
    with dray.connect(server.unix) as connection:
        sql = f"SELECT row, {column} FROM {table} {condition}"
        for _ in range(2):
            found = connection.query(sql, strings=strings, batch_rows=batch_rows).arrow()
            found.validate(full=True)
            assert words(found, column) == expected
        batches = list(connection.query(sql, strings=strings, batch_rows=batch_rows).batches())
        assert words(pa.Table.from_batches(batches), column) == expected
        rows = sorted(
            connection.query(sql, strings=strings, batch_rows=batch_rows).rows(),
            key=lambda row: row[0],
        )
        assert [value for _, value in rows] == expected


def test_dictionaries_are_united_where_they_can_be(server: Server) -> None:
    with dray.connect(server.unix) as connection:
        table = connection.query("SELECT row, few FROM parts WHERE row % 2 = 0").arrow()
        assert table.column("few").num_chunks == 1
        entries = table.column("few").chunk(0).dictionary.to_pylist()
        assert sorted(entries) == sorted({"b", "c"} | {f"{number}a" for number in range(PARTS)})
        frame = connection.query(
            "SELECT row, few FROM parts WHERE row % 2 = 0 ORDER BY row"
        ).pandas()
        assert list(frame["few"].astype(str)[:3]) == ["0a", "c", "b"]


def test_what_is_ordered_stays_so(server: Server) -> None:
    expected = flags()
    read = [
        dray.read(server.unix, "SELECT * FROM flags"),
        pa.table(dray.sort(expected, "plain:desc")),
        pa.table(dray.sort(dray.sort(expected, "plain"), "plain:desc")),
    ]
    for number, found in enumerate(read):
        assert found.schema.field("ordered").type.ordered
        assert not found.schema.field("plain").type.ordered
        assert found.schema.field("sorted").type.keys_sorted
        assert not found.schema.field("unsorted").type.keys_sorted
        # A sort has no dictionary within another column.
        assert found.schema.field("within").type.field("d").type.ordered == (number == 0)
        assert found.schema.field("within").type.field("m").type.keys_sorted
    assert dray.read(server.unix, "SELECT * FROM flags").schema.equals(expected.schema)
    # A sort of the server makes new dictionaries, too.
    found = dray.read(server.unix, "SELECT * FROM flags ORDER BY plain DESC")
    assert not found.schema.field("ordered").type.ordered
    assert not found.schema.field("within").type.field("d").type.ordered
    assert found.schema.field("sorted").type.keys_sorted


def test_bytes_that_no_name_has(server: Server) -> None:
    with dray.connect(server.unix) as connection:
        for sql in (
            "SELECT arrow_cast(now(), 'Timestamp(Microsecond, Some(\"U\0C\"))') AS at",
            "SELECT arrow_cast(now(), 'Timestamp(Microsecond, Some(\"U\0C\"))') AS at "
            "FROM parts WHERE row < 0",
            'SELECT 1 AS "a\0b"',
            "SELECT named_struct('a\0b', 1) AS s",
        ):
            with pytest.raises(Error):
                connection.query(sql).arrow()
            assert connection.query("SELECT 1 AS one").arrow().to_pylist() == [{"one": 1}]


class Stream(ctypes.Structure):
    """Arrow's C stream whose schema fails with an error without text."""

    REFUSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    SILENT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    _fields_ = [
        ("get_schema", REFUSE),
        ("get_next", REFUSE),
        ("get_last_error", SILENT),
        ("release", RELEASE),
        ("private_data", ctypes.c_void_p),
    ]


class Broken:
    """A stream with a schema, then an error without text."""

    def __init__(self) -> None:
        self.schema = pa.schema({"x": pa.int64()})
        self.stream = Stream(
            Stream.REFUSE(self.get_schema),
            Stream.REFUSE(lambda *_: 22),
            Stream.SILENT(lambda _: None),
            Stream.RELEASE(lambda _: None),
        )

    def get_schema(self, _: Any, out: int) -> int:
        self.schema._export_to_c(out)
        return 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


def test_a_stream_that_breaks_the_rules_is_an_error() -> None:
    with pytest.raises(dray.ExecutionError, match="breaks Arrow's rules"):
        pa.table(dray.sort(Broken(), "x"))
