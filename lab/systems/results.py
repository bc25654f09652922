"""The results as JSON, and the machine on which each race ran."""

from __future__ import annotations

import json
from pathlib import Path

#: What a machine is known by. Versions of packages can change on one machine.
HOST = ("processor", "cores", "memory_bytes", "kernel", "note")
DESCRIPTION = (*HOST, "congestion_control_default", "versions")


def load(path: Path) -> dict:
    """The results of earlier runs.

    An older file describes the machine of its last run alone. A race that ended before that run
    began has an unknown machine, which is None.
    """
    found: dict = json.loads(path.read_text())
    last = found.pop("machine", None)
    if last is not None:
        found.update(machines=[described(last)], commands=last["command"].splitlines(), absent=[])
        for race in found["races"]:
            race["machine"] = 0 if race["ended"] >= last["date"] else None
    return found


def described(machine: dict) -> dict:
    """A machine without what belongs to a run on it."""
    return {name: machine[name] for name in DESCRIPTION if name in machine}


def place_of(found: dict, machine: dict) -> int:
    """The place of a machine among those of the results, to which it is added if it is new."""
    machines: list[dict] = found["machines"]
    if machine not in machines:
        machines.append(machine)
    return machines.index(machine)


def machine_of(found: dict, race: dict) -> dict | None:
    machine: dict | None = None if race["machine"] is None else found["machines"][race["machine"]]
    return machine


def on_one_machine(found: dict, race: dict, other: dict) -> bool:
    """Whether two races ran on one machine, as far as its description tells."""
    first, second = machine_of(found, race), machine_of(found, other)
    if first is None or second is None:
        return False
    return all(first.get(name) == second.get(name) for name in HOST)
