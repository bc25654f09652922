"""Sources that fail, clients that wait, and clients that vanish."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from proxy import Proxy
from relay_server import FOREVER, SILENT, Relay, one, relay, runs, sources, wait_until
from server import binary

import dray


def test_a_source_that_is_down_and_comes_back(mariadb: MariaServer) -> None:
    own = MariaServer()
    try:
        with relay(*sources(own=own.uri())) as server, dray.connect(server.uri("own")) as client:
            assert one(client, "SELECT 1") == 1
            result = client.query(FOREVER["maria"], batch_rows=1000)
            batches = result.batches()
            next(batches)
            own.kill()
            with pytest.raises(dray.ConnectionError, match="the source own: .*"):
                for _ in batches:
                    pass
            with pytest.raises(dray.ConnectionError, match="can't connect to the source own: "):
                client.query("SELECT 1").arrow()
            own.start()
            assert one(client, "SELECT 2") == 2
            assert "can't connect to the source" in server.log()
    finally:
        own.stop()


def test_a_session_that_is_ended(postgres: PostgresServer, server: Relay) -> None:
    """In mid-result, and between statements."""
    with dray.connect(server.uri("pg")) as client:
        pid = one(client, "SELECT pg_backend_pid()")
        batches = client.query(FOREVER["pg"], batch_rows=1000).batches()
        next(batches)
        postgres.run(f"SELECT pg_terminate_backend({pid})")
        # The server says nothing if it ends the session while it waits to send rows.
        with pytest.raises(dray.ConnectionError, match="terminating|closed the connection before"):
            for _ in batches:
                pass
        other = one(client, "SELECT pg_backend_pid()")
        assert other != pid
        postgres.run(f"SELECT pg_terminate_backend({other})")
        with pytest.raises(dray.ConnectionError, match="the source pg: "):
            client.query("SELECT 1").arrow()
        assert one(client, "SELECT 1") == 1


class CutOff(Proxy):
    """Ends each connection after 300,000 bytes of the server's."""

    def down(self, server: socket.socket, client: socket.socket) -> None:
        left = 300_000
        while left > 0 and (data := server.recv(min(left, 65_536))):
            client.sendall(data)
            left -= len(data)


def test_a_source_that_is_cut_off(postgres: PostgresServer) -> None:
    """Its connection ends without a word in mid-result: never a short result."""
    proxy = CutOff(("127.0.0.1", postgres.port))
    uri = postgres.uri().replace(f":{postgres.port}", f":{proxy.port}")
    with relay(*sources(pg=uri)) as server, dray.connect(server.uri("pg")) as client:
        assert one(client, "SELECT 1") == 1
        with pytest.raises(dray.ConnectionError, match="the source pg: "):
            client.query("SELECT i FROM generate_series(1, 1000000) i").arrow()
    proxy.close()


def test_cancelling(
    postgres: PostgresServer,
    maria: MariaServer,
    server: Relay,
    connection: dray.Connection,
    name: str,
) -> None:
    result = connection.query(FOREVER[name], batch_rows=1000)
    next(result.batches())
    assert runs(postgres, maria, name, FOREVER[name][:40])
    result.cancel()
    wait_until(lambda: not runs(postgres, maria, name, FOREVER[name][:40]))
    assert one(connection, "SELECT 3") == 3
    # Before its first row.
    command = [str(binary()), "query", server.uri(name), SILENT[name]]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: runs(postgres, maria, name, SILENT[name]))
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=10)
    assert client.returncode == 130
    wait_until(lambda: not runs(postgres, maria, name, SILENT[name]))


@pytest.mark.parametrize("statements", [FOREVER, SILENT], ids=["rows", "silent"])
def test_a_client_that_vanishes(
    postgres: PostgresServer,
    maria: MariaServer,
    server: Relay,
    name: str,
    statements: dict[str, str],
) -> None:
    code = "import dray, sys; dray.connect(sys.argv[1]).query(sys.argv[2]).arrow()"
    sql = statements[name]
    client = subprocess.Popen([sys.executable, "-c", code, server.uri(name), sql])
    try:
        wait_until(lambda: runs(postgres, maria, name, sql[:40]))
    finally:
        client.kill()
        client.wait()
    wait_until(lambda: not runs(postgres, maria, name, sql[:40]))


