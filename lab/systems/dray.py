"""Dray from files: `dray serve`, the paper's column store."""

from __future__ import annotations

from lab.common.contender import Setting
from lab.common.dray_contender import DrayContender, DrayServer
from lab.systems.system import Entry, System

#: Rows of the paper that a compression stands for: without any, and with a light one.
PAPER = {"none": "MonetDB++", "light": "MonetDB++C"}


def entries(setting: Setting) -> list[Entry]:
    server = DrayServer(setting)
    found = []
    for name in ("auto", *PAPER):
        contender = DrayContender(server, over_tcp=True, compression=name)
        contender.label = f"Dray, {name}, into an Arrow table"
        found.append(Entry(contender, PAPER.get(name, ""), in_figures=name == "auto"))
    return found


SYSTEM = System("dray", "Dray, from files", entries, dict)
