"""dray.sort: any Arrow stream, in memory and on disk, compared with pyarrow's own sort."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dray

T = TypeVar("T")

ROWS = 60_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A table with a column that identifies each row."""
    numbers = random.Random(7)
    words = ["", "a", "ab", "a longer one than a view", "é", "z"]

    def some(value: T) -> T | None:
        return None if numbers.random() < 0.1 else value

    return pa.table(
        {
            "i": pa.array([some(numbers.randrange(-50, 50)) for _ in range(ROWS)], pa.int16()),
            "f": pa.array(
                [some(numbers.choice([0.5, -0.5, 1e300, float("inf")])) for _ in range(ROWS)]
            ),
            "s": pa.array(
                [some(numbers.choice(words) + str(numbers.randrange(9))) for _ in range(ROWS)]
            ),
            "l": pa.array(
                [some([numbers.randrange(3)] * numbers.randrange(3)) for _ in range(ROWS)]
            ),
            "row": pa.array(range(ROWS), pa.int64()),
        }
    )


def expected(table: pa.Table, keys: list[tuple[str, str, str]]) -> pa.Table:
    """The result of pyarrow's sort, which is stable, too."""
    return table.take(pc.sort_indices(table, sort_keys=keys))


def test_a_system_that_does_not_tell_the_processors(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert pa.table(dray.sort(table, "row:desc"))["row"][0].as_py() == ROWS - 1


@pytest.mark.parametrize("memory", ["512MiB", 2 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_order(table: pa.Table, memory: int | str, threads: int) -> None:
    up, down, first, last = "ascending", "descending", "at_start", "at_end"
    for by, keys in [
        ("i", [("i", up, last)]),
        ("i:desc", [("i", down, first)]),
        (["s:desc:nulls-last", "i"], [("s", down, last), ("i", up, last)]),
        (["f:nulls-first", "s:desc"], [("f", up, first), ("s", down, first)]),
    ]:
        result = dray.sort(table, by, memory=memory, threads=threads)
        assert (result.spilled_bytes > 0) == (memory == 2 << 20)
        found = pa.table(result)
        assert found.schema == table.schema
        assert found.equals(expected(table, keys)), by


def test_sources(table: pa.Table) -> None:
    by_rows = table.sort_by([("row", "descending")])
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=999))
    for source in [table, reader, table.to_reader(), polars.DataFrame(table)]:
        found = pa.table(dray.sort(source, "row:desc")).cast(table.schema)
        assert found.equals(by_rows)
    views = table.set_column(2, "s", table["s"].cast(pa.string_view()))
    found = pa.table(dray.sort(views, "row:desc"))
    assert found.schema == views.schema
    assert found["s"].cast(pa.string()).equals(by_rows["s"])
    empty = pa.table(dray.sort(table.slice(0, 0), "row"))
    assert empty.num_rows == 0 and empty.schema == table.schema


def test_distinct_and_limit(table: pa.Table) -> None:
    first = {}
    for number, value in enumerate(table["s"].to_pylist()):
        first.setdefault(value, number)
    for memory in ["64MiB", 2 << 20]:
        found = pa.table(dray.sort(table, "s:nulls-first", distinct="keys", memory=memory))
        assert dict(zip(found["s"].to_pylist(), found["row"].to_pylist(), strict=True)) == first
        twice = pa.concat_tables([table, table])
        found = pa.table(dray.sort(twice, [], distinct=True, memory=memory))
        assert found.sort_by("row").equals(table)
        found = pa.table(dray.sort(table, "row:desc", limit=10, memory=memory))
        assert found["row"].to_pylist() == list(range(ROWS - 1, ROWS - 11, -1))
    assert pa.table(dray.sort(table, "row", limit=0)).num_rows == 0


def test_what_can_not_be_done(table: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(dray.UsageError, match='there is no column "x"; there are i, f, s, l, row'):
        dray.sort(table, "x")
    with pytest.raises(dray.UsageError, match="says twice"):
        dray.sort(table, "i:desc:asc")
    with pytest.raises(dray.UsageError, match="name a column"):
        dray.sort(table, [])
    with pytest.raises(dray.UsageError, match="__arrow_c_stream__"):
        dray.sort([1, 2], "i")
    with pytest.raises(dray.UsageError, match="is not a size"):
        dray.sort(table, "i", memory="lots")
    with pytest.raises(dray.UsageError, match="distinct"):
        dray.sort(table, "i", distinct="some")
    with pytest.raises(
        dray.ResourcesError, match="sorting needs 65536 bytes of memory, and may take 1000"
    ):
        dray.sort(table, "i", memory=1000)
    with pytest.raises(dray.ResourcesError, match="can't create a spill file"):
        dray.sort(table, "i", memory=1 << 20, spill=tmp_path / "none")
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(dray.UsageError, match="union"):
        dray.sort(pa.table({"u": union}), "u")


def test_a_source_that_fails(table: pa.Table) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=5000)[:3]
        raise ValueError("no more of this")

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises(
        dray.ExecutionError, match="source of the rows failed: ValueError: no more of this"
    ) as caught:
        dray.sort(reader, "i", memory=1 << 20)
    assert type(caught.value.__cause__) is ValueError


def test_sources_of_others_that_fail(table: pa.Table) -> None:
    """Arrow's C stream interface passes on only the text of an error."""

    class Other:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.RecordBatchReader.from_batches(table.schema, batches()).__arrow_c_stream__(
                requested_schema
            )

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=5000)[:3]
        raise ValueError("no more of this")

    with pytest.raises(
        dray.ExecutionError, match="^the source of the rows failed: .*no more of this"
    ):
        dray.sort(Other(), "i")
    failing = (
        "SELECT CASE WHEN range > 900000 THEN error('no more of this') ELSE range END "
        "AS i FROM range(1000000)"
    )
    with pytest.raises(
        dray.ExecutionError, match="^the source of the rows failed: .*no more of this"
    ):
        # With one thread: another may report that it was interrupted by the error of the first.
        dray.sort(duckdb.connect(config={"threads": 1}).sql(failing), "i")


