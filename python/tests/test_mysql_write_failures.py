"""Writing into MariaDB that fails on the way, is cancelled, or is watched."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from mysql_server import MariaServer
from mysql_target import ROWS, TABLE, MysqlTarget
from proxy import Proxy

import dray


def failing(batches: int) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        for _ in range(batches):
            yield TABLE.to_batches()[0]
        raise ValueError("the well is dry")

    return pa.RecordBatchReader.from_batches(TABLE.schema, generate())


def endless(delay: float = 0.0) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(delay)
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())


@pytest.mark.parametrize("batches", [0, 1, 1000])
def test_a_source_that_fails(mysql_target: MysqlTarget, batches: int) -> None:
    error = mysql_target.fails(failing(batches), "ValueError: the well is dry")
    assert isinstance(error.__cause__, ValueError)
    mysql_target.write(TABLE)
    mysql_target.fails(failing(batches), "the well is dry", mode="append")
    mysql_target.fails(failing(batches), "the well is dry", mode="replace")
    mysql_target.fails(failing(batches), "the well is dry", mode="create", temporary=True)
    assert mysql_target.rows() == ROWS and mysql_target.tables() == ["t"]


@pytest.mark.parametrize("begin", ["SELECT 1", "BEGIN"])
def test_a_temporary_table_stays_until_it_is_replaced(
    mysql_target: MysqlTarget, begin: str
) -> None:
    target = mysql_target
    target.server.run("CREATE TABLE w.t (other text)", "CREATE TABLE w.u (id int)")
    target.write(TABLE, temporary=True)
    target.dray.query(begin).close()
    target.dray.query("INSERT INTO u VALUES (7)").close()
    with pytest.raises(dray.Error, match="the well is dry"):
        target.write(failing(1), mode="replace", temporary=True)
    assert target.ask("SELECT count(*), sum(id) FROM t") == [(3, 3)]
    target.write(pa.table({"other": [4.5, None]}), mode="replace", temporary=True)
    assert target.ask("SELECT other FROM t") == [(4.5,), (None,)]
    # The user's transaction is as it was.
    target.dray.query("ROLLBACK").close()
    assert target.ask("SELECT * FROM u") == ([] if begin == "BEGIN" else [(7,)])
    target.dray.query("DROP TEMPORARY TABLE t").close()
    assert target.ask("SELECT * FROM t") == [] and target.tables() == ["t", "u"]


@pytest.mark.parametrize("delay", [0.0, 20.0])
@pytest.mark.parametrize("mode", ["create", "append"])
def test_ctrl_c(mysql_target: MysqlTarget, delay: float, mode: str) -> None:
    if mode == "append":
        mysql_target.server.run("CREATE TABLE w.t (id bigint)")
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mysql_target.write(endless(delay), mode=mode)
    assert time.monotonic() - began < 10
    assert mysql_target.ask("SELECT 1") == [(1,)]
    assert mysql_target.tables() == ([] if mode == "create" else ["t"])
    assert mode == "create" or mysql_target.rows() == []


def test_ctrl_c_while_the_server_waits(mysql_target: MysqlTarget) -> None:
    mysql_target.server.run("CREATE TABLE w.t (id bigint)")
    with contextlib.closing(mysql_target.server.connect()) as other:
        other.cursor().execute("LOCK TABLES w.t WRITE")
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            mysql_target.write(endless(), mode="append")
        assert mysql_target.ask("SELECT 1") == [(1,)]
    assert mysql_target.rows() == []


def test_ctrl_c_while_it_is_undone(mysql_target: MysqlTarget) -> None:
    """The second one is for a server that says nothing."""
    target = mysql_target
    target.server.run("CREATE TABLE w.t (id int, name text)")

    class Deaf(Proxy):
        asked = threading.Event()
        over = threading.Event()

        def up(self, client: socket.socket, server: socket.socket) -> None:
            while data := client.recv(65_536):
                if b"ROLLBACK" in data:
                    self.asked.set()
                    self.over.wait()
                    return
                server.sendall(data)

    proxy = Deaf(("127.0.0.1", target.server.port))

    def interrupt() -> None:
        proxy.asked.wait()
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.5)
        signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    try:
        uri = target.server.uri("?ssl-mode=disabled", database="w")
        uri = uri.replace(str(target.server.port), str(proxy.port))
        with dray.connect(uri) as connection:
            interrupting.start()
            with pytest.raises(KeyboardInterrupt):
                connection.write("t", failing(1), mode="append")
    finally:
        proxy.over.set()
        proxy.close()
    interrupting.join()
    assert target.rows() == []


def test_progress(mysql_target: MysqlTarget) -> None:
    seen: list[int] = []
    table = pa.table({"id": range(200_000)})
    mysql_target.write(table, progress=lambda progress: seen.append(progress.rows))
    assert seen == sorted(seen) and seen[-1] == 200_000

    def stop(progress: dray.Progress) -> None:
        if progress.rows:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mysql_target.dray.write("u", endless(), progress=stop)
    assert mysql_target.tables() == ["t"]


@pytest.mark.parametrize("how", ["KILL", "KILL QUERY"])
@pytest.mark.parametrize("mode", ["create", "append"])
def test_killed_by_others(mysql_target: MysqlTarget, how: str, mode: str) -> None:
    if mysql_target.way == "insert" and how == "KILL QUERY":
        # Between two statements it has no effect.
        return
    if mode == "append":
        mysql_target.server.run("CREATE TABLE w.t (id bigint)")
    ((number,),) = mysql_target.ask("SELECT connection_id()")

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(200):
            if i == 20:
                mysql_target.server.run(f"{how} {number}")
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())
    with pytest.raises(dray.Error) as caught:
        mysql_target.write(reader, mode=mode)
    assert caught.value.kind in ("connection", "cancelled"), caught.value
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and mysql_target.tables() != ["t"] * (mode == "append"):
        time.sleep(0.05)
    assert mysql_target.tables() == ([] if mode == "create" else ["t"])
    assert mode == "create" or mysql_target.rows() == []


def test_the_server_ends(mysql_target: MysqlTarget) -> None:
    """A crash in the middle leaves no rows."""
    server = MariaServer(local_infile="ON" if mysql_target.way == "load" else "OFF")
    try:
        server.run("CREATE TABLE t (id bigint)")
        with dray.connect(server.uri()) as connection:
            crash = threading.Timer(0.5, server.kill)
            crash.start()
            with pytest.raises(dray.ConnectionError):
                connection.write("t", endless(), mode="append")
        crash.join()
        server.start()
        assert server.rows("SELECT count(*) FROM t") == [("0",)]
    finally:
        server.stop()


def test_deadlocks(mysql_target: MysqlTarget) -> None:
    """A deadlock undoes the user's whole transaction, and it is known to be over."""
    target = mysql_target
    target.server.run("CREATE TABLE w.t (id int PRIMARY KEY, name text)",
                      "INSERT INTO w.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")  # fmt: skip
    target.dray.query("BEGIN").close()
    target.dray.query("UPDATE t SET name = 'x' WHERE id = 1").close()
    with contextlib.closing(target.server.connect("w")) as other:
        cursor = other.cursor()
        cursor.execute("BEGIN")
        # More changes than ours: ours is the one that is undone.
        cursor.execute("UPDATE t SET name = 'y' WHERE id > 1")
        cursor.execute("INSERT INTO t SELECT seq, 'z' FROM seq_100_to_1000")
        waiting = threading.Thread(
            target=lambda: cursor.execute("UPDATE t SET name = 'y' WHERE id = 1")
        )
        waiting.start()
        time.sleep(0.5)
        with pytest.raises(dray.Error, match="[Dd]eadlock") as caught:
            target.write(pa.table({"id": [2]}), mode="append")
        assert caught.value.sqlstate == "40001"
        waiting.join()
        other.rollback()
    assert target.ask("SELECT name FROM t WHERE id = 1") == [("a",)]
    target.write(pa.table({"id": [4]}), mode="append")
    assert len(target.rows()) == 4


