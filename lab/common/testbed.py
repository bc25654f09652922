"""Where client and server run, and what connects them: the loopback interface or a link."""

from __future__ import annotations

from pathlib import Path

from lab.common import congestion
from lab.common.process import Failure
from lab.link.link import Link


class Testbed:
    """This machine: client and server communicate over loopback."""

    #: The address that servers listen on.
    address = "127.0.0.1"
    #: Prefixes of the command lines of clients (near) and servers (far).
    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()

    def choose_congestion(self, name: str) -> None:
        """Set the default congestion control of new TCP connections."""
        congestion.choose(name)

    def carried_bytes(self) -> int:
        """Bytes that all programs' clients have received so far, including headers."""
        return received_bytes(Path("/proc/net/dev").read_text())

    def is_loopback(self) -> bool:
        return True


class LinkTestbed(Testbed):
    """The two ends of an existing link."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.address = link.far_address
        self.near, self.far = tuple(link.near), tuple(link.far)

    def choose_congestion(self, name: str) -> None:
        # Setting it runs two commands and needs a permission, so it is done only on change.
        if self.link.congestion != name:
            self.link.congestion = name

    def carried_bytes(self) -> int:
        return self.link.counters()["to_near"]["passed_bytes"]

    def is_loopback(self) -> bool:
        return False


def received_bytes(devices: str) -> int:
    """What the loopback interface has received, by the content of /proc/net/dev."""
    for line in devices.splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[0])
    raise Failure("there is no loopback interface")
