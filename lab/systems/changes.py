"""What changed since the paper: its claims, judged by the numbers of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.systems.figures import (
    BASELINE,
    LAN,
    LOCAL,
    PAPER,
    WAN,
    carried,
    compared,
    median_s,
    paper_seconds,
    ratio,
    standing_for,
)
from lab.systems.results import on_one_machine

LINEITEM = "lineitem"
#: Rows of the paper that are protocols of databases as they are.
STATE_OF_THE_ART = ("MySQL", "MySQL+C", "PostgreSQL", "DB2", "Hive", "MongoDB")
COLUMNAR = ("MonetDB++", "MonetDB++C")
#: What `nearly as fast` and `an order of magnitude` mean here.
NEARLY, ORDER = 1.5, 10.0


@dataclass(frozen=True)
class Verdict:
    """The paper's number, today's, and whether the claim still holds."""

    then: float | None
    now: float | None
    holds: bool | None
    what: str


def times(found: dict, row: str, network: str, base: str) -> tuple[float | None, float | None]:
    """How many times longer a row takes than another: in the paper, and here."""
    then = ratio(paper_seconds("10", row, network), paper_seconds("10", base, network))
    if then is None and network == LOCAL:
        then = ratio(paper_seconds("1", row, network), paper_seconds("1", base, network))
    pair = compared(found, LINEITEM, network, row, base)
    return then, pair and pair[0]


def judged(
    then: float | None, now: float | None, what: str, holds: Callable[[float], bool]
) -> Verdict:
    return Verdict(then, now, None if now is None else holds(now), what)


def order_of_magnitude(found: dict) -> Verdict:
    pairs = [times(found, row, LOCAL, BASELINE) for row in STATE_OF_THE_ART]
    then = min((then for then, _ in pairs if then), default=None)
    now = min((now for _, now in pairs if now), default=None)
    return judged(then, now, "fastest system ÷ netcat", lambda value: value >= ORDER)


def compression_local(found: dict) -> Verdict:
    pair = times(found, "MySQL+C", LOCAL, "MySQL")
    return judged(*pair, "compressed ÷ plain", lambda value: value > NEARLY)


def compression_wan(found: dict) -> Verdict:
    return judged(*times(found, "MySQL+C", WAN, "MySQL"), "compressed ÷ plain", lambda v: v < 1)


def size_ratio(found: dict, row: str) -> tuple[float | None, float | None]:
    sizes = PAPER["tables"]["1"]["rows"]
    clients = {name: fastest(found, name, row) for name in (LOCAL, LAN, WAN)}
    client = carried({name: client for name, client in clients.items() if client})
    then = ratio(sizes[row]["size"], sizes[BASELINE]["size"])
    return then, client and ratio(client["carried_bytes"], client["race"]["csv_bytes"])


def fastest(found: dict, network: str, row: str) -> dict | None:
    return min(standing_for(found, LINEITEM, network, row), key=median_s, default=None)


def postgres_bytes(found: dict) -> Verdict:
    return judged(*size_ratio(found, "PostgreSQL"), "bytes ÷ CSV", lambda value: value > 1)


def mongo_bytes(found: dict) -> Verdict:
    return judged(*size_ratio(found, "MongoDB"), "bytes ÷ CSV", lambda value: value > 3)


def db2_confirmations(found: dict) -> Verdict:
    """The LAN, because the paper's WAN exceeded its limit."""

    def slowdown(row: str) -> tuple[float | None, float | None]:
        then = ratio(paper_seconds("10", row, LAN), paper_seconds("10", row, LOCAL))
        far, near = (fastest(found, network, row) for network in (WAN, LOCAL))
        if not (far and near and on_one_machine(found, far["race"], near["race"])):
            return then, None
        return then, median_s(far) / median_s(near)

    then, now = slowdown("DB2")
    others = [slowdown(row)[1] for row in STATE_OF_THE_ART if row != "DB2"]
    most = max((other for other in others if other), default=None)
    holds = None if now is None or most is None else now > most
    what = "DB2's: LAN ÷ local in the paper, WAN ÷ local here"
    return Verdict(then, now, holds, what)


def columns_local(found: dict) -> Verdict:
    pair = times(found, "MonetDB++", LOCAL, BASELINE)
    return judged(*pair, "column store ÷ netcat", lambda value: value <= NEARLY)


def columns_rivals(found: dict) -> Verdict:
    """The best of the columnar protocol beside the best of the others, on one host."""
    paper = PAPER["tables"]["10"]["rows"]
    then = ratio(
        min(paper[row][LOCAL] for row in STATE_OF_THE_ART if row in paper),
        min(paper[row][LOCAL] for row in COLUMNAR),
    )
    ratios = [
        max(
            (pair[0] for base in COLUMNAR if (pair := compared(found, LINEITEM, LOCAL, row, base))),
            default=None,
        )
        for row in STATE_OF_THE_ART
    ]
    now = min((ratio for ratio in ratios if ratio), default=None)
    return judged(then, now, "best other ÷ best columnar", lambda value: value >= ORDER)


JUDGES: dict[str, Callable[[dict], Verdict]] = {
    "order-of-magnitude": order_of_magnitude,
    "compression-local": compression_local,
    "compression-wan": compression_wan,
    "postgres-bytes": postgres_bytes,
    "mongo-bytes": mongo_bytes,
    "db2-confirmations": db2_confirmations,
    "columns-local": columns_local,
    "columns-rivals": columns_rivals,
}


def verdicts(found: dict) -> list[tuple[dict, Verdict]]:
    """Each claim of the paper with its verdict."""
    return [(claim, JUDGES[claim["id"]](found)) for claim in PAPER["claims"]]


def sentences(found: dict) -> list[str]:
    """For each system of table 10: how it stood to netcat, and how it stands."""
    lines = []
    for row in PAPER["tables"]["10"]["rows"]:
        if row == BASELINE:
            continue
        for network in (LOCAL, LAN, WAN):
            then, _ = times(found, row, network, BASELINE)
            pair = compared(found, LINEITEM, network, row, BASELINE)
            if then is None or pair is None:
                continue
            now, client = pair
            system = client["race"]["system_title"]
            change = then / now
            way = f"{change:.1f} times closer" if change >= 1 else f"{1 / change:.1f} times farther"
            lines.append(
                f"{row}, {network}: {then:.1f} times netcat's time in 2017; today "
                f"{system} by {client['label']} takes {now:.1f} times: {way}."
            )
    return lines