def test_packets_of_1024_bytes(mysql_target: MysqlTarget) -> None:
    server = MariaServer(
        max_allowed_packet=1024, local_infile="ON" if mysql_target.way == "load" else "OFF"
    )
    try:
        with dray.connect(server.uri()) as connection:
            table = pa.table({"id": range(1000), "name": ["x" * (i % 700) for i in range(1000)]})
            assert connection.write("t", table).rows == 1000
            sums = "SELECT count(*), sum(id), sum(length(name)) FROM t"
            lengths = sum(i % 700 for i in range(1000))
            assert server.rows(sums) == [("1000", "499500", str(lengths))]
            large = pa.table({"id": [1, 2], "name": ["a", "x" * 2000]})
            if mysql_target.way == "load":
                connection.write("t", large, mode="append")
            else:
                with pytest.raises(dray.Error, match="row 2: .*max_allowed_packet of 1024"):
                    connection.write("t", large, mode="append")
                assert server.rows(sums) == [("1000", "499500", str(lengths))]
            assert connection.query("SELECT 1").to_arrow().num_rows == 1
    finally:
        server.stop()


def test_a_server_that_keeps_no_warnings(mysql_target: MysqlTarget) -> None:
    mysql_target.dray.query("SET max_error_count = 0").close()
    match = r"keeps none of its warnings \(1\)" if mysql_target.way == "load" else "'b' for column"
    mysql_target.fails(pa.table({"host": ["b"]}), match, types={"host": "inet4"})


