"""The messages of a client on one connection, and their order (protocol.md section 2)."""

from dataclasses import dataclass

from crc32c import crc32c
from cursor import Cursor, Refused
from message_fields import (
    COMPRESSIONS,
    PARTS_MAX,
    check_pass,
    check_source,
    check_ticket,
    check_used_up,
    decode_parameters,
    read_u64s,
    within,
)
from header import Limits

VERSION_MIN, VERSION = 2, 7
PLANS_SINCE, PAGES_SINCE, SOURCES_SINCE, MORE_FLAGS_SINCE, PATHS_SINCE = 4, 5, 6, 7, 7
CHUNKS_ONLY, PAGES_ONLY = 0, 1  # layouts
U32_MAX = (1 << 32) - 1
HELLO, QUERY, CANCEL, GOODBYE = 0x01, 0x02, 0x03, 0x05
PLAN, PART, RELEASE, SHARE = 0x06, 0x07, 0x08, 0x09


@dataclass
class Message:
    name: str
    fields: dict


@dataclass
class Asked:
    """What a query asked for, which its answer must match."""

    checksum: int = 0  # of the query's payload; 0 for a COPY of PostgreSQL
    limits: Limits = Limits()
    checksums: bool = False
    plan_only: bool = False
    layout: int = CHUNKS_ONLY
    parts: bool = False  # it is a plan, which planned answers


class ClientSession:
    """Section 2. The client's side does not show whether a statement still runs."""

    def __init__(self):
        self.greeted = False
        self.ended = False
        self.version_max = 0  # that of hello
        self.source = ""
        self.statement = 0
        self.asked: dict[int, Asked] = {}

    def message(self, kind: int, payload: bytes) -> Message:
        if self.ended:
            raise Refused("order", "a message after goodbye")
        cursor = Cursor(payload, short="payload")
        if kind in (PLAN, PART) and self.version_max < PLANS_SINCE:
            raise Refused("order", "plans begin with version 4")
        if kind in (RELEASE, SHARE) and self.version_max < SOURCES_SINCE:
            raise Refused("order", "releases and shares begin with version 6")
        read = {
            HELLO: self.hello,
            QUERY: self.query,
            CANCEL: self.cancel,
            GOODBYE: self.goodbye,
            PLAN: self.plan,
            PART: self.part,
            RELEASE: self.release,
            SHARE: self.share,
        }
        message = read[kind](cursor)
        check_used_up(cursor, message.name)
        if kind == PLAN:
            self.asked[message.fields["statement"]] = Asked(crc32c(payload), parts=True)
        if kind in (QUERY, PART):
            fields = message.fields
            limits = Limits(
                **{
                    name: fields[name]
                    for name in ("chunk_bytes_max", "decoded_bytes_max", "row_bytes_max")
                }
            )
            self.asked[fields["statement"]] = Asked(
                crc32c(payload),
                limits,
                checksums=fields["checksums"] == 1,
                plan_only=fields["flags"] & 1 == 1,
                layout=fields["flags"] >> 1 & 3,
            )
        return message

    def hello(self, cursor: Cursor) -> Message:
        if cursor.take(4, "magic") != b"DRAY":
            raise Refused("magic", "not DRAY")
        fields = {
            "version_min": cursor.u16("version_min"),
            "version_max": cursor.u16("version_max"),
        }
        least = max(fields["version_min"], VERSION_MIN)
        if least > min(fields["version_max"], VERSION):
            raise Refused("version", f"{fields}, expected {VERSION_MIN} to {VERSION}")
        self.greeted, self.version_max = True, fields["version_max"]
        fields |= {name: cursor.string(name) for name in ("token", "client")}
        if fields["version_min"] >= SOURCES_SINCE:
            self.source = fields["source"] = check_source(cursor.string("source"))
        return Message("hello", fields)

    def begin(self, cursor: Cursor) -> dict:
        statement = cursor.u32("statement")
        if statement <= self.statement:
            raise Refused("order", f"statement {statement} after {self.statement}")
        self.statement = statement
        return {
            "statement": statement,
            "sql": cursor.string("sql"),
            "parameters": decode_parameters(cursor.bytes("parameters")),
        }

    def plan(self, cursor: Cursor) -> Message:
        """Section 12, as the next."""
        fields = self.begin(cursor)
        fields["parts_max"] = within("parts_max", cursor.u32("parts_max"), 0, PARTS_MAX)
        return Message("plan", fields | read_u64s(cursor, "lease_ms"))

    def part(self, cursor: Cursor) -> Message:
        fields = self.query(cursor).fields
        within("flags of a part", fields["flags"], 0, 0)
        return Message("part", fields | {"ticket": check_ticket(cursor.bytes("ticket"))})

    def query(self, cursor: Cursor) -> Message:
        fields = self.begin(cursor)
        fields |= read_u64s(cursor, "chunk_bytes_max", "decoded_bytes_max", "row_bytes_max")
        within("chunk_bytes_max", fields["chunk_bytes_max"], 4096, U32_MAX)
        within("row_bytes_max", fields["row_bytes_max"], fields["chunk_bytes_max"], U32_MAX)
        fields["chunk_rows"] = cursor.u32("chunk_rows")
        fields["compression"] = COMPRESSIONS[within("compression", cursor.u8("compression"), 0, 4)]
        fields["level"] = within("level", cursor.i8("level"), -7, 22)
        fields["checksums"] = within("checksums", cursor.u8("checksums"), 0, 2)
        fields["flags"] = flags = within("flags", cursor.u8("flags"), 0, 47)
        within("layout", flags >> 1 & 3, 0, 2)
        if flags & 6 and self.version_max < PAGES_SINCE:
            raise Refused("order", "layouts begin with version 5")
        if flags >> 3 and self.version_max < MORE_FLAGS_SINCE:
            raise Refused("order", "estimates and unfit values begin with version 7")
        return Message("query", fields)

    def cancel(self, cursor: Cursor) -> Message:
        return Message("cancel", {"statement": cursor.u32("statement")})

    def release(self, cursor: Cursor) -> Message:
        return Message("release", {})

    def share(self, cursor: Cursor) -> Message:
        """Section 12."""
        return Message("share", {"pass": check_pass(cursor.string("pass"))})

    def goodbye(self, cursor: Cursor) -> Message:
        self.ended = True
        return Message("goodbye", {})

    def check_end(self):
        if not self.greeted:
            raise Refused("cut", "no hello")
