"""Statistics as values, and what a REPL and a notebook show of results, statistics and
connections.
"""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser

import pytest
from server import Server

import dray

HOSTILE = '<script>alert("&")</script>'


class Cells(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_items(connection: dray.Connection) -> None:
    result = connection.query("SELECT id, text FROM numbers")
    result.to_arrow()
    stats = result.stats
    assert stats["rows"] == stats.rows == 200_000
    assert dict(stats)["path"] == stats.get("path") == "server"
    assert "rows" in stats and "rate" not in stats and 0 not in stats
    assert list(stats.keys())[:2] == ["path", "path_reason"] and len(stats) == len(dict(stats))
    with pytest.raises(KeyError):
        stats["keys"]
    assert stats["columns"][1]["name"] == stats.columns[1].name == "text"
    assert stats.server is not None and stats.server["total_seconds"] > 0
    assert stats == result.stats and hash(stats) == hash(result.stats)
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.rows = 1  # type: ignore[misc]
    as_dict = json.loads(json.dumps(dataclasses.asdict(stats)))
    assert as_dict["columns"][0]["name"] == "id" and as_dict["server"]["total_seconds"] > 0


def test_before_the_end(connection: dray.Connection) -> None:
    with connection.query("SELECT id FROM numbers") as result:
        assert result.stats.server is None and result.stats.rows == 0
        assert "0 in 0 chunks" in repr(result.stats)
        result.stats._repr_html_()


def test_representations(connection: dray.Connection) -> None:
    result = connection.query("SELECT id, text FROM numbers")
    result.to_arrow()
    text = repr(result.stats)
    assert "200,000 in " in text and "server: over " in text
    assert any(line.split()[:2] == ["text", "Utf8"] for line in text.splitlines())
    many = connection.query("SELECT * FROM wide")
    many.to_arrow()
    assert "… and 9,970 more columns" in repr(many.stats)
    assert "… and 9,900 more" in many._repr_html_()


def test_html_is_escaped(connection: dray.Connection) -> None:
    name = HOSTILE.replace('"', '""')
    result = connection.query(f'SELECT 1 AS "{name}", 2 AS b')
    for page in (result._repr_html_(), _read(result)._repr_html_(), connection._repr_html_()):
        cells = Cells(page)
        assert cells.tags <= {"table", "caption", "tr", "th", "td", "p"}
    assert HOSTILE in Cells(result._repr_html_()).texts
    assert "read by to_arrow()" in result._repr_html_()
    assert HOSTILE in Cells(result.stats._repr_html_()).texts


def _read(result: dray.Result) -> dray.Stats:
    result.to_arrow()
    return result.stats


def test_html_of_a_connection(server: Server) -> None:
    with dray.connect(server.tcp.replace("dray://", "dray://s3cret@")) as connection:
        page = connection._repr_html_()
        assert "s3cret" not in page and server.address in page and "open" in page
    assert "closed" in connection._repr_html_()
