"""The results as one HTML file, with the paper's numbers beside them.

python -m lab.systems.report            # rewrites the report of the last run
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from lab import RESULTS
from lab.common.style import BUSY_LOAD, STYLE
from lab.common.svg import Line, lines
from lab.systems.catalog import ABSENT
from lab.systems.changes import Verdict, sentences, verdicts
from lab.systems.charts import phases
from lab.systems.figures import (
    BASELINE,
    LOCAL,
    PAPER,
    baseline_s,
    carried,
    clients,
    csv_bytes,
    median_s,
    paper_seconds,
    races,
    ratio,
    spent_s,
)
from lab.systems.networks import LATENCY_RATE
from lab.systems.results import load

OUTPUT = RESULTS / "systems"
MILLION = "million"
UNKNOWN = "unknown"
COLUMNS = {"local": "Local", "lan": "LAN", "wan": "WAN"}
SHADES = (
    "#8c8c8c #b0413e #d16ba5 #7a9e3a #2a9d8f #6a4c93 #c9a400 #5c6b73 #e08e0b #9c6644 #1b6ca8 "
    "#004e64 #444444 #e4572e #17bebb #76b041 #8e5572 #3d5a80"
).split()


def html(found: dict) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>Client protocols</title><style>{STYLE} td {{ white-space: nowrap; }} "
        ".claim td, .text td { white-space: normal; text-align: left; } "
        ".failed { color: #b0413e; } .system td { font-weight: 600; }</style>",
        "<h1>Client protocols of databases, then and now</h1>",
        introduction(found),
        *changed(found),
        *table_1(found),
        *(part for number in ("10", "11", "12") for part in network_table(found, number)),
        *figure(found, "3", "latency", "round trip, ms"),
        *figure(found, "4", "throughput", "Mbit/s"),
        *formats(found),
        *absent(found),
        *links(found),
        "<h2>Commands</h2>",
        f"<pre>{escape(chr(10).join(found['commands']))}</pre>",
    ]
    return "\n".join(parts) + "\n"


def introduction(found: dict) -> str:
    load = max((race["load_average"] for race in found["races"]), default=0.0)
    busy = ""
    if load > BUSY_LOAD:
        busy = (
            f'<p class="warning">Load average up to {load:.1f}. Clients and servers make some of '
            "it themselves, but if other programs ran, the times are not valid results.</p>"
        )
    versions = "".join(
        f"<tr><td>{escape(system['title'])}</td><td>"
        f"{escape(', '.join(f'{name} {value}' for name, value in system['versions'].items()))}"
        "</td></tr>"
        for system in found["systems"].values()
    )
    return f"""{busy}
