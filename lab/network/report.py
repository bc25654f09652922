"""The results over networks as JSON and Markdown: targets, then a section for each race."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass

from lab.common.row import Row, Run
from lab.common.tables import number, peak, table
from lab.data.table import Table
from lab.network.networks import Network

HEADINGS = [
    "contender",
    "congestion control",
    "seconds",
    "min–max",
    "MB on the line",
    "× best fixed",
    "server CPU s",
    "client CPU s",
]
AUTO = "dray-tcp-auto"
#: `auto` may take at most this multiple of the best fixed compression's time.
FIXED_TIMES_MAX = 1.10
#: On the lossy link, lineitem may take at most this fraction of the best rival's time.
RIVAL_SHARE_MAX = 0.5
#: Values of λ shown per fetch, at most.
PRICES_MAX = 8


@dataclass
class Race:
    """All contenders on one table over one network."""

    network: Network
    table: Table
    rows: list[Row]
    #: The result of measuring the link.
    checked: str

    def seconds(self, *prefixes: str) -> dict[str, float]:
        """Median seconds, by title, of contenders whose names begin with one of the prefixes."""
        chosen = [row for row in self.rows if row.runs and row.contender.name.startswith(prefixes)]
        return {row.title: row.median("total_s") for row in chosen}

    def fixed(self) -> dict[str, float]:
        auto = next((row.title for row in self.rows if row.contender.name == AUTO), None)
        return {title: s for title, s in self.seconds("dray-tcp-").items() if title != auto}

    def auto_s(self) -> float | None:
        return next(iter(self.seconds(AUTO).values()), None)


def as_json(
    machine: dict[str, object], races: list[Race], scenarios: list[dict]
) -> dict[str, object]:
    return {
        "machine": machine,
        "races": [
            {
                "network": race.network.name,
                "data": race.table.title,
                "rows": race.table.rows,
                "arrow_bytes": race.table.arrow_bytes(),
                "check": race.checked,
                "contenders": [
                    {
                        "name": row.contender.name,
                        "label": row.contender.label,
                        "congestion_set": row.congestion_set,
                        "congestion_seen": row.congestion_seen,
                        "failure": row.failure,
                        "total_s_median": row.median("total_s"),
                        "runs": [asdict(run) for run in row.runs],
                    }
                    for row in race.rows
                ],
            }
            for race in races
        ],
        "scenarios": scenarios,
    }


def as_markdown(machine: dict[str, object], races: list[Race], scenarios: list[dict]) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    lines = [
        "# Results over networks",
        "",
        f"{machine['processor']}, {machine['cores']} cores; Linux {machine['kernel']}; "
        f"load average at the start {machine['load_average']:.1f}. {versions}.",
        "",
        f"`{machine['command']}`",
        "",
        "Seconds are medians of alternating rounds. MB on the line include headers and "
        "retransmissions; on one host they are the client's count, or the least that loopback "
        "carried. The congestion control is the one that `ss` saw on the server's socket.",
        "",
    ]
    if races:
        lines += ["## Targets", "", *targets(races), ""]
    for race in races:
        lines += section(race)
    for scenario in scenarios:
        lines += [f"## {scenario['title']}", "", *scenario["lines"], ""]
    return "\n".join(lines)


def targets(races: list[Race]) -> list[str]:
    """Whether `auto` reaches its targets in each race."""
    headings = [
        "network",
        "data",
        "auto s",
        "best fixed",
        "× best fixed",
        "× best Flight",
        "× best rival",
        "missed",
    ]
    content = [headings]
    for race in races:
        auto_s, fixed = race.auto_s(), race.fixed()
        if auto_s is None or not fixed:
            continue
        best = min(fixed, key=fixed.__getitem__)
        flight = min(race.seconds("flight").values(), default=None)
        rival = min(race.seconds("flight", "netcat").values(), default=None)
        missed = []
        if auto_s > fixed[best] * FIXED_TIMES_MAX:
            missed.append(f"over {FIXED_TIMES_MAX:g} × best fixed")
        if flight is not None and auto_s > flight:
            missed.append("slower than Flight")
        lossy = race.network.name == "100mbit" and race.table.name == "lineitem"
        if lossy and rival is not None and auto_s > rival * RIVAL_SHARE_MAX:
            missed.append(f"over {RIVAL_SHARE_MAX:g} × best rival")
        content.append(
            [
                race.network.name,
                race.table.name,
                number(auto_s, 1, 3),
                f"{best.split(', ')[1]} {fixed[best]:.3f}",
                number(auto_s / fixed[best], 1, 2),
                number(auto_s / flight if flight else None, 1, 2),
                number(auto_s / rival if rival else None, 1, 2),
                "; ".join(missed) or "–",
            ]
        )
    return table(content)


def section(race: Race) -> list[str]:
    measured = [row for row in race.rows if row.runs]
    lines = [
        f"## {race.network.title}: {race.table.name}",
        "",
        f"{race.table.title}; {race.table.rows:,} rows, "
        f"{race.table.arrow_bytes() / 1e6:,.0f} MB in Arrow. {race.checked}".strip(),
        "",
        *table([HEADINGS, *(cells(row, race) for row in measured)]),
        "",
    ]
    lines += [
        f"- {line}" for row in measured if row.contender.name == AUTO for line in adapted(row)
    ]
    lines += [f"- {row.title}: {row.failure}" for row in race.rows if row.failure]
    return [*lines, ""]


def cells(row: Row, race: Race) -> list[str]:
    best = min(race.fixed().values(), default=None)
    total = row.median("total_s")
    return [
        row.contender.label,
        row.congestion,
        number(total, 1, 3),
        f"{min(row.totals()):.3f}–{max(row.totals()):.3f}",
        number(line_bytes(row, race.network), 1e-6, 1),
        number(total / best if best else None, 1, 2),
        number(peak(row, server_cpu_s), 1, 2),
        number(row.median("client_cpu_s"), 1, 2),
    ]


def server_cpu_s(run: Run) -> float | None:
    """CPU seconds of the server per fetch."""
    return None if run.server.cpu_s is None else run.server.cpu_s / run.client.fetches


def line_bytes(row: Row, network: Network) -> float | None:
    """Bytes per fetch on the line. On loopback, other programs' bytes would count as well."""
    if network.make_link is None:
        return row.wire_bytes()
    return statistics.median(run.carried_bytes for run in row.runs)


