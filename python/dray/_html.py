"""Tables of HTML, which notebooks show instead of a ``repr``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table. All texts are escaped.

    Parameters
    ----------
    caption : str
        The line above the table.
    rows : iterable of sequences of str
        The cells.
    head : sequence of str
        The titles of the columns; without any, the first cell of each row is its title.
    """
    lines = [f"<table><caption>{escape(caption)}</caption>"]
    if head:
        lines.append(_row(["th"] * len(head), head))
    for row in rows:
        titled = [] if head else ["th"]
        lines.append(_row(titled + ["td"] * (len(row) - len(titled)), row))
    return "\n".join([*lines, "</table>"])


def _row(tags: Sequence[str], cells: Sequence[str]) -> str:
    tagged = zip(tags, cells, strict=True)
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in tagged) + "</tr>"
