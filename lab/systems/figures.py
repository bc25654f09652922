"""What the report asks of the results: seconds, bytes, and both beside netcat's and the paper's."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

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


def median_s(client: dict) -> float | None:
    values = [spent_s(run) for run in client["runs"]]
    return statistics.median(values) if values else None


def races(found: dict, table: str, network: str = "", figure: str = "") -> list[dict]:
    return [
        race
        for race in found["races"]
        if race["table"] == table
        and (not network or race["network"] == network)
        and race["figure"] == figure
    ]


def standing_for(found: dict, table: str, network: str, row: str) -> dict | None:
    """The fastest client that stands for a row of the paper, with the name of its system."""
    clients = [
        {**client, "system_title": race["system_title"]}
        for race in races(found, table, network)
        for client in race["clients"]
        if client["paper"] == row and client["runs"]
    ]
    return min(clients, key=lambda client: median_s(client) or 0.0, default=None)


def seconds_of(found: dict, table: str, network: str, row: str) -> float | None:
    client = standing_for(found, table, network, row)
    return None if client is None else median_s(client)


def baseline_s(found: dict, table: str, network: str) -> float | None:
    return seconds_of(found, table, network, BASELINE)


def carried_bytes(networks: dict[str, dict]) -> int | None:
    """Bytes of a fetch, of the results of a client by network."""
    measured = (networks[name]["carried_bytes"] for name in BYTES_OF if name in networks)
    return next((carried for carried in measured if carried is not None), None)


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
