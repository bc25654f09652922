"""Reads fields of untrusted bytes, and the exception for refusing them."""


class Refused(Exception):
    """Bytes break a rule. `name` is the specification's (chunk.md section 9, protocol.md section
    8).
    """

    def __init__(self, name: str, why: str):
        super().__init__(f"{name}: {why}")
        self.name = name


class Cursor:
    """Reads little-endian fields in sequence. Running out of bytes is refused as `short`."""

    def __init__(self, data: bytes, short: str):
        self.data = data
        self.short = short
        self.at = 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int, field: str) -> bytes:
        if count > self.left():
            raise Refused(self.short, f"{field} needs {count} bytes, {self.left()} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def ahead(self, count: int) -> bytes:
        """The next bytes, or fewer at the end, without consuming them."""
        return self.data[self.at : self.at + count]

    def uint(self, width: int, field: str) -> int:
        return int.from_bytes(self.take(width, field), "little")

    def u8(self, field: str) -> int:
        return self.uint(1, field)

    def u16(self, field: str) -> int:
        return self.uint(2, field)

    def u32(self, field: str) -> int:
        return self.uint(4, field)

    def u64(self, field: str) -> int:
        return self.uint(8, field)

    def i8(self, field: str) -> int:
        return int.from_bytes(self.take(1, field), "little", signed=True)

    def bytes(self, field: str) -> bytes:
        """A u32 length, then that many bytes."""
        return self.take(self.u32(f"length of {field}"), field)

    def string(self, field: str) -> str:
        """A u32 length, then that many bytes of UTF-8."""
        try:
            return self.bytes(field).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(self.short, f"{field} is not UTF-8: {error}") from None
