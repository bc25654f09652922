"""Markdown tables and the numbers in their cells."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from lab.common.row import Row, Run

MIB = 1024 * 1024


def table(content: list[list[str]], texts: int = 2) -> list[str]:
    """A padded Markdown table: columns of text, then columns of numbers."""
    widths = [max(len(line[column]) for line in content) for column in range(len(content[0]))]

    def padded(line: list[str]) -> str:
        parts = [
            c.ljust(w) if i < texts else c.rjust(w)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(parts)} |"

    rule = ["-" * w if i < texts else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return [padded(content[0]), f"| {' | '.join(rule)} |", *map(padded, content[1:])]


def peak(row: Row, of: Callable[[Run], int | None]) -> float | None:
    values = [of(run) for run in row.runs]
    return None if not values or None in values else statistics.median(values)


def client_peak(run: Run) -> int:
    return run.client.client_peak_bytes


def server_peak(run: Run) -> int | None:
    return run.server.peak_bytes


def number(value: float | None, scale: float, digits: int) -> str:
    return "–" if value is None else f"{value * scale:,.{digits}f}"
