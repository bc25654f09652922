"""Decodes page files to rows of the vectors' JSON values (page-file.md). Every violation is refused
by its name.
"""

import hashlib
from dataclasses import dataclass, field

from crc32c import crc32c
from cursor import Cursor, Refused
from page import decode_page, is_null, pad
from schema import Field, decode_schema

HEADER, FOOTER, ENTRY, UNIT = 64, 128, 16, 4096
SCHEMA_MAX = 16 << 20
PATHS_MAX, NAMES_MAX = 16, 32
DIGESTED = 80
END = b"DRYFEND\0"


@dataclass
class PageFile:
    fields: list[Field]
    rows: list[list] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)  # the objects of each
    key: list[list[str]] = field(default_factory=list)
    index: list[tuple[int, int]] = field(default_factory=list)  # hash and ordinal


def decode_page_file(data: bytes) -> PageFile:
    schema, pages_at, page_bytes = decode_header(data)
    numbers = decode_footer(data, pages_at)
    objects, keys_at, keys = numbers["objects"], numbers["keys_at"], numbers["keys"]
    index_at, index_end = numbers["index_at"], numbers["index_at"] + ENTRY * numbers["pages"]
    paths = data[index_end : index_end + numbers["key_paths_bytes"]]
    digested = data[:pages_at] + data[index_at:index_end] + paths + data[-FOOTER:][:DIGESTED]
    if hashlib.sha256(digested).digest() != data[-FOOTER:][DIGESTED : DIGESTED + 32]:
        raise Refused("digest", "of the file")
    file = PageFile(decode_schema(schema))
    entries = check_index(data[index_at:index_end], objects, index_at - pages_at, page_bytes)
    if keys_at:
        file.key = decode_paths(paths, file.fields)
        at = index_end + len(paths)
        file.index = decode_keys(data[at : at + ENTRY * keys], objects, numbers["keys_checksum"])
    for i, (first, next, start, end, checksum) in enumerate(entries):
        page = data[pages_at + start : pages_at + end]
        decoded = decode_page(page, file.fields)
        same = (decoded.sequence, len(decoded.rows)) == (i, next - first)
        if not (same and page[6] & 1 and int.from_bytes(page[28:32], "little") == checksum):
            raise Refused("page", f"page {i} is another than the index says")
        if not decoded.large and len(page) != page_bytes:
            raise Refused("page", f"page {i} has {len(page)} bytes and is not large")
        file.pages.append(len(decoded.rows))
        file.rows += decoded.rows
    return file


def decode_header(data: bytes) -> tuple[bytes, int, int]:
    if data[:4] != b"DRYF":
        raise Refused("magic", repr(data[:4]))
    cursor = Cursor(data[4:HEADER], short="cut")
    cursor.take(HEADER - 4, "header")
    cursor = Cursor(data[4:HEADER], short="cut")
    if version := cursor.u16("version"):
        raise Refused("version", str(version))
    if flags := cursor.u16("flags"):
        raise Refused("flags", hex(flags))
    page_bytes, schema_bytes = cursor.u32("page_bytes"), cursor.u32("schema_bytes")
    if page_bytes & (page_bytes - 1) or not 4 << 10 <= page_bytes <= 1 << 30:
        raise Refused("size", f"page_bytes {page_bytes}")
    if schema_bytes > SCHEMA_MAX:
        raise Refused("size", f"schema_bytes {schema_bytes}")
    if any(cursor.take(16, "reserved")):
        raise Refused("reserved", "a byte of the header")
    pages_at = pad(HEADER + schema_bytes, UNIT)
    if len(data) < pages_at:
        raise Refused("cut", "within the schema")
    schema = data[HEADER : HEADER + schema_bytes]
    if hashlib.sha256(schema).digest() != cursor.take(32, "schema_digest"):
        raise Refused("digest", "of the schema")
    if any(data[HEADER + schema_bytes : pages_at]):
        raise Refused("padding", "behind the schema")
    return schema, pages_at, page_bytes