<table class=text><tr><th>machine</th><th>processor</th><th>cores</th><th>memory</th><th>Linux</th>
<th>versions</th><th>races</th><th>load average</th></tr>{machines(found)}</table>
<p>Medians of the rounds. No time is divided by netcat's of another machine.</p>
<table class=text><tr><th>network</th><th>rounds</th><th>limit, else “T”</th>
<th>congestion control of the servers' sockets</th></tr>{conditions(found)}</table>
<p>The paper: {escape(PAPER["citation"])}. It measured on {escape(PAPER["machine"])};
{escape(PAPER["scale"])}. Its numbers are on a dark ground, as it states them. <b>×</b> is the
time divided by netcat's, or the bytes divided by those of the CSV, so that both can be compared.
</p>
<p>Seconds are from sending the statement to the last row. Bytes are those that the client's
interface received, with headers, over the LAN if it was measured; over loopback, both directions.
A client counts only if it received all rows. ACS here is a sample of it (pums), and ontime one of a
month: rows repeat.</p>
<table class=text><tr><th>system</th><th>versions</th></tr>{versions}</table>"""


def machines(found: dict) -> str:
    """A row for each machine, with the time and the load of its races."""
    rows = []
    for place, machine in enumerate([*found["machines"], None]):
        known = machine or {}
        place_ = None if machine is None else place
        races = [race for race in found["races"] if race["machine"] == place_]
        if races:
            ended = sorted(race["ended"][:16].replace("T", " ") for race in races)
            loads = [race["load_average"] for race in races]
            memory = known.get("memory_bytes")
            versions = [f"{name} {value}" for name, value in known.get("versions", {}).items()]
            cells = (
                machine_name(place_),
                "; ".join(filter(None, (known.get("processor") or UNKNOWN, known.get("note")))),
                known.get("cores", UNKNOWN),
                f"{memory / 2**30:.0f} GiB" if memory else UNKNOWN,
                known.get("kernel") or UNKNOWN,
                ", ".join(versions) or UNKNOWN,
                f"{len(races)}, {ended[0]} to {ended[-1]}",
                f"{min(loads):.1f}–{max(loads):.1f}",
            )
            rows.append("".join(f"<td>{escape(str(cell))}</td>" for cell in cells))
    return "".join(f"<tr>{row}</tr>" for row in rows)


def machine_name(place: int | None) -> str:
    return UNKNOWN if place is None else f"{place + 1}"


def conditions(found: dict) -> str:
    """A row for each network and the conditions of its races."""
    seen: dict[tuple[str, int, float], set[str]] = {}
    for race in found["races"]:
        controls = seen.setdefault(
            (race["network_title"], race["rounds"], race["timeout_s"]), set()
        )
        controls.update(client["congestion"] for client in race["clients"])
    return "".join(
        f"<tr><td>{escape(title)}</td><td>{rounds}</td><td>{limit_s:g} s</td>"
        f"<td>{escape(', '.join(sorted(controls - {'–'})))}</td></tr>"
        for (title, rounds, limit_s), controls in seen.items()
    )


def changed(found: dict) -> list[str]:
    rows = "".join(
        f"<tr><td>{escape(claim['text'])} <small>{escape(claim['source'])}</small></td>"
        f"<td>{escape(verdict.what)}</td><td class=paper>{shown(verdict.then)}</td>"
        f"<td>{shown(verdict.now)}</td><td>{judgement(verdict)}</td></tr>"
        for claim, verdict in verdicts(found)
    )
    told = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences(found))
    return [
        "<h2>What changed since 2017</h2>",
        "<table class=claim><tr><th>the paper found</th><th>measure</th>"
        f"<th class=paper>then</th><th>now</th><th>today</th></tr>{rows}</table>",
        f"<p>lineitem, beside netcat in the same network:</p><ul class=found>{told}</ul>",
    ]


def judgement(verdict: Verdict) -> str:
    if verdict.holds is None:
        return "not measured"
    return "still holds" if verdict.holds else "holds no longer"


def shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def cell(client: dict | None, found: dict) -> str:
    """Seconds, and how often netcat's time they are, or why there are none."""
    if client is None:
        return "<td></td>"
    if not client["runs"]:
        reason = escape(client["failure"] or "not run")
        return f"<td class=failed title='{reason}'>{'T' if client['timed_out'] else 'failed'}</td>"
    spans = [spent_s(run) for run in client["runs"]]
    span = f"{min(spans):.2f}–{max(spans):.2f} s"
    seconds = median_s(client)
    many = times(ratio(seconds, baseline_s(found, client["race"])))
    return f"<td title='{span}'>{seconds:,.2f}{many}</td>"


def times(value: float | None) -> str:
    return "" if value is None else f" <small>×{shown(value)}</small>"


def paper_cell(number: str, row: str, column: str) -> str:
    value = paper_seconds(number, row, column)
    base = paper_seconds(number, BASELINE, column)
    text = "" if value is None else f"{value}{times(ratio(value, base))}"
    return f"<td class=paper>{text}</td>"


