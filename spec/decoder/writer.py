"""Writes chunks, schemas and messages from declarations, valid or not. Shares nothing with the
decoder but crc32c.

A column is a list of parts, which may be nested: `bytes` go into the descriptors, a `Buffer` into
descriptors and body. So declarations can express both valid and invalid columns, in the order of
chunk.md section 3.
"""

import struct
from dataclasses import dataclass

from crc32c import crc32c

PLAIN, LZ4, ZSTD = 0, 1, 2
NONE_MISSING, ALL_MISSING = b"\0", b"\3"


def u8(value: int) -> bytes:
    return struct.pack("<B", value)


def u16(value: int) -> bytes:
    return struct.pack("<H", value)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def numbers(format: str, *values) -> bytes:
    """Values of one struct format, such as h, one after the other."""
    return struct.pack(f"<{len(values)}{format}", *values)


def integers(width: int, *values: int) -> bytes:
    """Values in two's complement of any width, one after the other."""
    return b"".join((value & (1 << 8 * width) - 1).to_bytes(width, "little") for value in values)


# --- chunk.md sections 1 to 6 ---


@dataclass(frozen=True)
class Buffer:
    """A buffer of the body. With a codec, `stored` is compressed and `raw` is its unpacked size."""

    stored: bytes
    codec: int = PLAIN
    raw: int = 0

    def descriptor(self) -> bytes:
        return u8(self.codec) + u32(len(self.stored)) + (u32(self.raw) if self.codec else b"")


def chunk(
    rows: int,
    parts: list,
    decoded: int,
    *,
    sequence: int = 0,
    checksummed: bool = False,
    jumbo: bool = False,
    magic: bytes = b"DRYC",
    version: int = 0,
    other_flags: int = 0,
    states: int = 0,
    reserved: bytes = bytes(20),
    body_after: bytes = b"",
    padding: bytes = b"\0",
    checksum_xor: int = 0,
) -> bytes:
    """A chunk. `parts` are those of all columns. The last seven arguments serve to break rules."""
    descriptors, body = bytearray(), bytearray()
    for part in flat(parts):
        if isinstance(part, bytes):
            descriptors += part
            continue
        descriptors += part.descriptor()
        if part.stored:
            multiple = 64 if len(part.stored) >= 4096 else 8
            body += padding * (-len(body) % multiple) + part.stored
    body += body_after
    descriptor_bytes = len(descriptors)
    descriptors += padding * (-descriptor_bytes % 64)

    def header(checksum: int) -> bytes:
        flags = other_flags | (1 if checksummed else 0) | (2 if jumbo else 0)
        sizes = u32(rows) + u32(descriptor_bytes) + u32(len(body))
        return (
            magic
            + u16(version)
            + u16(flags)
            + u64(sequence)
            + sizes
            + u32(checksum)
            + u64(decoded)
            + u32(states)
            + reserved
        )

    checksum = crc32c(descriptors + body + header(0)) if checksummed else 0
    return header(checksum ^ checksum_xor) + bytes(descriptors + body)


def state(tables: list, decoded: int, rows: int | None = None, **header) -> bytes:
    """A state frame (state.md): like a chunk, with tables instead of rows and columns."""
    return chunk(len(tables) if rows is None else rows, tables, decoded, magic=b"DRYS", **header)


def flat(parts):
    for part in parts:
        if isinstance(part, (list, tuple)):
            yield from flat(part)
        else:
            yield part


# --- chunk.md section 3: nulls; encodings.md: values ---


def bitmap(bits: str) -> bytes:
    """A bitmap from text: the first character, 1 or 0, is the first value."""
    return b"".join(u8(int(bits[at : at + 8][::-1], 2)) for at in range(0, len(bits), 8))


def dense(bits: str) -> list:
    return [b"\1", u32(bits.count("0")), Buffer(bitmap(bits))]


def packed(bits: str) -> list:
    return [b"\2", u32(bits.count("0")), Buffer(bitmap(bits))]


def booleans(bits: str) -> list:
    return [b"\0", Buffer(bitmap(bits))]


def plain(data: bytes) -> list:
    return [b"\0", Buffer(data)]


def constant(value: bytes) -> list:
    return [b"\1", value]


