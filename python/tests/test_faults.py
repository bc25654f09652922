"""Failures by kind, interrupts, broken servers, and threads."""

from __future__ import annotations

import builtins
import math
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import data
import pyarrow as pa
import pytest
from server import Server

import dray

PACKAGE = str(Path(dray.__file__).parent)
FOREVER = "SELECT * FROM generate_series(1, 1000000000000)"
SILENT = "SELECT count(*) FROM generate_series(1, 1000000000000)"


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that the test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("sql", "kind", "sqlstate"),
    [
        ("SELEC 1", dray.QueryError, "42"),
        ("SELECT * FROM nowhere", dray.QueryError, "42"),
        ("SELECT nothing FROM numbers", dray.QueryError, "42"),
        ("SELECT 1 / (id - 150000) FROM numbers", dray.ExecutionError, "22"),
        ("SELECT CAST(text AS INT) FROM numbers", dray.ExecutionError, "22"),
    ],
)
def test_statements_that_fail(uri: str, sql: str, kind: type[dray.Error], sqlstate: str) -> None:
    with dray.connect(uri) as connection:
        with pytest.raises(kind) as caught:
            connection.query(sql).arrow()
        error = caught.value
        assert type(error) is kind and isinstance(error, dray.Error)
        assert error.kind == kind.kind and error.message and "\n" not in error.message
        assert error.sqlstate is not None
        assert connection.query("SELECT 1").arrow().num_rows == 1


