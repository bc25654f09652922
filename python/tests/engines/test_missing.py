"""What users read who have not installed an engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dray


@pytest.mark.parametrize(
    ("module", "package"),
    [("spark", "pyspark"), ("ray", "ray"), ("daft", "daft"), ("dask", "dask")],
)
def test_a_missing_package(module: str, package: str, tmp_path: Path) -> None:
    (tmp_path / "dray").symlink_to(Path(str(dray.__file__)).parent)
    script = f"import dray; dray.connect; import dray.{module}"
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert f"ImportError: this needs {package}: pip install 'dray[{module}]'" in run.stderr
