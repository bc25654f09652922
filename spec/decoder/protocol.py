"""Checks a recorded session: the frames and messages of one direction, and the rules between them
(protocol.md).
"""

import struct
from chunk import Chunk, decode_chunk, receive_state
from collections.abc import Callable

from client_messages import (
    CANCEL,
    CHUNKS_ONLY,
    GOODBYE,
    HELLO,
    PAGES_ONLY,
    PAGES_SINCE,
    PART,
    PATHS_SINCE,
    PLAN,
    PLANS_SINCE,
    QUERY,
    RELEASE,
    SHARE,
    SOURCES_SINCE,
    VERSION,
    VERSION_MIN,
    Asked,
    ClientSession,
    Message,
)
from crc32c import crc32c
from cursor import Cursor, Refused
from header import CHECKSUMMED, HEADER_BYTES, Limits, decode_header
from message_fields import (
    COMPRESSIONS,
    PARTS_MAX,
    check_pass,
    check_ticket,
    check_used_up,
    read_u64s,
    within,
)
from page import HEADER_BYTES as PAGE_HEADER_BYTES
from page import decode_page, page_sizes
from schema import Field, decode_schema
from tables import Tables

INSTANCE_BYTES = 16
FRAME_HEADER_BYTES = 8
PAYLOAD_BYTES_MAX_BEFORE_WELCOME = 64 << 10
PAYLOAD_BYTES_MAX = 16 << 20
PAGE_BYTES = 256 << 10

WELCOME, STARTED, CHUNK, PROGRESS, FINISHED, ERROR = range(0x81, 0x87)
REPORT, STATE, PLANNED, PAGE, PATH = range(0x87, 0x8C)
CLIENT_KINDS = (HELLO, QUERY, CANCEL, GOODBYE, PLAN, PART, RELEASE, SHARE)
SERVER_KINDS = (
    WELCOME,
    STARTED,
    CHUNK,
    PROGRESS,
    FINISHED,
    ERROR,
    REPORT,
    STATE,
    PLANNED,
    PAGE,
    PATH,
)

ERROR_KINDS = (
    None,
    "protocol",
    "authentication",
    "query",
    "execution",
    "resources",
    "limit",
    "cancelled",
    "shutdown",
    "internal",
    "source",
)


def check_server_session(
    data: bytes, asked: Callable[[int], Asked], source: str = ""
) -> list[Message]:
    """Checks what a server sent on one connection. `asked` returns the query of a statement by its
    number, and `source` is that of hello. Raises Refused.
    """
    session = _ServerSession(asked, source)
    return [
        session.message(kind, payload)
        for kind, payload in frames(data, SERVER_KINDS, WELCOME, session)
    ]


def check_client_session(data: bytes) -> list[Message]:
    """Checks what a client sent on one connection. Raises Refused."""
    session = ClientSession()
    return [
        session.message(kind, payload)
        for kind, payload in frames(data, CLIENT_KINDS, HELLO, session)
    ]


def check_exchange(requests: bytes, answers: bytes) -> list[Message]:
    """Checks both directions of one connection: the answers must match the queries."""
    session = ClientSession()
    for kind, payload in frames(requests, CLIENT_KINDS, HELLO, session):
        session.message(kind, payload)
    asked = session.asked
    return check_server_session(
        answers, lambda statement: asked.get(statement, Asked()), session.source
    )


def standard_query(statement: int) -> Asked:
    """The query of recorded answers (vectors/README.md): SELECT 1 with default limits."""
    limits = Limits()
    sql = b"SELECT 1"
    payload = struct.pack("<II", statement, len(sql)) + sql + struct.pack("<I", 0)
    payload += struct.pack(
        "<QQQ", limits.chunk_bytes_max, limits.decoded_bytes_max, limits.row_bytes_max
    ) + bytes(8)
    return Asked(crc32c(payload), limits)


