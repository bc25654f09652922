"""Descriptors and receipts of partition plans (partitions.md): accepted and refused."""

import hashlib
import struct

from partition import digest
from writer import field, schema, u16, u32, u64

PLAN, READING = bytes(range(16)), bytes(range(16, 32))
# Section 6: the rows 7, missing, -1.
WORKED_DIGEST = digest([[struct.pack("<i", 7)], [None], [struct.pack("<i", -1)]])


def sized(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return u32(len(data)) + data


def sealed(data: bytes, count: int) -> bytes:
    return data + hashlib.sha256(data).digest()[:count]


def descriptor_of(**changed: bytes) -> bytes:
    """A descriptor; `changed` replaces some of its fields."""
    fields = {
        "magic": b"DRYP",
        "version": u16(0),
        "flags": u16(0),
        "size": u32(0),
        "index": u32(1),
        "count": u32(2),
        "reserved": u32(0),
        "plan": PLAN,
        "deadline": u64(1_800_000_000_000_000),
        "rows": u64(1000),
        "bytes": u64(8000),
        "source": b"\1",
        "uri": sized("postgresql://?host=db&port=5432&dbname=shop&user=me"),
        "sql": sized("SELECT id FROM orders"),
        "parameters": sized(b""),
        "schema": sized(schema(field("id", "int64"))),
        "numeric": sized("text"),
        "nonfinite": sized("error"),
        "server": sized("7316 1 1700000000000000 f shop"),
        "settings": u32(1) + sized("TimeZone") + sized("UTC"),
        "snapshot": sized("00000003-0000001B-1"),
        "snapshot_digest": bytes(range(32)),
        "relations": sized("16384"),
        "range": b"\1" + u32(128) + u32(256) + b"\1",
    }
    fields["size"] = u32(sum(map(len, (fields | changed).values())) + 32)
    return sealed(b"".join((fields | changed).values()), 32)


def receipt_of(**changed: bytes) -> bytes:
    fields = {
        "magic": b"DRYR",
        "version": u16(0),
        "flags": u16(0),
        "plan": PLAN,
        "index": u32(1),
        "count": u32(2),
        "rows": u64(3),
        "digest": u64(WORKED_DIGEST),
        "reading": READING,
    }
    return sealed(b"".join((fields | changed).values()), 16)


def accepted_parts() -> dict[str, tuple[bytes, dict]]:
    """Vectors by file name, with what their JSON says."""
    whole = descriptor_of(index=u32(0), count=u32(1), range=b"\0", rows=u64((1 << 64) - 1))
    partial = descriptor_of(
        sql=sized("SELECT count(*) AS id FROM orders"), range=b"\2" + u32(128) + u32(256) + b"\1"
    )
    last = descriptor_of(range=b"\1" + u32(256) + u32((1 << 32) - 1) + b"\0", flags=u16(1))
    return {
        "blocks.part": (descriptor_of(), place(1, 2) | {"from": 128, "to": 256}),
        "blocks-to-the-end.part": (last, place(1, 2) | {"from": 256, "to": None}),
        "partial-blocks.part": (partial, place(1, 2) | {"from": 128, "to": 256, "partial": True}),
        "statement.part": (whole, place(0, 1)),
        "spec-example.receipt": (
            receipt_of(),
            place(1, 2) | {"rows": 3, "digest": f"{WORKED_DIGEST:016x}"},
        ),
        "no-rows.receipt": (
            receipt_of(rows=u64(0), digest=u64(0)),
            place(1, 2) | {"rows": 0, "digest": "0" * 16},
        ),
    }


def place(index: int, count: int) -> dict:
    return {"plan": PLAN.hex(), "index": index, "count": count}


def rejected_parts() -> dict[str, bytes]:
    part, receipt = descriptor_of(), receipt_of()
    made = {
        "magic-receipt.part": receipt,
        "magic-empty.part": b"",
        "version-1.part": descriptor_of(version=u16(1)),
        "version-256-unsealed.part": part[:4] + u16(256) + part[6:],
        "size-no-version.part": part[:5],
        "size-header-cut.part": part[:40],
        "size-cut.part": part[:-1],
        "size-more.part": part + b"\0",
        "size-of-nothing.part": part[:8] + u32(64) + part[12:64],
        "checksum-sql.part": part.replace(b"SELECT id", b"SELECT ip"),
        "checksum-index.part": part[:12] + u32(0) + part[16:],
        "checksum-seal.part": part[:-1] + bytes([part[-1] ^ 1]),
        "payload-flags.part": descriptor_of(flags=u16(2)),
        "payload-reserved.part": descriptor_of(reserved=u32(1)),
        "payload-index.part": descriptor_of(index=u32(2)),
        "payload-no-parts.part": descriptor_of(index=u32(0), count=u32(0)),
        "payload-too-many-parts.part": descriptor_of(count=u32(65_537)),
        "payload-source.part": descriptor_of(source=b"\2"),
        "payload-uri-long.part": descriptor_of(uri=u32((1 << 32) - 1)),
        "payload-sql-not-utf8.part": descriptor_of(sql=sized(b"\xff")),
        "payload-range-2.part": descriptor_of(range=b"\2"),
        "payload-range-3.part": descriptor_of(range=b"\3" + u32(5) + u32(6) + b"\0"),
        "payload-partial-empty.part": descriptor_of(range=b"\2" + u32(6) + u32(5) + b"\0"),
        "payload-range-empty.part": descriptor_of(range=b"\1" + u32(5) + u32(5) + b"\0"),
        "payload-only-2.part": descriptor_of(range=b"\1" + u32(5) + u32(6) + b"\2"),
        "payload-left-over.part": descriptor_of(range=b"\0\0"),
        "payload-settings-cut.part": descriptor_of(settings=u32(200)),
        "limit-settings.part": descriptor_of(settings=u32(257)),
        "schema-left-over.part": descriptor_of(schema=sized(schema(field("i", "int8")) + b"\0")),
        "magic-part.receipt": part,
        "version-1.receipt": receipt_of(version=u16(1)),
        "size-79.receipt": receipt[:-1],
        "size-81.receipt": receipt + b"\0",
        "checksum-rows.receipt": receipt[:32] + u64(4) + receipt[40:],
        "payload-flags.receipt": receipt_of(flags=u16(1)),
        "payload-index.receipt": receipt_of(index=u32(2)),
    }
    return made
