"""Accepted and refused page files (page-file.md)."""

from dataclasses import dataclass, field

from page_file_writer import UNIT, key_index, key_paths, page_file
from page_writer import page
from vectors_page import CUSTOMER, CUSTOMER_ROWS, WORKED, WORKED_ROWS, X
from writer import field as f
from writer import nullable, schema, u16, u32, u64


@dataclass(frozen=True)
class Accepted:
    name: str
    about: str
    schema: list[dict]
    pages: list[list[list]]  # the rows of each page, in the form of vectors/README.md
    key: list[list[str]] = field(default_factory=list)
    changed: dict = field(default_factory=dict)

    def data(self) -> bytes:
        return page_file(self.schema, self.pages, self.key, **self.changed)

    def members(self) -> dict:
        rows = [row for page_rows in self.pages for row in page_rows]
        index = [[f"{hash:016x}", n] for hash, n in key_index(self.schema, rows, self.key)]
        return {
            "about": self.about,
            "schema": self.schema,
            "pages": self.pages,
            "key": self.key,
            "index": index,
        }


INNER = f(
    "inner",
    "struct",
    children=[nullable("b", "boolean"), f("bin", "binary"), f("w", "fixed_binary", width=3)],
)
NAME = f("name", "dictionary", index="int8", ordered=False, values={"type": "utf8"})
KEYS = [
    NAME | {"nullable": True},
    INNER | {"nullable": True},
    f("d", "decimal128", precision=5, scale=2),
]
KEY_ROWS = [
    ["a", [True, "00ff", "010203"], 7],
    ["a", [True, "00ff", "010203"], -7],
    [None, [False, "", "000000"], 0],
    ["a name that is longer", None, 7],
    ["a", [None, "00ff", "010203"], 7],
    ["a", [True, "00ff", "010203"], 7],
]


def worked_file() -> Accepted:
    return Accepted("file-worked", "page-file.md section 8", WORKED, [WORKED_ROWS], [["n"]])


def accepted_files() -> list[Accepted]:
    text, large = [f("s", "utf8")], [["x" * 5000], ["y"]]
    large_pages = [
        page(text, large[:1], page_bytes=2 * UNIT, large=True, checksummed=True),
        page(text, large[1:], page_bytes=UNIT, sequence=1, checksummed=True),
    ]
    small = [page(X, [[7]], page_bytes=UNIT, large=True, checksummed=True)]
    return [
        worked_file(),
        Accepted("file-empty", "no objects", X, []),
        Accepted("file-empty-key", "no objects, and a key", X, [], [["x"]]),
        Accepted("file-pages", "three pages", X, [[[1], [2], [3]], [[4]], [[5], [6]]]),
        Accepted("file-nested", "nested objects", CUSTOMER, [CUSTOMER_ROWS] * 2, [["key"]]),
        Accepted(
            "file-large",
            "a large page",
            text,
            [large[:1], large[1:]],
            [["s"]],
            {"page_data": large_pages},
        ),
        Accepted(
            "file-large-not-needed",
            "a large page of the standard size",
            X,
            [[[7]]],
            changed={"page_data": small},
        ),
        Accepted(
            "file-keys",
            "keys of several types, equal and missing ones",
            KEYS,
            [KEY_ROWS[:2], KEY_ROWS[2:]],
            [["name"], ["inner", "b"], ["inner", "bin"], ["inner", "w"], ["d"]],
        ),
        Accepted("file-float", "0.0 and -0.0 are two keys", [f("x", "float32")],
                 [[["00000000"], ["80000000"], ["00000000"], ["7fc00000"]]], [["x"]]),
    ]  # fmt: skip


