"""Servers that are silent or slow: deadlines, interrupts, and connections after a fork."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import postgres_client
import pytest
from postgres_server import VERSIONS, EXTENSION_CHOICES, PostgresServer, server_user
from client_process import Client, interrupt_until_they_end, python
from proxy import Proxy
from server import Server, binary

import dray

FOREVER = "SELECT * FROM generate_series(1, 1000000000000)"
SILENT = "SELECT count(*) FROM generate_series(1, 1000000000000)"
# A cancel may take two seconds, and this machine may be busy.
STOPPED_IN = 5.0
AT_ONCE = 1.5


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Stops all processes of a server for the duration of the block."""
    processes: list[int] = []
    try:
        # A stopped process starts no others.
        for pid in [process, None, None]:
            found = (
                [pid]
                if pid
                else [child for parent in list(processes) for child in children(parent)]
            )
            for each in found:
                if each not in processes:
                    os.kill(each, signal.SIGSTOP)
                    processes.append(each)
        yield
    finally:
        for pid in processes:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


def children(pid: int) -> list[int]:
    return [
        int(word)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for word in (task / "children").read_text().split()
    ]


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def servers(plain: Server, certificates: dict[str, Path]) -> Iterator[dict[str, tuple[int, str]]]:
    """The process and uri of a Dray server, for each way to connect."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="dray"))
        stack.callback(shutil.rmtree, folder)
        keys = ("--tls-cert", str(certificates["chain"]), "--tls-key", str(certificates["key"]))
        tls = Server(folder, *keys)
        stack.callback(tls.stop)
        proxied = folder / "proxy.sock"
        proxy = Proxy(plain.unix.removeprefix("dray+unix://"), listen_at=proxied)
        stack.callback(proxy.close)
        tls_uri = tls.tcp.replace("127.0.0.1", "localhost") + f"?ca={certificates['authority']}"
        yield {
            "tcp": (plain.process.pid, plain.tcp),
            "unix": (plain.process.pid, plain.unix),
            "unix without pipes": (plain.process.pid, f"dray+unix://{proxied}"),
            "tls": (tls.process.pid, tls_uri),
        }


@pytest.fixture(scope="module")
def own_postgres(
    start_postgres: Callable[[int], PostgresServer], certificates: dict[str, Path]
) -> Iterator[PostgresServer]:
    """A server with TLS and the extension, which tests may stop."""
    folder = Path(tempfile.mkdtemp(prefix="dray-tls-"))
    for name in ("chain", "key"):
        shutil.copy(certificates[name], folder / name)
        (folder / name).chmod(0o600)
    user = server_user(folder)
    for name in ("chain", "key"):
        if user:
            os.chown(folder / name, user["user"], user["group"])
    settings = {"ssl": "on", "ssl_cert_file": folder / "chain", "ssl_key_file": folder / "key"}
    server = PostgresServer(start_postgres(VERSIONS[0]).installation, settings)
    if True in EXTENSION_CHOICES:
        server.run("CREATE EXTENSION dray")
    yield server
    server.stop()
    shutil.rmtree(folder)


def interrupt_all(process: int, targets: list[tuple[str, bool]]) -> None:
    """Clients in every state talk to a stopped server. One interrupt, two interrupts or a timeout
    must end them in time.
    """
    once, twice, timed = [], [], []
    for uri, extension in targets:
        of = postgres_client if uri.startswith("postgresql") else sys.modules[__name__]
        # A server that many clients ask at once is silent for a while, too.
        for clients, timeout in ((once, ""), (twice, ""), (timed, "2")):
            clients.append(python(uri, of.SILENT, "waiting", timeout, extension))
            clients.append(python(uri, of.FOREVER, "reading", timeout, extension))
    connecting = [python(uri, SILENT, "connecting") for uri, _ in targets]
    late = [python(uri, SILENT, "connecting", "1") for uri, _ in targets]
    everybody = [*once, *twice, *timed, *connecting, *late]
    try:
        for client in everybody:
            client.wait_until("ready")
        with stopped(process):
            for client in everybody:
                client.go()
            began = time.monotonic()
            for client in everybody:
                client.follow()
            for client in [*timed, *late]:
                assert client.seconds_after(began) < 2 + STOPPED_IN, client.command[3:]
                assert "gave up" in client.out, (client.command[3:], client.out)
            for client in timed:
                assert "read_timeout" in client.out, (client.command[3:], client.out)
            assert all(client.process.poll() is None for client in [*once, *twice, *connecting])
            began = time.monotonic()
            for client in [*once, *twice, *connecting]:
                client.interrupt()
            time.sleep(0.3)
            interrupt_until_they_end(twice)
            for client in [*once, *twice, *connecting]:
                assert client.seconds_after(began) < STOPPED_IN, client.command[3:]
                assert client.out.endswith("interrupted\n"), (client.command[3:], client.out)
            end_before([*twice, *connecting], once)
    finally:
        for client in everybody:
            client.process.kill()


def end_before(clients: list[Client], cancelling: list[Client]) -> None:
    """Clients that end at once do not wait for an answer to a cancel, as others do."""
    waited = min(client.ended for client in cancelling)
    for client in clients:
        assert client.ended < waited, (client.command[3:], client.ended - waited)


@pytest.mark.parametrize("transport", ["tcp", "unix", "unix without pipes", "tls"])
def test_a_stopped_server(servers: dict[str, tuple[int, str]], transport: str) -> None:
    process, uri = servers[transport]
    interrupt_all(process, [(uri, False)])
    # The server continues to serve.
    assert dray.read(uri, "SELECT 1 AS one", timeout=30).num_rows == 1


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_stopped_postgres(own_postgres: PostgresServer, tls: bool) -> None:
    uri = own_postgres.uri(options="?sslmode=require" if tls else "?sslmode=disable")
    interrupt_all(own_postgres.process.pid, [(uri, choice) for choice in EXTENSION_CHOICES])
    assert dray.read(uri, "SELECT 1 AS one", timeout=30).num_rows == 1


def test_the_program_at_a_stopped_server(plain: Server) -> None:
    before = plain.counter("connections_total")
    clients = [
        Client([str(binary()), "query", plain.tcp, SILENT, *more])
        for more in ([], [], ["--read-timeout", "2"])
    ]
    plain.wait_for("connections_total", before + len(clients))
    # Nothing tells when a statement begins, a moment after its client has connected.
    time.sleep(1)
    with stopped(plain.process.pid):
        began = time.monotonic()
        once, twice, timed = clients
        late = Client([str(binary()), "query", plain.tcp, SILENT, "--timeout", "1"])
        for client in [*clients, late]:
            client.follow()
        for client in (late, timed):
            assert client.seconds_after(began) < 2 + STOPPED_IN, client.command[3:]
        assert late.process.returncode == 3, late.out
        assert "read_timeout" in timed.out, timed.out
        began = time.monotonic()
        for client in (once, twice):
            client.interrupt()
        time.sleep(0.2)
        interrupt_until_they_end([twice])
        for client in (once, twice):
            assert client.seconds_after(began) < STOPPED_IN, client.command[3:]
            assert client.process.returncode == 130, client.out
        end_before([twice], [once])


def connect_in_time(uris: list[str]) -> None:
    """Each connection fails by its timeout of one second, and not later."""
    taken: dict[str, float] = {}

    def connect(uri: str) -> None:
        began = time.monotonic()
        try:
            dray.connect(uri, timeout=1).close()
        except dray.ConnectionError:
            taken[uri] = time.monotonic() - began

    threads = [threading.Thread(target=connect, args=(uri,)) for uri in uris]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert taken.keys() == set(uris)
    assert all(0.9 < seconds < 1 + AT_ONCE for seconds in taken.values()), taken


def test_a_silent_peer(tmp_path: Path) -> None:
    peer = Proxy()
    # A Unix socket with a full backlog that nobody accepts from.
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    full = socket.socket(socket.AF_UNIX)
    full.bind(str(folder / "full.sock"))
    full.listen(0)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for each in waiting:
        each.setblocking(False)
        try:
            each.connect(str(folder / "full.sock"))
        except BlockingIOError:
            pass
    address = f"127.0.0.1:{peer.port}"
    try:
        connect_in_time(
            [
                f"dray://{address}",
                f"dray://localhost:{peer.port}",
                f"drays://localhost:{peer.port}",
                f"dray+unix://{folder}/full.sock",
                f"postgresql://u@{address}/d?sslmode=disable",
                f"postgresql://u@{address}/d?sslmode=require",
                f"postgresql://u@{address}/d",
                f"postgresql://u@{address},{address},localhost:{peer.port}/d?target_session_attrs=prefer-standby",
            ]
        )
    finally:
        peer.close()
        for each in [full, *waiting]:
            each.close()
        shutil.rmtree(folder)


def test_a_trickling_peer(
    servers: dict[str, tuple[int, str]], certificates: dict[str, Path], own_postgres: PostgresServer
) -> None:
    port = {
        transport: int(servers[transport][1].split("?")[0].rsplit(":")[-1])
        for transport in ("tcp", "tls")
    }
    upstreams = [port["tcp"], port["tls"], own_postgres.port]
    peers = [Proxy(("127.0.0.1", upstream), pause=0.1) for upstream in upstreams]
    plain, tls, postgres = (peer.port for peer in peers)
    try:
        connect_in_time(
            [
                f"dray://127.0.0.1:{plain}",
                f"drays://localhost:{tls}?ca={certificates['authority']}",
                f"postgresql://postgres@127.0.0.1:{postgres}/postgres?sslmode=disable",
                f"postgresql://postgres@127.0.0.1:{postgres}/postgres?sslmode=require",
            ]
        )
    finally:
        for peer in peers:
            peer.close()
    # A slow server is not silent.
    peer = Proxy(("127.0.0.1", port["tcp"]), pause=0.02)
    uri = f"dray://127.0.0.1:{peer.port}?local_socket=false"
    with dray.connect(uri, timeout=30, read_timeout=2) as connection:
        began = time.monotonic()
        assert connection.query("SELECT 1 AS one").arrow().to_pydict() == {"one": [1]}
        assert time.monotonic() - began > 2
    peer.close()


@pytest.mark.parametrize(
    "timeouts", [{"timeout": 0}, {"timeout": -1}, {"read_timeout": 0}, {"timeout": float("nan")}]
)
def test_timeouts_that_are_none(timeouts: dict[str, float]) -> None:
    with pytest.raises(dray.UsageError, match="expected seconds above 0"):
        dray.connect("dray://localhost", **timeouts)


@pytest.mark.parametrize(
    "uri", ["dray://localhost?read_timeout=0", "postgresql://localhost?read_timeout=soon"]
)
def test_read_timeouts_in_a_uri(uri: str) -> None:
    with pytest.raises(dray.UsageError, match="read_timeout"):
        dray.connect(uri)


def sockets() -> dict[str, int]:
    """The sockets of this process, by name, with their descriptors."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[os.readlink(path)] = int(path.name)
        except FileNotFoundError:
            pass
    return {name: descriptor for name, descriptor in found.items() if name.startswith("socket:")}


