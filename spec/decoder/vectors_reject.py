"""Refused chunks. A vector's name begins, up to the first hyphen, with the name of the refusal
(chunk.md section 9).

Each chunk breaks one rule, so every reader finds the same violation, in whatever order it reads
within a column.
"""

from vectors_coded import rejected_coded
from vectors_huffman import rejected_huffman
from vectors_reject_values import NONE, SEVEN, SEVENS, XS, B, S, X, rejected_values, sevens
from vectors_state import rejected_states
from writer import *  # the vocabulary of this page


def rejected_chunks() -> dict[str, bytes]:
    groups = (
        headers,
        limits,
        grammar,
        rejected_values,
        rejected_coded,
        rejected_huffman,
        rejected_states,
        left_over,
    )
    vectors = [
        (name, container(schema(*words), data)) for group in groups for name, words, data in group()
    ]
    vectors += [(f"schema-{name}", container(data, chunk(1, [], 0))) for name, data in schemas()]
    assert len(dict(vectors)) == len(vectors), "a name is used twice"
    return dict(vectors)


def headers():
    yield "magic-other", X, sevens(magic=b"DRYD")
    yield "magic-zeros", X, sevens(magic=bytes(4))
    yield "version-1", X, sevens(version=1)
    yield "version-256", X, sevens(version=256)
    yield "flags-bit-2", X, sevens(other_flags=1 << 2)
    yield "flags-bit-15", X, sevens(other_flags=1 << 15)
    yield "rows-0", [], chunk(0, [], 0)
    yield "rows-jumbo-2", [], chunk(2, [], 0, jumbo=True)
    yield "reserved-header-44", X, sevens(reserved=b"\1" + bytes(19))
    yield "reserved-header-last", X, sevens(reserved=bytes(19) + b"\x80")
    yield "reserved-padding-descriptors", X, sevens(padding=b"\1")
    two = chunk(1, [NONE, plain(b"\1"), NONE, plain(b"\2")], 2)
    yield (
        "reserved-padding-body",
        [field("x", "int8"), field("y", "int8")],
        patched(two, 128 + 7, b"\1"),
    )
    yield "reserved-padding-checksummed", X, sevens(padding=b"\1", checksummed=True)
    yield "size-empty", X, b""
    yield "size-header-cut", X, sevens()[:63]
    yield "size-header-only", X, sevens()[:64]
    yield "size-body-cut", X, sevens()[:-1]
    yield "size-body-more", X, sevens() + b"\0"
    yield "size-padding-cut", [field("x", "int8")], chunk(1, [NONE, constant(b"\1")], 1)[: 64 + 3]
    yield "checksum-field", X, sevens(checksummed=True, checksum_xor=1)
    yield "checksum-body", X, patched(sevens(checksummed=True), 128, b"\6")
    yield "checksum-header", X, patched(sevens(checksummed=True), 8, b"\1")
    yield "checksum-descriptors", X, patched(sevens(checksummed=True), 64 + 3, b"\0")
    yield "checksum-not-flagged", X, sevens(checksum_xor=1)


