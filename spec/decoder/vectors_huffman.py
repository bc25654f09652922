"""Values and symbols in Huffman codes (encodings.md section 3.2): accepted and refused chunks."""

from vectors_accept import NONE, Accepted, accept, exact
from vectors_coded import S, doubles
from writer import *  # the vocabulary of this page

LETTERS = symbols_table(b"a", b"b", b"c", b"d")


# The worked example of encodings.md section 3.2: d b a a c b.
DBAACB = 3, 1, 0, 0, 2, 1


QUARTERS = b"\x0f", b"\0", b"\x0b", b""


# Codes 255 and 256 of an empty table of symbols.
OUTSIDE = huffman(u16(0), plain(bytes(255) + b"\1\1"), 257, b"\0", b"\1", b"", b"")


def accepted_huffman() -> list[Accepted]:
    return list(huffman_codes())


def huffman_codes():
    yield accept(
        "huffman-spec-example",
        "encodings.md section 3.2",
        S,
        [["dbaacb"]],
        [
            NONE,
            strings_symbols(
                constant(u32(6)),
                LETTERS,
                6,
                huffman(u16(0), plain(b"\1\2\3\3"), 4, b"\x0f", b"\0", b"\x0b", b""),
            ),
        ],
        decoded=8 + 6,
    )
    yield accept(
        "huffman-shortest",
        "two values of one bit, the second and the last that there may be: a symbol, and the "
        "byte FF; one code in a quarter",
        [field("b", "binary")],
        [["31ff"]],
        [
            NONE,
            strings_symbols(
                constant(u32(2)),
                [b"\0", u32(3840), constant(u8(1)), Buffer(b"01" + bytes(3838))],
                2,
                huffman(u16(0), plain(b"\0\1" + bytes(4093) + b"\1"), 4096, b"\0", b"\1", b"", b""),
            ),
        ],
        decoded=8 + 2,
    )
    lengths = [*range(1, 14), 13]
    codes = ["1" * i + "0" for i in range(13)] + ["1" * 13]
    values = [i * 5 % 14 for i in range(101)]
    yield accept(
        "huffman-longest",
        "codes of 1 to 13 bits, their lengths in a frame, quarters of 26, 26, 26 and 23 values",
        S,
        [["".join(map(chr, (ord("a") + value for value in values)))]],
        [
            NONE,
            strings_symbols(
                constant(u32(101)),
                symbols_table(*(bytes([ord("a") + i]) for i in range(14))),
                101,
                huffman(
                    u16(0),
                    frame(4, u8(1), [length - 1 for length in lengths]),
                    14,
                    *(
                        bit_string("".join(codes[value] for value in values[at : at + 26]))
                        for at in range(0, 101, 26)
                    ),
                ),
            ),
        ],
        decoded=8 + 101,
    )
    widths = (1, 2, 4, 8, 16)
    types = ("int8", "int16", "int32", "int64")
    middles = [1 << 8 * w - 1 for w in widths]
    yield accept(
        "huffman-widths",
        "every width; the sum wraps modulo 2^(8w)",
        [*(field(type, type) for type in types), field("d", "decimal128", precision=38, scale=0)],
        [[exact(m - 2 + v if v < 2 else v - 2 - m) for v in DBAACB] for m in middles],
        [[NONE, dbaacb(integers(w, m - 2))] for w, m in zip(widths, middles)],
        decoded=6 * sum(widths),
    )
    yield accept(
        "huffman-parts",
        "indexes of both kinds of dictionary, integers of decimals, differences of relative, "
        "lengths of strings, of symbols' and of lists",
        [
            field("x", "int32"),
            field("r", "int32"),
            field("d", "float64"),
            field("s", "utf8"),
            field("c", "utf8"),
            field("l", "list", children=[field("item", "uint8")]),
            field("i", "dictionary", index="int8", ordered=False, values={"type": "utf8"}),
        ],
        [
            [40, 20, 10, 10, 30, 20],
            [42, 20, 9, 9, 31, 20],
            doubles(0.8, 0.6, 0.5, 0.5, 0.7, 0.6),
            ["abc", "d", "", "", "ef", "g"],
            ["aab", "a", "", "", "ca", "d"],
            [[1, 2, 3], [4], [], [], [5, 6], [7]],
            ["z", "x", "w", "w", "y", "x"],
        ],
        [
            [NONE, dictionary(4, plain(numbers("i", 10, 20, 30, 40)), dbaacb(u32(0)))],
            [NONE, relative(0, dbaacb(numbers("i", -1)))],
            [NONE, decimals(1, dbaacb(numbers("q", 5)))],
            [NONE, strings_lengths(dbaacb(u32(0)), b"abcdefg")],
            [
                NONE,
                strings_symbols(
                    dbaacb(u32(0)), LETTERS, 7, plain(numbers("H", 0, 0, 1, 0, 2, 0, 3))
                ),
            ],
            [NONE, list_lengths(dbaacb(u32(0))), NONE, plain(bytes(range(1, 8)))],
            [NONE, dictionary_type(4, [NONE, strings(b"w", b"x", b"y", b"z")], dbaacb(u8(0)))],
        ],
        decoded=24 + 24 + 48 + (28 + 7) + (28 + 7) + (28 + 7) + 6 + 20 + 4,
    )
    yield accept(
        "huffman-runs",
        "entries and lengths of runs",
        [field("x", "int16")],
        [[3] * 4 + [1] * 2 + [0, 0] + [2] * 3 + [1] * 2],
        [NONE, runs(6, dbaacb(u16(0)), dbaacb(u32(1)))],
        decoded=26,
    )
    yield accept(
        "huffman-delta",
        "differences",
        [field("x", "int64")],
        [[exact(10 - value) for value in (0, 0, 2, 5, 8, 9, 11)]],
        [NONE, delta(numbers("q", 10), dbaacb(numbers("q", -3)))],
        decoded=56,
    )
    yield accept(
        "huffman-no-values",
        "of no codes at all",
        S,
        [[""]],
        [
            NONE,
            strings_symbols(
                constant(u32(0)),
                LETTERS,
                0,
                huffman(u16(0), constant(u8(2)), 4, b"", b"", b"", b""),
            ),
        ],
        decoded=8,
    )


