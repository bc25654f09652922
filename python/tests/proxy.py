"""Proxies between a client and a server, over TCP or Unix sockets. They pass bytes on unchanged,
slowly or not at all, or change messages.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

# Maps a message, given as tag and body, to the bytes to send instead.
Change = Callable[[bytes, bytes], bytes]


class Proxy:
    """Passes on what a server sends, with an optional pause after each byte. Without a server it is
    silent.

    It listens on TCP or on a Unix socket, and does not pass on pipes that a client offers there.
    """

    def __init__(
        self,
        upstream: tuple[str, int] | str | None = None,
        pause: float = 0.0,
        listen_at: Path | None = None,
    ) -> None:
        self._upstream, self._pause = upstream, pause
        self._kept: list[socket.socket] = []
        if listen_at is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port = int(self._listener.getsockname()[1])
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(listen_at))
            self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in [self._listener, *self._kept]:
            _shut(each)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._kept.append(client)
            if self._upstream is None:
                continue
            server = _connect(self._upstream)
            self._kept.append(server)
            for work, source, target in ((self.up, client, server), (self.down, server, client)):
                threading.Thread(
                    target=_until_an_end, args=(work, source, target), daemon=True
                ).start()

    def up(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what the client says, until it ends."""
        _forward(client, server)

    def down(self, server: socket.socket, client: socket.socket) -> None:
        """Pass on what the server sends until it ends."""
        _forward(server, client, self._pause)


class PostgresProxy(Proxy):
    """Passes on PostgreSQL's messages over TCP without TLS. The server's messages go through
    ``change``.
    """

    def __init__(self, uri: str) -> None:
        self._parts = urlsplit(uri)
        self.change: Change = message
        assert self._parts.hostname is not None and self._parts.port is not None
        super().__init__((self._parts.hostname, self._parts.port))

    @property
    def uri(self) -> str:
        user = self._parts.netloc.rpartition("@")[0]
        return urlunsplit(
            self._parts._replace(netloc=f"{user}@127.0.0.1:{self.port}", query="sslmode=disable")
        )

    def down(self, server: socket.socket, client: socket.socket) -> None:
        stream = server.makefile("rb")
        while header := stream.read(5):
            body = stream.read(struct.unpack("!I", header[1:])[0] - 4)
            client.sendall(self.change(header[:1], body))


def message(tag: bytes, body: bytes) -> bytes:
    """A message of PostgreSQL's protocol, unchanged."""
    return tag + struct.pack("!I", len(body) + 4) + body


def _connect(address: tuple[str, int] | str) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address)
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    return server


def _forward(source: socket.socket, target: socket.socket, pause: float = 0.0) -> None:
    while data := source.recv(1 if pause else 65_536):
        target.sendall(data)
        if pause:
            time.sleep(pause)


def _until_an_end(
    work: Callable[[socket.socket, socket.socket], None],
    source: socket.socket,
    target: socket.socket,
) -> None:
    """Pass bytes on until one end closes, then close both."""
    try:
        work(source, target)
    except (OSError, struct.error):
        pass
    _shut(source)
    _shut(target)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