def test_tls(certificates: dict[str, Path]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(
        folder, "--tls-cert", str(certificates["chain"]), "--tls-key", str(certificates["key"])
    )
    try:
        uri = server.tcp.replace("127.0.0.1", "localhost")
        assert uri.startswith("drays://")
        with dray.connect(uri, ca=str(certificates["authority"])) as connection:
            assert connection.query("SELECT 1 AS one").arrow().to_pydict() == {"one": [1]}
        for wrong in ({}, {"ca": str(certificates["stranger"])}):
            with pytest.raises(dray.AuthenticationError, match="certificate"):
                dray.connect(uri, **wrong)
        with pytest.raises(dray.AuthenticationError):
            dray.connect(server.tcp, ca=str(certificates["authority"]))
    finally:
        server.stop()
        shutil.rmtree(folder)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(dray.ConnectionError, match="is `dray serve` running there") as caught:
        dray.connect(f"dray+unix://{tmp_path}/none")
    assert isinstance(caught.value, builtins.ConnectionError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.hint) == (
        dray.ConnectionError,
        str(caught.value),
        caught.value.hint,
    )
    with pytest.raises(ValueError, match="not a server's uri"):
        dray.connect("http://localhost")
    for timeout in (0, -1, math.nan, math.inf, 1e18, 1e-10):
        with pytest.raises(dray.UsageError, match="timeout"):
            dray.connect("dray://localhost", timeout=timeout)


def test_token(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    (folder / "token").write_text("s3cret\n")
    server = Server(folder, "--token-file", str(folder / "token"))
    try:
        for token in (None, "wrong"):
            with pytest.raises(dray.AuthenticationError) as caught:
                dray.connect(server.tcp, token=token)
            assert "s3cret" not in str(caught.value)
        dray.connect(server.tcp, token="s3cret").close()
        dray.connect(server.tcp.replace("dray://", "dray://s3cret@")).close()
        monkeypatch.setenv("DRAY_TOKEN", "s3cret")
        dray.connect(server.tcp).close()
    finally:
        server.stop()
        shutil.rmtree(folder)


def own_address() -> str:
    """An address of this host that is not loopback. Finding it sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])


def test_a_token_does_not_travel_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    (folder / "token").write_text("s3cret\n")
    with socket.create_server((own_address(), 0)) as free:
        address = "{}:{}".format(*free.getsockname())
    server = Server(folder, "--token-file", str(folder / "token"), "--listen", f"tcp://{address}")
    try:
        for uri in (
            f"dray://{address}",
            f"dray://s3cret@{address}",
            f"dray://{address}?token=s3cret",
        ):
            monkeypatch.setenv("DRAY_TOKEN", "s3cret")
            with pytest.raises(dray.UsageError, match="as plain text") as caught:
                dray.connect(uri)
            assert "plain_token=true" in str(caught.value) and "s3cret" not in str(caught.value)
        assert server.counter("connections_refused_total") == 0
        dray.connect(f"dray://{address}", plain_token=True).close()
        dray.connect(f"dray://{address}?plain_token=true").close()
        monkeypatch.delenv("DRAY_TOKEN")
        # Without a token there is nothing to hide.
        with pytest.raises(dray.AuthenticationError, match="requires a token"):
            dray.connect(f"dray://{address}")
    finally:
        server.stop()
        shutil.rmtree(folder)


def test_rows_larger_than_a_chunk(uri: str) -> None:
    sql = "SELECT id, text FROM large_rows ORDER BY id"
    table = dray.read(uri, sql, chunk_bytes_max=4096, compression="none")
    assert table.to_pylist() == [
        {"id": i, "text": "x" * 100_000 if i == 1 else "small"} for i in range(3)
    ]
    with dray.connect(uri) as connection:
        with pytest.raises(dray.LimitError, match=r"\d{6}"):
            connection.query(
                sql, chunk_bytes_max=4096, row_bytes_max=50_000, compression="none"
            ).arrow()
        assert connection.query(sql).arrow().num_rows == 3


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
@pytest.mark.parametrize(
    "how", ["result.arrow()", "list(result)", "for batch in result.batches(): del batch"]
)
def test_interrupt(server: Server, sql: str, how: str) -> None:
    script = f"""
import sys, pyarrow, dray
def progress(_):
    print("running", flush=True)
with dray.connect(sys.argv[1]) as connection:
    try:
        with connection.query(sys.argv[2], progress=progress) as result:
            {how}
    except KeyboardInterrupt:
        print("interrupted", connection.query("SELECT 1").arrow().num_rows)
"""
    ended = server.counter("statements_failed_total")
    client = subprocess.Popen(
        [sys.executable, "-c", script, server.unix, sql],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "running\n"
    client.send_signal(signal.SIGINT)
    out, errors = client.communicate(timeout=30)
    assert out.splitlines()[-1] == "interrupted 1", errors
    server.wait_for("statements_failed_total", ended + 1)


def test_interrupt_of_a_stream(server: Server) -> None:
    # pyarrow raises an error of its own, and the interrupt follows as soon as Python runs again.
    script = """
import sys, pyarrow, dray
try:
    with dray.connect(sys.argv[1]) as connection:
        result = connection.query(sys.argv[2], progress=lambda _: print("running", flush=True))
        for batch in pyarrow.RecordBatchReader.from_stream(result): del batch
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = server.counter("statements_failed_total")
    client = subprocess.Popen(
        [sys.executable, "-c", script, server.unix, FOREVER], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "running\n"
    client.send_signal(signal.SIGINT)
    out, _ = client.communicate(timeout=30)
    assert out.splitlines()[-1] == "interrupted"
    server.wait_for("statements_failed_total", ended + 1)


class Interrupting:
    """A profiler that raises KeyboardInterrupt where Python runs signal handlers: at the first
    instruction of a function, or after a call of a native one. It counts those of the package.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["query", "objects"])
def test_an_interrupt_at_any_moment_frees_the_connection(server: Server, kind: str) -> None:
    """Even while its traceback keeps everything."""
    with dray.connect(server.unix) as connection:
        for at in range(1, 1000):
            sys.setprofile(Interrupting(at))
            try:
                with getattr(connection, kind)(FOREVER) as result:
                    next(result.batches() if kind == "query" else result)
            except KeyboardInterrupt:
                assert connection.query("SELECT 1").arrow().num_rows == 1, at
            else:
                break
            finally:
                sys.setprofile(None)
    assert 10 < at < 999


@pytest.mark.parametrize("how", ["with", "close"])
def test_an_interrupt_of_a_close_closes_the_connection(server: Server, how: str) -> None:
    # Before the connection's and the result's `close` have begun, only a `with` block helps.
    for at in range(1 if how == "with" else 3, 100):
        connection = dray.connect(server.unix)
        result = connection.query(FOREVER)
        sys.setprofile(Interrupting(at))
        try:
            if how == "close":
                connection.close()
            else:
                with connection:
                    pass
        except KeyboardInterrupt:
            assert connection.closed, at
            with pytest.raises(dray.UsageError, match="the result is closed"):
                result.arrow()
        else:
            break
        finally:
            sys.setprofile(None)
    assert 3 < at < 99


@pytest.mark.parametrize("address", ["unix", "tcp"])
@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_server_killed_while_a_table_arrives(mortal: Server, address: str, sql: str) -> None:
    def kill(_: dray.Progress) -> None:
        mortal.process.kill()

    with dray.connect(getattr(mortal, address)) as connection:
        with pytest.raises(dray.ConnectionError):
            connection.query(sql, progress=kill).arrow()
        with pytest.raises(dray.UsageError, match="connect again"):
            connection.query("SELECT 1")


def test_server_killed_between_batches(mortal: Server) -> None:
    with dray.connect(mortal.unix) as connection:
        batches = connection.query(FOREVER).batches()
        next(batches)
        mortal.process.kill()
        with pytest.raises(dray.ConnectionError):
            for batch in batches:
                del batch


def test_progress(connection: dray.Connection) -> None:
    seen: list[tuple[int, int]] = []
    result = connection.query(
        "SELECT value FROM generate_series(1, 20000000)",
        progress=lambda progress: seen.append((progress.rows, progress.bytes)),
    )
    result.arrow()
    assert seen == sorted(seen)
    assert seen[-1][0] == 20_000_000 == result.progress.rows
    assert result.progress.bytes == result.stats.wire_bytes


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_progress_that_raises(connection: dray.Connection, sql: str) -> None:
    with pytest.raises(ZeroDivisionError):
        connection.query(sql, progress=lambda _: 1 / 0).arrow()
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_progress_that_uses_the_result(connection: dray.Connection) -> None:
    results: list[dray.Result] = []
    errors: list[Exception] = []

    def progress(_: dray.Progress) -> None:
        if results:
            try:
                _ = results[0].stats
            except dray.UsageError as error:
                errors.append(error)
            results[0].cancel()

    results.append(connection.query(FOREVER, progress=progress))
    with pytest.raises(dray.Cancelled):
        results[0].arrow()
    assert "is being read" in str(errors[0])
    assert connection.query("SELECT 1").arrow().num_rows == 1


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_cancel_from_another_thread(server: Server, sql: str) -> None:
    running = threading.Event()
    with dray.connect(server.unix) as connection:
        ended = server.counter("statements_failed_total")
        result = connection.query(sql, progress=lambda _: running.set())

        def cancel() -> None:
            running.wait()
            result.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(dray.Cancelled):
            for batch in result.batches():
                del batch
        thread.join()
        server.wait_for("statements_failed_total", ended + 1)
        assert connection.query("SELECT 1").arrow().num_rows == 1


def test_no_short_result_after_an_end(connection: dray.Connection) -> None:
    result = connection.query(FOREVER)
    batches = result.batches()
    next(batches)
    result.cancel()
    with pytest.raises(dray.Cancelled):
        next(batches)
    batches = connection.query("SELECT 1 / (id - 150000) FROM numbers").batches()
    with pytest.raises(dray.ExecutionError):
        list(batches)
    with pytest.raises(dray.UsageError, match="failed before"):
        next(batches)
    rows = connection.query("SELECT 1").rows()
    assert list(rows) == [(1,)] and list(rows) == []
    result = connection.query(FOREVER)
    result.close()
    with pytest.raises(dray.UsageError, match="closed"):
        list(result)


def test_a_connection_for_each_thread(server: Server) -> None:
    tables: list[pa.Table] = []

    def fetch() -> None:
        for _ in range(3):
            tables.append(dray.read(server.unix, "SELECT * FROM numbers ORDER BY id"))

    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tables) == 24
    assert all(table.equals(tables[0]) and table.num_rows == data.BIG for table in tables)


def test_threads_that_share_a_connection(connection: dray.Connection) -> None:
    answers: list[int] = []
    others: list[BaseException] = []

    def fetch() -> None:
        for i in range(200):
            try:
                answers.append(connection.query("SELECT $1", [i]).arrow().column(0)[0].as_py() - i)
            except dray.UsageError as error:
                if "busy" not in str(error):
                    others.append(error)
            except BaseException as error:
                others.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert others == []
    assert answers and set(answers) == {0}
    assert connection.query("SELECT 1").arrow().num_rows == 1


def test_threads_that_share_a_result(connection: dray.Connection) -> None:
    batches = connection.query("SELECT value FROM generate_series(1, 3000000)").batches()
    rows: list[int] = []
    refused: list[dray.UsageError] = []

    def fetch() -> None:
        while True:
            try:
                batch = next(batches, None)
            except dray.UsageError as error:
                refused.append(error)
                continue
            if batch is None:
                return
            rows.append(batch.num_rows)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(rows) == 3_000_000
    assert all("is being read" in str(error) for error in refused)


def test_other_threads_run_meanwhile(connection: dray.Connection) -> None:
    # The reading thread must not hold Python's lock: this thread counts while a silent statement
    # runs.
    counted: list[int] = []
    result = connection.query(SILENT)

    def read() -> None:
        with pytest.raises(dray.Cancelled):
            result.arrow()

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(100_000):
        counted.append(i)
    result.cancel()
    thread.join()
    assert len(counted) == 100_000
    assert connection.query("SELECT 1").arrow().num_rows == 1
