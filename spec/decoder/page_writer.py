"""Writes pages from the vectors' JSON values. Shares nothing with the decoder but crc32c."""

from crc32c import crc32c
from writer import u16, u32, u64

WIDTHS = {
    "boolean": 1, "int8": 1, "uint8": 1,
    "int16": 2, "uint16": 2, "float16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "decimal32": 4, "date32": 4, "time32": 4,
    "interval_months": 4,
    "int64": 8, "uint64": 8, "float64": 8, "decimal64": 8, "date64": 8, "time64": 8,
    "timestamp": 8, "duration": 8, "interval_day_time": 8, "list": 8, "map": 8, "fixed_list": 8,
    "decimal128": 16, "interval_month_day_nano": 16, "utf8": 16, "binary": 16,
    "decimal256": 32,
}  # fmt: skip


def stored(words: dict) -> dict:
    """A field's words; for a dictionary those of its values."""
    while words["type"] == "dictionary":
        words = words["values"] | {"nullable": words["nullable"]}
    return words


def size_of(words: dict) -> tuple[int, int]:
    """Width and alignment."""
    if words["type"] == "fixed_binary":
        return words["width"], 1
    return WIDTHS[words["type"]], min(WIDTHS[words["type"]], 8)


def scalar(words: dict, value) -> bytes:
    """The bytes of a value of fixed width, given as in vectors/README.md."""
    name, width = words["type"], size_of(words)[0]
    if name == "fixed_binary":
        return bytes.fromhex(value)
    if name.startswith("float"):
        return bytes.fromhex(value)[::-1]
    parts = value if isinstance(value, list) else [value]
    widths = {"interval_day_time": (4, 4), "interval_month_day_nano": (4, 4, 8)}.get(name, (width,))
    return b"".join(
        (int(part) % (1 << 8 * w)).to_bytes(w, "little") for part, w in zip(parts, widths)
    )


class Extent:
    """An object as it grows: a record, then its tails in their order."""

    def __init__(self, fields: list[dict], row: list):
        self.data = bytearray(4)
        self.tails(self.record(fields, row))
        self.align(8)
        self.data[:4] = u32(len(self.data))

    def align(self, multiple: int):
        self.data += bytes(-len(self.data) % multiple)

    def record(self, fields: list[dict], values: list) -> list:
        """Appends a record, without padding at its end. Returns offset, words and value of each of
        its strings and lists.
        """
        bits, leaves = [], []

        def flatten(fields, values):
            for words, value in zip(map(stored, fields), values, strict=True):
                if words["type"] == "null":
                    continue
                if words["nullable"]:
                    bits.append(value is not None)
                if words["type"] == "struct":
                    children = words["children"]
                    flatten(children, [None] * len(children) if value is None else value)
                else:
                    leaves.append((words, value))

        flatten(fields, values)
        for at in range(0, len(bits), 8):
            self.data.append(sum(bit << i for i, bit in enumerate(bits[at : at + 8])))
        self.align(max((size_of(words)[1] for words, _ in leaves), default=1))
        places = {}
        for alignment in (8, 4, 2, 1):
            for i, (words, value) in enumerate(leaves):
                width, own = size_of(words)
                if own != alignment:
                    continue
                places[i] = len(self.data)
                if value is None or words["type"] in (
                    "list",
                    "map",
                    "fixed_list",
                    "utf8",
                    "binary",
                ):
                    self.data += bytes(width)
                elif words["type"] == "boolean":
                    self.data.append(value)
                else:
                    self.data += scalar(words, value)
        variable = ("list", "map", "fixed_list", "utf8", "binary")
        return [
            (places[i], words, value)
            for i, (words, value) in enumerate(leaves)
            if words["type"] in variable
        ]

    def tails(self, places: list):
        for at, words, value in places:
            if value is None:
                continue
            if words["type"] in ("utf8", "binary"):
                data = value.encode() if words["type"] == "utf8" else bytes.fromhex(value)
                if len(data) <= 12:
                    self.data[at : at + 4 + len(data)] = u32(len(data)) + data
                else:
                    self.data[at : at + 16] = (
                        u32(len(data)) + data[:4] + u32(0) + u32(len(self.data))
                    )
                    self.data += data
            elif value:
                self.items(at, words, value)

    def items(self, at: int, words: dict, values: list):
        item = words["children"][0]
        if words["type"] == "map":
            item = {"type": "struct", "children": words["children"], "nullable": False}
        self.align(8)
        self.data[at : at + 8] = u32(len(self.data)) + u32(len(values))
        if item["nullable"] and stored(item)["type"] != "null":
            for first in range(0, len(values), 8):
                self.data.append(
                    sum(
                        (value is not None) << i
                        for i, value in enumerate(values[first : first + 8])
                    )
                )
            self.align(8)
        record = [item | {"nullable": False}]
        stride = stride_of(record)
        behind = []
        for value in values:
            start = len(self.data)
            if value is not None:
                behind += self.record(record, [value])
            self.data += bytes(start + stride - len(self.data))
        self.tails(behind)


def stride_of(record: list[dict]) -> int:
    """The stride of an item, found by writing an empty one at a multiple of 8."""
    extent = Extent.__new__(Extent)
    extent.data = bytearray()
    extent.record(record, [empty(record[0])])
    extent.align(max(alignments(record), default=1))
    return len(extent.data)


def alignments(fields: list[dict]) -> list[int]:
    out = []
    for words in map(stored, fields):
        if words["type"] == "struct":
            out += alignments(words["children"])
        elif words["type"] != "null":
            out.append(size_of(words)[1])
    return out


def empty(words: dict):
    """A value that can be written: None, or for a struct a list of such values."""
    words = stored(words)
    return [empty(child) for child in words["children"]] if words["type"] == "struct" else None


def dead(size: int) -> bytes:
    """A dead extent."""
    return u32(size | 1 << 31) + bytes(size - 4)


def page(
    fields: list[dict],
    rows: list[list],
    *,
    page_bytes: int = 4096,
    sequence: int = 0,
    large: bool = False,
    checksummed: bool = False,
    edition: int = 0,
    moved: list[int | bytes] | None = None,
) -> bytes:
    """A page. `moved` makes a moved one: the numbers of the rows in the order in which they lie,
    and between them dead extents.
    """
    extents = [bytes(Extent(fields, row).data) for row in rows]
    starts, behind = {}, b""
    for extent in range(len(rows)) if moved is None else moved:
        if isinstance(extent, int):
            starts[extent] = 64 + len(behind)
            extent = extents[extent]
        behind += extent
    objects_end = 64 + len(behind)
    slots = b"".join(u32(starts[i]) for i in reversed(range(len(rows))))
    behind += bytes(page_bytes - 64 - len(behind) - len(slots)) + slots

    def header(checksum: int) -> bytes:
        flags = u16(checksummed + 2 * large + 4 * (moved is not None))
        counts = u32(len(rows)) + u32(page_bytes) + u32(objects_end)
        start = b"DRYP" + u16(0) + flags + u64(sequence) + counts
        return start + u32(checksum) + u32(edition) + bytes(28)

    return header(crc32c(behind + header(0)) if checksummed else 0) + behind
