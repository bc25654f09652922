"""Checks the decoder against the vectors, and the vectors against their declarations."""

import json
import os
import random
from chunk import Chunk, decode_chunk, take_states
from pathlib import Path

import pytest

from crc32c import crc32c
from cursor import Cursor, Refused
from header import Limits, decode_header
from make_vectors import VECTORS, files
from page_file import decode_page_file
from partition import DrayPart, decode_descriptor, decode_receipt
from protocol import check_client_session, check_exchange, check_server_session, standard_query
from session_messages import exchange
from session_messages import query as session_query
from schema import Field, decode_schema, field_words
from tables import Tables
from test_page import decode_container as decode_page_container
from values import column_values
from vectors_accept import worked_example
from vectors_partition import receipt_of
from vectors_state import worked_frame
from writer import ALL_MISSING, NONE_MISSING, chunk, constant, field, list_offsets, schema, u32, u64

ACCEPT, REJECT = VECTORS / "accept", VECTORS / "reject"
SESSION_QUERY = session_query()
SEED = int(os.environ.get("DRAY_SEED", random.SystemRandom().randrange(1 << 32)))


def named(path: Path) -> str:
    return path.name


def decode_container(data: bytes) -> tuple[list[Field], Chunk]:
    """Parts of a file of vectors/README.md."""
    cursor = Cursor(data, short="schema")
    fields = decode_schema(cursor.bytes("schema"))
    tables = Tables()
    chunk = take_states(cursor.take(cursor.left(), "chunk"), tables)
    return fields, decode_chunk(chunk, fields, tables=tables)


def exchange_parts(data: bytes) -> tuple[bytes, bytes]:
    """Parts of a file of vectors/README.md."""
    cursor = Cursor(data, short="cut")
    return cursor.bytes("requests"), cursor.take(cursor.left(), "answers")


def decode(path: Path, data: bytes):
    read = {
        ".chunk": decode_container,
        ".page": decode_page_container,
        ".pages": decode_page_file,
        ".session": lambda data: check_server_session(data, standard_query),
        ".requests": check_client_session,
        ".exchange": lambda data: check_exchange(*exchange_parts(data)),
        ".part": decode_descriptor,
        ".receipt": decode_receipt,
    }
    return read[path.suffix](data)


def accepted_paths() -> list[Path]:
    return [path for path in sorted(ACCEPT.iterdir()) if path.suffix != ".json"]


@pytest.mark.parametrize("path", sorted(ACCEPT.glob("*.chunk")), ids=named)
def test_accepted_chunk(path: Path):
    expected = json.loads(path.with_suffix(".json").read_text())
    fields, chunk = decode_container(path.read_bytes())
    assert [field_words(field) for field in fields] == expected["schema"]
    assert chunk.header.sequence == expected["sequence"]
    assert chunk.header.rows == expected["rows"]
    assert chunk.header.decoded_bytes == expected["decoded_bytes"]
    assert [column_values(column) for column in chunk.columns] == expected["columns"]


@pytest.mark.parametrize(
    "path",
    [path for path in accepted_paths() if path.suffix in (".session", ".requests", ".exchange")],
    ids=named,
)
def test_accepted_session(path: Path):
    expected = json.loads(path.with_name(path.name + ".json").read_text())
    assert [message.name for message in decode(path, path.read_bytes())] == expected["messages"]


@pytest.mark.parametrize(
    "path", [*sorted(ACCEPT.glob("*.part")), *sorted(ACCEPT.glob("*.receipt"))], ids=named
)
def test_accepted_part(path: Path):
    expected = json.loads(path.with_name(path.name + ".json").read_text())
    found = decode(path, path.read_bytes())
    assert (found.plan.hex(), found.index, found.count) == (
        expected["plan"],
        expected["index"],
        expected["count"],
    )
    if path.suffix == ".receipt":
        assert (found.rows, f"{found.digest:016x}") == (expected["rows"], expected["digest"])
    elif isinstance(found.source, DrayPart):
        part = found.source
        assert (part.token, part.ticket.hex()) == (expected["pass"], expected["ticket"])
    elif found.source.range is None:
        assert "from" not in expected
    else:
        table = found.source.range
        assert (table.start, table.end) == (expected["from"], expected["to"])
        assert table.partial == expected.get("partial", False)


@pytest.mark.parametrize("path", sorted(REJECT.iterdir()), ids=named)
def test_rejected(path: Path):
    with pytest.raises(Refused) as refused:
        decode(path, path.read_bytes())
    assert refused.value.name == path.name.split("-")[0].split(".")[0], refused.value


def test_vectors_are_those_declared():
    made = files()
    published = {
        str(path.relative_to(VECTORS)): path.read_bytes()
        for folder in (ACCEPT, REJECT)
        for path in folder.iterdir()
    }
    assert made.keys() == published.keys()
    assert [path for path in made if made[path] != published[path]] == []


def test_every_refusal_of_the_specification_has_vectors():
    names = {path.name.split("-")[0] for path in REJECT.iterdir()}
    for page, section in (
        ("chunk.md", "## 9."),
        ("protocol.md", "## 8."),
        ("state.md", "## 6."),
        ("partitions.md", "## 7."),
    ):
        text = (VECTORS.parent / page).read_text().split(section)[1].split("\n## ")[0]
        cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
        assert {name for cell in cells for name in cell.split("`")[1::2]} <= names


