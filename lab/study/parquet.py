"""Compare the size and encoding time of Dray's chunks and Parquet files on samples of real data."""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.program import program_name
from lab.data.sample import FILES, whole_sample


def main() -> None:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument(
        "--speed", type=Path, required=True, help="path of the example `speed` of dray-format"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    options = parser.parse_args()
    for name in FILES:
        rows = whole_sample(name)
        print(
            f"\n{name}: {rows.num_rows:,} rows, {rows.num_columns} columns, "
            f"{rows.nbytes:,} bytes in Arrow"
        )
        print(f"{'':16}{'bytes':>12}{'CPU ms':>12}{'CPU, of Parquet zstd':>28}")
        with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
            with pa.ipc.new_file(file.name, rows.schema) as writer:
                writer.write_table(rows)
            rounds = [one_round(rows, file.name, options.speed) for _ in range(options.rounds)]
        parquet_ms = statistics.median(round["Parquet zstd"][1] for round in rounds)
        for format in rounds[0]:
            written, ms = (
                rounds[0][format][0],
                statistics.median(round[format][1] for round in rounds),
            )
            print(f"{format:16}{written:>12,}{ms:>12.2f}{ms / parquet_ms:>28.2f}")


def one_round(rows: pa.Table, path: str, speed: Path) -> dict[str, tuple[int, float]]:
    """Bytes and milliseconds of processor time by format."""
    answer = subprocess.run([speed, path], capture_output=True, check=True, text=True)
    dray = json.loads(answer.stdout)
    found = {
        f"Dray {name}": (int(encoding["bytes"]), encoding["encode_ns"] / 1e6)
        for name, encoding in dray.items()
    }
    for codec in ("zstd", "snappy"):
        found[f"Parquet {codec}"] = timed(lambda codec=codec: written(rows, codec))
    return found


def written(rows: pa.Table, codec: str) -> int:
    file = io.BytesIO()
    pq.write_table(rows, file, compression=codec)
    return file.tell()


def timed(write: Callable[[], int]) -> tuple[int, float]:
    size, runs = write(), 20
    start = time.process_time()
    for _ in range(runs):
        write()
    return size, (time.process_time() - start) * 1e3 / runs


if __name__ == "__main__":
    main()
