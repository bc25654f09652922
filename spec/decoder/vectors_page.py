"""Accepted pages, made from their rows (page.md)."""

from dataclasses import dataclass

from page_writer import page
from writer import field, nullable


@dataclass(frozen=True)
class Accepted:
    name: str
    about: str
    schema: list[dict]
    rows: list[list]  # in the form of vectors/README.md
    page: bytes
    sequence: int = 0
    edition: int = 0


def accept(name, about, fields, rows, **header) -> Accepted:
    sequence, edition = header.get("sequence", 0), header.get("edition", 0)
    return Accepted(name, about, fields, rows, page(fields, rows, **header), sequence, edition)


WORKED = [field("n", "int32"), nullable("s", "utf8")]
WORKED_ROWS = [[7, "ab"], [-1, None], [2, "no room inline"]]
ITEM = field("item", "struct", children=[field("part", "int32"), nullable("quantity", "int16")])
ORDER = field(
    "order",
    "struct",
    children=[nullable("date", "date32"), field("items", "list", children=[ITEM])],
)
CUSTOMER = [field("key", "int32"), field("name", "utf8"), field("orders", "list", children=[ORDER])]
CUSTOMER_ROWS = [[5, "Miller", [[100, [[1, 10], [2, None]]], [None, []]]]]
X = [field("x", "int32")]


def worked_example() -> Accepted:
    return accept("worked-example", "page.md section 7", WORKED, WORKED_ROWS, checksummed=True)


def nested_example() -> Accepted:
    return accept("nested-example", "page.md section 8", CUSTOMER, CUSTOMER_ROWS)


def accepted_pages() -> list[Accepted]:
    return [vector for group in (headers, types, bits, strings, nested) for vector in group()]


def headers():
    yield worked_example()
    yield nested_example()
    yield accept("header-sequence", "sequence above 32 bits", X, [[7]], sequence=1 << 40)
    yield accept("header-checksum", "checksum present", X, [[7]], sequence=3, checksummed=True)
    yield accept("header-16-kib", "a larger page", X, [[7], [8]], page_bytes=16 << 10)
    text = [field("s", "utf8")]
    yield accept(
        "header-large",
        "flag large; 5,000 bytes",
        text,
        [["x" * 5000]],
        page_bytes=8 << 10,
        large=True,
    )
    yield accept(
        "header-large-12-kib",
        "no power of two",
        text,
        [["x" * 9000]],
        page_bytes=12 << 10,
        large=True,
        checksummed=True,
    )
    yield accept(
        "header-large-not-needed", "whether the object needed it is not asked", X, [[7]], large=True
    )
    yield accept("objects-no-fields", "objects of no fields", [], [[], [], []])
    yield accept(
        "objects-full", "no byte between objects and slots", X, [[i] for i in range(201)] + [[0]]
    )
    yield accept(
        "objects-full-text",
        "the same, with a tail at the end",
        text,
        [["y" * (4096 - 64 - 8 - 16 - 4 - 4)]],
    )


def every(values: dict, first=()) -> tuple[list[dict], list[list]]:
    """Fields and rows, from the values of columns by type and parameters."""
    fields = [words for words, _ in values.values()]
    return fields, [
        list(row) for row in zip(*(column for _, column in values.values()), strict=True)
    ]


