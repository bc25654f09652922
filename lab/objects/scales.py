"""How large a run is."""

from __future__ import annotations

from dataclasses import dataclass

OBJECTS = ("part", "lineitem", "customer")


@dataclass(frozen=True)
class Scale:
    """Sizes of inputs and counts of objects."""

    scale_factor: float
    rounds: int
    #: Reads: numbers of objects in order, at random, and with four threads.
    sequential: tuple[int, ...]
    random: tuple[int, ...]
    threaded: tuple[int, ...]
    #: Phases: objects, and how often each process repeats.
    phase_objects: dict[str, int]
    repeat: int
    #: Sort: bytes of each input, of the budget, and of the limit.
    sort_bytes: int
    sort_memory: int
    sort_limit: int
    #: Vectors.
    dimensions: int
    #: Network: objects that each server sends, and the rate of the link.
    requests: dict[str, tuple[int, ...]]
    #: Customers that are sent over a slow link.
    wire: int
    rate: str = "1gbit"
    servers: int = 10
    #: Objects that are read and sorted.
    objects: tuple[str, ...] = OBJECTS
    #: Seconds for which harnesses with a compiler at run time warm up.
    warm_up_s: float = 1.0


MIB = 1 << 20
SCALES = {
    "small": Scale(
        scale_factor=0.002,
        rounds=1,
        sequential=(10, 200),
        random=(10,),
        threaded=(200,),
        phase_objects={"part": 200, "customer": 50},
        repeat=3,
        sort_bytes=24 * MIB,
        sort_memory=16 * MIB,
        sort_limit=0,
        dimensions=100_000,
        requests={"customer": (10,)},
        wire=50,
        servers=3,
        warm_up_s=0.1,
    ),
    "medium": Scale(
        scale_factor=0.02,
        rounds=3,
        sequential=(10, 3_000),
        random=(100,),
        threaded=(3_000,),
        phase_objects={"customer": 300},
        repeat=5,
        sort_bytes=96 * MIB,
        sort_memory=32 * MIB,
        sort_limit=128 * MIB,
        dimensions=1_000_000,
        requests={"customer": (100,)},
        wire=1_000,
        objects=("part", "lineitem", "customer"),
        warm_up_s=0.3,
    ),
    "full": Scale(
        scale_factor=0.1,
        rounds=5,
        sequential=(10, 100, 1_000, 10_000, 100_000),
        random=(10, 100, 1_000, 10_000),
        threaded=(1_000, 10_000, 100_000),
        phase_objects={"part": 100_000, "lineitem": 50_000, "customer": 2_000},
        repeat=7,
        sort_bytes=1024 * MIB,
        sort_memory=128 * MIB,
        sort_limit=256 * MIB,
        dimensions=10_000_000,
        requests={
            "part": (1_000, 10_000),
            "lineitem": (1_000, 10_000),
            "customer": (10, 100, 1_000),
        },
        wire=3_000,
    ),
}
