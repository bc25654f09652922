"""Tables that stand behind state frames (state.md section 2)."""

from dataclasses import dataclass
from dataclasses import field as with_default

from cursor import Refused

TABLE_NUMBERS, TABLE_ENTRIES_MAX, TABLE_BYTES_MAX = 1 << 16, 1 << 14, 1 << 16
TABLE_SYMBOLS, TABLE_FIXED, TABLE_UTF8, TABLE_BINARY = range(4)


@dataclass
class Table:
    """state.md section 2. Symbols and strings: bytes; values of fixed width: uint8[width]."""

    code: int
    width: int = 0
    entries: list = with_default(default_factory=list)
    decoded_bytes: int = 0


@dataclass
class Tables:
    """Those that stand, by their numbers."""

    frames: int = 0
    standing: dict[int, Table] = with_default(default_factory=dict)

    def get(self, number: int, code: int, width: int = 0) -> Table:
        table = self.standing.get(number)
        if table is None or (table.code, table.width) != (code, width):
            raise Refused("state", f"no table {number} of code {code}, width {width}")
        return table


def check_table_bytes(count: int):
    if count > TABLE_BYTES_MAX:
        raise Refused("state", f"{count} bytes of entries")
