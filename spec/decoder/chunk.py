"""Decodes chunks to columns (chunk.md) and state frames to tables (state.md), with every check of a
reader.

Read from the top: decode_chunk, then Reader.column, which is the grammar of chunk.md section 3. It
builds on encoded.py, body.py and header.py.
"""

from dataclasses import dataclass

import numpy as np

from columns import (
    Column,
    all_missing,
    bitmap_bytes,
    fixed_list_total,
    fixed_part,
    is_zero_sized,
    offsets_of,
    slices,
    spread,
)
from cursor import Refused
from encoded import CONSTANT, LENGTHS, OFFSETS, PLAIN, RELATIVE, Encoded
from header import HEADER_BYTES, Header, Limits, check_checksum, check_count, decode_header, pad
from schema import Field, Type
from tables import (
    TABLE_BINARY,
    TABLE_BYTES_MAX,
    TABLE_ENTRIES_MAX,
    TABLE_FIXED,
    TABLE_NUMBERS,
    TABLE_SYMBOLS,
    TABLE_UTF8,
    Table,
    Tables,
    check_table_bytes,
)


@dataclass
class Chunk:
    header: Header
    columns: list[Column]


def decode_chunk(
    data: bytes, fields: list[Field], limits: Limits = Limits(), tables: Tables = Tables()
) -> Chunk:
    """Decodes one whole chunk. The checks are in the order of chunk.md section 9.

    Raises Refused.
    """
    header = decode_header(data, limits)
    reader = reader_of(data, header, tables)
    if header.states != tables.frames:
        raise Refused("state", f"after {header.states} state frames, {tables.frames} were received")
    columns: list[Column] = []
    if not fields:
        reader.count_zero_sized(header.rows)
    for field in fields:
        columns.append(reader.field(field, header.rows, columns))
    reader.check_used_up()
    return Chunk(header, columns)


def receive_state(data: bytes, tables: Tables, limits: Limits = Limits()) -> Header:
    """Adds the tables of one whole state frame to `tables` (state.md). Raises Refused."""
    header = decode_header(data, limits, magic=b"DRYS")
    reader = reader_of(data, header, Tables())
    for _ in range(header.rows):
        reader.table(tables.live)
        decoded_bytes = sum(table.decoded_bytes for table in tables.live.values())
        if decoded_bytes > limits.decoded_bytes_max:
            raise Refused(
                "limit",
                f"all tables decode to {decoded_bytes} bytes, at most {limits.decoded_bytes_max}",
            )
    reader.check_used_up()
    tables.frames += 1
    return header


def take_states(data: bytes, tables: Tables, limits: Limits = Limits()) -> bytes:
    """Receives the state frames at the beginning of `data`; returns the rest."""
    while data.startswith(b"DRYS"):
        size = decode_header(data, limits, magic=b"DRYS").chunk_bytes()
        receive_state(data[:size], tables, limits)
        data = data[size:]
    return data


def reader_of(data: bytes, header: Header, tables: Tables) -> "Reader":
    """Checks the size and checksum of a whole chunk or state frame; returns a reader of it."""
    if len(data) != header.chunk_bytes():
        raise Refused("size", f"{len(data)} bytes, the header says {header.chunk_bytes()}")
    check_checksum(data, header)
    body_at = HEADER_BYTES + pad(header.descriptor_bytes, 64)
    descriptors_end = HEADER_BYTES + header.descriptor_bytes
    if any(data[descriptors_end:body_at]):
        raise Refused("reserved", "padding after the descriptors is not zero")
    return Reader(data[HEADER_BYTES:descriptors_end], data[body_at:], header.decoded_bytes, tables)