def clients_of(found: dict, table: str) -> dict[str, dict[str, dict[str, dict]]]:
    """Clients by system, name and network, in the order of the results."""
    order = list(found["systems"])
    systems: dict[str, dict[str, dict[str, dict]]] = {}
    for client in sorted(clients(found, table), key=lambda c: order.index(c["race"]["system"])):
        race = client["race"]
        names = systems.setdefault(race["system_title"], {})
        names.setdefault(client["name"], {})[race["network"]] = client
    return systems


def bytes_cell(networks: dict[str, dict]) -> str:
    client = carried(networks)
    if client is None:
        return "<td></td>"
    size = client["carried_bytes"]
    return f"<td>{size / 1e6:,.1f}{times(ratio(size, client['race']['csv_bytes']))}</td>"


def machine_cells(names: dict[str, dict[str, dict]], columns: dict[str, str]) -> str:
    """The machine of a system's race in each network."""
    machines = {
        network: machine_name(client["race"]["machine"])
        for networks in names.values()
        for network, client in networks.items()
    }
    return "".join(
        f"<td>{f'machine {machines[name]}' if name in machines else ''}</td><td class=paper></td>"
        for name in columns
    )


def comparison(found: dict, number: str, columns: dict[str, str]) -> str:
    """One of the paper's tables, with all clients of a system below its name."""
    table = PAPER["tables"][number]["table"]
    head = "".join(f"<th>{title}, s</th><th class=paper>paper</th>" for title in columns.values())
    rows = []
    for system, names in clients_of(found, table).items():
        machines = machine_cells(names, columns)
        rows.append(f"<tr class=system><td>{escape(system)}</td>{machines}</tr>")
        for networks in names.values():
            client = next(iter(networks.values()))
            row = client["paper"]
            cells = "".join(
                cell(networks.get(name), found) + paper_cell(number, row, name) for name in columns
            )
            remark = f" <small>{escape(row)}</small>" if row else ""
            rows.append(
                f"<tr><td>{escape(client['label'])}{remark}</td>{cells}"
                f"{bytes_cell(networks)}{paper_cell(number, row, 'size')}</tr>"
            )
    if not rows:
        return "<p>Not measured.</p>"
    return (
        f"<table><tr><th></th>{head}<th>MB</th><th class=paper>paper, GB</th></tr>"
        f"{''.join(rows)}</table>"
    )


def table_1(found: dict) -> list[str]:
    title = PAPER["tables"]["1"]["title"]
    measured = [c for c in clients(found, "lineitem", LOCAL) if c["runs"] and c["in_figures"]]
    bars = [(f"{c['race']['system_title']}, {c['label']}", c) for c in measured]
    # A line of netcat would mislead beside bars of another machine.
    base_s = {baseline_s(found, client["race"]) for client in measured}
    line_s = base_s.pop() if len(base_s) == 1 else None
    return [
        f"<h2>Table 1 and figure 1</h2><p>The paper's table 1: {escape(title)}. {size(found)}</p>",
        comparison(found, "1", {"local": "Local"}),
        phases("Figure 1: seconds over loopback", bars, line_s),
        f"<p>Of the paper's figure 1: {escape(PAPER['figures']['1']['values'])}.</p>",
    ]


def size(found: dict, table: str = "lineitem") -> str:
    race = next(iter(races(found, table)), None)
    if race is None:
        return ""
    return escape(
        f"Here: {race['table_title']}, {race['rows']:,} rows, {race['csv_bytes'] / 1e6:,.1f} MB "
        "as CSV."
    )


def network_table(found: dict, number: str) -> list[str]:
    paper = PAPER["tables"][number]
    return [
        f"<h2>Table {number}</h2>",
        f"<p>The paper's: {escape(paper['title'])}. {size(found, paper['table'])}</p>",
        comparison(found, number, COLUMNS),
    ]


