"""Decoded columns, and the decoded size that chunk.md section 5 gives them."""

from dataclasses import dataclass
from dataclasses import field as with_default

import numpy as np

from header import check_count
from schema import Type


@dataclass
class Column:
    """n values of a type. The fields in use depend on the type:

    - boolean: values as bool[n];
    - fixed width: values as uint8[n, width];
    - utf8, binary: offsets as int64[n + 1], and data;
    - list, map: offsets and children;
    - fixed_list, struct: children;
    - dictionary: values (the indexes) and children (the entries).
    """

    type: Type
    n: int
    present: np.ndarray | None = None  # bool[n]; None: nothing is missing
    values: np.ndarray | None = None
    offsets: np.ndarray | None = None
    data: bytes = b""
    children: list["Column"] = with_default(default_factory=list)


def all_missing(type: Type, n: int) -> Column:
    return Column(type, n, present=np.broadcast_to(np.False_, n))


def fixed_part(type: Type, n: int) -> int:
    """chunk.md section 5: the size of n values without nulls, children and bytes of strings."""
    if type.name == "boolean":
        return bitmap_bytes(n)
    if type.width is not None:
        return n * type.width
    if type.name in ("utf8", "binary", "list", "map"):
        return (n + 1) * 4
    return n * type.index.width if type.name == "dictionary" else 0


def is_zero_sized(type: Type) -> bool:
    """chunk.md section 5: whether values of the type, and their children, take no bytes."""
    return (
        type.name == "null"
        or type.name == "struct"
        and not type.children
        or type.parameters.get("size") == 0
    )


def fixed_list_total(type: Type, n: int) -> int:
    total = n * type.parameters["size"]
    check_count(total, "values in fixed-size lists")
    return total


def spread(packed: Column, present: np.ndarray) -> Column:
    """Spreads packed values (nulls 02) over the places of present values."""
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


def slices(ends: np.ndarray, data: bytes) -> list[bytes]:
    return [data[start:end] for start, end in zip(ends[:-1], ends[1:])]


def number_view(values: np.ndarray, type: Type) -> np.ndarray:
    """uint8[n, width] as numbers of an integer type."""
    kind = "u" if type.name.startswith("uint") else "i"
    return np.ascontiguousarray(values).view(f"<{kind}{type.width}").reshape(len(values))


def bitmap_bytes(n: int) -> int:
    return -(-n // 8)