@pytest.mark.parametrize("options", ["?compress=zlib", "?ssl-mode=DISABLED"])
def test_other_transports(mysql_target: MysqlTarget, options: str) -> None:
    table = pa.table({"id": range(300_000), "name": [f"name {i}" for i in range(300_000)]})
    with dray.connect(mysql_target.server.uri(options, database="w")) as connection:
        assert connection.write("t", table).rows == 300_000
        assert connection.query("SELECT count(*) FROM t").to_arrow()[0].to_pylist() == [300_000]


def test_slow_sources(mysql_target: MysqlTarget) -> None:
    """The server waits for rows longer than it waits for data and for statements."""
    limits = ("net_read_timeout", "wait_timeout", "idle_transaction_timeout")
    mysql_target.server.run(*(f"SET GLOBAL {name} = 1" for name in limits))
    try:
        with dray.connect(mysql_target.server.uri(database="w")) as connection:

            def slow() -> Iterator[pa.RecordBatch]:
                yield TABLE.to_batches()[0]
                time.sleep(2.5)
                yield TABLE.to_batches()[0]

            connection.write("t", pa.RecordBatchReader.from_batches(TABLE.schema, slow()))
            names = ", ".join(f"@@{name}" for name in limits)
            (settings,) = connection.query(f"SELECT {names}").to_arrow().to_pylist()
            assert list(settings.values()) == [1, 1, 1]
        assert mysql_target.rows() == ROWS * 2
    finally:
        mysql_target.server.run("SET GLOBAL net_read_timeout = 30",
                                "SET GLOBAL wait_timeout = 28800",
                                "SET GLOBAL idle_transaction_timeout = 0")  # fmt: skip


@pytest.mark.parametrize("mode", ["create", "replace"])
@pytest.mark.parametrize("statement", [b"RENAME TABLE", b"DROP TABLE"])
def test_the_last_answer_is_lost(mysql_target: MysqlTarget, mode: str, statement: bytes) -> None:
    """The table has its name. The error says so, and nothing else is left."""
    target = mysql_target
    if mode == "create" and statement == b"DROP TABLE":
        return
    if mode == "replace":
        target.server.run("CREATE TABLE w.t (old int)")

    class Cut(Proxy):
        silent: socket.socket | None = None

        def up(self, client: socket.socket, server: socket.socket) -> None:
            while data := client.recv(65_536):
                is_last = statement in data and self.silent is None
                if is_last:
                    self.silent = server
                server.sendall(data)
                if is_last:
                    time.sleep(1)
                    client.shutdown(socket.SHUT_RDWR)

        def down(self, server: socket.socket, client: socket.socket) -> None:
            while data := server.recv(65_536):
                if server is not self.silent:
                    client.sendall(data)

    proxy = Cut(("127.0.0.1", target.server.port))
    try:
        uri = target.server.uri("?ssl-mode=disabled", database="w")
        uri = uri.replace(str(target.server.port), str(proxy.port))
        with dray.connect(uri) as connection:
            with pytest.raises(dray.ConnectionError) as caught:
                connection.write("t", TABLE, mode=mode)
    finally:
        proxy.close()
    assert "all rows are there" in (caught.value.hint or ""), caught.value
    assert target.rows() == ROWS and target.tables() == ["t"]


