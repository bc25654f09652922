"""The claims of the thesis that have a number, and the same number of a run."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

THESIS = json.loads((Path(__file__).parent / "thesis.json").read_text())
GZIP, INPLACE, HAND = "Java json-gzip", "C++ inplace", "C++ hand"
JAVA_HAND = "Java bytebuffer"
#: Implementations of the thesis, by our names; claims are about these.
OLD = {row["ours"] for row in THESIS["sizes"]["rows"]}


def title(case: dict) -> str:
    return f"{case['language']} {case['implementation']}"


def median(case: dict, figure: str = "wall_s") -> float | None:
    """The median of a figure, or nothing if the case has failed or lacks it."""
    values = [run[figure] for run in case["runs"] if figure in run]
    return None if case["failure"] or not values else statistics.median(values)


def select(found: dict, part: str, **parameters: object) -> list[dict]:
    return [
        case
        for case in found["cases"]
        if case["experiment"] == part
        and all(case["parameters"].get(name) == value for name, value in parameters.items())
    ]


@dataclass
class Times:
    """Median times of the thesis' implementations in one group."""

    by_title: dict[str, float]

    @classmethod
    def of(cls, cases: Iterable[dict], figure: str = "wall_s") -> Times:
        found = {}
        for case in cases:
            value = median(case, figure)
            if title(case) in OLD and value is not None:
                found.setdefault(title(case), value)
        return cls(found)

    def __getitem__(self, name: str) -> float:
        return self.by_title[name]

    def best(self, language: str, without: str = "") -> float:
        values = [
            value
            for name, value in self.by_title.items()
            if name.startswith(f"{language} ") and name != without
        ]
        if not values:
            raise KeyError(language)
        return min(values)

    def span(self) -> float:
        return self[GZIP] / min(self.by_title.values())


def reads(found: dict, name: str, threads: int = 1, pick: Callable = max) -> Times:
    """Sequential reads of the largest number of objects, or of another that `pick` chooses."""
    cases = select(found, "reads", object=name, order="sequential", threads=threads, validate="no")
    counts = {case["parameters"]["count"] for case in cases}
    if not counts:
        raise KeyError(name)
    chosen = pick(counts)
    return Times.of(case for case in cases if case["parameters"]["count"] == chosen)


def middle(values: set[int]) -> int:
    return sorted(values)[len(values) // 2]


def requests(found: dict, source: str) -> Times:
    """Those for the fewest customers."""
    cases = select(found, "requests", object="customer", source=source)
    counts = [case["parameters"]["count"] for case in cases]
    return Times.of(case for case in cases if case["parameters"]["count"] == min(counts))


def size(found: dict, name: str) -> float:
    for case in select(found, "sizes", object="customer"):
        if title(case) == name and case["runs"]:
            return case["runs"][0]["bytes"] / case["runs"][0]["objects"]
    raise KeyError(name)


def java_to_cpp(times: Times) -> float:
    return times.best("Java") / times.best("C++")


def in_place_ahead(times: Times) -> float:
    """The closest competitor's time over that in place."""
    return min(times.best("Java"), times.best("C++", without=INPLACE)) / times[INPLACE]


MEASURES: dict[str, Callable[[dict], float]] = {
    "sizes-span": lambda found: size(found, "Java bson") / size(found, GZIP),
    "inplace-size": lambda found: size(found, INPLACE) / size(found, GZIP),
    "reads-span": lambda found: reads(found, "part", pick=middle).span(),
    "reads-java-part": lambda found: java_to_cpp(reads(found, "part")),
    "reads-java-lineitem": lambda found: java_to_cpp(reads(found, "lineitem")),
    "reads-java-customer": lambda found: java_to_cpp(reads(found, "customer")),
    "reads-hand": lambda found: reads(found, "customer")[HAND] / reads(found, "customer")[INPLACE],
    "reads-threads": lambda found: java_to_cpp(reads(found, "customer", threads=4)),
    "requests-ram": lambda found: in_place_ahead(requests(found, "ram")),
    "requests-disk": lambda found: (
        requests(found, "disk")["Java bson"] / requests(found, "disk")[GZIP]
    ),
    "sorts-span": lambda found: (
        Times.of(select(found, "sorts", object="part"))[GZIP]
        / Times.of(select(found, "sorts", object="part"))[INPLACE]
    ),
    "sorts-java-span": lambda found: (
        Times.of(select(found, "sorts", object="part"))[GZIP]
        / Times.of(select(found, "sorts", object="part"))[JAVA_HAND]
    ),
    "sorts-kryo": lambda found: (
        Times.of(select(found, "sorts", object="customer"))["Java kryo"]
        / Times.of(select(found, "sorts", object="customer"))[INPLACE]
    ),
    "trees-span": lambda found: max(
        Times.of(select(found, "trees", density=density)).span() for density in ("0.1", "1", "10")
    ),
    "trees-java": lambda found: java_to_cpp(Times.of(select(found, "trees", density="0.1"))),
}


def ours(found: dict, claim: str) -> float | None:
    """The number of a run, or nothing if an implementation that it needs was not measured."""
    try:
        return MEASURES[claim](found)
    except (KeyError, ValueError):
        return None


def verdict(thesis: float, here: float | None) -> str:
    """Whether a ratio is as the thesis says: within a factor of 1.5, the same way, or not."""
    if here is None:
        return "not measured"
    if thesis / 1.5 <= here <= thesis * 1.5:
        return "holds"
    if here > thesis:
        return "holds, and more so"
    return "holds, but less so" if here > 1.1 else "does not hold"
