"""The machine, the kernel and the versions that a measurement depends on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lab.common import congestion

PACKAGES = ("dray", "pyarrow", "duckdb", "duckdb-extension-quack", "tpchgen-cli")


def description(dray: Path) -> dict[str, object]:
    """What a reader needs to repeat a measurement."""
    return {
        "processor": f"{cpuinfo('model name')}, family {cpuinfo('cpu family')}, "
        f"model {cpuinfo('model')}",
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "congestion_control_default": congestion.current(),
        "load_average": os.getloadavg()[0],
        "versions": {
            "python": platform.python_version(),
            **{name: package_version(name) for name in PACKAGES},
            "dray program": program_version([str(dray), "--version"]),
            "netcat": program_version(
                ["dpkg-query", "-W", "-f=${Package} ${Version}", "netcat-openbsd"]
            ),
        },
    }


def cpuinfo(field: str) -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == field:
            return value.strip()
    return "unknown"


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def program_version(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return "not installed"
    return done.stdout.strip() or "not installed"