def types():
    exact = {}
    for size in (8, 16, 32, 64):
        least, most = -(1 << size - 1), (1 << size - 1) - 1
        words = [v if abs(v) <= 1 << 53 else str(v) for v in (least, most)]
        exact[f"i{size}"] = field(f"i{size}", f"int{size}"), words
        most = (1 << size) - 1
        exact[f"u{size}"] = (
            field(f"u{size}", f"uint{size}"),
            [0, most if most <= 1 << 53 else str(most)],
        )
    yield accept("types-integers", "least and greatest; 8, 4, 2 and 1 bytes mixed", *every(exact))
    yield accept(
        "types-floats",
        "negative zero, NaNs with payloads",
        [field("f16", "float16"), field("f64", "float64"), field("f32", "float32")],
        [["8000", "7ff4000000000001", "ffa00002"], ["7e01", "8000000000000000", "80000000"]],
    )
    decimals = [
        field(f"d{bits}", f"decimal{bits}", precision=9, scale=2) for bits in (32, 64, 128, 256)
    ]
    yield accept(
        "types-decimals",
        "16 and 32 bytes have alignment 8",
        decimals,
        [[-1, 5, -2, 3], [7, -8, str(10**30), str(-(10**60))]],
    )
    times = {
        "a": (field("a", "date32"), [-1, 19000]),
        "b": (field("b", "date64"), [86400000, -86400000]),
        "c": (field("c", "time32", unit="ms"), [0, 86399999]),
        "d": (field("d", "time64", unit="ns"), [1, 86399999999999]),
        "e": (field("e", "timestamp", unit="us", zone="UTC"), [0, -1]),
        "f": (field("f", "duration", unit="s"), [-5, 5]),
        "g": (field("g", "interval_months"), [-13, 13]),
        "h": (field("h", "interval_day_time"), [[-1, 2], [3, -4]]),
        "i": (field("i", "interval_month_day_nano"), [[1, -2, 3], [-1, 2, str(-(1 << 62))]]),
    }
    yield accept("types-times", "dates, times, intervals", *every(times))
    yield accept(
        "types-booleans",
        "one byte each",
        [field("a", "boolean"), nullable("b", "boolean")],
        [[True, False], [False, None]],
    )
    widths = [
        field("a", "fixed_binary", width=3),
        field("b", "int16"),
        nullable("c", "fixed_binary", width=16),
    ]
    yield accept(
        "types-fixed-binary",
        "alignment 1",
        widths,
        [["010203", 5, "ff" * 16], ["000000", -5, None]],
    )
    nulls = [nullable("n", "null"), field("x", "int8"), nullable("m", "null")]
    yield accept("types-null", "no bits and no bytes", nulls, [[None, 1, None], [None, 2, None]])
    words = nullable("d", "dictionary", index="int8", ordered=False, values={"type": "utf8"})
    yield accept(
        "types-dictionary",
        "the value itself",
        [words],
        [["low"], [None], ["a longer entry"], ["low"]],
    )
    mixed = [
        field("a", "int8"),
        field("b", "decimal128", precision=38, scale=0),
        field("c", "int16"),
        field("d", "int64"),
        field("e", "fixed_binary", width=5),
        field("f", "float32"),
        field("g", "boolean"),
        field("h", "utf8"),
    ]
    yield accept(
        "types-alignment",
        "b, d, h; f; c; a, e, g",
        mixed,
        [[1, 2, 3, 4, "0102030405", "3f800000", True, "h"]],
    )


def bits():
    for count in (8, 9, 33, 64, 65):
        fields = [nullable(f"c{i}", "int8") for i in range(count)]
        rows = [
            [i % 2 for i in range(count)],
            [None] * count,
            [None if i % 3 else i for i in range(count)],
        ]
        yield accept(f"bits-{count}", f"{count} nullable fields", fields, rows)
    deep = nullable(
        "inner",
        "struct",
        children=[
            nullable("x", "int16"),
            field("y", "utf8"),
            field("l", "list", children=[nullable("item", "int8")]),
        ],
    )
    fields = [
        nullable("s", "struct", children=[field("n", "int64"), deep, nullable("b", "boolean")]),
        nullable("z", "int8"),
    ]
    rows = [
        [[1, [2, "y", [3, None]], True], 4],
        [None, 5],
        [[6, None, None], None],
        [[7, [None, "a string of 21 bytes.", []], False], 8],
    ]
    yield accept("bits-structs", "structs in structs, inlined, missing at each level", fields, rows)
    yield accept(
        "bits-empty-struct",
        "a struct of no fields may be missing",
        [nullable("s", "struct", children=[])],
        [[[]], [None]],
    )


def strings():
    texts = ["", "a", "x" * 11, "x" * 12, "x" * 13, "Größe 📦", "語" * 4, "語" * 5, "aé" + "b" * 20]
    yield accept(
        "strings-lengths",
        "around 12 bytes, and not ASCII",
        [field("s", "utf8")],
        [[text] for text in texts],
    )
    yield accept(
        "strings-split-prefix",
        "the first four bytes end within a character",
        [field("s", "utf8")],
        [["abc語defghijkl"]],
    )
    yield accept(
        "strings-binary",
        "not UTF-8",
        [nullable("b", "binary")],
        [["ff" * n] for n in (0, 1, 12, 13, 40)] + [[None]],
    )
    fields = [field("a", "utf8"), field("n", "int64"), field("b", "binary"), nullable("c", "utf8")]
    rows = [
        ["first tail here", 1, "00" * 13, "third tail here"],
        ["short", 2, "ab" * 20, None],
        ["one more tail, first", 3, "", ""],
    ]
    yield accept("strings-tails", "several tails, at odd offsets", fields, rows)


