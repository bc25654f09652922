"""Measure all implementations of objects in turns: README.md describes the experiments."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from lab import RESULTS
from lab.common import machine, race
from lab.common.process import Failure
from lab.common.program import command_line, program_name
from lab.data.table import cache_folder
from lab.objects import cases, report, requests, wire
from lab.objects.cases import Case, Study
from lab.objects.generate import generate
from lab.objects.harness import build, implementations
from lab.objects.scales import SCALES, Scale

OUTPUT = RESULTS / "objects"
PARTS: dict[str, Callable[[Study], Iterator[list[Case]]]] = {
    "sizes": cases.sizes,
    "phases": cases.phases,
    "reads": cases.reads,
    "trees": cases.trees,
    "sorts": cases.sorts,
    "requests": requests.requests,
    "wire": wire.wire,
}
LANGUAGES = ("cpp", "java", "rust")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="full", help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="rounds in turns (default: the scale's)")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts (default: %(default)s)")
    parser.add_argument(
        "--languages", help="harnesses (default: those of cpp, java and rust that are there)"
    )
    parser.add_argument(
        "--harness",
        action="append",
        type=Path,
        default=[],
        help="one more harness that is built already; may be repeated",
    )
    parser.add_argument(
        "--only", default="*", help="patterns of implementations, like 'C++ *,Java kryo'"
    )
    parser.add_argument(
        "--drop-caches",
        action="store_true",
        help="drop the whole page cache before reads, not just that of the files",
    )
    parser.add_argument(
        "--stored", type=Path, help="keep stored objects in this folder, and use what is there"
    )
    parser.add_argument("--target", type=Path, default=default_target(), help="folder of builds")
    parser.add_argument(
        "--dray",
        type=Path,
        default=cargo_target() / "release" / "dray",
        help="the program that sends columns (default: %(default)s)",
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="results without suffix (default: %(default)s)"
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="keep what the output has of earlier runs, but for what is measured again",
    )
    given = parser.parse_args()
    given.parts = given.parts.split(",")
    if strange := [part for part in given.parts if part not in PARTS]:
        parser.error(f"--parts {strange[0]}: expected some of {', '.join(PARTS)}")
    here = Path(__file__).resolve().parent
    given.languages = (given.languages or ",".join(LANGUAGES)).split(",")
    if strange := [one for one in given.languages if one not in LANGUAGES]:
        parser.error(f"--languages {strange[0]}: expected some of {', '.join(LANGUAGES)}")
    given.languages = [one for one in given.languages if (here / one).is_dir()]
    return given


def cargo_target() -> Path:
    target = os.environ.get("CARGO_TARGET_DIR")
    return Path(target) if target else Path.home() / ".cache" / "dray" / "target"


def default_target() -> Path:
    return cargo_target() / "objects"


def inputs(scale: Scale) -> Path:
    """The inputs of a scale. They are made on the first call."""
    wanted = f"{scale.scale_factor:g} {scale.sort_bytes} {scale.dimensions}\n"
    folder = cache_folder() / "objects" / wanted.strip().replace(" ", "-")
    made = folder / "made"
    if not made.exists() or made.read_text() != wanted:
        print(f"making {folder}", file=sys.stderr, flush=True)
        generate(folder, scale.scale_factor, scale.sort_bytes, scale.dimensions)
    return folder


def measure(group: list[Case], rounds: int) -> None:
    """Measure a group in turns. Each round has another order, the same in every run."""
    for number in range(rounds):
        for case in random.Random(number).sample(group, len(group)):
            if case.failure is None:
                measure_once(case, group)
    words = " ".join(str(value) for value in group[0].parameters.values())
    print(f"{group[0].experiment} {words}: {len(group)} runs", file=sys.stderr, flush=True)


def measure_once(case: Case, group: list[Case]) -> None:
    try:
        found = case.measure()
    except Failure as failure:
        case.failure = str(failure)
    else:
        if case.expected is None:
            for other in group:
                other.expected = found["checksum"]
        if found["checksum"] != case.expected:
            case.failure = f"wrong: checksum {found['checksum']}, expected {case.expected}"
        case.runs.append(found)
    if case.failure:
        print(f"{case.implementation.title}: {case.failure}", file=sys.stderr, flush=True)


def study(given: argparse.Namespace) -> dict:
    """Measure all parts, and write the results after each."""
    scale = SCALES[given.scale]
    os.environ.setdefault("JAVA_WARM_UP", f"{scale.warm_up_s:g}")
    programs = build(["cpp", *(one for one in given.languages if one != "cpp")], given.target)
    harnesses = [*(programs[name] for name in given.languages), *given.harness]
    there = [one for program in harnesses for one in implementations(program)]
    patterns = given.only.split(",")
    chosen = [one for one in there if any(fnmatch.fnmatch(one.title, p) for p in patterns)]
    if not chosen:
        titles = ", ".join(one.title for one in there)
        raise Failure(f"--only {given.only}: expected some of {titles}")
    found = earlier(given, scale)
    for one in chosen:
        listed = {**asdict(one), "program": one.program.name}
        if described(listed) not in map(described, found["implementations"]):
            found["implementations"].append(listed)
    source = inputs(scale)
    with stored(given) as folder:
        shared = Study(
            scale,
            programs["cpp"],
            chosen,
            source,
            folder,
            given.dray,
            drop_all=given.drop_caches,
            keep=given.stored is not None,
        )
        # All experiments read what the first one stores.
        for part in dict.fromkeys(["sizes", *given.parts]):
            for group in PARTS[part](shared):
                measure(group, 1 if part == "sizes" else given.rounds or scale.rounds)
                add(found, [case.as_json() for case in group])
            write(given, found)
    return found


def earlier(given: argparse.Namespace, scale: Scale) -> dict:
    """What results begin with: nothing, or those of earlier runs."""
    found = {"machine": describe(given), "implementations": [], "scale": asdict(scale), "cases": []}
    path = Path(f"{given.output}.json")
    if not given.add or not path.exists():
        return found
    before = json.loads(path.read_text())
    if before["scale"] != json.loads(json.dumps(found["scale"])):
        raise Failure(f"{path} has another scale: leave out --add, or name another --output")
    before["machine"]["command"] += "\n" + command_line()
    return before


def described(implementation: dict) -> tuple[str, str]:
    return implementation["language"], implementation["name"]


def add(found: dict, measured: list[dict]) -> None:
    """Add cases in place of those of earlier runs."""

    def key(case: dict) -> str:
        names = ("experiment", "language", "implementation", "parameters")
        return json.dumps([case[name] for name in names])

    keys = {key(case) for case in measured}
    found["cases"] = [case for case in found["cases"] if key(case) not in keys] + measured


@contextmanager
def stored(given: argparse.Namespace) -> Iterator[Path]:
    """The folder of stored objects. It is on a disk, because reads from it are measured."""
    if given.stored:
        given.stored.mkdir(parents=True, exist_ok=True)
        yield given.stored
    else:
        with tempfile.TemporaryDirectory(prefix="objects-", dir=cache_folder()) as folder:
            yield Path(folder)


def describe(given: argparse.Namespace) -> dict:
    described = machine.description(Path(os.devnull))
    del described["versions"]
    described["command"] = command_line()
    described["date"] = time.strftime("%Y-%m-%d")
    described["scale"] = given.scale
    return described


def write(given: argparse.Namespace, found: dict) -> None:
    before = found["machine"].get("load_average_end", 0.0)
    found["machine"]["load_average_end"] = max(before, os.getloadavg()[0])
    given.output.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{given.output}.json").write_text(json.dumps(found, indent=1) + "\n")
    Path(f"{given.output}.html").write_text(report.html(found))


def main() -> int:
    given = options()
    race.stop_on_signal()
    try:
        found = study(given)
    except Failure as failure:
        return race.fail(failure)
    print(f"{given.output}.html")
    failed = [case for case in found["cases"] if case["failure"]]
    for case in failed:
        words = f"{case['language']} {case['implementation']}: {case['failure']}"
        print(f"{case['experiment']}: {words}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
