"""The results as HTML and as Markdown, with the paper's numbers beside them.

python -m lab.systems.report            # rewrites the reports of the last run
python -m lab.systems.report lab/reports/2026-11-systems
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lab import RESULTS
from lab.common.style import BUSY_LOAD
from lab.common.svg import Line, lines
from lab.systems import document
from lab.systems.catalog import ABSENT
from lab.systems.changes import TABLES, Verdict, sentences, verdicts
from lab.systems.charts import PHASES, median, phases
from lab.systems.comparison import (
    DBMS_X,
    PAPER_HEAD,
    UNKNOWN,
    comparison,
    machine_name,
    paper_cell,
    shown,
)
from lab.systems.document import (
    Block,
    Cell,
    Heading,
    Items,
    Lines,
    Paragraph,
    Picture,
    Table,
)
from lab.systems.figures import (
    BASELINE,
    LOCAL,
    PAPER,
    baseline_s,
    clients,
    csv_bytes,
    median_s,
    races,
    ratio,
)
from lab.systems.networks import LATENCY_RATE
from lab.systems.results import load

TITLE = "Client protocols of databases, then and now"
OUTPUT = RESULTS / "systems"
LINEITEM, MILLION = "lineitem", "million"
COLUMNS = {"local": "Local", "lan": "LAN", "wan": "WAN"}
SHADES = (
    "#8c8c8c #b0413e #d16ba5 #7a9e3a #2a9d8f #6a4c93 #c9a400 #5c6b73 #e08e0b #9c6644 #1b6ca8 "
    "#004e64 #444444 #e4572e #17bebb #76b041 #8e5572 #3d5a80"
).split()


def write(stem: Path, found: dict) -> None:
    """Write the reports beside the results, whose path without suffix is `stem`."""
    parts = blocks(found)
    source = Paragraph(
        f"Written by `python -m lab.systems.report` from {stem.name}.json: not to be edited."
    )
    Path(f"{stem}.html").write_text(document.html(TITLE, parts))
    Path(f"{stem}-tables.md").write_text(document.markdown(TITLE, [source, *parts]))


def blocks(found: dict) -> list[Block]:
    return [
        *introduction(found),
        *changed(found),
        *table_1(found),
        *(part for number in ("10", "11", "12") for part in network_table(found, number)),
        *figure(found, "3", "latency", "round trip, ms"),
        *figure(found, "4", "throughput", "Mbit/s"),
        *formats(found),
        *absent(found),
        *links(found),
        Heading("Commands"),
        Lines(found["commands"]),
    ]


def introduction(found: dict) -> list[Block]:
    load = max((race["load_average"] for race in found["races"]), default=0.0)
    warning = Paragraph(
        f"Load average up to {load:.1f}. Clients and servers make some of it themselves, but if "
        "other programs ran, the times are not valid results.",
        "warning",
    )
    versions = [
        [
            system["title"],
            ", ".join(f"{name} {value}" for name, value in system["versions"].items()),
        ]
        for system in found["systems"].values()
    ]
    return [
        *([warning] if load > BUSY_LOAD else []),
        machines(found),
        Paragraph("Medians of the rounds. No time is divided by netcat's of another machine."),
        conditions(found),
        Paragraph(
            f"The paper: {PAPER['citation']}. It measured on {PAPER['machine']}; {PAPER['scale']}. "
            "Its numbers are in the columns “2017”, as it states them. × is the time divided by "
            "netcat's, or the bytes divided by those of the CSV, so that both can be compared."
        ),
        Paragraph(
            "Seconds are from sending the statement to the last row. Bytes are those that the "
            "client's interface received, with headers, over the LAN if it was measured; over "
            "loopback, both directions. A client counts only if it received all rows. ACS here is "
            "a sample of it (pums), and ontime one of a month: rows repeat."
        ),
        Table(["system", "versions"], versions, texts=0),
    ]


def machines(found: dict) -> Table:
    """A row for each machine, with the times and the load of its races."""
    rows = []
    for place in (*range(len(found["machines"])), None):
        machine: dict = {} if place is None else found["machines"][place]
        ran = [race for race in found["races"] if race["machine"] == place]
        if ran:
            ended = sorted(race["ended"][:16].replace("T", " ") for race in ran)
            loads = [race["load_average"] for race in ran]
            memory = machine.get("memory_bytes")
            versions = [f"{name} {value}" for name, value in machine.get("versions", {}).items()]
            processor = machine.get("processor") or UNKNOWN
            rows.append(
                [
                    machine_name(place),
                    f"{processor}; {machine['note']}" if "note" in machine else processor,
                    str(machine.get("cores") or UNKNOWN),
                    f"{memory / 2**30:.0f} GiB" if memory else UNKNOWN,
                    machine.get("kernel") or UNKNOWN,
                    ", ".join(versions) or UNKNOWN,
                    f"{len(ran)}, {ended[0]} to {ended[-1]}",
                    f"{min(loads):.1f}–{max(loads):.1f}",
                ]
            )
    head = ["machine", "processor", "cores", "memory", "Linux", "versions", "races", "load average"]
    return Table(head, rows, texts=0)


def conditions(found: dict) -> Table:
    """A row for each network and the conditions of its races."""
    seen: dict[tuple[str, int, float], set[str]] = {}
    for race in found["races"]:
        key = race["network_title"], race["rounds"], race["timeout_s"]
        seen.setdefault(key, set()).update(client["congestion"] for client in race["clients"])
    rows = [
        [title, str(rounds), f"{limit_s:g} s", "; ".join(sorted(controls - {"–"}))]
        for (title, rounds, limit_s), controls in seen.items()
    ]
    control = "congestion control of the servers' sockets"
    return Table(["network", "rounds", "limit, else “T”", control], rows, texts=0)


def changed(found: dict) -> list[Block]:
    parts: list[Block] = [Heading("What changed since 2017")]
    open_claims = []
    for claim, heard in verdicts(found):
        text = f"{claim['text']} ({claim['source']})"
        rows = [
            [
                verdict.where,
                verdict.what,
                judgement(verdict),
                Cell(shown(verdict.then), kind="paper"),
                shown(verdict.now),
            ]
            for verdict in heard
        ]
        if rows:
            head = ["where", "measure", "today", PAPER_HEAD, "now"]
            parts += [Paragraph(text), Table(head, rows, texts=3)]
        else:
            open_claims.append(text)
    if open_claims:
        parts += [Paragraph("Not measured:"), Items(open_claims)]
    explained = (
        "By the fastest client that stands for the paper's, as multiples of netcat's time; in "
        "parentheses are the paper's numbers. T is over the limit, which was an hour then. What "
        "ran without netcat on its machine is left out."
    )
    parts += [Heading("System by system", 3), Paragraph(explained)]
    for table in TABLES:
        told, silent = sentences(found, table)
        if silent:
            told.append(f"Not measured: {', '.join(silent)}.")
        parts += [Paragraph(f"{table}:"), Items(told)]
    return parts


def judgement(verdict: Verdict) -> str:
    if verdict.holds:
        return {True: "still holds", False: "holds now, did not then", None: "holds"}[verdict.held]
    return {True: "holds no longer", False: "neither then nor now", None: "does not hold"}[
        verdict.held
    ]


def table_1(found: dict) -> list[Block]:
    everywhere = clients(found, LINEITEM)
    local = [client for client in clients(found, LINEITEM, LOCAL) if client["in_figures"]]
    measured = [client for client in local if client["runs"]]
    # A line of netcat would mislead beside bars of another machine.
    lines_s = {baseline_s(found, client["race"]) for client in measured}
    line_s = lines_s.pop() if len(lines_s) == 1 else None
    bars = [(f"{c['race']['system_title']}, {c['label']}", c) for c in measured]
    return [
        Heading("Table 1"),
        Paragraph(f"The paper's: {PAPER['tables']['1']['title']}. {size_of(found, LINEITEM)}"),
        comparison(found, everywhere, {"local": "Local"}, "1"),
        Heading("Figure 1"),
        Paragraph(
            f"The paper's: {PAPER['figures']['1']['title']}; its values are "
            f"{PAPER['figures']['1']['values']}. A phase that a client does not tell is part of "
            "the next one."
        ),
        Picture(phases("Figure 1: seconds over loopback", bars, line_s)),
        phases_table(bars),
    ]


def phases_table(bars: Sequence[tuple[str, dict]]) -> Block:
    if not bars:
        return Paragraph("Not measured.")
    names = [phase.removesuffix("_s") for phase in PHASES]
    rows = []
    for name, client in bars:
        seconds = [median(client, phase) for phase in PHASES]
        parts = [f"{value:,.2f}" for value in (*seconds, sum(seconds))]
        machine = machine_name(client["race"]["machine"])
        rows.append([name, machine, *parts, paper_cell("1", client["paper"], LOCAL)])
    head = ["client", "machine", *(f"{name}, s" for name in names), "sum, s"]
    return Table([*head, Cell("2017, table 1", kind="paper")], rows)


def size_of(found: dict, table: str) -> str:
    race = next(iter(races(found, table)), None)
    if race is None:
        return ""
    return (
        f"Here: {race['table_title']}, {race['rows']:,} rows, {race['csv_bytes'] / 1e6:,.1f} MB "
        "as CSV."
    )


def network_table(found: dict, number: str) -> list[Block]:
    paper = PAPER["tables"][number]
    table = paper["table"]
    return [
        Heading(f"Table {number}"),
        Paragraph(f"The paper's: {paper['title']}. {size_of(found, table)}"),
        comparison(found, clients(found, table), COLUMNS, number),
    ]


def figure(found: dict, number: str, kind: str, label: str) -> list[Block]:
    """A line for each system that takes part, and the same as a table."""
    paper = PAPER["figures"][number]
    measured = clients(found, MILLION, figure=kind)
    by_x = sorted({(client["race"]["x"], client["race"]["network"]) for client in measured})
    points: dict[str, list[tuple[float, float]]] = {}
    for client in measured:
        if client["runs"]:
            title = series_name(client["race"]["system_title"], client)
            points.setdefault(title, []).append((client["race"]["x"], median_s(client)))
    series = [
        Line(title, sorted(line), colour=SHADES[place % len(SHADES)])
        for place, (title, line) in enumerate(points.items())
    ]
    unit = label.split()[-1]
    return [
        Heading(f"Figure {number}"),
        Paragraph(
            f"The paper's: {paper['title']}, one million rows of lineitem; its values are "
            f"{paper['values']}. Here in seconds: {size_of_figure(measured, kind)}"
        ),
        Picture(lines(f"Figure {number}: seconds", label, series, {x: f"{x:g}" for x, _ in by_x})),
        comparison(found, measured, {network: f"{x:g} {unit}" for x, network in by_x}),
    ]


def series_name(system: str, client: dict) -> str:
    """A short name: of the system, or of Dray if it reads from the system."""
    if client["label"].startswith("Dray") and not system.startswith("Dray"):
        extension = ", extension" if "extension" in client["label"] else ""
        return f"Dray from {system.split()[0]}{extension}"
    return f"{system}, compressed" if "compressed" in client["label"] else system


def size_of_figure(measured: list[dict], kind: str) -> str:
    if not measured:
        return "none."
    rest = {"latency": f"at {LATENCY_RATE}", "throughput": "without added delay"}[kind]
    return f"{measured[0]['race']['rows']:,} rows, {rest}."


def formats(found: dict) -> list[Block]:
    """DBMS X, of which there is only what the paper tells of its format."""
    rows = []
    for number in ("10", "11", "12"):
        paper = PAPER["tables"][number]
        table = paper["table"]
        if table in found["encoded"]:
            encoded, csv = found["encoded"][table], csv_bytes(found, table)
            then = ratio(paper["rows"][DBMS_X]["size"], paper["rows"][BASELINE]["size"])
            rows.append(
                [
                    table,
                    f"{encoded / 1e6:,.1f}",
                    precise(ratio(encoded, csv)),
                    Cell(precise(then), kind="paper"),
                ]
            )
    return [
        Heading("DBMS X, as a format only"),
        Paragraph(
            "Bytes of the tables as section 2.3 of the paper tells the format: a header for each "
            "row, a length before each value, and numbers in a terse form. Where the paper is "
            "silent, encoded.py says what was taken. Nothing was sent or timed."
        ),
        Table(["table", "MB", "÷ CSV", PAPER_HEAD], rows),
    ]


def precise(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def absent(found: dict) -> list[Block]:
    """What cannot run here, and what failed."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for race in found["races"]:
        for client in race["clients"]:
            if client["failure"]:
                key = f"{race['system_title']}: {client['label']}", client["failure"]
                where.setdefault(key, {})[f"{race['table']} {race['network']}"] = None
    rows = [[name, reason] for name, reason in (*ABSENT, *found["absent"])]
    rows += [[name, reason, ", ".join(places)] for (name, reason), places in where.items()]
    return [
        Heading("What could not run here, and why"),
        Table(["what", "why", "where"], rows, texts=0),
    ]


def links(found: dict) -> list[Block]:
    seen = {(race["network_title"], race["link"]) for race in found["races"] if race["link"]}
    if not seen:
        return []
    return [
        Heading("Links, as measured before the clients"),
        Table(["link", "measured"], [list(one) for one in sorted(seen)], texts=0),
    ]


def main() -> int:
    stem = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    write(stem, load(Path(f"{stem}.json")))
    print(f"{stem}.html, {stem}-tables.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
