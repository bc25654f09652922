"""Connections for asyncio: results, failures and cancelled tasks."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine
from typing import Any

import data
import postgres_client
import pytest
from postgres_server import PostgresServer
from server import Server

import dray

FOREVER = "SELECT * FROM generate_series(1, 1000000000000)"
SILENT = "SELECT count(*) FROM generate_series(1, 1000000000000)"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, which must not take half a minute."""
    asyncio.run(asyncio.wait_for(main, 30))


def test_results(uri: str) -> None:
    async def main() -> None:
        async with await dray.connect_async(uri, timeout=5) as connection:
            sql = "SELECT * FROM nullable"
            table = await (await connection.query(sql)).to_arrow()
            assert table.num_rows == 3
            assert (await (await connection.query(sql)).to_pandas()).shape == (3, 7)
            frame = await (await connection.query(sql, strings="view")).to_polars()
            assert frame["i"].to_list() == [2**53 + 1, None, -1]
            assert (await (await connection.query(sql)).to_numpy())["b"].tolist() == [
                True,
                None,
                False,
            ]
            async with await connection.query("SELECT id, text FROM numbers") as result:
                assert result.columns == ["id", "text"] and result.schema.names == result.columns
                rows = [batch.num_rows async for batch in result]
                assert sum(rows) == data.BIG and len(rows) > 1
                assert result.stats.rows == result.progress.rows == data.BIG
                assert result.estimate.rows == data.BIG
            result = await connection.query("SELECT $1, NULL, 'x'", [7])
            assert [row async for row in result.rows()] == [(7, None, "x")]
            empty = await connection.query("SELECT * FROM empty")
            assert [batch async for batch in empty.batches()] == []
            assert "dray.AsyncConnection to " in repr(connection)
        assert connection.closed
        await connection.close()
        with pytest.raises(dray.UsageError, match="the connection is closed"):
            await connection.query("SELECT 1")

    run(main())


def test_the_loop_goes_on(server: Server) -> None:
    async def main() -> None:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - before)

        ticking = asyncio.create_task(tick())
        async with await dray.connect_async(server.unix) as connection:
            slow = "SELECT sum(value % 7) FROM generate_series(1, 200000000)"
            began = time.monotonic()
            assert (await (await connection.query(slow)).to_arrow()).num_rows == 1
            took = time.monotonic() - began
            # A tick that the statement delayed ends now.
            await asyncio.sleep(0.01)
        ticking.cancel()
        # The machine may be busy, but the statement took longer.
        assert longest < took / 2

    run(main())


def test_several_connections(server: Server) -> None:
    async def rows(sql: str) -> int:
        async with await dray.connect_async(server.unix) as connection:
            return int((await (await connection.query(sql)).to_arrow()).num_rows)

    async def main() -> None:
        sql = "SELECT id FROM numbers WHERE id < "
        found = await asyncio.gather(*(rows(f"{sql}{i}") for i in range(20)))
        assert found == list(range(20))

    run(main())


def test_failures(server: Server) -> None:
    async def main() -> None:
        with pytest.raises(dray.ConnectionError):
            await dray.connect_async("dray+unix:///nowhere/dray.sock")
        async with await dray.connect_async(server.unix) as connection:
            with pytest.raises(dray.QueryError, match="nothing"):
                await connection.query("SELECT * FROM nothing")
            with pytest.raises(TypeError):
                await connection.query("SELECT 1", colour="red")  # type: ignore[call-arg]
            failing = "SELECT 1 / (value - 3000000) FROM generate_series(1, 4000000)"
            result = await connection.query(failing)
            with pytest.raises(dray.ExecutionError, match="division by zero"):
                async for batch in result:
                    assert batch.num_rows
            first = await connection.query(FOREVER)
            with pytest.raises(dray.UsageError, match="busy"):
                await connection.query("SELECT 1")
            await first.close()
            assert [row async for row in (await connection.query("SELECT 1")).rows()] == [(1,)]

    run(main())


@pytest.mark.parametrize("sql", [FOREVER, SILENT])
def test_cancelled_tasks(server: Server, sql: str) -> None:
    async def main() -> None:
        async with await dray.connect_async(server.unix) as connection:
            before = server.counter("statements_failed_total")
            for _ in range(3):

                async def read() -> None:
                    await (await connection.query(sql, batch_rows=100)).to_arrow()

                began = time.monotonic()
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(read(), 0.2)
                # The task does not wait for the server.
                assert time.monotonic() - began < 5
                result = await connection.query("SELECT 1")
                assert [row async for row in result.rows()] == [(1,)]
            assert server.counter("statements_failed_total") >= before + 3

    run(main())


