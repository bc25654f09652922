"""Decodes booleans, values of fixed width and strings (encodings.md)."""

from fractions import Fraction

import numpy as np

from bits import add_reference, huffman_codes, huffman_quarter, packed_bytes, unpack_frame
from body import Body
from columns import Column, number_view, offsets_of, slices
from cursor import Refused
from schema import Type
from tables import TABLE_BINARY, TABLE_FIXED, TABLE_SYMBOLS, TABLE_UTF8

(
    PLAIN,
    CONSTANT,
    FRAME,
    DICTIONARY,
    RUNS,
    DELTA,
    PATCHED,
    DECIMALS,
    RELATIVE,
    STREAM_DICTIONARY,
    HUFFMAN,
) = range(11)
VALUE_CODES = (*range(RELATIVE), STREAM_DICTIONARY, HUFFMAN)
EXCEPTION_CODES = (PLAIN, CONSTANT, FRAME)
CODE_LENGTHS = (*EXCEPTION_CODES, PATCHED)
INNER_CODES = (*CODE_LENGTHS, HUFFMAN)
HUFFMAN_BITS_MAX, HUFFMAN_VALUES_MAX = 13, 4096
OFFSETS, LENGTHS, SYMBOLS, STREAM_STRINGS = 0, 2, 4, 5
EXPONENT_MAX = 22
SYMBOLS_MAX, SYMBOL_BYTES_MAX = 3840, 16


class Encoded(Body):
    """Reads encoded values from descriptors and body."""

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

    def fixed(self, width: int, n: int, codes=VALUE_CODES) -> np.ndarray:
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
        if code == STREAM_DICTIONARY:
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
        entries = self.fixed(width, count, INNER_CODES)
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
        differences = self.fixed(width, n - 1, INNER_CODES)
        steps = (
            np.ascontiguousarray(np.concatenate([first, differences])).view(f"<u{width}").reshape(n)
        )
        return np.cumsum(steps, dtype=f"<u{width}").view(np.uint8).reshape(n, width)

    def relative(self, width: int, n: int, earlier: list[Column]) -> np.ndarray:
        """Section 2.2."""
        if width not in (2, 4, 8):
            raise Refused("bits", f"relative of width {width}")
        number = self.cursor.u32("field")
        base = earlier[number] if number < len(earlier) else None
        if base is None or base.type.width != width or base.present is not None:
            raise Refused("base", f"field {number} for a column of width {width}")
        differences = self.fixed(width, n, (*INNER_CODES, DICTIONARY))
        words = [
            np.ascontiguousarray(part).view(f"<u{width}").reshape(n)
            for part in (base.values, differences)
        ]
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
        """Reads the positions and exceptions of patched or decimals, and sets the values there."""
        n, width = values.shape
        if count > n:
            raise Refused("positions", f"{count} exceptions among {n} values")
        positions = number_view(self.fixed(4, count, EXCEPTION_CODES), Type("uint32", 4)).astype(
            np.int64
        )
        if (np.diff(positions) <= 0).any() or positions[-1] >= n:
            raise Refused("positions", f"they do not increase, or reach {n}")
        values[positions] = self.fixed(width, count, EXCEPTION_CODES)
        return values

    def strings(
        self,
        type: Type,
        n: int,
        codes=(OFFSETS, CONSTANT, LENGTHS, DICTIONARY, SYMBOLS, STREAM_STRINGS),
    ) -> tuple[np.ndarray, bytes]:
        """Section 3: offsets and data. The caller subtracts them from decoded_bytes."""
        code = self.cursor.u8("encoding of strings")
        if code not in codes:
            raise Refused("code", f"encoding {code} of {type.name}, expected one of {codes}")
        if code == CONSTANT:
            buffer = self.locate("constant")
            if n == 0:
                raise Refused("constant", "for no values")
            self.check_string_bytes(n * buffer.raw)
            value = self.unpack(buffer, "constant")
            offsets = np.arange(n + 1, dtype=np.int64) * len(value)
            check_utf8(type, offsets[:2], value)
            return offsets, value * n
        if code in (DICTIONARY, STREAM_STRINGS):
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
            buffer = self.locate("string data")
            if buffer.raw != offsets[-1]:
                raise Refused("offsets", f"strings end at {offsets[-1]}, data at {buffer.raw}")
            data = self.unpack(buffer, "string data")
        check_utf8(type, offsets, data)
        return offsets, data

    def symbols(self, total: int) -> bytes:
        """Section 3.1: the `total` bytes of data that the codes stand for."""
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
        codes = number_view(self.fixed(2, codes, INNER_CODES), Type("uint16", 2))
        if np.any(codes >= len(meanings)):
            raise Refused("index", f"a code above {len(meanings) - 1}")
        data = b"".join(meanings[code] for code in codes)
        if len(data) != total:
            raise Refused(
                "offsets", f"codes that stand for {len(data)} bytes, the lengths for {total}"
            )
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
        quarter = (n + 3) // 4
        counts = [min(quarter, max(n - i * quarter, 0)) for i in range(4)]
        for size, values in zip(sizes, counts):
            if not (values + 7) // 8 <= size <= (HUFFMAN_BITS_MAX * values + 7) // 8:
                raise Refused("length", f"{size} bytes of Huffman codes for {values} values")
        packed = self.buffer(sum(sizes), "Huffman codes")
        values = []
        for size, count in zip(sizes, counts):
            data, packed = packed[:size], packed[size:]
            values += huffman_quarter(data, codes, count)
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

    def offsets(self, n: int) -> np.ndarray:
        """n + 1 offsets. The caller checks the last one."""
        offsets = np.frombuffer(self.buffer(4 * (n + 1), "offsets"), "<u4").astype(np.int64)
        if offsets[0] != 0 or np.any(np.diff(offsets) < 0):
            raise Refused("offsets", "they do not begin with 0, or decrease")
        return offsets

    def lengths(self, n: int) -> np.ndarray:
        return self.integers(Type("uint32", 4), n)

    def integers(self, type: Type, n: int) -> np.ndarray:
        """Inner values that are numbers of an integer type, such as lengths and indexes."""
        return number_view(self.fixed(type.width, n, INNER_CODES), type)

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


def check_utf8(type: Type, offsets: np.ndarray, data: bytes):
    """encodings.md section 3: the data is valid, and no value begins within a character."""
    if type.name != "utf8":
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("utf8", str(error)) from None
    starts = offsets[offsets < len(data)]
    if np.any(np.frombuffer(data, np.uint8)[starts] & 0xC0 == 0x80):
        raise Refused("utf8", "a value begins within a character")
