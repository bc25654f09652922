"""Backends are ended at random moments while a table is read in parts: all of its rows or an error,
never some of the rows.
"""

from __future__ import annotations

import gc
import random
import re
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.compute
from postgres_server import PostgresServer

import dray

DATABASE = "ended"
ROWS = 120_000
DDL = (
    "CREATE TABLE many (id integer NOT NULL, filler text, amount numeric(12,2), items integer[])",
    "INSERT INTO many SELECT i, repeat('x', i % 90), i / 100.0, ARRAY[i] "
    f"FROM generate_series(1, {ROWS}) i",
    "ANALYZE many",
)
SEED = 20
SECONDS = 3.2
ROUNDS = 4
READERS = 2
# Messages that a user understands: who ended the session, or that the connection is gone.
CLEAR = (
    "terminating connection due to administrator command|canceling statement due to user "
    "request|connection|"
    "the database system is|could not import the requested snapshot: The source process"
)
# Allocators retain some freed memory, about 300 MB here. If the tables of failed reads leaked, at
# 12 MB each, it would be several times as much.
GROWTH_MAX = 768 << 20


def private_bytes() -> int:
    line = next(
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("RssAnon")
    )
    return int(line.split()[1]) << 10


BEFORE = private_bytes()


def check_whole(table: pa.Table) -> None:
    assert table.num_rows == ROWS
    assert pa.compute.sum(table["id"]).as_py() == ROWS * (ROWS + 1) // 2
    assert pa.compute.count_distinct(table["id"]).as_py() == ROWS
    assert pa.compute.sum(pa.compute.binary_length(table["filler"])).as_py() == sum(
        i % 90 for i in range(1, ROWS + 1)
    )
    assert pa.compute.sum(pa.compute.list_flatten(table["items"])).as_py() == ROWS * (ROWS + 1) // 2


class Readers:
    """Threads that read the table again and again, each over a connection of its own."""

    def __init__(self, uri: str, extension: bool) -> None:
        self.uri = uri
        self.extension = extension
        self.ended: Counter[str] = Counter()
        self.unclear: list[BaseException] = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(seed,)) for seed in range(READERS)]

    def run(self, seed: int) -> None:
        choices = random.Random(SEED + seed)
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None:
                    connection = dray.connect(self.uri)
                self.read(connection, choices)
                self.ended["whole"] += 1
            except dray.Error as error:
                if not re.search(CLEAR, str(error)):
                    self.unclear.append(error)
                self.ended[f"{type(error).__name__}: {error}"] += 1
                if connection is not None and not self.is_usable(connection):
                    connection.close()
                    connection = None
            except BaseException as error:  # What is not whole, above all.
                self.unclear.append(error)
                return
        if connection is not None:
            connection.close()

    def read(self, connection: dray.Connection, choices: random.Random) -> None:
        result = connection.query(
            "SELECT * FROM many",
            extension=self.extension,
            partitions=choices.choice([2, 3, 4]),
            ordered=choices.random() < 0.3,
            chunk_bytes_max=choices.choice([65536, 1 << 20]),
            batch_rows=choices.choice([2000, 65536]),
        )
        if choices.random() < 0.5:
            check_whole(result.arrow())
        else:
            check_whole(pa.Table.from_batches(list(result.batches())))

    def is_usable(self, connection: dray.Connection) -> bool:
        """Whether an intact connection answers at once and correctly."""
        for _ in range(5):
            try:
                rows = list(connection.query("SELECT 1, 'x'").rows())
                if rows != [(1, "x")]:
                    self.unclear.append(AssertionError(rows))
                return True
            except dray.Error as error:
                # This session may be ended next.
                if not re.search(CLEAR, str(error)):
                    self.unclear.append(error)
                    return False
        return False


def backends(killer: psycopg.Connection[tuple[int]]) -> list[int]:
    rows = killer.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = %s "
        "AND backend_type = 'client backend' ORDER BY backend_start",
        [DATABASE],
    )
    return [pid for (pid,) in rows]


def end_backends(server: PostgresServer, seconds: float, choices: random.Random) -> Counter[str]:
    """Repeatedly end or cancel a random backend: coordinators, workers, new ones."""
    counts: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with server.connect() as killer:
        while time.monotonic() < until:
            time.sleep(choices.random() ** 2 * 0.2)
            if pids := backends(killer):
                how = choices.choice(["pg_terminate_backend", "pg_cancel_backend"])
                killer.execute(f"SELECT {how}(%s)", [choices.choice(pids)])  # type: ignore[arg-type]
                counts[how] += 1
    return counts


def test_all_rows_or_an_error(postgres: PostgresServer, extension: bool) -> None:
    with postgres.connect() as connection:
        if (
            connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            is None
        ):
            postgres.run(f"CREATE DATABASE {DATABASE}")
            postgres.run(*DDL, *(["CREATE EXTENSION dray"] if extension else []), database=DATABASE)
        elif extension:
            postgres.run("CREATE EXTENSION IF NOT EXISTS dray", database=DATABASE)
    logged = len(postgres.log())
    choices = random.Random(SEED)
    counts: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    sizes = []
    for _ in range(ROUNDS):
        readers = Readers(postgres.uri(DATABASE), extension)
        for thread in readers.threads:
            thread.start()
        try:
            counts += end_backends(postgres, SECONDS / ROUNDS, choices)
        finally:
            readers.stop.set()
            for thread in readers.threads:
                thread.join()
        assert readers.unclear == []
        ended += readers.ended
        gc.collect()
        pa.default_memory_pool().release_unused()
        sizes.append(private_bytes())
    print(counts, dict(ended), [size >> 20 for size in sizes])
    # Both outcomes occurred.
    assert ended["whole"] > 0 and len(ended) > 1 and all(counts.values())
    assert min(sizes) <= BEFORE + GROWTH_MAX, sizes
    with postgres.connect() as killer:
        deadline = time.monotonic() + 10
        while left := backends(killer):
            assert time.monotonic() < deadline, f"backends without a client: {left}"
            time.sleep(0.02)
    log = postgres.log()[logged:]
    assert "database system was interrupted" not in log and "in recovery mode" not in log
