"""The program's output files, read by other programs: every type through every format of export,
query and sort.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import io
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from server import Server, binary

import dray

D = decimal.Decimal
TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [binary(), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert "ERROR" not in done.stdout
    return done


def far_types() -> pa.Table:
    """Values at the ends of their types, beyond the range of calendars, floats and JSON."""
    # The least value is NumPy's NaT.
    numbers = [2**63 - 1, -(2**63) + 1, 0, None]
    days = [
        d - d % 86_400_000 if d is not None else None
        for d in (2**63 - 86_400_000, -(2**63) + 86_400_000, 0, None)
    ]
    zoned = pa.array([2**63 - 1, -(2**63) + 1, 1_700_000_000_000_000, None], pa.int64())
    columns = {
        "id": pa.array(range(4), pa.int32()),
        "date32": pa.array([2**31 - 1, -(2**31), 0, None], pa.int32()).view(pa.date32()),
        "date64": pa.array(days, pa.int64()).view(pa.date64()),
        "berlin": zoned.view(pa.timestamp("us", "Europe/Berlin")),
        "float64": pa.array([math.inf, -math.inf, math.nan, None]),
        "float32": pa.array([math.nan, 3.4e38, -math.inf, None], pa.float32()),
        "hundreds": pa.array([D(0), D("-12300"), D("99900"), None], pa.decimal128(3, -2)),
        "nines": pa.array([D("9" * 76), D("-" + "9" * 76), D(0), None], pa.decimal256(76, 0)),
    }
    for unit in TICKS:
        columns[f"timestamp_{unit}"] = pa.array(numbers, pa.int64()).view(pa.timestamp(unit))
        columns[f"duration_{unit}"] = pa.array(numbers, pa.int64()).view(pa.duration(unit))
    return pa.table(columns)


def dictionaries() -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """Batches with a dictionary each, as chunks of a result may have."""
    words = [["a", "b"], ["b", "c", None], ["x", "a"]]
    batches = []
    for number, dictionary in enumerate(words):
        keys = pa.array([0, 1, None, len(dictionary) - 1], pa.int8())
        word = pa.DictionaryArray.from_arrays(keys, pa.array(dictionary))
        lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), word)
        ids = pa.array(range(number * 4, number * 4 + 4), pa.int32())
        batches.append(pa.record_batch({"id": ids, "word": word, "list": lists}))
    return batches[0].schema, batches


def words(number: int) -> pa.Array:
    """More rows than a batch of a result, so that its dictionary is not unified with others."""
    keys = pa.array(np.arange(70_000) % 100, pa.int8())
    return pa.DictionaryArray.from_arrays(
        keys, pa.array([f"word {number + key % 90}" for key in range(100)])
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, pa.Table]]:
    folder = tmp_path_factory.mktemp("sources")
    schema, batches = dictionaries()
    large = [
        pa.record_batch({"id": range(n * 70_000, n * 70_000 + 70_000), "word": words(n)})
        for n in range(3)
    ]
    written = {
        "large": (large[0].schema, large),
        "all": (data.arrow_types().schema, data.arrow_types().to_batches()),
        "far": (far_types().schema, far_types().to_batches()),
        "words": (schema, batches),
    }
    sources = {}
    for name, (schema, batches) in written.items():
        path = folder / f"{name}_"
        write(path, schema, batches)
        sources[name] = (path, pa.Table.from_batches(batches))
    return sources


def write(folder: Path, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
    """Write a file for each batch, since a file has one dictionary for each column."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        with pa.ipc.new_file(folder / f"{number}.arrow", schema) as file:
            file.write_batch(batch)


Outputs = Callable[[str, str, list[str]], Path]


@pytest.fixture(params=["export", "query", "sort"])
def output(
    request: pytest.FixtureRequest,
    sources: dict[str, tuple[Path, pa.Table]],
    tmp_path: Path,
    served: Server,
) -> Outputs:
    """The file that one of the commands makes of some columns of a source."""
    formats = {"arrows": "arrow", "ndjson": "json"}

    def make(name: str, ending: str, columns: list[str]) -> Path:
        path = tmp_path / f"{name}.{ending}"
        names = ", ".join(f'"{column}"' for column in columns)
        sql = f"SELECT {names} FROM {name}_ ORDER BY id"
        if request.param == "export":
            done = run("export", served.unix, sql, "-o", path, "--quiet")
        elif request.param == "query":
            with open(path, "wb") as file:
                form = formats.get(ending, ending)
                command = [binary(), "query", served.unix, sql, "--format", form]
                done = subprocess.run(
                    command, stdout=file, stderr=subprocess.PIPE, text=True, timeout=60
                )
        else:
            table = sources[name][1].select(columns)
            source = tmp_path / f"{name}-{ending}"
            write(source, table.schema, table.to_batches())
            done = run("sort", source, "--by", "id", "-o", path, "--quiet")
        if done.returncode:
            raise RuntimeError(done.stderr)
        return path

    return make