def decode_footer(data: bytes, pages_at: int) -> dict[str, int]:
    footer = data[pages_at:][-FOOTER:]
    size = int.from_bytes(footer[:8], "little")
    if len(footer) < FOOTER or footer[-8:] != END or size != len(data):
        raise Refused("cut", "there is no footer")
    cursor = Cursor(footer[8:], short="footer")
    names = ("index_at", "pages", "objects", "keys_at", "keys")
    numbers = {name: cursor.u64(name) for name in names}
    numbers |= {name: cursor.u32(name) for name in ("key_paths_bytes", "keys_checksum")}
    if any(footer[56:80]) or any(footer[112:120]):
        raise Refused("footer", "a reserved byte is not 0")
    index_end = numbers["index_at"] + ENTRY * numbers["pages"]
    has_keys = numbers["key_paths_bytes"] > 0
    end = index_end + numbers["key_paths_bytes"] + ENTRY * numbers["keys"]
    fits = (
        numbers["index_at"] >= pages_at
        and numbers["index_at"] % UNIT == 0
        and numbers["objects"] >= numbers["pages"]
        and (numbers["objects"] == 0) == (numbers["pages"] == 0)
        and numbers["keys"] <= numbers["objects"]
        and numbers["key_paths_bytes"] % 8 == 0
        and numbers["keys_at"] == (index_end if has_keys else 0)
        and (has_keys or numbers["keys"] == numbers["keys_checksum"] == 0)
        and end == len(data) - FOOTER
    )
    if not fits:
        raise Refused("footer", str(numbers))
    return numbers


def check_index(data: bytes, objects: int, pages_bytes: int, page_bytes: int) -> list[tuple]:
    """First ordinal, the one behind the last, offsets and checksum of each page."""
    firsts, ends, checksums = [], [0], []
    for at in range(0, len(data), ENTRY):
        cursor = Cursor(data[at : at + ENTRY], short="index")
        firsts.append(cursor.u64("first"))
        ends.append(cursor.u32("end") * UNIT)
        checksums.append(cursor.u32("checksum"))
    nexts = [*firsts[1:], objects]
    for first, next, start, end in zip(firsts, nexts, ends, ends[1:], strict=False):
        size = end - start
        if first >= next or size <= 0 or size % page_bytes:
            raise Refused("index", f"objects {first} to {next} in {size} bytes")
        if size != page_bytes and size >= 1 << 31:
            raise Refused("index", f"a page of {size} bytes")
    if firsts[:1] not in ([], [0]) or ends[-1] != pages_bytes:
        raise Refused("index", "it does not cover the pages")
    return list(zip(firsts, nexts, ends, ends[1:], checksums, strict=False))


def decode_paths(data: bytes, fields: list[Field]) -> list[list[str]]:
    cursor = Cursor(data, short="keys")

    def count(most: int) -> int:
        if not 1 <= (found := cursor.u32("count")) <= most:
            raise Refused("keys", f"{found} in the key paths")
        return found

    paths = [
        [cursor.string("name") for _ in range(count(NAMES_MAX))] for _ in range(count(PATHS_MAX))
    ]
    if cursor.left() >= 8:
        raise Refused("keys", "bytes behind the key paths")
    if any(cursor.take(cursor.left(), "padding")):
        raise Refused("padding", "behind the key paths")
    for path in paths:
        check_path(fields, path)
    return paths


def check_path(fields: list[Field], path: list[str]):
    for i, name in enumerate(path):
        named = [field for field in fields if field.name == name]
        if len(named) != 1:
            raise Refused("keys", f"{path} is not one field")
        type = named[0].type
        if i + 1 < len(path):
            if type.name != "struct":
                raise Refused("keys", f"{path} is not within structs alone")
            fields = type.children
    while type.name == "dictionary":
        type = type.children[0].type
    if is_null(type) or type.name in ("list", "fixed_list", "map", "struct"):
        raise Refused("keys", f"{path} can't be a key")


def decode_keys(data: bytes, objects: int, checksum: int) -> list[tuple[int, int]]:
    if crc32c(data) != checksum:
        raise Refused("keys", "the checksum of the key index")
    cursor = Cursor(data, short="keys")
    index = [(cursor.u64("hash"), cursor.u64("ordinal")) for _ in range(0, len(data), ENTRY)]
    if index != sorted(set(index)) or any(ordinal >= objects for _, ordinal in index):
        raise Refused("keys", "the key index is not in order")
    return index
