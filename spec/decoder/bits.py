"""Bit-packed integers (encodings.md section 4) and Huffman codes (section 3.2)."""

import numpy as np

from cursor import Refused


def unpack_bits(data: bytes) -> np.ndarray:
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")


def packed_bytes(n: int, bits: int) -> int:
    """encodings.md section 4: the size of n packed values."""
    return n // 1024 * 128 * bits + -(-(n % 1024) * bits // 8)


def unpack_frame(data: bytes, n: int, bits: int) -> np.ndarray:
    """encodings.md section 4: the packed values as uint64[n]."""
    if bits == 0:
        return np.broadcast_to(np.uint64(0), n)
    if bits in (8, 16, 32, 64):
        return np.frombuffer(data, f"<u{bits // 8}").astype(np.uint64)
    block_bytes = 128 * bits
    blocks = [
        unpack_block(data[at : at + block_bytes], bits)
        for at in range(0, n // 1024 * block_bytes, block_bytes)
    ]
    tail_n = n % 1024
    tail = unpack_bits(data[len(blocks) * block_bytes :])
    if tail[tail_n * bits :].any():
        raise Refused("bitmap", "bits are set after the last packed value")
    return np.concatenate([*blocks, join_bits(tail[: tail_n * bits].reshape(tail_n, bits))])


def unpack_block(data: bytes, bits: int) -> np.ndarray:
    """1024 values, interleaved over lanes: word k of lane l is word k × lanes + l."""
    lanes, word_bytes = (32, 4) if bits <= 32 else (16, 8)
    words = np.frombuffer(data, np.uint8).reshape(-1, lanes, word_bytes)
    lane_bytes = words.transpose(1, 0, 2).reshape(lanes, -1)
    lane_bits = np.unpackbits(lane_bytes, axis=1, bitorder="little")
    by_lane = join_bits(lane_bits.reshape(lanes, 1024 // lanes, bits))  # [lane, r]
    return by_lane.T.reshape(1024)  # value i = r × lanes + lane


def join_bits(bits: np.ndarray) -> np.ndarray:
    """Joins the bits of the last axis, least significant first, to one uint64 each."""
    joined = np.zeros(bits.shape[:-1], np.uint64)
    for place in range(bits.shape[-1]):
        joined |= bits[..., place].astype(np.uint64) << np.uint64(place)
    return joined


def add_reference(reference: int, packed: np.ndarray, width: int) -> np.ndarray:
    """encodings.md section 2, frame: the sum modulo 2^(8 × width), as uint8[n, width]."""
    low = packed + np.uint64(reference & (1 << 64) - 1)
    if width <= 8:
        return low.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
    high = np.uint64(reference >> 64) + (low < packed)
    return (
        np.stack([low, high.astype(np.uint64)], axis=1).astype("<u8").view(np.uint8).reshape(-1, 16)
    )


def huffman_codes(lengths: list[int]) -> dict[str, int]:
    """The value of each canonical code; a code is text, its most significant bit first."""
    codes, code, before = {}, 0, 0
    for length, value in sorted((length, value) for value, length in enumerate(lengths) if length):
        code <<= length - before
        codes[f"{code:0{length}b}"] = value
        code, before = code + 1, length
    return codes


def huffman_quarter(data: bytes, codes: dict[str, int], n: int) -> list[int]:
    bits = "".join(f"{byte:08b}"[::-1] for byte in data)
    values, at = [], 0
    for _ in range(n):
        for end in range(at + 1, len(bits) + 1):
            if bits[at:end] in codes:
                values.append(codes[bits[at:end]])
                at = end
                break
        else:
            raise Refused("length", f"bits of {len(values)} values, expected {n}")
    if len(bits) - at > 7 or "1" in bits[at:]:
        raise Refused("length", f"{len(bits) - at} bits after {n} values")
    return values
