"""Decimals in floats and relative columns: accepted and refused chunks. Symbols: refused chunks."""

from vectors_accept import NONE, Accepted, accept, exact
from writer import *  # the vocabulary of this page

D = [field("d", "float64")]
S = [field("s", "utf8")]
CARE = symbols_table(b"care", b"fully")


def accepted_coded() -> list[Accepted]:
    return [*decimals_in_floats(), *relative_columns()]


def doubles(*values: float) -> list[str]:
    """The bits of float64s in the form of the vectors' JSON."""
    return [struct.pack(">d", value).hex() for value in values]


def singles(*values: float) -> list[str]:
    """The bits of float32s in the form of the vectors' JSON."""
    return [struct.pack(">f", value).hex() for value in values]


def decimals_in_floats():
    yield accept(
        "decimals-spec-example",
        "encodings.md section 2.1: 1.5, 2.25, -0.0",
        D,
        [doubles(1.5, 2.25, -0.0)],
        [
            NONE,
            decimals(
                2,
                plain(numbers("q", 150, 225, 225)),
                1,
                constant(u32(2)),
                constant(struct.pack("<d", -0.0)),
            ),
        ],
        decoded=24,
    )
    integers_64 = [
        0,
        1,
        -1,
        3,
        7,
        10,
        1234567,
        (1 << 53) - 1,
        (1 << 53) + 1,
        (1 << 63) - 1,
        -1 << 63,
    ]
    for exponent in (0, 1, 2, 15, 22):
        yield accept(
            f"decimals-exponent-{exponent}",
            "integers that a float64 has and some that it rounds; a correctly rounded division",
            D,
            [doubles(*(float(d) / float(10**exponent) for d in integers_64))],
            [NONE, decimals(exponent, plain(numbers("q", *integers_64)))],
            decoded=8 * len(integers_64),
        )
    # The last two are halfway between two float32s: ties go to even.
    integers_32 = [0, 1, -1, 33, 2147483647, -1 << 31, (1 << 24) + 1, (1 << 24) + 3]
    for exponent in (0, 1, 22):
        yield accept(
            f"decimals-float32-exponent-{exponent}",
            "divided as float64s, then rounded",
            [field("f", "float32")],
            [singles(*(float(d) / float(10**exponent) for d in integers_32))],
            [NONE, decimals(exponent, plain(numbers("i", *integers_32)))],
            decoded=4 * len(integers_32),
        )
    payload = struct.pack("<Q", 0xFFF4000000000123)
    others = payload + struct.pack("<ddd", float("inf"), float("-inf"), 5e-324)
    yield accept(
        "decimals-exceptions",
        "a NaN with a payload, infinities and the least number, first and last; integers "
        "patched, positions in a frame",
        D,
        [["fff4000000000123", *doubles(0.25, float("inf"), 99.75, float("-inf"), 5e-324)]],
        [
            NONE,
            decimals(
                2,
                frame_patched(
                    1, numbers("q", 25), [0] * 6, 1, constant(u32(3)), constant(numbers("q", 9975))
                ),
                4,
                frame(3, u32(0), [0, 2, 4, 5]),
                plain(others),
            ),
        ],
        decoded=48,
    )
    yield accept(
        "decimals-all-exceptions",
        "as many exceptions as values, constant; of missing values, and of none",
        [nullable("d", "float64"), field("l", "list", children=[field("item", "float32")])],
        [[None, *doubles(0.1, 0.1)], [[], [], []]],
        [
            [
                packed("011"),
                decimals(
                    0,
                    constant(bytes(8)),
                    2,
                    plain(numbers("I", 0, 1)),
                    constant(struct.pack("<d", 0.1)),
                ),
            ],
            [NONE, list_offsets(0, 0, 0, 0), NONE, decimals(3, plain(b""))],
        ],
        decoded=1 + 24 + 16,
    )
    yield accept(
        "decimals-other-types",
        "bytes are a float whatever the type is",
        [field("i", "int32"), field("t", "timestamp", unit="us", zone="")],
        [[0x3FC00000], ["4609434218613702656"]],
        [
            [NONE, decimals(1, plain(numbers("i", 15)))],
            [NONE, decimals(1, plain(numbers("q", 15)))],
        ],
        decoded=12,
    )


PAIR = [field("a", "int32"), field("b", "int32")]
BASE = [NONE, plain(numbers("i", 100, 101, 99))]