def test_cancelled_at_postgres(filled: PostgresServer, extension: bool) -> None:
    async def main() -> None:
        async with await dray.connect_async(filled.uri()) as connection:
            choice: Any = "auto" if extension else False
            for sql in (postgres_client.FOREVER, postgres_client.SILENT, postgres_client.SLEEP):

                async def read() -> None:
                    await (await connection.query(sql, extension=choice)).to_arrow()

                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(read(), 0.3)
                assert (await (await connection.query("SELECT 1")).to_arrow()).num_rows == 1
                filled.wait_for_statement("generate_series(1, 1000000", 0)

    run(main())


def test_closing_ends_a_statement_that_starts(filled: PostgresServer, extension: bool) -> None:
    async def main() -> None:
        connection = await dray.connect_async(filled.uri())
        choice: Any = "auto" if extension else False
        sql = postgres_client.CHEAP_SLEEP
        starting = asyncio.create_task(connection.query(sql, extension=choice))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await connection.close()
        assert time.monotonic() - began < 5
        with pytest.raises((dray.Cancelled, dray.UsageError)):
            await (await starting).to_arrow()
        filled.wait_for_statement("pg_sleep(3600)", 0)

    run(main())


def test_cancel_and_close(server: Server) -> None:
    async def main() -> None:
        connection = await dray.connect_async(server.unix)
        result = await connection.query(FOREVER)
        reading = asyncio.create_task(result.to_arrow())
        await asyncio.sleep(0.1)
        await result.cancel()
        with pytest.raises(dray.Cancelled):
            await reading
        # One dropped half-way is cancelled, too.
        async for batch in await connection.query(FOREVER):
            assert batch.num_rows
            break
        del batch
        gc.collect()
        assert [row async for row in (await connection.query("SELECT 1")).rows()] == [(1,)]
        # Closing ends the statement that another task reads.
        reading = asyncio.create_task((await connection.query(FOREVER)).to_arrow())
        await asyncio.sleep(0.1)
        await connection.close()
        with pytest.raises(dray.Cancelled):
            await reading

    run(main())


def test_a_read_is_cancelled_before_it_begins(server: Server) -> None:
    async def main() -> None:
        async with await dray.connect_async(server.unix) as connection:
            result = await connection.query(FOREVER)
            connection._worker.follow(lambda: time.sleep(0.3))
            reading = asyncio.create_task(result.to_arrow())
            await asyncio.sleep(0.05)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            # The result is still referred to.
            assert [row async for row in (await connection.query("SELECT 1")).rows()] == [(1,)]

    run(main())


def test_the_garbage_collector_drops_results(server: Server) -> None:
    # It runs at nearly every allocation: also while locks of the worker are held.
    script = """
import asyncio, gc, sys, dray
async def main():
    async with await dray.connect_async(sys.argv[1]) as connection:
        gc.set_threshold(1, 1, 1)
        for _ in range(300):
            cycle = [await connection.query("SELECT 1")]
            cycle.append(cycle)
            async for batch in cycle[0]:
                assert batch.num_rows
            del cycle
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, server.unix], timeout=60, check=True)


def test_progress_can_end_a_statement(server: Server) -> None:
    def stop(progress: dray.Progress) -> None:
        raise LookupError(progress.rows)

    async def main() -> None:
        async with await dray.connect_async(server.unix) as connection:
            with pytest.raises(LookupError):
                await (await connection.query(FOREVER, progress=stop)).to_arrow()

    run(main())


def test_connecting_can_be_cancelled() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            uri = f"dray://127.0.0.1:{silent.getsockname()[1]}"
            began = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(dray.connect_async(uri, timeout=20), 0.2)
            assert time.monotonic() - began < 5

    began = time.monotonic()
    run(main())
    # The thread has given up as well: the interpreter would wait for it at its end.
    assert time.monotonic() - began < 10


def test_an_interrupt_cancels(server: Server) -> None:
    script = f"""
import asyncio, sys, dray
async def main():
    async with await dray.connect_async(sys.argv[1]) as connection:
        print("ready", flush=True)
        await (await connection.query({SILENT!r})).to_arrow()
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script, server.unix], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=15)[0] == "interrupted\n"
    assert process.returncode == 0
