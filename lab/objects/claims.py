"""The claims of the thesis that have a number, and the same number of a run."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.objects.generate import DENSITIES

THESIS = json.loads((Path(__file__).parent / "thesis.json").read_text())
GZIP, BSON, INPLACE, HAND = "Java json-gzip", "Java bson", "C++ inplace", "C++ hand"
JAVA_HAND = "Java bytebuffer"
#: Ratios within this factor of each other are the same.
FACTOR = 1.5
#: What is smaller is no difference.
LEAST = 1.1
#: Implementations of the thesis, by our names; claims are about these.
OLD = {row["ours"] for row in THESIS["sizes"]["rows"]}


def title(case: dict) -> str:
    return f"{case['language']} {case['implementation']}"


def median(case: dict, figure: str = "wall_s") -> float | None:
    """The median of a figure, or nothing if the case has failed or lacks it."""
    values = [run[figure] for run in case["runs"] if figure in run]
    return None if case["failure"] or not values else statistics.median(values)


def wall(case: dict) -> float:
    value = median(case)
    if value is None:
        raise KeyError(title(case))
    return value


def select(found: dict, part: str, **parameters: object) -> list[dict]:
    return [
        case
        for case in found["cases"]
        if case["experiment"] == part
        and all(case["parameters"].get(name) == value for name, value in parameters.items())
    ]


@dataclass(frozen=True)
class Pair:
    """The two cases that a claim compares."""

    slow: dict
    fast: dict
    value: Callable[[dict], float] = wall

    @property
    def ratio(self) -> float:
        return self.value(self.slow) / self.value(self.fast)


def old(cases: Iterable[dict]) -> dict[str, dict]:
    """The cases of the thesis' implementations in one group, by their titles."""
    found: dict[str, dict] = {}
    for case in cases:
        if title(case) in OLD and median(case) is not None:
            found.setdefault(title(case), case)
    return found


def best(cases: dict[str, dict], language: str = "", without: str = "") -> dict:
    """The fastest case, of a language if one is given."""
    chosen = [
        case
        for name, case in cases.items()
        if name.startswith(f"{language} " if language else "") and name != without
    ]
    if not chosen:
        raise KeyError(language)
    return min(chosen, key=wall)


def reads(found: dict, name: str, threads: int = 1, pick: Callable = max) -> dict[str, dict]:
    """Sequential reads of the largest number of objects, or of another that `pick` chooses."""
    cases = select(found, "reads", object=name, order="sequential", threads=threads, validate="no")
    counts = {case["parameters"]["count"] for case in cases}
    if not counts:
        raise KeyError(name)
    chosen = pick(counts)
    return old(case for case in cases if case["parameters"]["count"] == chosen)


def middle(values: set[int]) -> int:
    return sorted(values)[len(values) // 2]


def requests(found: dict, source: str) -> dict[str, dict]:
    """Those for the fewest customers."""
    cases = select(found, "requests", object="customer", source=source)
    counts = [case["parameters"]["count"] for case in cases]
    return old(case for case in cases if case["parameters"]["count"] == min(counts))


def sorts(found: dict, name: str) -> dict[str, dict]:
    return old(select(found, "sorts", object=name))


def trees(found: dict, density: str) -> dict[str, dict]:
    return old(select(found, "trees", density=density))


def size(found: dict, name: str) -> dict:
    for case in select(found, "sizes", object="customer"):
        if title(case) == name and case["runs"]:
            return case
    raise KeyError(name)


def object_bytes(case: dict) -> float:
    return case["runs"][0]["bytes"] / case["runs"][0]["objects"]


def of(cases: dict[str, dict], slow: str, fast: str) -> Pair:
    return Pair(cases[slow], cases[fast])


def languages(cases: dict[str, dict]) -> Pair:
    """The best of Java and of C++."""
    return Pair(best(cases, "Java"), best(cases, "C++"))


def in_place_ahead(cases: dict[str, dict]) -> Pair:
    """The closest competitor, and in place."""
    return Pair(best(cases, without=INPLACE), cases[INPLACE])


PAIRS: dict[str, Callable[[dict], Pair]] = {
    "sizes-span": lambda found: Pair(size(found, BSON), size(found, GZIP), object_bytes),
    "inplace-size": lambda found: Pair(size(found, INPLACE), size(found, GZIP), object_bytes),
    "reads-span": lambda found: Pair(
        reads(found, "part", pick=middle)[GZIP], best(reads(found, "part", pick=middle))
    ),
    "reads-java-part": lambda found: languages(reads(found, "part")),
    "reads-java-lineitem": lambda found: languages(reads(found, "lineitem")),
    "reads-java-customer": lambda found: languages(reads(found, "customer")),
    "reads-hand": lambda found: of(reads(found, "customer"), HAND, INPLACE),
    "reads-threads": lambda found: languages(reads(found, "customer", threads=4)),
    "requests-ram": lambda found: in_place_ahead(requests(found, "ram")),
    "requests-disk": lambda found: of(requests(found, "disk"), BSON, GZIP),
    "sorts-span": lambda found: of(sorts(found, "part"), GZIP, INPLACE),
    "sorts-java-span": lambda found: of(sorts(found, "part"), GZIP, JAVA_HAND),
    "sorts-kryo": lambda found: of(sorts(found, "customer"), "Java kryo", INPLACE),
    "trees-span": lambda found: max(
        (Pair(there[GZIP], best(there)) for there in map(partial(trees, found), DENSITIES)),
        key=lambda pair: pair.ratio,
    ),
    "trees-java": lambda found: languages(trees(found, "0.1")),
}


def compared(found: dict, claim: str) -> Pair | None:
    """What a run compares, or nothing if an implementation that it needs was not measured."""
    try:
        return PAIRS[claim](found)
    except (KeyError, ValueError):
        return None


def verdict(thesis: float, here: float | None) -> str:
    """Whether a ratio is as the thesis says: within a factor, the same way, or not."""
    if here is None:
        return "not measured"
    if here <= LEAST:
        return "does not hold"
    if thesis / FACTOR <= here <= thesis * FACTOR:
        return "holds"
    return "holds, and more so" if here > thesis else "holds, but less so"
