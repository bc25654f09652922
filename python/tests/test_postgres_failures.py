"""Failing statements of PostgreSQL, and early ends."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from postgres_client import CHEAP_SLEEP, FOREVER, SILENT, SLEEP, Client
from postgres_server import PostgresServer

import dray


# Failures.


@pytest.mark.parametrize(
    ("sql", "kind", "sqlstate", "what"),
    [
        ("SELEC 1", dray.QueryError, "42601", "SELEC.*column 1$"),
        ("SELECT * FROM nowhere", dray.QueryError, "42P01", "nowhere.*column 15$"),
        ("SELECT nothing FROM pets", dray.QueryError, "42703", "nothing.*column 8$"),
        (
            "SELECT 'ü🐴',\n  -- it is\n  nothing FROM pets",
            dray.QueryError,
            "42703",
            "nothing.*line 3, column 3$",
        ),
        ("SELECT 1 / 0", dray.ExecutionError, "22012", "division by zero"),
        ("SELECT 'x'::integer", dray.ExecutionError, "22P02", "invalid input syntax.*column 8$"),
        ("SELECT lower(1)", dray.QueryError, "42883", "lower.*column 8"),
        ("SELECT * FROM pg_authid; ", None, None, ""),
    ],
)
def test_statements_that_fail(
    client: Client, sql: str, kind: Any, sqlstate: str, what: str
) -> None:
    if kind is None:
        assert client.list(sql)
        return
    with pytest.raises(kind, match=what) as caught:
        client.query(sql).arrow()
    error = caught.value
    assert type(error) is kind and error.sqlstate == sqlstate and "\n" not in error.message
    client.check_usable()


def test_a_hint_of_the_server(client: Client) -> None:
    with pytest.raises(dray.QueryError) as caught:
        client.query("SELECT lower(1)").arrow()
    assert caught.value.hint and "explicit type casts" in caught.value.hint


def test_nul_in_a_statement(client: Client) -> None:
    for sql in ("SELECT 'a\0b'", "SELECT $1 -- \0"):
        with pytest.raises(dray.UsageError, match="NUL"):
            client.query(sql).arrow()
    client.check_usable()


@pytest.mark.parametrize("row", [1, 2, 64, 1000, 65_536, 65_537, 99_999])
def test_errors_within_the_scan(client: Client, row: int) -> None:
    failing = f"SELECT id, 1 / (id - {row - 1}) AS q, text FROM numbers WHERE id >= 0"
    with pytest.raises(dray.ExecutionError, match="division by zero") as caught:
        client.query(failing).arrow()
    assert caught.value.sqlstate == "22012"
    client.check_usable()
    late = (
        f"SELECT CASE WHEN id = {row - 1} THEN 'infinity'::date END AS d, text FROM "
        "(SELECT * FROM numbers ORDER BY id) t"
    )
    with pytest.raises(dray.ExecutionError, match=f'column "d", row {row}: .*infinity') as caught:
        for batch in client.query(late, batch_rows=1000).batches():
            del batch
    assert caught.value.sqlstate == "22003"
    client.check_usable()
    with pytest.raises(dray.Error):
        list(client.query(failing, batch_rows=1000).rows())
    client.check_usable()


def test_a_batch_does_not_follow_an_error(client: Client) -> None:
    batches = client.query(
        "SELECT 1 / (id - 90000), repeat(text, 20) FROM numbers", batch_rows=1000
    ).batches()
    with pytest.raises(dray.ExecutionError):
        list(batches)
    with pytest.raises(dray.UsageError, match="failed before"):
        next(batches)
    client.check_usable()


def test_rows_over_the_limit(client: Client) -> None:
    sql = (
        "SELECT i, repeat('x', CASE WHEN i = 3 THEN 100000 ELSE 5 END) AS t "
        "FROM generate_series(1, 5) i"
    )
    with pytest.raises(dray.LimitError, match=r"\d{5}") as caught:
        client.query(
            sql,
            chunk_bytes_max=4096,
            decoded_bytes_max=8192,
            row_bytes_max=50_000,
            compression="none",
        ).arrow()
    assert caught.value.sqlstate == "54000"
    client.check_usable()
    assert client.query(sql).arrow().num_rows == 5


# Text that was never validated; functions in C can return such bytes.
AS_TEXT = (
    "CREATE FUNCTION pg_temp.as_text(bytea, integer) RETURNS text "
    "LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len'"
)
BAD = r"pg_temp.as_text('\x61ff62'::bytea, 1)"


@pytest.mark.parametrize(
    ("value", "compression"),
    [
        ("{}", "none"),
        ("{}", "light"),
        ("{}::varchar(9)", "none"),
        ("{}::name", "none"),
        ("ARRAY['good', {}]", "none"),
        ("ROW(1, {})::pets", "light"),
        ("ARRAY[NULL, ROW(1, {})::pets]", "none"),
    ],
)
def test_text_that_is_not_utf8(client: Client, value: str, compression: str) -> None:
    client.list(AS_TEXT)
    bad, good = value.format(BAD), value.format("'good'")
    sql = (
        f"SELECT i, CASE WHEN i = 70000 THEN {bad} ELSE {good} END AS bad "
        "FROM generate_series(1, 70001) i"
    )
    for _ in range(2):
        with pytest.raises(
            dray.ExecutionError, match='column "bad": a string is not UTF-8; textsend'
        ) as caught:
            client.query(sql, compression=compression).arrow()
        assert caught.value.sqlstate == "22021"
        client.check_usable()
        with pytest.raises(dray.ExecutionError, match="is not UTF-8"):
            list(client.query(sql, compression=compression).rows())
        client.check_usable()
    # The bytes can be read as bytea.
    assert client.list(f"SELECT textsend({BAD})") == [(b"a\xffb",)]
    result = client.query(sql.replace("i = 70000", "i = 0"), compression=compression)
    assert result.arrow().num_rows == 70_001


def test_text_in_parts_that_is_not_utf8(client: Client, filled: PostgresServer) -> None:
    with filled.connect() as oracle:
        oracle.execute(AS_TEXT)
        oracle.execute(
            "CREATE TABLE unsound AS SELECT i, CASE WHEN i = 90000 "
            f"THEN {BAD} ELSE 'good' END AS bad FROM generate_series(1, 100000) i"
        )
        try:
            for partitions in (1, 3):
                with pytest.raises(dray.ExecutionError, match='column "bad"') as caught:
                    client.query("SELECT i, bad FROM unsound", partitions=partitions).arrow()
                assert caught.value.sqlstate == "22021"
                client.check_usable()
                assert (
                    client.query("SELECT i FROM unsound", partitions=partitions).arrow().num_rows
                    == 100_000
                )
        finally:
            oracle.execute("DROP TABLE unsound")


def test_privileges(filled: PostgresServer, extension: bool) -> None:
    client = Client(filled.uri(user="reader"), extension)
    assert client.list("SELECT id, text FROM numbers WHERE id = 7") == [(7, "row 7")]
    for sql in (
        "SELECT * FROM numbers",
        "SELECT amount FROM numbers",
        "SELECT * FROM pg_authid",
        "SELECT * FROM pets",
    ):
        with pytest.raises(dray.QueryError, match="permission denied") as caught:
            client.query(sql).arrow()
        assert caught.value.sqlstate == "42501"
    assert client.list("SELECT n FROM rows_of") == [(1,)]
    client.list("SET row_security = off")
    with pytest.raises(dray.Error, match="row-level security"):
        client.list("SELECT n FROM rows_of")
    client.check_usable()


# Early ends.


@pytest.fixture
def pid_is_idle(client: Client, filled: PostgresServer) -> Callable[[int], None]:
    """Wait until a session is idle."""

    def wait(pid: int) -> None:
        deadline = time.monotonic() + 60
        with filled.connect() as oracle:
            while oracle.execute(
                "SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]
            ).fetchone() not in (None, ("idle",)):
                assert time.monotonic() < deadline, "the statement still runs"
                time.sleep(0.02)

    return wait


@pytest.mark.parametrize("sql", [FOREVER, SILENT, SLEEP])
def test_cancel_from_another_thread(
    client: Client, sql: str, pid_is_idle: Callable[[int], None]
) -> None:
    pid = client.pid
    running = threading.Event()
    result = client.query(sql, progress=lambda _: running.set())

    def cancel() -> None:
        running.wait()
        result.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(dray.Cancelled):
        for batch in result.batches():
            del batch
    thread.join()
    pid_is_idle(pid)
    client.check_usable()
    assert client.pid == pid


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_progress_that_raises(client: Client, sql: str) -> None:
    with pytest.raises(ZeroDivisionError):
        client.query(sql, progress=lambda _: 1 / 0).arrow()
    client.check_usable()


def test_results_dropped_half_way(client: Client, pid_is_idle: Callable[[int], None]) -> None:
    pid = client.pid
    batches = client.query(FOREVER).batches()
    next(batches)
    del batches
    gc.collect()
    client.check_usable()
    rows = client.query(FOREVER).rows()
    assert next(rows) == (1,)
    del rows
    gc.collect()
    for sql in (FOREVER, SLEEP):
        with client.query(sql):
            pass
        client.check_usable()
    result = client.query(FOREVER)
    next(result.rows())
    result.close()
    pid_is_idle(pid)
    client.check_usable()
    assert client.pid == pid
    with pytest.raises(dray.UsageError):
        list(result)


def test_cancelled_by_another_session(client: Client, filled: PostgresServer) -> None:
    pid = client.pid
    batches = client.query(FOREVER).batches()
    next(batches)
    filled.run(f"SELECT pg_cancel_backend({pid})")
    with pytest.raises(dray.Error, match="user request") as caught:
        for batch in batches:
            del batch
    assert caught.value.sqlstate == "57014"
    client.check_usable()


@pytest.mark.parametrize("sql", [FOREVER, SILENT, SLEEP, CHEAP_SLEEP])
def test_statement_timeout(client: Client, sql: str) -> None:
    client.list("SET statement_timeout = 1000")
    with pytest.raises(dray.ExecutionError, match="statement timeout") as caught:
        for batch in client.query(sql).batches():
            del batch
    assert caught.value.sqlstate == "57014"
    client.check_usable()


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_terminated_within_a_transfer(client: Client, filled: PostgresServer, sql: str) -> None:
    pid = client.pid
    killed: list[int] = []

    def kill(progress: dray.Progress) -> None:
        if not killed:
            killed.append(progress.rows)
            filled.run(f"SELECT pg_terminate_backend({pid})")

    with pytest.raises(dray.ConnectionError) as caught:
        client.query(sql, progress=kill).arrow()
    assert caught.value.sqlstate in ("57P01", None)
    with pytest.raises(dray.UsageError, match="connect again"):
        client.query("SELECT 1")


def test_terminated_between_statements(client: Client, filled: PostgresServer) -> None:
    filled.run(f"SELECT pg_terminate_backend({client.pid}, 10000)")
    with pytest.raises(dray.ConnectionError):
        client.query("SELECT 1").arrow()


def test_server_stopped_within_a_transfer(filled: PostgresServer, extension: bool) -> None:
    server = PostgresServer(filled.installation)
    try:
        if extension:
            server.run("CREATE EXTENSION dray")
        client = Client(server.uri(), extension)
        batches = client.query(FOREVER).batches()
        next(batches)
        server.process.send_signal(signal.SIGQUIT)
        with pytest.raises(dray.ConnectionError):
            for batch in batches:
                del batch
        server.process.wait(60)
        with pytest.raises(dray.ConnectionError, match="is the server running there"):
            dray.connect(server.uri())
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("sql", "how"),
    [
        (FOREVER, "result.arrow()"),
        (FOREVER, "list(result)"),
        (SILENT, "for batch in result.batches(): del batch"),
        (CHEAP_SLEEP, "result.arrow()"),
    ],
)
def test_interrupt(filled: PostgresServer, extension: bool, sql: str, how: str) -> None:
    script = f"""
