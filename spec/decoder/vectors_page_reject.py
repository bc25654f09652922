"""Refused pages: accepted ones with one thing changed (page.md section 9)."""

from page_writer import page
from vectors_page import *
from vectors_page_moved import moved_refused, patched
from writer import *  # the vocabulary of this page


def rejected_pages() -> dict[str, bytes]:
    groups = (
        headers_refused,
        extents_refused,
        values_refused,
        tails_refused,
        zeros_refused,
        moved_refused,
    )
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
        ("flags-bit-3", 6, u16(8)),
        ("flags-bit-15", 6, u16(1 << 15)),
        ("reserved-36", 36, b"\1"),
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
