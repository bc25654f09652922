"""The pages that every reader accepts, made from their rows; and those that it refuses, each with
one thing changed (page.md).
"""

from dataclasses import dataclass

from page_writer import page
from writer import field, nullable, schema, u8, u16, u32


@dataclass(frozen=True)
class Accepted:
    name: str
    about: str
    schema: list[dict]
    rows: list[list]  # as vectors/README.md says
    page: bytes
    sequence: int = 0


def accept(name, about, fields, rows, **header) -> Accepted:
    return Accepted(
        name, about, fields, rows, page(fields, rows, **header), header.get("sequence", 0)
    )


WORKED = [field("n", "int32"), nullable("s", "utf8")]
WORKED_ROWS = [[7, "ab"], [-1, None], [2, "no room inline"]]
ITEM = field("item", "struct", children=[field("part", "int32"), nullable("quantity", "int16")])
ORDER = field(
    "order",
    "struct",
    children=[nullable("date", "date32"), field("items", "list", children=[ITEM])],
)
CUSTOMER = [field("key", "int32"), field("name", "utf8"), field("orders", "list", children=[ORDER])]
CUSTOMER_ROWS = [[5, "Miller", [[100, [[1, 10], [2, None]]], [None, []]]]]
X = [field("x", "int32")]


def worked_example() -> Accepted:
    return accept("worked-example", "page.md section 7", WORKED, WORKED_ROWS, checksummed=True)


def nested_example() -> Accepted:
    return accept("nested-example", "page.md section 8", CUSTOMER, CUSTOMER_ROWS)


def accepted_pages() -> list[Accepted]:
    return [vector for group in (headers, types, bits, strings, nested) for vector in group()]


def headers():
    yield worked_example()
    yield nested_example()
    yield accept("header-sequence", "sequence above 32 bits", X, [[7]], sequence=1 << 40)
    yield accept("header-checksum", "checksum present", X, [[7]], sequence=3, checksummed=True)
    yield accept("header-16-kib", "a larger page", X, [[7], [8]], page_bytes=16 << 10)
    text = [field("s", "utf8")]
    yield accept(
        "header-large",
        "flag large; 5,000 bytes",
        text,
        [["x" * 5000]],
        page_bytes=8 << 10,
        large=True,
    )
    yield accept(
        "header-large-12-kib",
        "no power of two",
        text,
        [["x" * 9000]],
        page_bytes=12 << 10,
        large=True,
        checksummed=True,
    )
    yield accept(
        "header-large-not-needed", "whether the object needed it is not asked", X, [[7]], large=True
    )
    yield accept("objects-no-fields", "objects of no fields", [], [[], [], []])
    yield accept(
        "objects-full", "no byte between objects and slots", X, [[i] for i in range(201)] + [[0]]
    )
    yield accept(
        "objects-full-text",
        "the same, with a tail at the end",
        text,
        [["y" * (4096 - 64 - 8 - 16 - 4 - 4)]],
    )


def every(values: dict, first=()) -> tuple[list[dict], list[list]]:
    """Columns of types with parameters and values, as fields and rows."""
    fields = [words for words, _ in values.values()]
    return fields, [
        list(row) for row in zip(*(column for _, column in values.values()), strict=True)
    ]