def nested():
    def lists(name, about, item, rows, **parameters):
        return accept(
            f"lists-{name}",
            about,
            [field("l", "list", children=[item], **parameters)],
            [[row] for row in rows],
        )

    yield lists("numbers", "an array", field("item", "int32"), [[1, 2, 3], [], [4]])
    yield lists(
        "nullable",
        "a bitmap before the items",
        nullable("item", "int64"),
        [[1, None, 3], [None] * 8, list(range(65))],
    )
    yield lists(
        "booleans", "one byte each", nullable("item", "boolean"), [[True, None, False], [True]]
    )
    yield lists(
        "strings",
        "places first, then tails",
        nullable("item", "utf8"),
        [["short", None, "longer than twelve"], ["another long one", "and yet another"]],
    )
    yield lists(
        "fixed-binary",
        "a stride of 3",
        field("item", "fixed_binary", width=3),
        [["010203", "040506"], ["070809"]],
    )
    yield lists(
        "null",
        "items of no bytes, with an offset",
        nullable("item", "null"),
        [[None] * 3, [], [None]],
    )
    yield lists(
        "empty-structs",
        "the same; and with a bitmap",
        field("item", "struct", children=[]),
        [[[], []], []],
    )
    yield lists(
        "empty-structs-nullable",
        "a bitmap and nothing else",
        nullable("item", "struct", children=[]),
        [[[], None, []], []],
    )
    inner = nullable("inner", "list", children=[nullable("item", "int16")])
    yield lists("lists", "depth first", inner, [[[1, 2], None, [], [None, 4]], [[5]], []])
    yield lists(
        "strings-in-lists",
        "depth first, strings between lists",
        field("inner", "list", children=[field("item", "utf8")]),
        [[["a string of 20 bytes", "b"], [], ["another long string!"]]],
    )
    pair = nullable(
        "item",
        "struct",
        children=[
            nullable("s", "utf8"),
            field("b", "boolean"),
            nullable("l", "list", children=[field("item", "int8")]),
        ],
    )
    yield lists(
        "structs",
        "bits of the bitmap and bits of the record",
        pair,
        [[["thirteen long", True, [1, 2, 3]], None, [None, False, None]], [["s", True, []]]],
    )
    yield accept(
        "lists-missing",
        "missing, empty, and not",
        [nullable("l", "list", children=[field("item", "int8")])],
        [[None], [[]], [[1]]],
    )
    fields = [
        field("a", "list", children=[field("item", "int8")]),
        field("s", "utf8"),
        field("b", "list", children=[field("item", "int8")]),
    ]
    yield accept(
        "lists-alignment",
        "items at multiples of 8, strings anywhere",
        fields,
        [[[1, 2, 3], "a string of 20 bytes", [4]], [[], "short", [5]]],
    )
    three = nullable("f", "fixed_list", size=3, children=[nullable("item", "int16")])
    yield accept(
        "fixed-lists", "with a count as a list", [three], [[[1, None, 3]], [None], [[4, 5, 6]]]
    )
    none = nullable("f", "fixed_list", size=0, children=[field("item", "int16")])
    yield accept("fixed-lists-size-0", "empty or missing", [none], [[[]], [None]])
    inside = nullable(
        "s", "struct", children=[field("f", "fixed_list", size=2, children=[field("item", "int8")])]
    )
    yield accept(
        "fixed-lists-in-structs",
        "zeros where the struct is missing",
        [inside],
        [[[[1, 2]]], [None]],
    )
    keys = [field("keys", "utf8"), nullable("values", "int32")]
    yield accept(
        "maps",
        "lists of pairs",
        [nullable("m", "map", sorted=False, children=keys)],
        [[[["a", 1], ["a key of 15 byt", None]]], [None], [[]]],
    )
    entry = {"type": "list", "children": [nullable("item", "utf8")]}
    words = nullable("d", "dictionary", index="uint16", ordered=False, values=entry)
    yield accept(
        "dictionaries-of-lists",
        "values with tails",
        [words],
        [[["x", None]], [None], [["x", None]], [["a long string in it"]]],
    )
    item = {"type": "struct", "children": [nullable("x", "int8")]}
    words = nullable("item", "dictionary", index="int32", ordered=False, values=item)
    yield lists("dictionaries", "structs as entries", words, [[[1], None, [None]], [[1]]])
