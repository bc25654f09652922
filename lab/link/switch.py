"""Hosts at one switch: network namespaces, each with a link of its own to a bridge.

    with Switch("server", "worker-1", "worker-2", rate="1gbit") as switch:
        server = subprocess.Popen([*switch["server"].inside, "nc", "-lN", "7000"])
        switch["worker-1"].rate("10mbit")
        subprocess.run([*switch["worker-1"].inside, "nc", switch["server"].address, "7000"])

A link is a veth pair with a token bucket at both ends, as in `line.py`: a rate of Ethernet frames
in each direction, which may change, and no delay. It can be cut for a while. See README.md.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lab.common.process import Failure
from lab.link.direction import QUEUE_S, rate_bits
from lab.link.line import DEVICE, bucket, passed
from lab.link.namespace import NAMES, Namespace, command, remove_orphans, require_root, unique

BRIDGE = "bridge0"
#: Addresses that exist only at the switch.
NETWORK, PREFIX_BITS = "10.98.0.", 24
#: Several packets of segmentation offload: a shorter queue loses so many that TCP stands still.
QUEUE_BYTES_MIN = 512 * 1024
CLONE_NEWNET = 0x40000000


class Host:
    """A namespace at a switch, and its link."""

    def __init__(self, hub: Namespace, name: str, number: int) -> None:
        self.name = name
        self.address = f"{NETWORK}{number}"
        self.namespace = unique(name)
        self.hub = hub
        #: The end of the link at the switch.
        self.port = f"port{number}"

    @property
    def inside(self) -> list[str]:
        """The prefix of a command line that runs at the host."""
        return list(self.namespace.inside)

    def connect(self, rate: str) -> None:
        space, hub = self.namespace, self.hub
        space.ip(
            "link", "add", DEVICE, "type", "veth", "peer", "name", self.port, "netns", hub.name
        )
        space.ip("address", "add", f"{self.address}/{PREFIX_BITS}", "dev", DEVICE)
        space.ip("link", "set", DEVICE, "up")
        hub.ip("link", "set", self.port, "master", BRIDGE, "up")
        self.shape("add", rate)

    def rate(self, rate: str) -> None:
        """Change the rate of both directions."""
        self.shape("change", rate)

    def shape(self, how: str, rate: str) -> None:
        bits = rate_bits(rate)
        shaping = bucket(bits, max(QUEUE_BYTES_MIN, round(bits / 8 * QUEUE_S)))
        for space, device in ((self.namespace, DEVICE), (self.hub, self.port)):
            command("tc", "-n", space.name, "qdisc", how, "dev", device, "root", "tbf", *shaping)

    def cut(self) -> None:
        """Cut the link: packets in either direction are lost until it is mended."""
        self.hub.ip("link", "set", self.port, "down")

    def mend(self) -> None:
        self.hub.ip("link", "set", self.port, "up")

    def received_bytes(self) -> int:
        """What the link has carried to the host, with headers."""
        return passed(self.hub, self.port)["passed_bytes"]

    def processes(self) -> list[int]:
        """The processes that run at the host."""
        return [int(pid) for pid in self.namespace.run_quietly("pids", self.namespace.name).split()]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within the block, this thread and the processes and threads that it starts are there."""
        with (
            open("/proc/thread-self/ns/net", "rb") as here,
            open(NAMES / self.namespace.name, "rb") as there,
        ):
            join(there.fileno())
            try:
                yield
            finally:
                join(here.fileno())


def join(namespace: int) -> None:
    """Move this thread into a network namespace, of which there is an open file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise Failure(f"cannot enter a namespace: {os.strerror(ctypes.get_errno())}")


class Switch:
    """Hosts and the bridge between them. They exist while the context is entered."""

    def __init__(self, *names: str, rate: str) -> None:
        self.rate = rate
        self.hub = unique("hub")
        self.hosts = {
            name: Host(self.hub, name, number) for number, name in enumerate(names, start=1)
        }
        self.exit = ExitStack()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def __enter__(self) -> Switch:
        require_root()
        remove_orphans()
        with ExitStack() as stack:
            for namespace in (self.hub, *(host.namespace for host in self.hosts.values())):
                # Registered first, because making it may be interrupted.
                stack.callback(namespace.remove)
                namespace.make()
            self.hub.ip("link", "add", BRIDGE, "type", "bridge")
            self.hub.ip("link", "set", BRIDGE, "up")
            for host in self.hosts.values():
                host.connect(self.rate)
            self.exit = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self.exit.close()
