"""netcat of the CSV, alone, with Snappy and with gzip: the paper's baseline."""

from __future__ import annotations

from lab.common.contender import Setting
from lab.common.machine import program_version
from lab.common.netcat import NetcatContender, NetcatServer
from lab.common.program import compiled
from lab.systems.system import HERE, Entry, System


def entries(setting: Setting) -> list[Entry]:
    program = compiled(HERE / "snappy.c", "-lsnappy")
    snappy = f"{program} compress", f"{program} decompress"
    gzip = "gzip", "gzip -dc"
    return [
        Entry(NetcatContender(NetcatServer(setting)), "(Netcat)", in_figures=True),
        piped(setting, "-snappy", snappy, "(Netcat+Sy)", "Snappy"),
        piped(setting, "-gzip", gzip, "(Netcat+GZ)", "gzip"),
    ]


def piped(setting: Setting, suffix: str, pipe: tuple[str, str], paper: str, how: str) -> Entry:
    contender = NetcatContender(NetcatServer(setting, pipe[0]), suffix, pipe[1])
    contender.label = f"netcat of the CSV, {how}"
    return Entry(contender, paper)


def versions() -> dict[str, str]:
    packages = {"netcat": "netcat-openbsd", "Snappy": "libsnappy1v5", "gzip": "gzip"}
    query = ["dpkg-query", "-W", "-f=${Version}"]
    return {name: program_version([*query, package]) for name, package in packages.items()}


SYSTEM = System("netcat", "netcat", entries, versions, can_warm=False)
