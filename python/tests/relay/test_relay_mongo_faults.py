"""MongoDB as a source: servers that fail, and clients that stop."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mongo_server import MongoServer
from postgres_server import free_port
from proxy import Proxy
from relay_server import Relay, relay, sources, wait_until
from server import binary

import dray

COUNT = 300_000
ALL = '{"find": "wide"}'


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    server = MongoServer()
    server.fill("wide", ({"_id": i, "t": "x" * 200} for i in range(COUNT)))
    yield server
    server.stop()


class Recorder(Proxy):
    """Keeps what clients say."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.said: list[bytes] = []
        super().__init__(upstream)

    def up(self, client: socket.socket, server: socket.socket) -> None:
        while data := client.recv(65_536):
            self.said.append(data)
            server.sendall(data)


class Silent(Recorder):
    """Answers nothing once a client has said ``find``."""

    def down(self, server: socket.socket, client: socket.socket) -> None:
        while data := server.recv(65_536):
            if any(b"find\0" in said for said in self.said):
                time.sleep(30)
                return
            client.sendall(data)


class CutOff(Proxy):
    """Ends each connection after some bytes of the server's."""

    def down(self, server: socket.socket, client: socket.socket) -> None:
        left = 5_000_000
        while left > 0 and (data := server.recv(min(left, 65_536))):
            client.sendall(data)
            left -= len(data)


@contextlib.contextmanager
def behind(proxy: Proxy, mongo: MongoServer) -> Iterator[Relay]:
    try:
        with relay(*sources(shop=mongo.uri(port=proxy.port))) as server:
            yield server
    finally:
        proxy.close()


def test_cancelling(mongo: MongoServer) -> None:
    recorder = Recorder(("127.0.0.1", mongo.port))
    with behind(recorder, mongo) as server, dray.connect(server.uri("shop")) as client:
        result = client.query(ALL, batch_rows=1000)
        next(result.batches())
        result.cancel()
        wait_until(lambda: any(b"killCursors" in said for said in recorder.said))
        assert client.query('{"find": "wide", "limit": 2}').arrow().num_rows == 2


def test_a_client_that_stops_while_the_server_is_silent(mongo: MongoServer) -> None:
    silent = Silent(("127.0.0.1", mongo.port))
    with behind(silent, mongo) as server:
        command = [str(binary()), "query", server.uri("shop"), ALL]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: any(b"find\0" in said for said in silent.said))
        client.send_signal(signal.SIGINT)
        started = time.monotonic()
        client.communicate(timeout=10)
        assert client.returncode == 130 and time.monotonic() - started < 5


def test_a_server_that_is_cut_off(mongo: MongoServer) -> None:
    """Never a short result."""
    with behind(CutOff(("127.0.0.1", mongo.port)), mongo) as server:
        with dray.connect(server.uri("shop")) as client:
            with pytest.raises(dray.ConnectionError, match="the source shop: the connection broke"):
                client.query(ALL).arrow()


def test_a_server_that_is_killed() -> None:
    own = MongoServer()
    try:
        own.fill("wide", ({"_id": i, "t": "x" * 200} for i in range(COUNT)))
        uri = own.uri("?serverSelectionTimeoutMS=2000")
        with relay(*sources(own=uri)) as server, dray.connect(server.uri("own")) as client:
            batches = client.query(ALL, batch_rows=1000).batches()
            rows = next(batches).num_rows
            own.process.kill()
            own.process.wait()
            with pytest.raises(dray.ConnectionError, match="the source own: "):
                for batch in batches:
                    rows += batch.num_rows
            assert rows < COUNT
            with pytest.raises(dray.ConnectionError, match="can't connect to the source own: "):
                client.query(ALL).arrow()
    finally:
        own.stop()


def test_a_server_that_is_down() -> None:
    password = "s3cr3t"
    uri = f"mongodb://me:{password}@127.0.0.1:{free_port()}/shop"
    with relay(*sources(shop=uri + "?serverSelectionTimeoutMS=1000")) as server:
        with dray.connect(server.uri("shop")) as client:
            started = time.monotonic()
            with pytest.raises(dray.ConnectionError, match="can't connect to the source") as caught:
                client.query(ALL).arrow()
            assert time.monotonic() - started < 8 and "Connection refused" in str(caught.value)
            assert password not in str(caught.value) and password not in server.log()


def test_a_login_that_fails(mongo: MongoServer) -> None:
    """The server knows no users, so that any login fails."""
    password = "s3cr3t"
    uri = f"mongodb://me:{password}@127.0.0.1:{mongo.port}/shop?serverSelectionTimeoutMS=2000"
    with relay(*sources(shop=uri)) as server, dray.connect(server.uri("shop")) as client:
        with pytest.raises(dray.ConnectionError, match="can't connect to the source") as caught:
            client.query(ALL).arrow()
        assert password not in str(caught.value) and password not in server.log()


@pytest.mark.parametrize(
    ("uri", "what"),
    [
        ("mongodb+srv://me:s3cr3t@example.com/shop", "asks DNS for the hosts, which Dray does not"),
        ("mongodb://127.0.0.1", "names no database"),
        ("mongodb://me:s3cr3t/@127.0.0.1/shop", "has not a uri that MongoDB's driver reads"),
        ("mongodb://127.0.0.1/shop?nope=1&readPreference=some", "the source shop"),
    ],
)
def test_uris_that_are_refused(uri: str, what: str, tmp_path: Path) -> None:
    command = [binary(), "serve", "--unix", str(tmp_path / "s"), "--source", f"shop={uri}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ran.returncode != 0 and what in ran.stderr, ran.stderr
    assert "s3cr3t" not in ran.stderr + ran.stdout


def test_options_of_the_uri(mongo: MongoServer) -> None:
    uri = mongo.uri("?readPreference=nearest&readConcernLevel=local&appName=test")
    recorder = Recorder(("127.0.0.1", mongo.port))
    uri = uri.replace(f":{mongo.port}", f":{recorder.port}")
    try:
        with relay(*sources(shop=uri)) as server, dray.connect(server.uri("shop")) as client:
            assert client.query('{"find": "wide", "limit": 3}').arrow().num_rows == 3
    finally:
        recorder.close()
    said = b"".join(recorder.said)
    assert b"readConcern\0" in said and b"level\0\6\0\0\0local\0" in said
    assert b"application\0" in said and b"name\0\5\0\0\0test\0" in said


def test_two_clients(mongo: MongoServer) -> None:
    with relay(*sources(shop=mongo.uri())) as server:
        with dray.connect(server.uri("shop")) as one, dray.connect(server.uri("shop")) as other:
            first = one.query(ALL, batch_rows=1000).batches()
            second = other.query(ALL, batch_rows=1000).batches()
            counts = [0, 0]
            streams: list[Iterator[Any]] = [first, second]
            while streams:
                for batches in list(streams):
                    batch = next(batches, None)
                    if batch is None:
                        streams.remove(batches)
                    else:
                        counts[batches is second] += batch.num_rows
            assert counts == [COUNT, COUNT]


def test_a_slow_reader_holds_the_server_back(mongo: MongoServer) -> None:
    with relay(*sources(shop=mongo.uri())) as server:
        with dray.connect(f"{server.uri('shop')}?local_socket=false") as client:
            batches = client.query(json.dumps({"find": "wide"})).batches()
            rows = next(batches).num_rows
            time.sleep(2)
            before = server.memory()
            time.sleep(2)
            assert server.memory() - before < 32 << 20
            assert rows + sum(batch.num_rows for batch in batches) == COUNT
