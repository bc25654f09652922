"""Writing Arrow's layouts, and values that a session could read otherwise."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from write_target import TABLE, Target

import dray

WORDS = ["a", None, "b", "b", "", None, "ü"]


def layouts(values: list[Any], kind: pa.DataType) -> list[pa.Array]:
    """The same values in all layouts, also as the middle of longer arrays."""
    plain = pa.array(values, kind)
    padded = pa.array([values[0], *values, values[0]], kind)
    odd = pa.array([None, *values, *values], kind).dictionary_encode()
    runs = pc.run_end_encode(padded)
    arrays = [
        plain,
        padded.slice(1, len(values)),
        plain.dictionary_encode(),
        odd.slice(1, len(values)),
        # The dictionary has a NULL of its own.
        pa.DictionaryArray.from_arrays(
            pa.array([None if i == 1 else i for i in range(len(values))], pa.int16()), plain
        ),
        pc.run_end_encode(plain),
        runs.slice(1, len(values)),
    ]
    if pa.types.is_string(kind):
        arrays += [plain.cast(pa.large_string()), padded.cast(pa.string_view()).slice(1, 7)]
    return arrays


def test_layouts(target: Target) -> None:
    target.oracle.prepare_threshold = None
    for values, kind in [
        (WORDS, pa.string()),
        ([1, None, 3, 3, -7, None, 2**62], pa.int64()),
        ([0.5, None, -0.0, 1e300, 1e300, None, 2.0], pa.float64()),
    ]:
        for array in layouts(values, kind):
            table = pa.table({"id": range(len(values)), "v": array})
            target.write(table, mode="replace")
            found = target.rows("w.t ORDER BY id", columns="v")
            assert found == [(v,) for v in values], array.type


def test_layouts_in_lists_and_json(target: Target) -> None:
    target.oracle.prepare_threshold = None
    for array in layouts(WORDS, pa.string()):
        if not pa.types.is_run_end_encoded(array.type):
            lists = pa.ListArray.from_arrays([0, 3, 3, 7], array)
            target.write(pa.table({"v": lists.slice(1)}), mode="replace")
            assert target.rows() == [([],), (WORDS[3:],)], array.type
        structs = pa.StructArray.from_arrays([array, pa.array(range(7))], ["w", "i"])
        target.write(pa.table({"v": structs.slice(2)}), mode="replace")
        assert target.rows() == [({"w": WORDS[i], "i": i},) for i in range(2, 7)], array.type
    numbers = pc.run_end_encode(pa.array([1, 1, None, 2]))
    structs = pa.StructArray.from_arrays([numbers], ["n"])
    target.write(pa.table({"v": structs}), mode="replace")
    assert target.rows() == [({"n": n},) for n in (1, 1, None, 2)]


def test_nulls_at_every_level(target: Target) -> None:
    values = [
        None,
        {"l": None, "s": None},
        {"l": [None, {"x": None}, {"x": [1, None]}], "s": {"m": None}},
        {"l": [], "s": {"m": [("k", None)]}},
    ]
    kind = pa.struct([
        ("l", pa.list_(pa.struct([("x", pa.list_(pa.int8()))]))),
        ("s", pa.struct([("m", pa.map_(pa.string(), pa.int32()))])),
    ])  # fmt: skip
    table = pa.table({"id": range(4), "v": pa.array(values, kind)})
    target.write(table)
    found = target.rows(columns="v")
    values[3] = {"l": [], "s": {"m": {"k": None}}}
    assert found == [(value,) for value in values]
    # Values below a NULL are not there.
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2])], ["x"], mask=pa.array([True, False])
    )  # fmt: skip
    target.write(pa.table({"v": hidden}), mode="replace")
    assert target.rows() == [(None,), ({"x": 2},)]


def test_documents_that_declare_an_encoding(target: Target) -> None:
    document = '<?xml version="1.0" encoding="ISO-8859-1"?><a>Grüße</a>'
    target.oracle.execute("CREATE TABLE w.t (v xml)")
    if target.server.version >= 16:
        # The servers of the test's own set-up are built without XML.
        return
    written = target.write(pa.table({"v": [document]}), mode="append")
    assert written.format == "text"
    assert target.rows(columns="(xpath('/a/text()', v))[1]::text") == [("Grüße",)]


def test_settings_that_change_what_text_means(target: Target) -> None:
    target.oracle.execute("CREATE TABLE w.t (i interval, a inet, n name)")
    target.dray.query("SET IntervalStyle TO sql_standard").close()
    kind = pa.month_day_nano_interval()
    intervals = pa.array([(-1, 2, 3_000_000), (1, -2, -3_000), (0, 0, -1_000)], kind)
    table = pa.table({"i": intervals, "a": ["::1"] * 3, "n": ["x" * 63] * 3})
    assert target.write(table, mode="append").format == "text"
    parts = "extract(month FROM i)::int, extract(day FROM i)::int, extract(epoch FROM i - "
    parts += "date_trunc('day', i))::numeric(12,6)::text"
    want = [(-1, 2, "0.003000"), (1, -2, "-0.000003"), (0, 0, "-0.000001")]
    assert target.rows(columns=parts) == want
    long = pa.table({"a": ["::1"], "n": ["x" * 64]})
    target.fails(long, 'column "n", row 1: .*at most 63 bytes', mode="append")
    target.fails(long.select(["n"]), "at most 63 bytes", mode="append")


def test_digits_beyond_the_declared_precision(target: Target) -> None:
    """pyarrow makes such arrays from buffers."""
    digits = (123_456).to_bytes(32, "little")
    wide = pa.Array.from_buffers(pa.decimal256(3, 1), 1, [None, pa.py_buffer(digits)])
    target.oracle.execute("CREATE TABLE w.t (v numeric, j jsonb)")
    structs = pa.StructArray.from_arrays([wide], ["d"])
    target.write(pa.table({"v": wide, "j": structs}), mode="append")
    assert target.rows(columns="v::text, j::text") == [("12345.6", '{"d": 12345.6}')]


def test_names_that_are_none(target: Target) -> None:
    for name, options, match in [
        ("", {}, "the table has an empty name"),
        ("a\0b", {}, "has a NUL"),
        ("t", {"schema": ""}, "the schema has an empty name.*leave it out"),
        ("t", {"schema": "a\0b"}, "has a NUL"),
        ("x" * 64, {}, "has 64 bytes, and names have 63"),
        ("Ä" * 32, {"mode": "append"}, "of the table has 64 bytes"),
        ("t", {"schema": "x" * 100}, "of the schema has 100 bytes"),
    ]:
        for partitions in (1, 2):
            if partitions == 2 and "mode" in options:
                continue
            with pytest.raises(dray.UsageError, match=match):
                target.dray.write(name, TABLE, partitions=partitions, **options)  # type: ignore[arg-type]
    for column, match in [("", "a column has an empty name"), ("x" * 64, "63")]:
        for mode in ("create", "append"):
            target.oracle.execute("DROP TABLE IF EXISTS w.t")
            if mode == "append":
                target.oracle.execute("CREATE TABLE w.t (a integer)")
            error = target.fails(pa.table({column: [1]}), match, mode=mode)
            assert isinstance(error, dray.UsageError)
    target.dray.write("y" * 63, TABLE)
    assert len(target.rows("w." + "y" * 63)) == 3


def test_many_codes_in_json_take_linear_time(target: Target) -> None:
    codes = pa.array([str(i % 100) for i in range(60_000)]).dictionary_encode()
    table = pa.table({"v": pa.StructArray.from_arrays([codes], ["c"])})
    assert target.write(table, types={"v": "json"}).encode_seconds < 5
    (text,) = target.rows(columns="v::text")[59_999]
    assert json.loads(text) == {"c": "99"}
