"""Where the two ends of a race run, and what lies between them: this machine's loopback interface,
or a link.
"""

from __future__ import annotations

from pathlib import Path

from lab.common import congestion
from lab.common.process import Failure
from lab.link.link import Link


class Testbed:
    """This machine: both ends beside each other, over loopback."""

    #: Where servers listen and clients connect to.
    address = "127.0.0.1"
    #: What the command lines of clients and of servers begin with.
    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()

    def choose_congestion(self, name: str) -> None:
        """TCP's congestion control of new connections that ask for none."""
        congestion.choose(name)

    def carried_bytes(self) -> int:
        """What has come to clients so far, from whatever program, headers included."""
        for line in Path("/proc/net/dev").read_text().splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == "lo":
                return int(counters.split()[0])
        raise Failure("there is no loopback interface")

    def is_loopback(self) -> bool:
        return True


class LinkTestbed(Testbed):
    """The two ends of a link that exists."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.address = link.far_address
        self.near, self.far = tuple(link.near), tuple(link.far)

    def choose_congestion(self, name: str) -> None:
        # Setting it takes two processes and the machine's permission.
        if self.link.congestion != name:
            self.link.congestion = name

    def carried_bytes(self) -> int:
        return self.link.counters()["to_near"]["passed_bytes"]

    def is_loopback(self) -> bool:
        return False
