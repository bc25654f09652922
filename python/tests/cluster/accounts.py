"""A table whose rows change meanwhile, so that rows of two moments don't fit each other."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
from postgres_server import PostgresServer
from spark_cluster import wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAIRS = 100_000
ROWS = 2 * PAIRS
FILLER = 192
#: Rows whose amounts change in one transaction.
MOVED = 50
#: Pairs from here on are never deleted. Amounts move between them only.
MOVING_FROM = PAIRS // 2

# Rows 2k and 2k + 1 are a pair, whose amounts sum up to 0. The filler can hardly be compressed.
DDL = f"""
DROP TABLE IF EXISTS accounts;
CREATE TABLE accounts (id bigint PRIMARY KEY, amount bigint NOT NULL, filler text NOT NULL);
INSERT INTO accounts SELECT i, CASE WHEN i % 2 = 0 THEN i ELSE 1 - i END,
    {" || ".join(f"md5(i || ' {n}')" for n in range(FILLER // 32))}
    FROM generate_series(0, {ROWS - 1}) i;
ANALYZE accounts;
"""
SUMS = (
    "count(*) AS rows",
    "count(DISTINCT id) AS ids",
    "count(DISTINCT id div 2) AS pairs",
    "sum(amount) AS amounts",
    "sum(length(filler)) AS letters",
)


def write(path: Path) -> None:
    """The rows of such a table as a file."""
    letters = os.urandom(ROWS * FILLER // 2).hex()
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "amount": [i if i % 2 == 0 else 1 - i for i in range(ROWS)],
            "filler": [letters[i * FILLER : (i + 1) * FILLER] for i in range(ROWS)],
        }
    )
    pyarrow.parquet.write_table(table, path, row_group_size=ROWS // 20, compression="none")


@contextmanager
def moving(postgres: PostgresServer) -> Iterator[None]:
    """Meanwhile amounts move between rows, and pairs come and go. Each transaction leaves whole
    pairs, and amounts whose sum is 0.
    """
    stopped = threading.Event()
    changes = 0

    def change() -> None:
        nonlocal changes
        draw = random.Random(7)
        with postgres.connect() as connection:
            middle = (2 * MOVING_FROM + ROWS) // 2
            ((last,),) = connection.execute("SELECT max(id) + 1 FROM accounts").fetchall()
            while not stopped.is_set():
                gain = draw.randrange(2 * MOVING_FROM, middle - MOVED)
                lose = draw.randrange(middle, ROWS - MOVED)
                gone = draw.randrange(MOVING_FROM)
                new = last + 2 * changes
                with connection.transaction():
                    connection.execute(
                        "UPDATE accounts SET amount = amount + CASE WHEN id < %(middle)s THEN 7 "
                        "ELSE -7 END WHERE id BETWEEN %(gain)s AND %(gain)s + %(more)s "
                        "OR id BETWEEN %(lose)s AND %(lose)s + %(more)s",
                        {"middle": middle, "gain": gain, "lose": lose, "more": MOVED - 1},
                    )
                    connection.execute(
                        "INSERT INTO accounts SELECT %(new)s + i, 9 - 18 * i, repeat('x', "
                        "%(filler)s) FROM generate_series(0, 1) i",
                        {"new": new, "filler": FILLER},
                    )
                    connection.execute(
                        "DELETE FROM accounts WHERE id BETWEEN %(id)s AND %(id)s + 1",
                        {"id": 2 * gone},
                    )
                changes += 1
                # Dead rows are never removed, and shall stay fewer than the others.
                time.sleep(0.005)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        wait_for(lambda: changes > 0 or not thread.is_alive())
        before = changes
        yield
        assert changes > before > 0, "nothing has changed meanwhile"
    finally:
        stopped.set()
        thread.join()


def check(accounts: DataFrame) -> None:
    """Check that the rows are those of one moment, each of them once."""
    (read,) = accounts.selectExpr(*SUMS).collect()
    assert read.rows == read.ids, "a row came twice"
    assert read.rows == 2 * read.pairs, "half of a pair is missing"
    assert read.amounts == 0, "amounts are of several moments"
    assert read.letters == FILLER * read.rows
    assert read.rows >= ROWS - 2 * MOVING_FROM
