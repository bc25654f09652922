"""The results on PostgreSQL as JSON and Markdown, and Dray's targets."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from lab.common.row import Row, Run
from lab.common.tables import MIB, number, table
from lab.postgres.contender import ARROW, FRAME, LIMIT, PARALLEL, ROWS, TINY_QUERIES
from lab.postgres.data import DataSet
from lab.postgres.server import SETTINGS, PostgresServer

HEADINGS = [
    "contender",
    "note",
    "connect ms",
    "execute ms",
    "transfer s",
    "total s",
    "min–max",
    "runs",
    "× first",
    "wire MB",
    "client peak MiB",
    "client CPU s",
    "backends MiB",
    "backends CPU s",
    "backends",
]
TINY_HEADINGS = ["query", "contender", "median µs", "min–max", "p99 µs", "× libpq"]
#: Target of a backend's memory above that of an idle one: 32 MiB and four chunks of Dray's default
#: size.
BACKEND_BYTES_MAX = 32 * MIB + 4 * 16 * MIB


@dataclass
class Section:
    """The contenders on one table."""

    data_set: DataSet
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.contender.name == name and row.runs), None)

    def total_s(self, name: str) -> float | None:
        row = self.row(name)
        return None if row is None else row.median("total_s")

    def best_rival_s(self) -> float | None:
        """Median of the fastest rival that builds an Arrow table over one connection."""
        rivals = (r for r in self.rows if r.contender.group is ARROW and r.runs and not is_dray(r))
        return min((row.median("total_s") for row in rivals), default=None)


def is_dray(row: Row) -> bool:
    return row.contender.name.startswith("dray-")


def as_json(
    machine: dict[str, object], server: PostgresServer, sections: list[Section], tiny: list[Row]
) -> dict[str, object]:
    return {
        "machine": machine,
        "settings": SETTINGS,
        "idle_backend_bytes": server.idle_backend_bytes,
        "tables": [
            {
                "name": section.data_set.name,
                "title": section.data_set.title,
                "rows": server.rows[section.data_set.name],
                "contenders": [row_as_json(row) for row in section.rows],
            }
            for section in sections
        ],
        "tiny_queries": [row_as_json(row) for row in tiny],
        "targets": [asdict(target) for target in targets(server, sections, tiny)],
    }


def row_as_json(row: Row) -> dict[str, object]:
    return {
        "name": row.contender.name,
        "kind": row.contender.group.name,
        "label": row.contender.label,
        "connections": row.contender.connections,
        "congestion_set": row.congestion_set,
        "congestion_seen": row.congestion_seen,
        "failure": row.failure,
        "total_s_median": row.median("total_s"),
        "wire_bytes": row.wire_bytes(),
        "runs": [asdict(run) for run in row.runs],
    }


def as_markdown(
    machine: dict[str, object], server: PostgresServer, sections: list[Section], tiny: list[Row]
) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    rows = [row for section in sections for row in section.rows] + tiny
    controls = sorted({row.congestion_set for row in rows if row.congestion_set})
    seen = sorted({row.congestion_seen for row in rows if row.congestion_seen})
    lines = [
        "# From PostgreSQL over loopback TCP",
        "",
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB; Linux {machine['kernel']}; "
        f"load average {machine['load_average']:.1f} at the start, "
        f"{machine['load_average_end']:.1f} at the end. {versions}. Congestion control "
        f"set {', '.join(controls)}, seen on the server's sockets {', '.join(seen) or 'none'}.",
        "",
        f"`{machine['command']}`",
        "",
        "Medians of alternating runs, each in a client process of its own. Execute ends with the "
        "first batch or rows. If a driver does not expose the end of a part, the next part "
        "includes it. ontime and pums are not the full data sets: their rows repeat those of a "
        "sample. Memory and CPU seconds of backends are the sums over all connections of a fetch; "
        f"an idle backend takes {server.idle_backend_bytes / MIB:.1f} MiB.",
        "",
        *changed_lines(machine),
        *target_lines(targets(server, sections, tiny)),
    ]
    for section in sections:
        lines += [
            f"## {section.data_set.title}",
            "",
            f"{server.rows[section.data_set.name]:,} rows.",
            "",
        ]
        for group in (ARROW, PARALLEL, LIMIT, ROWS, FRAME):
            found = [row for row in section.rows if row.contender.group is group and row.runs]
            if found:
                lines += [
                    f"### {group.heading}",
                    "",
                    *table([HEADINGS, *(cells(row, found[0]) for row in found)]),
                    "",
                ]
    measured = [row for row in tiny if row.runs]
    if measured:
        lines += [f"## {measured[0].contender.group.heading}", ""]
        lines += [*table([TINY_HEADINGS, *(tiny_cells(row, tiny) for row in measured)]), ""]
    lines += failure_lines(sections, tiny)
    return "\n".join(lines)


def changed_lines(machine: dict[str, object]) -> list[str]:
    """A warning if Dray was reinstalled during the run, so that a table mixes two builds."""
    changed = machine["changed_during_run"]
    if not changed:
        return []
    return [
        f"**Changed during the run, so results of two builds are mixed: {', '.join(changed)}.**",
        "",
    ]


def cells(row: Row, first: Row) -> list[str]:
    """The cells of one row, in the order of HEADINGS."""
    total_s = row.median("total_s")
    return [
        row.contender.label,
        note(row),
        number(row.median("connect_s"), 1e3, 1),
        number(row.median("execute_s"), 1e3, 1),
        number(row.median("transfer_s"), 1, 3),
        number(total_s, 1, 3),
        f"{min(row.totals()):.3f}–{max(row.totals()):.3f}",
        str(len(row.runs)),
        number(total_s / first.median("total_s"), 1, 2),
        number(row.wire_bytes(), 1e-6, 0),
        number(middle(run.client.client_peak_bytes for run in row.runs), 1 / MIB, 0),
        number(row.median("client_cpu_s"), 1, 2),
        number(middle(run.server.peak_bytes for run in row.runs), 1 / MIB, 0),
        number(middle(server_cpu_s(run) for run in row.runs), 1, 2),
        number(middle(run.server.backends_max for run in row.runs), 1, 0),
    ]


def note(row: Row) -> str:
    """The path that Dray chose, and why it used fewer connections than requested, if it did."""
    details = row.runs[-1].client.details
    if "deform_s" in details:
        return (
            f"without appending {middle(run.client.details['deform_s'] for run in row.runs):.3f} s"
        )
    stats = details.get("stats")
    if stats is None:
        return row.contender.note
    asked = row.contender.connections
    backends = middle(run.server.backends_max for run in row.runs)
    return (
        stats["path"]
        if backends is None or backends >= asked
        else f"{stats['path']}: {stats['path_reason']}"
    )


def server_cpu_s(run: Run) -> float | None:
    """CPU seconds of the backends per fetch."""
    return None if run.server.cpu_s is None else run.server.cpu_s / run.client.fetches


def tiny_cells(row: Row, tiny: list[Row]) -> list[str]:
    query = next(name for name in TINY_QUERIES if row.contender.name.endswith(name))
    label, _, sql = row.contender.label.partition(": ")
    libpq_s = next(
        (r.median("total_s") for r in tiny if r.contender.name == f"libpq-{query}"), None
    )
    total_s = row.median("total_s")
    return [
        sql,
        label,
        number(total_s, 1e6, 1),
        f"{min(row.totals()) * 1e6:.1f}–{max(row.totals()) * 1e6:.1f}",
        number(middle(run.client.details["p99_us"] for run in row.runs), 1, 0),
        number(total_s / libpq_s if libpq_s else None, 1, 2),
    ]


def failure_lines(sections: list[Section], tiny: list[Row]) -> list[str]:
    """The contenders that could not be measured, with the tables and the reason."""
    failed: dict[tuple[str, str], list[str]] = {}
    for place, rows in [*((s.data_set.name, s.rows) for s in sections), ("tiny queries", tiny)]:
        for row in rows:
            if row.failure:
                failed.setdefault((row.contender.label, row.failure), []).append(place)
    items = [
        f"- {label} ({', '.join(places)}): {failure}" for (label, failure), places in failed.items()
    ]
    return ["## Not measured", "", *items, ""] if items else []


@dataclass
class Target:
    """A target of Dray, and whether this run reaches it."""

    what: str
    limit: str
    measured: float | None
    reached: bool | None


def targets(server: PostgresServer, sections: list[Section], tiny: list[Row]) -> list[Target]:
    found: list[Target] = []

    def at_least(what: str, dividend: float | None, divisor: float | None, limit: float) -> None:
        ratio = dividend / divisor if dividend and divisor else None
        found.append(
            Target(what, f"at least {limit:g}", ratio, None if ratio is None else ratio >= limit)
        )

    def at_most(what: str, dividend: float | None, divisor: float | None, limit: float) -> None:
        ratio = dividend / divisor if dividend and divisor else None
        found.append(
            Target(what, f"at most {limit:g}", ratio, None if ratio is None else ratio <= limit)
        )

    for section in sections:
        name, total_s = section.data_set.name, section.total_s
        if name == "lineitem":
            at_least(
                f"{name}: DuckDB with 1 thread / extension",
                total_s("duckdb-1"),
                total_s("dray-extension"),
                4,
            )
            at_least(f"{name}: ADBC / extension", total_s("adbc"), total_s("dray-extension"), 11)
            at_most(
                f"{name}: extension / scan-and-append",
                total_s("dray-extension"),
                total_s("scan-append"),
                1.6,
            )
        elif name in ("ontime", "pums"):
            at_least(
                f"{name}: best rival / extension",
                section.best_rival_s(),
                total_s("dray-extension"),
                4,
            )
        for drain, by in (("copy-binary", "by psycopg"), ("copy-socket", "from the socket")):
            at_most(
                f"{name}: stock / COPY binary drained {by}",
                total_s("dray-stock"),
                total_s(drain),
                1.10,
            )
        at_least(f"{name}: best rival / stock", section.best_rival_s(), total_s("dray-stock"), 1)
        for path in ("extension", "stock"):
            two, one = total_s(f"dray-{path}-2"), total_s(f"dray-{path}")
            at_most(f"{name}: {path}, two partitions / one", two, one, 1)
        for connections in (2, 4):
            theirs, ours = total_s(f"duckdb-{connections}"), total_s(f"dray-stock-{connections}")
            at_least(
                f"{name}: DuckDB / stock, both with {connections} connections", theirs, ours, 1
            )
        row = section.row("dray-extension")
        peak_bytes = None if row is None else middle(run.server.peak_bytes for run in row.runs)
        growth_bytes = None if peak_bytes is None else peak_bytes - server.idle_backend_bytes
        what = f"{name}: extension's backend memory above idle / (32 MiB + four chunks)"
        at_most(what, growth_bytes, BACKEND_BYTES_MAX, 1)
    for query in TINY_QUERIES:
        medians = {row.contender.name: row.median("total_s") for row in tiny if row.runs}
        for path in ("auto", "extension", "stock"):
            dray_s = medians.get(f"dray-{path}-{query}")
            at_most(f"{query}: {path} / libpq's PQexec", dray_s, medians.get(f"libpq-{query}"), 1.2)
            at_most(
                f"{query}: {path} / psycopg 3 on libpq",
                dray_s,
                medians.get(f"psycopg-{query}"),
                1.2,
            )
    return found


def target_lines(found: list[Target]) -> list[str]:
    word = {True: "yes", False: "**no**", None: "not measured"}
    lines = [
        [target.what, target.limit, number(target.measured, 1, 2), word[target.reached]]
        for target in found
    ]
    return [
        "## Targets",
        "",
        *table([["ratio", "limit", "measured", "reached"], *lines]),
        "",
    ]


def middle(values: Iterable[float | None]) -> float | None:
    """The median; None if a value is missing."""
    listed = list(values)
    return None if not listed or None in listed else statistics.median(listed)
