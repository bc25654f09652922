"""Daft, which reads parts of a plan by its own tasks."""

from __future__ import annotations

import asyncio
import datetime
import random
import re
import time
from decimal import Decimal
from typing import Any

import daft
import pytest
from daft import col
from engine_tables import (
    KINDS,
    PAIRS,
    ROWS,
    TOKEN,
    changing,
    check_whole,
    copied,
    pairs,
    parts_read,
)
from postgres_server import PostgresServer
from relay_server import Relay

import dray
import dray.daft
from dray._relation import Relation


def test_each_row_once_while_rows_change(postgres: PostgresServer) -> None:
    with copied(postgres, "pairs") as table, changing(postgres, table):
        for source in ({"table": table}, {"query": f"SELECT id, amount FROM {table}"}):
            frame = dray.daft.read(postgres.uri(), at_most=5, **source)
            found = frame.to_pydict()
            check_whole(found["id"], found["amount"])


def test_types(postgres: PostgresServer) -> None:
    found = dray.daft.read(postgres.uri(), table="kinds", columns=list(KINDS)).to_pydict()
    assert found == KINDS
    others = dray.daft.read(postgres.uri(), "SELECT label, doc FROM kinds").to_arrow()
    assert others["label"].to_pylist()[0] == "00112233-4455-6677-8899-aabbccddeeff"
    assert others["doc"].to_pylist() == ['{"a": 1}', "[]", None]
    empty = dray.daft.read(postgres.uri(), table="nothing")
    assert empty.to_pydict() == {"id": [], "name": []} and empty.count_rows() == 0
    with pytest.raises(dray.UsageError, match="no type for column 'wide', decimal256"):
        dray.daft.read(postgres.uri(), "SELECT 1::numeric(50,2) AS wide")


def test_the_source_is_asked_for_less(postgres: PostgresServer) -> None:
    frame = dray.daft.read(postgres.uri(), table="pairs", at_most=3)
    start = postgres.log_bytes()
    few = frame.where((col("id") < 100) & (col("filler") == "xxx")).select("amount")
    assert few.sort("amount").to_pydict() == {"amount": [-72, -2]}
    statements = parts_read(postgres, start)
    assert 1 <= len(statements) <= 3
    for statement in statements:
        assert statement.startswith('SELECT "id", "amount", "filler" FROM ONLY "pairs"')
        assert '"id" < 100 AND "filler" = \'xxx\'' in statement
    start = postgres.log_bytes()
    assert len(frame.select("id").limit(7).to_pydict()["id"]) == 7
    assert "LIMIT 7" in postgres.log(start)
    start = postgres.log_bytes()
    assert frame.count_rows() == ROWS
    one = re.compile(r'SELECT "\w+" FROM')
    assert all(one.match(statement) for statement in parts_read(postgres, start))
    # Conditions that Daft alone knows.
    start = postgres.log_bytes()
    assert frame.where(col("filler").length() == 69).count_rows() == ROWS // 70
    assert not any("LIMIT" in s or "69" in s for s in parts_read(postgres, start))


def test_texts_that_the_database_lacks(narrow: str) -> None:
    frame = dray.daft.read(narrow, table="names")
    assert frame.where(col("name") == "🐴").to_pydict() == {"id": [], "name": []}
    assert frame.where(col("name") == "ü").to_pydict()["id"] == [1]


PREDICATES = [
    lambda r: col("id") < r.choice([0, 1, 2**40]),
    lambda r: col("big") >= r.choice([0, 2**63 - 1]),
    lambda r: col("small") != r.choice([7, 8]),
    lambda r: col("price") == Decimal(r.choice(["1.50", "-99.99", "7.77"])),
    lambda r: col("day") > datetime.date(r.choice([1, 2019, 2021]), 1, 1),
    lambda r: col("name") == r.choice(["it's \\ a", "", "A"]),
    lambda r: col("feeling") == r.choice(["sad", "angry"]),
    lambda r: col("padded") == r.choice(["x", "x  ", "abc"]),
    lambda r: col("free") == r.choice(["-0.5", "-0.50"]),
    lambda r: col("flag"),
    lambda r: ~col("flag"),
    lambda r: col("id").is_in([1, r.choice([-2, 3])]),
    lambda r: col("name").is_null(),
    lambda r: col("price").not_null(),
    lambda r: 1 <= col("small"),
    lambda r: col("id").between(-2, r.choice([0, 1])),
    lambda r: col("x") < 0.1,
]


def predicate(r: random.Random, depth: int) -> Any:
    if depth == 0 or r.random() < 0.3:
        return r.choice(PREDICATES)(r)
    left, right = predicate(r, depth - 1), predicate(r, depth - 1)
    return r.choice([lambda: left & right, lambda: left | right, lambda: ~left])()