def types():
    exact = {}
    for size in (8, 16, 32, 64):
        least, most = -(1 << size - 1), (1 << size - 1) - 1
        words = [v if abs(v) <= 1 << 53 else str(v) for v in (least, most)]
        exact[f"i{size}"] = field(f"i{size}", f"int{size}"), words
        most = (1 << size) - 1
        exact[f"u{size}"] = (
            field(f"u{size}", f"uint{size}"),
            [0, most if most <= 1 << 53 else str(most)],
        )
    yield accept("types-integers", "least and greatest; 8, 4, 2 and 1 bytes mixed", *every(exact))
    yield accept(
        "types-floats",
        "negative zero, NaNs with payloads",
        [field("f16", "float16"), field("f64", "float64"), field("f32", "float32")],
        [["8000", "7ff4000000000001", "ffa00002"], ["7e01", "8000000000000000", "80000000"]],
    )
    decimals = [
        field(f"d{bits}", f"decimal{bits}", precision=9, scale=2) for bits in (32, 64, 128, 256)
    ]
    yield accept(
        "types-decimals",
        "16 and 32 bytes have alignment 8",
        decimals,
        [[-1, 5, -2, 3], [7, -8, str(10**30), str(-(10**60))]],
    )
    times = {
        "a": (field("a", "date32"), [-1, 19000]),
        "b": (field("b", "date64"), [86400000, -86400000]),
        "c": (field("c", "time32", unit="ms"), [0, 86399999]),
        "d": (field("d", "time64", unit="ns"), [1, 86399999999999]),
        "e": (field("e", "timestamp", unit="us", zone="UTC"), [0, -1]),
        "f": (field("f", "duration", unit="s"), [-5, 5]),
        "g": (field("g", "interval_months"), [-13, 13]),
        "h": (field("h", "interval_day_time"), [[-1, 2], [3, -4]]),
        "i": (field("i", "interval_month_day_nano"), [[1, -2, 3], [-1, 2, str(-(1 << 62))]]),
    }
    yield accept("types-times", "dates, times, intervals", *every(times))
    yield accept(
        "types-booleans",
        "one byte each",
        [field("a", "boolean"), nullable("b", "boolean")],
        [[True, False], [False, None]],
    )
    widths = [
        field("a", "fixed_binary", width=3),
        field("b", "int16"),
        nullable("c", "fixed_binary", width=16),
    ]
    yield accept(
        "types-fixed-binary",
        "alignment 1",
        widths,
        [["010203", 5, "ff" * 16], ["000000", -5, None]],
    )
    nulls = [nullable("n", "null"), field("x", "int8"), nullable("m", "null")]
    yield accept("types-null", "no bits and no bytes", nulls, [[None, 1, None], [None, 2, None]])
    words = nullable("d", "dictionary", index="int8", ordered=False, values={"type": "utf8"})
    yield accept(
        "types-dictionary",
        "the value itself",
        [words],
        [["low"], [None], ["a longer entry"], ["low"]],
    )
    mixed = [field("a", "int8"), field("b", "decimal128", precision=38, scale=0), field("c", "int16"), field("d", "int64"),
             field("e", "fixed_binary", width=5), field("f", "float32"), field("g", "boolean"), field("h", "utf8")]  # fmt: skip
    yield accept(
        "types-alignment",
        "b, d, h; f; c; a, e, g",
        mixed,
        [[1, 2, 3, 4, "0102030405", "3f800000", True, "h"]],
    )


def bits():
    for count in (8, 9, 33, 64, 65):
        fields = [nullable(f"c{i}", "int8") for i in range(count)]
        rows = [
            [i % 2 for i in range(count)],
            [None] * count,
            [None if i % 3 else i for i in range(count)],
        ]
        yield accept(f"bits-{count}", f"{count} nullable fields", fields, rows)
    deep = nullable(
        "inner",
        "struct",
        children=[
            nullable("x", "int16"),
            field("y", "utf8"),
            field("l", "list", children=[nullable("item", "int8")]),
        ],
    )
    fields = [
        nullable("s", "struct", children=[field("n", "int64"), deep, nullable("b", "boolean")]),
        nullable("z", "int8"),
    ]
    rows = [
        [[1, [2, "y", [3, None]], True], 4],
        [None, 5],
        [[6, None, None], None],
        [[7, [None, "a string of 21 bytes.", []], False], 8],
    ]
    yield accept("bits-structs", "structs in structs, inlined, missing at each level", fields, rows)
    yield accept(
        "bits-empty-struct",
        "a struct of no fields may be missing",
        [nullable("s", "struct", children=[])],
        [[[]], [None]],
    )


