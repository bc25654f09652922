"""The study's measurements by name, and HTML tables of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from lab.common.process import Failure
from lab.study import links

TITLES = {"lineitem": "lineitem", "pums": "PUMS (the paper: ACS)", "ontime": "ontime"}
#: The tables in the order of the report. Defaults are not tuned on the last one.
TABLES = ("lineitem", "pums", "ontime")
LINKS = {link.name: link.title for link in links.LINKS}
NONE = "–"


class Results:
    """The content of `study.json`."""

    def __init__(self, results: dict) -> None:
        self.raw = results
        self.chunk_bytes: int = results["chunk_bytes"]
        self.figures = {
            (f["experiment"], f["data"], f["case"], f["chunk_bytes"]): f for f in results["figures"]
        }
        self.transfers = {
            (t["link"], t["experiment"], t["data"], t["case"], t["chunk_bytes"]): t
            for t in results["transfers"]
        }

    def figure(
        self, experiment: str, data: str, case: str, chunk_bytes: int | None = 0
    ) -> dict | None:
        """Measurements of a case on one core, by default in chunks of the default size."""
        return self.figures.get(
            (experiment, data, case, self.chunk_bytes if chunk_bytes == 0 else chunk_bytes)
        )

    def measured(self, experiment: str, data: str, case: str, chunk_bytes: int | None = 0) -> dict:
        """Like `figure`, but raises Failure if it is missing."""
        figure = self.figure(experiment, data, case, chunk_bytes)
        if figure is None:
            raise Failure(f"the results lack {case} of {experiment} on {data}")
        return figure

    def seconds(
        self, link: str, experiment: str, data: str, case: str, chunk_bytes: int = 0
    ) -> float | None:
        """Median seconds per gigabyte over a link."""
        transfer = self.transfers.get(
            (link, experiment, data, case, chunk_bytes or self.chunk_bytes)
        )
        return None if transfer is None else links.seconds_per_gb(transfer)

    def spread(
        self, link: str, experiment: str, data: str, case: str, chunk_bytes: int = 0
    ) -> float | None:
        """Half of the range of the runs, relative to their median."""
        transfer = self.transfers.get(
            (link, experiment, data, case, chunk_bytes or self.chunk_bytes)
        )
        return None if transfer is None else half_range(transfer["seconds"])

    def cases(self, experiment: str, data: str) -> list[str]:
        """The formats of an experiment, in the order of measurement."""
        return list(
            dict.fromkeys(
                f["case"]
                for f in self.raw["figures"]
                if (f["experiment"], f["data"]) == (experiment, data)
            )
        )

    def sizes(self) -> list[int]:
        """The measured chunk sizes."""
        return sorted(
            {f["chunk_bytes"] for f in self.raw["figures"] if f["experiment"] == "chunk-size"}
        )


def half_range(values: list[float]) -> float:
    return (max(values) - min(values)) / 2 / statistics.median(values)


def ratio(figure: dict, of: dict | None = None) -> float:
    """Compression ratio of the sample, relative to Arrow's bytes or to another case."""
    plain = figure["sample_plain_bytes"] if of is None else of["sample_encoded_bytes"]
    return plain / figure["sample_encoded_bytes"]


def core_seconds(figure: dict, name: str) -> float:
    """Median processor seconds per gigabyte of Arrow data."""
    return statistics.median(figure[name]) / figure["plain_bytes"]


def both_seconds(figure: dict) -> float:
    """Like `core_seconds`, to encode and to decode."""
    return core_seconds(figure, "encode_ns") + core_seconds(figure, "decode_ns")


def value_ns(figure: dict, name: str) -> float:
    """Median processor nanoseconds per value."""
    return statistics.median(figure[name]) / figure["rows"] / figure["columns"]


def size_name(chunk_bytes: int) -> str:
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if chunk_bytes >= unit:
            return f"{chunk_bytes / unit:g}{name}"
    return f"{chunk_bytes}B"


def number(value: float | None, factor: float | None = None, spread: float | None = None) -> str:
    """A value with three digits, and optionally a speed-up and a spread."""
    if value is None:
        return NONE
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    shown = f"{value:,.{digits}f}"
    if factor is not None:
        shown += (
            f" <small>{factor:.2g}×</small>" if factor < 100 else f" <small>{factor:.0f}×</small>"
        )
    if spread is not None and spread >= 0.005:
        shown += f" <small>±{spread:.0%}</small>"
    return shown


@dataclass(frozen=True)
class Heading:
    """A column's heading. Columns with the paper's numbers are tinted."""

    text: str
    paper: bool = False


def paper(text: str) -> Heading:
    return Heading(text, paper=True)


def table(headings: list[Heading | str], rows: Iterable[list[str]]) -> str:
    """A table of HTML cells: a column of text, then columns of numbers."""
    columns = [
        heading if isinstance(heading, Heading) else Heading(heading) for heading in headings
    ]
    kinds = [' class="paper"' if column.paper else "" for column in columns]
    head = "".join(
        f"<th{kind}>{escape(column.text)}</th>" for column, kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def listing(names: Iterable[str]) -> str:
    """Names joined as in "a, b and c"."""
    listed = list(names)
    return (
        listed[0]
        if len(listed) == 1
        else f"{', '.join(listed[:-1])} and {listed[-1]}"
        if listed
        else "none"
    )


def sentences(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{sentence}</li>" for sentence in texts)
    return f'<ul class="found">{items}</ul>' if items else ""
