"""Accepted and refused recordings of results that travel as pages (protocol.md section 13)."""

from page_writer import page
from session_messages import *
from writer import *  # the vocabulary of this page

STANDARD = 256 << 10
EITHER, PAGES = 4, 2  # the flags of a query
OBJECTS = [[7], [-1], [2]]


def packed(sequence=0, rows=OBJECTS, words=X, page_bytes=STANDARD, checksummed=True, **more):
    """A page of the standard size without the zeros in the middle."""
    whole = page(
        words,
        rows,
        page_bytes=page_bytes,
        sequence=sequence,
        checksummed=checksummed,
        **more,
    )
    end = int.from_bytes(whole[24:28], "little")
    return whole[:end] + whole[page_bytes - 4 * len(rows) :]


def paged(data: bytes) -> bytes:
    return message(0x8A, data)


def damaged(at: int, by: bytes, **made) -> bytes:
    """A page without a checksum of which these bytes are others."""
    data = packed(checksummed=False, **made)
    return data[:at] + by + data[at + len(by) :]


def of_version_5(asked: bytes, answers: bytes, version=5) -> bytes:
    requests = hello(versions=(2, 5)) + asked + GOODBYE
    return string(requests) + welcome(version, INSTANCE) + answers


def answered(flags: int, *units: bytes, words=X, checksums=1, **trailer) -> bytes:
    asked = query(flags=flags)
    begun = started(asked=asked, words=words, checksums=checksums)
    return of_version_5(asked, ended(begun + b"".join(units), **trailer))


def accepted_session_pages() -> dict[str, tuple[bytes, list[str]]]:
    text = [field("s", "utf8")]
    large = packed(rows=[["x" * STANDARD]], words=text, page_bytes=2 * STANDARD, large=True)
    moved = packed(moved=[2, 0, 1], edition=3)
    mixed = paged(packed()), sent(CHUNKS[1]), paged(packed(2))
    return {
        "version-5.session": (welcome(5, INSTANCE), ["welcome"]),
        "layouts.requests": (
            hello(versions=(2, 5)) + query(flags=EITHER) + query(2, flags=PAGES + 1) + GOODBYE,
            "hello query query goodbye".split(),
        ),
        "page.exchange": (
            answered(PAGES, paged(packed())),
            "welcome started page finished".split(),
        ),
        "pages-and-chunks.exchange": (
            answered(EITHER, *mixed),
            "welcome started page chunk page finished".split(),
        ),
        "chunks-for-either.exchange": (
            answered(EITHER, sent(CHUNKS[0])),
            "welcome started chunk finished".split(),
        ),
        "page-without-checksum.exchange": (
            answered(PAGES, paged(packed(checksummed=False)), checksums=0),
            "welcome started page finished".split(),
        ),
        "page-large.exchange": (
            answered(PAGES, paged(large), words=text),
            "welcome started page finished".split(),
        ),
        "page-moved.exchange": (
            answered(PAGES, paged(moved)),
            "welcome started page finished".split(),
        ),
    }


def rejected_session_pages() -> dict[str, bytes]:
    greeting = hello(versions=(2, 5))
    good, whole = paged(packed()), page(X, OBJECTS, page_bytes=STANDARD)
    text = [field("s", "utf8")]
    larger = packed(rows=[["x"]], words=text, page_bytes=2 * STANDARD, large=True)
    padded = damaged(68, b"\1", rows=[["ab"]], words=text)
    asked = query(flags=PAGES)
    requests = {
        "order-layout-before-version-5": hello(versions=(2, 4)) + query(flags=EITHER),
        "payload-layout-3": greeting + query(flags=6),
        "payload-part-layout": greeting
        + message(0x07, query(flags=EITHER)[8:], string(bytes(range(100)))),
    }
    exchanges = {
        "order-page-of-version-4": of_version_5(
            query(), ended(started(asked=query()) + good), version=4
        ),
        "order-page-after-finished": answered(PAGES, good) + good,
        "query-page-of-chunks": answered(0, good),
        "query-chunk-of-pages": answered(PAGES, sent(CHUNKS[0])),
        "query-page-of-a-plan": answered(PAGES + 1, good, planned_only=1),
        "sequence-page-1": answered(PAGES, paged(packed(1))),
        "sequence-page-as-chunk": answered(EITHER, sent(CHUNKS[0]), good),
        "checksum-page-without": answered(PAGES, paged(packed(checksummed=False))),
        "checksum-page": answered(PAGES, paged(packed()[:-1] + b"\1")),
        "size-page-of-4-kib": answered(PAGES, paged(packed(page_bytes=4096))),
        "size-page-of-512-kib": answered(PAGES, paged(packed(page_bytes=2 * STANDARD))),
        "size-page-large-not-next": answered(PAGES, paged(larger), words=text),
        "size-page-whole": answered(PAGES, paged(whole), checksums=0),
        "size-page-cut": answered(PAGES, paged(packed()[:-4])),
        "size-page-header": answered(PAGES, paged(packed()[:63])),
        "magic-page": answered(PAGES, paged(damaged(0, b"DRYC")), checksums=0),
        "slot-page": answered(PAGES, paged(damaged(96, u32(72))), checksums=0),
        "padding-page": answered(PAGES, paged(padded), words=text, checksums=0),
        "finished-page-rows": answered(PAGES, good, rows=2),
        "finished-page-count": answered(PAGES, good, count=2),
        "frame-page-larger-than-a-row": of_version_5(
            asked, started(asked=asked) + u32((256 << 20) + 1) + b"\x8a\0\0\0"
        ),
        "cut-page": of_version_5(asked, (started(asked=asked) + good)[:-1]),
    }
    return {
        f"{name}.{kind}": data
        for kind, group in (("requests", requests), ("exchange", exchanges))
        for name, data in group.items()
    }
