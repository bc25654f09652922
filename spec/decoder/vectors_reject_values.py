"""Refused chunks whose values break a rule of encodings.md: encodings, inner values, contents and
compressors.
"""

from vectors_compressed import ZSTD_CHECKSUMMED, ZSTD_COMPRESSED
from writer import *  # the vocabulary of this page

NONE = NONE_MISSING
SEVEN = numbers("i", 7, -1, 2)
X = [field("x", "int32")]
S = [field("s", "utf8")]
B = [field("b", "boolean")]
XS = [nullable("x", "int32")]
SS = [nullable("s", "utf8")]
SEVENS = [NONE, plain(SEVEN)]


def sevens(**header) -> bytes:
    return chunk(3, SEVENS, 12, **header)


def rejected_values():
    """Yields name, schema and chunk."""
    yield from encodings()
    yield from parts()
    yield from contents()
    yield from compressors()


def parts():
    lists = [field("l", "list", children=[field("item", "int32")])]
    empty = [NONE, list_offsets(0, 0), NONE]
    one, two = constant(u32(1)), plain(numbers("I", 1, 2))

    def three(encoding: list) -> bytes:
        return chunk(3, [NONE, encoding], 12)

    for name, count, lengths in (
        ("none", 0, plain(b"")),
        ("more-than-values", 4, constant(u32(1))),
        ("of-nothing", 2, plain(numbers("I", 3, 0))),
        ("fewer-values", 2, one),
        ("more-values", 2, plain(numbers("I", 2, 2))),
        ("sum-beyond-2-32", 2, plain(numbers("I", (1 << 32) - 1, 4))),
    ):
        yield f"runs-{name}", X, three(runs(count, constant(u32(7)), lengths))
    yield "runs-no-values", lists, chunk(1, [empty, runs(0, plain(b""), plain(b""))], 8)

    yield "constant-delta-no-values", lists, chunk(1, [empty, delta(u32(7), plain(b""))], 8)
    for width, words in (
        (3, field("x", "fixed_binary", width=3)),
        (16, field("x", "decimal128", precision=9, scale=0)),
    ):
        yield (
            f"bits-delta-width-{width}",
            [words],
            chunk(2, [NONE, delta(bytes(width), plain(bytes(width)))], 2 * width),
        )
    yield "length-delta-differences", X, three(delta(u32(7), plain(SEVEN)))

    for name, count, positions in (
        ("none", 0, plain(b"")),
        ("more-than-values", 4, plain(numbers("I", 0, 1, 2, 3))),
        ("fall", 2, plain(numbers("I", 1, 0))),
        ("stay", 2, one),
        ("reach-n", 2, plain(numbers("I", 1, 3))),
        ("reach-2-32", 1, constant(u32((1 << 32) - 1))),
    ):
        yield (
            f"positions-{name}",
            X,
            three(frame_patched(1, u32(0), [0, 1, 0], count, positions, constant(u32(7)))),
        )
    yield "bits-patched-33", X, three(frame_patched(33, u32(0), [0] * 3, 1, one, one))
    yield "bitmap-patched-tail", X, three([b"\6\1", u32(0), Buffer(b"\x0a"), u32(1), one, one])

    inside = frame_patched(0, u32(0), [0, 0], 1, one, one)
    forms = {
        "dictionary": dictionary(1, plain(u32(7)), constant(u32(0))),
        "runs": runs(1, constant(u32(1)), constant(u32(2))),
        "delta": delta(u32(1), constant(u32(0))),
    }
    for name, form in forms.items():
        yield f"code-runs-entries-{name}", X, three(runs(2, form, two))
        yield f"code-runs-lengths-{name}", X, three(runs(2, constant(u32(7)), form))
        yield f"code-delta-differences-{name}", X, three(delta(u32(1), form))
        yield (
            f"code-dictionary-indexes-{name}",
            X,
            chunk(2, [NONE, dictionary(1, plain(u32(7)), form)], 8),
        )
    for name, form in {**forms, "patched": inside}.items():
        yield (
            f"code-patched-positions-{name}",
            X,
            three(frame_patched(1, u32(0), [0] * 3, 2, form, two)),
        )
        yield (
            f"code-patched-exceptions-{name}",
            X,
            three(frame_patched(1, u32(0), [0] * 3, 2, plain(numbers("I", 0, 1)), form)),
        )
        yield (
            f"code-dictionary-entries-{name}",
            X,
            chunk(2, [NONE, dictionary(2, form, plain(numbers("I", 0, 1)))], 8),
        )


