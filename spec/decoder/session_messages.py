"""Makes the messages and streams of protocol.md, of which vectors_sessions.py makes recordings."""

from crc32c import crc32c
from vectors_state import stream_values
from writer import *  # the vocabulary of this page

X = [field("x", "int32")]


GOODBYE = message(0x05)
RELEASE = message(0x08)


def share(token="pass-00", after=b"") -> bytes:
    return message(0x09, string(token), after)


def x_chunk(*values: int, **header) -> bytes:
    return chunk(
        len(values), [NONE_MISSING, plain(numbers("i", *values))], 4 * len(values), **header
    )


CHUNKS = [x_chunk(7, -1, 2, sequence=0, checksummed=True), x_chunk(5, sequence=1, checksummed=True)]


STATE = state([table_fixed(0, 0, 1, 4, plain(numbers("i", 7)))], 4, checksummed=True)


BEHIND = chunk(
    1, [NONE_MISSING, stream_values(0, constant(u32(0)))], 4, sequence=1, states=1, checksummed=True
)


STATELESS = chunk(1, [NONE_MISSING, stream_values(0, constant(u32(0)))], 4, states=1)


# The default limits of a client, in the order of a query's fields.
LIMITS = (16 << 20, 64 << 20, 256 << 20)


INSTANCE = bytes.fromhex("00112233445566778899aabbccddeeff")


def welcome(version=2, instance=b"", server="dray 0.1", after=b"", source="", dialect="") -> bytes:
    named = string(source) + string(dialect) if version >= 6 else b""
    return message(0x81, u16(version), string(server), instance, named, after)


def started(
    statement=1,
    words=X,
    rows_known=1,
    bytes_known=1,
    compression=1,
    level=0,
    checksums=1,
    schema_bytes=None,
    after=b"",
    asked: bytes | None = None,
) -> bytes:
    asked = query(statement, limits=LIMITS) if asked is None else asked
    schema_bytes = schema(*words) if schema_bytes is None else schema_bytes
    known = u8(rows_known) + u64(1000) + u8(bytes_known) + u64(4000)
    chosen = u8(compression) + integers(1, level) + u8(checksums)
    checksum = u32(crc32c(asked[8:]))
    return message(
        0x82, u32(statement), checksum, string(schema_bytes), known, chosen, u64(1234), after
    )


def sent(data: bytes) -> bytes:
    return message(0x83, data)


def state_sent(data: bytes) -> bytes:
    return message(0x88, data)


def progress(statement=1, rows_read=6, rows_sent=3) -> bytes:
    return message(0x84, u32(statement), u64(rows_read), u64(rows_sent))


def finished(before=b"", statement=1, planned_only=0, rows=None, count=None, digest=None) -> bytes:
    """The message finished for the last statement of the stream `before`."""
    covered, chunks = [], []
    while before:
        kind, payload = before[4], before[8 : 8 + int.from_bytes(before[:4], "little")]
        before = before[8 + len(payload) :]
        if kind == 0x82:
            covered, chunks = [], []
        if kind in (0x83, 0x8A):
            chunks.append(payload)
        covered.append(payload[:64] if kind in (0x83, 0x88, 0x8A) else payload)
    # A chunk's rows and a page's objects are in the same place.
    rows = sum(int.from_bytes(one[16:20], "little") for one in chunks) if rows is None else rows
    totals = u64(rows) + u64(len(chunks) if count is None else count)
    fields = u32(statement) + u8(planned_only) + totals + b"".join(map(u64, (10, 20, 30, 40, 50)))
    digest = crc32c(b"".join(covered) + fields) if digest is None else digest
    return message(0x85, fields, u32(digest))


def ended(stream: bytes, **trailer) -> bytes:
    return stream + finished(stream, **trailer)


def report(
    statement=1, columns=((12, 345),), prices=((20, 8000), (1500, 80_000_000)), count=None
) -> bytes:
    count = len(columns) if count is None else count
    columns = b"".join(u64(decoded) + u64(ns) for decoded, ns in columns)
    prices = u32(len(prices)) + b"".join(u32(ms) + u32(ps) for ms, ps in prices)
    return message(0x87, u32(statement), u32(count), columns, prices)


def path(statement=1, text: str | bytes = "one connection: it has parameters", after=b"") -> bytes:
    return message(0x8B, u32(statement), string(text), after)


def error(statement=0, kind=1, sqlstate="", text="expected hello", hint="") -> bytes:
    return message(0x86, u32(statement), u8(kind), string(sqlstate), string(text), string(hint))


def exchange(
    asked: bytes, between=b"", heard: bytes | None = None, checksums=1, **trailer
) -> bytes:
    """A query and its answer; `heard` is the query as the server received it."""
    requests = hello() + asked + GOODBYE
    begun = started(asked=asked if heard is None else heard, checksums=checksums)
    return string(requests) + welcome() + ended(begun + between, **trailer)


def hello(
    magic=b"DRAY", versions=(2, 2), token="", client="dray-python 0.1", source=b"", after=b""
) -> bytes:
    named = string(source) if versions[0] >= 6 else b""
    fields = u16(versions[0]) + u16(versions[1]) + string(token) + string(client) + named
    return message(0x01, magic, fields, after)


def query(
    statement=1,
    sql: str | bytes = "SELECT 1",
    parameters=b"",
    limits=(1 << 20, 64 << 20, 256 << 20),
    compression=0,
    level=0,
    checksums=0,
    flags=0,
    after=b"",
) -> bytes:
    chosen = u8(compression) + integers(1, level) + u8(checksums) + u8(flags)
    return message(
        0x02,
        u32(statement),
        string(sql),
        string(parameters),
        *map(u64, limits),
        u32(0),
        chosen,
        after,
    )


def cancel(statement: int) -> bytes:
    return message(0x03, u32(statement))


def parameters(*rows: int) -> bytes:
    return container(schema(*X), x_chunk(*(rows or (42,))))
