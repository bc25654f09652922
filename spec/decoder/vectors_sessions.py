"""Accepted and refused sessions: recordings of what one side or both sent on a connection
(protocol.md).
"""

from session_messages import *
from writer import *  # the vocabulary of this page


def accepted_sessions() -> dict[str, tuple[bytes, list[str]]]:
    """File name -> bytes and the names of the messages."""
    first, second = map(sent, CHUNKS)
    whole = ended(started() + progress() + first + progress() + second)
    empty = ended(started(statement=2, words=[]), statement=2)
    lone = x_chunk(9)
    third = started(
        statement=3, compression=4, level=-7, checksums=0, rows_known=2, bytes_known=0
    ) + sent(lone)
    third = ended(third, statement=3)
    jumbo = x_chunk(9, jumbo=True, checksummed=True)
    statement = "started progress chunk progress chunk finished".split()
    return {
        "nothing.session": (welcome(), ["welcome"]),
        "one-statement.session": (welcome() + whole, ["welcome", *statement]),
        "three-statements.session": (
            welcome() + whole + empty + third,
            ["welcome", *statement, "started", "finished", "started", "chunk", "finished"],
        ),
        "no-rows.session": (welcome() + ended(started()), ["welcome", "started", "finished"]),
        "jumbo.session": (
            welcome() + ended(started() + sent(jumbo)),
            ["welcome", "started", "chunk", "finished"],
        ),
        "refused-connection.session": (
            error(kind=2, text="the token is wrong", hint="ask for one"),
            ["error"],
        ),
        "failed-before-started.session": (
            welcome() + error(1, 3, "42P01", "no such table") + ended(started(2), statement=2),
            ["welcome", "error", "started", "finished"],
        ),
        "failed-while-running.session": (
            welcome() + started() + first + error(1, 4, "22012", "division by zero"),
            ["welcome", "started", "chunk", "error"],
        ),
        "cancelled.session": (
            welcome()
            + started()
            + error(1, 7, "57014", "cancelled")
            + ended(started(2), statement=2),
            ["welcome", "started", "error", "started", "finished"],
        ),
        "connection-ends-in-statement.session": (
            welcome() + started() + first + error(0, 8, "57P01", "shutting down"),
            ["welcome", "started", "chunk", "error"],
        ),
        "compression-auto.session": (
            welcome() + ended(started(compression=0) + first),
            ["welcome", "started", "chunk", "finished"],
        ),
        "reports.session": (
            welcome() + ended(started() + report() + first + report(prices=())),
            ["welcome", "started", "report", "chunk", "report", "finished"],
        ),
        "states.session": (
            welcome()
            + ended(started() + first + state_sent(STATE) + sent(BEHIND))
            + ended(started(2) + state_sent(STATE), statement=2),
            [
                "welcome",
                "started",
                "chunk",
                "state",
                "chunk",
                "finished",
                "started",
                "state",
                "finished",
            ],
        ),
        "instance.session": (welcome(3, INSTANCE) + whole, ["welcome", *statement]),
        "instance-none.session": (welcome(3, bytes(16)) + whole, ["welcome", *statement]),
        "spec-welcome.session": (welcome(3, INSTANCE, server="d"), ["welcome"]),
        "goodbye.requests": (hello() + GOODBYE, ["hello", "goodbye"]),
        "closed-without-goodbye.requests": (hello(), ["hello"]),
        "queries.requests": (
            hello(token="secret")
            + query()
            + query(2, parameters=parameters(), compression=4, level=-3, checksums=2, flags=1)
            + query(9, limits=(4096, 0, 4096))
            + GOODBYE,
            ["hello", "query", "query", "query", "goodbye"],
        ),
        "cancels.requests": (
            hello() + cancel(5) + query() + cancel(1) + cancel(1) + query(2) + GOODBYE,
            "hello cancel query cancel cancel query goodbye".split(),
        ),
        "versions.requests": (hello(versions=(0, 9)) + GOODBYE, ["hello", "goodbye"]),
        "versions-2-to-3.requests": (hello(versions=(2, 3)) + GOODBYE, ["hello", "goodbye"]),
        "versions-4-to-9.requests": (hello(versions=(4, 9)) + GOODBYE, ["hello", "goodbye"]),
        "versions-3-to-9.requests": (hello(versions=(3, 9)) + GOODBYE, ["hello", "goodbye"]),
        "spec-hello.requests": (hello(client="t"), ["hello"]),
        "checksums.exchange": (
            exchange(query(), progress() + first + state_sent(STATE) + sent(BEHIND) + report()),
            "welcome started progress chunk state chunk report finished".split(),
        ),
        "parameters-and-limits.exchange": (
            exchange(
                query(
                    parameters=parameters(), limits=(4096, 4096, 1 << 20), compression=4, level=-3
                ),
                first,
            ),
            "welcome started chunk finished".split(),
        ),
        "plan-only.exchange": (
            exchange(query(checksums=2, flags=1), planned_only=1, checksums=0),
            "welcome started finished".split(),
        ),
    }


