"""Accepted chunks: headers, types and nulls. Each declares its bytes, and what they mean."""

from dataclasses import dataclass

from writer import *  # the vocabulary of this page

NONE = NONE_MISSING


@dataclass(frozen=True)
class Accepted:
    name: str
    about: str
    schema: list[dict]
    chunk: bytes
    rows: int
    decoded: int
    columns: list[list]  # in the form of vectors/README.md
    sequence: int = 0


def accept(
    name, about, schema, columns, parts, decoded, rows=None, sequence=0, **header
) -> Accepted:
    rows = len(columns[0]) if rows is None else rows
    return Accepted(
        name,
        about,
        schema,
        chunk(rows, parts, decoded, sequence=sequence, **header),
        rows,
        decoded,
        columns,
        sequence,
    )


def accepted_chunks() -> list[Accepted]:
    return [vector for group in (headers, types, nulls) for vector in group()]


def worked_example() -> Accepted:
    """chunk.md section 8."""
    return accept(
        "worked-example",
        "chunk.md section 8",
        [field("n", "int32"), nullable("s", "utf8")],
        [[7, -1, 2], ["ab", None, ""]],
        [NONE, plain(numbers("i", 7, -1, 2)), dense("101"), strings(b"ab", b"", b"")],
        decoded=3 * 4 + 1 + (4 * 4 + 2),
        checksummed=True,
    )


def headers():
    yield worked_example()
    yield accept("header-no-columns", "rows without columns", [], [], [], decoded=0, rows=3)
    one = [field("x", "int32")], [[7]], [NONE, constant(numbers("i", 7))]
    yield accept(
        "header-sequence", "sequence above 32 bits, no checksum", *one, decoded=4, sequence=1 << 40
    )
    yield accept(
        "header-checksum", "checksum present", *one, decoded=4, sequence=3, checksummed=True
    )
    yield accept(
        "header-jumbo",
        "flag jumbo; whether the row needed it is not asked",
        *one,
        decoded=4,
        jumbo=True,
    )
    yield accept(
        "header-checksum-jumbo", "both flags", *one, decoded=4, jumbo=True, checksummed=True
    )
    many = [field(f"c{i}", "uint8") for i in range(40)]
    parts = [[NONE, plain(u8(i))] for i in range(40)]
    yield accept(
        "header-many-columns",
        "descriptors of more than 64 bytes",
        many,
        [[i] for i in range(40)],
        parts,
        decoded=40,
        checksummed=True,
    )
    names = [
        field("", "boolean"),
        field("a", "boolean"),
        field("a", "boolean"),
        field("Größe 📦", "boolean"),
    ]
    yield accept(
        "schema-names",
        "empty, repeated and other names",
        names,
        [[True]] * 4,
        [[NONE, constant(b"\1")]] * 4,
        decoded=4,
    )
    extensions = [
        field("id", "fixed_binary", width=16, metadata=[["ARROW:extension:name", "arrow.uuid"]]),
        field(
            "doc",
            "utf8",
            metadata=[
                ["ARROW:extension:name", "arrow.json"],
                ["ARROW:extension:metadata", ""],
                ["k", "é"],
            ],
        ),
    ]
    id = bytes(range(16))
    parts = [NONE, plain(id), NONE, strings(b'{"a":1}')]
    yield accept(
        "schema-extensions",
        "extension types as metadata",
        extensions,
        [[id.hex()], ['{"a":1}']],
        parts,
        decoded=16 + 8 + 7,
    )


def fixed(name, about, *columns, **header):
    """A chunk of plain columns, each given as field words, bytes of all values, and values."""
    parts = [[NONE, plain(data)] for _, data, _ in columns]
    decoded = sum(len(data) for _, data, _ in columns)
    return accept(
        name,
        about,
        [words for words, _, _ in columns],
        [values for _, _, values in columns],
        parts,
        decoded,
        **header,
    )


