"""A slow or lossy link between two network namespaces, for kernels without netem.

    with Link.shaped(rate="100mbit", round_trip_ms=25, loss=0.01) as link:
        link.congestion = "cubic"
        link.check()
        server = subprocess.Popen([*link.far, "nc", "-lN", "7000"])
        subprocess.run([*link.near, "nc", link.far_address, "7000"])

Clients run in the near namespace and servers in the far one. A link needs root. See README.md.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack

from lab.common.process import Failure
from lab.link import check as link_check
from lab.link.direction import Direction, rate_bits
from lab.link.line import FAR_ADDRESS, NEAR_ADDRESS, Emulated, Line, Veth
from lab.link.namespace import pair, remove_orphans, require_root

LISTENING_TIMEOUT_S = 30.0


class Link:
    """Two namespaces and the line between them. They exist while the context is entered."""

    near_address = NEAR_ADDRESS
    far_address = FAR_ADDRESS

    def __init__(self, line: Line) -> None:
        self.line = line
        self.near_namespace, self.far_namespace = pair()
        self.exit = ExitStack()
        self.is_started = False

    @classmethod
    def shaped(
        cls,
        rate: str,
        round_trip_ms: float = 0.0,
        loss: float = 0.0,
        *,
        reorder: float = 0.0,
        reorder_ms: float = 5.0,
        queue_bytes: int | None = None,
        cuts: tuple[str, ...] = (),
        stalls: tuple[str, ...] = (),
        to_far: Direction | None = None,
        to_near: Direction | None = None,
        mtu: int = 1500,
        seed: int = 1,
    ) -> Link:
        """An emulated link of at most 200 Mbit/s.

        Parameters
        ----------
        rate : str
            Bits of IP packets per second, optionally with a schedule: `100mbit`, or
            `150mbit,20mbit@5s,150mbit@15s`.
        round_trip_ms : float
            Without time in the queues. Each direction has half of it.
        loss, reorder, reorder_ms, queue_bytes, cuts, stalls
            As for `Direction`.
        to_far, to_near : Direction, optional
            Replaces the settings above for one direction.
        """
        both = Direction(
            rate, round_trip_ms / 2, loss, reorder, reorder_ms, queue_bytes, cuts, stalls
        )
        return cls(Emulated(to_far or both, to_near or both, mtu, seed))

    @classmethod
    def veth(cls, rate: str, *, queue_bytes: int | None = None, mtu: int = 1500) -> Link:
        """A LAN: a rate of Ethernet frames in each direction, without delay, loss or schedule."""
        both = Direction(rate, queue_bytes=queue_bytes)
        rate_bits(rate)
        return cls(Veth(both, both, mtu))

    def __enter__(self) -> Link:
        require_root()
        remove_orphans()
        with ExitStack() as stack:
            for namespace in (self.near_namespace, self.far_namespace):
                # Registered first, because making it may be interrupted.
                stack.callback(namespace.remove)
                namespace.make()
            stack.callback(self.line.disconnect)
            self.line.connect(self.near_namespace, self.far_namespace)
            self.exit = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self.exit.close()

    @property
    def near(self) -> list[str]:
        """The prefix of a command line that runs at the near end."""
        return list(self.near_namespace.inside)

    @property
    def far(self) -> list[str]:
        """The prefix of a command line that runs at the far end."""
        return list(self.far_namespace.inside)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process with the addresses of the link."""
        return {
            **os.environ,
            "LINK_NEAR_ADDRESS": self.near_address,
            "LINK_FAR_ADDRESS": self.far_address,
        }

    @property
    def congestion(self) -> str:
        """The default congestion control of new TCP connections at both ends."""
        return self.near_namespace.congestion()

    @congestion.setter
    def congestion(self, name: str) -> None:
        for namespace in (self.near_namespace, self.far_namespace):
            namespace.choose_congestion(name)

    def start(self) -> None:
        """Start or restart the schedule."""
        self.line.start()
        self.is_started = True

    def measure(self) -> link_check.Check:
        """Measure the link at its first rate. This takes about ten seconds.

        Raises
        ------
        Failure
            If the schedule has been started.
        """
        if self.is_started:
            raise Failure("a link must be measured before its schedule starts")
        return link_check.measure(self)

    def check(self) -> link_check.Check:
        """Measure the link, and raise Failure if it differs from its settings."""
        seen = self.measure()
        link_check.compare(seen, self)
        return seen

    def counters(self) -> dict[str, dict[str, int]]:
        """Counters of the directions `to_far` and `to_near`.

        All links count packets that `passed`, their `passed_bytes`, and those that `overflowed` the
        queue. An emulated link has more counters.
        """
        return self.line.counters()

    def cpu_s(self) -> float:
        """CPU seconds of the emulator so far, including the receiver's TCP in the kernel."""
        return self.line.cpu_s()

    def await_listening(
        self, server: subprocess.Popen[bytes], timeout_s: float = LISTENING_TIMEOUT_S
    ) -> None:
        """Wait until a server at the far end listens."""
        deadline = time.monotonic() + timeout_s
        while not self.far_namespace.is_listening():
            if server.poll() is not None:
                raise Failure(f"the server at the far end ended with code {server.returncode}")
            if time.monotonic() > deadline:
                raise Failure(f"nothing listens at the far end after {timeout_s:.0f} s")
            time.sleep(0.05)