def test_a_slow_reader_holds_the_source_back(
    postgres: PostgresServer, maria: MariaServer, name: str
) -> None:
    """Memory stays flat at the server, however large the result is."""
    wide = {
        "pg": "SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 2000000) i",
        "maria": "SELECT seq AS i, repeat('x', 1000) AS t FROM seq_1_to_2000000",
    }
    uris = sources(pg=postgres.uri(), maria=maria.uri())
    with relay(*uris) as server, dray.connect(f"{server.uri(name)}?local_socket=false") as client:
        before = server.memory()
        batches = client.query(wide[name]).batches()
        rows = next(batches).num_rows
        time.sleep(4)
        held = server.memory() - before
        assert held < 200 << 20, held
        rows += sum(batch.num_rows for batch in batches)
        assert rows == 2_000_000
        assert server.memory() - before < 250 << 20


def test_many_clients_of_a_small_pool(postgres: PostgresServer) -> None:
    with relay(*sources(pg=postgres.uri()), "--source-connections", "pg=2") as server:
        most, done, failed = 0, [], []
        sql = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE application_name = 'dray' AND state = 'active'"
        )

        def run(i: int) -> None:
            try:
                with dray.connect(server.uri("pg")) as client:
                    client.query("SELECT pg_sleep(0.05)").arrow()
                    done.append(one(client, f"SELECT {i}"))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=run, args=[i]) for i in range(20)]
        for thread in threads:
            thread.start()
        with postgres.connect() as oracle:
            while any(thread.is_alive() for thread in threads):
                row = oracle.execute(sql).fetchone()
                assert row is not None
                most = max(most, row[0])
        assert not failed and sorted(done) == list(range(20))
        assert 1 <= most <= 2


def test_idle_clients_give_way(postgres: PostgresServer) -> None:
    arguments = ["--source-connections", "pg=1", "--stall-timeout-contended", "1"]
    with relay(*sources(pg=postgres.uri()), *arguments) as server:
        with dray.connect(server.uri("pg")) as idle, dray.connect(server.uri("pg")) as other:
            assert one(idle, "SELECT 1") == 1
            # Nobody waits, so nobody has to go.
            time.sleep(2)
            assert one(idle, "SELECT 1") == 1
            assert one(other, "SELECT 2") == 2
            with pytest.raises(dray.ConnectionError, match="idle for more than 1s") as caught:
                idle.query("SELECT 1").arrow()
            assert caught.value.sqlstate == "57P05"


def test_a_wait_that_takes_too_long(postgres: PostgresServer) -> None:
    arguments = ["--source-connections", "pg=1", "--wait-timeout", "1"]
    with relay(*sources(pg=postgres.uri()), *arguments) as server:
        with dray.connect(server.uri("pg")) as busy, dray.connect(server.uri("pg")) as other:
            batches = busy.query(FOREVER["pg"], batch_rows=1000).batches()
            next(batches)
            with pytest.raises(dray.ResourcesError, match="--source-connections") as caught:
                other.query("SELECT 1").arrow()
            assert caught.value.sqlstate == "53300"


def test_a_server_of_an_older_version(name: str) -> None:
    """It refuses the hello before it looks at the name."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                head = client.recv(8, socket.MSG_WAITALL)
                hello = client.recv(int.from_bytes(head[:4], "little"), socket.MSG_WAITALL)
                assert hello[4:6] == b"\6\0"
                text = b"the client speaks versions 6 to 6, this server 2 to 5"
                body = b"\0\0\0\0\1" + (5).to_bytes(4, "little") + b"08P01"
                body += len(text).to_bytes(4, "little") + text + bytes(4)
                client.sendall(len(body).to_bytes(4, "little") + b"\x86\0\0\0" + body)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(dray.ProtocolError, match="versions 6 to 6"):
            dray.connect(f"dray://127.0.0.1:{port}/{name}")
        thread.join(10)
