"""Lists, maps, structs and dictionaries: accepted chunks."""

from vectors_accept import NONE, Accepted, accept
from writer import *  # the vocabulary of this page


def accepted_nested() -> list[Accepted]:
    return list(nested())


def nested():
    def of(type, name="item", nullable=False, **parameters):
        return field(name, type, nullable=nullable, **parameters)

    ints = [field("l", "list", children=[of("int32")])]
    rows = [[1, 2], [], [3]]
    child = [NONE, plain(numbers("i", 1, 2, 3))]
    held = 16 + 12
    yield accept(
        "list-offsets",
        "offsets",
        ints,
        [rows],
        [NONE, list_offsets(0, 2, 2, 3), child],
        decoded=held,
    )
    yield accept(
        "list-lengths-plain",
        "plain lengths",
        ints,
        [rows],
        [NONE, list_lengths(plain(numbers("I", 2, 0, 1))), child],
        decoded=held,
    )
    yield accept(
        "list-lengths-frame",
        "lengths in a frame",
        ints,
        [rows],
        [NONE, list_lengths(frame(2, u32(0), [2, 0, 1])), child],
        decoded=held,
    )
    yield accept(
        "list-lengths-constant",
        "constant lengths",
        ints,
        [[[1], [2], [3]]],
        [NONE, list_lengths(constant(u32(1))), child],
        decoded=held,
    )
    yield accept(
        "list-empty-children",
        "no values within, so the child has nulls 00",
        [field("l", "list", children=[of("utf8", nullable=True)])],
        [[[], []]],
        [NONE, list_offsets(0, 0, 0), NONE, strings()],
        decoded=12 + 4,
    )
    maybe = [nullable("l", "list", children=[of("int32", nullable=True)])]
    yield accept(
        "list-missing",
        "missing lists and missing values",
        maybe,
        [[[1, None], None, [3]]],
        [dense("101"), list_offsets(0, 2, 2, 3), packed("101"), plain(numbers("i", 1, 3))],
        decoded=1 + 16 + 1 + 12,
    )
    yield accept(
        "list-all-missing",
        "its child counts as 0 values",
        [nullable("l", "list", children=[of("utf8")])],
        [[None] * 3],
        [ALL_MISSING],
        decoded=1 + 16 + 4,
    )
    yield accept(
        "list-of-null",
        "a list of nothing but missing values",
        [field("l", "list", children=[of("null", nullable=True)])],
        [[[None, None], []]],
        [NONE, list_offsets(0, 2, 2), ALL_MISSING],
        decoded=12,
    )
    entries = [of("utf8", "key"), of("int8", "value", nullable=True)]
    yield accept(
        "map",
        "an empty one, one with a missing value",
        [field("m", "map", sorted=False, children=entries)],
        [[[["a", 1], ["b", None]], []]],
        [NONE, list_offsets(0, 2, 2), NONE, strings(b"a", b"b"), dense("10"), plain(b"\1\0")],
        decoded=12 + (12 + 2) + (1 + 2),
    )
    yield accept(
        "map-sorted-missing",
        "sorted keys, lengths, a missing map",
        [nullable("m", "map", sorted=True, children=entries)],
        [[None, [["a", 1]]]],
        [
            dense("01"),
            list_lengths(plain(numbers("I", 0, 1))),
            NONE,
            strings(b"a"),
            NONE,
            plain(b"\1"),
        ],
        decoded=1 + 12 + (8 + 1) + 1,
    )
    yield accept(
        "map-all-missing",
        "both children count as 0 values",
        [nullable("m", "map", sorted=True, children=entries)],
        [[None]],
        [ALL_MISSING],
        decoded=1 + 8 + 4,
    )
    pairs = [field("p", "fixed_list", size=2, children=[of("int16", nullable=True)])]
    yield accept(
        "fixed-list",
        "pairs, one value missing",
        pairs,
        [[[1, 2], [None, 4]]],
        [NONE, dense("1101"), plain(numbers("h", 1, 2, 0, 4))],
        decoded=1 + 8,
    )
    maybe = [nullable("p", "fixed_list", size=2, children=[of("int16")])]
    yield accept(
        "fixed-list-missing",
        "a missing one holds zero values",
        maybe,
        [[[1, 2], None]],
        [dense("10"), NONE, plain(numbers("h", 1, 2, 0, 0))],
        decoded=1 + 8,
    )
    yield accept(
        "fixed-list-all-missing",
        "the child counts n × k values",
        maybe,
        [[None, None]],
        [ALL_MISSING],
        decoded=1 + 8,
    )
    yield accept(
        "fixed-list-size-0",
        "lists of size 0",
        [field("p", "fixed_list", size=0, children=[of("int16")])],
        [[[], []]],
        [NONE, NONE, plain(b"")],
        decoded=0,
    )
    pair = [of("int8", "a"), of("utf8", "b", nullable=True)]
    yield accept(
        "struct",
        "two fields",
        [field("s", "struct", children=pair)],
        [[[1, "x"], [2, None]]],
        [NONE, NONE, plain(b"\1\2"), packed("10"), strings(b"x")],
        decoded=2 + 1 + 12 + 1,
    )
    yield accept(
        "struct-missing",
        "a missing one; its field that is not nullable is zero",
        [nullable("s", "struct", children=pair)],
        [[None, [2, "x"]]],
        [dense("01"), NONE, plain(b"\0\2"), NONE, strings(b"", b"x")],
        decoded=1 + 2 + 13,
    )
    yield accept(
        "struct-all-missing",
        "its children count n zero values",
        [nullable("s", "struct", children=pair)],
        [[None, None]],
        [ALL_MISSING],
        decoded=1 + 2 + 12,
    )
    hollow = [
        nullable(
            "s",
            "struct",
            children=[
                of("null", "a"),
                of("dictionary", "b", index="int16", ordered=False, values={"type": "utf8"}),
            ],
        )
    ]
    yield accept(
        "struct-all-missing-null-dictionary",
        "children without values of their own",
        hollow,
        [[None, None]],
        [ALL_MISSING],
        decoded=1 + 4 + 4,
    )
    yield accept(
        "struct-empty",
        "no fields, and one missing",
        [nullable("s", "struct", children=[])],
        [[[], None, []]],
        [dense("101")],
        decoded=1,
    )
    colours = strings(b"red", b"blue")
    for index, format in (
        ("int8", "b"),
        ("int16", "h"),
        ("int32", "i"),
        ("int64", "q"),
        ("uint8", "B"),
        ("uint16", "H"),
        ("uint32", "I"),
        ("uint64", "Q"),
    ):
        words = [field("d", "dictionary", index=index, ordered=False, values={"type": "utf8"})]
        yield accept(
            f"dictionary-{index}",
            f"indexes of {index}",
            words,
            [["blue", "red", "blue"]],
            [NONE, dictionary_type(2, [NONE, colours], plain(numbers(format, 1, 0, 1)))],
            decoded=(12 + 7) + 3 * struct.calcsize(format),
        )
    maybe = [nullable("d", "dictionary", index="int8", ordered=True, values={"type": "utf8"})]
    yield accept(
        "dictionary-missing",
        "any index under a missing value, ordered",
        maybe,
        [["blue", None, "red"]],
        [dense("101"), dictionary_type(2, [NONE, colours], plain(b"\1\x7f\0"))],
        decoded=1 + (12 + 7) + 3,
    )
    yield accept(
        "dictionary-missing-entry",
        "an entry is missing; indexes in a frame",
        [field("d", "dictionary", index="uint8", ordered=False, values={"type": "int32"})],
        [[5, None]],
        [
            NONE,
            dictionary_type(2, [dense("10"), plain(numbers("i", 5, 0))], frame(1, b"\0", [0, 1])),
        ],
        decoded=(1 + 8) + 2,
    )
    yield accept(
        "dictionary-no-entries",
        "no entries where every value is missing",
        maybe,
        [[None, None]],
        [dense("00"), dictionary_type(0, [NONE, strings()], constant(b"\0"))],
        decoded=1 + 4 + 2,
    )
    yield accept(
        "dictionary-all-missing",
        "the entries count as 0 values",
        maybe,
        [[None, None]],
        [ALL_MISSING],
        decoded=1 + 2 + 4,
    )
    lists = {"type": "list", "children": [of("int8")]}
    yield accept(
        "dictionary-of-lists",
        "entries are lists",
        [field("d", "dictionary", index="uint8", ordered=False, values=lists)],
        [[[2, 3], [], [2, 3]]],
        [
            NONE,
            dictionary_type(
                2, [NONE, list_offsets(0, 0, 2), NONE, plain(b"\2\3")], plain(b"\1\0\1")
            ),
        ],
        decoded=(12 + 2) + 3,
    )
    inner = of(
        "struct",
        "item",
        nullable=True,
        children=[
            of(
                "map",
                "m",
                sorted=False,
                children=[
                    of("int8", "key"),
                    of("fixed_list", "value", size=2, children=[of("boolean")]),
                ],
            )
        ],
    )
    yield accept(
        "nested-all-kinds",
        "a list of structs of maps to fixed-size lists",
        [field("l", "list", children=[inner])],
        [[[[[[1, [True, False]], [2, [False, True]]]]], [None]]],
        [
            NONE,
            list_offsets(0, 1, 2),
            dense("10"),
            NONE,
            list_offsets(0, 2, 2),
            NONE,
            plain(b"\1\2"),
            NONE,
            NONE,
            booleans("1001"),
        ],
        decoded=12 + 1 + 12 + 2 + 1,
    )
    deepest, value = of("int8"), 7
    for _ in range(31):
        deepest, value = of("list", children=[deepest]), [value]
    yield accept(
        "nested-32-levels",
        "31 lists around a number",
        [deepest],
        [[value]],
        [[[NONE, list_lengths(constant(u32(1)))] for _ in range(31)], NONE, plain(b"\7")],
        decoded=31 * 8 + 1,
    )
