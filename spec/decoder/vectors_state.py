"""State frames, and chunks that use their tables (state.md): accepted and refused."""

from vectors_accept import NONE, Accepted
from vectors_coded import CARE
from writer import *  # the vocabulary of this page

S, B = [field("s", "utf8")], [field("b", "binary")]
X, D = [field("x", "int32")], [field("d", "float64")]
CARRIERS = strings_lengths(constant(u32(2)), b"AADL")


def stream_values(table: int, indexes: list) -> list:
    return [b"\x09", u32(table), indexes]


def stream_strings(table: int, indexes: list) -> list:
    return [b"\x05", u32(table), indexes]


def stream_symbols(table: int) -> list:
    return [b"\1", u32(table)]


def indexes(*values: int) -> list:
    return plain(numbers("I", *values))


def carriers(number: int = 3, first: int = 0, count: int = 2, entries: list = CARRIERS) -> list:
    return table_strings(number, 2, first, count, entries)


def worked_frame() -> bytes:
    """state.md section 5."""
    return state([carriers()], 12)


def accept(name, about, words, columns, frames: list[bytes], parts, decoded, **header) -> Accepted:
    rows = len(columns[0])
    data = b"".join(frames) + chunk(rows, parts, decoded, states=len(frames), **header)
    return Accepted(f"state-{name}", about, words, data, rows, decoded, columns)


def accepted_states() -> list[Accepted]:
    sevens = table_fixed(0, 0, 2, 4, plain(numbers("i", 7, -1)))
    more = table_fixed(0, 2, 1, 4, constant(numbers("i", 9)))
    symbols = table_symbols(65535, CARE[1:])
    return [
        accept(
            "spec-example",
            "state.md section 5",
            S,
            [["DL", "DL", "AA"]],
            [worked_frame()],
            [NONE, stream_strings(3, indexes(1, 1, 0))],
            16 + 6,
        ),
        accept(
            "values",
            "entries of fixed width, appended in the next frame; checksums",
            X,
            [[7, 9, -1, 9]],
            [state([sevens], 8, checksummed=True), state([more], 4, sequence=1, checksummed=True)],
            [NONE, stream_values(0, indexes(0, 2, 1, 2))],
            16,
            checksummed=True,
        ),
        accept(
            "two-tables",
            "a frame of two tables, each of another column; a bit pattern that is no number",
            D + B,
            [["7ff8000000000001", "0000000000000000"], ["ff", ""]],
            [
                state(
                    [
                        table_fixed(1, 0, 2, 8, plain(u64(0x7FF8000000000001) + u64(0))),
                        table_strings(2, 3, 0, 2, strings(b"", b"\xff")),
                    ],
                    16 + 8 + 1,
                )
            ],
            [
                NONE,
                stream_values(1, indexes(0, 1)),
                NONE,
                stream_strings(2, frame(1, u32(0), [1, 0])),
            ],
            16 + 12 + 1,
        ),
        accept(
            "appended-in-one-frame",
            "a table that is begun and continued in one frame",
            S,
            [["DL", "é", ""]],
            [state([carriers(), carriers(3, 2, 2, strings("é".encode(), b""))], 12 + 8 + 2)],
            [NONE, stream_strings(3, indexes(1, 2, 3))],
            16 + 4,
        ),
        accept(
            "replaced",
            "a number that is used again, for entries of another kind",
            X,
            [[9]],
            [
                worked_frame(),
                state([table_fixed(3, 0, 1, 4, plain(numbers("i", 9)))], 4, sequence=1),
            ],
            [NONE, stream_values(3, constant(u32(0)))],
            4,
        ),
        accept(
            "symbols",
            "encodings.md section 3.1, the table in a state frame",
            S,
            [["carefully", "care"]],
            [state([symbols], 2 + 9)],
            [
                NONE,
                strings_symbols(
                    plain(numbers("I", 9, 4)),
                    stream_symbols(65535),
                    3,
                    plain(numbers("H", 0, 1, 0)),
                ),
            ],
            12 + 13,
        ),
        accept(
            "symbols-of-entries",
            "a dictionary in the chunk whose entries are coded with a table that stands",
            S,
            [["care", "care"]],
            [state([symbols], 2 + 9)],
            [
                NONE,
                dictionary(
                    1,
                    strings_symbols(constant(u32(4)), stream_symbols(65535), 1, constant(u16(0))),
                    constant(u32(0)),
                ),
            ],
            12 + 8,
        ),
        accept(
            "unused",
            "a frame before a chunk that needs none",
            X,
            [[7]],
            [worked_frame()],
            [NONE, constant(numbers("i", 7))],
            4,
        ),
        accept(
            "compressed",
            "buffers of a state frame may be compressed, and need not be used whole",
            S,
            [["x" * 300]],
            [state([table_strings(0, 2, 0, 1, [b"\2", constant(u32(300)), lz4(b"x" * 300)])], 304)],
            [NONE, stream_strings(0, constant(u32(0)))],
            8 + 300,
        ),
        accept(
            "largest",
            "as many entries and bytes as a table may have",
            B,
            [["61626364", "61626364"]],
            [
                state(
                    [
                        table_strings(
                            0, 3, 0, 1 << 14, strings_lengths(constant(u32(4)), b"abcd" * (1 << 14))
                        )
                    ],
                    8 << 14,
                )
            ],
            [NONE, stream_strings(0, indexes(0, (1 << 14) - 1))],
            12 + 8,
        ),
    ]


