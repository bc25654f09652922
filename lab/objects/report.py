"""The results as one HTML file, beside the figures of the thesis.

python -m lab.objects.report            # rewrites the report of the last run
"""

from __future__ import annotations

import json
import statistics
import sys
from html import escape
from pathlib import Path

from lab import RESULTS
from lab.common.style import BUSY_LOAD, STYLE
from lab.common.svg import Line, lines
from lab.objects.claims import GZIP, THESIS, compared, median, select, title, verdict
from lab.objects.reasons import reason, shown
from lab.sort.bars import Bar, bars

OUTPUT = RESULTS / "objects"
COLOURS = {"C++": "#1b6ca8", "Java": "#e08e0b", "Rust": "#7a9e3a"}
COLUMNS = "Dray columns"
SHADES = (
    "#1b6ca8 #b0413e #7a9e3a #6a4c93 #c9a400 #2a9d8f #e08e0b #5c6b73 #d16ba5 "
    "#8c8c8c #004e64 #9c6644"
).split()
TITLES = {
    "sizes": "1. Sizes of objects (table 5.1)",
    "phases": "2. The phases of an access, apart",
    "reads": "3. Reads from disk (experiment 1)",
    "requests": "4. Requests over a network (experiment 2)",
    "sorts": "5. External sort without duplicates (experiment 3)",
    "trees": "6. Sparse vectors over a tree (experiment 4)",
    "wire": "7. Customers over a slow link",
}
NOTES = {
    "sizes": "Bytes per object, without free space in pages. The thesis does not say how it keeps "
    "dates; here they are numbers of four bytes, so our line items are smaller. Part has 136 bytes "
    "by hand in both.",
    "phases": "Nanoseconds per object in memory, medians. Each phase begins at bytes and includes "
    "what must come before it, except validation where it is a step of its own. The thesis has no "
    "such figures: it measured until objects were ready, and an implementation that reads in place "
    "is ready at once. <b>touch-all</b> reads every field.",
    "reads": "Milliseconds from a cold page cache until every field has been read. "
    "<b>read</b> is the time in read calls, <b>ready</b> that from bytes to objects (what the "
    "thesis measured as CPU), <b>touch</b> that of the checksum over every field. The last three "
    "are sums over threads.",
    "requests": "Milliseconds until the client has written all answers, for ten servers at the far "
    "end of a shaped link. From memory, pages that are read in place are sent as they are.",
    "sorts": "Seconds of a sort whose data are several times its memory. Memory is limited, page "
    "cache included.",
    "trees": "Milliseconds until the root has the sum of seven vectors, over loopback. All seven "
    "processes share this machine's cores.",
    "wire": "Milliseconds until a client has all customers in a file (gzipped JSON) or as Arrow's "
    "arrays (Dray's columns); the server has them in memory. <b>wire MB</b> is what passes the "
    "link, with the headers of packets. <b>client cpu</b> of gzipped JSON has the decoding of all "
    "objects, measured apart.",
}


def html(found: dict) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>Objects</title><style>{STYLE} td {{ white-space: nowrap; }} "
        ".claim td { white-space: normal; text-align: left; } .failed { color: #b0413e; }</style>",
        "<h1>Implementations of objects</h1>",
        introduction(found),
    ]
    for part, heading in TITLES.items():
        cases = select(found, part)
        if cases:
            parts += [f"<h2>{heading}</h2>", f"<p>{NOTES[part]}</p>", claims_table(found, part)]
            parts += SECTIONS[part](found)
            parts += failures(cases)
    parts.append(f"<h2>Command</h2><pre>{escape(found['machine']['command'])}</pre>")
    return "\n".join(parts) + "\n"


def introduction(found: dict) -> str:
    machine = found["machine"]
    load = max(machine["load_average"], machine["load_average_end"])
    busy = (
        f'<p class="warning">Other programs ran (load average up to {load:.1f}), so the times are '
        "not valid results.</p>"
        if load > BUSY_LOAD
        else ""
    )
    rows = "".join(
        f"<tr><td>{escape(one['language'])} {escape(one['name'])}</td>"
        f"<td>{escape(one['version'])}</td><td>{escape(one['validates'])}</td>"
        f"<td style='text-align:left'>{escape(one['note'])}</td></tr>"
        for one in found["implementations"]
    )
    return f"""{busy}
<p>{escape(machine["date"])}, scale {escape(machine["scale"])}:
{escape(str(machine["processor"]))}, {machine["cores"]} cores,
{machine["memory_bytes"] / 2**30:.0f} GiB, Linux {escape(str(machine["kernel"]))}; load average
{machine["load_average"]:.1f} at the start, {machine["load_average_end"]:.1f} at the end. Each run
is a process of its own, on as many cores as it has threads. Implementations alternate; figures are
medians. A run counts only if its checksum over every field is right.</p>
<p>The thesis: {escape(THESIS["citation"])}. Its machine: {escape(THESIS["machine"])}. Only numbers
that its text or table states are quoted.</p>
<table><tr><th>implementation</th><th>version</th><th>validates</th>
<th style='text-align:left'>note</th></tr>{rows}</table>"""


