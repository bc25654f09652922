"""Line charts with logarithmic axes as inline SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 270
LEFT, RIGHT, TOP, BOTTOM = 46, 210, 26, 44
COLOURS = ("#8c8c8c", "#1b6ca8", "#e08e0b", "#7a9e3a", "#b0413e")


@dataclass(frozen=True)
class Line:
    """A named series of points."""

    name: str
    points: list[tuple[float, float]]
    dashed: bool = False
    #: If empty, chosen by the position among the lines.
    colour: str = ""


def lines(title: str, x_label: str, series: list[Line], x_names: dict[float, str]) -> str:
    """A line chart; both axes are logarithmic, and the vertical one begins at the least value."""
    # The names of many lines take more.
    height = max(HEIGHT, TOP + 18 * len(series) + 10)
    points = [point for line in series for point in line.points]
    if not points:
        return ""
    x_low, x_high = (bound(math.log(x) for x, _ in points) for bound in (min, max))
    y_low, y_high = math.log(min(y for _, y in points)), math.log(max(y for _, y in points))
    y_high = max(y_high, y_low + math.log(2))

    def across(x: float) -> float:
        return LEFT + (math.log(x) - x_low) / ((x_high - x_low) or 1) * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return height - BOTTOM - (math.log(y) - y_low) / (y_high - y_low) * (height - TOP - BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        text(LEFT, 14, title, "start", "font-weight:600"),
        text(WIDTH - RIGHT, height - 4, x_label, "end"),
    ]
    for x, name in x_names.items():
        if x_low - 1e-9 <= math.log(x) <= x_high + 1e-9:
            parts.append(rule(across(x), TOP, across(x), height - BOTTOM))
            parts.append(text(across(x), height - BOTTOM + 17, name, "middle"))
    for y in ticks(math.exp(y_low), math.exp(y_high)):
        parts.append(rule(LEFT, down(y), WIDTH - RIGHT, down(y)))
        parts.append(text(LEFT - 5, down(y) + 2, f"{y:g}", "end"))
    for number, line in enumerate(series):
        colour = line.colour or COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in line.points)
        dashes = ' stroke-dasharray="5 4"' if line.dashed else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="2.5" fill="{colour}"/>'
            for x, y in line.points
        ]
        parts.append(
            text(WIDTH - RIGHT + 12, TOP + 14 + 18 * number, line.name, "start", f"fill:{colour}")
        )
    return "".join([*parts, "</svg>"])


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times each power of ten on the axis, or only the powers if there are many."""
    steps = (1, 2, 5) if high / low < 200 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**power for power in powers for step in steps]
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]


def text(x: float, y: float, content: str, anchor: str, style: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{style}">'
        f"{escape(content)}</text>"
    )


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#e4e4e4"/>'