def test_keepalive(servers: dict[str, tuple[int, str]], own_postgres: PostgresServer) -> None:
    tcp = servers["tcp"][1]
    postgres = own_postgres.uri(options="?sslmode=disable")
    cases = [
        (tcp, (1, 30, 10, 3, 60_000)),
        (postgres, (1, 30, 10, 3, 60_000)),
        (
            f"{postgres}&keepalives_idle=7&keepalives_interval=8&keepalives_count=9"
            "&tcp_user_timeout=5000",
            (1, 7, 8, 9, 5000),
        ),
        (f"{postgres}&keepalives=0&tcp_user_timeout=0", (0, None, None, None, 0)),
    ]
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    for uri, expected in cases:
        before = sockets()
        with dray.connect(uri):
            ((_, descriptor),) = sockets().items() - before.items()
            with socket.socket(fileno=os.dup(descriptor)) as copy:
                found = (copy.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),)
                found += tuple(copy.getsockopt(socket.IPPROTO_TCP, name) for name in names)
        assert all(
            want is None or have == want for have, want in zip(found, expected, strict=True)
        ), (uri, found)


FORK = """
import os, sys, dray
uri, sql, extension = sys.argv[1:]
options = {"extension": extension == "True"} if uri.startswith("postgresql") else {}
connection = dray.connect(uri)
idle = dray.connect(uri)
begun = dray.connect(uri).query(sql, **options)
result = connection.query(sql, batch_rows=1000, **options)
rows = result.rows()
first = next(rows)
child = os.fork()
if child == 0:
    for work in (
        lambda: idle.query("SELECT 1"),
        lambda: next(begun.batches()),
        lambda: list(rows)[9_999_999],
    ):
        try:
            work()
        except dray.UsageError as error:
            assert "fork" in str(error) and "connect again" in str(error.hint), error
        else:
            os._exit(1)
    result.close()
    connection.close()
    idle.close()
    del result, rows, connection, idle, begun
    fresh = dray.connect(uri)
    assert fresh.query("SELECT 1 AS one").arrow().num_rows == 1
    fresh.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child could use it, or said something else"
assert 1 + sum(1 for _ in rows) == 200_000
assert begun.arrow().num_rows == 200_000
assert idle.query("SELECT 1 AS one").arrow().num_rows == 1
print("whole")
"""


@pytest.mark.parametrize("transport", ["tcp", "unix", "tls", "postgres", "extension", "parallel"])
def test_a_fork(
    servers: dict[str, tuple[int, str]], request: pytest.FixtureRequest, transport: str
) -> None:
    sql = "SELECT n, repeat('x', 100) FROM generate_series(1, 200000) AS t(n)"
    if transport in servers:
        uri = servers[transport][1]
    else:
        own_postgres: PostgresServer = request.getfixturevalue("own_postgres")
        uri = own_postgres.uri(options="?sslmode=prefer")
    if transport == "parallel":
        own_postgres.run(
            "CREATE TABLE IF NOT EXISTS forked AS SELECT n, repeat('x', 100) "
            "FROM generate_series(1, 200000) AS t(n)"
        )
        sql = "SELECT * FROM forked"
    ran = subprocess.run(
        [sys.executable, "-c", FORK, uri, sql, str(transport == "extension")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout == "whole\n", ran.stderr
