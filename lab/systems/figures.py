"""What the report asks of the results: seconds, bytes, and both beside netcat's and the paper's."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from lab.systems.results import on_one_machine

PAPER: dict = json.loads(Path(__file__).with_name("paper.json").read_text())
BASELINE = "(Netcat)"
LOCAL, LAN, WAN = "local", "lan", "wan"
#: Where bytes are counted best: over a link without loss, of one direction. The loopback interface
#: carries both, and what a server sends to itself.
BYTES_OF = (LAN, WAN, LOCAL)


def spent_s(run: dict) -> float:
    """Seconds from sending the statement to the last row: without the connection, if it is known.

    The paper leaves out the execution as well, which clients that buffer cannot tell apart.
    """
    client = run["client"]
    return client["total_s"] - (client["connect_s"] or 0.0)


def median_s(client: dict) -> float:
    """The median of a client that has been measured."""
    return statistics.median(spent_s(run) for run in client["runs"])


def races(found: dict, table: str, network: str = "", figure: str = "") -> list[dict]:
    return [
        race
        for race in found["races"]
        if race["table"] == table
        and (not network or race["network"] == network)
        and race["figure"] == figure
    ]


def clients(found: dict, table: str, network: str = "", figure: str = "") -> list[dict]:
    """Clients, each with its race."""
    return [
        {**client, "race": race}
        for race in races(found, table, network, figure)
        for client in race["clients"]
    ]


def standing_for(found: dict, table: str, network: str, row: str, figure: str = "") -> list[dict]:
    """The clients that stand for a row of the paper and have been measured."""
    return [
        client
        for client in clients(found, table, network, figure)
        if client["paper"] == row and client["runs"]
    ]


def compared(
    found: dict, table: str, network: str, row: str, base: str
) -> tuple[float, dict] | None:
    """How many times as long a row of the paper takes as another, and its fastest client. Only
    what ran on one machine is compared.
    """
    ratios = []
    for client in standing_for(found, table, network, row):
        base_s = fastest_s(found, client["race"], base)
        if base_s:
            ratios.append((median_s(client) / base_s, client))
    return min(ratios, key=lambda pair: pair[0], default=None)


def fastest_s(found: dict, race: dict, row: str) -> float | None:
    """Seconds of the fastest client that stands for a row of the paper, with the table, the network
    and the machine of a race.
    """
    return min(
        (
            median_s(client)
            for client in standing_for(found, race["table"], race["network"], row, race["figure"])
            if on_one_machine(found, race, client["race"])
        ),
        default=None,
    )


def baseline_s(found: dict, race: dict) -> float | None:
    return fastest_s(found, race, BASELINE)


def carried(networks: dict[str, dict]) -> dict | None:
    """The client whose bytes are shown, of those of one name by network."""
    measured = (networks[name] for name in BYTES_OF if name in networks)
    return next((client for client in measured if client["carried_bytes"] is not None), None)


def csv_bytes(found: dict, table: str) -> int | None:
    return next((race["csv_bytes"] for race in races(found, table)), None)


def paper_seconds(number: str, row: str, network: str) -> float | str | None:
    """Seconds that a table of the paper states; `T` if its limit of an hour was exceeded."""
    value: float | str | None = PAPER["tables"][number]["rows"].get(row, {}).get(network)
    return value


def ratio(value: float | str | None, base: float | str | None) -> float | None:
    if isinstance(value, (int, float)) and isinstance(base, (int, float)) and base:
        return value / base
    return None
