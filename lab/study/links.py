"""The study's transfers: the chunks that are sent over each link, and the time they take."""

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
#: Fewer chunks would not fill the queues of two chunks at both ends.
CHUNKS_MIN = 4
#: A case is skipped if its transfer would take longer than this.
SECONDS_MAX = 8.0


@dataclass(frozen=True)
class StudyLink:
    """A link, and the experiments that the paper ran on a similar one."""

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
    """A request for each case of the link, with as many chunks as take about `seconds`."""
    requests = []
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
        # At least the time of a chunk in two sockets and four threads.
        chunk_s = max(
            encode_s, decode_s, line_s, figure["encoded_bytes"] / figure["chunks"] / 2e9, 5e-6
        )
        chunks = max(
            CHUNKS_MIN if figure["chunk_bytes"] < 32 << 20 else 2, min(int(seconds / chunk_s), 4000)
        )
        if chunk_s * chunks <= SECONDS_MAX:
            names = {name: figure[name] for name in ("experiment", "data", "case", "chunk_bytes")}
            requests.append({**names, "chunks": chunks})
    return requests


def run(
    program: Path, sizes: list[str], link: StudyLink, requests: list[dict], rounds: int
) -> list[dict]:
    """Send all requests in each round over one connection, and return the transfers."""
    if not requests:
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
            raise Failure("the server of the study did not start")
        # The first request is repeated to warm up.
        sent = [requests[0], *(request for _ in range(rounds) for request in requests)]
        done = subprocess.run(
            [*near, str(program), "fetch", f"{address}:{PORT}"],
            input="".join(json.dumps(request) + "\n" for request in sent),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    transfers = [json.loads(line) for line in done.stdout.splitlines()][1:]
    if done.returncode or len(transfers) != len(requests) * rounds:
        raise Failure(
            f"expected {len(requests) * rounds} transfers over {link.title}, found {len(transfers)}"
        )
    print(
        f"study: {sum(transfer['seconds'] for transfer in transfers):.0f} s of transfers",
        file=sys.stderr,
    )
    gathered = []
    for i, request in enumerate(requests):
        runs = transfers[i :: len(requests)]
        gathered.append(
            {
                "link": link.name,
                **request,
                "rows": runs[0]["rows"],
                "plain_bytes": runs[0]["plain_bytes"],
                "wire_bytes": runs[0]["wire_bytes"],
                "seconds": [transfer["seconds"] for transfer in runs],
            }
        )
    return gathered


def seconds_per_gb(transfer: dict) -> float:
    """Median seconds per gigabyte of Arrow data."""
    return statistics.median(transfer["seconds"]) / transfer["plain_bytes"] * 1e9


def chunk_means(transfers: list[dict], tables: tuple[str, ...]) -> dict[int, float]:
    """The geometric mean, over tables and links, of each chunk size's time relative to the best.

    Chunks are raw on one host and light on a link, as with `auto`.
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
    """The geometric mean, over curves, of each size's time relative to the curve's least time."""
    # Sizes that are missing from a curve cannot be compared.
    sizes = set.intersection(*(set(curve) for curve in curves.values()))
    return {
        size: math.exp(
            statistics.fmean(
                math.log(curve[size] / min(curve.values())) for curve in curves.values()
            )
        )
        for size in sorted(sizes)
    }
