"""What changed since the paper: its claims, judged by today's numbers, and a sentence about each of
its systems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab.systems.comparison import shown
from lab.systems.figures import (
    BASELINE,
    LAN,
    LOCAL,
    PAPER,
    WAN,
    carried,
    clients,
    compared,
    median_s,
    paper_seconds,
    ratio,
    standing_for,
)
from lab.systems.results import on_one_machine

#: Tables, and those of the paper that have their numbers.
TABLES = {"lineitem": "10", "pums": "11", "ontime": "12"}
NETWORKS = {LOCAL: "over loopback", LAN: "over the LAN", WAN: "over the WAN"}
#: Rows of the paper that are protocols of databases as they are.
STATE_OF_THE_ART = ("MySQL", "MySQL+C", "PostgreSQL", "DB2", "Hive", "MongoDB", "MonetDB")
COLUMNAR = ("MonetDB++", "MonetDB++C")
#: Rows that get a sentence.
SYSTEMS = (*COLUMNAR, "Postgres++", "Postgres++C", *STATE_OF_THE_ART)
#: What `nearly as fast` and `an order of magnitude` mean here.
NEARLY, ORDER = 1.5, 10.0
#: A change by less is none.
SAME = 1.05


@dataclass(frozen=True)
class Verdict:
    """The paper's number, today's, and whether the claim held and holds. A number that the paper
    does not have is None.
    """

    where: str
    what: str
    then: float | None
    now: float
    held: bool | None
    holds: bool


def judged(
    where: str, what: str, then: float | None, now: float, holds: Callable[[float], bool]
) -> Verdict:
    return Verdict(where, what, then, now, None if then is None else holds(then), holds(now))


def everywhere(
    judge: Callable[[dict, str, str], Verdict | None],
) -> Callable[[dict], list[Verdict]]:
    """A judge of all tables and networks that have been measured."""

    def all_of_them(found: dict) -> list[Verdict]:
        places = ((table, network) for table in TABLES for network in NETWORKS)
        heard = (judge(found, *one) for one in places)
        return [verdict for verdict in heard if verdict is not None]

    return all_of_them


def place(table: str, network: str) -> str:
    return f"{table} {NETWORKS[network]}"


def paper_ratio(table: str, column: str, row: str, base: str) -> float | None:
    """How many times as long a row of the paper takes as another, or as many bytes it has."""
    numbers = (TABLES[table], "1") if table == "lineitem" else (TABLES[table],)
    ratios = (
        ratio(paper_seconds(number, row, column), paper_seconds(number, base, column))
        for number in numbers
    )
    return next((one for one in ratios if one is not None), None)


def order_of_magnitude(found: dict, table: str, network: str) -> Verdict | None:
    ratios = {
        row: pair[0]
        for row in STATE_OF_THE_ART
        if (pair := compared(found, table, network, row, BASELINE))
    }
    if not ratios:
        return None
    then = min(known(paper_ratio(table, network, row, BASELINE) for row in ratios), default=None)
    what = f"the fastest of {', '.join(ratios)} ÷ netcat"
    now = min(ratios.values())
    return judged(place(table, network), what, then, now, lambda value: value >= ORDER)


def known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def compressed(found: dict, table: str, network: str, is_slower: bool) -> Verdict | None:
    pair = compared(found, table, network, "MySQL+C", "MySQL")
    if pair is None:
        return None
    then = paper_ratio(table, network, "MySQL+C", "MySQL")
    return judged(
        place(table, network),
        "compressed ÷ plain",
        then,
        pair[0],
        lambda value: value > NEARLY if is_slower else value < 1,
    )


def compression_local(found: dict, table: str, network: str) -> Verdict | None:
    return None if network == WAN else compressed(found, table, network, is_slower=True)


def compression_wan(found: dict, table: str, network: str) -> Verdict | None:
    return compressed(found, table, network, is_slower=False) if network == WAN else None


def size_ratio(found: dict, table: str, row: str) -> float | None:
    """Bytes of a row of the paper as a multiple of the CSV's."""
    measured = {name: standing_for(found, table, name, row) for name in NETWORKS}
    client = carried({name: min(of, key=median_s) for name, of in measured.items() if of})
    if client is None:
        return None
    return ratio(client["carried_bytes"], client["race"]["csv_bytes"])


def sizes(row: str, holds: Callable[[float], bool]) -> Callable[[dict], list[Verdict]]:
    def judge(found: dict) -> list[Verdict]:
        ratios = {table: size_ratio(found, table, row) for table in TABLES}
        return [
            judged(table, "bytes ÷ CSV", paper_ratio(table, "size", row, BASELINE), now, holds)
            for table, now in ratios.items()
            if now is not None
        ]

    return judge


def slowdown(
    found: dict, table: str, far: str, near: str, row: str, figure: str = ""
) -> float | None:
    """How many times as long one network takes as another by the same client on one machine."""
    ratios = [
        median_s(there) / median_s(here)
        for there in standing_for(found, table, far, row, figure)
        for here in standing_for(found, table, near, row, figure)
        if there["name"] == here["name"]
        and there["race"]["system"] == here["race"]["system"]
        and on_one_machine(found, there["race"], here["race"])
    ]
    return min(ratios, default=None)


