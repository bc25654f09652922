"""A report as blocks, which are written as HTML or as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from lab.common import tables
from lab.common.style import STYLE

COLUMNS_MAX = 100
OWN_STYLE = (
    " td { white-space: nowrap; } .text td { white-space: normal; text-align: left; } "
    ".failed { color: #b0413e; } td.system { font-weight: 600; }"
)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    remark : str
        What follows the text in small letters.
    kind : str
        `paper`, `failed`, `system` or nothing.
    hint : str
        What HTML shows under the mouse.
    """

    text: str = ""
    remark: str = ""
    kind: str = ""
    hint: str = ""

    def html(self, tag: str) -> str:
        kind = f" class={self.kind}" if self.kind else ""
        hint = f' title="{escape(self.hint)}"' if self.hint else ""
        remark = f" <small>{escape(self.remark)}</small>" if self.remark else ""
        return f"<{tag}{kind}{hint}>{escape(self.text)}{remark}</{tag}>"

    def markdown(self) -> str:
        text = f"{self.text} {self.remark}".strip()
        return f"**{plain(text)}**" if self.kind == "system" and text else plain(text)


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2

    def html(self) -> str:
        return f"<h{self.level}>{escape(self.text)}</h{self.level}>"

    def markdown(self) -> str:
        return f"{'#' * self.level} {plain(self.text)}"


@dataclass(frozen=True)
class Paragraph:
    text: str
    kind: str = ""

    def html(self) -> str:
        kind = f" class={self.kind}" if self.kind else ""
        return f"<p{kind}>{escape(self.text)}</p>"

    def markdown(self) -> str:
        return wrapped(self.text)


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: Sequence[str]

    def html(self) -> str:
        items = "".join(f"<li>{escape(text)}</li>" for text in self.texts)
        return f"<ul class=found>{items}</ul>"

    def markdown(self) -> str:
        return "\n".join(wrapped(text, "- ", "  ") for text in self.texts)


@dataclass(frozen=True)
class Table:
    """A table. Rows may be shorter than its head.

    Attributes
    ----------
    texts : int
        How many of the first columns have text; 0 stands for all.
    """

    head: Sequence[Cell | str]
    rows: Sequence[Sequence[Cell | str]]
    texts: int = 1
    cells: list[list[Cell]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        width = len(self.head)
        filled = [[*row, *[""] * (width - len(row))] for row in (self.head, *self.rows)]
        cells = [[Cell(one) if isinstance(one, str) else one for one in row] for row in filled]
        object.__setattr__(self, "cells", cells)

    def html(self) -> str:
        kind = "" if self.texts else " class=text"
        tags = ["th", *["td"] * len(self.rows)]
        rows = (
            f"<tr>{''.join(cell.html(tag) for cell in row)}</tr>"
            for tag, row in zip(tags, self.cells, strict=True)
        )
        return f"<table{kind}>{''.join(rows)}</table>"

    def markdown(self) -> str:
        content = [[cell.markdown() for cell in row] for row in self.cells]
        return "\n".join(tables.table(content, self.texts or len(self.head)))


@dataclass(frozen=True)
class Picture:
    """A drawing, which Markdown goes without."""

    svg: str

    def html(self) -> str:
        return self.svg

    def markdown(self) -> str:
        return ""


@dataclass(frozen=True)
class Lines:
    """Lines as they are. In Markdown, one that is too long goes on as in a shell."""

    texts: Sequence[str]

    def html(self) -> str:
        return f"<pre>{escape(chr(10).join(self.texts))}</pre>"

    def markdown(self) -> str:
        lines = (" \\\n".join(filled(text, "", "  ", COLUMNS_MAX - 2)) for text in self.texts)
        return "\n".join(["```", *lines, "```"])


Block = Heading | Paragraph | Items | Table | Picture | Lines


def html(title: str, blocks: Sequence[Block]) -> str:
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}{OWN_STYLE}</style>"
    )
    return "\n".join([head, *(block.html() for block in (Heading(title, 1), *blocks))]) + "\n"


def markdown(title: str, blocks: Sequence[Block]) -> str:
    parts = (block.markdown() for block in (Heading(title, 1), *blocks))
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return escape(text, quote=False).replace("|", "\\|").replace("*", "\\*")


def wrapped(text: str, first: str = "", others: str = "") -> str:
    return "\n".join(filled(plain(text), first, others))


def filled(text: str, first: str, others: str, columns: int = COLUMNS_MAX) -> list[str]:
    return textwrap.wrap(
        text,
        columns,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
