"""Converts decoded columns to the plain values of the vectors' JSON (vectors/README.md)."""

import numpy as np

from columns import Column


def column_values(column: Column) -> list:
    values = _present_or_not(column)
    if column.present is None:
        return values
    return [value if there else None for value, there in zip(values, column.present)]


def integer(value: int) -> int | str:
    """A number if every JSON reader preserves it exactly, otherwise a decimal string."""
    value = int(value)
    return value if abs(value) <= 1 << 53 else str(value)


def _present_or_not(column: Column) -> list:
    name = column.type.name
    if name == "null":
        return [None] * column.n
    if name == "boolean":
        return column.values.tolist()
    if name == "dictionary":
        entries = column_values(column.children[0])
        return [
            entries[index] if 0 <= index < len(entries) else None
            for index in column.values.tolist()
        ]
    if name in ("utf8", "binary"):
        parts = [column.data[start:end] for start, end in _ranges(column.offsets)]
        return [part.decode("utf-8") if name == "utf8" else part.hex() for part in parts]
    if name in ("list", "map", "fixed_list", "struct"):
        children = [column_values(child) for child in column.children]
        if name == "struct":
            return [[child[i] for child in children] for i in range(column.n)]
        items = children[0] if name != "map" else [list(pair) for pair in zip(*children)]
        if name == "fixed_list":
            size = column.type.parameters["size"]
            return [items[i * size : (i + 1) * size] for i in range(column.n)]
        return [items[start:end] for start, end in _ranges(column.offsets)]
    return [fixed_value(name, bytes(value)) for value in column.values]


def _ranges(offsets: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(offsets[:-1].tolist(), offsets[1:].tolist()))


def fixed_value(name: str, value: bytes):
    if name == "fixed_binary":
        return value.hex()
    if name.startswith("float"):
        return value[::-1].hex()
    if name == "interval_day_time":
        return [_signed(value[:4]), _signed(value[4:])]
    if name == "interval_month_day_nano":
        return [_signed(value[:4]), _signed(value[4:8]), integer(_signed(value[8:]))]
    return integer(int.from_bytes(value, "little", signed=not name.startswith("uint")))


def _signed(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)