def db2_confirmations(found: dict) -> list[Verdict]:
    """By figure 3, which the paper only draws, and by the WAN, since the LAN here has no delay."""
    pairs = [
        ("million", f"latency-{far}ms", "latency-1ms", "latency", f"figure 3, {far} ms ÷ 1 ms")
        for far in (10, 100)
    ]
    pairs += [(table, WAN, LOCAL, "", f"{table}, WAN ÷ loopback") for table in TABLES]
    verdicts = []
    for table, far, near, figure, where in pairs:
        now, *others = (
            slowdown(found, table, far, near, row, figure)
            for row in ("DB2", *(row for row in STATE_OF_THE_ART if row != "DB2"))
        )
        if now is not None and known(others):
            most = max(known(others))
            what = f"slowdown of DB2 (of the others: {most:.1f} at most)"
            then, held = None, None
            if not figure:
                then, *before = (paper_slowdown(table, row) for row in ("DB2", *STATE_OF_THE_ART))
                held = None if then is None else then >= max(known(before))
            verdicts.append(Verdict(where, what, then, now, held, now > most))
    return verdicts


def paper_slowdown(table: str, row: str, far: str = WAN) -> float | None:
    number = TABLES[table]
    return ratio(paper_seconds(number, row, far), paper_seconds(number, row, LOCAL))


def columns_local(found: dict, table: str, network: str) -> Verdict | None:
    pair = compared(found, table, network, "MonetDB++", BASELINE)
    if pair is None:
        return None
    then = paper_ratio(table, network, "MonetDB++", BASELINE)
    where = place(table, network)
    return judged(where, "column store ÷ netcat", then, pair[0], lambda value: value <= NEARLY)


def columns_rivals(found: dict, table: str, network: str) -> Verdict | None:
    """The best of the columnar protocol beside the best of the others on its machine."""
    ratios = {}
    for row in STATE_OF_THE_ART:
        pairs = [compared(found, table, network, row, base) for base in COLUMNAR]
        if measured := [pair[0] for pair in pairs if pair]:
            ratios[row] = max(measured)
    if not ratios:
        return None
    before = [
        max(known(paper_ratio(table, network, row, base) for base in COLUMNAR), default=None)
        for row in ratios
    ]
    what = f"the fastest of {', '.join(ratios)} ÷ column store"
    now = min(ratios.values())
    then = min(known(before), default=None)
    return judged(place(table, network), what, then, now, lambda value: value >= ORDER)


JUDGES: dict[str, Callable[[dict], list[Verdict]]] = {
    "order-of-magnitude": everywhere(order_of_magnitude),
    "compression-local": everywhere(compression_local),
    "compression-wan": everywhere(compression_wan),
    "postgres-bytes": sizes("PostgreSQL", lambda value: value > 1),
    "mongo-bytes": sizes("MongoDB", lambda value: value > 3),
    "db2-confirmations": db2_confirmations,
    "columns-local": everywhere(columns_local),
    "columns-rivals": everywhere(columns_rivals),
}


def verdicts(found: dict) -> list[tuple[dict, list[Verdict]]]:
    """Each claim of the paper with its verdicts: none if nothing of it is measured."""
    return [(claim, JUDGES[claim["id"]](found)) for claim in PAPER["claims"]]


def sentences(found: dict, table: str) -> tuple[list[str], list[str]]:
    """A sentence for each system of the paper, with today's numbers and in parentheses those of
    2017; and the systems of which nothing can be said.
    """
    told, silent = [], []
    for row in SYSTEMS:
        by: dict[str, None] = {}
        parts = [beside_netcat(found, table, network, row, by) for network in NETWORKS]
        slower = slowdown(found, table, LAN, LOCAL, row)
        parts.append(number("LAN ÷ loopback", slower, paper_slowdown(table, row, LAN)))
        size = size_ratio(found, table, row)
        parts.append(number("bytes ÷ CSV", size, paper_ratio(table, "size", row, BASELINE)))
        if any(parts):
            names = ", ".join(by)
            title = f"{row}, by {names}" if by else row
            told.append(f"{title}: {'; '.join(part for part in parts if part)}.")
        else:
            silent.append(row)
    return told, silent


def number(what: str, now: float | None, then: float | None) -> str:
    if now is None:
        return ""
    return f"{what} {shown(now)}{'' if then is None else f' ({shown(then)})'}"


def beside_netcat(found: dict, table: str, network: str, row: str, by: dict[str, None]) -> str:
    """How many times netcat's time a row takes, or that it exceeds the limit. `by` takes the name
    of the client.
    """
    where = NETWORKS[network]
    then = paper_ratio(table, network, row, BASELINE)
    then_shown = "T" if paper_seconds(TABLES[table], row, network) == "T" else shown(then)
    before = f" ({then_shown})" if then_shown else ""
    pair = compared(found, table, network, row, BASELINE)
    if pair is not None:
        now, client = pair
        by[f"{client['label']} ({client['race']['system_title']})"] = None
        if then is not None:
            before = f" ({then_shown}: {way(then / now)})"
        return f"{shown(now)} {where}{before}"
    ran = [client for client in clients(found, table, network) if client["paper"] == row]
    return f"T {where}{before}" if ran and all(client["timed_out"] for client in ran) else ""


def way(change: float) -> str:
    if 1 / SAME < change < SAME:
        return "as then"
    return f"{change:.1f} times closer" if change >= 1 else f"{1 / change:.1f} times farther"