def claims_table(found: dict, part: str) -> str:
    """What the thesis found, what holds in this run, and why."""
    rows = []
    for claim in THESIS["claims"]:
        if claim["part"] == part:
            pair = compared(found, claim["id"])
            here = pair.ratio if pair else None
            figure = "" if here is None else shown(here)
            rows.append(
                f"<tr><td>{escape(claim['text'])} <small>{claim['source']}</small></td>"
                f"<td class=paper>{claim['value']}</td><td>{figure}</td>"
                f"<td>{verdict(claim['value'], here)}</td><td>{reason(found, claim)}</td></tr>"
            )
    if not rows:
        return ""
    return (
        "<table class=claim><tr><th>the thesis found</th><th class=paper>its ratio</th>"
        f"<th>ours</th><th>today</th><th>why</th></tr>{''.join(rows)}</table>"
    )


def sizes(found: dict) -> list[str]:
    thesis = {row["ours"]: row for row in THESIS["sizes"]["rows"]}
    objects = list(dict.fromkeys(case["parameters"]["object"] for case in select(found, "sizes")))
    cells = {
        (title(case), case["parameters"]["object"]): case["runs"][0]["bytes"]
        / case["runs"][0]["objects"]
        for case in select(found, "sizes")
        if case["runs"]
    }
    head = "".join(
        f"<th>{name}</th>"
        + ("<th class=paper>thesis</th>" if name in ("part", "lineitem", "customer") else "")
        for name in objects
    )
    body = []
    for name in dict.fromkeys(name for name, _ in cells):
        row = f"<td>{escape(name)}</td>"
        for kind in objects:
            value = cells.get((name, kind))
            row += f"<td>{'' if value is None else f'{value:,.0f}'}</td>"
            if kind in ("part", "lineitem", "customer"):
                row += f"<td class=paper>{thesis.get(name, {}).get(kind, '')}</td>"
        body.append(f"<tr>{row}</tr>")
    return [f"<table><tr><th></th>{head}</tr>{''.join(body)}</table>"]


def named(case: dict) -> str:
    """The implementation, and whether it validated where that is a choice."""
    validated = case["parameters"].get("validate") == "yes"
    return title(case) + (", validated" if validated else "")


def phases(found: dict) -> list[str]:
    parts = []
    cases = select(found, "phases")
    for kind in dict.fromkeys(case["parameters"]["object"] for case in cases):
        here = [case for case in cases if case["parameters"]["object"] == kind]
        names = list(dict.fromkeys(case["parameters"]["phase"] for case in here))
        count = here[0]["parameters"]["count"]
        cells: dict[str, dict[str, str]] = {}
        for case in here:
            value = median(case)
            if value is not None:
                text = f"{value / count * 1e9:,.0f}<br><small>{span(case, count)}</small>"
                cells.setdefault(named(case), {})[case["parameters"]["phase"]] = text
        parts.append(f"<h3>{kind}, {count:,} objects: nanoseconds per object</h3>")
        parts.append(grid(names, cells))
        parts.append(touch_bars(here, count))
    return parts


def span(case: dict, count: int) -> str:
    values = [run["wall_s"] / count * 1e9 for run in case["runs"]]
    return f"{min(values):,.0f}–{max(values):,.0f}"


def touch_bars(cases: list[dict], count: int) -> str:
    shown = []
    for case in cases:
        value = median(case)
        if case["parameters"]["phase"] == "touch-all" and value is not None:
            scaled = value / count * 1e6
            shown.append(Bar(named(case)[:26], scaled, COLOURS.get(case["language"], "#888")))
    return bars(
        "touch-all: microseconds per object", sorted(shown, key=lambda bar: bar.value), 2, "µs"
    )


def grid(names: list[str], cells: dict[str, dict[str, str]]) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    rows = []
    for row, values in sorted(cells.items()):
        found = "".join(f"<td>{values.get(name, '')}</td>" for name in names)
        rows.append(f"<tr><td>{escape(row)}</td>{found}</tr>")
    body = "".join(rows)
    return f"<table><tr><th></th>{head}</tr>{body}</table>"


def reads(found: dict) -> list[str]:
    parts = []
    cases = select(found, "reads")
    keys = dict.fromkeys(
        (case["parameters"]["object"], case["parameters"]["order"], case["parameters"]["threads"])
        for case in cases
    )
    for kind, order, threads in keys:
        here = select(found, "reads", object=kind, order=order, threads=threads)
        counts = sorted({case["parameters"]["count"] for case in here})
        heading = f"{kind}, {order}, {threads} thread{'s' if threads > 1 else ''}"
        parts.append(f"<h3>{heading}: milliseconds by number of objects</h3>")
        if len(counts) > 1:
            parts.append(curve(here, heading))
        cells: dict[str, dict[str, str]] = {}
        for case in here:
            cells.setdefault(named(case), {})[f"{case['parameters']['count']:,}"] = times(case)
        parts.append(grid([f"{count:,}" for count in counts], cells))
    return parts


