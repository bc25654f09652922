"""Accepted and refused recordings of plans of parts (protocol.md section 12), and descriptors of a
Dray server's parts (partitions.md section 2).
"""

from session_messages import *
from vectors_partition import PLAN, descriptor_of, place, sealed, sized
from writer import *  # the vocabulary of this page

PASS = "pass-" + bytes(range(72)).hex()
TICKET = bytes(range(100, 232))
UNKNOWN = (1 << 64) - 1


def plan(
    statement=1, sql="SELECT 1", parameters=b"", parts_max=2, lease_ms=600_000, after=b""
) -> bytes:
    fields = string(sql) + string(parameters) + u32(parts_max) + u64(lease_ms)
    return message(0x06, u32(statement), fields, after)


def part(statement=1, ticket=TICKET, after=b"", **fields) -> bytes:
    return message(0x07, query(statement, **fields)[8:], string(ticket), after)


def planned(
    asked: bytes,
    statement=1,
    schema_bytes=None,
    parts=((60, UNKNOWN, TICKET), (40, 160, TICKET[::-1])),
    count=None,
    text=PASS,
    reason="",
    digest=None,
    after=b"",
) -> bytes:
    schema_bytes = schema(*X) if schema_bytes is None else schema_bytes
    fields = u32(statement) + u32(crc32c(asked[8:])) + string(schema_bytes) + string(reason)
    fields += PLAN + u64(1_800_000_000_000_000) + string(text)
    fields += u32(len(parts) if count is None else count)
    fields += b"".join(u64(rows) + u64(size) + string(ticket) for rows, size, ticket in parts)
    digest = crc32c(fields) if digest is None else digest
    return message(0x89, fields, u32(digest), after)


def of_version_4(asked: bytes, answers: bytes, version=4) -> bytes:
    requests = hello(versions=(2, 4)) + asked + GOODBYE
    return string(requests) + welcome(version, INSTANCE) + answers


def accepted_plans() -> dict[str, tuple[bytes, list[str]]]:
    greeting = hello(versions=(2, 4))
    first = sent(CHUNKS[0])
    one = plan(sql="SELECT 2", parameters=parameters(), parts_max=0, lease_ms=1)
    lone = planned(one, parts=[(UNKNOWN, UNKNOWN, b"\1")], reason="it joins", text="pass-")
    read = part(2, checksums=1, compression=4, level=3)
    answer = started(2, asked=read) + first
    return {
        "version-4.session": (welcome(4, INSTANCE), ["welcome"]),
        "plans.requests": (
            greeting
            + plan()
            + cancel(1)
            + plan(3, parts_max=65_536)
            + query(4)
            + part(5)
            + GOODBYE,
            "hello plan cancel plan query part goodbye".split(),
        ),
        "largest-ticket.requests": (greeting + part(ticket=bytes(4096)), ["hello", "part"]),
        "plan.exchange": (of_version_4(plan(), planned(plan())), ["welcome", "planned"]),
        "plan-of-one-part.exchange": (of_version_4(one, lone), ["welcome", "planned"]),
        "plan-that-fails.exchange": (
            of_version_4(plan(), error(1, 3, "42P01", "no such table")),
            ["welcome", "error"],
        ),
        "plan-then-part.exchange": (
            of_version_4(
                plan() + read,
                planned(plan()) + ended(answer, statement=2),
            ),
            "welcome planned started chunk finished".split(),
        ),
        "part-refused.exchange": (
            of_version_4(part(), error(1, 2, "28000", "the ticket was changed")),
            ["welcome", "error"],
        ),
    }