@pytest.mark.parametrize("mode", ["create", "replace"])
def test_a_table_that_gets_its_name_late(mysql_target: MysqlTarget, mode: str) -> None:
    """By a statement of a connection that broke, after the table was looked for."""
    target = mysql_target
    if mode == "replace":
        target.server.run("CREATE TABLE w.t (old int)")

    class Late(Proxy):
        held: tuple[socket.socket, bytes] | None = None
        renamed = threading.Event()
        over = threading.Event()

        def up(self, client: socket.socket, server: socket.socket) -> None:
            while data := client.recv(65_536):
                if b"RENAME TABLE" in data and self.held is None:
                    self.held = (server, data)
                    client.shutdown(socket.SHUT_RDWR)
                    self.over.wait()
                    return
                if b"DROP TABLE" in data and self.held is not None and not self.renamed.is_set():
                    renaming, statement = self.held
                    renaming.sendall(statement)
                    self.renamed.wait()
                server.sendall(data)

        def down(self, server: socket.socket, client: socket.socket) -> None:
            while data := server.recv(65_536):
                if self.held is not None and server is self.held[0]:
                    self.renamed.set()
                else:
                    client.sendall(data)

    proxy = Late(("127.0.0.1", target.server.port))
    try:
        uri = target.server.uri("?ssl-mode=disabled", database="w")
        uri = uri.replace(str(target.server.port), str(proxy.port))
        with dray.connect(uri) as connection:
            with pytest.raises(dray.ConnectionError) as caught:
                connection.write("t", TABLE, mode=mode)
    finally:
        proxy.over.set()
        proxy.close()
    assert "all rows are there" in (caught.value.hint or ""), caught.value
    assert target.rows() == ROWS and target.tables() == ["t"]


def test_read_only_users_and_transactions(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.server.run("CREATE TABLE w.t (id int, name text)", "DROP USER IF EXISTS reader",
                      "CREATE USER reader", "GRANT SELECT ON w.* TO reader")  # fmt: skip
    with dray.connect(f"mysql://reader@127.0.0.1:{target.server.port}/w") as other:
        for mode in ("append", "replace"):
            with pytest.raises(dray.Error, match="denied") as caught:
                other.write("t", TABLE, mode=mode)
            # Nothing was created that could be left.
            assert caught.value.hint is None, caught.value
    target.dray.query("SET SESSION TRANSACTION READ ONLY").close()
    target.fails(TABLE, "READ ONLY", mode="append")


def test_memory_is_bounded(mysql_target: MysqlTarget) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    # 128 MB in all, so that a quarter of it would be too much.
    def generate() -> Iterator[pa.RecordBatch]:
        for _ in range(64):
            peaks.append(resident())
            yield pa.record_batch({"t": ["x" * 10_000] * 200})

    peaks: list[int] = []
    reader = pa.RecordBatchReader.from_batches(pa.schema([("t", pa.string())]), generate())
    assert mysql_target.write(reader).rows == 12_800
    assert max(peaks) - peaks[3] < 32 << 20


def test_files_that_a_server_may_not_have(mysql_target: MysqlTarget, tmp_path: Path) -> None:
    """A statement of the user's that asks for a file gets an empty one."""
    if mysql_target.way == "insert":
        return
    (tmp_path / "secret").write_text("1\n")
    mysql_target.server.run("CREATE TABLE w.t (id int)")
    for name in (tmp_path / "secret", "dray", "/etc/passwd"):
        with pytest.raises(dray.UsageError, match="asks for a file of this client's"):
            mysql_target.dray.query(f"LOAD DATA LOCAL INFILE '{name}' INTO TABLE t").close()
        assert mysql_target.ask("SELECT count(*) FROM t") == [(0,)]