def types():
    def signed(bits, format):
        values = [-(1 << bits - 1), (1 << bits - 1) - 1, -1]
        return field(f"i{bits}", f"int{bits}"), numbers(format, *values), list(map(exact, values))

    def unsigned(bits, format):
        values = [0, (1 << bits) - 1, 1 << bits - 1]
        return field(f"u{bits}", f"uint{bits}"), numbers(format, *values), list(map(exact, values))

    sizes = ((8, "bB"), (16, "hH"), (32, "iI"), (64, "qQ"))
    yield fixed(
        "types-signed",
        "least, greatest and -1",
        *(signed(bits, formats[0]) for bits, formats in sizes),
    )
    yield fixed(
        "types-unsigned",
        "least, greatest and the middle",
        *(unsigned(bits, formats[1]) for bits, formats in sizes),
    )
    yield fixed(
        "types-floats",
        "negative zero, infinity, a quiet and a signalling NaN with payloads",
        (
            field("f16", "float16"),
            numbers("H", 0x8000, 0x7C00, 0x7E01, 0xFD55),
            ["8000", "7c00", "7e01", "fd55"],
        ),
        (
            field("f32", "float32"),
            numbers("I", 1 << 31, 0x7F800000, 0x7FC00001, 0xFFA00002),
            ["80000000", "7f800000", "7fc00001", "ffa00002"],
        ),
        (
            field("f64", "float64"),
            numbers("Q", 1 << 63, 0xFFF0 << 48, 0x7FF8 << 48 | 1, 0x7FF4 << 48 | 2),
            ["8000000000000000", "fff0000000000000", "7ff8000000000001", "7ff4000000000002"],
        ),
    )
    decimals = []
    for bits, precision, scale in ((32, 9, 2), (64, 18, 0), (128, 38, 38), (256, 76, -3)):
        greatest = 10**precision - 1
        data = integers(bits // 8, greatest, -greatest, 0)
        words = field(f"d{bits}", f"decimal{bits}", precision=precision, scale=scale)
        decimals.append((words, data, list(map(exact, (greatest, -greatest, 0)))))
    yield fixed(
        "types-decimals", "greatest, least and 0 of each, unscaled; scales 2, 0, 38, -3", *decimals
    )
    moment = 1_700_000_000_123_456_789
    yield fixed(
        "types-dates-times",
        "each unit, with and without a zone",
        (field("date32", "date32"), numbers("i", -719162, 19675), [-719162, 19675]),
        (
            field("date64", "date64"),
            numbers("q", -86400000, 1699920000000),
            [-86400000, 1699920000000],
        ),
        (field("t s", "time32", unit="s"), numbers("i", 0, 86399), [0, 86399]),
        (field("t ms", "time32", unit="ms"), numbers("i", 0, 86399999), [0, 86399999]),
        (field("t us", "time64", unit="us"), numbers("q", 0, 86399999999), [0, 86399999999]),
        (field("t ns", "time64", unit="ns"), numbers("q", 0, 86399999999999), [0, 86399999999999]),
        (
            field("ts s", "timestamp", unit="s", zone=""),
            numbers("q", -1, 1700000000),
            [-1, 1700000000],
        ),
        (
            field("ts ms", "timestamp", unit="ms", zone="UTC"),
            numbers("q", -1, 1700000000123),
            [-1, 1700000000123],
        ),
        (
            field("ts us", "timestamp", unit="us", zone="Europe/Berlin"),
            numbers("q", -1, 1700000000123456),
            [-1, 1700000000123456],
        ),
        (
            field("ts ns", "timestamp", unit="ns", zone="+02:00"),
            numbers("q", -1, moment),
            [-1, str(moment)],
        ),
        *(
            (field(f"d {unit}", "duration", unit=unit), numbers("q", -5, 5), [-5, 5])
            for unit in ("s", "ms", "us", "ns")
        ),
    )
    yield fixed(
        "types-intervals",
        "months; days and milliseconds; months, days and nanoseconds",
        (field("m", "interval_months"), numbers("i", 14, -1), [14, -1]),
        (field("dt", "interval_day_time"), numbers("i", 1, -2, -3, 4), [[1, -2], [-3, 4]]),
        (
            field("mdn", "interval_month_day_nano"),
            struct.pack("<iiqiiq", 1, -2, 3, -4, 5, -(1 << 62)),
            [[1, -2, 3], [-4, 5, str(-(1 << 62))]],
        ),
    )
    yield fixed(
        "types-fixed-binary",
        "widths 1, 3 and 16",
        *(
            (
                field(f"b{w}", "fixed_binary", width=w),
                bytes(range(2 * w)),
                [bytes(range(w)).hex(), bytes(range(w, 2 * w)).hex()],
            )
            for w in (1, 3, 16)
        ),
    )
    yield accept(
        "types-null-boolean",
        "the type null, nullable and not, and booleans",
        [nullable("nothing", "null"), field("nothing", "null"), field("b", "boolean")],
        [[None] * 9, [None] * 9, [True, False, False, True, True, False, True, False, True]],
        [ALL_MISSING, ALL_MISSING, NONE, booleans("100110101")],
        decoded=2,
    )
    texts = ["", "a", "žluťoučký kůň", "\0", "📦" * 3]
    blobs = [b"", b"\xff\xfe", b"\x80", b"\0", b"abc"]
    encoded = [text.encode() for text in texts]
    yield accept(
        "types-strings",
        "characters of 1 to 4 bytes, NUL, empty; binary that is not UTF-8",
        [field("s", "utf8"), field("b", "binary")],
        [texts, [blob.hex() for blob in blobs]],
        [NONE, strings(*encoded), NONE, strings(*blobs)],
        decoded=24 + sum(map(len, encoded)) + 24 + sum(map(len, blobs)),
    )


def exact(value: int) -> int | str:
    return value if abs(value) <= 1 << 53 else str(value)


def nulls():
    here = "1011011101"  # 10 values, 3 missing
    kinds = [
        (
            "boolean",
            booleans("1010010100"),
            booleans("1101010"),
            [True, None, True, False, None, True, False, True, None, False],
            2,
        ),
        (
            "int16",
            plain(numbers("h", 1, 0, -2, 3, 0, 4, 5, 6, 0, 7)),
            plain(numbers("h", 1, -2, 3, 4, 5, 6, 7)),
            [1, None, -2, 3, None, 4, 5, 6, None, 7],
            20,
        ),
        (
            "utf8",
            strings(b"a", b"", b"", b"bc", b"", b"d", b"e", b"", b"", b"f"),
            strings(b"a", b"", b"bc", b"d", b"e", b"", b"f"),
            ["a", None, "", "bc", None, "d", "e", "", None, "f"],
            50,
        ),
        (
            "binary",
            strings(b"a", b"", b"", b"\xbc", b"", b"d", b"e", b"", b"", b"f"),
            strings(b"a", b"", b"\xbc", b"d", b"e", b"", b"f"),
            ["61", None, "", "bc", None, "64", "65", "", None, "66"],
            49,
        ),
    ]
    for type, dense_values, packed_values, expected, held in kinds:
        words = [nullable("x", type)]
        yield accept(
            f"nulls-dense-{type}",
            "every value has its place",
            words,
            [expected],
            [dense(here), dense_values],
            decoded=2 + held,
        )
        yield accept(
            f"nulls-packed-{type}",
            "missing values are left out",
            words,
            [expected],
            [packed(here), packed_values],
            decoded=2 + held,
        )
        empty = {"boolean": 2, "int16": 20, "utf8": 44, "binary": 44}[type]
        yield accept(
            f"nulls-all-{type}",
            "every value is missing: one byte",
            words,
            [[None] * 10],
            [ALL_MISSING],
            decoded=2 + empty,
        )
        no_values = {"boolean": booleans(""), "int16": plain(b"")}.get(type, strings())
        yield accept(
            f"nulls-packed-none-left-{type}",
            "packed, with no value left",
            words,
            [[None] * 10],
            [packed("0" * 10), no_values],
            decoded=2 + empty,
        )
    ten = [nullable("x", "int64")]
    expected = [
        exact(v) if v is not None else None for v in [5, None, 6, 7, None, 8, 9, 5, None, 6]
    ]
    yield accept(
        "nulls-packed-frame",
        "packed values in a frame",
        ten,
        [expected],
        [packed(here), frame(3, numbers("q", 5), [0, 1, 2, 3, 4, 0, 1])],
        decoded=2 + 80,
    )
    yield accept(
        "nulls-packed-constant",
        "a constant for the values that are there",
        ten,
        [[4 if c == "1" else None for c in here]],
        [packed(here), constant(numbers("q", 4))],
        decoded=2 + 80,
    )
    repeated = dictionary(2, plain(numbers("q", -1, 9)), plain(numbers("I", 0, 1, 1, 0, 0, 1, 0)))
    yield accept(
        "nulls-packed-dictionary",
        "indexes for the values that are there",
        ten,
        [[-1, None, 9, 9, None, -1, -1, 9, None, -1]],
        [packed(here), repeated],
        decoded=2 + 80,
    )
    yield accept(
        "nulls-nullable-none-missing",
        "nullable, but nothing is missing",
        [nullable("x", "int8")],
        [[1, 2]],
        [NONE, plain(b"\1\2")],
        decoded=2,
    )
    eight = [nullable("x", "boolean"), nullable("y", "int8")]
    yield accept(
        "nulls-whole-bytes",
        "bitmaps that end with a byte",
        eight,
        [[True, None] * 4, [None] * 7 + [1]],
        [packed("10" * 4), constant(b"\1"), dense("0" * 7 + "1"), plain(bytes(7) + b"\1")],
        decoded=1 + 1 + 1 + 8,
    )
    text = "nulls-dense-value-beneath"
    yield accept(
        text,
        "a reader does not look under missing values",
        [nullable("x", "int8"), nullable("s", "utf8")],
        [[1, None], [None, "b"]],
        [dense("10"), plain(b"\1\7"), dense("01"), strings(b"a", b"b")],
        decoded=1 + 2 + 1 + 14,
    )