def adapted(row: Row) -> list[str]:
    """λ and the encodings in the median fetch of each round."""
    return [
        f"round {i + 1}: {adaptation(run.client.details['stats'])}"
        for i, run in enumerate(row.runs)
    ]


def adaptation(stats: dict) -> str:
    """λ over time, the time of the server's threads, and the encodings with the most bytes."""
    prices = stats["byte_prices"]
    every = max(1, -(-len(prices) // PRICES_MAX))
    shown = [*prices[:-1][::every], *prices[-1:]]
    path = "λ in ns per byte " + " → ".join(f"{ns:.3g} ({at_s:.2f} s)" for at_s, ns in shown)
    server = stats["server"] or {}
    spent = ", ".join(
        f"{name} {server[f'{name}_seconds']:.2f} s"
        for name in ("execute", "encode", "queue", "socket")
        if f"{name}_seconds" in server
    )
    sent: dict[str, int] = {}
    for column in stats["columns"]:
        names = " | ".join(column["encodings"]) or "plain"
        sent[names] = sent.get(names, 0) + (column["wire_bytes"] or 0)
    largest = sorted(sent.items(), key=lambda item: -item[1])[:4]
    encodings = "; ".join(f"{names} {count / 1e6:.1f} MB" for names, count in largest)
    how = path if prices else "no adaptation"
    return f"{how}. Server's threads: {spent}. {stats['chunks']} chunks. Encodings: {encodings}."
