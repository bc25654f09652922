"""Clients of a TCP address on this host move to a Unix socket of the server, or stay."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from server import Server

import dray


@pytest.mark.parametrize(
    ("option", "options", "transport"),
    [
        ("", {}, "a Unix socket"),
        ("?local_socket=true", {}, "a Unix socket"),
        ("?local_socket=false", {}, "TCP"),
        ("", {"local_socket": False}, "TCP"),
    ],
)
def test_transport(server: Server, option: str, options: dict[str, bool], transport: str) -> None:
    uri = f"dray://{server.address}{option}"
    with dray.connect(uri, **options) as connection:
        result = connection.query("SELECT 1 AS one")
        assert result.arrow().to_pydict() == {"one": [1]}
        assert result.stats.path_reason == f"over {transport}"
    assert dray.read(uri, "SELECT 1 AS one", **options).to_pydict() == {"one": [1]}


ANOTHER_USER = """
import os, socket, struct, sys, threading, dray

def frame(stream):
    head = stream.recv(8, socket.MSG_WAITALL)
    return head + stream.recv(int.from_bytes(head[:4], "little"), socket.MSG_WAITALL)

def message(kind, payload):
    return struct.pack("<II", len(payload), kind) + payload

def local(instance):
    return f"\\0dray-{instance.hex()}"

host, port = sys.argv[1].split(":")
with socket.create_connection((host, port)) as greeted:
    greeted.sendall(message(0x01, b"DRAY" + struct.pack("<HHII", 2, 3, 0, 0)))
    instance = frame(greeted)[-16:]

# A server of root, which says where its local socket is.
made_up = os.urandom(16)
public, private = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
private.bind(local(made_up))
private.listen()

def welcome():
    client, _ = public.accept()
    frame(client)
    client.sendall(message(0x81, struct.pack("<HI", 3, 0) + made_up))
    client.recv(1)

threading.Thread(target=welcome, daemon=True).start()

os.seteuid(12345)
with socket.socket(socket.AF_UNIX) as stranger:
    stranger.connect(local(instance))
    assert stranger.recv(1) == b"", "the server talks to another user"
with dray.connect(f"dray://{sys.argv[1]}") as connection:
    result = connection.query("SELECT 1")
    assert list(result) == [(1,)] and result.stats.path_reason == "over TCP"
with dray.connect("dray://127.0.0.1:%d" % public.getsockname()[1]):
    visitor, _ = private.accept()
    assert visitor.recv(1) == b"", "the client talks to another user"
print("strangers")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user(server: Server) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER, server.address],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout == "strangers\n", ran.stderr