def rejected_states():
    """Yields name, schema, and state frames followed by a chunk."""
    three = chunk(3, [NONE, stream_strings(3, indexes(1, 1, 0))], 16 + 6, states=1)
    worked = worked_frame()
    plain_chunk = chunk(1, [NONE, constant(numbers("i", 7))], 4, states=1)

    def damaged(**header) -> bytes:
        return state([carriers()], 12, **header) + three

    yield "version-state-1", S, damaged(version=1)
    yield "flags-state-jumbo", S, damaged(other_flags=2)
    yield "reserved-state-first", S, damaged(states=1)
    yield "reserved-state-last", S, damaged(reserved=bytes(19) + b"\1")
    yield "reserved-state-padding", S, damaged(padding=b"\1")
    yield "checksum-state", S, damaged(checksummed=True, checksum_xor=1)
    yield "checksum-state-without-flag", S, damaged(checksum_xor=1)
    yield "size-state-cut", S, worked[:-1]
    yield "size-state-header-cut", S, worked[:63]
    yield "limit-state-decoded", S, state([carriers()], (64 << 20) + 1) + three
    yield "limit-state-size", S, worked[:24] + u32(16 << 20) + worked[28:] + three
    yield "truncated-state", S, state([carriers()], 12, rows=2) + three
    yield "trailing-state-descriptors", S, state([carriers(), carriers(4)], 24, rows=1) + three
    yield "trailing-state-body", S, damaged(body_after=bytes(8))
    yield "decoded-state-more", S, state([carriers()], 11) + three
    yield "decoded-state-fewer", S, state([carriers()], 13) + three

    def tables(*parts: list, decoded: int = 12) -> bytes:
        return state(list(parts), decoded) + three

    yield "state-no-tables", S, state([], 0) + three
    yield "state-number-65536", S, tables(carriers(65536))
    yield "code-state-table-4", S, tables([u32(3), b"\4", u32(0), u32(2), CARRIERS])
    yield (
        "code-state-values-frame",
        X,
        tables(table_fixed(3, 0, 2, 4, frame(1, u32(0), [0, 1])), decoded=8),
    )
    yield "code-state-strings-constant", S, tables(carriers(entries=strings_constant(b"AA")))
    yield (
        "code-state-strings-dictionary",
        S,
        tables(carriers(entries=dictionary(1, strings(b"AA"), indexes(0, 0)))),
    )
    yield (
        "code-state-strings-symbols",
        S,
        tables(
            carriers(
                entries=strings_symbols(
                    constant(u32(2)), symbols_table(b"AA", b"DL"), 2, plain(numbers("H", 0, 1))
                )
            )
        ),
    )
    yield "state-appended-to-nothing", S, tables(carriers(first=2))
    yield "state-appended-gap", S, tables(carriers(), carriers(first=3), decoded=24)
    yield "state-appended-overlap", S, tables(carriers(), carriers(first=1), decoded=24)
    yield (
        "state-appended-code",
        S,
        tables(carriers(), table_strings(3, 3, 2, 2, CARRIERS), decoded=24),
    )
    yield (
        "state-appended-width",
        X,
        tables(table_fixed(3, 0, 1, 4, plain(u32(7))), table_fixed(3, 1, 1, 8, plain(u64(7)))),
    )
    yield (
        "state-appended-to-symbols",
        S,
        tables(table_symbols(3, CARE[1:]), carriers(first=2), decoded=23),
    )
    yield "state-no-entries", S, tables(carriers(count=0, entries=strings()), decoded=0)
    yield (
        "state-entries-16385",
        B,
        tables(
            table_strings(3, 3, 0, (1 << 14) + 1, strings_lengths(constant(u32(0)), b"")),
            decoded=4 * ((1 << 14) + 1),
        ),
    )
    yield (
        "state-entries-appended-16385",
        B,
        tables(
            table_strings(3, 3, 0, 1 << 14, strings_lengths(constant(u32(0)), b"")),
            table_strings(3, 3, 1 << 14, 1, strings(b"")),
            decoded=4 * ((1 << 14) + 1),
        ),
    )
    yield (
        "state-entries-2-to-32",
        X,
        tables(table_fixed(3, 0, (1 << 32) - 1, 4, constant(u32(0))), decoded=1 << 20),
    )
    yield (
        "state-bytes-65537",
        B,
        tables(
            table_strings(3, 3, 0, 1, [b"\2", constant(u32(65537)), zstd(b"x" * 65537)]),
            decoded=65541,
        ),
    )
    yield (
        "state-values-bytes-65544",
        D,
        tables(table_fixed(3, 0, 8193, 8, constant(u64(0))), decoded=65544),
    )
    yield "state-width-0", X, tables(table_fixed(3, 0, 2, 0, plain(b"")), decoded=0)
    yield "state-width-65537", X, tables(table_fixed(3, 0, 1, 65537, plain(b"")), decoded=65537)
    yield (
        "utf8-state",
        S,
        tables(carriers(entries=strings_lengths(constant(u32(2)), b"AA\xff\xff"))),
    )
    yield (
        "utf8-state-split",
        S,
        tables(carriers(entries=strings_lengths(plain(numbers("I", 3, 1)), "AAé".encode()))),
    )
    yield "offsets-state", S, tables(carriers(entries=strings_lengths(constant(u32(2)), b"AADLX")))
    yield (
        "symbols-state-empty",
        S,
        tables(table_symbols(3, [u32(1), plain(b"\0"), Buffer(b"")]), decoded=1),
    )
    yield (
        "symbols-state-3841",
        S,
        tables(
            table_symbols(3, [u32(3841), plain(b"\1" * 3841), Buffer(b"x" * 3841)]), decoded=7682
        ),
    )

    yield "state-frame-lost", S, three
    yield "state-frame-too-many", S, worked + state([carriers(4)], 12, sequence=1) + three
    yield "state-frame-unannounced", X, worked + chunk(1, [NONE, constant(numbers("i", 7))], 4)
    yield "state-header-first", X, plain_chunk
    yield (
        "state-table-missing",
        S,
        worked + chunk(1, [NONE, stream_strings(2, constant(u32(0)))], 10, states=1),
    )
    yield (
        "state-table-of-strings",
        X,
        worked + chunk(1, [NONE, stream_values(3, constant(u32(0)))], 4, states=1),
    )
    yield (
        "state-table-of-utf8",
        B,
        worked + chunk(1, [NONE, stream_strings(3, constant(u32(0)))], 10, states=1),
    )
    narrow = state([table_fixed(3, 0, 2, 2, plain(numbers("h", 7, 8)))], 4)
    yield (
        "state-table-of-another-width",
        X,
        narrow + chunk(1, [NONE, stream_values(3, constant(u32(0)))], 4, states=1),
    )
    yield (
        "state-table-of-values",
        S,
        narrow + chunk(1, [NONE, stream_strings(3, constant(u32(0)))], 8, states=1),
    )
    codes = strings_symbols(constant(u32(4)), stream_symbols(3), 1, constant(u16(0)))
    yield "state-table-no-symbols", S, worked + chunk(1, [NONE, codes], 12, states=1)
    yield (
        "index-kept-strings",
        S,
        worked + chunk(1, [NONE, stream_strings(3, constant(u32(2)))], 10, states=1),
    )
    yield (
        "index-kept-values",
        [field("x", "int16")],
        narrow + chunk(1, [NONE, stream_values(3, constant(u32(2)))], 2, states=1),
    )
    symbols = state([table_symbols(3, CARE[1:])], 11)
    codes = strings_symbols(constant(u32(1)), stream_symbols(3), 1, constant(u16(2 + 256)))
    yield "index-kept-symbols", S, symbols + chunk(1, [NONE, codes], 9, states=1)
    yield (
        "decoded-kept-strings",
        S,
        worked + chunk(1, [NONE, stream_strings(3, constant(u32(0)))], 9, states=1),
    )
    for place, nested in (
        ("entries", dictionary(1, stream_values(3, constant(u32(0))), constant(u32(0)))),
        ("indexes", stream_values(3, stream_values(3, constant(u32(0))))),
        ("runs", runs(1, stream_values(3, constant(u32(0))), constant(u32(1)))),
    ):
        yield (
            f"code-kept-in-{place}",
            [field("x", "int16")],
            narrow + chunk(1, [NONE, nested], 2, states=1),
        )
    entries = dictionary(1, stream_strings(3, constant(u32(0))), constant(u32(0)))
    yield "code-kept-strings-in-entries", S, worked + chunk(1, [NONE, entries], 10, states=1)
