"""The networks between client and server: the paper's three, and those of its figures 3 and 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab.common.testbed import LinkTestbed, Testbed, received_bytes
from lab.link.link import Link
from lab.link.namespace import Namespace, pair, remove_orphans, require_root


class LoopbackTestbed(Testbed):
    """A namespace whose loopback interface no other program uses."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.near = self.far = tuple(namespace.inside)

    def choose_congestion(self, name: str) -> None:
        if self.namespace.congestion() != name:
            self.namespace.choose_congestion(name)

    def carried_bytes(self) -> int:
        return received_bytes(self.namespace.run("cat", "/proc/net/dev"))


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes
    ----------
    x : float
        Its place on the axis of its figure.
    is_slow : bool
        Whether it is slower than nearly all clients.
    make_link : callable, optional
        Makes the link. If absent, client and server communicate over loopback.
    """

    name: str
    title: str
    make_link: Callable[[], Link] | None = None
    figure: str = ""
    x: float = 0.0
    is_slow: bool = False

    @contextmanager
    def testbed(self) -> Iterator[Testbed]:
        """The testbed of the network, which exists during the block."""
        if self.make_link is not None:
            with self.make_link() as link:
                yield LinkTestbed(link)
            return
        require_root()
        remove_orphans()
        namespace, _ = pair()
        try:
            namespace.make()
            yield LoopbackTestbed(namespace)
        finally:
            namespace.remove()


NETWORKS = {
    network.name: network
    for network in (
        Network("local", "Local: loopback"),
        Network("lan", "LAN: 1 Gbit/s, veth, no added delay", lambda: Link.veth("1gbit")),
        Network(
            "wan",
            "WAN: 100 Mbit/s, round trip 25 ms, 1 % lost each way, emulated",
            lambda: Link.shaped("100mbit", 25, 0.01),
            is_slow=True,
        ),
    )
}
#: Rate of the links of figure 3, the highest at which packets can be delayed here.
LATENCY_RATE = "200mbit"


def delayed(round_trip_ms: float) -> Network:
    return Network(
        f"latency-{round_trip_ms:g}ms",
        f"{LATENCY_RATE}, round trip {round_trip_ms:g} ms, emulated",
        lambda: Link.shaped(LATENCY_RATE, round_trip_ms),
        "latency",
        round_trip_ms,
    )


def limited(megabits: int) -> Network:
    link = (lambda: Link.veth("1gbit")) if megabits > 200 else shaped(megabits)
    name = f"throughput-{megabits}mbit"
    return Network(name, f"{megabits} Mbit/s, no added delay", link, "throughput", megabits)


def shaped(megabits: int) -> Callable[[], Link]:
    return lambda: Link.shaped(f"{megabits}mbit")


#: Figures 3 and 4.
FIGURES = (
    *(delayed(milliseconds) for milliseconds in (1, 10, 100)),
    *(limited(megabits) for megabits in (10, 100, 1000)),
)
