"""CRC-32C (chunk.md section 6)."""


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_TABLE = [_table_entry(byte) for byte in range(256)]


def crc32c(data: bytes, before: int = 0) -> int:
    """The checksum of `data`, continuing that of the bytes `before`."""
    crc = before ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
