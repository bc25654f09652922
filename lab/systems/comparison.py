"""Tables of clients below their systems, with the paper's numbers beside them."""

from __future__ import annotations

from lab.systems.document import Block, Cell, Paragraph, Table
from lab.systems.figures import (
    BASELINE,
    PAPER,
    baseline_s,
    carried,
    median_s,
    paper_seconds,
    ratio,
    spent_s,
)

DBMS_X = "DBMS X"
UNKNOWN = "unknown"
PAPER_HEAD = Cell("2017", kind="paper")


def comparison(
    found: dict, measured: list[dict], columns: dict[str, str], number: str = ""
) -> Block:
    """All clients below the names of their systems, with the networks as columns, and beside them
    the numbers of a table of the paper, if there is one.
    """
    if not measured:
        return Paragraph("Not measured.")
    rows: list[list[Cell | str]] = []
    for system, names in by_system(found, measured).items():
        rows.append([Cell(system, kind="system"), *machine_cells(names, columns, number)])
        for networks in names.values():
            client = next(iter(networks.values()))
            row = client["paper"]
            rows.append([Cell(client["label"], row and f"({row.strip('()')})")])
            for name in columns:
                rows[-1].append(cell(found, networks.get(name)))
                if number:
                    rows[-1].append(paper_cell(number, row, name))
            if number:
                rows[-1] += [bytes_cell(networks), paper_cell(number, row, "size")]
    head: list[Cell | str] = [""]
    for title in columns.values():
        head += [f"{title}, s", PAPER_HEAD] if number else [title]
    if number:
        head += ["MB", Cell("2017, GB", kind="paper")]
        rows += paper_alone(found, measured, columns, number)
    return Table(head, rows)


def by_system(found: dict, measured: list[dict]) -> dict[str, dict[str, dict[str, dict]]]:
    """Clients by system, name and network, in the order of the results."""
    order = list(found["systems"])
    systems: dict[str, dict[str, dict[str, dict]]] = {}
    for client in sorted(measured, key=lambda client: order.index(client["race"]["system"])):
        race = client["race"]
        names = systems.setdefault(race["system_title"], {})
        names.setdefault(client["name"], {})[race["network"]] = client
    return systems


def machine_cells(
    names: dict[str, dict[str, dict]], columns: dict[str, str], number: str
) -> list[Cell]:
    """The machine of a system's race in each network."""
    cells = []
    for column in columns:
        ran = (networks[column] for networks in names.values() if column in networks)
        client = next(ran, None)
        name = "" if client is None else f"machine {machine_name(client['race']['machine'])}"
        cells += [Cell(name, kind="system"), *([Cell(kind="paper")] if number else [])]
    return cells


def paper_alone(
    found: dict, measured: list[dict], columns: dict[str, str], number: str
) -> list[list[Cell | str]]:
    """The paper's rows that no client here stands for, and the bytes of DBMS X."""
    here = {client["paper"] for client in measured}
    table = PAPER["tables"][number]["table"]
    rows: list[list[Cell | str]] = [[Cell("In the paper only", kind="system")]]
    for row in PAPER["tables"][number]["rows"]:
        if row not in here:
            seconds = [[Cell(), paper_cell(number, row, name)] for name in columns]
            is_encoded = row == DBMS_X and table in found["encoded"]
            race = measured[0]["race"]
            size = megabytes(found["encoded"][table], race) if is_encoded else Cell()
            label = Cell(row, "bytes of its format alone" if is_encoded else "")
            cells = [one for pair in seconds for one in pair]
            rows.append([label, *cells, size, paper_cell(number, row, "size")])
    return rows if len(rows) > 1 else []


def shown(value: float | None) -> str:
    """A ratio, with two decimals if it is small."""
    digits = 0 if value is None or value >= 100 else 1 if value >= 10 else 2
    return "" if value is None else f"{value:,.{digits}f}"


def times(value: float | None) -> str:
    return "" if value is None else f"×{shown(value)}"


def cell(found: dict, client: dict | None) -> Cell:
    """Seconds, and how often netcat's time they are, or why there are none."""
    if client is None:
        return Cell()
    if not client["runs"]:
        reason = client["failure"] or "not run"
        return Cell("T" if client["timed_out"] else "failed", kind="failed", hint=reason)
    seconds = median_s(client)
    spans = [spent_s(run) for run in client["runs"]]
    span = f"({min(spans):.2f}–{max(spans):.2f})" if len(spans) > 1 else ""
    many = times(ratio(seconds, baseline_s(found, client["race"])))
    return Cell(f"{seconds:,.2f}", f"{span} {many}".strip())


def paper_cell(number: str, row: str, column: str) -> Cell:
    value = paper_seconds(number, row, column)
    many = times(ratio(value, paper_seconds(number, BASELINE, column)))
    return Cell("" if value is None else str(value), many, kind="paper")


def bytes_cell(networks: dict[str, dict]) -> Cell:
    client = carried(networks)
    return Cell() if client is None else megabytes(client["carried_bytes"], client["race"])


def megabytes(size: int, race: dict) -> Cell:
    return Cell(f"{size / 1e6:,.1f}", times(ratio(size, race["csv_bytes"])))


def machine_name(place: int | None) -> str:
    return UNKNOWN if place is None else str(place + 1)
