"""Scenarios: a transfer whose network or reader changes.

Each scenario is a function that returns a dict with a `title`, `lines` of Markdown, and the
measurements.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.common.contender import Setting
from lab.common.dray_contender import DrayServer
from lab.common.process import Failure, last_line, memory_bytes
from lab.common.program import python
from lab.common.tables import number, table
from lab.common.testbed import LinkTestbed, Testbed
from lab.data.lineitem import Lineitem
from lab.link.link import Link
from lab.network.trace import Sampler, between, reached_s, settled_s

CLIENT = "lab.network.client"
ROUND_TRIP_MS = 25
FAST, SLOW = "150mbit", "20mbit"
#: `none` is not the best on either link.
FIXED = ("light", "lz4", "zstd:1", "zstd:3", "zstd:9")
#: Fractions of the scale factor on the constant links. The changing link has all of it.
FAST_SHARE, SLOW_SHARE = 0.3, 0.1
SLOW_S_MAX = 10.0
SLEEP_S, SLEEP_LINK = 5.0, "1gbit"
#: The rate before the sleep is measured from this second on. The rate has recovered when it reaches
#: this fraction of that.
SLEEP_AFTER_S, BACK = 0.5, 0.9
CUT, STALL = "2s+2s", "6s+2s"
SMALL_SHARE = 0.1
SMALL_ROWS, SMALL_TIMES = 100, 500
#: Values of λ shown, at most.
PRICES_MAX = 40
MIB = 2**20


@contextmanager
def server(given: argparse.Namespace, testbed: Testbed, share: float = 1.0) -> Iterator[DrayServer]:
    """Dray with a fraction `share` of lineitem at the far end of a testbed."""
    with tempfile.TemporaryDirectory(prefix="dray-lab-") as folder:
        data = Lineitem.of(float(f"{given.scale_factor * share:.3g}"))
        setting = Setting(data, given.dray, Path(folder), given.timeout, testbed)
        dray = DrayServer(setting)
        try:
            dray.start()
            yield dray
        finally:
            dray.stop()


def fetch(
    dray: DrayServer, what: str, *options: object, at_begin: Callable[[], None] = lambda: None
) -> dict:
    """Run a client, and call `at_begin` when it has connected."""
    setting = dray.setting
    command = [*setting.testbed.near, *python(CLIENT, what, dray.tcp_uri(), *options)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as client:
        try:
            ready = client.stdout.readline()
            if ready:
                at_begin()
            output, errors = client.communicate(
                "go\n" if ready else None, timeout=setting.timeout_s
            )
        except subprocess.TimeoutExpired as error:
            client.kill()
            raise Failure(f"the client did not finish within {setting.timeout_s:.0f} s") from error
        if client.returncode != 0:
            raise Failure(last_line(errors))
    result: dict = json.loads(output.splitlines()[-1])
    # Statistics of up to 189 columns would only make the results large.
    result.get("stats", {}).pop("columns", None)
    return result


def transfer(
    dray: DrayServer, compression: str, *options: object, **chosen: Callable[[], None]
) -> dict:
    data = dray.setting.table
    result = fetch(
        dray, "trace", "--sql", data.query, "--compression", compression, *options, **chosen
    )
    if result["rows"] != data.rows:
        raise Failure(f"expected {data.rows} rows, the client fetched {result['rows']}")
    return result


def change(given: argparse.Namespace) -> dict:
    """A link of 150 Mbit/s that drops to 20 for a while.

    The reference is an oracle that uses the best fixed compression at each rate.
    """
    rates = {
        rate: constant(given, rate, share)
        for rate, share in ((FAST, FAST_SHARE), (SLOW, SLOW_SHARE))
    }
    best = {
        rate: max((name for name in of if name != "auto"), key=of.__getitem__)
        for rate, of in rates.items()
    }
    fast, slow = rates[FAST][best[FAST]], rates[SLOW][best[SLOW]]
    rows = Lineitem.of(given.scale_factor).rows
    slow_from = round(0.35 * rows / fast, 1)
    slow_to = round(slow_from + min(SLOW_S_MAX, 0.2 * rows / slow), 1)
    oracle_s = slow_to + (rows - fast * slow_from - slow * (slow_to - slow_from)) / fast
    schedule = f"{FAST},{SLOW}@{slow_from}s,{FAST}@{slow_to}s"
    settled = [f"settled after {FAST} → {SLOW}, s", f"settled after {SLOW} → {FAST}, s"]
    content = [["compression", "seconds", "× oracle", *settled]]
    runs = []
    with Link.shaped(schedule, ROUND_TRIP_MS) as link, server(given, LinkTestbed(link)) as dray:
        for _ in range(given.rounds):
            for name in ("auto", *dict.fromkeys(best.values())):
                result = {"compression": name, **transfer(dray, name, at_begin=link.start)}
                total_s = result["total_s"]
                result["settled_s"] = [
                    settled_s(result["trace"], slow_from, min(slow_to, total_s)),
                    settled_s(result["trace"], slow_to, total_s),
                ]
                runs.append(result)
                content.append([name, number(total_s, 1, 2), number(total_s / oracle_s, 1, 3)])
                content[-1] += [number(seconds, 1, 1) for seconds in result["settled_s"]]
    adapted = next(run for run in runs if run["compression"] == "auto")
    in_phases = [
        between(adapted["trace"], *phase)
        for phase in (
            (1.0, slow_from),
            ((slow_from + slow_to) / 2, slow_to),
            (slow_to + 1, adapted["total_s"]),
        )
    ]
    lines = [
        f"{rows:,} rows of lineitem, round trip {ROUND_TRIP_MS} ms; {SLOW} from {slow_from} s to "
        f"{slow_to} s, otherwise {FAST}. On constant links, in rows/s:",
        "",
        *table(
            [
                ["", *rates[FAST]],
                *([rate, *(f"{of[name]:,.0f}" for name in of)] for rate, of in rates.items()),
            ]
        ),
        "",
        "The oracle, the best fixed compression at each rate "
        f"({best[FAST]}, {best[SLOW]}, {best[FAST]}), would take {oracle_s:.2f} s.",
        "",
        *table(content),
        "",
        "`auto` in rows/s, without the first second after a change and the first half of the slow "
        f"phase: {', '.join(f'{rate:,.0f}' for rate in in_phases)}. "
        f"λ in ns per byte: {prices(adapted)}.",
    ]
    title = "A link that changes"
    return {
        "title": title,
        "lines": lines,
        "constant_rows_per_s": rates,
        "oracle_s": oracle_s,
        "runs": runs,
    }


def constant(given: argparse.Namespace, rate: str, share: float) -> dict[str, float]:
    """Median rows per second of each compression on a constant link."""
    seen: dict[str, list[float]] = {name: [] for name in ("auto", *FIXED)}
    with Link.shaped(rate, ROUND_TRIP_MS) as link, server(given, LinkTestbed(link), share) as dray:
        rows = dray.setting.table.rows
        for _ in range(given.rounds):
            for name, of in seen.items():
                of.append(rows / transfer(dray, name)["total_s"])
    return {name: statistics.median(of) for name, of in seen.items()}


def sleep(given: argparse.Namespace) -> dict:
    """A reader that sleeps in the middle of a result."""
    result: dict = {"title": "A reader that sleeps"}
    with Link.veth(SLEEP_LINK) as link, server(given, LinkTestbed(link)) as dray:
        pid = dray.process.pid
        rows = dray.setting.table.rows
        options = ["--sleep", SLEEP_S, "--sleep-after-rows", rows // 2]
        with Sampler(lambda: memory_bytes(pid, "RssAnon")) as memory:
            result |= transfer(dray, "auto", *options)
        slept_from, slept_to = (at - result["start"] for at in result["slept"])
        samples = [(at - result["start"], value) for at, value in memory.samples]
        result["server_memory"] = samples
        before = [value for at, value in samples if 0 <= at < slept_from]
        during = [value for at, value in samples if slept_from <= at < slept_to]
        full = between(result["trace"], SLEEP_AFTER_S, slept_from)
        after = between(result["trace"], slept_to, result["total_s"])
        back_s = result["back_s"] = reached_s(
            result["trace"], slept_to, result["total_s"], BACK * full
        )
        mib = [
            f"{value / MIB:.0f} MiB"
            for value in (max(before), during[0], max(during), samples[-1][1])
        ]
        lines = [
            f"{rows:,} rows of lineitem over {SLEEP_LINK} (veth), `auto`; the reader sleeps for "
            f"{SLEEP_S:g} s in the middle. The server's anonymous memory: at most {mib[0]} before "
            f"the sleep, {mib[1]} at its start, at most {mib[2]} during it, {mib[3]} at the end. "
            f"Rows/s: {full:,.0f} before the sleep and {after:,.0f} after it, "
            f"{BACK:.0%} of the former after {number(back_s, 1, 2)} s. "
            f"λ in ns per byte: {prices(result)}."
        ]
    return {**result, "lines": lines}


def small(given: argparse.Namespace) -> dict:
    """Repeated results of a hundred rows on an open connection."""
    content = [["network", "compression", "median ms", "p95 ms"]]
    result: dict = {"title": "A hundred rows on an open connection", "took_ms": {}}
    links = {
        "1gbit, veth": lambda: Link.veth("1gbit"),
        "100mbit, 25 ms, 1 %": lambda: Link.shaped("100mbit", 25, 0.01),
    }
    sql = f"SELECT * FROM lineitem LIMIT {SMALL_ROWS}"
    for name, make in links.items():
        with make() as link, server(given, LinkTestbed(link), SMALL_SHARE) as dray:
            seen = fetch(
                dray, "small", "--sql", sql, "--compression", "auto,none", "--times", SMALL_TIMES
            )
        if seen["rows"] != [SMALL_ROWS]:
            raise Failure(
                f"expected {SMALL_ROWS} rows each time, the client fetched {seen['rows']}"
            )
        result["took_ms"][name] = seen["took_ms"]
        for compression, took_ms in seen["took_ms"].items():
            p95 = statistics.quantiles(took_ms, n=20)[18]
            content.append(
                [name, compression, number(statistics.median(took_ms), 1, 2), number(p95, 1, 2)]
            )
    lines = [f"Lineitem, {SMALL_TIMES} times with each compression in turn.", "", *table(content)]
    return {**result, "lines": lines}


def cut(given: argparse.Namespace) -> dict:
    """A link with a cut, which loses all packets, and a stall, which delays them."""
    content = [
        ["link", "compression", "seconds", "settled after the cut", "settled after the stall"]
    ]
    runs = []
    for title, cuts, stalls in (("as it is", (), ()), ("cut and stall", (CUT,), (STALL,))):
        with (
            Link.shaped("100mbit", 25, 0.01, cuts=cuts, stalls=stalls) as link,
            server(given, LinkTestbed(link)) as dray,
        ):
            for name in ("auto", "zstd:1"):
                begin = link.start if cuts else lambda: None
                result = {
                    "link": title,
                    "compression": name,
                    **transfer(dray, name, at_begin=begin),
                }
                total_s = result["total_s"]
                after = [
                    settled_s(result["trace"], 4.0, min(6.0, total_s)),
                    settled_s(result["trace"], 8.0, total_s),
                ]
                result["settled_s"] = after if cuts else [None, None]
                runs.append(result)
                content.append(
                    [
                        title,
                        name,
                        number(total_s, 1, 2),
                        *(number(s, 1, 1) for s in result["settled_s"]),
                    ]
                )
    lines = [
        f"{Lineitem.of(given.scale_factor).rows:,} rows of lineitem, 100 Mbit/s, 25 ms, 1 % lost; "
        "a cut from 2 to 4 s and a stall from 6 to 8 s. "
        f"λ of `auto` in ns per byte: {prices(runs[-2])}.",
        "",
        *table(content),
    ]
    return {"title": "A cut and a stall", "lines": lines, "runs": runs}


def prices(result: dict) -> str:
    """λ over time, including its last value."""
    settings = result["stats"]["byte_prices"]
    every = max(1, -(-len(settings) // PRICES_MAX))
    return " → ".join(
        f"{ns:.3g} ({at_s:.1f} s)" for at_s, ns in [*settings[:-1][::every], *settings[-1:]]
    )


SCENARIOS = {"change": change, "sleep": sleep, "small": small, "cut": cut}
