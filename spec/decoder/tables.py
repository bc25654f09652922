"""The live tables of a stream (state.md section 2)."""

from dataclasses import dataclass
from dataclasses import field as with_default

from cursor import Refused

TABLE_NUMBERS, TABLE_ENTRIES_MAX, TABLE_BYTES_MAX = 1 << 16, 1 << 14, 1 << 16
TABLE_SYMBOLS, TABLE_FIXED, TABLE_UTF8, TABLE_BINARY = range(4)


@dataclass
class Table:
    """A table of state.md section 2. Entries are bytes, or uint8[width] for fixed width."""

    code: int
    width: int = 0
    entries: list = with_default(default_factory=list)
    decoded_bytes: int = 0


@dataclass
class Tables:
    """The live tables by number, and how many state frames made them."""

    frames: int = 0
    live: dict[int, Table] = with_default(default_factory=dict)

    def get(self, number: int, code: int, width: int = 0) -> Table:
        table = self.live.get(number)
        if table is None or (table.code, table.width) != (code, width):
            raise Refused("state", f"no table {number} of code {code}, width {width}")
        return table


def check_table_bytes(count: int):
    if count > TABLE_BYTES_MAX:
        raise Refused("state", f"{count} bytes of entries")