def frame(bits: int, reference: bytes, values: list[int]) -> list:
    return [b"\2", u8(bits), reference, Buffer(pack(values, bits))]


def dictionary(count: int, entries: list, indexes: list) -> list:
    """The encoding, as opposed to the type."""
    return [b"\3", u32(count), entries, indexes]


def runs(count: int, entries: list, lengths: list) -> list:
    return [b"\4", u32(count), entries, lengths]


def delta(first: bytes, differences: list) -> list:
    return [b"\5", first, differences]


def frame_patched(
    bits: int, reference: bytes, values: list[int], count: int, positions: list, exceptions: list
) -> list:
    return [
        b"\6",
        u8(bits),
        reference,
        Buffer(pack(values, bits)),
        u32(count),
        positions,
        exceptions,
    ]


def decimals(
    exponent: int, integers: list, count: int = 0, positions: list = [], exceptions: list = []
) -> list:
    return [b"\7", u8(exponent), integers, u32(count), positions, exceptions]


def relative(field: int, differences: list) -> list:
    return [b"\10", u32(field), differences]


def strings(*values: bytes) -> list:
    """Strings in the encoding offsets."""
    return [b"\0", offsets(*values), Buffer(b"".join(values))]


def offsets(*values: bytes) -> Buffer:
    ends = [sum(map(len, values[:count])) for count in range(len(values) + 1)]
    return Buffer(numbers("I", *ends))


def strings_constant(value: bytes) -> list:
    return [b"\1", Buffer(value)]


def strings_lengths(lengths: list, data: bytes) -> list:
    return [b"\2", lengths, Buffer(data)]


def symbols_table(*symbols: bytes) -> list:
    return [b"\0", u32(len(symbols)), plain(bytes(map(len, symbols))), Buffer(b"".join(symbols))]


def strings_symbols(lengths: list, table: list, count: int, codes: list) -> list:
    return [b"\4", lengths, table, u32(count), codes]


def huffman(reference: bytes, lengths: list, count: int, *quarters: bytes) -> list:
    return [
        b"\12",
        reference,
        u32(count),
        lengths,
        *(u32(len(quarter)) for quarter in quarters),
        Buffer(b"".join(quarters)),
    ]


def table_symbols(number: int, table: list) -> list:
    return [u32(number), b"\0", table]


def table_fixed(number: int, first: int, count: int, width: int, values: list) -> list:
    return [u32(number), b"\1", u32(first), u32(count), u32(width), values]


def table_strings(number: int, code: int, first: int, count: int, values: list) -> list:
    return [u32(number), u8(code), u32(first), u32(count), values]


def list_offsets(*ends: int) -> list:
    """The n + 1 offsets of lists; their children follow."""
    return [b"\0", Buffer(numbers("I", *ends))]


def list_lengths(lengths: list) -> list:
    return [b"\2", lengths]


def dictionary_type(count: int, entries: list, indexes: list) -> list:
    return [u32(count), entries, indexes]