def frames(data: bytes, kinds: tuple, first: int, session):
    """Section 1: yields kind and payload of each frame. The session provides the limits, and checks
    at the end whether it may end.
    """
    cursor = Cursor(data, short="cut")
    greeted = False
    while cursor.left():
        payload_bytes = cursor.u32("payload_bytes")
        kind = cursor.u8("kind")
        reserved = cursor.take(3, "reserved")
        if kind not in kinds:
            raise Refused("kind", f"{kind:#04x}")
        payload_bytes_max = PAYLOAD_BYTES_MAX if greeted else PAYLOAD_BYTES_MAX_BEFORE_WELCOME
        if greeted and kind == CHUNK:
            payload_bytes_max = session.limits.row_bytes_max
        if greeted and kind == PAGE:
            payload_bytes_max = max(session.limits.row_bytes_max, PAGE_BYTES)
        if greeted and kind == STATE:
            payload_bytes_max = session.limits.chunk_bytes_max
        if any(reserved) or payload_bytes > payload_bytes_max:
            raise Refused(
                "frame",
                f"payload of {payload_bytes} bytes, at most {payload_bytes_max}; "
                f"reserved {reserved.hex()}",
            )
        if kind != first and not greeted and kind != ERROR or kind == first and greeted:
            raise Refused("order", f"kind {kind:#04x}, greeted: {greeted}")
        yield kind, cursor.take(payload_bytes, "payload")
        greeted = True
    session.check_end()


