"""TPC-H lineitem at a scale factor, as its generator writes it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from lab.common.process import Failure
from lab.data.table import Table, cache_folder


@dataclass(frozen=True)
class Lineitem(Table):
    """TPC-H lineitem at one scale factor."""

    scale_factor: float
    folder: Path
    name = "lineitem"

    @classmethod
    def of(cls, scale_factor: float) -> Lineitem:
        return cls(scale_factor, cache_folder() / f"sf{scale_factor:g}")

    @property
    def title(self) -> str:
        return f"TPC-H lineitem, scale factor {self.scale_factor:g}"

    @property
    def rows(self) -> int:
        return pq.read_metadata(self.parquet()).num_rows

    def parquet(self) -> Path:
        return self.file("parquet")

    def csv(self) -> Path:
        return self.file("csv")

    def file(self, form: str) -> Path:
        """The table in a file format of the generator. It is generated on the first call."""
        path = self.folder / f"lineitem.{form}"
        if not path.exists():
            generator = Path(sys.executable).parent / "tpchgen-cli"
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder) as partial:
                scale_factor = f"{self.scale_factor:g}"
                command = [
                    generator,
                    form,
                    "-s",
                    scale_factor,
                    "-T",
                    "lineitem",
                    "-o",
                    partial,
                    "-q",
                ]
                try:
                    subprocess.run(command, check=True)
                except (OSError, subprocess.CalledProcessError) as error:
                    raise Failure(f"cannot generate lineitem: {error}") from error
                Path(partial, path.name).rename(path)
        return path

    def serve_arguments(self) -> list[str]:
        """Dray generates the same rows itself, so no file is needed."""
        return ["--tpch", f"{self.scale_factor:g}"]
