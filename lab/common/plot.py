"""A bar chart of the results."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from lab.common.row import Row  # noqa: E402

COLOURS = {"dray": "#1b6ca8", "flight": "#e08e0b", "quack": "#7a9e3a", "duckdb": "#7a9e3a"}
#: Lower bounds: contenders that keep nothing or send nothing.
GREY = {"netcat": "#8c8c8c", "copy": "#8c8c8c", "scan": "#8c8c8c"}
OTHERS = "#c9a66b"


def draw(path: Path, title: str, machine: dict[str, object], rows: list[Row]) -> None:
    """Draw medians as bars, fastest first, with whiskers from the fastest to the slowest run."""
    shown = sorted(
        (row for row in rows if row.runs and not row.contender.once),
        key=lambda row: row.median("total_s"),
    )
    if not shown:
        return
    medians = [row.median("total_s") for row in shown]
    whiskers = [
        [median - min(row.totals()) for row, median in zip(shown, medians, strict=True)],
        [max(row.totals()) - median for row, median in zip(shown, medians, strict=True)],
    ]
    colours = [{**COLOURS, **GREY}.get(row.contender.name.split("-")[0], OTHERS) for row in shown]
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.36 * len(shown)), layout="constrained")
    axes.barh(
        [row.title for row in shown],
        medians,
        xerr=whiskers,
        color=colours,
        ecolor="#333333",
        capsize=3,
    )
    axes.invert_yaxis()
    for position, (row, median) in enumerate(zip(shown, medians, strict=True)):
        axes.annotate(
            f"{median:.2f} s",
            (max(row.totals()), position),
            (6, 0),
            textcoords="offset points",
            va="center",
        )
    axes.margins(x=0.12)
    axes.set_xlabel(
        f"seconds, median; {machine['processor']}, {machine['cores']} cores, "
        f"Linux {machine['kernel']}"
    )
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=144)
    plt.close(figure)
