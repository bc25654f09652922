"""Decodes pages to rows of the vectors' JSON values (page.md). Every violation is refused by its
name.
"""

from dataclasses import dataclass, field

from crc32c import crc32c
from cursor import Cursor, Refused
from schema import Field, Type
from values import fixed_value

HEADER_BYTES = 64
EXTENT_BYTES_END = 1 << 31
# The bit of extent_bytes that marks a dead extent.
DEAD = 1 << 31
INLINE_MAX = 12
# The maximum number of items that take no bytes: a few bytes can declare billions of them.
ZERO_SIZED_MAX = 1 << 16


@dataclass
class Page:
    sequence: int
    page_bytes: int
    flags: int
    edition: int
    rows: list[list]

    @property
    def large(self) -> bool:
        return self.flags & 2 != 0

    @property
    def moved(self) -> bool:
        return self.flags & 4 != 0


@dataclass
class FieldLayout:
    """The position of a field in a record. The fields of a struct are fields of the record, too."""

    type: Type  # for a dictionary the type of its values
    bit: int | None  # its validity bit
    around: int | None  # its validity bit, or that of the nearest struct around it with one
    offset: int = 0  # unused for a struct
    fields: list["FieldLayout"] = field(default_factory=list)  # of a struct
    items: "RecordLayout | None" = None
    items_nullable: bool = False


class RecordLayout:
    """The positions of the fields of an object or an item (page.md section 3)."""

    def __init__(self, fields: list[Field], bits_at: int):
        self.bits_at = bits_at
        self.bits = 0
        self.leaves: list[FieldLayout] = []  # in the schema's order
        self.structs: list[FieldLayout] = []
        self.fields = [self.layout(field.type, field.nullable, None) for field in fields]
        self.bits_end = bits_at + (self.bits + 7) // 8
        alignment = max((align(leaf.type) for leaf in self.leaves), default=1)
        self.fixed_at = self.end = pad(self.bits_end, alignment)
        # The sort is stable.
        for leaf in sorted(self.leaves, key=lambda leaf: -align(leaf.type)):
            leaf.offset = self.end
            self.end += width(leaf.type)
        if self.end >= EXTENT_BYTES_END:
            raise Refused("limit", f"a record of {self.end} bytes")
        self.stride = pad(self.end, alignment)

    def layout(self, type: Type, nullable: bool, around: int | None) -> FieldLayout:
        while type.name == "dictionary":
            type = type.children[0].type
        bit = None
        if nullable and type.name != "null":
            bit = around = self.bits
            self.bits += 1
        layout = FieldLayout(type, bit, around)
        if type.name == "struct":
            self.structs.append(layout)
            layout.fields = [
                self.layout(child.type, child.nullable, around) for child in type.children
            ]
        elif type.name == "map":
            pair = Type("struct", children=type.children)
            layout.items = RecordLayout([Field("", pair, nullable=False)], 0)
        elif type.name in ("list", "fixed_list"):
            item = type.children[0]
            layout.items = RecordLayout([Field("", item.type, nullable=False)], 0)
            layout.items_nullable = item.nullable and not is_null(item.type)
        if type.name not in ("struct", "null"):
            self.leaves.append(layout)
        return layout


def is_null(type: Type) -> bool:
    return type.name == "null" or type.name == "dictionary" and is_null(type.children[0].type)


def width(type: Type) -> int:
    if type.width is not None:
        return type.width
    return {"boolean": 1, "utf8": 16, "binary": 16, "list": 8, "map": 8, "fixed_list": 8}[type.name]


def align(type: Type) -> int:
    return 1 if type.name == "fixed_binary" else min(width(type), 8)


