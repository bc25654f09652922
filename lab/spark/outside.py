"""The parts of a plan, read by Dray in processes of their own: a reader without Spark."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.pool import Pool
from typing import NamedTuple

import dray


class Reading(NamedTuple):
    seconds: float
    rows: int


def started(processes: int) -> Pool:
    """Processes that have loaded Dray."""
    pool = multiprocessing.get_context("spawn").Pool(processes, initializer=warm)
    # Each has begun when it has answered; one alone can't answer all.
    pool.map(time.sleep, [0.1] * processes * 2, chunksize=1)
    return pool


def warm() -> None:
    dray.read_partition  # noqa: B018


def read(part: bytes, extension: bool) -> tuple[int, bytes]:
    """Read a part and keep nothing of it."""
    with dray.read_partition(part, extension=extension) as result:
        rows = sum(batch.num_rows for batch in result.batches())
        receipt = result.receipt
    assert receipt is not None
    return rows, receipt


def read_all(pool: Pool, uri: str, sql: str, at_most: int, extension: bool) -> Reading:
    """Plan, read all parts by the processes, each the next one as soon as it is free, and check."""
    start = time.perf_counter()
    with dray.connect(uri) as connection, connection.partitions(sql, at_most=at_most) as plan:
        jobs = [pool.apply_async(read, (part, extension)) for part in plan.partitions]
        readings = [job.get() for job in jobs]
        plan.verify([receipt for _, receipt in readings])
    return Reading(time.perf_counter() - start, sum(rows for rows, _ in readings))
