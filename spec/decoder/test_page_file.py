"""Checks the decoder of page files against the vectors, and the worked bytes of page-file.md.
test_decoder.py tests refusals and damaged bytes.
"""

import json
from pathlib import Path

import pytest

from cursor import Refused
from make_vectors import VECTORS
from page_file import FOOTER, UNIT, decode_page_file
from page_file_writer import page_file
from page_writer import page
from schema import field_words
from vectors_page import WORKED, WORKED_ROWS
from vectors_page_file import worked_file

ACCEPT, REJECT = VECTORS / "accept", VECTORS / "reject"
SPECIFICATION = VECTORS.parent / "page-file.md"


@pytest.mark.parametrize("path", sorted(ACCEPT.glob("*.pages")), ids=lambda path: path.name)
def test_accepted_file(path: Path):
    expected = json.loads(path.with_name(path.name + ".json").read_text())
    file = decode_page_file(path.read_bytes())
    assert [field_words(field) for field in file.fields] == expected["schema"]
    assert file.rows == [row for page in expected["pages"] for row in page]
    assert file.pages == [len(page) for page in expected["pages"]]
    assert file.key == expected["key"]
    assert [[f"{hash:016x}", ordinal] for hash, ordinal in file.index] == expected["index"]


def test_every_refusal_of_the_file_has_vectors():
    text = SPECIFICATION.read_text().split("## 9.")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = {name for cell in cells for name in cell.split("`")[1::2]}
    assert names <= {path.name.split("-")[0] for path in REJECT.glob("*.pages")}


def test_every_cut_is_refused():
    data = worked_file().data()
    for end in [*range(70), *range(len(data) - FOOTER - 70, len(data)), *range(0, len(data), 97)]:
        with pytest.raises(Refused) as refused:
            decode_page_file(data[:end])
        assert refused.value.name in ("magic", "cut"), end


def test_regular_page_of_another_size_is_refused():
    def file(size: int) -> bytes:
        pages = [
            page(WORKED, WORKED_ROWS, page_bytes=bytes, sequence=i, checksummed=True)
            for i, bytes in enumerate([UNIT, size])
        ]
        return page_file(WORKED, [WORKED_ROWS, WORKED_ROWS], page_data=pages)

    assert decode_page_file(file(UNIT)).rows == WORKED_ROWS * 2
    with pytest.raises(Refused) as refused:
        decode_page_file(file(2 * UNIT))
    assert refused.value.name == "page"


def test_every_changed_byte_is_refused():
    data = worked_file().data()
    for at in [*range(0, 200), *range(UNIT - 20, UNIT + 300), *range(2 * UNIT - 20, len(data))]:
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        with pytest.raises(Refused):
            decode_page_file(bytes(damaged))


def test_worked_bytes_of_the_file():
    data = worked_file().data()
    text = SPECIFICATION.read_text().split("## 8.")[1].split("\n## ")[0].split("```")[1]
    start, rest = (
        bytes.fromhex(" ".join(line.split("  ")[0] for line in part.splitlines()))
        for part in text.split("… zeros up to 4096, the page up to 8192, then")
    )
    assert data[: len(start)] == start
    assert not any(data[len(start) : UNIT])
    assert data[2 * UNIT :] == rest