def encodings():
    yield "bitmap-nulls", XS, chunk(3, [b"\1", u32(1), Buffer(bitmap("1011")), plain(SEVEN)], 13)
    yield (
        "bitmap-nulls-packed",
        XS,
        chunk(3, [b"\2", u32(1), Buffer(bitmap("10100001")), plain(SEVEN[:8])], 13),
    )
    yield "bitmap-booleans", B, chunk(3, [NONE, booleans("1011")], 1)
    yield (
        "bitmap-frame-tail",
        [field("x", "uint8")],
        chunk(3, [NONE, b"\2\3\0", Buffer(b"\xcd\x81")], 3),
    )
    yield (
        "bitmap-frame-tail-after-block",
        [field("x", "uint8")],
        chunk(1025, [NONE, b"\2\1\0", Buffer(bytes(128) + b"\2")], 1025),
    )

    yield "constant-boolean-2", B, chunk(3, [NONE, constant(b"\2")], 1)
    lists = lambda type: [field("l", "list", children=[field("item", type)])]
    empty = [NONE, list_offsets(0, 0), NONE]
    yield "constant-boolean-no-values", lists("boolean"), chunk(1, [empty, constant(b"\1")], 8)
    yield "constant-fixed-no-values", lists("int8"), chunk(1, [empty, constant(b"\1")], 8 + 0)
    yield (
        "constant-strings-no-values",
        lists("utf8"),
        chunk(1, [empty, strings_constant(b"")], 8 + 4),
    )
    yield (
        "constant-lengths-no-values",
        lists("utf8"),
        chunk(1, [empty, strings_lengths(constant(u32(0)), b"")], 8 + 4),
    )
    yield "constant-packed-no-values", XS, chunk(3, [packed("000"), constant(u32(1))], 13)

    for bits, type, width in (
        (9, "int8", 1),
        (17, "int16", 2),
        (33, "float32", 4),
        (65, "int64", 8),
        (255, "int64", 8),
    ):
        yield (
            f"bits-{bits}-of-{8 * width}",
            [field("x", type)],
            chunk(3, [NONE, frame(bits, bytes(width), [0] * 3)], 3 * width),
        )
    for bits in (65, 128):
        words = [field("x", "decimal128", precision=9, scale=0)]
        yield f"bits-{bits}-of-128", words, chunk(3, [NONE, frame(bits, bytes(16), [0] * 3)], 48)
    yield (
        "bits-width-3",
        [field("x", "fixed_binary", width=3)],
        chunk(3, [NONE, frame(1, bytes(3), [0] * 3)], 9),
    )
    yield (
        "bits-width-32",
        [field("x", "decimal256", precision=9, scale=0)],
        chunk(3, [NONE, frame(0, bytes(32), [0] * 3)], 96),
    )
    yield (
        "bits-lengths-33",
        S,
        chunk(3, [NONE, strings_lengths(frame(33, u32(1), [0] * 3), b"abc")], 19),
    )

    def offset_strings(*ends, data=b"abc"):
        return chunk(
            len(ends) - 1,
            [NONE, b"\0", Buffer(numbers("I", *ends)), Buffer(data)],
            4 * len(ends) + 3,
        )

    yield "offsets-begin-at-1", S, offset_strings(1, 2, 3)
    yield "offsets-fall", S, offset_strings(0, 3, 2, 3)
    yield "offsets-fall-below-2-31", S, offset_strings(0, (1 << 32) - 1, 3)
    yield "offsets-end-before-data", S, offset_strings(0, 1, 2, data=b"abc")
    yield "offsets-end-after-data", S, offset_strings(0, 1, 3, data=b"ab")
    yield (
        "offsets-lengths-fewer",
        S,
        chunk(2, [NONE, strings_lengths(plain(numbers("I", 1, 1)), b"abc")], 12 + 3),
    )
    yield (
        "offsets-lengths-more",
        S,
        chunk(2, [NONE, strings_lengths(constant(u32(2)), b"abc")], 12 + 4),
    )
    yield (
        "offsets-compressed-data",
        S,
        chunk(1, [NONE, b"\0", offsets(b"abc"), lz4(b"abcd")], 8 + 4),
    )
    yield (
        "offsets-packed-end-before-data",
        SS,
        chunk(2, [packed("10"), b"\0", offsets(b"a"), Buffer(b"ab")], 1 + 12 + 2),
    )
    entries = [b"\0", Buffer(numbers("I", 0, 2, 1)), Buffer(b"a")]
    yield (
        "offsets-entries-fall",
        S,
        chunk(2, [NONE, dictionary(2, entries, plain(numbers("I", 0, 1)))], 12 + 2),
    )
    for name, ends in (("begin-at-1", (1, 2, 3)), ("fall", (0, 2, 1))):
        held = 12 + ends[-1]
        yield (
            f"offsets-list-{name}",
            lists("int8"),
            chunk(2, [NONE, list_offsets(*ends), NONE, plain(bytes(ends[-1]))], held),
        )

    yield (
        "index-fixed",
        X,
        chunk(3, [NONE, dictionary(2, plain(SEVEN[:8]), plain(numbers("I", 0, 1, 2)))], 12),
    )
    yield (
        "index-fixed-2-31",
        X,
        chunk(3, [NONE, dictionary(2, plain(SEVEN[:8]), plain(numbers("I", 0, 1, 1 << 31)))], 12),
    )
    yield (
        "index-fixed-constant",
        X,
        chunk(3, [NONE, dictionary(2, plain(SEVEN[:8]), constant(u32(2)))], 12),
    )
    yield (
        "index-fixed-frame",
        X,
        chunk(3, [NONE, dictionary(2, plain(SEVEN[:8]), frame(1, u32(1), [0, 0, 1]))], 12),
    )
    yield (
        "index-strings",
        S,
        chunk(2, [NONE, dictionary(2, strings(b"a", b"b"), plain(numbers("I", 0, 2)))], 12 + 2),
    )
    yield (
        "index-no-entries",
        X,
        chunk(3, [NONE, dictionary(0, plain(b""), plain(numbers("I", 0, 0, 0)))], 12),
    )
    yield (
        "index-no-entries-strings",
        S,
        chunk(2, [NONE, dictionary(0, strings(), constant(u32(0)))], 12),
    )
    yield (
        "index-more-entries-than-values",
        X,
        chunk(2, [NONE, dictionary(3, plain(SEVEN), plain(numbers("I", 0, 2)))], 8),
    )
    yield (
        "index-more-entries-than-packed-values",
        XS,
        chunk(3, [packed("010"), dictionary(2, plain(SEVEN[:8]), plain(u32(0)))], 13),
    )
    yield (
        "index-no-values",
        lists("int8"),
        chunk(1, [empty, dictionary(1, plain(b"\1"), plain(b""))], 8),
    )
    for index, value in (
        ("int8", -1),
        ("uint8", 255),
        ("int64", -(1 << 63)),
        ("uint64", 1 << 63),
        ("uint16", 2),
    ):
        width = {"8": 1, "16": 2, "64": 8}[index.lstrip("uint")]
        words = [field("d", "dictionary", index=index, ordered=False, values={"type": "utf8"})]
        part = dictionary_type(2, [NONE, strings(b"a", b"b")], plain(integers(width, 0, value)))
        yield f"index-dictionary-type-{index}", words, chunk(2, [NONE, part], 12 + 2 + 2 * width)
    words = [nullable("d", "dictionary", index="uint8", ordered=False, values={"type": "utf8"})]
    yield (
        "index-dictionary-type-present",
        words,
        chunk(
            2, [dense("10"), dictionary_type(1, [NONE, strings(b"a")], plain(b"\1\0"))], 1 + 9 + 2
        ),
    )
    yield (
        "index-dictionary-type-no-entries",
        words,
        chunk(1, [NONE, dictionary_type(0, [NONE, strings()], plain(b"\0"))], 4 + 1),
    )


