"""Parses PostgreSQL's own text of a value into what the column must hold (spec/types.md section 3).

This is the oracle: it shares nothing with the product. Values have the form that :func:`values`
gives to an Arrow column: integers for dates and times, hexadecimal digits for floats (so that NaN
and -0 can be compared), Decimal, str, bytes, list, dict.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

TYPE_KEY = b"dray:postgresql:type"
# A value that Arrow's type can't hold.
NOT_FINITE = type("NotFinite", (), {"__repr__": lambda self: "not finite"})()
EXACT = Context(prec=400)


@dataclass(frozen=True)
class Shape:
    """How a type of PostgreSQL maps to Arrow."""

    name: str
    data_type: pa.DataType
    read: Callable[[str], Any]
    # Whether the field's metadata names the type.
    named: bool = False
    # The mapping with nonfinite=text, if it differs.
    as_text: Shape | None = None
    # Whether values are text as the type's output function writes them. Then types that contain it
    # are text as a whole, except for arrays of base types.
    written: bool = False
    base: bool = True

    def field(self, name: str, nullable: bool = True) -> pa.Field:
        return pa.field(
            name, self.data_type, nullable, {TYPE_KEY: self.name.encode()} if self.named else None
        )

    def texts(self) -> Shape:
        return self.as_text or self


def written(name: str, base: bool = True) -> Shape:
    return Shape(name, pa.string(), str, named=True, written=True, base=base)


def plain(
    name: str, data_type: pa.DataType, read: Callable[[str], Any], named: bool = False
) -> Shape:
    return Shape(name, data_type, read, named)


def finite(name: str, data_type: pa.DataType, read: Callable[[str], Any]) -> Shape:
    """A type of PostgreSQL with values that Arrow can't hold."""
    return Shape(name, data_type, read, as_text=written(name))


def _or_null(shape: Shape, text: str | None) -> Any:
    return None if text is None else shape.read(text)


def list_of(item: Shape, delimiter: str = ",", name: str = "") -> Shape:
    """An array. It is named after its items, except for arrays of domains."""
    name = name or f"{item.name}[]"
    if item.written and not item.base:
        return written(name, base=False)

    def read(text: str) -> list[Any]:
        return [_or_null(item, part) for part in split_array(text, delimiter)]

    shape = Shape(
        name,
        pa.list_(item.field("item")),
        read,
        named=item.written,
        written=item.written,
        base=False,
    )
    return replace(shape, as_text=list_of(item.as_text, delimiter, name)) if item.as_text else shape


def composite(name: str, **attributes: Shape) -> Shape:
    if any(shape.written for shape in attributes.values()):
        return written(name, base=False)

    def read(text: str) -> dict[str, Any]:
        parts = split_composite(text)
        assert len(parts) == len(attributes), text
        return {key: _or_null(shape, part) for (key, shape), part in zip(attributes.items(), parts)}

    shape = Shape(
        name, pa.struct([of.field(key) for key, of in attributes.items()]), read, base=False
    )
    if any(of.as_text for of in attributes.values()):
        shape = replace(
            shape, as_text=composite(name, **{key: of.texts() for key, of in attributes.items()})
        )
    return shape


def range_of(name: str, bound: Shape) -> Shape:
    if bound.written:
        return written(name, base=False)

    def read(text: str) -> dict[str, Any]:
        if text == "empty":
            flags = {"lower_inclusive": False, "upper_inclusive": False, "empty": True}
            return {"lower": None, "upper": None} | flags
        lower, upper = split_quoted(text[1:-1])
        return {
            "lower": _or_null(bound, lower),
            "upper": _or_null(bound, upper),
            "lower_inclusive": text[0] == "[",
            "upper_inclusive": text[-1] == "]",
            "empty": False,
        }

    flags = [
        pa.field(flag, pa.bool_(), False)
        for flag in ("lower_inclusive", "upper_inclusive", "empty")
    ]
    data_type = pa.struct([bound.field("lower"), bound.field("upper"), *flags])
    shape = Shape(name, data_type, read, named=True, base=False)
    return replace(shape, as_text=range_of(name, bound.as_text)) if bound.as_text else shape


def multirange_of(name: str, bound: Shape) -> Shape:
    inner = range_of("", bound)
    if inner.written:
        return written(name, base=False)

    def read(text: str) -> list[Any]:
        # A quoted bound may contain a bracket.
        found = re.findall(r'[\[(](?:"(?:[^"\\]|""|\\.)*"|[^"\])])*[\])]', text[1:-1])
        return [inner.read(part) for part in found]

    shape = Shape(
        name, pa.list_(pa.field("item", inner.data_type, False)), read, named=True, base=False
    )
    return replace(shape, as_text=multirange_of(name, bound.as_text)) if bound.as_text else shape


# How values are quoted within others: sections 8.15.6, 8.16.6 and 8.17.5 of PostgreSQL's manual.


