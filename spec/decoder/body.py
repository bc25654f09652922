"""Descriptors and the buffers of the body (chunk.md section 4), and the decoded size that remains
(section 5).
"""

from dataclasses import dataclass

import numpy as np

from bits import unpack_bits
from columns import bitmap_bytes
from compressors import unpack_lz4, unpack_zstd
from cursor import Cursor, Refused
from header import check_count, pad
from tables import Tables

ZERO_SIZED_MAX = 1 << 24


@dataclass(frozen=True)
class Buffer:
    """A buffer's descriptor, and its offset in the body."""

    codec: int
    raw: int
    at: int
    bytes: int


class Body:
    """Walks through descriptors and body in parallel."""

    def __init__(self, descriptors: bytes, body: bytes, decoded_bytes: int, tables: Tables):
        self.tables = tables
        self.cursor = Cursor(descriptors, short="truncated")
        self.body = body
        self.at = 0
        self.decoded_left = decoded_bytes
        self.zero_sized_left = ZERO_SIZED_MAX

    # --- section 4: buffers ---

    def locate(self, what: str) -> Buffer:
        """Reads a buffer's descriptor and locates the buffer in the body."""
        codec = self.cursor.u8(f"codec of {what}")
        if codec > 2:
            raise Refused("code", f"compressor {codec} of {what}")
        size = self.cursor.u32(f"bytes of {what}")
        raw = self.cursor.u32(f"raw bytes of {what}") if codec else size
        if size == 0:
            return Buffer(codec, raw, self.at, 0)
        start = pad(self.at, 64 if size >= 4096 else 8)
        if start + size > len(self.body):
            raise Refused("length", f"{what} ends at {start + size}, the body at {len(self.body)}")
        if any(self.body[self.at : start]):
            raise Refused("reserved", f"padding before {what} is not zero")
        self.at = start + size
        return Buffer(codec, raw, start, size)

    def buffer(self, raw: int, what: str) -> bytes:
        """A buffer that must unpack to `raw` bytes."""
        buffer = self.locate(what)
        if buffer.raw != raw:
            raise Refused("length", f"{what} has {buffer.raw} bytes, expected {raw}")
        return self.unpack(buffer, what)

    def unpack(self, buffer: Buffer, what: str) -> bytes:
        """encodings.md section 5. The caller has checked `raw` against its limits."""
        stored = self.body[buffer.at : buffer.at + buffer.bytes]
        if buffer.codec == 0:
            return stored
        data = (
            unpack_lz4(stored, buffer.raw) if buffer.codec == 1 else unpack_zstd(stored, buffer.raw)
        )
        if data is None or len(data) != buffer.raw:
            raise Refused("compressed", f"{what} does not unpack to {buffer.raw} bytes")
        return data

    def bits(self, n: int, what: str) -> np.ndarray:
        """A bitmap as bool[n]."""
        bits = unpack_bits(self.buffer(bitmap_bytes(n), what))
        if bits[n:].any():
            raise Refused("bitmap", f"{what} has bits set after its {n} values")
        return bits[:n].astype(bool)

    # --- section 5: decoded size ---

    def allocate(self, count: int):
        if count > self.decoded_left:
            raise Refused(
                "decoded", f"{count} bytes more, {self.decoded_left} of those declared are left"
            )
        self.decoded_left -= count

    def count_zero_sized(self, count: int):
        if count > self.zero_sized_left:
            raise Refused("limit", f"more than {ZERO_SIZED_MAX} values that take no bytes")
        self.zero_sized_left -= count

    def check_string_bytes(self, count: int):
        """Checks the size of string data, a dictionary's included, before it is unpacked."""
        check_count(count, "bytes of strings")
        if count > self.decoded_left:
            raise Refused(
                "decoded",
                f"{count} bytes of strings, {self.decoded_left} of those declared are left",
            )

    def check_used_up(self):
        if self.cursor.left():
            raise Refused(
                "trailing", f"{self.cursor.left()} bytes of descriptors after the last column"
            )
        if self.at != len(self.body):
            raise Refused(
                "trailing", f"{len(self.body) - self.at} bytes of body after the last buffer"
            )
        if self.decoded_left:
            raise Refused("decoded", f"{self.decoded_left} bytes fewer than declared")
