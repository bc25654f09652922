"""Encodings of booleans and values of fixed width: accepted chunks."""

from vectors_accept import NONE, Accepted, accept, exact
from writer import *  # the vocabulary of this page


def accepted_encodings() -> list[Accepted]:
    groups = (
        booleans_and_fixed,
        frames,
        runs_delta_and_patched,
    )
    return [vector for group in groups for vector in group()]


def booleans_and_fixed():
    yield accept(
        "boolean-constant",
        "false and true",
        [field("f", "boolean"), field("t", "boolean")],
        [[False] * 9, [True] * 9],
        [NONE, constant(b"\0"), NONE, constant(b"\1")],
        decoded=4,
    )
    words = [
        field("a", "int8"),
        field("b", "decimal256", precision=3, scale=0),
        field("c", "fixed_binary", width=3),
        field("d", "float64"),
    ]
    parts = [
        NONE,
        constant(b"\xff"),
        NONE,
        constant(integers(32, -5)),
        NONE,
        constant(b"abc"),
        NONE,
        constant(struct.pack("<d", 1.0)),
    ]
    yield accept(
        "fixed-constant",
        "widths 1, 32, 3 and 8",
        words,
        [[-1] * 2, [-5] * 2, ["616263"] * 2, ["3ff0000000000000"] * 2],
        parts,
        decoded=2 * (1 + 32 + 3 + 8),
    )
    entries = plain(numbers("h", -300, 300, 7))
    values = [7, 300, -300, 300, 7, 7]
    indexes = [2, 1, 0, 1, 2, 2]
    forms = {
        "plain": (plain(numbers("I", *indexes)), values),
        "frame": (frame(2, u32(0), indexes), values),
        "constant": (constant(u32(1)), [300] * 6),
    }
    for form, (part, expected) in forms.items():
        yield accept(
            f"fixed-dictionary-indexes-{form}",
            f"indexes {form}",
            [field("x", "int16")],
            [expected],
            [NONE, dictionary(3, entries, part)],
            decoded=12,
        )
    constants = dictionary(2, constant(numbers("h", 9)), plain(numbers("I", 0, 1, 0)))
    yield accept(
        "fixed-dictionary-entries-constant",
        "entries constant",
        [field("x", "int16")],
        [[9, 9, 9]],
        [NONE, constants],
        decoded=6,
    )
    wide = dictionary(1, plain(integers(32, -1)), frame(0, u32(0), [0, 0]))
    odd = dictionary(2, plain(b"abcdef"), frame(1, u32(0), [1, 0]))
    words = [field("x", "decimal256", precision=76, scale=1), field("y", "fixed_binary", width=3)]
    yield accept(
        "fixed-dictionary-widths",
        "widths that have no frame",
        words,
        [[-1, -1], ["646566", "616263"]],
        [NONE, wide, NONE, odd],
        decoded=64 + 6,
    )