def pad(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def decode_page(data: bytes, fields: list[Field]) -> Page:
    record = RecordLayout(fields, bits_at=4)
    page, objects, objects_end = decode_header(data)
    slots_at = page.page_bytes - 4 * objects
    slots = [
        int.from_bytes(data[at : at + 4], "little")
        for at in range(page.page_bytes - 4, slots_at - 4, -4)
    ]
    decode = moved_rows if page.moved else ordered_rows
    page.rows = decode(data[:objects_end], slots, record)
    check_zeros(data[objects_end:slots_at], "between objects and slots")
    return page


def ordered_rows(data: bytes, slots: list[int], record: RecordLayout) -> list[list]:
    """The objects of a page that is not moved. The data ends at objects_end."""
    rows, at = [], HEADER_BYTES
    for i, slot in enumerate(slots):
        if slot != at:
            raise Refused("slot", f"slot {i} is {slot}, its object is at {at}")
        extent = live_extent(data, at, record)
        rows.append(Object(extent, record).row)
        at += len(extent)
    if at != len(data):
        raise Refused("objects", f"they end at {at}, the header says {len(data)}")
    return rows


def moved_rows(data: bytes, slots: list[int], record: RecordLayout) -> list[list]:
    """The objects of a moved page in the order of their slots (section 11)."""
    live, at = {}, HEADER_BYTES
    while at < len(data):
        size = Cursor(data[at:], short="extent").u32("extent_bytes")
        if size & DEAD:
            size -= DEAD
            if size % 8 or size == 0 or at + size > len(data):
                raise Refused("extent", f"{size} dead bytes at {at}")
            check_zeros(data[at + 4 : at + size], "a dead extent")
        else:
            live[at] = Object(live_extent(data, at, record), record).row
        at += size
    if len(live) != len(slots):
        raise Refused("objects", f"{len(live)} live extents, the header says {len(slots)}")
    for i, slot in enumerate(slots):
        if slot not in live or slot in slots[:i]:
            raise Refused("slot", f"slot {i} is {slot}")
    return [live[slot] for slot in slots]


def live_extent(data: bytes, at: int, record: RecordLayout) -> bytes:
    size = Cursor(data[at:], short="extent").u32("extent_bytes")
    if size % 8 or size < max(record.end, 8) or at + size > len(data):
        raise Refused("extent", f"{size} bytes at {at}")
    return data[at : at + size]


def decode_header(data: bytes) -> tuple[Page, int, int]:
    page, objects, objects_end = page_sizes(data)
    if len(data) != page.page_bytes:
        raise Refused("size", f"{len(data)} bytes, expected {page.page_bytes}")
    checksum = int.from_bytes(data[28:32], "little")
    if page.flags & 1 and checksum != crc32c(
        data[HEADER_BYTES:] + data[:28] + bytes(4) + data[32:HEADER_BYTES]
    ):
        raise Refused("checksum", "it does not match")
    return page, objects, objects_end


def page_sizes(data: bytes) -> tuple[Page, int, int]:
    """The header, checked by itself: a page without its rows, its objects, and where they end."""
    cursor = Cursor(data[:HEADER_BYTES], short="size")
    cursor.take(HEADER_BYTES, "header")
    cursor = Cursor(data[:HEADER_BYTES], short="size")
    if cursor.take(4, "magic") != b"DRYP":
        raise Refused("magic", repr(data[:4]))
    version, flags = cursor.u16("version"), cursor.u16("flags")
    if version != 0:
        raise Refused("version", str(version))
    if flags > 7:
        raise Refused("flags", hex(flags))
    sequence = cursor.u64("sequence")
    objects, page_bytes, objects_end, checksum = (
        cursor.u32(name) for name in ("objects", "page_bytes", "objects_end", "checksum")
    )
    large = flags & 2 != 0
    if objects == 0 or large and (objects != 1 or flags & 4):
        raise Refused("objects", f"{objects} of them")
    standard = page_bytes & (page_bytes - 1) == 0 and 4 << 10 <= page_bytes <= 1 << 30
    if not (0 < page_bytes < 1 << 31 and page_bytes % (4 << 10) == 0 if large else standard):
        raise Refused("size", f"page_bytes {page_bytes}")
    if not HEADER_BYTES <= objects_end <= page_bytes - 4 * objects:
        raise Refused("objects", f"{objects} up to {objects_end}")
    if not flags & 1 and checksum != 0:
        raise Refused("checksum", "a checksum without its flag")
    edition = cursor.u32("edition")
    if any(cursor.take(cursor.left(), "reserved")):
        raise Refused("reserved", "a reserved byte is not 0")
    return Page(sequence, page_bytes, flags, edition, []), objects, objects_end


def check_zeros(data: bytes, where: str, name: str = "padding"):
    if any(data):
        raise Refused(name, f"not zero: {where}")


class Object:
    """Decodes the extent of one object. The tails must be in order (section 6)."""

    def __init__(self, extent: bytes, record: RecordLayout):
        self.extent = extent
        self.cursor = record.end
        self.row = self.record(record, 0)
        if pad(self.cursor, 8) != len(extent):
            raise Refused("extent", f"the tails end at {self.cursor}, the extent at {len(extent)}")
        check_zeros(extent[self.cursor :], "behind the tails")

    def u32(self, at: int) -> int:
        return int.from_bytes(self.extent[at : at + 4], "little")

    def record(self, record: RecordLayout, at: int) -> list:
        """Checks a record and its tails, and returns its values."""
        bits = int.from_bytes(self.extent[at + record.bits_at : at + record.bits_end], "little")
        if bits >> record.bits:
            raise Refused("bitmap", "a bit past the last validity bit")

        def there(bit: int | None) -> bool:
            return bit is None or bits >> bit & 1 == 1

        for struct in record.structs:
            inside = [child.bit for child in struct.fields if child.bit is not None]
            if not there(struct.around) and any(there(bit) for bit in inside):
                raise Refused("missing", "a value in a missing struct")
        for leaf in record.leaves:
            if not there(leaf.around):
                start = at + leaf.offset
                check_zeros(
                    self.extent[start : start + width(leaf.type)], "a missing value", "missing"
                )
        check_zeros(
            self.extent[at + record.bits_end : at + record.fixed_at],
            "between validity bits and fixed part",
        )
        if record.bits_at == 0:
            check_zeros(self.extent[at + record.end : at + record.stride], "behind a record")
        for leaf in record.leaves:
            if leaf.type.name == "boolean" and self.extent[at + leaf.offset] > 1:
                raise Refused("boolean", str(self.extent[at + leaf.offset]))
        values = {}
        for leaf in record.leaves:
            values[leaf.offset] = self.value(leaf, at + leaf.offset) if there(leaf.around) else None

        def of(layout: FieldLayout):
            if layout.type.name == "null" or not there(layout.bit):
                return None
            return (
                [of(child) for child in layout.fields]
                if layout.type.name == "struct"
                else values[layout.offset]
            )

        return [of(layout) for layout in record.fields]

    def value(self, leaf: FieldLayout, at: int):
        name = leaf.type.name
        if name == "boolean":
            return self.extent[at] == 1
        if name in ("utf8", "binary"):
            data = self.string(at)
            if name == "binary":
                return data.hex()
            try:
                return data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Refused("utf8", str(error)) from None
        if leaf.items is not None:
            return self.items(leaf, at)
        return fixed_value(name, self.extent[at : at + leaf.type.width])

    def string(self, at: int) -> bytes:
        length = self.u32(at)
        if length <= INLINE_MAX:
            check_zeros(self.extent[at + 4 + length : at + 16], "behind a string", "string")
            return self.extent[at + 4 : at + 4 + length]
        check_zeros(self.extent[at + 8 : at + 12], "reserved bytes of a string", "string")
        start, end = self.cursor, self.cursor + length
        if self.u32(at + 12) != start or end > len(self.extent):
            raise Refused("tail", f"a string at {self.u32(at + 12)}, expected at {start}")
        data = self.extent[start:end]
        if data[:4] != self.extent[at + 4 : at + 8]:
            raise Refused("string", "another prefix")
        self.cursor = end
        return data

    def items(self, leaf: FieldLayout, at: int) -> list:
        offset, count = self.u32(at), self.u32(at + 4)
        size = leaf.type.parameters.get("size") if leaf.type.name == "fixed_list" else None
        if count >= 1 << 31 or count == 0 and offset != 0 or size not in (None, count):
            raise Refused("items", f"{count} of them at {offset}")
        if count == 0:
            return []
        start = pad(self.cursor, 8)
        records_at = start + (pad((count + 7) // 8, 8) if leaf.items_nullable else 0)
        end = records_at + count * leaf.items.stride
        if offset != start or end > len(self.extent):
            raise Refused("tail", f"items at {offset}, expected at {start}")
        check_zeros(self.extent[self.cursor : start], "before items")
        self.cursor = end
        if leaf.items.stride == 0 and not leaf.items_nullable and count > ZERO_SIZED_MAX:
            raise Refused("limit", f"{count} items that take no bytes")
        bitmap = self.extent[start : start + (count + 7) // 8] if leaf.items_nullable else None
        if bitmap is not None:
            if count % 8 and bitmap[-1] >> count % 8:
                raise Refused("bitmap", "a bit past the last item")
            check_zeros(self.extent[start + len(bitmap) : records_at], "behind a bitmap")
        values = []
        for i in range(count):
            at = records_at + i * leaf.items.stride
            if bitmap is None or bitmap[i // 8] >> i % 8 & 1:
                values += self.record(leaf.items, at)
            else:
                check_zeros(self.extent[at : at + leaf.items.stride], "a missing item", "missing")
                values.append(None)
        return values
