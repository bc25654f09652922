"""The runs of each experiment. A group has one run of each implementation; they are measured in
turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.objects import tree
from lab.objects.generate import DENSITIES
from lab.objects.harness import (
    Implementation,
    Setting,
    drop_caches,
    evict,
    option_words,
    run,
)
from lab.objects.objects import count
from lab.objects.scales import OBJECTS, Scale

SEED = 20161201


@dataclass
class Case:
    """One implementation in one group."""

    experiment: str
    implementation: Implementation
    parameters: dict[str, object]
    measure: Callable[[], dict]
    #: The checksum that the run must have; None for the first of a group to decide.
    expected: str | None = None
    runs: list[dict] = field(default_factory=list)
    failure: str | None = None

    def as_json(self) -> dict:
        return {
            "experiment": self.experiment,
            "language": self.implementation.language,
            "implementation": self.implementation.name,
            "parameters": self.parameters,
            "runs": self.runs,
            "failure": self.failure,
        }


@dataclass
class Study:
    """What all experiments share."""

    scale: Scale
    #: The harness of C++, which knows the checksums of inputs.
    reference: Path
    implementations: list[Implementation]
    inputs: Path
    stored: Path
    #: The program of Dray.
    dray: Path
    drop_all: bool = False
    #: Whether what is stored outlives the run, so that the inputs of sorts do, too.
    keep: bool = False
    #: What inputs must give, by the commands that tell it.
    truths: dict[str, dict] = field(default_factory=dict)

    def folder(self, implementation: Implementation, purpose: str = "plain") -> Path:
        folder = self.stored / purpose / implementation.folder
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def input(self, name: str) -> Path:
        return self.inputs / f"{name}.in"

    def truth(self, name: str, **options: object) -> dict:
        """What an input must give: `checksum`, `keys` and `objects`."""
        options = {"object": name.split("-")[-1], "input": self.input(name), **options}
        command = [str(self.reference), "--experiment", "input", *option_words(options)]
        key = " ".join(command)
        if key not in self.truths:
            self.truths[key] = run(command, Setting(cores=0))
        return self.truths[key]

    def entrants(self, name: str, experiment: str) -> list[Implementation]:
        """The implementations that have an object and an experiment."""
        there = [one for one in self.implementations if name in one.objects]
        return [one for one in there if one.has(experiment)]

    def make_cold(self, folder: Path, name: str) -> None:
        if self.drop_all:
            drop_caches()
        else:
            evict(folder / f"{name}.pages")


def sizes(study: Study) -> Iterator[list[Case]]:
    """Table 5.1. It also stores the objects for what follows."""
    for name in (*OBJECTS, *(f"vector-{density}-0" for density in DENSITIES)):
        kind = name.split("-")[0]
        expected = None if kind == "vector" else study.truth(name)["checksum"]
        yield [
            Case(
                "sizes",
                one,
                {"object": name},
                lambda one=one, name=name: store(study, one, name),
                expected,
            )
            for one in study.entrants(kind, "store")
        ]


def store(study: Study, one: Implementation, name: str) -> dict:
    """Store objects, unless an earlier run with the same folder has done so."""
    folder = study.folder(one)
    done = folder / f"{name}.json"
    if not done.exists():
        kind = name.split("-")[0]
        found = one.run("store", Setting(), object=kind, input=study.input(name), folder=folder)
        done.write_text(json.dumps(found))
    return json.loads(done.read_text())


def reads(study: Study) -> Iterator[list[Case]]:
    """Experiment 1."""
    plans = [("sequential", n, 1) for n in study.scale.sequential]
    plans += [("random", n, 1) for n in study.scale.random]
    plans += [("sequential", n, 4) for n in study.scale.threaded]
    for name in study.scale.objects:
        there = count(study.input(name))
        done = set()
        for order, wanted, threads in plans:
            number = min(wanted, there) if order == "sequential" else wanted
            if (order, number, threads) in done:
                continue
            done.add((order, number, threads))
            # In the middle of the file, as from an index.
            place = {"start": (there - number) // 2} if order == "sequential" else {"seed": SEED}
            truth = study.truth(name, order=order, count=number, **place)
            options = {"object": name, "order": order, "count": number, "threads": threads}
            yield [
                read(study, one, {**options, "validate": validate}, place, truth["checksum"])
                for one in study.entrants(name, "read")
                for validate in one.validations("reads")
            ]


def read(study: Study, one: Implementation, options: dict, place: dict, expected: str) -> Case:
    def measure() -> dict:
        folder = study.folder(one)
        study.make_cold(folder, options["object"])
        setting = Setting(cores=options["threads"])
        return one.run("read", setting, folder=folder, **options, **place)

    return Case("reads", one, options, measure, expected)


def phases(study: Study) -> Iterator[list[Case]]:
    """The phases of an access, over objects in memory."""
    for name, number in study.scale.phase_objects.items():
        number = min(number, count(study.input(name)))
        truth = study.truth(name, count=number)
        there = study.entrants(name, "phases")
        for phase in dict.fromkeys(phase for one in there for phase in one.phases):
            if phase == "grow" and name != "customer":
                continue
            expected = {"validate": f"{0:016x}", "touch-one": truth["keys"]}.get(
                phase, None if phase in ("mutate", "grow") else truth["checksum"]
            )
            options = {"object": name, "phase": phase, "count": number}
            yield [
                Case(
                    "phases",
                    one,
                    {**options, "validate": validate},
                    lambda one=one, name=name, validate=validate, options=options: one.run(
                        "phases",
                        Setting(),
                        folder=study.folder(one),
                        repeat=study.scale.repeat,
                        validate=validate,
                        **options,
                    ),
                    expected,
                )
                for one in there
                if phase in one.phases
                for validate in (
                    one.validations("phases") if phase not in ("validate", "encode") else ("no",)
                )
            ]


def sorts(study: Study) -> Iterator[list[Case]]:
    """Experiment 3."""
    for name in study.scale.objects:
        expected = study.truth(f"sort-{name}", order="sorted")["checksum"]
        yield [sort(study, one, name, expected) for one in study.entrants(name, "sort")]


def sort(study: Study, one: Implementation, name: str, expected: str) -> Case:
    folder = study.folder(one, "sort")
    scale = study.scale

    def measure() -> dict:
        pages, index = (folder / f"{name}.{suffix}" for suffix in ("pages", "index"))
        source = study.input(f"sort-{name}")
        if not index.exists():
            one.run("store", Setting(), object=name, input=source, folder=folder)
        study.make_cold(folder, name)
        try:
            return one.run(
                "sort",
                Setting(memory_bytes=scale.sort_limit),
                object=name,
                folder=folder,
                output=folder,
                memory=scale.sort_memory,
                validate=one.validations("sorts")[-1],
            )
        finally:
            # Stored again for each round: all of them would fill the disk.
            if not study.keep:
                pages.unlink(missing_ok=True)
                index.unlink(missing_ok=True)

    return Case("sorts", one, {"object": name, "memory": scale.sort_memory}, measure, expected)


def trees(study: Study) -> Iterator[list[Case]]:
    """Experiment 4."""
    for density in DENSITIES:
        yield [
            Case(
                "trees",
                one,
                {"density": density, "dimensions": study.scale.dimensions},
                lambda one=one, density=density: tree.aggregate(one, study.inputs, density),
            )
            for one in study.entrants("vector", "aggregate")
        ]