def rejected_sessions() -> dict[str, bytes]:
    vectors = [*(rejected_answers()), *rejected_requests(), *rejected_exchanges()]
    assert len(dict(vectors)) == len(vectors), "a name is used twice"
    return dict(vectors)


def rejected_answers():
    first, second = map(sent, CHUNKS)
    begun = welcome() + started()
    whole = ended(begun + first + second)
    trailer = finished(begun + first + second)
    answers = {
        "frame-reserved": begun[:5] + b"\1" + begun[6:],
        "frame-welcome-too-large": u32((64 << 10) + 1) + b"\x81" + bytes(3),
        "frame-started-too-large": welcome() + u32((16 << 20) + 1) + b"\x82" + bytes(3),
        "frame-chunk-too-large": begun + u32((256 << 20) + 1) + b"\x83" + bytes(3),
        "kind-0": begun + message(0x00),
        "kind-from-client": begun + cancel(1),
        "order-started-before-welcome": started(),
        "order-welcome-twice": welcome() + welcome(),
        "order-chunk-before-started": welcome() + first,
        "order-chunk-after-finished": whole + first,
        "order-progress-before-started": welcome() + progress(),
        "order-finished-before-started": welcome() + finished(),
        "order-finished-twice": whole + trailer,
        "order-started-twice": begun + started(2),
        "order-statement-not-risen": ended(whole + started(1)),
        "order-statement-0": welcome() + started(0) + finished(statement=0),
        "order-progress-of-another": begun + progress(2),
        "order-finished-of-another": begun + finished(statement=2),
        "order-error-of-another": begun + error(2, 4),
        "order-error-of-a-past-one": whole + error(1, 4),
        "order-error-of-a-statement-before-welcome": error(1, 3),
        "order-after-connection-error": ended(welcome() + error() + started()),
        "payload-welcome-cut": message(0x81, u16(2), u32(4), b"dra"),
        "payload-welcome-utf8": message(0x81, u16(2), string(b"\xff")),
        "payload-welcome-more": message(0x81, u16(2), string("d"), b"\0"),
        "payload-welcome-2-with-instance": welcome(2, INSTANCE),
        "payload-welcome-3-without-instance": welcome(3),
        "payload-welcome-3-instance-cut": welcome(3, INSTANCE[:15]),
        "payload-welcome-3-more": welcome(3, INSTANCE, after=b"\0"),
        "payload-started-more": ended(welcome() + started(after=b"\0")),
        "payload-rows-known-3": ended(welcome() + started(rows_known=3)),
        "payload-bytes-known-3": ended(welcome() + started(bytes_known=3)),
        "payload-compression-5": ended(welcome() + started(compression=5)),
        "payload-zstd-level-23": ended(welcome() + started(compression=4, level=23)),
        "payload-checksums-2": ended(welcome() + started(checksums=2)),
        "payload-report-of-two-columns": ended(begun + report(columns=[(1, 2), (3, 4)])),
        "payload-report-of-no-columns": ended(begun + report(columns=[])),
        "payload-report-cut": begun + report(columns=[], count=1 << 31),
        "order-report-of-another": begun + report(2),
        "order-report-before-started": welcome() + report(),
        "payload-progress-cut": begun + message(0x84, u32(1), u64(1)),
        "payload-finished-cut": begun + message(0x85, u32(1), u8(0), u64(0), u64(0), u32(0)),
        "payload-error-kind-0": begun + error(1, 0),
        "payload-error-sqlstate": begun + error(1, 4, "4270"),
        "payload-error-utf8": begun + error(1, 4, text=b"\xff"),
        "version-0": welcome(0),
        "version-1": welcome(1),
        "sequence-from-1": ended(begun + second),
        "sequence-gap": ended(begun + first + sent(x_chunk(5, sequence=2, checksummed=True))),
        "sequence-repeated": ended(begun + first + first),
        "order-state-before-started": welcome() + state_sent(STATE),
        "order-state-after-finished": whole + state_sent(STATE),
        "frame-state-too-large": begun + u32((16 << 20) + 1) + b"\x88" + bytes(3),
        "sequence-state-from-1": ended(begun + state_sent(STATE[:8] + u64(1) + STATE[16:])),
        "sequence-state-repeated": ended(begun + state_sent(STATE) + state_sent(STATE)),
        "state-of-the-last-statement": ended(begun + state_sent(STATE))
        + started(2, checksums=0)
        + sent(STATELESS),
        "finished-state-lost": begun
        + first
        + second
        + finished(begun + first + second + state_sent(STATE)),
        "finished-state-not-counted": begun + first + second + state_sent(STATE) + trailer,
        "checksum-of-state": begun + state_sent(patched(STATE, 128, b"\6")),
        "size-of-state": begun + state_sent(STATE + b"\0"),
        "size-of-state-header": begun + state_sent(STATE[:63]),
        "magic-of-state": begun + state_sent(CHUNKS[0]),
        "finished-rows": ended(begun + first + second, rows=5),
        "finished-chunks": ended(begun + first + second, count=3),
        "finished-digest": ended(begun + first + second, digest=0),
        "finished-last-chunk-lost": begun + first + trailer,
        "finished-digest-of-nothing": ended(begun, digest=1),
        "finished-another-schema": welcome()
        + started(words=[field("x", "uint32")])
        + first
        + second
        + trailer,
        "finished-another-name": welcome()
        + started(words=[field("y", "int32")])
        + first
        + second
        + trailer,
        "finished-another-estimate": welcome() + started(rows_known=2) + first + second + trailer,
        "finished-progress-lost": begun
        + first
        + second
        + finished(begun + progress() + first + second),
        "finished-report-lost": begun
        + first
        + second
        + finished(begun + first + second + report()),
        "finished-another-time": patched(whole, len(whole) - 9, b"\1"),
        "payload-planned-only-2": ended(begun, planned_only=2),
        "query-planned-only": ended(begun, planned_only=1),
        "query-another": ended(welcome() + started(asked=query(2, limits=LIMITS)) + first),
        "query-another-statement": whole + started(2, asked=query(limits=LIMITS)),
        "checksum-not-there": begun + sent(x_chunk(7)),
        "checksum-of-state-not-there": begun
        + state_sent(patched(patched(STATE, 6, b"\0"), 28, u32(0))),
        "cut-nothing": b"",
        "cut-frame-header": whole[:7],
        "cut-payload": whole[:-1],
        "cut-after-started": begun,
        "cut-after-chunk": begun + first,
        "cut-before-finished": begun + first + second,
        "checksum-of-chunk": ended(begun + sent(patched(CHUNKS[0], 128, b"\6"))),
        "size-of-chunk": ended(begun + sent(CHUNKS[0] + b"\0")),
        "limit-of-chunk": ended(begun + sent(patched(CHUNKS[0], 24, u32(16 << 20)))),
        "magic-of-chunk": ended(begun + sent(b"dryc" + CHUNKS[0][4:])),
        "truncated-chunk-of-another-schema": ended(
            welcome() + started(words=X + X) + sent(x_chunk(1, checksummed=True))
        ),
        "schema-of-started": ended(welcome() + started(schema_bytes=u32(1))),
    }
    return [(f"{name}.session", data) for name, data in answers.items()]


