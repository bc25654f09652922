"""A slow or lossy link between two network namespaces, to measure over: real packets, real TCP, no
netem.

    with Link.shaped(rate="100mbit", round_trip_ms=25, loss=0.01) as link:
        link.congestion = "cubic"
        link.check()
        server = subprocess.Popen([*link.far, "nc", "-lN", "7000"])
        subprocess.run([*link.near, "nc", link.far_address, "7000"])

The near namespace is the client's, the far one the server's. Needs root. See README.md, "Links".
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import link_check
import link_namespace
from link_direction import Direction, fraction, interval, rate_bits, rate_steps, seconds, size_bytes
from link_line import FAR_ADDRESS, NEAR_ADDRESS, Emulated, Line, Veth
from process import Failure

LISTENING_TIMEOUT_S = 30.0
EXAMPLES = """examples:
  link.py --rate 100mbit --round-trip 25ms --loss 1% --check
  link.py --rate 1gbit --veth --check
  link.py --rate 150mbit,20mbit@5s,150mbit@15s --round-trip 25ms --far-command 'python3 -m http.server' -- \\
      sh -c 'curl -so /dev/null http://$LINK_FAR_ADDRESS:8000/FILE'
  link.py --rate 50mbit --round-trip 40ms --cut 3s+2s --stall 8s+500ms -- COMMAND
  link.py --rate 50mbit --round-trip 40ms --to-far 'rate=5mbit loss=0' --congestion bbr -- COMMAND

COMMAND runs in the near namespace, --far-command in the far one, before it. Both find LINK_NEAR_ADDRESS and
LINK_FAR_ADDRESS in their environment. COMMAND begins when something listens in the far namespace, and with it the
schedule. The counters of the link are printed at the end."""


class Link:
    """Two namespaces and what joins them. A context manager: outside, it does not exist."""

    near_address = NEAR_ADDRESS
    far_address = FAR_ADDRESS

    def __init__(self, line: Line) -> None:
        self.line = line
        self.near_namespace, self.far_namespace = link_namespace.pair()
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
        link_namespace.require_root()
        link_namespace.remove_orphans()
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


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Run a command over a slow or lossy link between two network namespaces.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rate",
        default="100mbit",
        help="with what changes: 150mbit,20mbit@5s (default: %(default)s)",
    )
    parser.add_argument(
        "--round-trip", default="0ms", help="without the queue (default: %(default)s)"
    )
    parser.add_argument(
        "--loss", default="0", help="of packets in each direction, like 1%% (default: %(default)s)"
    )
    parser.add_argument(
        "--reorder", default="0", help="packets that are delayed further (default: %(default)s)"
    )
    parser.add_argument(
        "--reorder-delay", default="5ms", help="how much further (default: %(default)s)"
    )
    parser.add_argument(
        "--queue", help="like 500kb (default: a round trip and 100 ms of the highest rate)"
    )
    parser.add_argument(
        "--cut", action="append", default=[], help="3s+2s: nothing passes from second 3 to 5"
    )
    parser.add_argument(
        "--stall", action="append", default=[], help="3s+2s: packets are held from second 3 to 5"
    )
    parser.add_argument(
        "--to-far",
        default="",
        help="what differs there: 'rate=5mbit delay=20ms loss=0 queue=100kb'",
    )
    parser.add_argument("--to-near", default="", help="what differs there")
    parser.add_argument("--mtu", type=int, default=1500, help="default: %(default)s")
    parser.add_argument(
        "--seed", type=int, default=1, help="of loss and reordering (default: %(default)s)"
    )
    parser.add_argument(
        "--veth", action="store_true", help="a veth pair with token buckets, for more than 200mbit"
    )
    parser.add_argument(
        "--congestion", help="TCP's congestion control at both ends (default: the machine's)"
    )
    parser.add_argument(
        "--check", action="store_true", help="measure the link first, and fail if it is off"
    )
    parser.add_argument("--far-command", help="started at the far end, ended after COMMAND")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    given = parser.parse_args()
    if not given.command and not given.check:
        parser.error("expected --check, or a command after --")
    return given


def link_of(given: argparse.Namespace) -> Link:
    """The link that the options describe."""
    queue_bytes = size_bytes(given.queue) if given.queue else None
    if given.veth:
        shaping = (
            given.round_trip,
            given.loss,
            given.reorder,
            given.cut,
            given.stall,
            given.to_far,
            given.to_near,
        )
        if shaping != ("0ms", "0", "0", [], [], "", ""):
            raise Failure("a veth link has only a rate, a queue and an MTU")
        return Link.veth(given.rate, queue_bytes=queue_bytes, mtu=given.mtu)
    for text in (*given.cut, *given.stall):
        interval(text)
    rate_steps(given.rate)
    both = Direction(
        rate=given.rate,
        delay_ms=seconds(given.round_trip) * 1000 / 2,
        loss=fraction(given.loss),
        reorder=fraction(given.reorder),
        reorder_ms=seconds(given.reorder_delay) * 1000,
        queue_bytes=queue_bytes,
        cuts=tuple(given.cut),
        stalls=tuple(given.stall),
    )
    to_far, to_near = both.but(given.to_far), both.but(given.to_near)
    return Link.shaped(given.rate, to_far=to_far, to_near=to_near, mtu=given.mtu, seed=given.seed)


def run(link: Link, given: argparse.Namespace) -> int:
    """Run the command over the link, and return its exit code."""
    far = None
    if given.far_command:
        far = subprocess.Popen([*link.far, *shlex.split(given.far_command)], env=link.environment)
        link.await_listening(far)
    if link.line.to_far.is_scheduled() or link.line.to_near.is_scheduled():
        link.start()
    try:
        return subprocess.run(
            [*link.near, *given.command], env=link.environment, check=False
        ).returncode
    finally:
        if far is not None:
            far.terminate()
            far.wait()
        print(json.dumps(link.counters()), file=sys.stderr)


def main() -> int:
    given = options()
    # By unwinding, so that the namespaces go.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))
    try:
        with link_of(given) as link:
            if given.congestion:
                link.congestion = given.congestion
            if given.check:
                seen = link.measure()
                print(seen, file=sys.stderr)
                link_check.compare(seen, link)
            return run(link, given) if given.command else 0
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
