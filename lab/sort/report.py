"""The results of sorting as a self-contained HTML file."""

from __future__ import annotations

import math
import statistics
from html import escape

from lab.common.style import BUSY_LOAD, STYLE
from lab.common.svg import Line, lines
from lab.sort.bars import Bar, bars

REFERENCE = "dray"
FORMS = {"memory": "from memory to Arrow batches", "parquet": "from Parquet to Parquet"}
COLOURS = {
    "dray": "#1b6ca8",
    "duckdb": "#c9a400",
    "clickhouse": "#b0413e",
    "datafusion": "#e08e0b",
    "datafusion-1": "#f0be70",
    "polars-streaming": "#6a4c93",
    "polars": "#a98bc9",
    "hyper": "#2a9d8f",
    "pyarrow": "#8c8c8c",
    "pandas": "#5c6b73",
    "sqlite": "#7a9e3a",
}
TITLES = {
    "catalog-sales": "1. catalog_sales by cs_quantity, cs_item_sk (figure 4 of the paper)",
    "customer": "2. customer by integers and by strings (figure 5 of the paper)",
    "duckdb": "3. lineitem, wide, thin and by text",
    "tpch": "4. DataFusion's sort_tpch",
    "narrow": "5. Rows of few columns, by random numbers",
    "curve": "6. A range of memory limits",
}
NOTES = {
    "catalog-sales": "Two keys with few distinct values, and the first columns of the table. "
    "Prices are decimals here, and doubles in the paper.",
    "customer": "All 18 columns, 8 of them strings, by c_birth_year, c_birth_month, c_birth_day, "
    "and by c_last_name, c_first_name. Keys are missing in some rows.",
    "duckdb": "All columns (wide) and one beside the keys (thin) by l_shipdate, l_orderkey; and "
    "all columns by l_comment.",
    "tpch": "Keys and payload of each query as in DataFusion's benchmark.",
    "narrow": "Ten million rows at scale factor 1, of one to three columns of random numbers.",
    "curve": "The memory limit varies from four times the data size to a sixteenth of it. The "
    "list above tells how each engine receives it. A run is killed when it exceeds its limit by "
    "more than the headroom.",
}
#: Words in engines' error messages when memory runs out.
OUT_OF_MEMORY = ("memory", "resources exhausted")
DETAILS = [
    "contender",
    "memory MB",
    "runs",
    "seconds",
    "min–max",
    "× Dray",
    "CPU s",
    "growth MB",
    "resident MB",
    "spilled MB",
    "folder MB",
    "result",
]


def html(found: dict) -> str:
    """The document."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>Sorting</title><style>{STYLE} td {{ white-space: nowrap; }} "
        ".failed { color: #b0413e; }</style>",
        "<h1>Sorting, in memory and beyond</h1>",
        introduction(found["machine"]),
    ]
    for part, title in TITLES.items():
        cases = [case for case in found["cases"] if case["part"] == part]
        if cases:
            parts.append(f"<h2>{escape(title)}</h2><p>{escape(NOTES[part])}</p>")
            parts += section(part, cases, found["machine"]["engines"])
    machine = found["machine"]
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    parts.append(
        f"<h2>Versions and command</h2><p>{escape(versions)}</p>"
        f"<pre>{escape(machine['command'])}</pre>"
    )
    return "\n".join(parts) + "\n"


def introduction(machine: dict) -> str:
    limits = machine["limits"]
    busy = (
        '<p class="warning">Other programs ran at the start '
        f"(load average {machine['load_average']:.1f}), so the times are not valid results.</p>"
        if machine["load_average"] > BUSY_LOAD
        else ""
    )
    if machine["changed_during_run"]:
        busy += (
            '<p class="warning">The dray program was rebuilt during the run, so results of two '
            "builds are mixed.</p>"
        )
    engines = "".join(
        f"<li>{escape(engine['label'])}: {escape(engine['setting'] or 'has no limit')}"
        f"{'; ' + escape(engine['note']) if engine['note'] else ''}.</li>"
        for engine in machine["engines"].values()
    )
    return f"""{busy}