def figure(found: dict, number: str, kind: str, label: str) -> list[str]:
    """A line for each system that takes part."""
    paper = PAPER["figures"][number]
    points: dict[str, list[tuple[float, float]]] = {}
    names: dict[float, str] = {}
    for client in clients(found, MILLION, figure=kind):
        race = client["race"]
        names[race["x"]] = f"{race['x']:g}"
        if client["runs"]:
            title = series_name(race["system_title"], client)
            points.setdefault(title, []).append((race["x"], median_s(client)))
    series = [
        Line(title, sorted(line), colour=SHADES[place % len(SHADES)])
        for place, (title, line) in enumerate(points.items())
    ]
    return [
        f"<h2>Figure {number}</h2>",
        f"<p>The paper's: {escape(paper['title'])}, one million rows of lineitem; its values are "
        f"{escape(paper['values'])}. {size_of_figure(found, kind)}</p>",
        lines(f"Figure {number}: seconds", label, series, names) or "<p>Not measured.</p>",
    ]


def series_name(system: str, client: dict) -> str:
    """A short name: of the system, or of Dray if it reads from the system."""
    if client["label"].startswith("Dray") and not system.startswith("Dray"):
        extension = ", extension" if "extension" in client["label"] else ""
        return f"Dray from {system.split()[0]}{extension}"
    return f"{system}, compressed" if "compressed" in client["label"] else system


def size_of_figure(found: dict, kind: str) -> str:
    race = next(iter(races(found, MILLION, figure=kind)), None)
    if race is None:
        return ""
    rest = {"latency": f"at {LATENCY_RATE}", "throughput": "without added delay"}[kind]
    return f"Here: {race['rows']:,} rows, {rest}."


def formats(found: dict) -> list[str]:
    """DBMS X, of which there is only what the paper tells of its format."""
    rows = []
    for number in ("10", "11", "12"):
        paper = PAPER["tables"][number]
        table = paper["table"]
        if table in found["encoded"]:
            encoded, csv = found["encoded"][table], csv_bytes(found, table)
            then = ratio(paper["rows"]["DBMS X"]["size"], paper["rows"][BASELINE]["size"])
            rows.append(
                f"<tr><td>{table}</td><td>{encoded / 1e6:,.1f}</td>"
                f"<td>{precise(ratio(encoded, csv))}</td><td class=paper>{precise(then)}</td></tr>"
            )
    return [
        "<h2>DBMS X, as a format only</h2>",
        "<p>Bytes of the tables as section 2.3 of the paper tells the format: a header for each "
        "row, a length before each value, and numbers in a terse form. Where the paper is silent, "
        "encoded.py says what was taken. Nothing was sent or timed.</p>"
        "<table><tr><th>table</th><th>MB</th><th>÷ CSV</th><th class=paper>paper</th>"
        f"</tr>{''.join(rows)}</table>",
    ]


def precise(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def absent(found: dict) -> list[str]:
    """What cannot run here, and what failed."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for race in found["races"]:
        for client in race["clients"]:
            if client["failure"]:
                key = f"{race['system_title']}: {client['label']}", client["failure"]
                where.setdefault(key, {})[f"{race['table']} {race['network']}"] = None
    rows = [(name, reason, "") for name, reason in (*ABSENT, *found["absent"])]
    rows += [(name, reason, ", ".join(places)) for (name, reason), places in where.items()]
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(reason)}</td><td>{escape(places)}</td></tr>"
        for name, reason, places in rows
    )
    return ["<h2>What could not run here, and why</h2>", f"<table class=text>{body}</table>"]


def links(found: dict) -> list[str]:
    seen = {(race["network_title"], race["link"]) for race in found["races"] if race["link"]}
    if not seen:
        return []
    body = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in sorted(seen))
    return ["<h2>Links, as measured before the clients</h2>", f"<table class=text>{body}</table>"]


def main() -> int:
    stem = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    found = load(Path(f"{stem}.json"))
    Path(f"{stem}.html").write_text(html(found))
    print(f"{stem}.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