def strings():
    texts = ["", "a", "x" * 11, "x" * 12, "x" * 13, "Größe 📦", "語" * 4, "語" * 5, "aé" + "b" * 20]
    yield accept(
        "strings-lengths",
        "around 12 bytes, and not ASCII",
        [field("s", "utf8")],
        [[text] for text in texts],
    )
    yield accept(
        "strings-split-prefix",
        "the first four bytes end within a character",
        [field("s", "utf8")],
        [["abc語defghijkl"]],
    )
    yield accept(
        "strings-binary",
        "not UTF-8",
        [nullable("b", "binary")],
        [["ff" * n] for n in (0, 1, 12, 13, 40)] + [[None]],
    )
    fields = [field("a", "utf8"), field("n", "int64"), field("b", "binary"), nullable("c", "utf8")]
    rows = [
        ["first tail here", 1, "00" * 13, "third tail here"],
        ["short", 2, "ab" * 20, None],
        ["one more tail, first", 3, "", ""],
    ]
    yield accept("strings-tails", "several tails, at odd offsets", fields, rows)


def nested():
    def lists(name, about, item, rows, **parameters):
        return accept(
            f"lists-{name}",
            about,
            [field("l", "list", children=[item], **parameters)],
            [[row] for row in rows],
        )

    yield lists("numbers", "an array", field("item", "int32"), [[1, 2, 3], [], [4]])
    yield lists(
        "nullable",
        "a bitmap before the items",
        nullable("item", "int64"),
        [[1, None, 3], [None] * 8, list(range(65))],
    )
    yield lists(
        "booleans", "one byte each", nullable("item", "boolean"), [[True, None, False], [True]]
    )
    yield lists(
        "strings",
        "places first, then tails",
        nullable("item", "utf8"),
        [["short", None, "longer than twelve"], ["another long one", "and yet another"]],
    )
    yield lists(
        "fixed-binary",
        "a stride of 3",
        field("item", "fixed_binary", width=3),
        [["010203", "040506"], ["070809"]],
    )
    yield lists(
        "null",
        "items of no bytes, with an offset",
        nullable("item", "null"),
        [[None] * 3, [], [None]],
    )
    yield lists(
        "empty-structs",
        "the same; and with a bitmap",
        field("item", "struct", children=[]),
        [[[], []], []],
    )
    yield lists(
        "empty-structs-nullable",
        "a bitmap and nothing else",
        nullable("item", "struct", children=[]),
        [[[], None, []], []],
    )
    inner = nullable("inner", "list", children=[nullable("item", "int16")])
    yield lists("lists", "depth first", inner, [[[1, 2], None, [], [None, 4]], [[5]], []])
    yield lists(
        "strings-in-lists",
        "depth first, strings between lists",
        field("inner", "list", children=[field("item", "utf8")]),
        [[["a string of 20 bytes", "b"], [], ["another long string!"]]],
    )
    pair = nullable(
        "item",
        "struct",
        children=[
            nullable("s", "utf8"),
            field("b", "boolean"),
            nullable("l", "list", children=[field("item", "int8")]),
        ],
    )
    yield lists(
        "structs",
        "bits of the bitmap and bits of the record",
        pair,
        [[["thirteen long", True, [1, 2, 3]], None, [None, False, None]], [["s", True, []]]],
    )
    yield accept(
        "lists-missing",
        "missing, empty, and not",
        [nullable("l", "list", children=[field("item", "int8")])],
        [[None], [[]], [[1]]],
    )
    fields = [
        field("a", "list", children=[field("item", "int8")]),
        field("s", "utf8"),
        field("b", "list", children=[field("item", "int8")]),
    ]
    yield accept(
        "lists-alignment",
        "items at multiples of 8, strings anywhere",
        fields,
        [[[1, 2, 3], "a string of 20 bytes", [4]], [[], "short", [5]]],
    )
    three = nullable("f", "fixed_list", size=3, children=[nullable("item", "int16")])
    yield accept(
        "fixed-lists", "with a count as a list", [three], [[[1, None, 3]], [None], [[4, 5, 6]]]
    )
    none = nullable("f", "fixed_list", size=0, children=[field("item", "int16")])
    yield accept("fixed-lists-size-0", "empty or missing", [none], [[[]], [None]])
    inside = nullable(
        "s", "struct", children=[field("f", "fixed_list", size=2, children=[field("item", "int8")])]
    )
    yield accept(
        "fixed-lists-in-structs",
        "zeros where the struct is missing",
        [inside],
        [[[[1, 2]]], [None]],
    )
    keys = [field("keys", "utf8"), nullable("values", "int32")]
    yield accept(
        "maps",
        "lists of pairs",
        [nullable("m", "map", sorted=False, children=keys)],
        [[[["a", 1], ["a key of 15 byt", None]]], [None], [[]]],
    )
    entry = {"type": "list", "children": [nullable("item", "utf8")]}
    words = nullable("d", "dictionary", index="uint16", ordered=False, values=entry)
    yield accept(
        "dictionaries-of-lists",
        "values with tails",
        [words],
        [[["x", None]], [None], [["x", None]], [["a long string in it"]]],
    )
    item = {"type": "struct", "children": [nullable("x", "int8")]}
    words = nullable("item", "dictionary", index="int32", ordered=False, values=item)
    yield lists("dictionaries", "structs as entries", words, [[[1], None, [None]], [[1]]])