def relative_columns():
    yield accept(
        "relative-spec-example",
        "encodings.md section 2.2",
        PAIR,
        [[100, 101, 99], [103, 101, 100]],
        [BASE, NONE, relative(0, frame(2, u32(0), [3, 0, 1]))],
        decoded=24,
    )
    forms = {
        "plain": (plain(numbers("i", -1, 0, 1)), [99, 101, 100]),
        "constant": (constant(numbers("i", -100)), [0, 1, -1]),
        "dictionary": (
            dictionary(2, plain(numbers("i", 7, -7)), plain(numbers("I", 0, 1, 0))),
            [107, 94, 106],
        ),
        "patched": (
            frame_patched(1, u32(0), [1, 0, 0], 1, constant(u32(1)), constant(numbers("i", 900))),
            [101, 1001, 99],
        ),
    }
    for form, (differences, values) in forms.items():
        yield accept(
            f"relative-{form}",
            f"differences {form}",
            PAIR,
            [[100, 101, 99], values],
            [BASE, NONE, relative(0, differences)],
            decoded=24,
        )
    for width, type in ((2, "uint16"), (4, "uint32"), (8, "uint64")):
        most = (1 << 8 * width) - 1
        yield accept(
            f"relative-wraps-{type}",
            "modulo 2^(8w)",
            [field("a", type), field("b", type)],
            [[exact(most), exact(0)], [exact(1), exact(most)]],
            [
                NONE,
                plain(integers(width, most, 0)),
                NONE,
                relative(0, plain(integers(width, 2, most))),
            ],
            decoded=4 * width,
        )
    yield accept(
        "relative-chain",
        "to a relative column, to a constant, to a nullable one without missing values, of "
        "other types",
        [field("a", "date32"), field("b", "int32"), nullable("c", "uint32"), field("d", "float32")],
        [[5, 5], [6, 7], [7, 9], singles(0.0, 2**-149)],
        [
            [NONE, constant(u32(5))],
            [NONE, relative(0, plain(numbers("i", 1, 2)))],
            [NONE, relative(1, plain(numbers("i", 1, 2)))],
            [NONE, relative(2, plain(numbers("i", -7, -8)))],
        ],
        decoded=32,
    )


