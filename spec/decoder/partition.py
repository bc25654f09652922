"""Descriptors and receipts of partition plans, and the digest of rows (partitions.md)."""

import hashlib
from dataclasses import dataclass

from cursor import Cursor, Refused
from message_fields import check_pass, check_ticket
from schema import Field, decode_schema

MASK = (1 << 64) - 1
START, VALUE = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
MISSING, FINAL = 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3
SIZE_MAX, URI_MAX, SETTINGS_MAX, PARTS_MAX = 16 << 20, 64 << 10, 256, 65_536
UNKNOWN, END = MASK, (1 << 32) - 1
HEADER, SEAL, RECEIPT = 64, 32, 80


@dataclass
class Range:
    start: int
    end: int | None
    only: bool
    partial: bool  # section 3.1


@dataclass
class PostgresPart:
    """Section 2, source 01."""

    numeric: str
    nonfinite: str
    server: str
    settings: list[tuple[str, str]]
    snapshot: str
    snapshot_digest: bytes
    relations: str
    range: Range | None


@dataclass
class DrayPart:
    """Section 2, source 02."""

    token: str  # the pass
    ticket: bytes


@dataclass
class Descriptor:
    """Section 1 and 2."""

    index: int
    count: int
    plan: bytes
    deadline: int
    rows: int | None
    bytes: int | None
    has_password: bool
    uri: str
    sql: str
    parameters: bytes
    schema: list[Field]
    source: PostgresPart | DrayPart


@dataclass
class Receipt:
    """Section 4."""

    plan: bytes
    index: int
    count: int
    rows: int
    digest: int
    reading: bytes


def check_start(data: bytes, magic: bytes):
    if data[:4] != magic:
        raise Refused("magic", f"{data[:4]!r}, expected {magic!r}")
    if len(data) < 6:
        raise Refused("size", "no version")
    if data[4:6] != b"\0\0":
        raise Refused("version", f"{data[4:6]!r}")


def check_place(index: int, count: int):
    if not index < count <= PARTS_MAX:
        raise Refused("payload", f"part {index} of {count}")


def flag(cursor: Cursor, field: str) -> bool:
    value = cursor.u8(field)
    if value > 1:
        raise Refused("payload", f"{field} is {value}")
    return value == 1


def decode_descriptor(data: bytes) -> Descriptor:
    check_start(data, b"DRYP")
    if len(data) > SIZE_MAX:
        raise Refused("limit", f"{len(data)} bytes")
    size = int.from_bytes(data[8:12], "little")
    if size != len(data) or size < HEADER + SEAL:
        raise Refused("size", f"{len(data)} bytes, the header says {size}")
    if hashlib.sha256(data[:-SEAL]).digest() != data[-SEAL:]:
        raise Refused("checksum", "the seal is another")
    cursor = Cursor(data[6:-SEAL], short="payload")
    flags = cursor.u16("flags")
    if flags & ~1:
        raise Refused("payload", f"flags {flags:#x}")
    cursor.u32("size")
    index, count = cursor.u32("index"), cursor.u32("count")
    check_place(index, count)
    if cursor.u32("reserved"):
        raise Refused("payload", "reserved")
    plan, deadline = cursor.take(16, "plan"), cursor.u64("deadline")
    rows, expected = (
        None if value == UNKNOWN else value for value in (cursor.u64("rows"), cursor.u64("bytes"))
    )
    if (source := cursor.u8("source")) not in (1, 2):
        raise Refused("payload", f"source {source}")
    uri = cursor.string("uri")
    if len(uri.encode()) > URI_MAX:
        raise Refused("limit", "uri")
    descriptor = Descriptor(
        index=index,
        count=count,
        plan=plan,
        deadline=deadline,
        rows=rows,
        bytes=expected,
        has_password=bool(flags & 1),
        uri=uri,
        sql=cursor.string("sql"),
        parameters=cursor.bytes("parameters"),
        schema=decode_schema(cursor.bytes("schema")),
        source=of_postgres(cursor) if source == 1 else of_dray(cursor),
    )
    if cursor.left():
        raise Refused("payload", f"{cursor.left()} bytes are left")
    return descriptor


def of_postgres(cursor: Cursor) -> PostgresPart:
    return PostgresPart(
        numeric=cursor.string("numeric"),
        nonfinite=cursor.string("nonfinite"),
        server=cursor.string("server"),
        settings=settings(cursor),
        snapshot=cursor.string("snapshot"),
        snapshot_digest=cursor.take(32, "snapshot_digest"),
        relations=cursor.string("relations"),
        range=block_range(cursor),
    )


def of_dray(cursor: Cursor) -> DrayPart:
    token = check_pass(cursor.string("pass"))
    return DrayPart(token, check_ticket(cursor.bytes("ticket")))


def settings(cursor: Cursor) -> list[tuple[str, str]]:
    count = cursor.u32("settings")
    if count > SETTINGS_MAX:
        raise Refused("limit", f"{count} settings")
    return [(cursor.string("name"), cursor.string("value")) for _ in range(count)]


def block_range(cursor: Cursor) -> Range | None:
    kind = cursor.u8("range")
    if kind > 2:
        raise Refused("payload", f"range is {kind}")
    if kind == 0:
        return None
    start, end = cursor.u32("from"), cursor.u32("to")
    if start >= end:
        raise Refused("payload", f"blocks {start} to {end}")
    return Range(start, None if end == END else end, flag(cursor, "only"), partial=kind == 2)


def decode_receipt(data: bytes) -> Receipt:
    check_start(data, b"DRYR")
    if len(data) != RECEIPT:
        raise Refused("size", f"{len(data)} bytes")
    if hashlib.sha256(data[:64]).digest()[:16] != data[64:]:
        raise Refused("checksum", "the seal is another")
    cursor = Cursor(data[6:64], short="payload")
    if cursor.u16("flags"):
        raise Refused("payload", "flags")
    receipt = Receipt(
        plan=cursor.take(16, "plan"),
        index=cursor.u32("index"),
        count=cursor.u32("count"),
        rows=cursor.u64("rows"),
        digest=cursor.u64("digest"),
        reading=cursor.take(16, "reading"),
    )
    check_place(receipt.index, receipt.count)
    return receipt


# --- section 5 ---


def fold(a: int, k: int) -> int:
    product = a * k
    return (product & MASK) ^ (product >> 64)


def word(chain: int, value: int) -> int:
    return fold(chain ^ value, VALUE)


def padded(chain: int, data: bytes) -> int:
    for at in range(0, len(data), 8):
        chain = word(chain, int.from_bytes(data[at : at + 8], "little"))
    return chain


def take(chain: int, value) -> int:
    """A value: None, bool, the bytes of a fixed width, a str, a bytearray for a binary value, a
    list, or a tuple for a struct.
    """
    match value:
        case None:
            return fold(chain, MISSING)
        case bool():
            return word(chain, int(value))
        case bytes():
            return padded(chain, value)
        case str():
            return padded(word(chain, len(value.encode())), value.encode())
        case bytearray():
            return padded(word(chain, len(value)), bytes(value))
        case list():
            chain = word(chain, len(value))
            for item in value:
                chain = word(chain, take(START, item))
            return chain
        case tuple():
            inner = START
            for field in value:
                inner = take(inner, field)
            return word(chain, inner)
    raise TypeError(type(value))


def digest(rows: list[list]) -> int:
    """The digest of rows, each a list of values of :func:`take`."""
    total = 0
    for row in rows:
        chain = START
        for value in row:
            chain = take(chain, value)
        total = (total + fold(chain, FINAL)) & MASK
    return total