# --- refused ---


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def rejected_pages() -> dict[str, bytes]:
    groups = (headers_refused, extents_refused, values_refused, tails_refused, zeros_refused)
    vectors = [
        (name, u32(len(schema(*words))) + schema(*words) + data)
        for group in groups
        for name, words, data in group()
    ]
    vectors += [
        (f"schema-{name}", u32(len(data)) + data + page([], [[]])) for name, data in schemas()
    ]
    assert len(dict(vectors)) == len(vectors), "a name is used twice"
    return dict(vectors)


def schemas():
    yield "type-unknown", u32(1) + u32(0) + u8(1) + u8(99) + u16(0)
    yield "left-over", schema(field("x", "int8")) + b"\0"


def headers_refused():
    three = page(WORKED, WORKED_ROWS)  # objects at 64, 96, 128, end at 176
    summed = page(WORKED, WORKED_ROWS, checksummed=True)
    for name, at, new in (
        ("magic-chunk", 0, b"DRYC"),
        ("magic-zeros", 0, bytes(4)),
        ("version-1", 4, u16(1)),
        ("version-256", 4, u16(256)),
        ("flags-bit-2", 6, u16(4)),
        ("flags-bit-15", 6, u16(1 << 15)),
        ("reserved-32", 32, b"\1"),
        ("reserved-63", 63, b"\x80"),
        ("objects-0", 16, u32(0)),
        ("objects-in-large", 6, u16(2)),
        ("objects-end-in-header", 24, u32(56)),
        ("objects-end-in-slots", 24, u32(4088)),
        ("objects-end-late", 24, u32(184)),
        ("objects-too-many", 16, u32((1 << 32) - 1)),
        ("size-page-bytes-0", 20, u32(0)),
        ("size-page-bytes-other", 20, u32(8192)),
        ("size-page-bytes-2-31", 20, u32(1 << 31)),
        ("checksum-not-flagged", 28, u32(1)),
        ("slot-0", 4092, u32(72)),
        ("slot-last", 4084, u32(0)),
        ("slot-swapped", 4088, u32(64) + u32(96)),
        ("slot-beyond", 4088, u32(1 << 31)),
    ):
        yield name, WORKED, patched(three, at, new)
    yield "size-empty", WORKED, b""
    yield "size-header-cut", WORKED, three[:63]
    yield "size-header-only", WORKED, three[:64]
    yield "size-cut", WORKED, three[:-1]
    yield "size-more", WORKED, three + b"\0"
    yield "size-2-kib", X, page(X, [[7]], page_bytes=2048)
    yield "size-12-kib", X, page(X, [[7]], page_bytes=12 << 10)
    yield "size-large-6-kib", X, page(X, [[7]], page_bytes=6 << 10, large=True)
    yield "size-large-2-31", X, patched(page(X, [[7]], large=True), 20, u32(1 << 31))
    yield "checksum-field", WORKED, patched(summed, 28, u32(1))
    yield "checksum-object", WORKED, patched(summed, 88, b"\x08")
    yield "checksum-header", WORKED, patched(summed, 8, b"\1")
    yield "checksum-padding", WORKED, patched(summed, 2000, b"\1")
    wide = [field(f"f{i}", "fixed_binary", width=1 << 24) for i in range(128)]
    yield "limit-record", wide, page([], [[]])


