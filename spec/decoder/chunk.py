"""A chunk: bytes to columns (chunk.md and encodings.md), and state frames: bytes to tables (state.md), with every check of a reader.

Read from the top: decode_chunk, then Reader.column, which is the grammar of chunk.md section 3.
"""

from dataclasses import dataclass
from dataclasses import field as with_default
from fractions import Fraction

import lz4.block
import numpy as np
import zstandard

from bits import add_reference, huffman_codes, huffman_quarter, packed_bytes, unpack_bits, unpack_frame
from crc32c import crc32c
from cursor import Cursor, Refused
from schema import Field, Type

HEADER_BYTES = 64
CHECKSUMMED, JUMBO = 1, 2  # flags
COUNT_MAX = (1 << 31) - 1
PLAIN, CONSTANT, FRAME, DICTIONARY, RUNS, DELTA, PATCHED, DECIMALS, RELATIVE, KEPT_DICTIONARY, HUFFMAN = range(11)
VALUES = (*range(RELATIVE), KEPT_DICTIONARY, HUFFMAN)
INNER = (PLAIN, CONSTANT, FRAME)
CODE_LENGTHS = (*INNER, PATCHED)
PARTS = (*CODE_LENGTHS, HUFFMAN)
HUFFMAN_BITS_MAX, HUFFMAN_VALUES_MAX = 13, 4096
OFFSETS, LENGTHS, SYMBOLS, KEPT_STRINGS = 0, 2, 4, 5
EXPONENT_MAX = 22
SYMBOLS_MAX, SYMBOL_BYTES_MAX = 3840, 16
TABLE_NUMBERS, TABLE_ENTRIES_MAX, TABLE_BYTES_MAX = 1 << 16, 1 << 14, 1 << 16
TABLE_SYMBOLS, TABLE_FIXED, TABLE_UTF8, TABLE_BINARY = range(4)


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


@dataclass
class Column:
    """n values of a type. What is used depends on the type:

    boolean: values, bool[n]. Fixed width: values, uint8[n, width]. utf8, binary: offsets, int64[n + 1], and data.
    list, map: offsets and children. fixed_list, struct: children. dictionary: values, the indexes, and children.
    """

    type: Type
    n: int
    present: np.ndarray | None = None  # bool[n]; None: nothing is missing
    values: np.ndarray | None = None
    offsets: np.ndarray | None = None
    data: bytes = b""
    children: list["Column"] = with_default(default_factory=list)


@dataclass
class Chunk:
    header: Header
    columns: list[Column]


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


def decode_chunk(data: bytes, fields: list[Field], limits: Limits = Limits(), tables: Tables = Tables()) -> Chunk:
    """The columns of one whole chunk, or Refused. The order of the checks is that of chunk.md section 9."""
    header = decode_header(data, limits)
    reader = reader_of(data, header, tables)
    if header.states != tables.frames:
        raise Refused("state", f"behind {header.states} state frames, {tables.frames} were received")
    columns: list[Column] = []
    for field in fields:
        columns.append(reader.field(field, header.rows, columns))
    reader.check_used_up()
    return Chunk(header, columns)


def receive_state(data: bytes, tables: Tables, limits: Limits = Limits()) -> Header:
    """Takes in one whole state frame, or Refused (state.md)."""
    header = decode_header(data, limits, magic=b"DRYS")
    reader = reader_of(data, header, Tables())
    for _ in range(header.rows):
        reader.table(tables.standing)
        decoded_bytes = sum(table.decoded_bytes for table in tables.standing.values())
        if decoded_bytes > limits.decoded_bytes_max:
            raise Refused("limit", f"all tables decode to {decoded_bytes} bytes, at most {limits.decoded_bytes_max}")
    reader.check_used_up()
    tables.frames += 1
    return header


def take_states(data: bytes, tables: Tables, limits: Limits = Limits()) -> bytes:
    """Takes in the state frames that `data` begins with; what is behind them."""
    while data.startswith(b"DRYS"):
        size = decode_header(data, limits, magic=b"DRYS").chunk_bytes()
        receive_state(data[:size], tables, limits)
        data = data[size:]
    return data


