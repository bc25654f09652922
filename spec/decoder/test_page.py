"""Checks the decoder of pages against the vectors, and the worked bytes of page.md. test_decoder.py
tests refusals and damaged bytes.
"""

import json
from pathlib import Path

import pytest

from cursor import Cursor, Refused
from make_vectors import VECTORS
from page import Page, decode_page
from page_writer import page
from schema import Field, decode_schema, field_words
from vectors_page import accepted_pages, nested_example, worked_example
from vectors_page_moved import accepted_moved
from writer import field, nullable, schema, u32

ACCEPT, REJECT = VECTORS / "accept", VECTORS / "reject"


def decode_container(data: bytes) -> tuple[list[Field], Page]:
    """vectors/README.md"""
    cursor = Cursor(data, short="schema")
    fields = decode_schema(cursor.bytes("schema"))
    return fields, decode_page(cursor.take(cursor.left(), "page"), fields)


@pytest.mark.parametrize("path", sorted(ACCEPT.glob("*.page")), ids=lambda path: path.name)
def test_accepted_page(path: Path):
    expected = json.loads(path.with_name(path.name + ".json").read_text())
    fields, page = decode_container(path.read_bytes())
    assert [field_words(field) for field in fields] == expected["schema"]
    assert page.sequence == expected["sequence"]
    assert page.edition == expected.get("edition", 0)
    assert page.rows == expected["rows"]


def test_every_refusal_of_the_page_has_vectors():
    names = {path.name.split("-")[0] for path in REJECT.glob("*.page")}
    text = (VECTORS.parent / "page.md").read_text().split("## 9.")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in cell.split("`")[1::2]} == names


def drawn(section: str) -> bytes:
    """The bytes of a section's last code block; two spaces begin a comment."""
    text = (VECTORS.parent / "page.md").read_text().split(section)[1].split("\n## ")[0]
    return bytes.fromhex(
        " ".join(line.split("  ")[0] for line in text.split("```")[-2].splitlines())
    )


def test_worked_bytes_of_the_page():
    made = worked_example().page
    flat = drawn("## 7.")
    assert made[: len(flat)] == flat
    assert not any(made[len(flat) : 4084])
    assert made[4084:] == bytes.fromhex("80 00 00 00 60 00 00 00 40 00 00 00")
    nested = drawn("## 8.")
    assert nested_example().page[64 : 64 + len(nested)] == nested


def test_equal_rows_are_equal_bytes():
    for vector in [*accepted_pages(), *accepted_moved()]:
        page = vector.page
        slots = [
            int.from_bytes(page[len(page) - 4 * i - 4 : len(page) - 4 * i], "little")
            for i in range(len(vector.rows))
        ]
        extents = [page[at : at + int.from_bytes(page[at : at + 4], "little")] for at in slots]
        for row, extent in zip(vector.rows, extents):
            for other, other_extent in zip(vector.rows, extents):
                assert (row == other) == (extent == other_extent)


def test_billions_of_items_that_take_no_bytes():
    fields = [field("l", "list", children=[nullable("item", "null")])]
    container = u32(len(schema(*fields))) + schema(*fields) + page(fields, [[[None] * 3]])
    assert decode_container(container)[1].rows == [[[None] * 3]]
    at = container.rindex(u32(3), 0, container.index(b"DRYP") + 64 + 16)
    with pytest.raises(Refused, match="^limit"):
        decode_container(container[:at] + u32((1 << 31) - 1) + container[at + 4 :])
