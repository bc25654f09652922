"""Stacked bars of the phases of a fetch, as inline SVG."""

from __future__ import annotations

import statistics

from lab.common.svg import text

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 900, 330, 80, 16, 6, 44
#: The phases of a fetch, and their colours.
PHASES = {"connect_s": "#c9a400", "execute_s": "#7a9e3a", "transfer_s": "#1b6ca8"}


def phases(title: str, bars: list[tuple[str, dict]], baseline_s: float | None) -> str:
    """A bar for each client: connection, execution and transfer, and a line for netcat.

    A phase that a client does not tell is part of the next one.
    """
    if not bars:
        return ""
    found = [(name, [median(client, phase) for phase in PHASES]) for name, client in bars]
    found.sort(key=lambda bar: sum(bar[1]))
    longest = max(sum(parts) for _, parts in found)
    height = TOP + len(found) * (BAR + GAP) + 10

    def across(seconds: float) -> float:
        return seconds / longest * (WIDTH - LEFT - RIGHT)

    out = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        text(0, 14, title, "start", "font-weight:600"),
    ]
    for place, (phase, colour) in enumerate(PHASES.items()):
        name = phase.removesuffix("_s")
        out.append(text(LEFT + 90 * place, 32, f"■ {name}", "start", f"fill:{colour}"))
    for place, (name, parts) in enumerate(found):
        y = TOP + place * (BAR + GAP)
        x = float(LEFT)
        out.append(text(LEFT - 6, y + 12, name[:52], "end"))
        for seconds, colour in zip(parts, PHASES.values(), strict=True):
            out.append(
                f'<rect x="{x:.1f}" y="{y}" width="{across(seconds):.1f}" height="{BAR}" '
                f'fill="{colour}"/>'
            )
            x += across(seconds)
        out.append(text(x + 5, y + 12, f"{sum(parts):,.2f}", "start"))
    if baseline_s is not None:
        x = LEFT + across(baseline_s)
        out.append(
            f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height}" stroke="#444" '
            'stroke-dasharray="5 4"/>'
        )
    return "".join([*out, "</svg>"])


def median(client: dict, phase: str) -> float:
    """The median of a phase; 0 if the client does not tell it."""
    values = [run["client"][phase] for run in client["runs"]]
    return 0.0 if None in values else statistics.median(values)
