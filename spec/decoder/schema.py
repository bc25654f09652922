"""Decodes schemas to fields (types.md), and converts fields to the words of the vectors' JSON."""

from dataclasses import dataclass, field

from cursor import Cursor, Refused

SCHEMA_BYTES_MAX = 16 << 20
FIELDS_MAX = 1 << 16
METADATA_PAIRS_MAX = 1 << 18
LEVELS_MAX = 32

UNITS = ("s", "ms", "us", "ns")

# types.md section 2: id -> name and width, for the types without parameters.
PLAIN_TYPES = {
    0: ("null", None),
    1: ("boolean", None),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("uint8", 1),
    7: ("uint16", 2),
    8: ("uint32", 4),
    9: ("uint64", 8),
    10: ("float16", 2),
    11: ("float32", 4),
    12: ("float64", 8),
    17: ("date32", 4),
    18: ("date64", 8),
    23: ("interval_months", 4),
    24: ("interval_day_time", 8),
    25: ("interval_month_day_nano", 16),
    26: ("utf8", None),
    27: ("binary", None),
}
DECIMALS = {
    13: ("decimal32", 4, 9),
    14: ("decimal64", 8, 18),
    15: ("decimal128", 16, 38),
    16: ("decimal256", 32, 76),
}
# id -> name, width, allowed units.
TIMES = {
    19: ("time32", 4, (0, 1)),
    20: ("time64", 8, (2, 3)),
    21: ("timestamp", 8, (0, 1, 2, 3)),
    22: ("duration", 8, (0, 1, 2, 3)),
}
INDEX_IDS = range(2, 10)


@dataclass(frozen=True)
class Type:
    """A type. `width`, in bytes, is set only for types of fixed width."""

    name: str
    width: int | None = None
    parameters: dict = field(default_factory=dict)
    # The fields of list, fixed_list, struct and map (key, value); the values of dictionary.
    children: tuple["Field", ...] = ()
    index: "Type | None" = None  # of dictionary


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    nullable: bool
    metadata: tuple[tuple[str, str], ...] = ()


def decode_schema(data: bytes) -> list[Field]:
    """The fields of a schema (types.md section 1). Every refusal is named `schema`."""
    if len(data) > SCHEMA_BYTES_MAX:
        raise Refused("schema", f"{len(data)} bytes, at most {SCHEMA_BYTES_MAX}")
    reader = _SchemaReader(data)
    fields = reader.fields(level=1)
    if reader.cursor.left():
        raise Refused("schema", f"{reader.cursor.left()} bytes after the last field")
    return fields


class _SchemaReader:
    def __init__(self, data: bytes):
        self.cursor = Cursor(data, short="schema")
        self.fields_left = FIELDS_MAX
        self.pairs_left = METADATA_PAIRS_MAX

    def fields(self, level: int) -> list[Field]:
        count = self.cursor.u32("number of fields")
        return [self.field(level) for _ in range(count)]  # a count too high runs out of bytes

    def field(self, level: int) -> Field:
        if self.fields_left == 0:
            raise Refused("schema", f"more than {FIELDS_MAX} fields")
        self.fields_left -= 1
        name = self.c_string("name")
        flags = self.cursor.u8("flags")
        if flags > 1:
            raise Refused("schema", f"flags {flags:#04x} of field {name!r}")
        type = self.type(level)
        pairs = self.cursor.u16("pairs of metadata")
        if pairs > self.pairs_left:
            raise Refused("schema", f"more than {METADATA_PAIRS_MAX} pairs of metadata")
        self.pairs_left -= pairs
        metadata = tuple(
            (self.cursor.string("key"), self.cursor.string("value")) for _ in range(pairs)
        )
        return Field(name, type, flags == 1, metadata)

    def type(self, level: int) -> Type:
        if level > LEVELS_MAX:
            raise Refused("schema", f"more than {LEVELS_MAX} levels")
        id = self.cursor.u8("type")
        if id in PLAIN_TYPES:
            return Type(*PLAIN_TYPES[id])
        if id in DECIMALS:
            name, width, precision_max = DECIMALS[id]
            precision = self.within("precision", self.cursor.u8("precision"), 1, precision_max)
            return Type(name, width, {"precision": precision, "scale": self.cursor.i8("scale")})
        if id in TIMES:
            name, width, units = TIMES[id]
            parameters = {
                "unit": UNITS[self.within("unit", self.cursor.u8("unit"), units[0], units[-1])]
            }
            if name == "timestamp":
                parameters["zone"] = self.c_string("zone")
            return Type(name, width, parameters)
        if id == 28:
            width = self.within("width", self.cursor.u32("width"), 1, 1 << 24)
            return Type("fixed_binary", width, {"width": width})
        if id == 29:
            return Type("list", children=(self.field(level + 1),))
        if id == 30:
            size = self.within("size", self.cursor.u32("size"), 0, (1 << 31) - 1)
            return Type("fixed_list", parameters={"size": size}, children=(self.field(level + 1),))
        if id == 31:
            return Type("struct", children=tuple(self.fields(level + 1)))
        if id == 32:
            ordered = self.within("sorted", self.cursor.u8("sorted"), 0, 1)
            key, value = self.field(level + 1), self.field(level + 1)
            if key.nullable:
                raise Refused("schema", "a map's key is nullable")
            return Type("map", parameters={"sorted": ordered == 1}, children=(key, value))
        if id == 33:
            index_id = self.within("index", self.cursor.u8("index"), INDEX_IDS[0], INDEX_IDS[-1])
            ordered = self.within("ordered", self.cursor.u8("ordered"), 0, 1)
            values = self.type(level + 1)
            if values.name == "dictionary":
                raise Refused("schema", "a dictionary of dictionaries")
            # Entries of a dictionary are not a field, but may be missing: chunk.md section 3.
            child = Field("", values, nullable=True)
            return Type(
                "dictionary",
                None,
                {"ordered": ordered == 1},
                (child,),
                Type(*PLAIN_TYPES[index_id]),
            )
        raise Refused("schema", f"type {id} is unknown")

    def c_string(self, what: str) -> str:
        if "\0" in (text := self.cursor.string(what)):
            raise Refused("schema", f"a byte 0 in the {what} {text!r}")
        return text

    def within(self, what: str, value: int, least: int, most: int) -> int:
        if not least <= value <= most:
            raise Refused("schema", f"{what} {value}, expected {least} to {most}")
        return value


def field_words(field: Field) -> dict:
    """A field in the form that vectors/README.md defines for JSON."""
    words = {"name": field.name} | type_words(field.type) | {"nullable": field.nullable}
    if field.metadata:
        words["metadata"] = [list(pair) for pair in field.metadata]
    return words


def type_words(type: Type) -> dict:
    words = {"type": type.name} | type.parameters
    if type.name == "dictionary":
        return words | {"index": type.index.name, "values": type_words(type.children[0].type)}
    if type.name == "struct" or type.children:
        words["children"] = [field_words(child) for child in type.children]
    return words