def limits():
    nothing = [nullable("n", "null")]
    item = [field("item", "null", nullable=True)]
    yield "limit-chunk-bytes", X, patched(sevens(), 24, u32(16 << 20))
    yield "limit-chunk-bytes-descriptors", X, patched(sevens(), 20, u32((1 << 32) - 1))
    yield (
        "limit-chunk-bytes-jumbo",
        X,
        patched(chunk(1, [NONE, constant(u32(1))], 4, jumbo=True), 24, u32(256 << 20)),
    )
    yield "limit-decoded-bytes", X, chunk(3, SEVENS, (64 << 20) + 1)
    yield "limit-decoded-bytes-64-bits", X, chunk(3, SEVENS, 1 << 63)
    yield (
        "limit-decoded-bytes-jumbo",
        X,
        chunk(1, [NONE, constant(u32(1))], (256 << 20) + 1, jumbo=True),
    )
    yield "limit-rows", nothing, chunk(1 << 31, [ALL_MISSING], 0)
    over = (1 << 24) + 1  # one too many values that take no bytes
    yield "limit-rows-of-nulls", nothing, chunk(over, [ALL_MISSING], 0)
    yield "limit-rows-without-columns", [], chunk(over, [], 0)
    two = nothing + [field("m", "null", nullable=True)]
    yield (
        "limit-rows-of-nulls-in-two-columns",
        two,
        chunk(1 << 23 | 1, [ALL_MISSING, ALL_MISSING], 0),
    )
    yield "limit-rows-of-empty-structs", [field("s", "struct", children=[])], chunk(over, [NONE], 0)
    yield (
        "limit-rows-of-lists-of-0",
        [field("f", "fixed_list", size=0, children=item)],
        chunk(over, [NONE, ALL_MISSING], 0),
    )
    lists = [field("l", "list", children=item)]
    yield "limit-list-of-nulls", lists, chunk(1, [NONE, list_offsets(0, over), ALL_MISSING], 8)
    yield (
        "limit-list-of-nulls-2-31",
        lists,
        chunk(1, [NONE, list_offsets(0, (1 << 31) - 1), ALL_MISSING], 8),
    )
    yield (
        "limit-list-of-nulls-jumbo",
        lists,
        chunk(1, [NONE, list_offsets(0, over), ALL_MISSING], 8, jumbo=True),
    )
    maps = [
        field(
            "m",
            "map",
            sorted=False,
            children=[field("key", "struct", children=[]), nullable("value", "null")],
        )
    ]
    yield (
        "limit-map-of-nothing",
        maps,
        chunk(1, [NONE, list_offsets(0, 1 << 23 | 1), NONE, ALL_MISSING], 8),
    )
    fixed = [field("f", "fixed_list", size=over, children=item)]
    yield "limit-fixed-list-of-nulls", fixed, chunk(1, [NONE, ALL_MISSING], 0)
    yield (
        "limit-fixed-list-of-nulls-missing",
        [dict(fixed[0], nullable=True)],
        chunk(1, [ALL_MISSING], 1),
    )
    entries = [field("d", "dictionary", index="uint8", ordered=False, values={"type": "null"})]
    yield (
        "limit-dictionary-of-nulls",
        entries,
        chunk(1, [NONE, dictionary_type(over, ALL_MISSING, constant(u8(0)))], 1),
    )
    yield "limit-list-offsets", lists, chunk(1, [NONE, list_offsets(0, 1 << 31), ALL_MISSING], 8)
    yield (
        "limit-list-lengths",
        lists,
        chunk(2, [NONE, list_lengths(constant(u32(1 << 30))), ALL_MISSING], 12),
    )
    wide = [field("f", "fixed_list", size=1 << 30, children=item)]
    yield "limit-fixed-list", wide, chunk(2, [NONE, ALL_MISSING], 0)
    wide_missing = [nullable("f", "fixed_list", size=1 << 30, children=item)]
    yield "limit-fixed-list-all-missing", wide_missing, chunk(2, [ALL_MISSING], 1)
    words = [field("d", "dictionary", index="uint32", ordered=False, values={"type": "null"})]
    yield (
        "limit-dictionary-count",
        words,
        chunk(1, [NONE, dictionary_type(1 << 31, ALL_MISSING, constant(u32(0)))], 4),
    )
    n = 1 << 20
    held = (n + 1) * 4
    yield (
        "limit-strings-constant",
        S,
        chunk(n, [NONE, strings_constant(b"a" * 2048)], held + (1 << 20)),
    )
    yield (
        "limit-strings-dictionary",
        S,
        chunk(n, [NONE, dictionary(1, strings(b"a" * 2048), constant(u32(0)))], held + (1 << 20)),
    )
    yield (
        "limit-strings-lengths",
        S,
        chunk(2, [NONE, strings_lengths(constant(u32(1 << 30)), b"")], 12),
    )