def frames():
    yield accept(
        "frame-spec-example",
        "encodings.md section 4: 5, 1, 7 in 3 bits",
        [field("x", "uint8")],
        [[5, 1, 7]],
        [NONE, frame(3, b"\0", [5, 1, 7])],
        decoded=3,
    )
    yield accept(
        "frame-no-bits",
        "0 bits, an empty buffer",
        [field("x", "int32")],
        [[-9] * 5],
        [NONE, frame(0, numbers("i", -9), [0] * 5)],
        decoded=20,
    )
    packed_values = [0, 1, 2, 3]
    words = [
        field("a", "int8"),
        field("b", "int16"),
        field("c", "int32"),
        field("d", "int64"),
        field("e", "decimal128", precision=38, scale=0),
    ]
    widths = (1, 2, 4, 8, 16)
    wrapped = [
        [
            exact(v)
            for v in (
                (1 << 8 * w - 1) - 2,
                (1 << 8 * w - 1) - 1,
                -(1 << 8 * w - 1),
                -(1 << 8 * w - 1) + 1,
            )
        ]
        for w in widths
    ]
    parts = [[NONE, frame(2, integers(w, (1 << 8 * w - 1) - 2), packed_values)] for w in widths]
    yield accept(
        "frame-wraps",
        "every width; the sum wraps modulo 2^(8w)",
        words,
        wrapped,
        parts,
        decoded=4 * sum(widths),
    )
    full = [(1 << 64) - 1, 0, 1]
    yield accept(
        "frame-64-bits",
        "all 64 bits",
        [field("x", "uint64")],
        [[exact((v - 5) % (1 << 64)) for v in full]],
        [NONE, frame(64, integers(8, -5), full)],
        decoded=24,
    )
    carry = [(1 << 64) - 1, 1]
    reference = (1 << 64) - 1
    yield accept(
        "frame-16-bytes-carry",
        "the sum carries into the upper half",
        [field("x", "decimal128", precision=38, scale=2)],
        [[exact(reference + v) for v in carry]],
        [NONE, frame(64, integers(16, reference), carry)],
        decoded=32,
    )
    other = [
        field("f", "float32"),
        field("b", "fixed_binary", width=2),
        field("i", "interval_month_day_nano"),
    ]
    parts = [
        NONE,
        frame(1, u32(0x3F800000), [0, 1]),
        NONE,
        frame(16, u16(0), [0x4241, 0x4443]),
        NONE,
        frame(5, integers(16, 0), [1, 31]),
    ]
    yield accept(
        "frame-other-types",
        "bytes are integers whatever the type",
        other,
        [["3f800000", "3f800001"], ["4142", "4344"], [[1, 0, 0], [31, 0, 0]]],
        parts,
        decoded=8 + 4 + 32,
    )
    for n, bits, type, width in (
        (1024, 1, "uint8", 1),
        (1029, 5, "int16", 2),
        (1024, 8, "uint8", 1),
        (1029, 8, "int64", 8),
        (1030, 16, "uint32", 4),
        (2050, 3, "uint8", 1),
        (1030, 17, "uint32", 4),
        (1025, 32, "uint32", 4),
        (1027, 33, "uint64", 8),
        (1024, 64, "uint64", 8),
    ):
        values = [i * 0x9E3779B97F4A7C15 % (1 << 64) >> 64 - bits for i in range(n)]
        name = f"frame-{n}-values-{bits}-bits"
        yield accept(
            name,
            f"{n // 1024} block(s) and a tail of {n % 1024}",
            [field("x", type)],
            [[exact(v) for v in values]],
            [NONE, frame(bits, bytes(width), values)],
            decoded=n * width,
        )
    values = [i * i * i * 1021 % (1 << 40) for i in range(1030)]
    reference = -(10**20)
    yield accept(
        "frame-16-bytes-block",
        "16 bytes wide, 40 bits, a block and a tail",
        [field("x", "decimal128", precision=38, scale=4)],
        [[exact(reference + v) for v in values]],
        [NONE, frame(40, integers(16, reference), values)],
        decoded=1030 * 16,
    )


