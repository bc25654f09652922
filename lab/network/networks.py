"""The networks, and the contenders that fetch over each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab.common.arrow_flight import FlightContender, FlightServer
from lab.common.contender import Contender, Setting
from lab.common.dray_contender import DrayContender, DrayServer
from lab.common.measurement import FETCHES
from lab.common.netcat import NetcatContender, NetcatServer
from lab.common.row import Row
from lab.common.testbed import LinkTestbed, Testbed
from lab.data.lineitem import Lineitem
from lab.data.sample import Sample
from lab.data.table import Table
from lab.link.link import Link

FIXED = ("none", "light", "lz4", "zstd:1", "zstd:3", "zstd:9")
#: So slow that it takes part only on the slowest network.
SLOWEST = "zstd:19"
#: Compressor and decompressor of the CSV, by the suffix of the contender's name.
PIPES = {
    "-gzip1": ("gzip -1", "gzip -dc"),
    "-gzip": ("gzip", "gzip -dc"),
    "-zstd": ("zstd -qc -T0", "zstd -qdc"),
}


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes
    ----------
    make_link : callable, optional
        Makes the link. If absent, client and server communicate over loopback.
    share : float
        Fraction of the rows of each table, so that a fetch takes at most about half a minute.
    fetches : int
        Fetches of each client process. A single fetch must take so long that waiting for memory is
        negligible.
    """

    name: str
    title: str
    make_link: Callable[[], Link] | None
    share: float
    fetches: int
    compressions: tuple[str, ...] = FIXED
    pipes: tuple[str, ...] = ("-gzip1", "-zstd")

    @contextmanager
    def testbed(self) -> Iterator[Testbed]:
        """The testbed of the network, which exists during the block."""
        if self.make_link is None:
            yield Testbed()
            return
        with self.make_link() as link:
            yield LinkTestbed(link)

    def rows(self, setting: Setting, controls: list[str]) -> list[Row]:
        """All contenders, Dray first.

        Rivals have a row for each congestion control. Dray's server chooses its own.
        """
        dray, flight = DrayServer(setting), FlightServer(setting)
        ours: list[Contender] = [
            DrayContender(dray, over_tcp=True, compression=name)
            for name in ("auto", *self.compressions)
        ]
        rivals: list[Contender] = [
            FlightContender(flight, compression=name) for name in ("none", "lz4", "zstd")
        ]
        rivals += [NetcatContender(NetcatServer(setting))]
        for name in self.pipes:
            compressor, decompressor = PIPES[name]
            rivals.append(NetcatContender(NetcatServer(setting, compressor), name, decompressor))
        if self.make_link is None:
            ours += [
                DrayContender(dray, over_tcp=False, compression=name) for name in ("auto", "none")
            ]
            ours += [FlightContender(flight, over_tcp=False)]
        rows = [Row(contender, None) for contender in ours]
        rows += [Row(contender, control) for contender in rivals for control in controls]
        for row in rows:
            # A client with several fetches drops the first one instead.
            row.contender.warms_up = False
        return rows


NETWORKS = (
    Network("host", "One host: 127.0.0.1, and Unix sockets", None, 1, FETCHES),
    Network("10gbit", "10 Gbit/s, veth, no delay", lambda: Link.veth("10gbit"), 1, FETCHES),
    Network("1gbit", "1 Gbit/s, veth, no delay", lambda: Link.veth("1gbit"), 1, FETCHES),
    Network(
        "100mbit",
        "100 Mbit/s, round trip 25 ms, 1 % lost each way, emulated",
        lambda: Link.shaped("100mbit", 25, 0.01),
        0.3,
        2,
        pipes=tuple(PIPES),
    ),
    Network(
        "10mbit",
        "10 Mbit/s, round trip 40 ms, emulated",
        lambda: Link.shaped("10mbit", 40),
        0.03,
        1,
        (*FIXED, SLOWEST),
        tuple(PIPES),
    ),
)
DATA = ("lineitem", "ontime", "pums")


def table(name: str, scale_factor: float, rows: int, share: float) -> Table:
    """A table with a fraction `share` of its rows."""
    if name == "lineitem":
        return Lineitem.of(float(f"{scale_factor * share:.3g}"))
    return Sample(name, max(1000, round(rows * share)))