def split_array(text: str, delimiter: str = ",") -> list[str | None]:
    if text.startswith("["):
        text = text.split("=", 1)[1]
    assert text[0] == "{" and text[-1] == "}" and text[1] != "{", text
    body = text[1:-1]
    if not body:
        return []
    token = re.compile(rf'"((?:[^"\\]|\\.)*)"|((?:[^"{re.escape(delimiter)}\\]|\\.)+)', re.DOTALL)
    parts: list[str | None] = []
    at = 0
    while True:
        found = token.match(body, at)
        assert found, body[at : at + 50]
        if found[1] is None:
            parts.append(None if found[2] == "NULL" else found[2])
        else:
            parts.append(re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL))
        at = found.end()
        if at == len(body):
            return parts
        assert body[at] == delimiter, body[at:]
        at += 1


def split_composite(text: str) -> list[str | None]:
    assert text[0] == "(" and text[-1] == ")", text
    return split_quoted(text[1:-1])


def split_quoted(body: str) -> list[str | None]:
    """Split text at commas. An empty part is NULL; within quotes, quotes and backslashes are
    doubled.
    """
    parts: list[str | None] = []
    at = 0
    while True:
        found = re.compile(r'"((?:[^"\\]|""|\\.)*)"|([^",]*)', re.DOTALL).match(body, at)
        assert found
        if found[1] is None:
            parts.append(found[2] or None)
        else:
            parts.append(
                re.sub(r'""|\\(.)', lambda pair: pair[1] or '"', found[1], flags=re.DOTALL)
            )
        at = found.end()
        if at == len(body):
            return parts
        assert body[at] == ",", body[at:]
        at += 1


# Parsers of scalars.


def read_boolean(text: str) -> bool:
    return {"t": True, "f": False}[text]


def read_float64(text: str) -> str:
    return float(text).hex()


def read_float32(text: str) -> str:
    # The nearest float32: the text has just enough digits to identify it.
    try:
        return float(struct.unpack("f", struct.pack("f", float(text)))[0]).hex()
    except OverflowError:
        raise AssertionError(text) from None


def read_decimal(precision: int, scale: int) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = Decimal(text)
        if not value.is_finite():
            return NOT_FINITE
        scaled = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
        assert scaled == value and len(scaled.as_tuple().digits) <= precision
        return scaled

    return read


def read_bytes(text: str) -> bytes:
    assert text.startswith("\\x")
    return bytes.fromhex(text[2:])


def days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; year 0 is 1 BC."""
    years = year - (month < 3)
    since_march = (month + 9) % 12
    leaps = years // 4 - years // 100 + years // 400
    return years * 365 + leaps + (153 * since_march + 2) // 5 + day - 1 - 719_468


def read_date(text: str) -> Any:
    if "infinity" in text:
        return NOT_FINITE
    date, _, era = text.partition(" ")
    year, month, day = map(int, date.split("-"))
    return days(1 - year if era == "BC" else year, month, day)


def read_time_of_day(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    seconds, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(
        fraction.ljust(6, "0")
    )


def read_time(text: str) -> Any:
    return NOT_FINITE if text == "24:00:00" else read_time_of_day(text)


def read_timestamp(text: str) -> Any:
    """Text with ``+00`` at its end if the type has a zone, since the session's zone is UTC."""
    if "infinity" in text:
        return NOT_FINITE
    found = re.fullmatch(r"(\d+-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?( BC)?", text)
    assert found, text
    microseconds = read_date(found[1] + (found[3] or "")) * 86_400_000_000 + read_time_of_day(
        found[2]
    )
    return microseconds if microseconds < 2**63 else NOT_FINITE


def read_interval(text: str) -> Any:
    """Months, days and nanoseconds of ``IntervalStyle`` postgres: ``-1 years -2 mons +3 days
    -04:05:06.789``.
    """
    if "infinity" in text:
        return NOT_FINITE
    found = re.fullmatch(
        r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? "
        r"?)?(?:([+-]?)(\d+:\d\d:\d\d(?:\.\d+)?))?",
        text,
    )
    assert found, text
    years, months, day_count = (int(part or 0) for part in found.groups()[:3])
    microseconds = read_time_of_day(found[5] or "0:0:0") * (-1 if found[4] == "-" else 1)
    nanoseconds = microseconds * 1000
    return (
        (years * 12 + months, day_count, nanoseconds)
        if -(2**63) <= nanoseconds < 2**63
        else NOT_FINITE
    )


def read_hstore(text: str) -> list[tuple[str, str | None]]:
    quoted = r'"((?:[^"\\]|\\.)*)"'
    unescaped = lambda part: re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)  # noqa: E731
    pairs = re.findall(rf"{quoted}=>(?:{quoted}|(NULL))", text, flags=re.DOTALL)
    return [(unescaped(key), None if null else unescaped(value)) for key, value, null in pairs]


def read_uuid(text: str) -> bytes:
    return bytes.fromhex(text.replace("-", ""))


