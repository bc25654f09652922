"""The header of a chunk or state frame, and the checks that need only the header (chunk.md sections
2, 6 and 7, state.md section 1).
"""

from dataclasses import dataclass

from crc32c import crc32c
from cursor import Cursor, Refused

HEADER_BYTES = 64
CHECKSUMMED, JUMBO = 1, 2  # flags
COUNT_MAX = (1 << 31) - 1


@dataclass(frozen=True)
class Limits:
    """chunk.md section 7."""

    chunk_bytes_max: int = 16 << 20
    row_bytes_max: int = 256 << 20
    decoded_bytes_max: int = 64 << 20


@dataclass(frozen=True)
class Header:
    flags: int
    sequence: int
    rows: int
    descriptor_bytes: int
    body_bytes: int
    checksum: int
    decoded_bytes: int
    states: int

    def chunk_bytes(self) -> int:
        return HEADER_BYTES + pad(self.descriptor_bytes, 64) + self.body_bytes


def decode_header(data: bytes, limits: Limits = Limits(), magic: bytes = b"DRYC") -> Header:
    """Reads a header and checks it against the limits: chunk.md sections 2 and 7, or state.md
    section 1, where `rows` is the number of tables. Raises Refused.
    """
    state = magic == b"DRYS"
    cursor = Cursor(data[:HEADER_BYTES], short="size")
    if len(data) < HEADER_BYTES:
        raise Refused("size", f"{len(data)} bytes, a header has {HEADER_BYTES}")
    if cursor.take(4, "magic") != magic:
        raise Refused("magic", f"not {magic.decode()}")
    if (version := cursor.u16("version")) != 0:
        raise Refused("version", f"{version}, expected 0")
    flags = cursor.u16("flags")
    if flags & ~(CHECKSUMMED if state else CHECKSUMMED | JUMBO):
        raise Refused("flags", f"{flags:#06x}")
    header = Header(
        flags,
        sequence=cursor.u64("sequence"),
        rows=cursor.u32("rows"),
        descriptor_bytes=cursor.u32("descriptor_bytes"),
        body_bytes=cursor.u32("body_bytes"),
        checksum=cursor.u32("checksum"),
        decoded_bytes=cursor.u64("decoded_bytes"),
        states=0 if state else cursor.u32("states"),
    )
    jumbo = flags & JUMBO != 0
    if state and header.rows == 0:
        raise Refused("state", "no tables")
    if header.rows == 0 or jumbo and header.rows != 1:
        raise Refused("rows", f"{header.rows}, jumbo: {jumbo}")
    if any(cursor.take(cursor.left(), "reserved")):
        raise Refused("reserved", "a reserved byte of the header is not 0")
    check_count(header.rows, "rows")
    chunk_limit, decoded_limit = limits.chunk_bytes_max, limits.decoded_bytes_max
    if jumbo:
        chunk_limit = decoded_limit = limits.row_bytes_max
    if header.chunk_bytes() > chunk_limit:
        raise Refused("limit", f"chunk of {header.chunk_bytes()} bytes, at most {chunk_limit}")
    if header.decoded_bytes > decoded_limit:
        raise Refused("limit", f"decodes to {header.decoded_bytes} bytes, at most {decoded_limit}")
    return header


def check_checksum(data: bytes, header: Header):
    """chunk.md section 6."""
    expected = 0
    if header.flags & CHECKSUMMED:
        header_last = data[:28] + bytes(4) + data[32:HEADER_BYTES]
        expected = crc32c(header_last, crc32c(data[HEADER_BYTES:]))
    if header.checksum != expected:
        raise Refused("checksum", f"{header.checksum:08x}, expected {expected:08x}")


def check_count(count: int, what: str):
    if count > COUNT_MAX:
        raise Refused("limit", f"{what} {count}, at most {COUNT_MAX}")


def pad(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