def rejected_plans() -> dict[str, bytes]:
    greeting = hello(versions=(2, 4))
    asked = plan()
    good = planned(asked)
    requests = {
        "kind-89": greeting + message(0x89),
        "version-8": hello(versions=(8, 9)),
        "order-plan-before-version-4": hello(versions=(2, 3)) + plan(),
        "order-part-before-version-4": hello(versions=(3, 3)) + part(),
        "order-plan-before-hello": plan(),
        "order-plan-statement-0": greeting + plan(0),
        "order-part-statement-repeated": greeting + plan(2) + part(2),
        "payload-plan-parts": greeting + plan(parts_max=65_537),
        "payload-plan-more": greeting + plan(after=b"\0"),
        "payload-plan-cut": greeting + message(0x06, u32(1), string("SELECT 1"), u32(0), u32(2)),
        "payload-part-more": greeting + part(after=b"\0"),
        "payload-part-cut": greeting + message(0x07, query()[8:]),
        "payload-part-flags": greeting + part(flags=1),
        "limit-ticket-empty": greeting + part(ticket=b""),
        "limit-ticket-large": greeting + part(ticket=bytes(4097)),
        "cut-plan": greeting + plan()[:-1],
    }
    exchanges = {
        "order-planned-answers-a-query": of_version_4(query(), planned(query())),
        "order-planned-answers-a-part": of_version_4(part(), planned(part())),
        "order-started-answers-a-plan": of_version_4(asked, ended(started(asked=asked))),
        "order-planned-twice": of_version_4(asked, good + good),
        "query-planned-another": of_version_4(asked, planned(plan(sql="SELECT 2"))),
        "query-part-with-another-ticket": of_version_4(
            part(), ended(started(asked=part(ticket=TICKET[1:])))
        ),
        "finished-planned-digest": of_version_4(asked, planned(asked, digest=0)),
        "finished-planned-ticket": of_version_4(asked, good[:-5] + b"\0" + good[-4:]),
        "payload-planned-no-parts": of_version_4(asked, planned(asked, parts=[])),
        "payload-planned-too-many": of_version_4(asked, planned(asked, count=65_537)),
        "payload-planned-cut": of_version_4(asked, planned(asked, count=3)),
        "payload-planned-more": of_version_4(asked, planned(asked, after=b"\0")),
        "payload-planned-pass": of_version_4(asked, planned(asked, text="s3cret")),
        "payload-planned-pass-digits": of_version_4(asked, planned(asked, text="pass-0g")),
        "payload-planned-pass-long": of_version_4(asked, planned(asked, text="pass-" + "0" * 4092)),
        "limit-planned-ticket": of_version_4(asked, planned(asked, parts=[(1, 1, b"")])),
        "schema-planned": of_version_4(asked, planned(asked, schema_bytes=u32(1))),
        "cut-before-planned": of_version_4(asked, good[:-1]),
    }
    answers = {
        "version-8": welcome(8, INSTANCE),
        "kind-8c": welcome(4, INSTANCE) + message(0x8C),
        "order-planned-unasked": welcome(4, INSTANCE) + planned(query(limits=LIMITS)),
        "payload-welcome-4-without-instance": welcome(4),
    }
    return {
        f"{name}.{kind}": data
        for kind, group in (("requests", requests), ("exchange", exchanges), ("session", answers))
        for name, data in group.items()
    }


def dray_part(token=PASS, ticket=TICKET, after=b"") -> bytes:
    """The descriptor of a Dray server's part."""
    nothing = dict.fromkeys(
        ("numeric", "nonfinite", "server", "settings", "snapshot", "snapshot_digest", "relations"),
        b"",
    )
    return descriptor_of(
        source=b"\2",
        uri=sized("dray://db:7117"),
        range=sized(token) + sized(ticket) + after,
        **nothing,
    )


def accepted_dray_parts() -> dict[str, tuple[bytes, dict]]:
    members = place(1, 2) | {"pass": PASS, "ticket": TICKET.hex()}
    short = members | {"pass": "pass-", "ticket": "00"}
    return {
        "dray.part": (dray_part(), members),
        "dray-shortest.part": (dray_part("pass-", b"\0"), short),
    }


def rejected_dray_parts() -> dict[str, bytes]:
    whole = dray_part()
    return {
        "payload-source-3.part": descriptor_of(source=b"\3"),
        "payload-dray-pass.part": dray_part("s3cret"),
        "payload-dray-left-over.part": dray_part(after=b"\0"),
        "payload-dray-without-ticket.part": sealed_again(whole[: -32 - 4 - len(TICKET)]),
        "limit-dray-ticket-empty.part": dray_part(ticket=b""),
        "limit-dray-ticket-large.part": dray_part(ticket=bytes(4097)),
        "checksum-dray-ticket.part": whole[:-33] + bytes([whole[-33] ^ 1]) + whole[-32:],
    }


def sealed_again(body: bytes) -> bytes:
    return sealed(body[:8] + u32(len(body) + 32) + body[12:], 32)