def rejected_coded():
    def care(
        lengths=plain(numbers("I", 9, 4)),
        table=CARE,
        count=3,
        codes=plain(numbers("H", 0, 1, 0)),
        decoded=25,
    ):
        return chunk(2, [NONE, strings_symbols(lengths, table, count, codes)], decoded)

    def lengths_of(*lengths: int, count: int | None = None) -> list:
        return [
            b"\0",
            u32(len(lengths) if count is None else count),
            plain(bytes(lengths)),
            Buffer(b"carefully"),
        ]

    yield "code-symbols-table-2", S, care(table=[b"\2", CARE[1:]])
    yield "code-symbols-lengths-runs", S, care(runs(1, constant(u32(6)), constant(u32(2))))
    yield (
        "code-symbols-codes-dictionary",
        S,
        care(codes=dictionary(1, constant(u16(0)), constant(u32(0)))),
    )
    yield "code-symbols-codes-delta", S, care(codes=delta(u16(0), constant(u16(0))))
    yield "symbols-3841", S, care(table=[b"\0", u32(3841), constant(u8(1)), Buffer(bytes(3841))])
    yield "symbols-2-32", S, care(table=[b"\0", u32((1 << 32) - 1), constant(u8(1)), Buffer(b"")])
    yield "symbols-empty", S, care(table=lengths_of(9, 0))
    yield "symbols-17-bytes", S, care(table=[b"\0", u32(1), constant(u8(17)), Buffer(bytes(17))])
    yield "length-symbols-shorter", S, care(table=lengths_of(4, 4))
    yield "length-symbols-longer", S, care(table=lengths_of(4, 6))
    yield "length-symbols-lengths", S, care(table=lengths_of(4, 5, count=3))
    yield "length-symbols-codes", S, care(count=2)
    yield "constant-symbols-lengths", S, care(table=[b"\0", u32(0), constant(u8(1)), Buffer(b"")])
    yield "index-symbols", S, care(codes=plain(numbers("H", 0, 1, 258)))
    yield "index-symbols-65535", S, care(codes=plain(numbers("H", 65535, 1, 0)))
    yield "offsets-symbols-fewer-bytes", S, care(plain(numbers("I", 9, 5)), decoded=26)
    yield "offsets-symbols-more-bytes", S, care(plain(numbers("I", 9, 3)), decoded=24)
    yield "offsets-symbols-more-codes", S, care(count=14, codes=constant(u16(2)))
    yield "decoded-symbols", S, care(decoded=24)
    yield "decoded-symbols-more", S, care(decoded=26)
    yield "limit-symbols-lengths", S, care(constant(u32(1 << 30)))
    yield "utf8-symbols-byte", S, care(table=symbols_table(b"care", b"full\xff"))
    yield (
        "utf8-symbols-between-values",
        S,
        chunk(
            2,
            [
                NONE,
                strings_symbols(constant(u32(1)), symbols_table("é".encode()), 1, constant(u16(0))),
            ],
            14,
        ),
    )
    yield "truncated-symbols-table", S, chunk(2, [NONE, b"\4", plain(numbers("I", 9, 4))], 25)
    yield "truncated-symbols-codes", S, chunk(2, [NONE, b"\4", plain(numbers("I", 9, 4)), CARE], 25)

    one = constant(u32(1))

    def three(encoding: list, words=D, width=8) -> bytes:
        return chunk(3, [NONE, encoding], 3 * width)

    whole = plain(numbers("q", 1, 2, 3))
    for width, words in (
        (1, field("x", "int8")),
        (2, field("x", "float16")),
        (3, field("x", "fixed_binary", width=3)),
        (16, field("x", "decimal128", precision=9, scale=0)),
    ):
        yield (
            f"bits-decimals-width-{width}",
            [words],
            three(decimals(0, plain(bytes(3 * width))), width=width),
        )
    yield "exponent-23", D, three(decimals(23, whole))
    yield "exponent-255", D, three(decimals(255, whole))
    yield (
        "exponent-23-float32",
        [field("f", "float32")],
        three(decimals(23, plain(bytes(12))), width=4),
    )
    for name, count, positions in (
        ("more-than-values", 4, plain(numbers("I", 0, 1, 2, 3))),
        ("fall", 2, plain(numbers("I", 1, 0))),
        ("stay", 2, one),
        ("reach-n", 2, plain(numbers("I", 1, 3))),
    ):
        yield (
            f"positions-decimals-{name}",
            D,
            three(decimals(1, whole, count, positions, constant(u64(7)))),
        )
    inner = plain(numbers("I", 0, 1))
    forms = {
        "dictionary": dictionary(1, plain(u64(7)), constant(u32(0))),
        "runs": runs(1, constant(u64(1)), constant(u32(3))),
        "delta": delta(u64(1), constant(u64(0))),
        "decimals": decimals(0, whole),
    }
    for name, form in forms.items():
        yield f"code-decimals-integers-{name}", D, three(decimals(1, form))
        yield f"code-decimals-exceptions-{name}", D, three(decimals(1, whole, 2, inner, form))
    patched_part = frame_patched(0, u32(0), [0, 0], 1, one, one)
    yield (
        "code-decimals-positions-patched",
        D,
        three(decimals(1, whole, 2, patched_part, constant(u64(7)))),
    )
    yield (
        "code-runs-entries-decimals",
        D,
        three(runs(1, decimals(0, plain(u64(1))), constant(u32(3)))),
    )
    yield "code-delta-differences-decimals", D, three(delta(u64(1), decimals(0, plain(bytes(16)))))
    yield (
        "code-dictionary-entries-decimals",
        D,
        three(dictionary(1, decimals(0, plain(u64(1))), constant(u32(0)))),
    )
    yield "length-decimals-integers", D, three(decimals(1, plain(numbers("q", 1, 2))))
    yield "truncated-decimals-count", D, chunk(3, [NONE, b"\7\1", whole], 24)

    def pair(second: list, words=PAIR, first=BASE, decoded=24) -> bytes:
        return chunk(3, [first, second], decoded)

    near = plain(numbers("i", 1, 2, 3))
    yield "base-itself", PAIR, pair([NONE, relative(1, near)])
    yield "base-later", [*PAIR, PAIR[0]], chunk(3, [BASE, [NONE, relative(2, near)], BASE], 36)
    yield "base-none", PAIR, pair([NONE, relative((1 << 32) - 1, near)])
    yield "base-first", PAIR, chunk(3, [NONE, relative(0, near), BASE], 24)
    narrow = [NONE, plain(numbers("h", 1, 2, 3))]
    yield (
        "base-width",
        [field("a", "int16"), PAIR[1]],
        pair([NONE, relative(0, near)], first=narrow, decoded=18),
    )
    yield (
        "base-strings",
        [*S, PAIR[1]],
        pair([NONE, relative(0, near)], first=[NONE, strings(b"", b"", b"")], decoded=28),
    )
    with_nulls = [nullable("a", "int32"), PAIR[1]]
    dense_base = [dense("101"), plain(numbers("i", 100, 0, 99))]
    yield "base-missing", with_nulls, pair([NONE, relative(0, near)], first=dense_base, decoded=25)
    yield "base-all-missing", with_nulls, pair([NONE, relative(0, near)], first=[b"\3"], decoded=25)
    nulls = [PAIR[0], nullable("b", "int32")]
    yield "code-relative-dense", nulls, pair([dense("101"), relative(0, near)], decoded=25)
    yield (
        "code-relative-packed",
        nulls,
        pair([packed("101"), relative(0, plain(numbers("i", 1, 2)))], decoded=25),
    )
    within = field("b", "struct", children=[PAIR[1]])
    yield "code-relative-child", [PAIR[0], within], pair([NONE, [NONE, relative(0, near)]])
    for name, form in {
        "runs": runs(1, constant(u32(1)), constant(u32(3))),
        "delta": delta(u32(1), constant(u32(0))),
        "decimals": decimals(0, near),
        "relative": relative(0, near),
    }.items():
        yield f"code-relative-differences-{name}", PAIR, pair([NONE, relative(0, form)])
    for width, words in (
        (1, field("x", "int8")),
        (3, field("x", "fixed_binary", width=3)),
        (16, field("x", "decimal128", precision=9, scale=0)),
    ):
        first = [NONE, plain(bytes(3 * width))]
        yield (
            f"bits-relative-width-{width}",
            [words, words],
            chunk(3, [first, [NONE, relative(0, first[1])]], 6 * width),
        )
    yield "length-relative", PAIR, pair([NONE, relative(0, plain(numbers("i", 1, 2)))])
    yield "decoded-relative", PAIR, pair([NONE, relative(0, near)], decoded=23)
    yield "truncated-relative", PAIR, pair([NONE, b"\10\0\0"])
