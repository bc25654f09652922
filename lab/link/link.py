"""A slow or lossy link between two network namespaces, to measure over: real packets, real TCP, no
netem.

    with Link.shaped(rate="100mbit", round_trip_ms=25, loss=0.01) as link:
        link.congestion = "cubic"
        link.check()
        server = subprocess.Popen([*link.far, "nc", "-lN", "7000"])
        subprocess.run([*link.near, "nc", link.far_address, "7000"])

The near namespace is the client's, the far one the server's. Needs root. See README.md.
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
    """Two namespaces and what joins them. A context manager: outside, it does not exist."""

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
        """An emulated link of at most 200 Mbit/s. `to_far` or `to_near` replace what both
        directions have in common.

        Parameters
        ----------
        rate : str
            Bits of IP packets per second, with what changes: `100mbit`, or `150mbit,20mbit@5s,150mbit@15s`.
        round_trip_ms : float
            Half of it in each direction. The queue comes on top.
        loss, reorder, reorder_ms, queue_bytes, cuts, stalls
            As of `Direction`.
        """
        both = Direction(
            rate, round_trip_ms / 2, loss, reorder, reorder_ms, queue_bytes, cuts, stalls
        )
        return cls(Emulated(to_far or both, to_near or both, mtu, seed))

    @classmethod
    def veth(cls, rate: str, *, queue_bytes: int | None = None, mtu: int = 1500) -> Link:
        """A LAN: a rate of Ethernet frames in each direction, without a delay, a loss or a
        schedule.
        """
        both = Direction(rate, queue_bytes=queue_bytes)
        rate_bits(rate)
        return cls(Veth(both, both, mtu))

    def __enter__(self) -> Link:
        require_root()
        remove_orphans()
        with ExitStack() as stack:
            for namespace in (self.near_namespace, self.far_namespace):
                # Registered first: it may be interrupted half made.
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
        """What a command line begins with to run at the near end."""
        return list(self.near_namespace.inside)

    @property
    def far(self) -> list[str]:
        """What a command line begins with to run at the far end."""
        return list(self.far_namespace.inside)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process, and the addresses of the link."""
        return {
            **os.environ,
            "LINK_NEAR_ADDRESS": self.near_address,
            "LINK_FAR_ADDRESS": self.far_address,
        }

    @property
    def congestion(self) -> str:
        """TCP's congestion control for new connections, at both ends."""
        return self.near_namespace.congestion()

    @congestion.setter
    def congestion(self, name: str) -> None:
        for namespace in (self.near_namespace, self.far_namespace):
            namespace.choose_congestion(name)

    def start(self) -> None:
        """Begin the schedule now, again if it was begun before."""
        self.line.start()
        self.is_started = True

    def measure(self) -> link_check.Check:
        """Measure the link at its first rate, for about ten seconds, before its schedule is
        started.
        """
        if self.is_started:
            raise Failure("a link is measured before its schedule is started")
        return link_check.measure(self)

    def check(self) -> link_check.Check:
        """Measure the link. Raises Failure when it is not as it was set."""
        seen = self.measure()
        link_check.compare(seen, self)
        return seen

    def counters(self) -> dict[str, dict[str, int]]:
        """For `to_far` and `to_near`: packets `passed`, `passed_bytes`, those that `overflowed` the
        queue, and more.
        """
        return self.line.counters()

    def cpu_s(self) -> float:
        """CPU seconds of the emulator so far, with what the kernel does in its name: the receiver's
        TCP.
        """
        return self.line.cpu_s()

    def await_listening(
        self, server: subprocess.Popen[bytes], timeout_s: float = LISTENING_TIMEOUT_S
    ) -> None:
        """Wait until something listens at the far end, which a server there is to do."""
        deadline = time.monotonic() + timeout_s
        while not self.far_namespace.is_listening():
            if server.poll() is not None:
                raise Failure(f"the server at the far end ended with code {server.returncode}")
            if time.monotonic() > deadline:
                raise Failure(f"nothing listens at the far end after {timeout_s:.0f} s")
            time.sleep(0.05)
