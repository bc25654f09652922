"""Bits that change, and bytes that are lost or doubled, between a client and the extension.

With checksums there is either the right table or an error. PostgreSQL's protocol has no
checksums of its own, so the statement's text is not guarded (spec/protocol.md, section 10): a fault
in it may give the table of another statement. Rows are not guarded at all; their tests are in
``crates/client/tests/postgres_faults.rs``.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
from postgres_server import VERSIONS, PostgresServer
from proxy import Proxy

import dray

QUERY = """SELECT n, 'row ' || n AS text, CASE WHEN n % 3 > 0 THEN n * 1.5::float8 END AS x,
    n::numeric(9, 2) AS exact, ARRAY[n, NULL] AS list FROM generate_series(1, 300) AS t(n)"""
FAULTS = int(os.environ.get("DRAY_EXTENSION_FAULTS", "1500"))
THREADS = 8
TOO_LONG = 20.0

Direction = Literal["up", "down"]
# Maps bytes of one direction, given with their offset, to the bytes to pass on instead.
Change = Callable[[int, bytes], bytes]


class Mangler(Proxy):
    """Passes bytes on, and changes what one connection sends in one direction."""

    def __init__(self, uri: str) -> None:
        self._parts = urlsplit(uri)
        assert self._parts.hostname is not None and self._parts.port is not None
        self.direction: Direction = "down"
        self.change: Change = lambda at, data: data
        self.bytes = {"up": b"", "down": b""}
        super().__init__((self._parts.hostname, self._parts.port))

    @property
    def uri(self) -> str:
        user = self._parts.netloc.rpartition("@")[0]
        at = f"{user}@127.0.0.1:{self.port}"
        return urlunsplit(self._parts._replace(netloc=at, query="sslmode=disable"))

    def begin(self, direction: Direction, change: Change) -> None:
        self.direction, self.change = direction, change
        self.bytes = {"up": b"", "down": b""}

    def up(self, client: socket.socket, server: socket.socket) -> None:
        self._pass("up", client, server)

    def down(self, server: socket.socket, client: socket.socket) -> None:
        self._pass("down", server, client)

    def _pass(self, direction: Direction, source: socket.socket, target: socket.socket) -> None:
        passed, change = self.bytes, self.change if direction == self.direction else None
        while data := source.recv(65_536):
            at = len(passed[direction])
            passed[direction] += data
            target.sendall(data if change is None else change(at, data))


def flip(place: int, bit: int) -> Change:
    def change(at: int, data: bytes) -> bytes:
        if not at <= place < at + len(data):
            return data
        changed = bytearray(data)
        changed[place - at] ^= 1 << bit
        return bytes(changed)

    return change


def replace(start: int, count: int, times: int) -> Change:
    """Drop a run of bytes (``times`` 0), or send it twice."""

    def change(at: int, data: bytes) -> bytes:
        begin, end = max(start - at, 0), max(start + count - at, 0)
        return data[:begin] + data[begin:end] * times + data[end:]

    return change


def read(uri: str, read_timeout: float) -> pa.Table:
    with dray.connect(uri, timeout=4 * read_timeout, read_timeout=read_timeout) as connection:
        return connection.query(QUERY, extension=True, checksums="on", partitions=1).arrow()


def test_no_fault_gives_another_table(
    start_postgres: Callable[[int], PostgresServer],
) -> None:
    server = start_postgres(VERSIONS[-1])
    seed = int(os.environ.get("DRAY_SEED", time.time_ns()))
    print(f"DRAY_SEED={seed}")
    proxies = [Mangler(server.uri()) for _ in range(THREADS)]
    expected = read(proxies[0].uri, 60.0)
    passed = proxies[0].bytes
    begin = passed["up"].index(b"COPY")
    statement = range(begin, passed["up"].index(b"\0", begin))
    assert expected.num_rows == 300 and min(map(len, passed.values())) > 300
    free, lock = list(proxies), threading.Lock()
    outcomes = {"right": 0, "refused": 0, "another statement": 0}

    def meet(case: int) -> None:
        chance = random.Random(seed * 1_000_003 + case)
        direction: Direction = chance.choice(("up", "down"))
        place = chance.randrange(len(passed[direction]))
        kind = chance.choice(("flip", "flip", "drop", "double"))
        count = chance.choice((1, 4, 100))
        change = (
            flip(place, chance.randrange(8))
            if kind == "flip"
            else replace(place, count, 2 if kind == "double" else 0)
        )
        what = f"DRAY_SEED={seed}, case {case}: {kind} at {place} {direction}, {count} bytes"
        with lock:
            proxy = free.pop()
        proxy.begin(direction, change)
        began = time.monotonic()
        try:
            table = read(proxy.uri, 0.5)
        except dray.InternalError as error:
            raise AssertionError(what) from error
        except dray.Error:
            outcome = "refused"
        else:
            outcome = "right"
            if not table.equals(expected):
                assert direction == "up" and place in statement, f"{what}: {table}"
                outcome = "another statement"
        assert time.monotonic() - began < TOO_LONG, what
        with lock:
            outcomes[outcome] += 1
            free.append(proxy)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(meet, range(FAULTS)))
    for proxy in proxies:
        proxy.close()
    print(outcomes)
    assert outcomes["refused"] > FAULTS // 10
    assert read(server.uri(), 60.0).equals(expected)
