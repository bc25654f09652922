"""A server that keeps a table in a folder: filled at its first start, and used again by later ones,
also of another server object with the same folder.
"""

from __future__ import annotations

import shutil
import subprocess
from abc import abstractmethod
from pathlib import Path

from lab.common.contender import Server, Setting
from lab.common.process import Failure, last_line


class LoadedServer(Server):
    #: Whether the data last over a restart. If not, each start loads them.
    keeps_data = True

    def __init__(self, setting: Setting, name: str) -> None:
        super().__init__(setting, name)
        self.data_folder = setting.folder / name

    def start(self) -> None:
        if self.process is not None and self.process.is_running():
            return
        is_new = not self.data_folder.exists()
        try:
            if is_new:
                self.initialise()
            super().start()
            if is_new or not self.keeps_data:
                self.load()
        except Failure:
            self.stop()
            if is_new:
                shutil.rmtree(self.data_folder, ignore_errors=True)
            raise

    def initialise(self) -> None:
        """Create the folder, before the first start."""
        self.data_folder.mkdir()

    @abstractmethod
    def load(self) -> None:
        """Fill the running server with the table."""


def run(command: list[object], purpose: str, input: str | None = None, **options: object) -> str:
    """Run a command and return its output, or raise Failure with its last line of errors."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
    except OSError as error:
        raise Failure(f"cannot {purpose}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"cannot {purpose}: {last_line(done.stderr or done.stdout)}")
    return done.stdout


def is_installed(path: Path, how: str) -> None:
    if not path.exists():
        raise Failure(f"no {path}: {how}")