<ul>
<li><b>Memory</b>: the source is in the engine's own form in memory when the clock starts, and the
sorted rows are read as Arrow batches and dropped. <b>Parquet</b>: from a file in the page cache to
a file, both with row groups of 122,880 rows (20,480 on the curve) and Snappy if the engine supports
that. <code>dray sort</code> is a program: its start counts, and it waits until its file is on disk.
The others are libraries that have been loaded, and leave their file in the page cache.</li>
<li>Each run is a process of its own on {limits["threads"]} processors with {limits["threads"]}
threads. Contenders alternate. A first round, which is not counted, compares each result with its
source: number and order of rows, and a digest of the rows. Seconds are medians of at most
{limits["rounds"]} rounds, with the fastest and the slowest.</li>
<li><b>Limit.</b> {limits["memory_bytes"] / 1e6:,.0f} MB, except on the curve. A run is killed when
its anonymous memory grows by more than the limit and a headroom of
{limits["headroom_bytes"] / 1e6:,.0f} MB. Anonymous memory is sampled every 5 ms. Pages of files do
not count, so with much free memory, spilled data of any engine may stay in the page cache.</li>
<li><b>Growth</b> is the peak of anonymous memory above that at the start of the clock, including
results. <b>Resident</b> is the peak of all resident memory. <b>Spilled</b> is what was written to
the file system, without the sorted file. <b>Folder</b> is the largest size of the spill folder,
without unlinked files.</li>
<li>A megabyte is 10⁶ bytes. Missing values are last. The data size is that in Arrow with plain
strings.</li>
</ul>
<p>{escape(str(machine["processor"]))}, {machine["cores"]} cores,
{machine["memory_bytes"] / 2**30:.0f} GiB, Linux {escape(str(machine["kernel"]))}; load average at
the start {machine["load_average"]:.1f}, at the end {machine["load_average_end"]:.1f}.</p>
<p>How each engine receives its limit:</p><ul>{engines}</ul>"""


def section(part: str, cases: list[dict], engines: dict) -> list[str]:
    parts = [
        f'<p class="failed">Not measured: {escape(case["failure"])}</p>'
        for case in cases
        if "failure" in case
    ]
    measured = [case for case in cases if "failure" not in case]
    for form, words in FORMS.items():
        group = [case for case in measured if case["form"] == form]
        if group:
            parts.append(f"<h3>{escape(words[0].upper() + words[1:])}</h3>")
            if part == "curve":
                parts += [part for case in group for part in curve(case, engines)]
            else:
                parts += [picture(part, group, engines), overview(group, engines)]
            parts += [
                "<details><summary>All measurements</summary>"
                f"{''.join(details(case, engines) for case in group)}</details>"
            ]
    return parts


def picture(part: str, cases: list[dict], engines: dict) -> str:
    if part == "catalog-sales":
        counts = {case["name"]: len(case["columns"]) - len(case["keys"]) for case in cases}
        series = [
            Line(engines[name]["label"], points, colour=COLOURS[name])
            for name in COLOURS
            if (
                points := [
                    (counts[case["name"]], s)
                    for case in cases
                    if (s := seconds(case, name)) is not None
                ]
            )
        ]
        return lines(
            "seconds",
            "columns beside the keys",
            series,
            {count: str(count) for count in counts.values()},
        )
    if part == "tpch":
        means = [(name, geometric_mean(cases, name)) for name in COLOURS]
        shown = [
            Bar(engines[name]["label"], mean, COLOURS[name])
            for name, mean in means
            if mean is not None
        ]
        return bars("time relative to Dray, geometric mean of the completed queries", shown, 2, "×")
    pictures = []
    for case in cases:
        shown = []
        for row in case["rows_measured"]:
            if row["runs"]:
                taken = [run["seconds"] for run in row["runs"]]
                bar = Bar(
                    engines[row["engine"]]["label"],
                    row["seconds_median"],
                    COLOURS[row["engine"]],
                    min(taken),
                    max(taken),
                )
                shown.append(bar)
        pictures.append(
            bars(f"{case['title']}: seconds", sorted(shown, key=lambda bar: bar.value), 3, "s")
        )
    return "".join(pictures)


def overview(cases: list[dict], engines: dict) -> str:
    """A table of medians and ranges, with a row for each engine and a column for each case."""
    names = list(dict.fromkeys(row["engine"] for case in cases for row in case["rows_measured"]))
    head = "".join(
        f"<th>{escape(short(case))}<br><small>{case['arrow_bytes'] / 1e6:,.0f} MB</small></th>"
        for case in cases
    )
    body = []
    for name in names:
        found = [row_of(case, name) for case in cases]
        cells = "".join(f"<td>{cell(row)}</td>" for row in found)
        body.append(f"<tr><td>{escape(engines[name]['label'])}</td>{cells}</tr>")
    titles = "".join(f"<li>{escape(case['title'])}: {case['rows']:,} rows</li>" for case in cases)
    return f"<table><tr><th></th>{head}</tr>{''.join(body)}</table><ul class=found>{titles}</ul>"


def short(case: dict) -> str:
    return case["name"].split("-")[-1]


def cell(row: dict | None) -> str:
    if row is None:
        return "–"
    if row["failure"]:
        failure = row["failure"]
        return (
            f'<span class=failed title="{escape(failure)}">{escape(failure_word(failure))}</span>'
        )
    if not row["runs"]:
        return "–"
    taken = [run["seconds"] for run in row["runs"]]
    return f"{row['seconds_median']:.3f}<br><small>{min(taken):.3f}–{max(taken):.3f}</small>"


def failure_word(failure: str) -> str:
    """A word for a failure in a table cell. The details have the whole message."""
    if failure.startswith(("wrong", "not finished")):
        return failure.split(":")[0]
    return "out of memory" if any(words in failure.lower() for words in OUT_OF_MEMORY) else "error"


def details(case: dict, engines: dict) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in DETAILS)
    body = "".join(f"<tr>{detail_cells(row, case, engines)}</tr>" for row in case["rows_measured"])
    sizes = (
        f"{case['arrow_bytes'] / 1e6:,.1f} MB in Arrow, "
        f"{case['parquet_bytes'] / 1e6:,.1f} MB in Parquet"
    )
    title = f"{case['title']}; {case['rows']:,} rows, {sizes}"
    return f"<h4>{escape(title)}</h4><table><tr>{head}</tr>{body}</table>"


def detail_cells(row: dict, case: dict, engines: dict) -> str:
    label, memory = engines[row["engine"]]["label"], f"{row['memory_bytes'] / 1e6:,.0f}"
    if row["failure"] or not row["runs"]:
        words = escape(row["failure"] or "not measured")
        return (
            f"<td>{escape(label)}</td><td>{memory}</td>"
            f'<td colspan=10 class=failed style="white-space: normal">{words}</td>'
        )
    runs = row["runs"]
    taken = [run["seconds"] for run in runs]
    reference = seconds(case, REFERENCE, row["memory_bytes"])
    figures = [
        memory,
        str(len(runs)),
        f"{row['seconds_median']:.3f}",
        f"{min(taken):.3f}–{max(taken):.3f}",
        f"{row['seconds_median'] / reference:.2f}" if reference else "–",
        f"{median(runs, 'cpu_s'):.2f}",
        *(
            f"{median(runs, f'{name}_bytes') / 1e6:,.0f}"
            for name in ("growth", "resident_peak", "spilled", "spill_folder")
        ),
        "correct" if row["checked"] else "not checked",
    ]
    return f"<td>{escape(label)}</td>" + "".join(f"<td>{figure}</td>" for figure in figures)


def curve(case: dict, engines: dict) -> list[str]:
    """Charts of time, growth and spilled bytes over data size / memory limit."""
    ratios = {
        row["memory_bytes"]: case["arrow_bytes"] / row["memory_bytes"]
        for row in case["rows_measured"]
    }
    names = {ratio: f"{round(ratio, 2):g}" for ratio in ratios.values()}
    drawn = []
    for title, of in (
        ("seconds", lambda row: row["seconds_median"]),
        (
            "growth of anonymous memory / memory limit",
            lambda row: median(row["runs"], "growth_bytes") / row["memory_bytes"],
        ),
        (
            "spilled bytes / data size",
            lambda row: median(row["runs"], "spilled_bytes") / case["arrow_bytes"],
        ),
    ):
        series = []
        for name in COLOURS:
            done = [
                row
                for row in case["rows_measured"]
                if row["engine"] == name and row["runs"] and not row["failure"]
            ]
            points = [
                (ratios[row["memory_bytes"]], value) for row in done if (value := of(row)) > 0
            ]
            if points:
                series.append(Line(engines[name]["label"], sorted(points), colour=COLOURS[name]))
        drawn.append(lines(title, "data size / memory limit", series, names))
    head = "".join(
        f"<th>{names[ratio]}<br><small>{size / 1e6:,.0f} MB</small></th>"
        for size, ratio in ratios.items()
    )
    body = []
    for name in dict.fromkeys(row["engine"] for row in case["rows_measured"]):
        cells = "".join(f"<td>{cell(row_of(case, name, size))}</td>" for size in ratios)
        body.append(f"<tr><td>{escape(engines[name]['label'])}</td>{cells}</tr>")
    about = f"{case['title']}: {case['rows']:,} rows, {case['arrow_bytes'] / 1e6:,.0f} MB"
    table = (
        f"<p>Seconds by data size / memory limit. {escape(about)}.</p>"
        f"<table><tr><th></th>{head}</tr>{''.join(body)}</table>"
    )
    return [*drawn, table]


def row_of(case: dict, engine: str, memory_bytes: int | None = None) -> dict | None:
    for row in case["rows_measured"]:
        if row["engine"] == engine and memory_bytes in (None, row["memory_bytes"]):
            return row
    return None


def seconds(case: dict, engine: str, memory_bytes: int | None = None) -> float | None:
    row = row_of(case, engine, memory_bytes)
    return None if row is None or row["failure"] else row["seconds_median"]


def geometric_mean(cases: list[dict], engine: str) -> float | None:
    """Geometric mean of an engine's time relative to Dray, over the cases that both completed."""
    pairs = [(seconds(case, engine), seconds(case, REFERENCE)) for case in cases]
    logs = [math.log(ours / theirs) for ours, theirs in pairs if ours and theirs]
    return math.exp(statistics.mean(logs)) if logs else None


def median(runs: list[dict], name: str) -> float:
    return statistics.median(run[name] for run in runs)
