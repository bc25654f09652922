"""Writes the pages that C++ has built and changed again, from their values, in Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(os.environ["DRAY_CPP_TESTS"])
ROUNDS = os.environ.get("DRAY_ROUNDS", "25")
sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "spec/decoder"))

from page import decode_page  # noqa: E402
from page_writer import page as write_page  # noqa: E402
from schema import decode_schema, field_words  # noqa: E402

HEADER = 64


def fields() -> tuple[list, list[dict]]:
    ran = subprocess.run([TESTS / "accessors", "schema"], capture_output=True, check=True)
    decoded = decode_schema(bytes.fromhex(ran.stdout.decode()))
    return decoded, [field_words(field) for field in decoded]


def test_pages_are_what_another_writer_makes_of_their_values():
    decoded, words = fields()
    seed = os.environ.get("DRAY_SEED", "1")
    ran = subprocess.run([TESTS / "building", seed, ROUNDS], capture_output=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = ran.stdout.splitlines()
    assert len(lines) >= int(ROUNDS)
    for line in lines:
        case = json.loads(line)
        found = bytes.fromhex(case["page"])
        page = decode_page(found, decoded)
        assert page.rows == case["rows"]
        large = page.page_bytes > case["page_bytes"]
        written = write_page(words, case["rows"], page_bytes=page.page_bytes, large=large)
        assert page.large == large
        # The headers differ in sequence, edition and checksum.
        assert found[HEADER:] == written[HEADER:]
        assert found[16:28] == written[16:28]
