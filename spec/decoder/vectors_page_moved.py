"""Changed pages, accepted and refused (page.md section 11)."""

from collections.abc import Iterator

from page_writer import dead, page
from vectors_page import CUSTOMER, CUSTOMER_ROWS, WORKED, WORKED_ROWS, Accepted, X, accept
from writer import u16, u32


def accepted_moved() -> Iterator[Accepted]:
    yield accept("edition", "changed in place", X, [[7], [8]], edition=1)
    yield accept(
        "edition-most",
        "the next edition is 0",
        WORKED,
        WORKED_ROWS,
        edition=(1 << 32) - 1,
        checksummed=True,
    )
    yield accept("edition-large", "a large page is changed, too", X, [[7]], edition=2, large=True)
    yield accept(
        "moved-slots",
        "objects in another order than their slots",
        WORKED,
        WORKED_ROWS,
        moved=[2, 0, 1],
        edition=1,
        checksummed=True,
    )
    yield accept(
        "moved-dead",
        "dead extents first, between and last; one of 8 bytes",
        WORKED,
        WORKED_ROWS,
        moved=[dead(40), 1, dead(8), dead(32), 2, 0, dead(64)],
        edition=3,
    )
    yield accept(
        "moved-not-needed", "the order is that of the slots", WORKED, WORKED_ROWS, moved=[0, 1, 2]
    )
    yield accept(
        "moved-one-object",
        "a moved page of one object",
        CUSTOMER,
        CUSTOMER_ROWS,
        moved=[dead(8), 0],
    )
    yield accept(
        "moved-no-fields", "extents of 8 bytes", [], [[], [], []], moved=[2, 1, dead(8), 0]
    )
    yield accept(
        "moved-full",
        "no byte between the extents and the slots",
        X,
        [[i] for i in range(334)],
        moved=[*reversed(range(334)), dead(8), dead(16)],
        edition=1,
    )
    yield accept(
        "moved-equal-objects",
        "two slots to equal objects",
        CUSTOMER,
        CUSTOMER_ROWS * 2,
        moved=[1, dead(112), 0],
        edition=1,
    )


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def moved_refused():
    last_first = page(WORKED, WORKED_ROWS, moved=[2, 0, 1])  # at 64, 112, 144, end at 176
    for name, at, new in (
        ("flags-moved-and-undefined", 6, u16(4 | 8)),
        ("reserved-moved", 36, b"\1"),
        ("slot-moved-to-header", 4092, u32(0)),
        ("slot-moved-into-object", 4092, u32(120)),
        ("slot-moved-unaligned", 4092, u32(113)),
        ("slot-moved-to-objects-end", 4092, u32(176)),
        ("slot-moved-to-slots", 4092, u32(4084)),
        ("slot-moved-beyond", 4092, u32((1 << 32) - 8)),
        ("slot-moved-twice", 4092, u32(144)),
        ("slot-moved-twice-last", 4084, u32(112)),
        ("slot-not-flagged", 6, u16(0)),
        ("extent-moved-0", 112, u32(0)),
        ("extent-moved-less-than-record", 112, u32(24)),
        ("extent-moved-beyond-objects", 144, u32(40)),
        ("objects-moved-end-early", 24, u32(144)),
        ("padding-moved-page", 176, b"\1"),
        ("missing-moved", 144 + 8, b"\1a"),
    ):
        yield name, WORKED, patched(last_first, at, new)
    yield "extent-moved-cut", WORKED, patched(last_first, 24, u32(178))
    with_dead = page(WORKED, WORKED_ROWS, moved=[0, dead(48), 2, dead(8), 1])
    # Objects at 64, 144, 200; dead extents at 96 and 192; end at 232.
    for name, at, new in (
        ("slot-to-dead", 4092, u32(96)),
        ("slot-to-dead-of-8-bytes", 4088, u32(192)),
        ("extent-dead-0", 96, u32(1 << 31)),
        ("extent-dead-unaligned", 96, u32(1 << 31 | 44)),
        ("extent-dead-beyond-objects", 96, u32(1 << 31 | 144)),
        ("extent-dead-most", 96, u32((1 << 32) - 8)),
        ("padding-dead", 100, b"\1"),
        ("padding-dead-last", 143, b"\x80"),
        ("objects-fewer-live", 64, u32(1 << 31 | 32) + bytes(28)),
        ("objects-more-live", 96, page(WORKED, WORKED_ROWS)[128:176]),
    ):
        yield name, WORKED, patched(with_dead, at, new)
    yield "extent-dead-not-flagged", WORKED, patched(patched(with_dead, 6, u16(0)), 4088, u32(96))
    yield "objects-large-moved", X, page(X, [[7]], large=True, moved=[0])
    only_dead = page(X, [[7]], moved=[0, dead(8)])
    yield "objects-none-live", X, patched(only_dead, 64, u32(1 << 31 | 16) + bytes(12))
    summed = page(WORKED, WORKED_ROWS, moved=[2, 0, 1], edition=1, checksummed=True)
    yield "checksum-edition", WORKED, patched(summed, 32, u32(2))
    yield "checksum-moved", WORKED, patched(summed, 6, u16(1))
