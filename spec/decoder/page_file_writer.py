"""Writes page files from rows, valid or not (page-file.md). Shares nothing with the decoder but
crc32c and the digest of rows.
"""

import hashlib

from crc32c import crc32c
from page_writer import page, scalar, stored
from partition import digest
from writer import schema, u16, u32, u64

UNIT = 4096


def padded(data: bytes, multiple: int) -> bytes:
    return data + bytes(-len(data) % multiple)


def sized(name: str) -> bytes:
    return u32(len(name.encode())) + name.encode()


def key_paths(paths: list[list[str]]) -> bytes:
    words = [u32(len(path)) + b"".join(map(sized, path)) for path in paths]
    return padded(u32(len(paths)) + b"".join(words), 8) if paths else b""


def key_of(fields: list[dict], row: list, path: list[str]) -> tuple[dict, object]:
    """The words and the value of a field."""
    words, value = {"children": fields}, row
    for name in path:
        i = [child["name"] for child in words["children"]].index(name)
        words, value = words["children"][i], None if value is None else value[i]
    return stored(words), value


def digested(words: dict, value):
    """A value as the digest of rows takes it."""
    match words["type"]:
        case "boolean" | "utf8":
            return value
        case "binary":
            return bytearray.fromhex(value)
    return scalar(words, value)


def key_index(fields: list[dict], rows: list[list], paths: list[list[str]]) -> list[tuple]:
    """Hash and ordinal of each object whose key has no missing value."""
    entries = []
    for ordinal, row in enumerate(rows if paths else []):
        parts = [key_of(fields, row, path) for path in paths]
        if all(value is not None for _, value in parts):
            entries.append((digest([[digested(*part) for part in parts]]), ordinal))
    return sorted(entries)


def page_file(fields: list[dict], pages: list[list[list]], key=(), **changed) -> bytes:
    """A file of these pages, each a list of rows. `changed` replaces parts of it: a part by its
    name here, a field of header or footer by its name in the specification.
    """
    rows = [row for page_rows in pages for row in page_rows]
    paths = [list(path) for path in key]
    page_bytes = changed.get("page_bytes", UNIT)
    encoded = changed.get("schema", schema(*fields))
    header = {
        "magic": b"DRYF",
        "version": u16(0),
        "flags": u16(0),
        "page_bytes": b"",
        "schema_bytes": u32(len(encoded)),
        "reserved": bytes(16),
        "schema_digest": hashlib.sha256(encoded).digest(),
    }
    changed["page_bytes"] = u32(page_bytes)
    head = b"".join((header | changed)[name] for name in header) + encoded
    start = changed.get("start", padded(head, UNIT))
    made = changed.get("page_data") or [
        page(fields, page_rows, page_bytes=UNIT, sequence=i, checksummed=True)
        for i, page_rows in enumerate(pages)
    ]
    first, end, index = 0, 0, b""
    for page_rows, data in zip(pages, made, strict=True):
        end += len(data)
        index += u64(first) + u32(end // UNIT) + data[28:32]
        first += len(page_rows)
    index = changed.get("index", index)
    names = changed.get("key_paths", key_paths(paths))
    entries = changed.get("keys", key_index(fields, rows, paths))
    keys = b"".join(u64(hash) + u64(ordinal) for hash, ordinal in entries)
    index_at = len(start) + sum(map(len, made))
    footer = {
        "file_bytes": u64(index_at + len(index) + len(names) + len(keys) + 128),
        "index_at": u64(index_at),
        "page_count": u64(len(made)),
        "objects": u64(len(rows)),
        "keys_at": u64(index_at + len(index) if names else 0),
        "key_count": u64(len(entries)),
        "key_paths_bytes": u32(len(names)),
        "keys_checksum": u32(crc32c(keys) if names else 0),
        "footer_reserved": bytes(24),
    }
    foot = b"".join((footer | changed)[name] for name in footer)
    seal = hashlib.sha256(start + index + names + foot).digest()
    ending = {"digest": seal, "reserved_end": bytes(8), "end": b"DRYFEND\0"}
    foot += b"".join((ending | changed)[name] for name in ending)
    return start + b"".join(made) + index + names + keys + foot
