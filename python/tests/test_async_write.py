"""Writing, and plans of partitions, for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pyarrow as pa
import pytest
from postgres_server import PostgresServer
from server import Server
from write_target import TABLE, Target

import dray


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, which must not take half a minute."""
    asyncio.run(asyncio.wait_for(main, 30))


def endless(delay: float = 0.0) -> pa.RecordBatchReader:
    def generate() -> Iterator[pa.RecordBatch]:
        while True:
            time.sleep(delay)
            yield pa.record_batch({"id": pa.array(range(10_000), pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), generate())


def test_writing(target: Target) -> None:
    async def main() -> None:
        async with await dray.connect_async(target.server.uri()) as connection:
            written = await connection.write("t", TABLE, schema="w")
            assert (written.rows, written.format) == (3, "binary")
            await connection.write("t", TABLE, schema="w", mode="append")
            assert len(target.rows()) == 6
            options: dict[str, Any] = {"types": {"id": "numeric"}, "partitions": 2}
            await connection.write("u", TABLE, schema="w", **options)
            assert len(target.rows("w.u")) == 3
            await connection.write("v", TABLE, temporary=True)
            seen: list[int] = []
            big = pa.table({"id": range(100_000)})
            await connection.write("big", big, schema="w", progress=lambda p: seen.append(p.rows))
            assert seen[-1] == 100_000
            with pytest.raises(dray.QueryError, match="already exists"):
                await connection.write("t", TABLE, schema="w")
            # From another connection.
            async with await dray.connect_async(target.server.uri()) as other:
                result = await other.query("SELECT * FROM w.big")
                assert (await connection.write("copy", result, schema="w")).rows == 100_000
                assert (await (await other.query("SELECT 1")).to_arrow()).num_rows == 1

    run(main())


def test_the_loop_goes_on(target: Target) -> None:
    table = pa.table({"id": range(6_000_000)})

    async def main() -> None:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - before)

        ticking = asyncio.create_task(tick())
        async with await dray.connect_async(target.server.uri()) as connection:
            began = time.monotonic()
            await connection.write("t", table, schema="w")
            took = time.monotonic() - began
            # A tick that the write delayed ends now.
            await asyncio.sleep(0.01)
        ticking.cancel()
        # The machine may be busy, but the write took longer.
        assert longest < took / 2

    run(main())


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("delay", [0.0, 10.0])
def test_cancelled_tasks(target: Target, partitions: int, delay: float) -> None:
    async def main() -> None:
        async with await dray.connect_async(target.server.uri()) as connection:
            began = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                write = connection.write("t", endless(delay), schema="w", partitions=partitions)
                await asyncio.wait_for(write, 0.4)
            # The task does not wait for the source, nor for the server.
            assert time.monotonic() - began < 5
            assert (await (await connection.query("SELECT 1")).to_arrow()).num_rows == 1
        left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'w'::regnamespace"
        assert target.oracle.execute(left).fetchone() == (0,)

    run(main())


def test_closing_ends_a_write(target: Target) -> None:
    async def main() -> None:
        connection = await dray.connect_async(target.server.uri())
        writing = asyncio.create_task(connection.write("t", endless(), schema="w"))
        await asyncio.sleep(0.3)
        await connection.close()
        with pytest.raises(dray.Cancelled):
            await writing
        assert target.oracle.execute("SELECT to_regclass('w.t')").fetchone() == (None,)

    run(main())


def test_plans(big: PostgresServer) -> None:
    async def main() -> None:
        async with await dray.connect_async(big.uri()) as connection:
            async with await connection.partitions("SELECT * FROM many", at_most=4) as plan:
                assert len(plan) == len(plan.partitions) == 4 and plan.reason is None
                assert plan.columns == plan.schema.names and len(plan.estimates) == 4

                def read(part: bytes) -> bytes | None:
                    with dray.read_partition(part) as result:
                        result.to_arrow()
                        return result.receipt

                # The connection is free meanwhile.
                assert (await (await connection.query("SELECT 1")).to_arrow()).num_rows == 1
                receipts = [await asyncio.to_thread(read, part) for part in plan]
                proof = await plan.verify([receipt for receipt in receipts if receipt])
                assert proof.parts == 4 and proof.rows > 0
                assert "dray.AsyncPlan of 4 parts" in repr(plan)
            assert plan.released
            with pytest.raises(dray.QueryError):
                await connection.partitions("SELECT * FROM nowhere")
            with pytest.raises(dray.UsageError):
                await connection.partitions("SELECT 1", lease=-1.0)

    run(main())


def test_planning_is_cancelled(big: PostgresServer) -> None:
    async def main() -> None:
        async with await dray.connect_async(big.uri()) as connection:
            with big.connect() as other, other.transaction():
                other.execute("LOCK TABLE many IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.partitions("SELECT * FROM many"), 0.3)
                assert (await (await connection.query("SELECT 1")).to_arrow()).num_rows == 1

    run(main())


def test_dray_servers_only_read(server: Server) -> None:
    async def main() -> None:
        async with await dray.connect_async(server.unix) as connection:
            with pytest.raises(dray.UsageError, match="only reads"):
                await connection.write("t", TABLE)
            async with await connection.partitions("SELECT 1 AS one") as plan:
                assert len(plan.partitions) == 1

    run(main())
