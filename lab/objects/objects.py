"""The objects of the study, their input files, and the checksum that all harnesses share.

`python -m lab.objects.objects FILE [N]` prints the checksum of the first N objects of an input.
README.md has the definitions.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

MASK = (1 << 64) - 1
FACTOR = 0x517CC1B727220A95

#: Names and types of the fields, in the order of the checksum.
PART = [
    ("partKey", "i32"),
    ("name", "str"),
    ("mfgr", "str"),
    ("brand", "str"),
    ("type", "str"),
    ("size", "i32"),
    ("container", "str"),
    ("retailPrice", "f64"),
    ("comment", "str"),
]
SUPPLIER = [
    ("supplierKey", "i32"),
    ("name", "str"),
    ("address", "str"),
    ("nationKey", "i32"),
    ("phone", "str"),
    ("acctbal", "f64"),
    ("comment", "str"),
]
LINE_ITEM = [
    ("orderKey", "i32"),
    ("lineNumber", "i32"),
    ("quantity", "f64"),
    ("extendedPrice", "f64"),
    ("discount", "f64"),
    ("tax", "f64"),
    ("returnFlag", "str"),
    ("lineStatus", "str"),
    ("shipDate", "i32"),
    ("commitDate", "i32"),
    ("receiptDate", "i32"),
    ("shipInstruct", "str"),
    ("shipMode", "str"),
    ("comment", "str"),
    ("supplier", SUPPLIER),
    ("part", PART),
]
ORDER = [
    ("orderKey", "i32"),
    ("custKey", "i32"),
    ("orderStatus", "str"),
    ("totalPrice", "f64"),
    ("orderDate", "i32"),
    ("orderPriority", "str"),
    ("clerk", "str"),
    ("shipPriority", "i32"),
    ("comment", "str"),
    ("lineItems", ("list", LINE_ITEM)),
]
CUSTOMER = [
    ("custKey", "i32"),
    ("name", "str"),
    ("address", "str"),
    ("nationKey", "i32"),
    ("phone", "str"),
    ("acctbal", "f64"),
    ("mktSegment", "str"),
    ("comment", "str"),
    ("orders", ("list", ORDER)),
]
VECTOR = [("entries", ("list", [("position", "i32"), ("value", "f64")]))]

#: The objects by the names that files and options use.
OBJECTS = {"part": PART, "lineitem": LINE_ITEM, "customer": CUSTOMER, "vector": VECTOR}

I32, U32, U64, F64 = (struct.Struct(code) for code in ("<i", "<I", "<Q", "<d"))


def add(h: int, v: int) -> int:
    """One step of the checksum."""
    return ((((h << 5) & MASK) | (h >> 59)) ^ (v & MASK)) * FACTOR & MASK


def add_bytes(h: int, data: bytes) -> int:
    h = add(h, len(data))
    for at in range(0, len(data), 8):
        h = add(h, int.from_bytes(data[at : at + 8], "little"))
    return h


def add_record(h: int, fields: list, data: bytes, at: int) -> tuple[int, int]:
    """The checksum behind the fields of a record, and where the record ends."""
    for _, kind in fields:
        if kind == "i32":
            h, at = add(h, I32.unpack_from(data, at)[0]), at + 4
        elif kind == "f64":
            h, at = add(h, U64.unpack_from(data, at)[0]), at + 8
        elif kind == "str":
            end = at + 4 + U32.unpack_from(data, at)[0]
            h, at = add_bytes(h, data[at + 4 : end]), end
        elif isinstance(kind, tuple):
            count, at = U32.unpack_from(data, at)[0], at + 4
            h = add(h, count)
            for _ in range(count):
                h, at = add_record(h, kind[1], data, at)
        else:
            h, at = add_record(h, kind, data, at)
    return h, at


def records(path: Path) -> Iterator[bytes]:
    """The records of an input file, without their lengths."""
    with path.open("rb") as file:
        for _ in range(U64.unpack(file.read(8))[0]):
            length = U32.unpack(file.read(4))[0]
            record = file.read(length)
            if len(record) != length:
                raise ValueError(f"{path} is cut off")
            yield record


def count(path: Path) -> int:
    """The number of objects of an input file."""
    with path.open("rb") as file:
        return U64.unpack(file.read(8))[0]


def checksum(path: Path, limit: int | None = None) -> int:
    """The checksum of the first objects of an input as a set."""
    fields = OBJECTS[object_of(path)]
    total = 0
    for number, record in enumerate(records(path)):
        if number == limit:
            break
        h, end = add_record(0, fields, record, 0)
        if end != len(record):
            raise ValueError(f"{path}: object {number} has {len(record)} bytes, expected {end}")
        total = (total + h) & MASK
    return total


def object_of(path: Path) -> str:
    """The object of an input, which its name tells: `sort-part.in` and `vector-1-0.in`, too."""
    words = path.stem.split("-")
    return words[1] if words[0] == "sort" else words[0]


if __name__ == "__main__":
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else None
    print(f"{checksum(Path(sys.argv[1]), limit):016x}")