def test_worked_bytes_of_the_specification():
    for page, section, bytes_made in (
        ("chunk.md", "## 8.", worked_example().chunk),
        ("state.md", "## 5.", worked_frame()),
        ("partitions.md", "## 6.", receipt_of()),
    ):
        drawn = (VECTORS.parent / page).read_text().split(section)[1].split("```")[1]
        drawn = bytes.fromhex(" ".join(line.lstrip().split("  ")[0] for line in drawn.splitlines()))
        assert drawn == bytes_made, page


def test_flipped_bits_of_an_exchange_are_detected():
    """Whichever single bit is flipped in transit, in either direction, the client gets the same
    table or none.
    """
    requests, answers = exchange_parts((ACCEPT / "checksums.exchange").read_bytes())

    def table(requests: bytes, answers: bytes):
        messages = check_exchange(requests, answers)
        columns = [
            [column_values(one) for one in found.fields["columns"]]
            for found in messages
            if found.name == "chunk"
        ]
        return (
            [found.fields["schema"] for found in messages if found.name == "started"],
            columns,
            messages[-1].name,
        )

    whole = table(requests, answers)
    unharmed = 0
    for bit in range(8 * len(answers)):
        try:
            assert table(requests, flipped(answers, bit)) == whole, f"bit {bit} of the answers"
            unharmed += 1
        except Refused:
            pass
    # Only the server's name is not protected.
    assert unharmed <= 8 * len("dray 0.1")
    query_at, query_bytes = len(requests) - 8 - len(SESSION_QUERY), len(SESSION_QUERY)
    assert requests[query_at : query_at + query_bytes] == SESSION_QUERY
    for bit in range(8 * query_at, 8 * (query_at + query_bytes)):
        heard = flipped(requests, bit)
        try:
            check_client_session(heard)
        except Refused:
            continue
        # A server that received something else answers that; the client compares the answer with
        # what it sent.
        with pytest.raises(Refused, match="^query"):
            check_exchange(
                requests, exchange_parts(exchange(SESSION_QUERY, heard=heard[query_at:-8]))[1]
            )


def flipped(data: bytes, bit: int) -> bytes:
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def test_crc32c_check_value():
    assert crc32c(b"123456789") == 0xE3069283


def test_jumbo_lifts_the_limits():
    """One row of 128 MiB in a handful of bytes. Its JSON would be too large for a vector."""
    words = field("f", "fixed_list", size=1 << 24, children=[field("item", "int64")])
    parts, decoded = [NONE_MISSING, NONE_MISSING, constant(u64(7))], 1 << 27
    fields = decode_schema(schema(words))
    with pytest.raises(Refused, match="^limit"):
        decode_chunk(chunk(1, parts, decoded), fields)
    jumbo = chunk(1, parts, decoded, jumbo=True)
    assert decode_chunk(jumbo, fields).columns[0].children[0].n == 1 << 24
    with pytest.raises(Refused, match="^limit"):
        decode_header(jumbo, Limits(row_bytes_max=decoded - 1))


def test_maximum_of_values_that_take_no_bytes():
    """The JSON of so many values would be too large for a vector."""
    fields = decode_schema(
        schema(field("l", "list", children=[field("item", "null", nullable=True)]))
    )
    most = chunk(1, [NONE_MISSING, list_offsets(0, 1 << 24), ALL_MISSING], 8)
    assert decode_chunk(most, fields).columns[0].children[0].n == 1 << 24


def test_limits_of_a_schema():
    """These schemas are too large for vectors."""
    one = schema(field("", "int8"))[4:]
    pairs = schema(field("", "int8", metadata=[["", ""]] * 65_535))[4:]
    assert len(decode_schema(u32(65_536) + one * 65_536)) == 65_536
    assert (
        len(
            decode_schema(
                u32(6) + pairs * 4 + schema(field("", "int8", metadata=[["", ""]] * 4))[4:] + one
            )
        )
        == 6
    )
    too_many_pairs = u32(5) + pairs * 4 + schema(field("", "int8", metadata=[["", ""]] * 5))[4:]
    too_large = schema(field("x" * (16 << 20), "int8"))
    for refused in (u32(65_537) + one * 65_537, too_many_pairs, too_large):
        with pytest.raises(Refused, match="^schema"):
            decode_schema(refused)


@pytest.mark.parametrize("path", accepted_paths(), ids=named)
def test_damaged_bytes_are_refused_or_decode(path: Path):
    """Damaged bytes raise Refused or decode; no other exception."""
    whole = path.read_bytes()
    rng = random.Random(f"{SEED} {path.name}")
    print(f"DRAY_SEED={SEED}")
    for _ in range(60):
        data = bytearray(whole)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data) + 1) :]
        for _ in range(rng.choice((1, 1, 1, 2, 8)) if data else 0):
            # Prefer the beginning, which has most of the structure.
            at = min(rng.randrange(len(data)), rng.randrange(len(data)))
            data[at] ^= 1 << rng.randrange(8)
        try:
            decode(path, bytes(data))
        except Refused:
            pass
