"""Bar charts as inline SVG."""

from __future__ import annotations

from dataclasses import dataclass

from lab.common.svg import text

WIDTH, LEFT, RIGHT, TOP, STEP = 640, 150, 90, 26, 22


@dataclass(frozen=True)
class Bar:
    """A named value and its range."""

    name: str
    value: float
    colour: str
    low: float | None = None
    high: float | None = None


def bars(title: str, shown: list[Bar], digits: int, unit: str) -> str:
    """Horizontal bars in the given order."""
    if not shown:
        return ""
    height = TOP + STEP * len(shown) + 6
    widest = max(bar.high or bar.value for bar in shown)

    def across(value: float) -> float:
        return LEFT + value / widest * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        text(0, 14, title, "start", "font-weight:600"),
    ]
    for number, bar in enumerate(shown):
        top = TOP + STEP * number
        width = across(bar.value) - LEFT
        parts.append(text(LEFT - 6, top + 14, bar.name, "end"))
        parts.append(
            f'<rect x="{LEFT}" y="{top + 3}" width="{width:.1f}" height="{STEP - 7}" '
            f'fill="{bar.colour}"/>'
        )
        if bar.low is not None and bar.high is not None:
            y = top + 3 + (STEP - 7) / 2
            parts.append(
                f'<path d="M{across(bar.low):.1f} {y}H{across(bar.high):.1f}" '
                'stroke="#333" stroke-width="1.5"/>'
            )
        parts.append(
            text(
                across(bar.high or bar.value) + 6,
                top + 14,
                f"{bar.value:.{digits}f} {unit}",
                "start",
            )
        )
    return "".join([*parts, "</svg>"])
