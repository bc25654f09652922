"""The real server, as a process."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path


def binary() -> Path:
    """The `dray` program under test."""
    target = os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache" / "dray" / "target"
    path = Path(os.environ.get("DRAY_BINARY") or Path(target) / "release" / "dray")
    if not path.exists():
        raise FileNotFoundError(f"no dray program at {path}: build it, or name it in DRAY_BINARY")
    return path


class Server:
    """`dray serve` over some files, on a Unix socket and on TCP, with metrics."""

    def __init__(
        self, folder: Path, *arguments: str, environment: dict[str, str] | None = None
    ) -> None:
        listeners = [
            "--unix",
            str(folder / "dray.sock"),
            "--listen",
            "tcp://127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
        ]
        self._log = open(folder / "server.log", "w")
        self.process = subprocess.Popen(
            [binary(), "serve", *listeners, *arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
        )
        self.unix = f"dray+unix://{folder / 'dray.sock'}"
        tls = "--tls-cert" in arguments
        tcp = self._announced("listening on", "drays://" if tls else "dray://")
        self.address = tcp.partition("://")[2]
        # Clients of this uri stay on TCP.
        self.tcp = tcp if tls else f"{tcp}?local_socket=false"
        self.metrics = self._announced("metrics on", "http://")

    def _announced(self, what: str, scheme: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(f"{what} {scheme}"):
                return line.split()[-1]
        raise AssertionError(f"the server did not start: {Path(self._log.name).read_text()}")

    def counter(self, name: str) -> int:
        text = urllib.request.urlopen(self.metrics, timeout=10).read().decode()
        found = re.search(rf"^dray_{name} (\d+)$", text, re.MULTILINE)
        assert found, text
        return int(found[1])

    def wait_for(self, name: str, value: int) -> None:
        """Wait until a counter has at least this value."""
        deadline = time.monotonic() + 30
        while self.counter(name) < value:
            assert time.monotonic() < deadline, f"{name} did not reach {value}"
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