BOOLEAN = plain("boolean", pa.bool_(), read_boolean)
SMALLINT = plain("smallint", pa.int16(), int)
INTEGER = plain("integer", pa.int32(), int)
BIGINT = plain("bigint", pa.int64(), int)
REAL = plain("real", pa.float32(), read_float32)
DOUBLE = plain("double precision", pa.float64(), read_float64)
# PostgreSQL's digits are compared as text.
NUMERIC = plain("numeric", pa.string(), str, named=True)
TEXT = plain("text", pa.string(), str)
VARCHAR = plain("character varying", pa.string(), str)
CHARACTER = plain("character", pa.string(), str)
NAME = plain("name", pa.string(), str)
REFCURSOR = plain("refcursor", pa.string(), str)
CITEXT = plain("citext", pa.string(), str)
XML = plain("xml", pa.string(), str, named=True)
CHAR = plain('"char"', pa.string(), str, named=True)
JSON = plain("json", pa.json_(), str)
JSONB = plain("jsonb", pa.json_(), str)
BYTEA = plain("bytea", pa.binary(), read_bytes)
DATE = finite("date", pa.date32(), read_date)
TIME = finite("time without time zone", pa.time64("us"), read_time)
TIMESTAMP = finite("timestamp without time zone", pa.timestamp("us"), read_timestamp)
TIMESTAMPTZ = finite("timestamp with time zone", pa.timestamp("us", "UTC"), read_timestamp)
INTERVAL = finite("interval", pa.month_day_nano_interval(), read_interval)
TIMETZ = plain("time with time zone", pa.string(), str, named=True)
UUID = plain("uuid", pa.uuid(), read_uuid)
BIT = plain("bit", pa.string(), str, named=True)
VARBIT = plain("bit varying", pa.string(), str, named=True)
OID = plain("oid", pa.uint32(), int, named=True)
XID = plain("xid", pa.uint32(), int, named=True)
CID = plain("cid", pa.uint32(), int, named=True)
XID8 = plain("xid8", pa.uint64(), int, named=True)
HSTORE = plain("public.hstore", pa.map_(pa.string(), pa.string()), read_hstore, named=True)
INT2VECTOR = plain(
    "int2vector",
    pa.list_(SMALLINT.field("item")),
    lambda text: [int(part) for part in text.split()],
)
OIDVECTOR = plain(
    "oidvector", pa.list_(OID.field("item")), lambda text: [int(part) for part in text.split()]
)


def numeric(precision: int, scale: int = 0) -> Shape:
    digits = precision - scale if scale < 0 else max(precision, scale)
    if digits > 76:
        return replace(NUMERIC, as_text=written("numeric"))
    data_type = pa.decimal128 if digits <= 38 else pa.decimal256
    return finite("numeric", data_type(digits, max(scale, 0)), read_decimal(digits, max(scale, 0)))


def enum(name: str) -> Shape:
    return Shape(name, pa.string(), str, named=True, base=False)


def money(scale: int) -> Shape:
    """The value of a cast to numeric, because money's own text depends on the locale."""
    return plain("money", pa.decimal128(19, scale), read_decimal(19, scale), named=True)


# Values of Arrow columns.


def values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column, in a form that is not limited to the range of Python's own types."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values(chunk)]
    data_type = column.type
    if isinstance(data_type, pa.BaseExtensionType):
        return values(column.storage)
    found: list[Any]
    if pa.types.is_date32(data_type):
        found = column.view(pa.int32()).to_pylist()
    elif pa.types.is_timestamp(data_type) or pa.types.is_time64(data_type):
        found = column.view(pa.int64()).to_pylist()
    elif pa.types.is_floating(data_type):
        found = [None if value is None else value.hex() for value in column.to_pylist()]
    elif pa.types.is_interval(data_type):
        found = [None if value is None else tuple(value) for value in column.to_pylist()]
    elif pa.types.is_map(data_type):
        pairs = list(zip(values(column.keys), values(column.items)))
        found = _parts(column, pairs)
    elif pa.types.is_list(data_type):
        found = _parts(column, values(column.values))
    elif pa.types.is_struct(data_type):
        names = [field.name for field in data_type]
        children = [values(column.field(i)) for i in range(len(names))]
        found = [dict(zip(names, row)) for row in zip(*children)]
        found = [
            value if valid else None for value, valid in zip(found, column.is_valid().to_pylist())
        ]
    else:
        found = column.to_pylist()
    return found


def _parts(column: pa.Array, flat: list[Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    return [flat[a:b] if ok else None for a, b, ok in zip(offsets, offsets[1:], valid)]


def without_infinities(value: Any) -> Any:
    """The value with nonfinite=null."""
    if value is NOT_FINITE:
        return None
    if isinstance(value, dict):
        return {key: without_infinities(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_infinities(part) for part in value]
    return value


def has_infinity(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is NOT_FINITE or any(has_infinity(part) for part in parts)