class _ServerSession:
    """Section 3."""

    def __init__(self, asked: Callable[[int], Asked], source: str):
        self.asked_by_statement = asked
        self.source = source
        self.asked = Asked()  # of the running statement
        self.checksums = False  # whether each of its chunks must have one
        self.version = 0  # that of welcome
        self.welcomed = False
        self.ended = False
        self.statement = 0  # the last one, or the running one
        self.schema: list[Field] | None = None  # of the running statement
        self.rows = self.chunks = self.digest = 0
        self.tables = Tables()

    @property
    def limits(self) -> Limits:
        return self.asked.limits

    def message(self, kind: int, payload: bytes) -> Message:
        if self.ended:
            raise Refused("order", "a message after the error that ended the connection")
        cursor = Cursor(payload, short="payload")
        if kind == CHUNK:
            return self.chunk(payload)
        if kind == PAGE:
            return self.page(payload)
        if kind == STATE:
            return self.state(payload)
        read = {
            WELCOME: self.welcome,
            STARTED: self.started,
            PROGRESS: self.progress,
            FINISHED: self.finished,
            ERROR: self.error,
            REPORT: self.report,
            PATH: self.path,
            PLANNED: self.planned,
        }
        if kind in (PROGRESS, REPORT, PATH):
            self.digest = crc32c(payload, self.digest)
        if kind == FINISHED:
            self.digest = crc32c(payload[:-4], self.digest)
        message = read[kind](cursor)
        check_used_up(cursor, message.name)
        if kind == STARTED:
            self.digest = crc32c(payload)
        if kind == PLANNED and message.fields["digest"] != crc32c(payload[:-4]):
            raise Refused("finished", "the digest of a plan")
        return message

    def welcome(self, cursor: Cursor) -> Message:
        fields = {"version": cursor.u16("version")}
        if not VERSION_MIN <= fields["version"] <= VERSION:
            raise Refused("version", f"{fields['version']}, expected {VERSION_MIN} to {VERSION}")
        fields["server"] = cursor.string("server")
        if fields["version"] >= 3:
            fields["instance"] = cursor.take(INSTANCE_BYTES, "instance")
        if fields["version"] >= SOURCES_SINCE:
            fields |= {name: cursor.string(name) for name in ("source", "dialect")}
        check_used_up(cursor, "welcome")
        if fields.get("source", "") != self.source:
            raise Refused("query", f"a welcome to the source {fields.get('source')!r}")
        self.welcomed, self.version = True, fields["version"]
        return Message("welcome", fields)

    def started(self, cursor: Cursor) -> Message:
        statement = cursor.u32("statement")
        if self.schema is not None or statement <= self.statement:
            raise Refused("order", f"started {statement} after {self.statement}")
        query = cursor.u32("query")
        schema = decode_schema(cursor.bytes("schema"))
        fields = {
            "statement": statement,
            "query": query,
            "schema": schema,
            "rows_known": within("rows_known", cursor.u8("rows_known"), 0, 2),
            "rows": cursor.u64("rows"),
            "bytes_known": within("bytes_known", cursor.u8("bytes_known"), 0, 2),
            "bytes": cursor.u64("bytes"),
            "compression": COMPRESSIONS[within("compression", cursor.u8("compression"), 0, 4)],
            "level": within("level", cursor.i8("level"), -7, 22),
            "checksums": within("checksums", cursor.u8("checksums"), 0, 1),
            "plan_ns": cursor.u64("plan_ns"),
        }
        check_used_up(cursor, "started")
        self.asked = self.asked_by_statement(statement)
        if self.asked.parts:
            raise Refused("order", "started answers a plan")
        if query != self.asked.checksum:
            raise Refused(
                "query", f"the answer to {query:08x}, the query is {self.asked.checksum:08x}"
            )
        if self.asked.checksums and not fields["checksums"]:
            raise Refused("query", "checksums were asked for")
        self.statement, self.schema = statement, schema
        self.checksums = bool(fields["checksums"])
        self.rows = self.chunks = 0
        self.tables = Tables()
        return Message("started", fields)

    def planned(self, cursor: Cursor) -> Message:
        """Section 12."""
        statement = cursor.u32("statement")
        if self.schema is not None or statement <= self.statement:
            raise Refused("order", f"planned {statement} after {self.statement}")
        self.asked = self.asked_by_statement(statement)
        if not self.asked.parts or self.version < PLANS_SINCE:
            raise Refused("order", "planned answers a plan, from version 4 on")
        fields = {
            "statement": statement,
            "query": cursor.u32("query"),
            "schema": decode_schema(cursor.bytes("schema")),
            "reason": cursor.string("reason"),
            "plan": cursor.take(16, "plan"),
            "deadline": cursor.u64("deadline"),
            "pass": check_pass(cursor.string("pass")),
        }
        count = within("parts", cursor.u32("parts"), 1, PARTS_MAX)
        fields["parts"] = [
            read_u64s(cursor, "rows", "bytes") | {"ticket": check_ticket(cursor.bytes("ticket"))}
            for _ in range(count)
        ]
        fields["digest"] = cursor.u32("digest")
        if fields["query"] != self.asked.checksum:
            raise Refused("query", f"the answer to {fields['query']:08x}")
        self.statement = statement
        return Message("planned", fields)

    def chunk(self, payload: bytes) -> Message:
        if self.schema is None:
            raise Refused("order", "a chunk outside a statement")
        if self.asked.plan_only or self.asked.layout == PAGES_ONLY:
            raise Refused("query", "a chunk of a statement that was to have none")
        header = decode_header(payload, self.limits)
        self.check_checksum(header.flags)
        if header.sequence != self.chunks:
            raise Refused("sequence", f"{header.sequence}, expected {self.chunks}")
        chunk: Chunk = decode_chunk(payload, self.schema, self.limits, self.tables)
        self.rows += header.rows
        self.chunks += 1
        self.digest = crc32c(payload[:HEADER_BYTES], self.digest)
        return Message(
            "chunk", {"sequence": header.sequence, "rows": header.rows, "columns": chunk.columns}
        )

    def page(self, payload: bytes) -> Message:
        """Section 13."""
        if self.schema is None or self.version < PAGES_SINCE:
            raise Refused("order", "a page outside a statement, or before version 5")
        if self.asked.plan_only or self.asked.layout == CHUNKS_ONLY:
            raise Refused("query", "a page of a statement that was to have none")
        header, objects, objects_end = page_sizes(payload)
        standard = PAGE_BYTES
        if header.large:
            standard *= -(-(objects_end + 4) // PAGE_BYTES)
        if header.page_bytes != standard or len(payload) != objects_end + 4 * objects:
            raise Refused("size", f"{len(payload)} bytes of a page of {header.page_bytes}")
        self.check_checksum(header.flags)
        if header.sequence != self.chunks:
            raise Refused("sequence", f"{header.sequence}, expected {self.chunks}")
        left_out = bytes(header.page_bytes - len(payload))
        page = decode_page(payload[:objects_end] + left_out + payload[objects_end:], self.schema)
        self.rows += len(page.rows)
        self.chunks += 1
        self.digest = crc32c(payload[:PAGE_HEADER_BYTES], self.digest)
        return Message("page", {"sequence": page.sequence, "rows": page.rows})

    def state(self, payload: bytes) -> Message:
        if self.schema is None:
            raise Refused("order", "a state frame outside a statement")
        header = decode_header(payload, self.limits, magic=b"DRYS")
        self.check_checksum(header.flags)
        if header.sequence != self.tables.frames:
            raise Refused(
                "sequence", f"state frame {header.sequence}, expected {self.tables.frames}"
            )
        receive_state(payload, self.tables, self.limits)
        self.digest = crc32c(payload[:HEADER_BYTES], self.digest)
        return Message("state", {"sequence": header.sequence, "tables": header.rows})

    def progress(self, cursor: Cursor) -> Message:
        self.check_running(statement := cursor.u32("statement"))
        return Message(
            "progress", {"statement": statement} | read_u64s(cursor, "rows_read", "rows_sent")
        )

    def report(self, cursor: Cursor) -> Message:
        self.check_running(statement := cursor.u32("statement"))
        columns = [
            read_u64s(cursor, "decoded_bytes", "encode_ns") for _ in range(cursor.u32("columns"))
        ]
        if len(columns) != len(self.schema):
            raise Refused(
                "payload", f"a report of {len(columns)} columns, the schema has {len(self.schema)}"
            )
        prices = [
            (cursor.u32("at_ms"), cursor.u32("price_ps")) for _ in range(cursor.u32("prices"))
        ]
        return Message("report", {"statement": statement, "columns": columns, "prices": prices})

    def path(self, cursor: Cursor) -> Message:
        """Section 14."""
        self.check_running(statement := cursor.u32("statement"))
        if self.version < PATHS_SINCE:
            raise Refused("order", "paths begin with version 7")
        return Message("path", {"statement": statement, "path": cursor.string("path")})

    def finished(self, cursor: Cursor) -> Message:
        self.check_running(statement := cursor.u32("statement"))
        fields = {"statement": statement}
        fields["planned_only"] = within("planned_only", cursor.u8("planned_only"), 0, 1)
        fields |= read_u64s(
            cursor, "rows", "chunks", "execute_ns", "encode_ns", "queue_ns", "socket_ns", "total_ns"
        )
        fields["digest"] = cursor.u32("digest")
        check_used_up(cursor, "finished")
        if bool(fields["planned_only"]) != self.asked.plan_only:
            raise Refused(
                "query", f"planned_only {fields['planned_only']}, asked for: {self.asked.plan_only}"
            )
        announced = fields["rows"], fields["chunks"], fields["digest"]
        if announced != (self.rows, self.chunks, self.digest):
            raise Refused(
                "finished", f"announced {announced}, received {self.rows, self.chunks, self.digest}"
            )
        self.schema = None
        return Message("finished", fields)

    def error(self, cursor: Cursor) -> Message:
        statement = cursor.u32("statement")
        if statement == 0:
            self.ended = True
        elif self.schema is not None:
            self.check_running(statement)
        elif not self.welcomed or statement <= self.statement:
            raise Refused("order", f"error of statement {statement} after {self.statement}")
        self.statement = max(self.statement, statement)
        self.schema = None
        fields = {
            "statement": statement,
            "kind": ERROR_KINDS[within("kind", cursor.u8("kind"), 1, len(ERROR_KINDS) - 1)],
        }
        fields |= {name: cursor.string(name) for name in ("sqlstate", "message", "hint")}
        if len(fields["sqlstate"]) not in (0, 5):
            raise Refused("payload", f"sqlstate {fields['sqlstate']!r}")
        return Message("error", fields)

    def check_checksum(self, flags: int):
        if self.checksums and not flags & CHECKSUMMED:
            raise Refused("checksum", "none, after a started that announces them")

    def check_running(self, statement: int):
        if self.schema is None or statement != self.statement:
            raise Refused("order", f"statement {statement}, the last was {self.statement}")

    def check_end(self):
        if self.schema is not None or not (self.welcomed or self.ended):
            raise Refused("cut", "a stream without its end is an error, never a short result")