class Reader(Encoded):
    """Reads columns and tables by the grammar of the specification."""

    # --- chunk.md section 3 ---

    def field(self, field: Field, n: int, earlier: list[Column]) -> Column:
        """column(T, n) of a field of the schema, which may be relative to an earlier field."""
        width = field.type.width
        if width is None or self.cursor.ahead(2) != bytes([0, RELATIVE]):
            return self.column(field, n)
        self.cursor.take(2, "nulls and encoding")
        self.allocate(n * width)
        return Column(field.type, n, values=self.relative(width, n, earlier))

    def column(self, field: Field, n: int) -> Column:
        """column(T, n)"""
        type, code = field.type, self.cursor.u8("nulls")
        if type.name == "null":
            if code != 3:
                raise Refused("code", f"nulls {code} of type null")
            self.count_zero_sized(n)
            return all_missing(type, n)
        packable = type.name in ("boolean", "utf8", "binary") or type.width is not None
        if code > 3 or code == 2 and not packable or code != 0 and n == 0:
            raise Refused("code", f"nulls {code} of {n} values of type {type.name}")
        if code == 0:
            return self.values(type, n, sent=n)
        if not field.nullable:
            raise Refused("missing", f"in field {field.name!r}, which is not nullable")
        self.allocate(bitmap_bytes(n))
        if code == 3:
            column = self.zeros(type, n)
            column.present = all_missing(type, n).present
            return column
        missing = self.cursor.u32("missing")
        if not 1 <= missing <= n:
            raise Refused("missing", f"{missing} of {n} values")
        present = self.bits(n, "bitmap")
        if n - np.count_nonzero(present) != missing:
            raise Refused(
                "missing", f"{missing} declared, {n - np.count_nonzero(present)} in the bitmap"
            )
        if code == 1:
            column = self.values(type, n, sent=n, present=present)
        else:
            column = spread(self.values(type, n, sent=n - missing), present)
        column.present = present
        return column

    def values(self, type: Type, n: int, sent: int, present: np.ndarray | None = None) -> Column:
        """values(T, sent), for a column of n values. The two differ only with nulls 02."""
        self.allocate(fixed_part(type, n))
        if type.name == "boolean":
            return Column(type, sent, values=self.booleans(sent))
        if type.width is not None:
            return Column(type, sent, values=self.fixed(type.width, sent))
        if type.name in ("utf8", "binary"):
            offsets, data = self.strings(type, sent)
            self.allocate(len(data))
            return Column(type, sent, offsets=offsets, data=data)
        if type.name in ("list", "map"):
            offsets = self.list_offsets(n)
            total = int(offsets[-1])
            return Column(
                type,
                n,
                offsets=offsets,
                children=[self.column(child, total) for child in type.children],
            )
        if type.name == "fixed_list":
            total = fixed_list_total(type, n)
            self.count_zero_sized(n if is_zero_sized(type) else 0)
            return Column(type, n, children=[self.column(type.children[0], total)])
        if type.name == "struct":
            self.count_zero_sized(n if is_zero_sized(type) else 0)
            return Column(type, n, children=[self.column(child, n) for child in type.children])
        assert type.name == "dictionary"
        count = self.cursor.u32("count")
        check_count(count, "entries of a dictionary")
        entries = self.column(type.children[0], count)
        indexes = self.integers(type.index, n)
        outside = (indexes < 0) | (indexes >= count)
        if np.any(outside if present is None else outside & present):
            raise Refused("index", f"dictionary of {count} entries")
        return Column(type, n, values=indexes, children=[entries])

    def list_offsets(self, n: int) -> np.ndarray:
        code = self.cursor.u8("encoding of a list")
        if code == OFFSETS:
            offsets = self.offsets(n)
        elif code == LENGTHS:
            offsets = offsets_of(self.lengths(n))
        else:
            raise Refused("code", f"list encoding {code}")
        check_count(int(offsets[-1]), "values in lists")
        return offsets

    def zeros(self, type: Type, n: int) -> Column:
        """The column of n missing values that nulls 03 stands for; it counts as decoded."""
        self.allocate(fixed_part(type, n))
        if type.name == "fixed_list":
            fixed_list_total(type, n)
        self.count_zero_sized(n if is_zero_sized(type) else 0)
        if type.name == "null":
            return all_missing(type, n)
        if type.name == "boolean":
            return Column(type, n, values=np.broadcast_to(np.False_, n))
        if type.width is not None:
            return Column(type, n, values=np.broadcast_to(np.uint8(0), (n, type.width)))
        children_n = {"struct": n}.get(type.name, 0)
        if type.name == "fixed_list":
            children_n = fixed_list_total(type, n)
        column = Column(
            type, n, children=[self.zeros(child.type, children_n) for child in type.children]
        )
        if type.name == "dictionary":
            column.values = np.broadcast_to(np.int64(0), n)
        elif type.name not in ("struct", "fixed_list"):
            column.offsets = np.broadcast_to(np.int64(0), n + 1)
        return column

    # --- state.md section 2 ---

    def table(self, live: dict[int, Table]):
        """Reads one table and makes it live."""
        number = self.cursor.u32("number")
        if number >= TABLE_NUMBERS:
            raise Refused("state", f"table {number}, below {TABLE_NUMBERS}")
        before = self.decoded_left
        code = self.cursor.u8("code of a table")
        if code > TABLE_BINARY:
            raise Refused("code", f"table code {code}")
        if code == TABLE_SYMBOLS:
            table = Table(code, entries=self.symbol_table())
            self.allocate(len(table.entries) + sum(map(len, table.entries)))
        else:
            first, count = self.cursor.u32("first"), self.cursor.u32("count")
            width = self.cursor.u32("width") if code == TABLE_FIXED else 0
            table = Table(code, width) if first == 0 else live.get(number, Table(code, width))
            if (table.code, table.width, len(table.entries)) != (code, width, first):
                raise Refused(
                    "state", f"entries of code {code} and width {width} appended from {first} on"
                )
            if code == TABLE_FIXED and not 1 <= width <= TABLE_BYTES_MAX:
                raise Refused("state", f"entries of {width} bytes")
            if not 1 <= count <= TABLE_ENTRIES_MAX - first:
                raise Refused("state", f"{count} entries after {first}")
            if code == TABLE_FIXED:
                check_table_bytes((first + count) * width)
                self.allocate(count * width)
                table.entries += list(self.fixed(width, count, (PLAIN, CONSTANT)))
            else:
                self.allocate(count * 4)
                type = Type("utf8" if code == TABLE_UTF8 else "binary", None)
                table.entries += slices(*self.strings(type, count, (OFFSETS, LENGTHS)))
                check_table_bytes(sum(map(len, table.entries)))
                self.allocate(sum(map(len, table.entries[first:])))
        table.decoded_bytes += before - self.decoded_left
        live[number] = table