def rejected_files() -> dict[str, bytes]:
    """Each is a file of three pages with a key index, wrong in one place."""
    rows = [[[1], [2], [3]], [[4]], [[5], [6]]]
    flat = [row for page_rows in rows for row in page_rows]
    whole = page_file(X, rows, [["x"]])
    pages = [
        page(X, page_rows, page_bytes=UNIT, sequence=i, checksummed=True)
        for i, page_rows in enumerate(rows)
    ]
    entries = key_index(X, flat, [["x"]])

    def made(**changed) -> bytes:
        return page_file(X, rows, changed.pop("key", [["x"]]), **changed)

    def index(*entries) -> bytes:
        checksums = [data[28:32] for data in pages]
        words = zip(entries, checksums, strict=True)
        return b"".join(u64(first) + u32(end) + checksum for (first, end), checksum in words)

    unchecked = [pages[0], page(X, rows[1], page_bytes=UNIT, sequence=1), pages[2]]
    renumbered = [*pages[:2], page(X, rows[2], page_bytes=UNIT, sequence=3, checksummed=True)]
    double = [page(X, rows[0], page_bytes=2 * UNIT, checksummed=True), *pages[1:]]
    damaged = bytearray(pages[1])
    damaged[72] ^= 1
    later = page(X, [[7]], page_bytes=UNIT, sequence=1, checksummed=True)
    swapped = whole.replace(pages[1], later)
    files = {
        "magic-page": pages[0],
        "magic-empty": b"",
        "version-1": made(version=u16(1)),
        "flags-1": made(flags=u16(1)),
        "size-page-bytes-0": page_file(X, [], page_bytes=0),
        "size-page-bytes-5000": page_file(X, [], page_bytes=5000),
        "size-schema": made(schema_bytes=u32((16 << 20) + 1)),
        "reserved-header": made(reserved=bytes(15) + b"\1"),
        "cut-header": whole[:63],
        "cut-schema": whole[:70],
        "cut-padding": whole[:4000],
        "cut-pages": whole[: 2 * UNIT + 100],
        "cut-last-byte": whole[:-1],
        "cut-half-footer": whole[:-64],
        "cut-more": whole + b"\0",
        "cut-file-bytes": made(file_bytes=u64(len(whole) - 1)),
        "cut-end": made(end=b"DRYFENDE"),
        "digest-schema": made(schema_digest=bytes(32)),
        "digest-file": made(digest=bytes(32)),
        "digest-index": whole.replace(u64(3) + u32(2), u64(3) + u32(3)),
        "footer-reserved": made(footer_reserved=bytes(23) + b"\1"),
        "footer-reserved-end": made(reserved_end=bytes(7) + b"\1"),
        "footer-index-at": made(index_at=u64(3 * UNIT)),
        "footer-index-at-huge": made(index_at=u64((1 << 64) - UNIT)),
        "footer-pages": made(page_count=u64(4)),
        "footer-pages-huge": made(page_count=u64(1 << 60)),
        "footer-fewer-objects": made(objects=u64(2)),
        "footer-keys-at": made(keys_at=u64(0)),
        "footer-keys-more": made(key_count=u64(7)),
        "footer-keys-without-paths": page_file(X, rows, keys_checksum=u32(1)),
        "footer-key-paths": made(key_paths_bytes=u32(20)),
        "schema-left-over": page_file(X, [], schema=schema(*X) + b"\0"),
        "padding-schema": made(start=whole[: UNIT - 1] + b"\1"),
        "padding-key-paths": made(key_paths=key_paths([["x"]])[:-1] + b"\1"),
        "index-first": made(index=index((1, 1), (3, 2), (4, 3))),
        "index-not-rising": made(index=index((0, 1), (0, 2), (4, 3))),
        "index-past-objects": made(index=index((0, 1), (3, 2), (6, 3))),
        "index-no-bytes": made(index=index((0, 1), (3, 1), (4, 3))),
        "index-end": made(index=index((0, 1), (3, 2), (4, 4))),
        "keys-no-field": made(key_paths=key_paths([["y"]])),
        "keys-within-int": made(key_paths=key_paths([["x", "y"]])),
        "keys-list": page_file(CUSTOMER, [], key_paths=key_paths([["orders"]])),
        "keys-no-paths": made(key_paths=bytes(8)),
        "keys-17-paths": made(key_paths=key_paths([["x"]] * 17)),
        "keys-left-over": made(key_paths=key_paths([["x"]]) + bytes(8)),
        "keys-checksum": made(keys_checksum=u32(7)),
        "keys-order": made(keys=entries[::-1]),
        "keys-twice": made(keys=[entries[0], *entries[:5]]),
        "keys-ordinal": made(keys=[*entries[:5], (entries[5][0], 6)]),
        "checksum-page": whole.replace(pages[1], bytes(damaged)),
        "page-other": swapped,
        "page-unchecked": made(page_data=unchecked),
        "page-sequence": made(page_data=renumbered),
        "page-regular-of-two": made(page_data=double),
        "page-objects": made(index=index((0, 1), (2, 2), (4, 3))),
    }
    return {f"{name}.pages": data for name, data in files.items()}