def times(case: dict) -> str:
    """Wall time, and what it consists of."""
    wall = median(case)
    if wall is None:
        return ""
    pieces = [
        f"{median(case, figure) * 1e3:.2f}"
        for figure in ("io_s", "ready_s", "touch_s")
        if median(case, figure) is not None
    ]
    walls = [run["wall_s"] * 1e3 for run in case["runs"]]
    return (
        f"<b>{wall * 1e3:,.2f}</b> <small>{min(walls):,.2f}–{max(walls):,.2f}<br>"
        f"{' + '.join(pieces)}</small>"
    )


def curve(cases: list[dict], heading: str) -> str:
    points: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        value = median(case)
        if value is not None and case["parameters"].get("validate") != "yes":
            points.setdefault(title(case), []).append((case["parameters"]["count"], value * 1e3))
    series = [
        Line(name, sorted(line), colour=SHADES[number % len(SHADES)])
        for number, (name, line) in enumerate(sorted(points.items())[:13])
    ]
    names = {case["parameters"]["count"]: f"{case['parameters']['count']:,}" for case in cases}
    return lines(f"{heading}: ms", "objects", series, names)


def groups(part: str, unit: float, suffix: str) -> list[str]:
    """A section with bars and a table for each set of parameters."""

    def section(found: dict) -> list[str]:
        parts = []
        cases = select(found, part)
        for key in dict.fromkeys(json.dumps(case["parameters"]) for case in cases):
            here = [case for case in cases if json.dumps(case["parameters"]) == key]
            shown, cells = [], {}
            for case in here:
                value = median(case)
                if value is None:
                    continue
                walls = [run["wall_s"] * unit for run in case["runs"]]
                colour = COLOURS.get(case["language"], "#888")
                shown.append(Bar(title(case)[:26], value * unit, colour, min(walls), max(walls)))
                cells[title(case)] = details(case, unit)
            heading = ", ".join(f"{name} {value}" for name, value in json.loads(key).items())
            names = list(dict.fromkeys(name for row in cells.values() for name in row))
            parts += [
                f"<h3>{escape(heading)}</h3>",
                bars(f"wall time, {suffix}", sorted(shown, key=lambda bar: bar.value), 2, suffix),
                grid(names, cells),
            ]
        return parts

    return section


def details(case: dict, unit: float) -> dict[str, str]:
    out = {}
    for figure in ("wall_s", "cpu_s", "io_s", "client_cpu_s"):
        value = median(case, figure)
        if value is not None:
            out[figure.removesuffix("_s").replace("_", " ")] = f"{value * unit:,.2f}"
    for figure, label, scale in (
        ("bytes", "MB", 1e6),
        ("wire_bytes", "wire MB", 1e6),
        ("peak_bytes", "peak MB", 1e6),
        ("runs", "runs", 1),
    ):
        values = [run[figure] for run in case["runs"] if figure in run]
        if values:
            out[label] = f"{statistics.median(values) / scale:,.1f}"
    return out


def wire(found: dict) -> list[str]:
    """The section of bars, and how columns compare with text."""
    parts = groups("wire", 1e3, "ms")(found)
    cases = {title(case): case for case in select(found, "wire") if median(case) is not None}
    if GZIP in cases and COLUMNS in cases:
        text, columns = cases[GZIP], cases[COLUMNS]
        saved = median(text, "wire_bytes") / median(columns, "wire_bytes")
        cpus = [median(case, "cpu_s") + median(case, "client_cpu_s") for case in (text, columns)]
        parts.append(
            f"<p>Gzipped JSON takes {shown(saved)} times the bytes of columns, and "
            f"{shown(cpus[0] / cpus[1])} times the CPU time of both ends together.</p>"
        )
    return parts


def failures(cases: list[dict]) -> list[str]:
    return [
        f'<p class="failed">{escape(title(case))}, {escape(str(case["parameters"]))}: '
        f"{escape(case['failure'])}</p>"
        for case in cases
        if case["failure"]
    ]


SECTIONS = {
    "sizes": sizes,
    "phases": phases,
    "reads": reads,
    "requests": groups("requests", 1e3, "ms"),
    "sorts": groups("sorts", 1, "s"),
    "trees": groups("trees", 1e3, "ms"),
    "wire": wire,
}


def main() -> int:
    stem = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    found = json.loads(Path(f"{stem}.json").read_text())
    Path(f"{stem}.html").write_text(html(found))
    print(f"{stem}.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