def test_an_interrupt_in_a_source_is_one(table: pa.Table) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=5000)[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dray.sort(pa.RecordBatchReader.from_batches(table.schema, batches()), "i")


def test_names_with_colons() -> None:
    table = pa.table({"a:desc": [2, 3, 1], "x:y": [1, 3, 2]})
    for by, expected in [
        ("a:desc", [1, 2, 3]),
        ("a:desc:desc", [3, 2, 1]),
        ("x:y", [2, 1, 3]),
        ("x:y:desc", [3, 1, 2]),
    ]:
        assert pa.table(dray.sort(table, by))["a:desc"].to_pylist() == expected, by
    for by, expected in [
        (dray.SortKey("a:desc"), [1, 2, 3]),
        ([dray.SortKey("a:desc", descending=True)], [3, 2, 1]),
        (("x:y", dray.SortKey("a:desc")), [2, 1, 3]),
    ]:
        assert pa.table(dray.sort(table, by))["a:desc"].to_pylist() == expected, by
    # Only the exact name is meant, though the text is that of another column.
    names = pa.table({"a": [1, 2], "a:desc": [1, 2], "a:desc:nulls-first": [1, 2]})
    assert pa.table(dray.sort(names, dray.SortKey("a", descending=True)))["a"].to_pylist() == [2, 1]
    with pytest.raises(dray.UsageError, match='there is no column "x:y:desc"'):
        dray.sort(table, dray.SortKey("x:y:desc"))
    both = pa.Table.from_arrays([table["a:desc"], table["x:y"]], names=["a", "a"])
    with pytest.raises(dray.UsageError, match='there are 2 columns "a"'):
        dray.sort(both, "a")


def test_places_of_missing_values() -> None:
    table = pa.table({"n": [2, None, 1], 'odd "name"\n': [None, 0, 1]})
    for key, expected in [
        (dray.SortKey("n"), [1, 2, None]),
        (dray.SortKey("n", nulls_first=True), [None, 1, 2]),
        (dray.SortKey("n", descending=True), [None, 2, 1]),
        (dray.SortKey("n", descending=True, nulls_first=False), [2, 1, None]),
        (dray.SortKey('odd "name"\n'), [None, 1, 2]),
    ]:
        assert pa.table(dray.sort(table, key))["n"].to_pylist() == expected, key
    with pytest.raises(dray.UsageError, match="expected a column's name or a SortKey"):
        dray.sort(table, [("n", "desc")])  # type: ignore[list-item]


@pytest.mark.parametrize("memory", ["512MiB", 2 << 20])
@pytest.mark.parametrize("seed", range(5))
def test_numbers_against_others(seed: int, memory: int | str) -> None:
    """Keys with more than eight varying bytes, whose last columns have few values, compared with
    the sorts of pyarrow and DuckDB.
    """
    numbers = numpy.random.default_rng(seed)
    n = 100_000
    table = pa.table(
        {
            "cents": numbers.normal(0, 1e5, n).astype("int64"),
            "status": numbers.choice([200, 404, 500], n).astype("int16"),
            "rank": numbers.zipf(1.5, n).astype("uint64"),
            "row": numpy.arange(n),
        }
    )
    up, down = ("ascending", ""), ("descending", ":desc")
    columns = list(itertools.permutations(["cents", "status", "rank"], 2 + seed % 2))
    names = columns[seed % len(columns)]
    directions = [up if numbers.integers(2) else down for _ in names]
    threads = int(numbers.integers(1, 9))
    by = [name + suffix for name, (_, suffix) in zip(names, directions, strict=True)]
    found = pa.table(dray.sort(table, by, memory=memory, threads=threads))
    keys = [
        (name, direction, "at_end") for name, (direction, _) in zip(names, directions, strict=True)
    ]
    assert found.equals(expected(table, keys)), (seed, by, threads)
    order = ", ".join(by).replace(":desc", " DESC")
    connection = duckdb.connect()
    connection.register("rows_in", table)
    assert found.equals(
        connection.sql(f"SELECT * FROM rows_in ORDER BY {order}, row").to_arrow_table()
    ), (seed, by)
    distinct = pa.table(dray.sort(table, by, distinct="keys", memory=memory, threads=threads))
    groups = table.group_by(list(names), use_threads=False).aggregate([("row", "min")])
    assert sorted(distinct["row"].to_pylist()) == sorted(groups["row_min"].to_pylist()), (
        seed,
        by,
        threads,
    )


def test_rows_are_handed_over_once(table: pa.Table) -> None:
    result = dray.sort(table, "i")
    assert pa.schema(result) == table.schema
    assert pa.table(result).num_rows == ROWS
    assert result.spilled_bytes is None
    with pytest.raises(dray.UsageError, match="were read already"):
        pa.table(result)


def test_nothing_is_left_on_disk(table: pa.Table, tmp_path: Path) -> None:
    result = dray.sort(table, "s", memory=2 << 20, spill=tmp_path)
    reader = pa.RecordBatchReader.from_stream(result)
    reader.read_next_batch()
    assert list(tmp_path.iterdir()) == []
    del reader, result
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() != str(tmp_path)


def test_progress_is_told(table: pa.Table, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    sorted_rows = dray.sort(
        pa.concat_tables([table] * 5),
        by="s",
        memory="2MiB",
        spill=tmp_path,
        progress=lambda progress: told.append((progress.rows_read, progress.spilled_bytes)),
    )
    assert told == sorted(told)
    rows_read, spilled_bytes = told[-1]
    assert rows_read == 5 * ROWS
    assert spilled_bytes == sorted_rows.spilled_bytes
    assert spilled_bytes > 1 << 20


def test_what_the_progress_function_raises_ends_the_sort(table: pa.Table) -> None:
    def stop(progress: dray.SortProgress) -> None:
        raise LookupError(repr(progress))

    with pytest.raises(LookupError, match=r"SortProgress\(rows_read=\d+, spilled_bytes=0\)"):
        dray.sort(table, by="s", progress=stop)


def categories(words: list[str], ordered: bool = False) -> pa.Table:
    """Each word once, the last one first, and within a struct, too."""
    keys = pa.array(range(len(words)), pa.int8())
    column = pa.DictionaryArray.from_arrays(keys, pa.array(words), ordered=ordered)
    column = pa.concat_arrays([column.slice(len(words) - 1), column.slice(0, len(words) - 1)])
    within = pa.StructArray.from_arrays([column], fields=[pa.field("d", column.type)])
    return pa.table({"d": column, "within": within})


def test_dictionaries_that_differ_get_wider_indexes() -> None:
    words = [[f"word {chunk} {n:02}" for n in range(100)] for chunk in "ba"]
    table = pa.concat_tables([categories(some, ordered=True) for some in words])
    for memory in (None, "8MiB"):
        found = pa.table(dray.sort(table, "d", memory=memory))
        found.validate(full=True)
        wide = pa.dictionary(pa.int32(), pa.string())
        assert found.schema.types == [wide, pa.struct({"d": wide})]
        assert found["d"].to_pylist() == sorted(words[0] + words[1])
        assert [row["d"] for row in found["within"].to_pylist()] == found["d"].to_pylist()


def test_categories_keep_their_order() -> None:
    sizes = ["small", "medium", "large"]
    table = categories(sizes, ordered=True)
    nothing = pa.nulls(2, table.schema.field("d").type)
    empty = pa.table([nothing], ["d"])
    table = pa.concat_tables([table.select(["d"]), empty, table.select(["d"])])
    found = pa.table(dray.sort(table, "d"))
    assert found.schema == table.schema
    assert found["d"].to_pylist() == sorted(sizes * 2) + [None] * 2
    assert found["d"].combine_chunks().dictionary.to_pylist() == sizes
    frame = found.to_pandas()["d"]
    assert list(frame.dropna() < "large") == [False, False, True, True, True, True]
    # As the fields of a struct, they are only values.
    within = pa.table(dray.sort(categories(sizes, ordered=True), "d"))["within"]
    assert not within.type.field("d").type.ordered
    # Nothing was read that would say what the dictionary is.
    assert pa.table(dray.sort(table.slice(0, 0), "d")).schema == table.schema


def test_floats_of_each_kind() -> None:
    # By their first bits: NaN, the negative one, -0.0, 0.0, 1.0, and another NaN.
    bits = [0x7FF8, 0xFFF8, 0x8000, 0, 0x3FF0, 0x7FF4]
    floats = numpy.array([bits << 48 for bits in bits], numpy.uint64).view(numpy.float64)
    table = pa.table({"f": floats})
    found = pa.table(dray.sort(table, "f"))["f"].to_numpy().view(numpy.uint64)
    assert [int(value) >> 48 for value in found] == [0xFFF8, 0x8000, 0, 0x3FF0, 0x7FF4, 0x7FF8]
    assert pa.table(dray.sort(table, "f", distinct="keys")).num_rows == 3