import sys, pyarrow, dray
with dray.connect(sys.argv[1]) as connection:
    try:
        with connection.query(sys.argv[2], extension={extension}) as result:
            {how}
    except KeyboardInterrupt:
        print("interrupted", connection.query("SELECT 1").arrow().num_rows)
"""
    marked = f"/* {uuid.uuid4()} */ {sql}"
    client = subprocess.Popen(
        [sys.executable, "-c", script, filled.uri(), marked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    filled.wait_for_statement(marked[3:39], 1)
    client.send_signal(signal.SIGINT)
    out, errors = client.communicate(timeout=60)
    assert out == "interrupted 1\n", errors
    filled.wait_for_statement(marked[3:39], 0)


def test_killed_client(filled: PostgresServer, extension: bool) -> None:
    script = f"""
import sys, pyarrow, dray
connection = dray.connect(sys.argv[1])
for batch in connection.query(sys.argv[2], extension={extension}).batches():
    print("running", flush=True)
"""
    marked = f"/* {uuid.uuid4()} */ {FOREVER}"
    client = subprocess.Popen(
        [sys.executable, "-c", script, filled.uri(), marked], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "running\n"
    filled.wait_for_statement(marked[3:39], 1)
    client.kill()
    client.communicate(timeout=60)
    filled.wait_for_statement(marked[3:39], 0)


def test_memory_of_a_stream(filled: PostgresServer, extension: bool) -> None:
    # 260 MB of rows.
    sql = "SELECT i, repeat(md5(i::text), 8) FROM (SELECT generate_series(1, 1000000) AS i) t"
    script = f"""
import resource, sys, pyarrow, dray
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
with dray.connect(sys.argv[1]) as connection:
    few = sys.argv[2].replace("1000000", "1000")
    for batch in connection.query(few, extension={extension}).batches():
        del batch
    before, rows, bytes = peak(), 0, 0
    for batch in connection.query(sys.argv[2], extension={extension}).batches():
        rows, bytes = rows + batch.num_rows, bytes + batch.nbytes
        del batch
    print(rows, bytes >> 20, peak() - before)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, filled.uri(), sql],
        capture_output=True,
        text=True,
        check=True,
    )
    rows, megabytes, growth = map(int, ran.stdout.split())
    assert rows == 1_000_000 and megabytes > 240
    assert growth < 120
