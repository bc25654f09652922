"""The results of lineitem as JSON and Markdown."""

from __future__ import annotations

from dataclasses import asdict

from lab.common.row import Row
from lab.common.tables import MIB, client_peak, number, peak, server_peak, table
from lab.data.lineitem import Lineitem

REFERENCE = "dray-unix"
HEADINGS = [
    "contender",
    "congestion control",
    "connect ms",
    "execute ms",
    "transfer s",
    "total s",
    "min–max",
    "GB/s",
    "wire MB",
    "client peak MiB",
    "server peak MiB",
    "× Dray Unix",
]


def as_json(lineitem: Lineitem, machine: dict[str, object], rows: list[Row]) -> dict[str, object]:
    return {
        "machine": machine,
        "scale_factor": lineitem.scale_factor,
        "rows": lineitem.rows,
        "arrow_bytes": lineitem.arrow_bytes(),
        "contenders": [
            {
                "name": row.contender.name,
                "label": row.contender.label,
                "congestion_set": row.congestion_set,
                "congestion_seen": row.congestion_seen,
                "server_command": row.command,
                "failure": row.failure,
                "total_s_median": row.median("total_s"),
                "wire_bytes": row.wire_bytes(),
                "runs": [asdict(run) for run in row.runs],
            }
            for row in rows
        ],
    }


def as_markdown(lineitem: Lineitem, machine: dict[str, object], rows: list[Row]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    measured = [row for row in rows if row.runs]
    lines = [
        f"# TPC-H lineitem, scale factor {lineitem.scale_factor:g}, from memory to another process",
        "",
        f"{lineitem.rows:,} rows, {lineitem.arrow_bytes() / 1e6:,.0f} MB in Arrow with utf8 "
        "strings, the base of every GB/s. Medians of "
        f"{max((len(row.runs) for row in measured), default=0)} alternating rounds.",
        "",
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB; Linux {machine['kernel']}; "
        f"load average at the start {machine['load_average']:.1f}. {versions}.",
        "",
        f"`{machine['command']}`",
        "",
    ]
    for heading, into_table in (("Into an Arrow table", True), ("Dropped on arrival", False)):
        section = [
            row
            for row in measured
            if row.contender.into_table == into_table and not row.contender.once
        ]
        if section:
            lines += [
                f"## {heading}",
                "",
                *table([HEADINGS, *(cells(row, lineitem, rows) for row in section)]),
                "",
            ]
    singles = [line for row in measured if row.contender.once for line in once(row)]
    failures = [f"- {row.title}: {row.failure}" for row in rows if row.failure]
    for heading, items in (("Latency and memory", singles), ("Not measured", failures)):
        if items:
            lines += [f"## {heading}", "", *items, ""]
    return "\n".join(lines)


def cells(row: Row, lineitem: Lineitem, rows: list[Row]) -> list[str]:
    """The cells of one row, in the order of HEADINGS."""
    total = row.median("total_s")
    reference = next((r.median("total_s") for r in rows if r.contender.name == REFERENCE), None)
    return [
        row.contender.label,
        row.congestion,
        number(row.median("connect_s"), 1e3, 1),
        number(row.median("execute_s"), 1e3, 1),
        number(row.median("transfer_s"), 1, 3),
        number(total, 1, 3),
        f"{min(row.totals()):.3f}–{max(row.totals()):.3f}",
        number(lineitem.arrow_bytes() / total, 1e-9, 2),
        number(row.wire_bytes(), 1e-6, 0),
        number(peak(row, client_peak), 1 / MIB, 0),
        number(peak(row, server_peak), 1 / MIB, 0),
        number(total / reference if reference else None, 1, 2),
    ]


def once(row: Row) -> list[str]:
    """The result of a contender that runs once, as a list item."""
    run = row.runs[0]
    if "median_us" in run.client.details:
        figures = run.client.details
        return [
            f"- {row.title}: median {figures['median_us']:.0f} µs, p99 {figures['p99_us']:.0f} µs."
        ]
    server_growth = (
        None if run.server.peak_bytes is None else run.server.peak_bytes - run.server_loaded_bytes
    )
    return [
        f"- {row.title}: {run.client.arrow_bytes / 1e9:.1f} GB of Arrow data in "
        f"{run.client.total_s:.2f} s; "
        f"the client grew by {run.client.client_growth_bytes / MIB:.0f} MiB, the server by "
        f"{number(server_growth, 1 / MIB, 0)} MiB above its memory after loading."
    ]