def grammar():
    yield "truncated-no-descriptors", X, chunk(3, [], 12)
    yield "truncated-nulls-only", X, chunk(3, [NONE], 12)
    yield "truncated-buffer", X, chunk(3, [NONE, b"\0\0" + u16(12)], 12)
    yield "truncated-raw", X, chunk(3, [NONE, b"\0\1" + u32(0)], 12)
    yield "truncated-constant", X, chunk(3, [NONE, constant(b"\1\2\3")], 12)
    yield "truncated-reference", X, chunk(3, [NONE, b"\2\0" + u16(1)], 12)
    yield "truncated-missing", XS, chunk(3, [b"\1", u16(1)], 13)
    yield "truncated-count", X, chunk(3, [NONE, b"\3" + u16(1)], 12)
    yield "truncated-second-column", X + X, chunk(3, SEVENS, 24)
    yield "truncated-child", [field("f", "struct", children=X + X)], chunk(3, [NONE, SEVENS], 24)

    yield "code-nulls-4", XS, chunk(3, [b"\4", plain(SEVEN)], 12)
    yield "code-nulls-255", X, chunk(3, [b"\xff", plain(SEVEN)], 12)
    yield "code-nulls-00-of-null", [nullable("n", "null")], chunk(3, [NONE], 0)
    yield "code-nulls-01-of-null", [nullable("n", "null")], chunk(3, [dense("000")], 0)
    item = [field("item", "int8", nullable=True)]
    packed_kinds = {
        "list": ({"children": item}, [list_offsets(0, 1), NONE, plain(b"\1")], 12 + 1),
        "fixed_list": ({"size": 1, "children": item}, [NONE, plain(b"\1\1")], 2),
        "struct": ({"children": item}, [NONE, plain(b"\1\1")], 2),
        "map": (
            {"sorted": False, "children": [field("k", "int8"), field("v", "int8")]},
            [list_offsets(0, 0), NONE, plain(b""), NONE, plain(b"")],
            12,
        ),
        "dictionary": (
            {"index": "int8", "ordered": False, "values": {"type": "int8"}},
            [dictionary_type(1, [NONE, plain(b"\1")], plain(b"\0"))],
            3,
        ),
    }
    for kind, (parameters, values, held) in packed_kinds.items():
        yield (
            f"code-packed-{kind}",
            [nullable("x", kind, **parameters)],
            chunk(2, [packed("10"), values], 1 + held),
        )
    lists = [field("l", "list", children=item)]
    for code, name in ((dense(""), "dense"), (packed(""), "packed"), (ALL_MISSING, "all")):
        yield (
            f"code-no-values-{name}",
            lists,
            chunk(
                1, [NONE, list_offsets(0, 0), code, [] if code == ALL_MISSING else plain(b"")], 8
            ),
        )
    yield "code-boolean-2", B, chunk(3, [NONE, b"\2\0"], 1)
    yield "code-fixed-16", X, chunk(3, [NONE, b"\x10", Buffer(SEVEN)], 12)
    yield "code-fixed-255", X, chunk(3, [NONE, b"\xff", Buffer(SEVEN)], 12)
    yield "code-strings-6", S, chunk(1, [NONE, b"\6", offsets(b"a"), Buffer(b"a")], 9)
    for code in (1, 3):
        yield (
            f"code-list-{code}",
            lists,
            chunk(1, [NONE, u8(code), constant(u32(1)), NONE, plain(b"\1")], 9),
        )
    yield "code-compressor-3", X, chunk(3, [NONE, b"\0", Buffer(SEVEN, 3, 12)], 12)
    one = plain(u32(0))
    nest = dictionary(1, plain(u32(0)), one)
    yield "code-indexes-dictionary", X, chunk(1, [NONE, dictionary(1, plain(u32(7)), nest)], 4)
    yield "code-entries-frame", X, chunk(1, [NONE, dictionary(1, frame(0, u32(7), [0]), one)], 4)
    yield (
        "code-entries-dictionary",
        X,
        chunk(1, [NONE, dictionary(1, dictionary(1, plain(u32(7)), one), one)], 4),
    )
    yield (
        "code-entries-strings-constant",
        S,
        chunk(1, [NONE, dictionary(1, strings_constant(b"a"), one)], 9),
    )
    yield (
        "code-entries-strings-dictionary",
        S,
        chunk(1, [NONE, dictionary(1, dictionary(1, strings(b"a"), one), one)], 9),
    )
    yield (
        "code-lengths-dictionary",
        S,
        chunk(1, [NONE, strings_lengths(dictionary(1, plain(u32(1)), one), b"a")], 9),
    )
    yield (
        "code-list-lengths-dictionary",
        lists,
        chunk(1, [NONE, list_lengths(dictionary(1, plain(u32(1)), one)), NONE, plain(b"\1")], 9),
    )
    words = [field("d", "dictionary", index="int32", ordered=False, values={"type": "int8"})]
    yield (
        "code-dictionary-type-indexes-dictionary",
        words,
        chunk(1, [NONE, dictionary_type(1, [NONE, plain(b"\1")], nest)], 5),
    )

    yield "missing-not-nullable-dense", X, chunk(3, [dense("101"), plain(SEVEN)], 13)
    yield "missing-not-nullable-packed", X, chunk(3, [packed("101"), plain(SEVEN[:8])], 13)
    yield "missing-not-nullable-all", X, chunk(3, [ALL_MISSING], 13)
    child = [field("s", "struct", children=X)]
    yield "missing-not-nullable-child", child, chunk(3, [NONE, dense("101"), plain(SEVEN)], 13)
    maps = [field("m", "map", sorted=False, children=[field("k", "int8"), field("v", "int8")])]
    yield (
        "missing-map-key",
        maps,
        chunk(
            1, [NONE, list_offsets(0, 1), dense("0"), plain(b"\0"), NONE, plain(b"\1")], 8 + 2 + 1
        ),
    )
    for name, code, bits, count in (
        ("0", 1, "111", 0),
        ("0-packed", 2, "111", 0),
        ("more-than-n", 1, "000", 4),
        ("fewer-than-bitmap", 1, "001", 1),
        ("more-than-bitmap", 2, "101", 2),
    ):
        sent = SEVEN[: 4 * (3 - min(count, 3))] if code == 2 else SEVEN
        yield (
            f"missing-{name}",
            XS,
            chunk(3, [u8(code), u32(count), Buffer(bitmap(bits)), plain(sent)], 13),
        )


