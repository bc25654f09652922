"""Fields that several messages have (protocol.md)."""

import re
from chunk import Chunk, decode_chunk

from cursor import Cursor, Refused
from schema import Field, decode_schema

PARTS_MAX, TICKET_MAX = 65_536, 4096
COMPRESSIONS = ("auto", "none", "light", "lz4", "zstd")


def check_ticket(ticket: bytes) -> bytes:
    """Section 12, as the next."""
    if not 1 <= len(ticket) <= TICKET_MAX:
        raise Refused("limit", f"a ticket of {len(ticket)} bytes")
    return ticket


def check_pass(text: str) -> str:
    digits = text.removeprefix("pass-")
    if digits == text or set(digits) - set("0123456789abcdefABCDEF") or len(text) > TICKET_MAX:
        raise Refused("payload", "a pass that is none")
    return text


def check_source(name: str) -> str:
    """Section 14."""
    if name and not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise Refused("payload", f"a source with the name {name!r}")
    return name


def decode_parameters(data: bytes) -> tuple[list[Field], Chunk] | None:
    """Section 2: None, or a schema and a chunk of one row."""
    if not data:
        return None
    cursor = Cursor(data, short="payload")
    schema = decode_schema(cursor.bytes("schema of the parameters"))
    chunk = decode_chunk(cursor.take(cursor.left(), "chunk"), schema)
    within("rows of parameters", chunk.header.rows, 1, 1)
    return schema, chunk


def read_u64s(cursor: Cursor, *names: str) -> dict:
    return {name: cursor.u64(name) for name in names}


def within(what: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Refused("payload", f"{what} {value}, expected {least} to {most}")
    return value


def check_used_up(cursor: Cursor, what: str):
    if cursor.left():
        raise Refused("payload", f"{cursor.left()} bytes after {what}")
