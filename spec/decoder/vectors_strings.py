"""Encodings of strings and binary, symbols included: accepted chunks."""

from vectors_accept import NONE, Accepted, accept
from vectors_coded import CARE, S
from writer import *  # the vocabulary of this page


def accepted_strings() -> list[Accepted]:
    return [*string_encodings(), *symbols()]


def string_encodings():
    s = [field("s", "utf8")]
    yield accept(
        "strings-constant",
        "constant, of utf8 and binary",
        [field("s", "utf8"), field("b", "binary"), field("e", "utf8")],
        [["né"] * 3, ["ff"] * 3, [""] * 3],
        [
            NONE,
            strings_constant("né".encode()),
            NONE,
            strings_constant(b"\xff"),
            NONE,
            strings_constant(b""),
        ],
        decoded=16 + 9 + 16 + 3 + 16,
    )
    yield accept(
        "strings-lengths-plain",
        "plain lengths",
        s,
        [["ab", "", "c"]],
        [NONE, strings_lengths(plain(numbers("I", 2, 0, 1)), b"abc")],
        decoded=16 + 3,
    )
    yield accept(
        "strings-lengths-constant",
        "constant lengths: strings of fixed width",
        s,
        [["ab", "cd", "ef"]],
        [NONE, strings_lengths(constant(u32(2)), b"abcdef")],
        decoded=16 + 6,
    )
    yield accept(
        "strings-lengths-frame",
        "lengths in a frame",
        [field("b", "binary")],
        [["6162", "636465", "66"]],
        [NONE, strings_lengths(frame(2, u32(1), [1, 2, 0]), b"abcdef")],
        decoded=16 + 6,
    )
    yield accept(
        "strings-empty-data",
        "only empty strings",
        s,
        [["", ""]],
        [NONE, strings(b"", b"")],
        decoded=12,
    )
    entries = strings(b"red", b"", b"blue")
    values = ["blue", "red", "", "red"]
    indexes = [2, 0, 1, 0]
    for form, part in {
        "plain": plain(numbers("I", *indexes)),
        "frame": frame(2, u32(0), indexes),
    }.items():
        yield accept(
            f"strings-dictionary-indexes-{form}",
            f"entries with offsets, indexes {form}",
            s,
            [values],
            [NONE, dictionary(3, entries, part)],
            decoded=20 + 10,
        )
    one = dictionary(1, strings_lengths(constant(u32(2)), b"\xff\xfe"), constant(u32(0)))
    yield accept(
        "strings-dictionary-indexes-constant",
        "entries with constant lengths, indexes constant",
        [field("b", "binary")],
        [["fffe"] * 3],
        [NONE, one],
        decoded=16 + 6,
    )
    two = dictionary(
        2, strings_lengths(plain(numbers("I", 1, 2)), b"abc"), plain(numbers("I", 1, 0, 1))
    )
    yield accept(
        "strings-dictionary-lengths-plain",
        "entries with plain lengths",
        s,
        [["bc", "a", "bc"]],
        [NONE, two],
        decoded=16 + 5,
    )
    framed = dictionary(
        2, strings_lengths(frame(1, u32(1), [0, 1]), b"abc"), plain(numbers("I", 1, 0, 1))
    )
    yield accept(
        "strings-dictionary-packed",
        "packed nulls over a dictionary, lengths in a frame",
        [nullable("s", "utf8")],
        [["bc", None, "a", "bc"]],
        [packed("1011"), framed],
        decoded=1 + 20 + 5,
    )


def symbols():
    yield accept(
        "symbols-spec-example",
        "encodings.md section 3.1",
        S,
        [["carefully", "care"]],
        [NONE, strings_symbols(plain(numbers("I", 9, 4)), CARE, 3, plain(numbers("H", 0, 1, 0)))],
        decoded=12 + 13,
    )
    yield accept(
        "symbols-bytes",
        "codes of bytes after those of symbols; a symbol of two strings, of half a "
        "character, and of one byte",
        S,
        [["x!care", "lesé", "a"]],
        [
            NONE,
            strings_symbols(
                plain(numbers("I", 6, 5, 1)),
                symbols_table(b"carel", b"es\xc3", b"a"),
                6,
                plain(numbers("H", 3 + ord("x"), 3 + ord("!"), 0, 1, 3 + 0xA9, 2)),
            ),
        ],
        decoded=16 + 12,
    )
    yield accept(
        "symbols-no-symbols",
        "an empty table: the bytes alone, in frames",
        [field("b", "binary")],
        [["00ff", "80"]],
        [
            NONE,
            strings_symbols(
                frame(1, u32(1), [1, 0]), symbols_table(), 3, frame(8, u16(0), [0, 255, 128])
            ),
        ],
        decoded=12 + 3,
    )
    yield accept(
        "symbols-no-strings",
        "no data and no codes: empty strings; a list of no strings",
        [field("s", "utf8"), field("l", "list", children=[field("item", "utf8")])],
        [[""], [[]]],
        [
            [NONE, strings_symbols(constant(u32(0)), symbols_table(), 0, plain(b""))],
            [NONE, list_offsets(0, 0), NONE, strings_symbols(plain(b""), CARE, 0, plain(b""))],
        ],
        decoded=8 + 8 + 4,
    )
    most = [b"%016d" % i for i in range(3840)]
    yield accept(
        "symbols-most",
        "3840 symbols of 16 bytes, their lengths constant, their bytes and the codes plain; "
        "the last symbol and the last byte",
        [field("b", "binary")],
        [[most[0].hex(), most[3839].hex() + "ff"]],
        [
            NONE,
            strings_symbols(
                plain(numbers("I", 16, 17)),
                [b"\0", u32(3840), constant(u8(16)), Buffer(b"".join(most))],
                3,
                plain(numbers("H", 0, 3839, 4095)),
            ),
        ],
        decoded=12 + 33,
    )
    yield accept(
        "symbols-compressed",
        "table and codes compressed; codes patched; most values missing",
        [nullable("s", "utf8")],
        [[None, "abcabcabcabcabcabc", None, "!"]],
        [
            packed("0101"),
            strings_symbols(
                plain(numbers("I", 18, 1)),
                [b"\0", u32(2), [b"\0", zstd(b"\x06\x03")], lz4(b"abcabcabc")],
                4,
                frame_patched(
                    1, u16(0), [0, 0, 0, 0], 1, constant(u32(3)), constant(u16(2 + ord("!")))
                ),
            ),
        ],
        decoded=1 + 20 + 19,
    )
    entries = strings_symbols(plain(numbers("I", 4, 9)), CARE, 3, plain(numbers("H", 0, 0, 1)))
    yield accept(
        "symbols-entries",
        "of a dictionary",
        S,
        [["carefully", "care", "carefully"]],
        [NONE, dictionary(2, entries, plain(numbers("I", 1, 0, 1)))],
        decoded=16 + 22,
    )