def rejected_requests():
    two_rows, cut_chunk = parameters(1, 2), parameters()[:-1]
    requests = {
        "frame-reserved": hello() + GOODBYE[:5] + b"\0\0\1",
        "frame-hello-too-large": u32((64 << 10) + 1) + b"\1" + bytes(3),
        "frame-query-too-large": hello() + u32((16 << 20) + 1) + b"\2" + bytes(3),
        "kind-0": hello() + message(0x00),
        "kind-04-marks": hello() + message(0x04, u32(1)),
        "kind-from-server": hello() + welcome(),
        "order-query-before-hello": query(),
        "order-goodbye-before-hello": GOODBYE,
        "order-hello-twice": hello() + hello(),
        "order-after-goodbye": hello() + GOODBYE + query(),
        "order-statement-0": hello() + query(0),
        "order-statement-repeated": hello() + query(3) + query(3),
        "order-statement-fallen": hello() + query(3) + query(2),
        "magic-lower": hello(magic=b"dray"),
        "magic-http": message(0x01, b"GET / HTTP/1.1\r\n"),
        "version-0": hello(versions=(0, 0)),
        "version-1": hello(versions=(1, 1)),
        "version-least-above-most": hello(versions=(3, 2)),
        "payload-hello-cut": message(0x01, b"DRAY", u16(2), u16(2), u32(0)),
        "payload-hello-more": message(0x01, b"DRAY", u16(2), u16(2), string(""), string(""), b"\0"),
        "payload-token-utf8": hello(token=b"\xff"),
        "payload-sql-utf8": hello() + query(sql=b"SELECT \xff"),
        "payload-query-more": hello() + query(after=b"\0"),
        "payload-chunk-bytes-max-small": hello() + query(limits=(4095, 1 << 20, 1 << 20)),
        "payload-chunk-bytes-max-large": hello() + query(limits=(1 << 32, 1 << 20, 1 << 32)),
        "payload-row-bytes-max-small": hello() + query(limits=(8192, 1 << 20, 8191)),
        "payload-row-bytes-max-large": hello() + query(limits=(8192, 1 << 20, 1 << 32)),
        "payload-compression-5": hello() + query(compression=5),
        "payload-zstd-level-minus-8": hello() + query(compression=4, level=-8),
        "payload-level-without-zstd": hello() + query(compression=1, level=23),
        "payload-checksums-3": hello() + query(checksums=3),
        "payload-flags-64": hello() + query(flags=64),
        "payload-cancel-cut": hello() + message(0x03, u16(1)),
        "payload-cancel-more": hello() + message(0x03, u32(1), b"\0"),
        "payload-goodbye-more": hello() + message(0x05, b"\0"),
        "payload-parameters-2-rows": hello() + query(parameters=two_rows),
        "payload-parameters-cut": hello() + query(parameters=b"\1"),
        "size-of-parameters": hello() + query(parameters=cut_chunk),
        "schema-of-parameters": hello() + query(parameters=container(u32(1), b"")),
        "cut-nothing": b"",
        "cut-frame-header": hello()[:7],
        "cut-payload": hello() + query()[:-1],
    }
    return [(f"{name}.requests", data) for name, data in requests.items()]


def rejected_exchanges():
    first = sent(CHUNKS[0])
    other = query(sql="SELECT 2")
    exchanges = {
        "query-heard-with-other-sql": exchange(query(), first, heard=other),
        "query-heard-with-other-parameters": exchange(
            query(parameters=parameters(1)), first, heard=query(parameters=parameters(2))
        ),
        "query-heard-with-other-limits": exchange(
            query(), first, heard=query(limits=(1 << 20, 64 << 20, 255 << 20))
        ),
        "query-heard-without-parameters": exchange(
            query(parameters=parameters()), first, heard=query()
        ),
        "query-heard-as-plan-only": exchange(query(), heard=query(flags=1), planned_only=1),
        "query-planned-and-not-run": exchange(query(), planned_only=1),
        "query-run-and-not-planned": exchange(query(flags=1)),
        "query-chunk-of-a-plan": exchange(query(flags=1), first, planned_only=1),
        "query-without-checksums": exchange(query(checksums=1), sent(x_chunk(7)), checksums=0),
    }
    return [(f"{name}.exchange", data) for name, data in exchanges.items()]
