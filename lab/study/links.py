"""The study's transfers: which chunks go over which link, how many, and what they took."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.common.process import Failure
from lab.link.link import Link

PORT = 7311
LOCAL_ADDRESS = "127.0.0.1"
#: Both ends have a queue of two chunks: fewer would not fill it.
CHUNKS_MIN = 4
#: Even so few chunks would take longer than this: not measured.
SECONDS_MAX = 8.0


@dataclass(frozen=True)
class StudyLink:
    """A link, and the experiments that the paper has on it or on one like it."""

    name: str
    title: str
    bits_per_second: float | None
    experiments: tuple[str, ...]

    def described(self) -> dict[str, object]:
        return asdict(self)


ALL = ("chunk-size", "compressors", "integers", "serialization")
LINKS = (
    StudyLink("local", "loopback TCP", None, ALL),
    StudyLink("1gbit", "1 Gbit/s", 1e9, ALL),
    StudyLink("100mbit", "100 Mbit/s", 1e8, ALL),
    StudyLink("10mbit", "10 Mbit/s", 1e7, ("compressors",)),
)


def plan(link: StudyLink, figures: list[dict], seconds: float) -> list[dict]:
    """An order for each case that the link has: as many chunks as take about so long."""
    orders = []
    for figure in figures:
        if figure["experiment"] not in link.experiments or figure["case"] == "Columns+Snappy":
            continue
        encode_s, decode_s = (
            statistics.median(figure[name]) / 1e9 / figure["chunks"]
            for name in ("encode_ns", "decode_ns")
        )
        line_s = (
            figure["encoded_bytes"] * 8 / figure["chunks"] / link.bits_per_second
            if link.bits_per_second
            else 0.0
        )
        # What a chunk takes on its way through two sockets and four threads, at the least.
        chunk_s = max(
            encode_s, decode_s, line_s, figure["encoded_bytes"] / figure["chunks"] / 2e9, 5e-6
        )
        chunks = max(
            CHUNKS_MIN if figure["chunk_bytes"] < 32 << 20 else 2, min(int(seconds / chunk_s), 4000)
        )
        if chunk_s * chunks <= SECONDS_MAX:
            names = {name: figure[name] for name in ("experiment", "data", "case", "chunk_bytes")}
            orders.append({**names, "chunks": chunks})
    return orders


def run(
    program: Path, sizes: list[str], link: StudyLink, orders: list[dict], rounds: int
) -> list[dict]:
    """Send all orders in each round over one connection, and return the deliveries with the link's
    name.
    """
    if not orders:
        return []
    with ExitStack() as stack:
        near, far, address = [], [], LOCAL_ADDRESS
        if link.bits_per_second:
            joined = stack.enter_context(Link.veth(link.name))
            near, far, address = joined.near, joined.far, joined.far_address
        server = subprocess.Popen(
            [*far, str(program), "serve", f"{address}:{PORT}", *sizes],
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(server.wait)
        stack.callback(server.terminate)
        if server.stderr is None or server.stderr.readline().strip() != "ready":
            raise Failure("the study's server did not start")
        # The first order warms up.
        sent = [orders[0], *(order for _ in range(rounds) for order in orders)]
        done = subprocess.run(
            [*near, str(program), "fetch", f"{address}:{PORT}"],
            input="".join(json.dumps(order) + "\n" for order in sent),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    deliveries = [json.loads(line) for line in done.stdout.splitlines()][1:]
    if done.returncode or len(deliveries) != len(orders) * rounds:
        raise Failure(
            f"{len(deliveries)} of {len(orders) * rounds} transfers came over {link.title}"
        )
    print(
        f"study: {sum(delivery['seconds'] for delivery in deliveries):.0f} s of transfers",
        file=sys.stderr,
    )
    gathered = []
    for i, order in enumerate(orders):
        runs = deliveries[i :: len(orders)]
        gathered.append(
            {
                "link": link.name,
                **order,
                "rows": runs[0]["rows"],
                "plain_bytes": runs[0]["plain_bytes"],
                "wire_bytes": runs[0]["wire_bytes"],
                "seconds": [delivery["seconds"] for delivery in runs],
            }
        )
    return gathered


def seconds_per_gb(transfer: dict) -> float:
    """The median seconds that a gigabyte of Arrow data takes."""
    return statistics.median(transfer["seconds"]) / transfer["plain_bytes"] * 1e9


def chunk_means(transfers: list[dict], tables: tuple[str, ...]) -> dict[int, float]:
    """By chunk size: how much longer it takes than the best size, in the geometric mean over tables
    and links.

    Chunks are raw on one host and light on a link, as `auto` has them.
    """
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for transfer in transfers:
        case = "Dray none" if transfer["link"] == "local" else "Dray light"
        if (transfer["experiment"], transfer["case"]) == ("chunk-size", case) and transfer[
            "data"
        ] in tables:
            curve = curves.setdefault((transfer["data"], transfer["link"]), {})
            curve[transfer["chunk_bytes"]] = seconds_per_gb(transfer)
    return geometric_means(curves)


def geometric_means(curves: dict[tuple[str, str], dict[int, float]]) -> dict[int, float]:
    """By size: how many times the least time of each curve it takes, in the mean over the curves."""
    # A size that one of them lacks cannot be compared.
    sizes = set.intersection(*(set(curve) for curve in curves.values()))
    return {
        size: math.exp(
            statistics.fmean(
                math.log(curve[size] / min(curve.values())) for curve in curves.values()
            )
        )
        for size in sorted(sizes)
    }