def dbaacb(reference: bytes) -> list:
    """The worked example 3 1 0 0 2 1, with the reference added to each value."""
    return huffman(reference, plain(b"\1\2\3\3"), 4, *QUARTERS)


def bit_string(bits: str) -> bytes:
    """The bytes of a string of 0s and 1s, the first in the least significant bit."""
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))


def rejected_huffman():
    def six(codes: list) -> bytes:
        return chunk(1, [NONE, strings_symbols(constant(u32(6)), LETTERS, 6, codes)], 14)

    def lengths_of(*lengths: int) -> bytes:
        return six(huffman(u16(0), plain(bytes(lengths)), len(lengths), *QUARTERS))

    yield "bits-huffman-incomplete", S, lengths_of(1, 2, 3, 4)
    yield "bits-huffman-too-many", S, lengths_of(1, 2, 2, 3)
    yield "bits-huffman-14", S, lengths_of(*range(1, 15), 14)
    yield "bits-huffman-255", S, lengths_of(1, 2, 2, 255)
    yield "bits-huffman-one-value", S, lengths_of(1)
    yield "bits-huffman-no-value", S, lengths_of()
    yield "bits-huffman-no-codes", S, lengths_of(0, 0)
    yield "bits-huffman-4097", S, six(huffman(u16(0), constant(u8(12)), 4097, *QUARTERS))
    yield "bits-huffman-2-32", S, six(huffman(u16(0), constant(u8(1)), (1 << 32) - 1, *QUARTERS))
    letters = plain(b"\1\2\3\3")
    yield "length-huffman-cut", S, six(huffman(u16(0), letters, 4, b"\x0f", b"\0", b"", b""))
    yield (
        "length-huffman-half-a-code",
        S,
        six(huffman(u16(0), letters, 4, b"\x0f", b"\0", b"\xef", b"")),
    )
    yield (
        "length-huffman-byte-left",
        S,
        six(huffman(u16(0), letters, 4, b"\x0f\0", b"\0", b"\x0b", b"")),
    )
    yield (
        "length-huffman-bit-left",
        S,
        six(huffman(u16(0), letters, 4, b"\x2f", b"\0", b"\x0b", b"")),
    )
    yield (
        "length-huffman-empty-quarter",
        S,
        six(huffman(u16(0), letters, 4, b"\x0f", b"\0", b"\x0b", b"\0")),
    )
    whole = dbaacb(u16(0))
    yield "length-huffman-sizes", S, six([*whole[:4], u32(2), *whole[5:]])
    # Quarters larger than their codes can be, in a buffer that would unpack to them.
    for name, sizes in (
        ("first", (1 << 16, 0, 0, 0)),
        ("last", (1, 1, 1, 1 << 16)),
        ("all", (1 << 14,) * 4),
    ):
        bomb = zstd(bytes(sum(sizes)))
        yield f"length-huffman-{name}-too-large", S, six([*whole[:4], *map(u32, sizes), bomb])
    yield "length-huffman-too-small", S, six([*whole[:4], *map(u32, (0, 1, 1, 0)), Buffer(b"\0\0")])
    yield (
        "index-huffman",
        S,
        chunk(1, [NONE, strings_symbols(constant(u32(2)), symbols_table(), 2, OUTSIDE)], 10),
    )
    yield "code-huffman-lengths", S, six(huffman(u16(0), whole, 4, *QUARTERS))
    X = [field("x", "uint16")]
    letters = dbaacb(u32(0))
    yield "code-huffman-entries", X, chunk(6, [NONE, dictionary(6, dbaacb(u16(0)), letters)], 12)
    yield (
        "code-huffman-positions",
        X,
        chunk(6, [NONE, frame_patched(0, u16(0), [0] * 6, 6, letters, constant(u16(1)))], 12),
    )
    exceptions = frame_patched(
        0, u16(0), [0] * 6, 6, plain(numbers("I", *range(6))), dbaacb(u16(1))
    )
    yield "code-huffman-exceptions", X, chunk(6, [NONE, exceptions], 12)
    yield (
        "bits-huffman-width-3",
        [field("b", "fixed_binary", width=3)],
        chunk(6, [NONE, dbaacb(bytes(3))], 18),
    )
    yield (
        "bits-huffman-width-32",
        [field("d", "decimal256", precision=76, scale=0)],
        chunk(6, [NONE, dbaacb(bytes(32))], 192),
    )
    yield (
        "index-huffman-dictionary",
        X,
        chunk(6, [NONE, dictionary(3, plain(numbers("H", 0, 1, 2)), letters)], 12),
    )
    yield "length-huffman-more-values", X, chunk(7, [NONE, dbaacb(u16(0))], 14)
    yield "truncated-huffman-reference", X, chunk(6, [NONE, b"\12\0"], 12)
    yield (
        "truncated-huffman",
        S,
        chunk(1, [NONE, b"\4", constant(u32(6)), LETTERS, u32(6), b"\12"], 14),
    )