def reader_of(data: bytes, header: Header, tables: Tables) -> "Reader":
    """A reader of a whole chunk or state frame, whose size and checksum are checked here."""
    if len(data) != header.chunk_bytes():
        raise Refused("size", f"{len(data)} bytes, the header says {header.chunk_bytes()}")
    check_checksum(data, header)
    body_at = HEADER_BYTES + pad(header.descriptor_bytes, 64)
    descriptors_end = HEADER_BYTES + header.descriptor_bytes
    if any(data[descriptors_end:body_at]):
        raise Refused("reserved", "padding after the descriptors is not zero")
    return Reader(data[HEADER_BYTES:descriptors_end], data[body_at:], header.decoded_bytes, tables)


def decode_header(data: bytes, limits: Limits = Limits(), magic: bytes = b"DRYC") -> Header:
    """chunk.md section 2, and the limits of section 7, which need no more than the header; state.md section 1, where rows are tables."""
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


def pad(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def bitmap_bytes(n: int) -> int:
    return -(-n // 8)


def check_count(count: int, what: str):
    if count > COUNT_MAX:
        raise Refused("limit", f"{what} {count}, at most {COUNT_MAX}")


@dataclass(frozen=True)
class Buffer:
    """A buffer's descriptor, and where it lies in the body."""

    codec: int
    raw: int
    at: int
    bytes: int


class Reader:
    """Walks through descriptors and body side by side."""

    def __init__(self, descriptors: bytes, body: bytes, decoded_bytes: int, tables: Tables):
        self.tables = tables
        self.cursor = Cursor(descriptors, short="truncated")
        self.body = body
        self.at = 0
        self.decoded_left = decoded_bytes

    # --- chunk.md section 3: the grammar ---

    def field(self, field: Field, n: int, earlier: list[Column]) -> Column:
        """column(T, n) of a field of the schema, which may be relative to an earlier one."""
        width = field.type.width
        if width is None or self.cursor.ahead(2) != bytes([0, RELATIVE]):
            return self.column(field, n)
        self.cursor.take(2, "nulls and encoding")
        self.hold(n * width)
        return Column(field.type, n, values=self.relative(width, n, earlier))

    def column(self, field: Field, n: int) -> Column:
        """column(T, n)"""
        type, code = field.type, self.cursor.u8("nulls")
        if type.name == "null":
            if code != 3:
                raise Refused("code", f"nulls {code} of type null")
            return all_missing(type, n)
        packable = type.name in ("boolean", "utf8", "binary") or type.width is not None
        if code > 3 or code == 2 and not packable or code != 0 and n == 0:
            raise Refused("code", f"nulls {code} of {n} values of type {type.name}")
        if code == 0:
            return self.values(type, n, sent=n)
        if not field.nullable:
            raise Refused("missing", f"in field {field.name!r}, which is not nullable")
        self.hold(bitmap_bytes(n))
        if code == 3:
            column = self.zeros(type, n)
            column.present = all_missing(type, n).present
            return column
        missing = self.cursor.u32("missing")
        if not 1 <= missing <= n:
            raise Refused("missing", f"{missing} of {n} values")
        present = self.bits(n, "bitmap")
        if n - np.count_nonzero(present) != missing:
            raise Refused("missing", f"{missing} declared, {n - np.count_nonzero(present)} in the bitmap")
        if code == 1:
            column = self.values(type, n, sent=n, present=present)
        else:
            column = spread(self.values(type, n, sent=n - missing), present)
        column.present = present
        return column

    def values(self, type: Type, n: int, sent: int, present: np.ndarray | None = None) -> Column:
        """values(T, sent), for a column of n values. Only nulls 02 makes the two differ."""
        self.hold(fixed_part(type, n))
        if type.name == "boolean":
            return Column(type, sent, values=self.booleans(sent))
        if type.width is not None:
            return Column(type, sent, values=self.fixed(type.width, sent))
        if type.name in ("utf8", "binary"):
            offsets, data = self.strings(type, sent)
            self.hold(len(data))
            return Column(type, sent, offsets=offsets, data=data)
        if type.name in ("list", "map"):
            offsets = self.list_offsets(n)
            total = int(offsets[-1])
            return Column(type, n, offsets=offsets, children=[self.column(child, total) for child in type.children])
        if type.name == "fixed_list":
            total = fixed_list_total(type, n)
            return Column(type, n, children=[self.column(type.children[0], total)])
        if type.name == "struct":
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

    # --- chunk.md section 4: buffers ---

    def place(self, what: str) -> Buffer:
        """Reads a buffer's descriptor and finds its place in the body."""
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
        """A buffer whose contents are known to need `raw` bytes."""
        place = self.place(what)
        if place.raw != raw:
            raise Refused("length", f"{what} has {place.raw} bytes, expected {raw}")
        return self.unpack(place, what)

    def unpack(self, buffer: Buffer, what: str) -> bytes:
        """encodings.md section 5. The caller has checked `raw` against what it may hold."""
        stored = self.body[buffer.at : buffer.at + buffer.bytes]
        if buffer.codec == 0:
            return stored
        data = unpack_lz4(stored, buffer.raw) if buffer.codec == 1 else unpack_zstd(stored, buffer.raw)
        if data is None or len(data) != buffer.raw:
            raise Refused("compressed", f"{what} does not unpack to {buffer.raw} bytes")
        return data

    def bits(self, n: int, what: str) -> np.ndarray:
        """A bitmap as bool[n]."""
        bits = unpack_bits(self.buffer(bitmap_bytes(n), what))
        if bits[n:].any():
            raise Refused("bitmap", f"{what} has bits set after its {n} values")
        return bits[:n].astype(bool)

    # --- encodings.md ---

    def booleans(self, n: int) -> np.ndarray:
        """Section 1."""
        code = self.cursor.u8("encoding of booleans")
        if code == PLAIN:
            return self.bits(n, "booleans")
        if code == CONSTANT:
            value = self.cursor.u8("constant")
            if value > 1 or n == 0:
                raise Refused("constant", f"boolean {value} for {n} values")
            return np.broadcast_to(np.bool_(value), n)
        raise Refused("code", f"encoding {code} of booleans")

    def fixed(self, width: int, n: int, codes=VALUES) -> np.ndarray:
        """Section 2: values as uint8[n, width]."""
        code = self.cursor.u8("encoding of fixed width")
        if code not in codes:
            raise Refused("code", f"encoding {code} of width {width}, expected one of {codes}")
        if code == PLAIN:
            return np.frombuffer(self.buffer(n * width, "values"), np.uint8).reshape(n, width)
        if code == CONSTANT:
            value = np.frombuffer(self.cursor.take(width, "constant"), np.uint8)
            if n == 0:
                raise Refused("constant", "for no values")
            return np.broadcast_to(value, (n, width))
        if code == FRAME:
            return self.frame(width, n)
        if code == RUNS:
            return self.runs(width, n)
        if code == DELTA:
            return self.delta(width, n)
        if code == PATCHED:
            return self.patched(width, n)
        if code == DECIMALS:
            return self.decimals(width, n)
        if code == HUFFMAN:
            return self.huffman(width, n)
        if code == KEPT_DICTIONARY:
            entries = self.tables.get(self.cursor.u32("table"), TABLE_FIXED, width).entries
            return np.array(entries)[self.entry_indexes(n, len(entries))]
        count = self.entry_count(n)
        entries = self.fixed(width, count, (PLAIN, CONSTANT))
        return entries[self.entry_indexes(n, count)]

    def frame(self, width: int, n: int) -> np.ndarray:
        bits = self.cursor.u8("bits")
        if width not in (1, 2, 4, 8, 16) or bits > min(64, 8 * width):
            raise Refused("bits", f"{bits} of width {width}")
        reference = int.from_bytes(self.cursor.take(width, "reference"), "little")
        packed = unpack_frame(self.buffer(packed_bytes(n, bits), "packed values"), n, bits)
        return add_reference(reference, packed, width)

    def runs(self, width: int, n: int) -> np.ndarray:
        count = self.cursor.u32("count")
        if not 1 <= count <= n:
            raise Refused("runs", f"{count} of {n} values")
        entries = self.fixed(width, count, PARTS)
        lengths = self.lengths(count)
        if not lengths.all() or lengths.sum() != n:
            raise Refused("runs", f"lengths whose sum is {lengths.sum()} for {n} values")
        return np.repeat(entries, lengths, axis=0)

    def delta(self, width: int, n: int) -> np.ndarray:
        if width not in (1, 2, 4, 8):
            raise Refused("bits", f"delta of width {width}")
        first = np.frombuffer(self.cursor.take(width, "first"), np.uint8).reshape(1, width)
        if n == 0:
            raise Refused("constant", "the first of no values")
        differences = self.fixed(width, n - 1, PARTS)
        steps = np.ascontiguousarray(np.concatenate([first, differences])).view(f"<u{width}").reshape(n)
        return np.cumsum(steps, dtype=f"<u{width}").view(np.uint8).reshape(n, width)

    def relative(self, width: int, n: int, earlier: list[Column]) -> np.ndarray:
        """Section 2.2."""
        if width not in (2, 4, 8):
            raise Refused("bits", f"relative of width {width}")
        number = self.cursor.u32("field")
        base = earlier[number] if number < len(earlier) else None
        if base is None or base.type.width != width or base.present is not None:
            raise Refused("base", f"field {number} for a column of width {width}")
        differences = self.fixed(width, n, (*PARTS, DICTIONARY))
        words = [np.ascontiguousarray(part).view(f"<u{width}").reshape(n) for part in (base.values, differences)]
        return (words[0] + words[1]).view(np.uint8).reshape(n, width)

    def patched(self, width: int, n: int) -> np.ndarray:
        values = np.array(self.frame(width, n))
        count = self.cursor.u32("count")
        if count == 0:
            raise Refused("positions", "no exceptions")
        return self.with_exceptions(values, count)

    def decimals(self, width: int, n: int) -> np.ndarray:
        """Section 2.1."""
        if width not in (4, 8):
            raise Refused("bits", f"decimals of width {width}")
        exponent = self.cursor.u8("exponent")
        if exponent > EXPONENT_MAX:
            raise Refused("exponent", f"{exponent}, at most {EXPONENT_MAX}")
        integers = self.integers(Type(f"int{8 * width}", width), n)
        with np.errstate(over="ignore"):
            floats = (integers.astype(np.float64) / np.float64(10**exponent)).astype(f"<f{width}")
        values = floats.view(np.uint8).reshape(n, width)
        count = self.cursor.u32("count")
        return self.with_exceptions(values, count) if count else values

    def with_exceptions(self, values: np.ndarray, count: int) -> np.ndarray:
        """The positions and exceptions of patched and of decimals, put among the values."""
        n, width = values.shape
        if count > n:
            raise Refused("positions", f"{count} exceptions among {n} values")
        positions = number_view(self.fixed(4, count, INNER), Type("uint32", 4)).astype(np.int64)
        if (np.diff(positions) <= 0).any() or positions[-1] >= n:
            raise Refused("positions", f"they do not rise, or reach {n}")
        values[positions] = self.fixed(width, count, INNER)
        return values

    def strings(self, type: Type, n: int, codes=(OFFSETS, CONSTANT, LENGTHS, DICTIONARY, SYMBOLS, KEPT_STRINGS)
    ) -> tuple[np.ndarray, bytes]:
        """Section 3: offsets and data, which the caller takes out of decoded_bytes."""
        code = self.cursor.u8("encoding of strings")
        if code not in codes:
            raise Refused("code", f"encoding {code} of {type.name}, expected one of {codes}")
        if code == CONSTANT:
            place = self.place("constant")
            if n == 0:
                raise Refused("constant", "for no values")
            self.check_string_bytes(n * place.raw)
            value = self.unpack(place, "constant")
            offsets = np.arange(n + 1, dtype=np.int64) * len(value)
            check_utf8(type, offsets[:2], value)
            return offsets, value * n
        if code in (DICTIONARY, KEPT_STRINGS):
            if code == DICTIONARY:
                count = self.entry_count(n)
                entries = slices(*self.strings(type, count, (OFFSETS, LENGTHS, SYMBOLS)))
            else:
                table_code = TABLE_UTF8 if type.name == "utf8" else TABLE_BINARY
                entries = self.tables.get(self.cursor.u32("table"), table_code).entries
            indexes = self.entry_indexes(n, len(entries))
            offsets = offsets_of(np.array([len(entry) for entry in entries])[indexes])
            self.check_string_bytes(int(offsets[-1]))
            return offsets, b"".join(entries[index] for index in indexes)
        offsets = self.offsets(n) if code == OFFSETS else offsets_of(self.lengths(n))
        self.check_string_bytes(int(offsets[-1]))
        if code == SYMBOLS:
            data = self.symbols(int(offsets[-1]))
        else:
            place = self.place("string data")
            if place.raw != offsets[-1]:
                raise Refused("offsets", f"strings end at {offsets[-1]}, their data at {place.raw}")
            data = self.unpack(place, "string data")
        check_utf8(type, offsets, data)
        return offsets, data

    def symbols(self, total: int) -> bytes:
        """Section 3.1: the data, `total` bytes, from the table and the codes."""
        table = self.cursor.u8("table")
        if table > 1:
            raise Refused("code", f"table of symbols {table}")
        if table == 1:
            symbols = self.tables.get(self.cursor.u32("table"), TABLE_SYMBOLS).entries
        else:
            symbols = self.symbol_table()
        meanings = symbols + [bytes([byte]) for byte in range(256)]
        codes = self.cursor.u32("count of codes")
        if codes > total:
            raise Refused("offsets", f"{codes} codes for {total} bytes")
        codes = number_view(self.fixed(2, codes, PARTS), Type("uint16", 2))
        if np.any(codes >= len(meanings)):
            raise Refused("index", f"a code above {len(meanings) - 1}")
        data = b"".join(meanings[code] for code in codes)
        if len(data) != total:
            raise Refused("offsets", f"codes that stand for {len(data)} bytes, the lengths for {total}")
        return data

    def huffman(self, width: int, n: int) -> np.ndarray:
        """Section 3.2: values as uint8[n, width]."""
        if width not in (1, 2, 4, 8, 16):
            raise Refused("bits", f"Huffman codes for values of width {width}")
        reference = int.from_bytes(self.cursor.take(width, "reference"), "little")
        count = self.cursor.u32("count of Huffman codes")
        if count > HUFFMAN_VALUES_MAX:
            raise Refused("bits", f"Huffman codes of {count} values, at most {HUFFMAN_VALUES_MAX}")
        lengths = self.fixed(1, count, CODE_LENGTHS).reshape(count).tolist()
        if max(lengths, default=0) > HUFFMAN_BITS_MAX:
            raise Refused("bits", f"a Huffman code of {max(lengths)} bits")
        if sum(Fraction(1, 1 << length) for length in lengths if length) != 1:
            raise Refused("bits", "the lengths of Huffman codes do not add up")
        codes = huffman_codes(lengths)
        sizes = [self.cursor.u32("size of a quarter") for _ in range(4)]
        packed = self.buffer(sum(sizes), "Huffman codes")
        values, quarter = [], (n + 3) // 4
        for i, size in enumerate(sizes):
            data, packed = packed[:size], packed[size:]
            values += huffman_quarter(data, codes, min(quarter, max(n - i * quarter, 0)))
        return add_reference(reference, np.array(values, np.uint64), width)

    def symbol_table(self) -> list[bytes]:
        count = self.cursor.u32("count of symbols")
        if count > SYMBOLS_MAX:
            raise Refused("symbols", f"{count}, at most {SYMBOLS_MAX}")
        lengths = self.integers(Type("uint8", 1), count)
        if np.any((lengths < 1) | (lengths > SYMBOL_BYTES_MAX)):
            raise Refused("symbols", "of no bytes, or of too many")
        ends = offsets_of(lengths)
        return slices(ends, self.buffer(int(ends[-1]), "symbols"))

    # --- state.md section 2 ---

    def table(self, standing: dict[int, Table]):
        """Reads one table, which stands from now on."""
        number = self.cursor.u32("number")
        if number >= TABLE_NUMBERS:
            raise Refused("state", f"table {number}, below {TABLE_NUMBERS}")
        before = self.decoded_left
        code = self.cursor.u8("code of a table")
        if code > TABLE_BINARY:
            raise Refused("code", f"table code {code}")
        if code == TABLE_SYMBOLS:
            table = Table(code, entries=self.symbol_table())
            self.hold(len(table.entries) + sum(map(len, table.entries)))
        else:
            first, count = self.cursor.u32("first"), self.cursor.u32("count")
            width = self.cursor.u32("width") if code == TABLE_FIXED else 0
            table = Table(code, width) if first == 0 else standing.get(number, Table(code, width))
            if (table.code, table.width, len(table.entries)) != (code, width, first):
                raise Refused("state", f"entries of code {code} and width {width} appended from {first} on")
            if code == TABLE_FIXED and not 1 <= width <= TABLE_BYTES_MAX:
                raise Refused("state", f"entries of {width} bytes")
            if not 1 <= count <= TABLE_ENTRIES_MAX - first:
                raise Refused("state", f"{count} entries behind {first}")
            if code == TABLE_FIXED:
                check_table_bytes((first + count) * width)
                self.hold(count * width)
                table.entries += list(self.fixed(width, count, (PLAIN, CONSTANT)))
            else:
                self.hold(count * 4)
                type = Type("utf8" if code == TABLE_UTF8 else "binary", None)
                table.entries += slices(*self.strings(type, count, (OFFSETS, LENGTHS)))
                check_table_bytes(sum(map(len, table.entries)))
                self.hold(sum(map(len, table.entries[first:])))
        table.decoded_bytes += before - self.decoded_left
        standing[number] = table

    def offsets(self, n: int) -> np.ndarray:
        """n + 1 offsets, checked but for their end."""
        offsets = np.frombuffer(self.buffer(4 * (n + 1), "offsets"), "<u4").astype(np.int64)
        if offsets[0] != 0 or np.any(np.diff(offsets) < 0):
            raise Refused("offsets", "they do not begin with 0, or fall")
        return offsets

    def lengths(self, n: int) -> np.ndarray:
        return self.integers(Type("uint32", 4), n)

    def integers(self, type: Type, n: int) -> np.ndarray:
        """Lengths and indexes."""
        return number_view(self.fixed(type.width, n, PARTS), type)

    def entry_count(self, n: int) -> int:
        count = self.cursor.u32("count")
        if not 1 <= count <= n:
            raise Refused("index", f"dictionary of {count} entries for {n} values")
        return count

    def entry_indexes(self, n: int, count: int) -> np.ndarray:
        indexes = self.lengths(n)
        if np.any(indexes >= count):
            raise Refused("index", f"dictionary of {count} entries")
        return indexes

    # --- chunk.md section 5: decoded size ---

    def hold(self, count: int):
        if count > self.decoded_left:
            raise Refused("decoded", f"{count} bytes more, {self.decoded_left} of those declared are left")
        self.decoded_left -= count

    def check_string_bytes(self, count: int):
        """Before string data is unpacked: a reader must be able to hold it, even when it is a dictionary's."""
        check_count(count, "bytes of strings")
        if count > self.decoded_left:
            raise Refused("decoded", f"{count} bytes of strings, {self.decoded_left} of those declared are left")

    def zeros(self, type: Type, n: int) -> Column:
        """What a column that is all missing counts as and decodes to (nulls 03)."""
        self.hold(fixed_part(type, n))
        if type.name == "null":
            return all_missing(type, n)
        if type.name == "boolean":
            return Column(type, n, values=np.broadcast_to(np.False_, n))
        if type.width is not None:
            return Column(type, n, values=np.broadcast_to(np.uint8(0), (n, type.width)))
        children_n = {"struct": n}.get(type.name, 0)
        if type.name == "fixed_list":
            children_n = fixed_list_total(type, n)
        column = Column(type, n, children=[self.zeros(child.type, children_n) for child in type.children])
        if type.name == "dictionary":
            column.values = np.broadcast_to(np.int64(0), n)
        elif type.name not in ("struct", "fixed_list"):
            column.offsets = np.broadcast_to(np.int64(0), n + 1)
        return column

    def check_used_up(self):
        if self.cursor.left():
            raise Refused("trailing", f"{self.cursor.left()} bytes of descriptors after the last column")
        if self.at != len(self.body):
            raise Refused("trailing", f"{len(self.body) - self.at} bytes of body after the last buffer")
        if self.decoded_left:
            raise Refused("decoded", f"{self.decoded_left} bytes fewer than declared")


def all_missing(type: Type, n: int) -> Column:
    return Column(type, n, present=np.broadcast_to(np.False_, n))


def fixed_part(type: Type, n: int) -> int:
    """chunk.md section 5: what n values hold, but for the bytes of strings, children and the nulls."""
    if type.name == "boolean":
        return bitmap_bytes(n)
    if type.width is not None:
        return n * type.width
    if type.name in ("utf8", "binary", "list", "map"):
        return (n + 1) * 4
    return n * type.index.width if type.name == "dictionary" else 0


def fixed_list_total(type: Type, n: int) -> int:
    total = n * type.parameters["size"]
    check_count(total, "values in fixed-size lists")
    return total


def spread(packed: Column, present: np.ndarray) -> Column:
    """Puts packed values in their places (nulls 02)."""
    n = len(present)
    if packed.offsets is not None:
        lengths = np.zeros(n, np.int64)
        lengths[present] = np.diff(packed.offsets)
        return Column(packed.type, n, offsets=offsets_of(lengths), data=packed.data)
    values = np.zeros((n,) + packed.values.shape[1:], packed.values.dtype)
    values[present] = packed.values
    return Column(packed.type, n, values=values)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def check_utf8(type: Type, offsets: np.ndarray, data: bytes):
    """encodings.md section 3: all of it is valid, and no value begins within a character."""
    if type.name != "utf8":
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("utf8", str(error)) from None
    starts = offsets[offsets < len(data)]
    if np.any(np.frombuffer(data, np.uint8)[starts] & 0xC0 == 0x80):
        raise Refused("utf8", "a value begins within a character")


def slices(ends: np.ndarray, data: bytes) -> list[bytes]:
    return [data[start:end] for start, end in zip(ends[:-1], ends[1:])]


def check_table_bytes(count: int):
    if count > TABLE_BYTES_MAX:
        raise Refused("state", f"{count} bytes of entries")


def unpack_lz4(stored: bytes, raw: int) -> bytes | None:
    try:
        return lz4.block.decompress(stored, uncompressed_size=raw)
    except lz4.block.LZ4BlockError:
        return None


def unpack_zstd(stored: bytes, raw: int) -> bytes | None:
    if stored[:4] != b"\x28\xb5\x2f\xfd":  # the library would read a skippable frame too
        return None
    try:
        frame = zstandard.get_frame_parameters(stored)
        if frame.dict_id or frame.content_size not in (raw, zstandard.CONTENTSIZE_UNKNOWN):
            return None
        # A limit of 0 means none to this library, so ask for one byte more than is allowed.
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw + 1, allow_extra_data=False)
    except zstandard.ZstdError:
        return None


def number_view(values: np.ndarray, type: Type) -> np.ndarray:
    """uint8[n, width] as numbers of an integer type."""
    kind = "u" if type.name.startswith("uint") else "i"
    return np.ascontiguousarray(values).view(f"<{kind}{type.width}").reshape(len(values))