def test_pushed_conditions_change_nothing(postgres: PostgresServer) -> None:
    pushed = dray.daft.read(postgres.uri(), table="kinds", columns=list(KINDS))
    own = daft.from_arrow(dray.read(postgres.uri(), "SELECT * FROM kinds").select(list(KINDS)))
    start = postgres.log_bytes()
    for seed in range(20):
        where = predicate(random.Random(seed), 3)
        found = pushed.where(where).select("id").to_pydict()
        assert found == own.where(where).select("id").to_pydict(), (seed, where)
    assert postgres.log(start).count(" WHERE ") > 5


def test_a_dray_server(served: Relay) -> None:
    frame = dray.daft.read(served.uri(), table="pairs", token=TOKEN, at_most=4)
    assert frame.sort("id").to_arrow().cast(pairs().schema) == pairs()
    source = dray.daft.DraySource(Relation(served.uri(), None, None, "pairs", {"token": TOKEN}))
    few = frame.where((col("id") >= PAIRS) & col("amount").is_in([PAIRS, -PAIRS])).select("id")
    assert sorted(few.to_pydict()["id"]) == [PAIRS, PAIRS + 1]
    condition = source._relation.conditions.compare("id", ">=", PAIRS)
    part = source._relation.plan(["id"], condition).partitions[0]
    assert f'SELECT "id" FROM "pairs" WHERE "id" >= {PAIRS}'.encode() in part
    assert TOKEN.encode() not in part
    # The same database behind the server.
    behind = dray.daft.read(served.uri("pg"), table="pairs", token=TOKEN, at_most=3)
    found = behind.where(col("id") < 1000).select("id", "amount").to_pydict()
    assert sorted(found["id"]) == list(range(1000)) and sum(found["amount"]) == 0
    behind = dray.daft.read(served.uri("maria"), table="pairs", token=TOKEN, at_most=3)
    few = behind.where((col("id") < 1000) & (col("filler") == "xxx")).select("amount")
    assert sorted(few.to_pydict()["amount"])[:2] == [-982, -912]


def test_wrong_calls(postgres: PostgresServer) -> None:
    uri = postgres.uri()
    with pytest.raises(dray.UsageError, match=r"no option 'atmost' \(did you mean 'at_most'"):
        dray.daft.read(uri, table="pairs", atmost=3)  # type: ignore[call-arg]
    with pytest.raises(dray.UsageError, match="either a query or table="):
        dray.daft.read(uri)
    with pytest.raises(dray.UsageError, match="either a query or table="):
        dray.daft.read(uri, "SELECT 1", table="pairs")
    with pytest.raises(dray.UsageError, match="a table has no parameters"):
        dray.daft.read(uri, table="pairs", params=[1])
    with pytest.raises(dray.QueryError, match="nowhere"):
        dray.daft.read(uri, table="nowhere")
    with pytest.raises(dray.UsageError, match="two columns have the same name"):
        dray.daft.read(uri, "SELECT 1 AS a, 2 AS a")
    found = dray.daft.read(uri, "SELECT $1::integer AS a", [5]).to_pydict()
    assert found == {"a": [5]}


def test_a_dropped_table(postgres: PostgresServer) -> None:
    with copied(postgres, "kinds") as table:
        frame = dray.daft.read(postgres.uri(), table=table)
        postgres.run(f"DROP TABLE {table}")
        with pytest.raises(Exception, match=f"{table}.* does not exist"):
            frame.to_pydict()


def test_the_lease_ends(postgres: PostgresServer) -> None:
    relation = Relation(postgres.uri(), None, None, "pairs", {"lease": 1.0, "at_most": 2})
    source = dray.daft.DraySource(relation)

    async def read_late() -> None:
        tasks = [task async for task in source.get_tasks(daft.io.pushdowns.Pushdowns.empty())]
        assert len(tasks) == 2
        await asyncio.sleep(1.2)
        async for _ in tasks[0].read():
            pass

    with pytest.raises(dray.ExecutionError, match="lease ended"):
        asyncio.run(read_late())
    # Computed again, a frame has another plan.
    frame = dray.daft.read(postgres.uri(), table="pairs", lease=1.0, at_most=2)
    for _ in range(2):
        assert frame.count_rows() == ROWS
        time.sleep(1.2)


def test_connections_are_bounded(postgres: PostgresServer) -> None:
    frame = dray.daft.read(postgres.uri(), table="pairs", at_most=8, max_connections=2)
    start = postgres.log_bytes()
    assert frame.count_rows() == ROWS
    assert len(parts_read(postgres, start)) == 2