def pack(values: list[int], bits: int) -> bytes:
    """encodings.md section 4, with Python's integers as the bit strings."""
    if bits in (8, 16, 32, 64):
        return integers(bits // 8, *values)
    tail_at = len(values) // 1024 * 1024
    blocks = [_pack_block(values[at : at + 1024], bits) for at in range(0, tail_at, 1024)]
    tail = values[tail_at:]
    return b"".join(blocks) + _bit_string(tail, bits).to_bytes(
        (len(tail) * bits + 7) // 8, "little"
    )


def _pack_block(values: list[int], bits: int) -> bytes:
    lanes, word_bits = (32, 32) if bits <= 32 else (16, 64)
    lane_strings = [_bit_string(values[lane::lanes], bits) for lane in range(lanes)]
    words = [
        lane_strings[lane] >> k * word_bits & (1 << word_bits) - 1
        for k in range(1024 // lanes * bits // word_bits)
        for lane in range(lanes)
    ]
    return integers(word_bits // 8, *words)


def _bit_string(values: list[int], bits: int) -> int:
    return sum(value << place * bits for place, value in enumerate(values))


# --- encodings.md section 5: small compressors whose output never changes ---


def lz4(data: bytes) -> Buffer:
    """A greedy LZ4 block: matches of at least 4 bytes, none in the last 12 bytes; the last 5 bytes
    are literals.
    """
    out, literals_at, at, seen = bytearray(), 0, 0, {}
    while at + 12 < len(data):
        before = seen.get(data[at : at + 4])
        seen[data[at : at + 4]] = at
        if before is None or at - before > 0xFFFF:
            at += 1
            continue
        length = 4
        while at + length < len(data) - 5 and data[before + length] == data[at + length]:
            length += 1
        out += (
            _lz4_sequence(data[literals_at:at], length) + u16(at - before) + _lz4_more(length - 4)
        )
        at = literals_at = at + length
    return Buffer(bytes(out + _lz4_sequence(data[literals_at:], 4)), LZ4, len(data))


def _lz4_sequence(literals: bytes, match: int) -> bytes:
    token = min(len(literals), 15) << 4 | min(match - 4, 15)
    return u8(token) + _lz4_more(len(literals)) + literals


def _lz4_more(length: int) -> bytes:
    return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + u8((length - 15) % 255)


def zstd(data: bytes) -> Buffer:
    """A zstd frame of one block: a repeated byte, or the raw bytes (RFC 8878, section 3.1.1)."""
    assert len(data) < 1 << 17
    block = data[:1] if data and len(set(data)) == 1 else data
    kind = 1 if data and len(set(data)) == 1 else 0
    block_header = integers(3, len(data) << 3 | kind << 1 | 1)
    single_segment_u32_size = b"\xa0"
    return Buffer(
        b"\x28\xb5\x2f\xfd" + single_segment_u32_size + u32(len(data)) + block_header + block,
        ZSTD,
        len(data),
    )


# --- types.md: from the words of the JSON ---

TYPE_IDS = {
    "null": 0, "boolean": 1,
    "int8": 2, "int16": 3, "int32": 4, "int64": 5,
    "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12,
    "decimal32": 13, "decimal64": 14, "decimal128": 15, "decimal256": 16,
    "date32": 17, "date64": 18, "time32": 19, "time64": 20, "timestamp": 21, "duration": 22,
    "interval_months": 23, "interval_day_time": 24, "interval_month_day_nano": 25,
    "utf8": 26, "binary": 27, "fixed_binary": 28,
    "list": 29, "fixed_list": 30, "struct": 31, "map": 32, "dictionary": 33,
}  # fmt: skip


def field(
    name: str, type: str, nullable: bool = False, metadata: list | None = None, **parameters
) -> dict:
    words = {"name": name, "type": type} | parameters | {"nullable": nullable}
    return words | ({"metadata": metadata} if metadata else {})


def nullable(name: str, type: str, **parameters) -> dict:
    return field(name, type, nullable=True, **parameters)


def schema(*fields: dict) -> bytes:
    return u32(len(fields)) + b"".join(map(schema_field, fields))


def schema_field(words: dict) -> bytes:
    pairs = words.get("metadata", [])
    metadata = u16(len(pairs)) + b"".join(string(key) + string(value) for key, value in pairs)
    return string(words["name"]) + u8(words["nullable"]) + schema_type(words) + metadata


def schema_type(words: dict) -> bytes:
    name = words["type"]
    out = u8(TYPE_IDS[name])
    if name.startswith("decimal"):
        out += u8(words["precision"]) + integers(1, words["scale"])
    if "unit" in words:
        out += u8(("s", "ms", "us", "ns").index(words["unit"]))
    if name == "timestamp":
        out += string(words["zone"])
    if name == "fixed_binary":
        out += u32(words["width"])
    if name == "fixed_list":
        out += u32(words["size"])
    if name == "struct":
        out += u32(len(words["children"]))
    if name == "map":
        out += u8(words["sorted"])
    if name == "dictionary":
        out += u8(TYPE_IDS[words["index"]]) + u8(words["ordered"]) + schema_type(words["values"])
    return out + b"".join(map(schema_field, words.get("children", [])))


# --- protocol.md section 1 ---


def string(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return u32(len(value)) + value


def message(kind: int, *fields: bytes) -> bytes:
    payload = b"".join(fields)
    return u32(len(payload)) + u8(kind) + bytes(3) + payload


# --- vectors/README.md ---


def container(schema_bytes: bytes, chunk: bytes) -> bytes:
    """vectors/README.md"""
    return u32(len(schema_bytes)) + schema_bytes + chunk


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]
