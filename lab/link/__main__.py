"""The command line of a link: check it, or run a command over it. See README.md."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys

from lab.common.process import Failure
from lab.common.program import program_name
from lab.link import check as link_check
from lab.link.direction import Direction, fraction, interval, rate_steps, seconds, size_bytes
from lab.link.link import Link

EXAMPLES = """examples:
  python -m lab.link --rate 100mbit --round-trip 25ms --loss 1% --check
  python -m lab.link --rate 1gbit --veth --check
  python -m lab.link --rate 150mbit,20mbit@5s,150mbit@15s --round-trip 25ms \\
      --far-command 'python3 -m http.server' -- \\
      sh -c 'curl -so /dev/null http://$LINK_FAR_ADDRESS:8000/FILE'
  python -m lab.link --rate 50mbit --round-trip 40ms --cut 3s+2s --stall 8s+500ms -- COMMAND
  python -m lab.link --rate 50mbit --round-trip 40ms --to-far 'rate=5mbit loss=0' \\
      --congestion bbr -- COMMAND

COMMAND runs in the near namespace. If --far-command is given, it starts first in the far namespace,
and COMMAND and the schedule start when it listens. Both commands find LINK_NEAR_ADDRESS and
LINK_FAR_ADDRESS in their environment. The counters of the link are printed at the end."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program_name(),
        description="Run a command over a slow or lossy link between two network namespaces.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rate",
        default="100mbit",
        help="rate, or a schedule like 150mbit,20mbit@5s (default: %(default)s)",
    )
    parser.add_argument(
        "--round-trip", default="0ms", help="without time in the queues (default: %(default)s)"
    )
    parser.add_argument(
        "--loss",
        default="0",
        help="fraction of packets lost in each direction, like 1%% (default: %(default)s)",
    )
    parser.add_argument(
        "--reorder",
        default="0",
        help="fraction of packets with an additional delay (default: %(default)s)",
    )
    parser.add_argument(
        "--reorder-delay", default="5ms", help="the additional delay (default: %(default)s)"
    )
    parser.add_argument(
        "--queue",
        help="capacity, like 500kb (default: a round trip and 100 ms at the highest rate)",
    )
    parser.add_argument(
        "--cut", action="append", default=[], help="3s+2s: all packets are lost from second 3 to 5"
    )
    parser.add_argument(
        "--stall",
        action="append",
        default=[],
        help="3s+2s: no packet leaves the queue from second 3 to 5",
    )
    parser.add_argument(
        "--to-far",
        default="",
        help="other settings in this direction: 'rate=5mbit delay=20ms loss=0 queue=100kb'",
    )
    parser.add_argument("--to-near", default="", help="other settings in this direction")
    parser.add_argument("--mtu", type=int, default=1500, help="default: %(default)s")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of loss and reordering (default: %(default)s)"
    )
    parser.add_argument(
        "--veth",
        action="store_true",
        help="a veth pair with token buckets, for rates above 200mbit",
    )
    parser.add_argument(
        "--congestion", help="TCP congestion control at both ends (default: the machine's)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="measure the link first, and fail if it differs from its settings",
    )
    parser.add_argument(
        "--far-command", help="command to start at the far end, and to end after COMMAND"
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    given = parser.parse_args()
    if not given.command and not given.check:
        parser.error("expected --check, or a command after --")
    return given


def link_of(given: argparse.Namespace) -> Link:
    """A link with the options' settings."""
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
            raise Failure("a veth link supports only --rate, --queue and --mtu")
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
    to_far, to_near = both.with_changes(given.to_far), both.with_changes(given.to_near)
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
    # Turned into SystemExit, so that the namespaces are removed.
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
