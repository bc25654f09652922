"""The report of the comparison as Markdown: what was asked for, then each group."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lab.common.tables import MIB, table
from lab.spark.ways import PUSHED, SUM, WHOLE

Runs = Mapping[str, Sequence[Mapping[str, float]]]
#: What, the way that is slower, the way that is faster, and how many times it should be.
TIMES = (
    ("all columns, with the extension", "jdbc-whole", "dray-extension-whole", 5),
    ("all columns, stock server", "jdbc-whole", "dray-stock-whole", 2),
    ("sum of one column, with the extension", "jdbc-sum", "dray-extension-sum", 8),
    ("sum of one column, stock server", "jdbc-sum", "dray-stock-sum", 8),
)
#: What, the way in Spark, the same outside, and how much longer it may take.
OVERHEADS = (
    ("batches, with the extension", "dray-extension-batches", "outside-extension", 0.15),
    ("batches, stock server", "dray-stock-batches", "outside-stock", 0.15),
    ("rows, with the extension", "dray-extension-whole", "outside-extension", 0.15),
    ("rows, stock server", "dray-stock-whole", "outside-stock", 0.15),
)


def median(runs: Runs, name: str, field: str = "seconds") -> float:
    return statistics.median(run[field] for run in runs[name])


def as_markdown(described: Mapping[str, Any], runs: Runs) -> str:
    lines = [
        f"# {described['table']}, from PostgreSQL into Spark {described['spark']}",
        "",
        f"{described['rows']:,} rows, {described['parts']} parts, two executors of one core. "
        f"Medians of {len(runs['jdbc-whole'])} rounds; in brackets the fastest and the slowest.",
    ]
    if described["note"]:
        lines += ["", f"**{described['note']}**"]
    lines += ["", *asked(runs)]
    for group in (WHOLE, SUM, PUSHED):
        chosen = [(name, label) for name, label, of in described["ways"] if of == group.name]
        lines += ["", f"## {group.heading}", "", *rows(chosen, runs)]
    lines += ["", "## Machine", ""]
    lines += [
        f"- {described['processor']}; {described['cores']} processors; Linux "
        f"{described['kernel']}; load {described['load_average']:.1f} before, "
        f"{described['load_average_end']:.1f} after",
        *(f"- {name}: {version}" for name, version in described["versions"].items()),
        f"- `{described['command']}`",
    ]
    return "\n".join(lines) + "\n"


def asked(runs: Runs) -> list[str]:
    content = [["asked for", "what", "seen", ""]]
    for what, slow, fast, least in TIMES:
        seen = median(runs, slow) / median(runs, fast)
        content.append(
            [f"{least} × JDBC", what, f"{seen:.1f} ×", "met" if seen >= least else "missed"]
        )
    for what, inside, outside, most in OVERHEADS:
        seen = median(runs, inside) / median(runs, outside) - 1
        limit = f"at most {most:.0%} over Dray outside of Spark"
        content.append([limit, what, f"{seen:+.0%}", "met" if seen <= most else "missed"])
    return table(content)


def rows(chosen: list[tuple[str, str]], runs: Runs) -> list[str]:
    content = [["way", "s", "× JDBC", "executors' CPU s", "server's CPU s", "executor's peak MB"]]
    yardstick = median(runs, chosen[0][0])
    for name, label in chosen:
        seconds = [run["seconds"] for run in runs[name]]
        content.append(
            [
                label,
                f"{statistics.median(seconds):.3f} ({min(seconds):.3f}–{max(seconds):.3f})",
                f"{yardstick / statistics.median(seconds):.1f}",
                *(f"{median(runs, name, of):.2f}" for of in ("executors_cpu_s", "server_cpu_s")),
                f"{median(runs, name, 'executor_peak_bytes') / MIB:,.0f}",
            ]
        )
    return table(content)