def contents():
    for name, value in (
        ("invalid", b"a\xff"),
        ("cut", b"\xe2\x82"),
        ("surrogate", b"\xed\xa0\x80"),
        ("overlong", b"\xc0\xaf"),
        ("above-10ffff", b"\xf4\x90\x80\x80"),
    ):
        yield f"utf8-{name}", S, chunk(1, [NONE, strings(value)], 8 + len(value))
    yield "utf8-between-values", S, chunk(2, [NONE, strings(b"\xc3", b"\xa9")], 12 + 2)
    yield (
        "utf8-between-values-lengths",
        S,
        chunk(2, [NONE, strings_lengths(constant(u32(1)), b"\xc3\xa9")], 12 + 2),
    )
    yield (
        "utf8-between-entries",
        S,
        chunk(
            2, [NONE, dictionary(2, strings(b"\xc3", b"\xa9"), plain(numbers("I", 0, 1)))], 12 + 2
        ),
    )
    yield "utf8-empty-between", S, chunk(3, [NONE, strings(b"\xc3", b"", b"\xa9")], 16 + 2)
    yield "utf8-constant", S, chunk(2, [NONE, strings_constant(b"\x80")], 12 + 2)
    yield (
        "utf8-entry",
        S,
        chunk(2, [NONE, dictionary(1, strings(b"\x80"), constant(u32(0)))], 12 + 2),
    )
    yield (
        "utf8-compressed",
        S,
        chunk(1, [NONE, b"\0", offsets(b"\xff" * 30), lz4(b"\xff" * 30)], 8 + 30),
    )
    yield "utf8-beneath-missing", SS, chunk(2, [dense("10"), strings(b"a", b"\xff")], 1 + 12 + 2)
    pairs = [field("m", "map", sorted=False, children=[field("k", "utf8"), field("v", "int8")])]
    yield (
        "utf8-map-key",
        pairs,
        chunk(1, [NONE, list_offsets(0, 1), NONE, strings(b"\xff"), NONE, plain(b"\1")], 8 + 9 + 1),
    )

    yield "length-fixed-shorter", X, chunk(3, [NONE, plain(SEVEN[:11])], 12)
    yield "length-fixed-longer", X, chunk(3, [NONE, plain(SEVEN + b"\0")], 12)
    yield "length-fixed-empty", X, chunk(3, [NONE, plain(b"")], 12)
    yield "length-booleans", B, chunk(9, [NONE, plain(b"\1")], 2)
    yield "length-bitmap", XS, chunk(3, [b"\1", u32(1), Buffer(b"\5\0"), plain(SEVEN)], 13)
    yield (
        "length-offsets",
        S,
        chunk(2, [NONE, b"\0", Buffer(numbers("I", 0, 1)), Buffer(b"a")], 12 + 1),
    )
    yield "length-lengths", S, chunk(2, [NONE, strings_lengths(plain(u32(1)), b"a")], 12 + 1)
    yield (
        "length-list-offsets",
        [field("l", "list", children=X)],
        chunk(2, [NONE, list_offsets(0, 1), NONE, plain(u32(1))], 12 + 4),
    )
    yield "length-packed-values", XS, chunk(3, [packed("101"), plain(SEVEN)], 13)
    yield "length-frame", X, chunk(3, [NONE, b"\2\3", u32(0), Buffer(b"\xcd")], 12)
    yield "length-frame-0-bits", X, chunk(3, [NONE, b"\2\0", u32(0), Buffer(b"\0")], 12)
    yield (
        "length-frame-block",
        [field("x", "uint8")],
        chunk(1024, [NONE, b"\2\1\0", Buffer(bytes(127))], 1024),
    )
    yield (
        "length-entries",
        X,
        chunk(2, [NONE, dictionary(2, plain(SEVEN), plain(numbers("I", 0, 1)))], 8),
    )
    yield (
        "length-indexes",
        X,
        chunk(3, [NONE, dictionary(2, plain(SEVEN[:8]), plain(numbers("I", 0, 1)))], 12),
    )
    yield "length-raw", X, chunk(3, [NONE, b"\0", lz4(SEVEN + b"\0")], 12)
    yield (
        "length-raw-4-gib",
        X,
        chunk(3, [NONE, b"\0", Buffer(lz4(SEVEN).stored, LZ4, (1 << 32) - 1)], 12),
    )
    yield "length-leaves-body", X, chunk(3, [NONE, b"\0\0" + u32(12)], 12)
    one_less = chunk(3, SEVENS, 12)
    yield "length-leaves-body-by-1", X, patched(one_less, 24, u32(11))[:-1]
    yield (
        "length-leaves-body-by-padding",
        X + S,
        chunk(
            1,
            [NONE, b"\0\0" + u32(4), NONE, b"\0\0" + u32(8) + b"\0" + u32(0)],
            12,
            body_after=bytes(12),
        ),
    )
    yield (
        "length-leaves-body-constant",
        S,
        chunk(1, [NONE, b"\1\0" + u32(4)], 12, body_after=b"abc"),
    )