def left_over():
    yield "decoded-more", X, chunk(3, SEVENS, 11)
    yield "decoded-fewer", X, chunk(3, SEVENS, 13)
    yield "decoded-0", X, chunk(3, SEVENS, 0)
    yield "decoded-bitmap", XS, chunk(3, [dense("101"), plain(SEVEN)], 12)
    yield "decoded-all-missing", XS, chunk(3, [ALL_MISSING], 1)
    yield "decoded-strings", S, chunk(1, [NONE, strings(b"abc")], 8 + 2)
    yield "decoded-second-column", X + X, chunk(3, SEVENS + SEVENS, 12)
    yield "decoded-bomb-constant", X, chunk((1 << 31) - 1, [NONE, constant(u32(7))], 100)
    yield "decoded-bomb-frame", X, chunk((1 << 31) - 1, [NONE, frame(0, u32(7), [])], 100)
    yield (
        "decoded-bomb-strings-constant",
        S,
        chunk(1 << 16, [NONE, strings_constant(b"a" * 1000)], ((1 << 16) + 1) * 4 + 1000),
    )
    wide = nullable("f", "fixed_list", size=(1 << 31) - 1, children=[field("item", "int64")])
    yield "decoded-bomb-all-missing", [wide], chunk(1, [ALL_MISSING], 1)
    unused = [b"\2", plain(numbers("I", 100_000, 1)), zstd(b"a" * 100_001)]
    yield (
        "decoded-bomb-unused-entry",
        S,
        chunk(2, [NONE, dictionary(2, unused, constant(u32(1)))], 12 + 2),
    )
    child = field("f", "list", children=[field("item", "int64")])
    yield (
        "decoded-bomb-child",
        [child],
        chunk(1, [NONE, list_lengths(constant(u32((1 << 31) - 1))), NONE, constant(u64(7))], 8 + 8),
    )

    yield "trailing-descriptors", X, chunk(3, [SEVENS, b"\0"], 12)
    yield "trailing-column", X, chunk(3, SEVENS + SEVENS, 12)
    yield "trailing-no-columns", [], chunk(3, SEVENS, 0)
    yield "trailing-body", X, chunk(3, SEVENS, 12, body_after=b"\0")
    yield "trailing-body-padded", X, chunk(3, SEVENS, 12, body_after=bytes(4))
    yield (
        "trailing-body-only",
        [nullable("n", "null")],
        chunk(3, [ALL_MISSING], 0, body_after=bytes(8)),
    )