def extents_refused():
    three = page(WORKED, WORKED_ROWS)
    for name, at, new in (
        ("extent-0", 64, 0),
        ("extent-unaligned", 64, 36),
        ("extent-less-than-record", 64, 24),
        ("extent-of-two", 64, 64),
        ("extent-beyond-objects", 128, 56),
        ("extent-2-31", 64, 1 << 31),
    ):
        yield name, WORKED, patched(three, at, u32(new))
    longer = patched(patched(three, 128, u32(56)), 24, u32(184))
    yield "extent-longer", WORKED, longer
    yield "extent-header-cut", [], patched(patched(page([], [[], []]), 24, u32(74)), 64, u32(8))
    yield "extent-no-fields-0", [], patched(page([], [[]]), 64, u32(0))


def values_refused():
    three = page(WORKED, WORKED_ROWS)
    yield "bitmap-validity", WORKED, patched(three, 68, b"\3")
    yield "bitmap-validity-last", WORKED, patched(three, 68, b"\x81")
    yield "missing-string", WORKED, patched(three, 96 + 8, b"\1a")
    yield "missing-string-bit-cleared", WORKED, patched(three, 68, b"\0")
    nine = [nullable(f"c{i}", "int8") for i in range(65)]
    yield "missing-number-65", nine, patched(page(nine, [[None] * 65]), 64 + 13 + 64, b"\1")
    inner = [nullable("x", "int16"), field("y", "int32")]
    structs = [nullable("s", "struct", children=inner)]
    missing = page(structs, [[None]])  # bits at 68; y at 72, x at 76
    yield "missing-struct-bit", structs, patched(missing, 68, b"\2")
    yield "missing-struct-field", structs, patched(missing, 72, b"\1")
    yield "missing-struct-nullable-field", structs, patched(missing, 77, b"\1")
    lists = [field("l", "list", children=[nullable("item", "int32")])]
    items = page(lists, [[[1, None, 3]]])  # place at 72, bitmap at 80, items at 88
    yield "missing-item", lists, patched(items, 92, b"\1")
    yield "bitmap-list", lists, patched(items, 80, b"\x0d")
    wide = [nullable("b", "fixed_binary", width=40)]
    yield "missing-fixed-binary", wide, patched(page(wide, [[None]]), 69 + 39, b"\1")
    nothing = [nullable("l", "list", children=[field("item", "int32")])]
    yield "missing-list", nothing, patched(page(nothing, [[None]]), 72 + 4, u32(1))
    booleans = [
        field("a", "boolean"),
        nullable("b", "boolean"),
        field("l", "list", children=[field("item", "boolean")]),
    ]
    rows = page(
        booleans, [[True, None, [True, False]]]
    )  # places at 80, 81; list at 72; items at 88
    yield "boolean-2", booleans, patched(rows, 80, b"\2")
    yield "boolean-255", booleans, patched(rows, 80, b"\xff")
    yield "boolean-item", booleans, patched(rows, 89, b"\x80")
    yield "missing-boolean", booleans, patched(rows, 81, b"\1")
    fixed = [nullable("f", "fixed_list", size=2, children=[field("item", "int32")])]
    there = page(fixed, [[[1, 2]]])
    yield "items-fixed-list-fewer", fixed, patched(there, 76, u32(1))
    yield "items-fixed-list-none", fixed, patched(page(fixed, [[None]]), 68, b"\1")
    plain = [field("l", "list", children=[field("item", "int32")])]
    yield "items-none-with-offset", plain, patched(page(plain, [[[]]]), 72, u32(16))
    nulls = [field("l", "list", children=[nullable("item", "null")])]
    yield "items-2-31", nulls, patched(page(nulls, [[[None]]]), 76, u32(1 << 31))