def compressors():
    repeated = numbers("i", *[5] * 20)

    def stored(data: bytes, codec: int, raw: int = 80):
        return chunk(20, [NONE, b"\0", Buffer(data, codec, raw)], 80)

    good = lz4(repeated).stored
    yield "compressed-lz4-cut", X, stored(good[:-1], LZ4)
    yield "compressed-lz4-empty", X, stored(b"", LZ4)
    yield "compressed-lz4-before-start", X, stored(good[:5] + u16(5) + good[7:], LZ4)
    yield "compressed-lz4-fewer", X, stored(lz4(repeated[:-4]).stored, LZ4)
    yield "compressed-lz4-more", X, stored(lz4(repeated + bytes(4)).stored, LZ4)
    yield (
        "compressed-lz4-frame",
        X,
        stored(bytes.fromhex("04224d18604082") + u32(len(good)) + good + u32(0), LZ4),
    )
    whole = zstd(repeated).stored
    yield "compressed-zstd-cut", X, stored(whole[:-1], ZSTD)
    yield "compressed-zstd-empty", X, stored(b"", ZSTD)
    yield "compressed-zstd-magic", X, stored(b"\x27" + whole[1:], ZSTD)
    yield "compressed-zstd-fewer", X, stored(zstd(repeated[:-4]).stored, ZSTD)
    yield "compressed-zstd-more", X, stored(zstd(repeated + bytes(4)).stored, ZSTD)
    yield "compressed-zstd-bomb", X, stored(zstd(bytes(131071)).stored, ZSTD)
    yield "compressed-zstd-trailing", X, stored(whole + b"\0", ZSTD)
    yield (
        "compressed-zstd-two-frames",
        X,
        stored(zstd(repeated[:40]).stored + zstd(repeated[40:]).stored, ZSTD),
    )
    skippable = bytes.fromhex("502a4d18") + u32(4) + b"skip"
    yield "compressed-zstd-skippable-before", X, stored(skippable + whole, ZSTD)
    yield "compressed-zstd-skippable-after", X, stored(whole + skippable, ZSTD)
    yield "compressed-zstd-dictionary", X, stored(b"\x28\xb5\x2f\xfd\xa1\x07" + whole[5:], ZSTD)
    for name, data in (
        ("entropy", ZSTD_COMPRESSED[:10] + b"\xff" + ZSTD_COMPRESSED[11:]),
        ("checksum", ZSTD_CHECKSUMMED[:-1] + b"\0"),
    ):
        yield (
            f"compressed-zstd-{name}",
            S,
            chunk(1, [NONE, b"\1", Buffer(data, ZSTD, 360)], 8 + 360),
        )