def schemas():
    def one(type: bytes, name: bytes = b"x", flags: int = 1, metadata: bytes = bytes(2)) -> bytes:
        return u32(1) + string(name) + u8(flags) + type + metadata

    int8, item = b"\2", schema_field(field("item", "int8"))
    deepest = field("x", "int8")
    for _ in range(32):
        deepest = field("x", "list", children=[deepest])
    yield "33-levels", schema(deepest)
    wrapped = {"type": "dictionary", "index": "int8", "ordered": False, "values": {"type": "int8"}}
    for _ in range(31):
        wrapped = {"type": "list", "children": [{"name": "", "nullable": False} | wrapped]}
    yield "33-levels-dictionary", schema({"name": "", "nullable": False} | wrapped)
    yield "empty", b""
    yield "cut", schema(field("x", "int8"))[:-1]
    yield "cut-name", u32(1) + u32(5) + b"ab"
    yield "field-missing", u32(2) + schema(field("x", "int8"))[4:]
    yield "fields-4-gi", u32((1 << 32) - 1)
    yield "trailing", schema(field("x", "int8")) + b"\0"
    yield "type-34", one(b"\x22")
    yield "type-255", one(b"\xff")
    yield "flags-2", one(int8, flags=2)
    yield "name-utf8", one(int8, name=b"\xff")
    yield "metadata-key-utf8", one(int8, metadata=u16(1) + string(b"\xff") + string(b""))
    yield "metadata-value-utf8", one(int8, metadata=u16(1) + string(b"k") + string(b"\xc3"))
    yield "metadata-cut", one(int8, metadata=u16(2) + string(b"k") + string(b"v"))
    for id, most in ((13, 9), (14, 18), (15, 38), (16, 76)):
        yield f"precision-{most + 1}-of-type-{id}", one(u8(id) + u8(most + 1) + b"\0")
        yield f"precision-0-of-type-{id}", one(u8(id) + b"\0\0")
    for id, unit in ((19, 2), (20, 1), (20, 4), (22, 4)):
        yield f"unit-{unit}-of-type-{id}", one(u8(id) + u8(unit))
    yield "unit-4-of-type-21", one(b"\x15\4" + u32(0))
    yield "name-with-byte-0", one(int8, name=b"x\0")
    yield "name-with-byte-0-in-a-struct", one(b"\x1f" + u32(1) + schema_field(field("\0", "int8")))
    yield "zone-with-byte-0", one(b"\x15\0" + string(b"UTC\0"))
    yield "zone-utf8", one(b"\x15\0" + string(b"\xff"))
    yield "fixed-binary-0", one(b"\x1c" + u32(0))
    yield "fixed-binary-wide", one(b"\x1c" + u32((1 << 24) + 1))
    yield "fixed-list-size", one(b"\x1e" + u32(1 << 31) + item)
    yield "list-cut", u32(1) + string(b"x") + b"\1\x1d"
    yield "struct-cut", one(b"\x1f" + u32(2) + item)
    key = schema_field(field("key", "int8"))
    yield "map-sorted-2", one(b"\x20\2" + key + item)
    yield "map-key-nullable", one(b"\x20\0" + schema_field(nullable("key", "int8")) + item)
    for id in (1, 10, 26):
        yield f"dictionary-index-{id}", one(b"\x21" + u8(id) + b"\0\2")
    yield "dictionary-ordered-2", one(b"\x21\2\2\2")
    yield "dictionary-of-dictionary", one(b"\x21\2\0\x21\2\0\2")