def tails_refused():
    three = page(WORKED, WORKED_ROWS)  # object 2 at 128: place at 136, tail at 156
    yield "string-behind", WORKED, patched(three, 72 + 6, b"c")
    yield "string-behind-last", WORKED, patched(three, 72 + 15, b"\1")
    yield "string-behind-empty", WORKED, patched(three, 96 + 4, b"\1\0\0\0" + bytes(4) + b"a")
    yield "string-prefix", WORKED, patched(three, 140, b"N")
    yield "string-reserved", WORKED, patched(three, 144, b"\1")
    yield "tail-early", WORKED, patched(three, 148, u32(27))
    yield "tail-late", WORKED, patched(three, 148, u32(29))
    yield "tail-0", WORKED, patched(three, 148, u32(0))
    yield "tail-length", WORKED, patched(three, 136, u32(21))
    yield "tail-length-2-31", WORKED, patched(three, 136, u32(1 << 31))
    yield "tail-length-most", WORKED, patched(three, 136, u32((1 << 32) - 1))
    two = [field("a", "utf8"), field("b", "utf8")]
    same = page(
        two, [["x" * 20, "x" * 20]]
    )  # places at 72 and 88, tails at 40 and 60 of the object
    yield "tail-shared", two, patched(same, 100, u32(40))
    yield "tail-swapped", two, patched(patched(same, 84, u32(60)), 100, u32(40))
    lists = [field("l", "list", children=[field("item", "int32")]), field("s", "utf8")]
    items = page(
        lists, [[[1, 2, 3], "a string of 20 bytes"]]
    )  # list at 72, items at 32 of the object
    yield "tail-items-early", lists, patched(items, 72, u32(24))
    yield "tail-items-unaligned", lists, patched(items, 72, u32(36))
    yield "tail-items-count", lists, patched(items, 76, u32(4))
    yield "tail-items-beyond", lists, patched(items, 76, u32(1 << 28))
    yield "tail-items-most", lists, patched(items, 76, u32((1 << 31) - 1))
    inner = [
        field("l", "list", children=[field("inner", "list", children=[field("item", "int8")])])
    ]
    data = page(inner, [[[[1], [2]]]])  # items at 80 and 88 of the page, of which each has one
    yield "tail-order", inner, patched(patched(data, 80, u32(40)), 88, u32(32))
    text = [field("s", "utf8")]
    yield "utf8-short", text, patched(page(text, [["abc"]]), 77, b"\xff")
    yield "utf8-short-cut", text, patched(page(text, [["abc"]]), 78, b"\xc3")
    yield "utf8-long", text, patched(page(text, [["x" * 40]]), 64 + 24 + 20, b"\x80")
    yield "utf8-long-cut", text, patched(page(text, [["x" * 20]]), 64 + 24 + 19, b"\xc3")
    yield "utf8-surrogate", text, patched(page(text, [["x" * 20]]), 64 + 24 + 8, b"\xed\xa0\x80")
    yield "utf8-overlong", text, patched(page(text, [["x" * 20]]), 64 + 24 + 8, b"\xc0\xaf")
    strings = [field("l", "list", children=[field("item", "utf8")])]
    yield "utf8-item", strings, patched(page(strings, [[["abc"]]]), 80 + 4, b"\xff")
    two_long = patched(page(two, [["x" * 20, "y" * 20]]), 64 + 40 + 19, b"\xc3\xa9")
    yield "utf8-split-between-strings", two, patched(two_long, 92, b"\xa9yyy")


def zeros_refused():
    three = page(WORKED, WORKED_ROWS)
    for name, at in (
        ("bits", 69),
        ("bits-last", 71),
        ("record", 92),
        ("object", 95),
        ("tails", 170),
        ("page", 176),
        ("slots", 4083),
    ):
        yield f"padding-behind-{name}", WORKED, patched(three, at, b"\1")
    customer = page(CUSTOMER, CUSTOMER_ROWS)
    for name, at in (
        ("before-items", 36),
        ("item-bits", 41),
        ("stride", 60),
        ("stride-last", 111),
        ("no-bits", 4),
    ):
        yield f"padding-{name}", CUSTOMER, patched(customer, 64 + at, b"\1")
    lists = [field("l", "list", children=[nullable("item", "int32")])]
    yield "padding-behind-bitmap", lists, patched(page(lists, [[[1, None, 3]]]), 81, b"\1")
    yield "padding-no-fields", [], patched(page([], [[]]), 68, b"\1")
