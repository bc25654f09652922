"""The study: tables 3 to 9 of "Don't Hold My Data Hostage" (VLDB 2017), measured again and compared
with the paper's numbers.

It runs the program of this folder on one core and over links. See README.md for the method.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from lab import RESULTS
from lab.common import machine
from lab.common.process import Failure
from lab.common.program import command_line, program_name
from lab.study import links, report

CRATE = Path(__file__).resolve().parent
DATA = ("lineitem", "ontime", "pums")
#: Experiments other than chunk-size, which comes first because it determines the chunk size.
OTHERS = ("row-major", "compressors", "integers", "serialization", "strings", "nulls")
TUNED_ON = ("lineitem", "pums")
#: The smallest chunk within this factor of the least time is chosen, because it needs less memory.
NEARLY = 1.05


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program_name(), description="Measure tables 3 to 9 of the paper again."
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds on one core after the warm-up (default: 5)"
    )
    parser.add_argument(
        "--link-rounds", type=int, default=3, help="rounds over each link (default: 3)"
    )
    parser.add_argument(
        "--scale-factor",
        type=float,
        default=1.0,
        help="size of lineitem's sample; 1 is 60,000 rows (default: 1)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=0.8,
        help="approximate duration of a transfer (default: 0.8)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round on little data, as a test without valid results",
    )
    parser.add_argument(
        "--no-links", action="store_true", help="transfers over loopback only, which needs no root"
    )
    parser.add_argument(
        "--program", type=Path, help="path of the compiled program (default: compile it)"
    )
    parser.add_argument(
        "--report", action="store_true", help="only rewrite the report of the last run"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS / "study",
        help="path of the results without suffix (default: %(default)s)",
    )
    given = parser.parse_args()
    if given.rounds < 1 or given.link_rounds < 1:
        parser.error("--rounds and --link-rounds must be at least 1")
    if given.quick:
        given.rounds, given.link_rounds, given.seconds = 1, 1, 0.1
    return given


def build() -> Path:
    """Compile the program and return its path."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", CRATE / "target"))
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        str(CRATE / "Cargo.toml"),
    ]
    if subprocess.run(
        command, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=False
    ).returncode:
        raise Failure("cannot build the program")
    return target / "release" / "study"


class Study:
    """A run: its options, and the measurements so far."""

    def __init__(self, program: Path, given: argparse.Namespace) -> None:
        self.program = program
        self.given = given
        volume = 24 if given.quick else 210
        self.sizes = [
            *("--volume-bytes", str(volume << 20)),
            *("--sample-rows", str(15_000 if given.quick else int(60_000 * given.scale_factor))),
        ]
        self.commands: list[str] = []
        self.figures: list[dict] = []
        self.transfers: list[dict] = []

    def measure(self, experiment: str, chunk_bytes: int) -> list[dict]:
        """Run an experiment on one core, with each of its tables."""
        figures = []
        for data in DATA if experiment != "strings" else DATA[:1]:
            command = [
                str(self.program),
                "cpu",
                experiment,
                data,
                "--rounds",
                str(self.given.rounds),
                *self.sizes,
            ]
            command += ["--chunk-bytes", str(chunk_bytes)]
            self.commands.append(" ".join(["study", *command[1:]]))
            print(f"study: {self.commands[-1]}", file=sys.stderr)
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise Failure(f"{self.commands[-1]} failed")
            figures += json.loads(done.stdout)
        self.figures += figures
        return figures

    def transfer(self, experiments: tuple[str, ...]) -> None:
        """Send the chunks of experiments over each link."""
        for link in links.LINKS[:1] if self.given.no_links else links.LINKS:
            requests = links.plan(
                link,
                [f for f in self.figures if f["experiment"] in experiments],
                self.given.seconds,
            )
            print(f"study: {link.title}, {len(requests)} transfers per round", file=sys.stderr)
            self.transfers += links.run(
                self.program, self.sizes, link, requests, self.given.link_rounds
            )

    def best_chunk_bytes(self) -> int:
        """The smallest chunk size within NEARLY of the least mean time over tables and links."""
        means = links.chunk_means(self.transfers, TUNED_ON)
        least = min(means.values())
        return min(size for size, mean in means.items() if mean <= NEARLY * least)


def run(given: argparse.Namespace) -> dict[str, object]:
    program = given.program or build()
    described = machine.description(program)
    described["versions"] = {
        "rustc": machine.program_version(["rustc", "--version"]),
        "kernel": described["kernel"],
    }
    described["crates"] = locked_versions()
    described["commit"] = machine.program_version(
        ["git", "-C", str(CRATE), "describe", "--always", "--dirty"]
    )
    study = Study(program, given)
    study.measure("chunk-size", 1 << 20)
    study.transfer(("chunk-size",))
    chunk_bytes = study.best_chunk_bytes()
    print(f"study: other experiments use chunks of {chunk_bytes:,} bytes", file=sys.stderr)
    for experiment in OTHERS:
        study.measure(experiment, chunk_bytes)
    study.transfer(("compressors", "integers", "serialization"))
    described["load_average_end"] = os.getloadavg()[0]
    return {
        "machine": described,
        "command": command_line(),
        "quick": given.quick,
        "rounds": given.rounds,
        "link_rounds": given.link_rounds,
        "seconds": given.seconds,
        "tuned_on": TUNED_ON,
        "nearly": NEARLY,
        "chunk_bytes": chunk_bytes,
        "links": [link.described() for link in links.LINKS],
        "commands": study.commands,
        "figures": study.figures,
        "transfers": study.transfers,
    }


def locked_versions() -> dict[str, str]:
    """The versions of formats and compressors in Cargo.lock."""
    names = (
        "arrow-ipc",
        "bitpacking",
        "flate2",
        "liblzma",
        "lz4_flex",
        "snap",
        "tpchgen",
        "zlib-rs",
        "zstd",
    )
    versions, name = {}, ""
    for line in (CRATE / "Cargo.lock").read_text().splitlines():
        key, _, value = line.partition(" = ")
        if key == "name":
            name = value.strip('"')
        elif key == "version" and name in names:
            # If there are two versions, the study uses the later one.
            versions[name] = value.strip('"')
    return versions


def main() -> int:
    given = options()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    results = Path(f"{given.output}.json")
    try:
        if not given.report:
            results.write_text(json.dumps(run(given), indent=1) + "\n")
        paper = json.loads((CRATE / "paper.json").read_text())
        html = report.html(json.loads(results.read_text()), paper)
    except Failure as failure:
        print(f"study: {failure}", file=sys.stderr)
        return 1
    Path(f"{given.output}.html").write_text(html)
    print(f"{given.output}.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