@pytest.fixture(scope="module")
def served(
    sources: dict[str, tuple[Path, pa.Table]], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    folder = tmp_path_factory.mktemp("served")
    tables = [f"{path.name}={path}" for path, _ in sources.values()]
    server = Server(folder, *tables)
    yield server
    server.stop()


def plain(array: pa.ChunkedArray) -> list[Any]:
    """Values that can be compared: instants and durations as nanoseconds, days as numbers."""
    data_type = array.type
    if pa.types.is_dictionary(data_type):
        return plain(
            pa.chunked_array(
                [chunk.dictionary_decode() for chunk in array.chunks], data_type.value_type
            )
        )
    values = [value for chunk in array.chunks for value in numbers(chunk)]
    if pa.types.is_date64(data_type):
        return [None if value is None else value // 86_400_000 for value in values]
    if (
        pa.types.is_timestamp(data_type)
        or pa.types.is_duration(data_type)
        or pa.types.is_time(data_type)
    ):
        return [
            None if value is None else value * (10**9 // TICKS[data_type.unit]) for value in values
        ]
    if pa.types.is_floating(data_type):
        return [None if value is None else repr(float(value)) for value in values]
    return values


def numbers(chunk: pa.Array) -> list[Any]:
    if pa.types.is_temporal(chunk.type) and not pa.types.is_interval(chunk.type):
        width = {32: pa.int32(), 64: pa.int64()}[chunk.type.bit_width]
        return list(chunk.view(width).to_pylist())
    if isinstance(chunk, pa.ExtensionArray):
        return numbers(chunk.storage)
    return list(chunk.to_pylist())


def check(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert plain(found.column(name)) == plain(expected.column(name)), name


NO_PARQUET = ["interval"]


@pytest.mark.parametrize("name", ["all", "far", "words", "large"])
def test_arrow_stream(
    output: Outputs, sources: dict[str, tuple[Path, pa.Table]], name: str
) -> None:
    expected = sources[name][1]
    check_arrow(
        pa.ipc.open_stream(output(name, "arrows", expected.column_names)).read_all(), expected
    )


# `query` writes to a pipe. An Arrow file needs a file, because its footer has offsets.
@pytest.mark.parametrize("output", ["export", "sort"], indirect=True)
@pytest.mark.parametrize("name", ["all", "far", "words", "large"])
def test_arrow_file(output: Outputs, sources: dict[str, tuple[Path, pa.Table]], name: str) -> None:
    expected = sources[name][1]
    check_arrow(pa.ipc.open_file(output(name, "arrow", expected.column_names)).read_all(), expected)


def check_arrow(found: pa.Table, expected: pa.Table) -> None:
    found.validate(full=True)
    check(found, expected)
    for field in expected.schema:
        # Variants that differ only in layout have one form on the wire.
        if not any(
            kind(field.type)
            for kind in (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)
        ):
            if not (pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type)):
                assert found.schema.field(field.name).type == with_wide_keys(field.type)


def with_wide_keys(data_type: pa.DataType) -> pa.DataType:
    """The type in a table of several files, whose dictionaries together need wide keys."""
    if pa.types.is_dictionary(data_type):
        return pa.dictionary(pa.int32(), data_type.value_type, data_type.ordered)
    if pa.types.is_list(data_type):
        item = data_type.value_field
        return pa.list_(item.with_type(with_wide_keys(item.type)))
    return data_type


@pytest.mark.parametrize("name", ["all", "words"])
def test_parquet(output: Outputs, sources: dict[str, tuple[Path, pa.Table]], name: str) -> None:
    expected = sources[name][1]
    expected = expected.select(
        [column for column in expected.column_names if column not in NO_PARQUET]
    )
    path = output(name, "parquet", expected.column_names)
    check(pyarrow.parquet.read_table(path), expected)
    for column in pyarrow.parquet.read_schema(path):
        leaf = pyarrow.parquet.ParquetFile(path).schema.column(0)
        assert leaf is not None
        assert column.type not in (pa.timestamp("s"), pa.time32("s"), pa.date64())
    with duckdb.connect() as connection:
        types = dict(
            connection.execute(
                f"SELECT column_name, column_type FROM (DESCRIBE FROM '{path}')"
            ).fetchall()
        )
        if name == "all":
            assert (
                types["date64"] == "DATE"
                and types["time32_s"] == "TIME"
                and types["timestamp_s"].startswith("TIMESTAMP")
            )
            assert types["decimal32"] == "DECIMAL(7,2)" and types["decimal64"] == "DECIMAL(16,4)"
        # Ignore Arrow's own schema, which pyarrow would read beside Parquet's.
        for column in expected.column_names:
            if pa.types.is_integer(expected.schema.field(column).type) or column in (
                "decimal32",
                "decimal64",
                "date64",
                "string",
            ):
                found = connection.execute(
                    f"SELECT \"{column}\" FROM '{path}' ORDER BY id"
                ).fetchall()
                assert [value for (value,) in found] == expected.column(column).to_pylist(), column


def test_what_parquet_lacks(served: Server, tmp_path: Path) -> None:
    for column in ("interval",):
        done = run(
            "export", served.unix, f'SELECT "{column}" FROM all_', "-o", tmp_path / "x.parquet"
        )
        assert (
            done.returncode == 4
            and f'column "{column}"' in done.stderr
            and "cast it" in done.stderr
        ), done.stderr
    for column in ("timestamp_s", "date64"):
        done = run(
            "export", served.unix, f"SELECT {column} FROM far_", "-o", tmp_path / "x.parquet"
        )
        assert done.returncode == 4 and "doesn't fit" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def text_of(value: Any, data_type: pa.DataType) -> Callable[[str], bool]:
    """A predicate that tells whether a text stands for a value, according to NumPy and Python."""
    if pa.types.is_float64(data_type) or pa.types.is_float16(data_type):
        return lambda text: repr(float(text.replace("Infinity", "inf"))) == repr(float(value))
    if pa.types.is_float32(data_type):
        return lambda text: (
            np.float32(text.replace("Infinity", "inf")).tobytes() == np.float32(value).tobytes()
        )
    if pa.types.is_decimal(data_type):
        return lambda text: text == format(D(value), "f") or (value == 0 and D(text) == 0)
    if pa.types.is_boolean(data_type):
        return lambda text: text == str(value).lower()
    if (
        pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
        or pa.types.is_fixed_size_binary(data_type)
    ):
        return lambda text: text == bytes(value).hex()
    if pa.types.is_binary_view(data_type):
        return lambda text: text == bytes(value).hex()
    if pa.types.is_date32(data_type):
        return lambda text: text.lstrip("+") == str(np.datetime64(value, "D"))
    if pa.types.is_date64(data_type):
        return lambda text: (
            text.lstrip("+").split("T")[0] == str(np.datetime64(value // 86_400_000, "D"))
        )
    if pa.types.is_timestamp(data_type):
        return lambda text: instant(text) == (moment(str(np.datetime64(value, data_type.unit))))
    if pa.types.is_time(data_type):
        exact = np.datetime64(value, data_type.unit)
        return lambda text: moment(f"1970-01-01T{text}") == moment(str(exact))
    if pa.types.is_duration(data_type):
        exact = D(value) / TICKS[data_type.unit]
        return lambda text: (
            D(0) == exact if text == "P0D" else D(text.replace("PT", "").rstrip("S")) == exact
        )
    return lambda text: text == str(value)


def moment(text: str) -> tuple[str, D]:
    """The text up to the minute, and the seconds."""
    minute, _, seconds = text.lstrip("+").rpartition(":")
    return minute, D(seconds)


def instant(text: str) -> tuple[str, D]:
    """The same in UTC."""
    if text[-6] not in "+-" or text[-3] != ":":
        return moment(text.rstrip("Z"))
    local = dt.datetime.fromisoformat(text)
    return moment(local.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat())


def has_text(data_type: pa.DataType) -> bool:
    return not (pa.types.is_nested(data_type) or pa.types.is_interval(data_type))


def exactly(table: pa.Table, name: str) -> list[Any]:
    """The values of a column; times as integers."""
    column = table.column(name)
    return [
        value
        for chunk in column.chunks
        for value in (
            chunk.dictionary_decode().to_pylist()
            if pa.types.is_dictionary(column.type)
            else numbers(chunk)
        )
    ]


@pytest.mark.parametrize("name", ["all", "far", "words"])
@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_text(
    output: Outputs, sources: dict[str, tuple[Path, pa.Table]], name: str, ending: str
) -> None:
    expected = sources[name][1]
    expected = expected.select([field.name for field in expected.schema if has_text(field.type)])
    text = output(name, ending, expected.column_names).read_text()
    rows: list[dict[str, Any]]
    if ending == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
    else:
        rows = [
            json.loads(line, parse_float=str, parse_int=str, parse_constant=pytest.fail)
            for line in text.splitlines()
        ]
    for field in expected.schema:
        data_type = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        data_type = (
            data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
        )
        for row, value in zip(rows, exactly(expected, field.name), strict=True):
            found = row[field.name]
            if value is None:
                assert found == ("" if ending == "csv" else None), field.name
            else:
                found = str(found).lower() if isinstance(found, bool) else found
                assert text_of(value, data_type)(found), (field.name, value, found)


def test_nested_json(output: Outputs, sources: dict[str, tuple[Path, pa.Table]]) -> None:
    expected = sources["all"][1].select(
        ["id", "list", "large_list", "struct", "list_of_struct", "fixed_list", "map"]
    )
    lines = output("all", "ndjson", expected.column_names).read_text().splitlines()
    want = expected.to_pylist()
    for row in want:
        row["map"] = None if row["map"] is None else dict(row["map"])
    assert [json.loads(line) for line in lines] == want
    words = sources["words"][1].select(["id", "word", "list"])
    lines = output("words", "ndjson", words.column_names).read_text().splitlines()
    assert [json.loads(line) for line in lines] == words.to_pylist()


def test_table(served: Server) -> None:
    done = run(
        "query",
        served.unix,
        "SELECT date32, timestamp_us, hundreds FROM far_ ORDER BY id",
        "--format",
        "table",
    )
    assert "+5881580-07-11" in done.stdout and "+294247-01-10T04:00:54.775807" in done.stdout, (
        done.stdout
    )
    done = run(
        "query",
        served.unix,
        "SELECT make_array(date32) AS days FROM far_ ORDER BY id",
        "--format",
        "table",
    )
    assert "[-5877641-06-23]" in done.stdout, done.stdout


def test_duckdb_reads_csv(output: Outputs, sources: dict[str, tuple[Path, pa.Table]]) -> None:
    columns = ["id", "int64", "uint64", "decimal_38", "date32", "timestamp_us", "string"]
    path = output("all", "csv", columns)
    names = {"id": "INT", "int64": "BIGINT", "uint64": "UBIGINT", "decimal_38": "DECIMAL(38,10)"}
    names |= {"date32": "DATE", "timestamp_us": "TIMESTAMP", "string": "VARCHAR"}
    with duckdb.connect() as connection:
        found = connection.execute(
            "FROM read_csv(?, header = true, columns = ?, allow_quoted_nulls = false)",
            [str(path), names],
        )
        assert found.fetchall() == [
            tuple(row.values()) for row in sources["all"][1].select(columns).to_pylist()
        ]


def test_narrow_dictionaries_of_several_tables(tmp_path: Path) -> None:
    """Keys of 8 bits, as each file has them, are too few for the words of both."""
    for name, first in [("a", 0), ("b", 100)]:
        entries = pa.array([f"word {first + n:03}" for n in range(100)])
        words = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), entries)
        batch = pa.record_batch({"word": words})
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", batch.schema) as file:
            file.write_batch(batch)
    inputs = [tmp_path / "a.arrow", tmp_path / "b.arrow"]
    expected = [f"word {n:03}" for n in range(199, -1, -1)]

    done = run("sort", *inputs, "--by", "word:desc", "-o", tmp_path / "sorted.arrow", "--quiet")
    assert done.returncode == 0, done.stderr
    found = pa.ipc.open_file(tmp_path / "sorted.arrow").read_all()["word"]
    assert plain(found) == expected
    assert found.type == pa.dictionary(pa.int32(), pa.string())

    server = Server(tmp_path, *map(str, inputs))
    both = "(SELECT word FROM a UNION ALL SELECT word FROM b)"
    with dray.connect(server.unix) as connection:
        for sql in [
            "SELECT word FROM a UNION ALL SELECT word FROM b ORDER BY word DESC",
            "SELECT word FROM b UNION SELECT word FROM a ORDER BY word DESC",
            f"SELECT x.word FROM {both} x JOIN {both} y ON x.word = y.word ORDER BY 1 DESC",
        ]:
            assert plain(connection.query(sql).arrow()["word"]) == expected, sql
    server.stop()
