"""Writes spec/vectors: python make_vectors.py [directory]. Every run makes the same bytes."""

import json
import sys
from pathlib import Path

from vectors_accept import Accepted, accepted_chunks
from vectors_coded import accepted_coded
from vectors_compressed import accepted_compressed
from vectors_encodings import accepted_encodings
from vectors_huffman import accepted_huffman
from vectors_nested import accepted_nested
from vectors_page import accepted_pages
from vectors_page_moved import accepted_moved
from vectors_page_file import accepted_files, rejected_files
from vectors_page_reject import rejected_pages
from vectors_partition import accepted_parts, rejected_parts
from vectors_plans import (
    accepted_dray_parts,
    accepted_plans,
    rejected_dray_parts,
    rejected_plans,
)
from vectors_reject import rejected_chunks
from vectors_session_pages import accepted_session_pages, rejected_session_pages
from vectors_sessions import accepted_sessions, rejected_sessions
from vectors_sources import accepted_sources, rejected_sources
from vectors_state import accepted_states
from vectors_strings import accepted_strings
from writer import container, schema

VECTORS = Path(__file__).resolve().parent.parent / "vectors"


def files() -> dict[str, bytes]:
    """The contents of every vector by its path below spec/vectors."""
    out = {}
    groups = (
        accepted_chunks,
        accepted_nested,
        accepted_encodings,
        accepted_strings,
        accepted_compressed,
        accepted_coded,
        accepted_huffman,
        accepted_states,
    )
    for vector in (vector for group in groups for vector in group()):
        assert f"accept/{vector.name}.chunk" not in out, vector.name
        out[f"accept/{vector.name}.chunk"] = container(schema(*vector.schema), vector.chunk)
        out[f"accept/{vector.name}.json"] = chunk_json(vector)
    for name, data in rejected_chunks().items():
        out[f"reject/{name}.chunk"] = data
    for vector in [*accepted_pages(), *accepted_moved()]:
        assert f"accept/{vector.name}.page" not in out, vector.name
        out[f"accept/{vector.name}.page"] = container(schema(*vector.schema), vector.page)
        members = {
            "about": vector.about,
            "schema": vector.schema,
            "sequence": vector.sequence,
            **({"edition": vector.edition} if vector.edition else {}),
            "rows": vector.rows,
        }
        out[f"accept/{vector.name}.page.json"] = json_lines(members)
    for name, data in rejected_pages().items():
        out[f"reject/{name}.page"] = data
    for vector in accepted_files():
        out[f"accept/{vector.name}.pages"] = vector.data()
        out[f"accept/{vector.name}.pages.json"] = json_lines(vector.members())
    for name, data in rejected_files().items():
        out[f"reject/{name}"] = data
    recordings = (
        accepted_sessions() | accepted_plans() | accepted_session_pages() | accepted_sources()
    )
    for name, (data, messages) in recordings.items():
        out[f"accept/{name}"] = data
        out[f"accept/{name}.json"] = json_lines({"messages": messages})
    rejected = (
        rejected_sessions() | rejected_plans() | rejected_session_pages() | rejected_sources()
    )
    for name, data in rejected.items():
        out[f"reject/{name}"] = data
    for name, (data, members) in (accepted_parts() | accepted_dray_parts()).items():
        out[f"accept/{name}"] = data
        out[f"accept/{name}.json"] = json_lines(members)
    for name, data in (rejected_parts() | rejected_dray_parts()).items():
        out[f"reject/{name}"] = data
    return out


def chunk_json(vector: Accepted) -> bytes:
    return json_lines(
        {
            "about": vector.about,
            "schema": vector.schema,
            "sequence": vector.sequence,
            "rows": vector.rows,
            "decoded_bytes": vector.decoded,
            "columns": vector.columns,
        }
    )


def json_lines(members: dict) -> bytes:
    """A JSON object with one line for each member."""
    lines = [
        f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in members.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def main(directory: Path):
    for path, data in files().items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS)