def runs_delta_and_patched():
    x = [field("x", "int32")]
    yield accept(
        "runs-spec-example",
        "encodings.md section 2: 7, 7, 7, 9",
        x,
        [[7, 7, 7, 9]],
        [NONE, runs(2, plain(numbers("i", 7, 9)), plain(numbers("I", 3, 1)))],
        decoded=16,
    )
    yield accept(
        "runs-parts",
        "one run; entries in a frame; lengths patched; a width without frames; missing "
        "values left out",
        [
            field("a", "int8"),
            field("b", "int16"),
            field("c", "fixed_binary", width=3),
            field("d", "int64", nullable=True),
        ],
        [[-1] * 6, [7, 7, 9, 8, 8, 8], ["616263"] * 5 + ["646566"], [None, 4, 4, 4, None, None]],
        [
            [NONE, runs(1, constant(b"\xff"), constant(u32(6)))],
            [NONE, runs(3, frame(2, numbers("h", 7), [0, 2, 1]), plain(numbers("I", 2, 1, 3)))],
            [
                NONE,
                runs(
                    2,
                    plain(b"abcdef"),
                    frame_patched(1, u32(1), [0, 0], 1, constant(u32(0)), constant(u32(5))),
                ),
            ],
            [packed("011100"), runs(1, plain(numbers("q", 4)), constant(u32(3)))],
        ],
        decoded=6 + 12 + 18 + 1 + 48,
    )
    yield accept(
        "delta-spec-example",
        "encodings.md section 2: 5, 6, 9",
        x,
        [[5, 6, 9]],
        [NONE, delta(numbers("i", 5), frame(2, u32(1), [0, 2]))],
        decoded=12,
    )
    yield accept(
        "delta-wraps",
        "every width, modulo the width; parts constant, plain and patched",
        [field("a", "uint8"), field("b", "int16"), field("c", "int32"), field("d", "int64")],
        [
            [250, 0, 6],
            [32767, -32768, -32769 + 65536],
            [-1, 0, -1 << 31],
            [str(-1 << 63), str((1 << 63) - 1), str((1 << 63) - 2)],
        ],
        [
            [NONE, delta(b"\xfa", constant(b"\6"))],
            [NONE, delta(numbers("h", 32767), plain(numbers("h", 1, -1)))],
            [
                NONE,
                delta(
                    numbers("i", -1),
                    frame_patched(
                        1, u32(0), [1, 0], 1, constant(u32(1)), constant(numbers("i", -1 << 31))
                    ),
                ),
            ],
            [NONE, delta(numbers("q", -1 << 63), frame(0, numbers("q", -1), [0, 0]))],
        ],
        decoded=3 + 6 + 12 + 24,
    )
    yield accept(
        "delta-constant-differences",
        "falls by seven",
        x,
        [[10, 3, -4, -11]],
        [NONE, delta(numbers("i", 10), constant(numbers("i", -7)))],
        decoded=16,
    )
    yield accept(
        "delta-of-one",
        "no differences, plain; dates",
        [field("x", "date32")],
        [[17]],
        [NONE, delta(numbers("i", 17), plain(b""))],
        decoded=4,
    )
    yield accept(
        "patched-spec-example",
        "encodings.md section 2: 1, 2, 900, 3",
        x,
        [[1, 2, 900, 3]],
        [NONE, frame_patched(2, u32(1), [0, 1, 0, 2], 1, constant(u32(2)), constant(u32(900)))],
        decoded=16,
    )
    ramp = [i % 7 for i in range(1030)]
    exceptions = {0: -5, 1023: 70000, 1024: -70000, 1029: 12}
    yield accept(
        "patched-across-blocks",
        "exceptions at both ends of a block and of the tail, below and above; positions in a "
        "frame, exceptions plain",
        x,
        [[exceptions.get(i, value - 3) for i, value in enumerate(ramp)]],
        [
            NONE,
            frame_patched(
                3,
                numbers("i", -3),
                [0 if i in exceptions else value for i, value in enumerate(ramp)],
                4,
                frame(11, u32(0), list(exceptions)),
                plain(numbers("i", *exceptions.values())),
            ),
        ],
        decoded=4120,
    )
    yield accept(
        "patched-widths",
        "widths 1, 2, 8 and 16; all values exceptions",
        [
            field("a", "int8"),
            field("b", "uint16"),
            field("c", "float64"),
            field("d", "decimal128", precision=38, scale=0),
        ],
        [[-128, 1], [1, 65535], ["3ff0000000000000"] * 2, [str(1 << 100), 5]],
        [
            [NONE, frame_patched(1, b"\0", [0, 1], 1, constant(u32(0)), constant(b"\x80"))],
            [
                NONE,
                frame_patched(
                    0, numbers("H", 1), [0, 0], 1, constant(u32(1)), constant(b"\xff\xff")
                ),
            ],
            [
                NONE,
                frame_patched(
                    0,
                    bytes(8),
                    [0, 0],
                    2,
                    plain(numbers("I", 0, 1)),
                    constant(struct.pack("<d", 1.0)),
                ),
            ],
            [
                NONE,
                frame_patched(
                    3, integers(16, 0), [0, 5], 1, constant(u32(0)), plain(integers(16, 1 << 100))
                ),
            ],
        ],
        decoded=2 + 4 + 16 + 32,
    )
    yield accept(
        "patched-lengths-and-indexes",
        "lengths of strings and of lists, indexes of both kinds of dictionary",
        [
            field("s", "utf8"),
            field("l", "list", children=[field("item", "int8")]),
            field("e", "int32"),
            field("d", "dictionary", index="uint8", ordered=False, values={"type": "int32"}),
        ],
        [["a", "bcd"], [[1], [2, 3, 4]], [8, 9], [8, 9]],
        [
            [
                NONE,
                strings_lengths(
                    frame_patched(0, u32(1), [0, 0], 1, constant(u32(1)), constant(u32(3))), b"abcd"
                ),
            ],
            [
                NONE,
                list_lengths(
                    frame_patched(0, u32(1), [0, 0], 1, constant(u32(1)), constant(u32(3)))
                ),
                NONE,
                plain(b"\1\2\3\4"),
            ],
            [
                NONE,
                dictionary(
                    2,
                    plain(numbers("i", 8, 9)),
                    frame_patched(0, u32(0), [0, 0], 1, constant(u32(1)), constant(u32(1))),
                ),
            ],
            [
                NONE,
                dictionary_type(
                    2,
                    [NONE, plain(numbers("i", 8, 9))],
                    frame_patched(0, b"\0", [0, 0], 1, constant(u32(1)), constant(b"\1")),
                ),
            ],
        ],
        decoded=12 + 4 + 12 + 4 + 8 + 2 + 8,
    )
