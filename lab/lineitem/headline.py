"""Draws the comparison that heads the README: bars of seconds, from a table of figures.

    python3 -m lab.lineitem.headline

It reads `headline.csv` beside it, and writes `docs/headline.svg`. The figures are those of a
report, `lab/reports/2026-11-lineitem.md`; this program measures nothing.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "headline.csv"
PICTURE = HERE.parents[1] / "docs" / "headline.svg"

TITLE = "6.0 million rows of TPC-H lineitem (1.01 GB) into another process"
SUBTITLE = "Seconds from a server's memory to a pyarrow table, two cores, one host; less is better"
WIDTH = 760
LEFT, RIGHT, TOP = 190, 60, 70
BAR, GAP = 24, 12

STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1f2328; }
    .title { font-weight: 600; font-size: 16px; }
    .quiet { font-size: 12px; fill: #59636e; }
    .dray { fill: #1b6ca8; }
    .other { fill: #b4bcc5; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .quiet { fill: #9198a1; }
      .dray { fill: #4493d8; }
      .other { fill: #59636e; }
    }
"""


@dataclass(frozen=True)
class Bar:
    """One contender and its median."""

    contender: str
    seconds: float


def read(path: Path) -> list[Bar]:
    with path.open(newline="") as file:
        return [Bar(row["contender"], float(row["seconds"])) for row in csv.DictReader(file)]


def draw(bars: list[Bar]) -> str:
    """The bars from the fastest down, as an SVG file."""
    bars = sorted(bars, key=lambda bar: bar.seconds)
    scale = (WIDTH - LEFT - RIGHT) / max(bar.seconds for bar in bars)
    height = TOP + len(bars) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"',
        f'    width="{WIDTH}" height="{height}">',
        f"  <title>{escape(TITLE)}</title>",
        f"  <style>{STYLE}  </style>",
        f'  <text class="title" x="0" y="18">{escape(TITLE)}</text>',
        f'  <text class="quiet" x="0" y="40">{escape(SUBTITLE)}</text>',
    ]
    for place, bar in enumerate(bars):
        top = TOP + place * (BAR + GAP)
        middle = top + BAR * 0.7
        width = bar.seconds * scale
        kind = "dray" if bar.contender.startswith("Dray") else "other"
        label = escape(bar.contender)
        lines += [
            f'  <text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end">{label}</text>',
            f'  <rect class="{kind}" x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}"/>',
            f'  <text x="{LEFT + width + 8:.1f}" y="{middle:.1f}">{bar.seconds:.3f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    PICTURE.write_text(draw(read(FIGURES)))


if __name__ == "__main__":
    main()
