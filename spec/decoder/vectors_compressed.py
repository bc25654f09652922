"""The layout of buffers in the body, and compressed buffers: accepted chunks."""

from vectors_accept import NONE, Accepted, accept
from writer import *  # the vocabulary of this page


def accepted_compressed() -> list[Accepted]:
    return [*buffers(), *compressed()]


def buffers():
    small, large = "a" * 4095, "b" * 4096
    yield accept(
        "buffers-alignment",
        "4095 bytes begin at a multiple of 8, 4096 at one of 64",
        [field("i", "int8"), field("s", "utf8"), field("t", "utf8"), field("u", "int8")],
        [[1], [small], [large], [2]],
        [
            NONE,
            plain(b"\1"),
            NONE,
            strings_constant(small.encode()),
            NONE,
            strings(large.encode()),
            NONE,
            plain(b"\2"),
        ],
        decoded=1 + (8 + 4095) + (8 + 4096) + 1,
        checksummed=True,
    )
    values = list(range(-256, 256))
    yield accept(
        "buffers-large-numbers",
        "a bitmap, then 4096 bytes of numbers",
        [nullable("x", "int64")],
        [[None, *values[1:]]],
        [dense("0" + "1" * 511), plain(numbers("q", 0, *values[1:]))],
        decoded=64 + 4096,
    )
    data = "".join(chr(33 + i * i % 90) for i in range(4200)).encode()
    stored = _literals(data)
    yield accept(
        "buffers-large-compressed",
        "4096 bytes and more as they lie in the body",
        [field("i", "int8"), field("s", "utf8")],
        [[1], [data.decode()]],
        [NONE, plain(b"\1"), NONE, [b"\1", Buffer(stored, LZ4, len(data))]],
        decoded=1 + 8 + len(data),
    )
    yield accept(
        "buffers-small-compressed",
        "4096 bytes raw, but few in the body",
        [field("i", "int8"), field("s", "utf8")],
        [[1], [large]],
        [NONE, plain(b"\1"), NONE, [b"\1", lz4(large.encode())]],
        decoded=1 + 8 + 4096,
    )
    yield accept(
        "buffers-empty-between",
        "empty buffers take no room",
        [field("i", "int8"), field("s", "utf8"), field("j", "int8")],
        [[1], [""], [2]],
        [NONE, plain(b"\1"), NONE, strings(b""), NONE, plain(b"\2")],
        decoded=1 + 8 + 1,
    )


def _literals(data: bytes) -> bytes:
    """An LZ4 block of one sequence without a match."""
    more = len(data) - 15
    return b"\xf0" + b"\xff" * (more // 255) + u8(more % 255) + data


# `zstd -9` of the text below: with the content size, and without it but with a checksum.
ZSTD_COMPRESSED = bytes.fromhex("28b52ffd60680095000048636172727920743b2002005335d588568a")


ZSTD_CHECKSUMMED = bytes.fromhex("28b52ffd040095000048636172727920743b2002005335d588568aa04996c2")


ZSTD_TEXT = b"carry carry cart; " * 20


def compressed():
    values = [i % 7 for i in range(60)]
    data = numbers("i", *values)
    for name, codec in (("lz4", lz4), ("zstd", zstd)):
        yield accept(
            f"{name}-fixed",
            "plain numbers",
            [field("x", "int32")],
            [values],
            [NONE, [b"\0", codec(data)]],
            decoded=240,
        )
        text = b"to and fro and to and fro"
        parts = [NONE, [b"\0", codec(numbers("I", 0, 9, 25)), codec(text)]]
        yield accept(
            f"{name}-strings",
            "offsets and data",
            [field("s", "utf8")],
            [["to and fr", "o and to and fro"]],
            parts,
            decoded=12 + 25,
        )
        bits = [b"\1", u32(72), codec(bytes(9))], [b"\0", codec(b"\x55" * 9)]
        yield accept(
            f"{name}-bitmap",
            "a bitmap, and booleans",
            [nullable("x", "int8"), field("b", "boolean")],
            [[None] * 72, [True, False] * 36],
            [bits[0], constant(b"\0"), NONE, bits[1]],
            decoded=9 + 72 + 9,
        )
        repeated = [b"\2", u8(4), u32(0), codec(pack(values, 4))]
        yield accept(
            f"{name}-frame",
            "over packed values",
            [field("x", "int32")],
            [values],
            [NONE, repeated],
            decoded=240,
        )
        yield accept(
            f"{name}-nothing",
            "unpacks to 0 bytes",
            [field("s", "utf8")],
            [[""]],
            [NONE, [b"\0", Buffer(u32(0) * 2), codec(b"")]],
            decoded=8,
        )
    text = [field("s", "utf8")], [[ZSTD_TEXT.decode()]]
    yield accept(
        "zstd-entropy-coded",
        "literals and sequences coded by libzstd",
        *text,
        [NONE, [b"\1", Buffer(ZSTD_COMPRESSED, ZSTD, 360)]],
        decoded=8 + 360,
    )
    yield accept(
        "zstd-no-content-size",
        "without a content size, with a content checksum",
        *text,
        [NONE, [b"\1", Buffer(ZSTD_CHECKSUMMED, ZSTD, 360)]],
        decoded=8 + 360,
    )
    mixed = [b"\2", [b"\0", lz4(numbers("I", 3, 3))], zstd(b"aaaaaa")]
    yield accept(
        "compressors-mixed",
        "lz4 lengths, zstd data, in one checksummed chunk",
        [field("s", "utf8")],
        [["aaa", "aaa"]],
        [NONE, mixed],
        decoded=12 + 6,
        checksummed=True,
    )
