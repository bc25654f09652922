"""Unpacks LZ4 blocks and zstd frames (encodings.md section 5).

Refuses what the libraries accept but the formats don't allow.
"""

import lz4.block
import zstandard


def unpack_lz4(stored: bytes, raw: int) -> bytes | None:
    if raw == 0:
        # The last sequence has no match, so the low half of its token has no meaning; the library
        # does not ignore it here.
        return b"" if len(stored) == 1 and stored[0] < 16 else None
    try:
        data = lz4.block.decompress(stored, uncompressed_size=raw)
    except lz4.block.LZ4BlockError:
        return None
    # The library reads an offset of 0 as zeros; the format does not allow it.
    return None if 0 in lz4_offsets(stored) else data


def lz4_offsets(block: bytes) -> list[int]:
    """The offsets of the matches of a valid block."""
    offsets, at = [], 0

    def length(low: int) -> int:
        nonlocal at
        total = low
        while low == 15:
            total, at = total + block[at], at + 1
            if block[at - 1] != 255:
                break
        return total

    while at < len(block):
        token, at = block[at], at + 1
        literals = length(token >> 4)
        at += literals
        if at < len(block):
            offsets.append(int.from_bytes(block[at : at + 2], "little"))
            at += 2
            length(token & 15)
    return offsets


def unpack_zstd(stored: bytes, raw: int) -> bytes | None:
    # The library would accept a skippable frame, too.
    if stored[:4] != b"\x28\xb5\x2f\xfd":
        return None
    try:
        frame = zstandard.get_frame_parameters(stored)
        if frame.dict_id or frame.content_size not in (raw, zstandard.CONTENTSIZE_UNKNOWN):
            return None
        # A limit of 0 means no limit to this library, so ask for one byte more than is allowed.
        data = zstandard.ZstdDecompressor().decompress(
            stored, max_output_size=raw + 1, allow_extra_data=False
        )
        # The library accepts bytes after a frame without a content size.
        frame = zstandard.ZstdDecompressor().decompressobj()
        return (
            data
            if frame.decompress(stored) == data and frame.eof and not frame.unused_data
            else None
        )
    except zstandard.ZstdError:
        return None
