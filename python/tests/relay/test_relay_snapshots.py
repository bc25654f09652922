"""Plans under the snapshot of an earlier plan: of PostgreSQL, directly and through a Dray server,
of the server's own files, and of MySQL, which has none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from relay_server import NAMES, Relay, relay, sources, wait_until

import dray

ROWS = 40_000
TABLES = """
DROP TABLE IF EXISTS shared_orders, shared_lines;
CREATE TABLE shared_orders AS
    SELECT i AS id, 10 AS amount, repeat('x', 90) AS filler FROM generate_series(1, 40000) i;
CREATE TABLE shared_lines AS
    SELECT i AS id, -10 AS amount, repeat('x', 90) AS filler FROM generate_series(1, 40000) i;
ANALYZE shared_orders, shared_lines;
"""
#: Keeps the sum of both tables at 0.
CHANGE = "UPDATE shared_orders SET amount = amount + 1; UPDATE shared_lines SET amount = amount - 1"


@pytest.fixture(params=["direct", "relayed"])
def uri(request: pytest.FixtureRequest, postgres: PostgresServer, server: Relay) -> str:
    postgres.run(TABLES)
    return postgres.uri() if request.param == "direct" else server.uri("pg")


def total(parts: Iterable[bytes]) -> int:
    """The sum of all amounts."""
    amounts = 0
    for part in parts:
        with dray.read_partition(part) as result:
            amounts += sum(result.to_arrow().column("amount").to_pylist())
    return amounts


def holders(postgres: PostgresServer) -> int:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'"
    with postgres.connect() as oracle:
        (count,) = oracle.execute(sql).fetchone() or (0,)
    return int(count)


def refusal(kind: type[dray.Error], plan: Any) -> dray.Error:
    with pytest.raises(kind) as raised:
        plan()
    return raised.value


def test_two_tables_as_of_one_moment(uri: str, postgres: PostgresServer) -> None:
    with dray.connect(uri) as client:
        orders = client.partitions("SELECT * FROM shared_orders", at_most=3)
        for _ in range(3):
            postgres.run(CHANGE)
        with client.partitions("SELECT * FROM shared_lines", at_most=3) as alone:
            assert total(orders) + total(alone) == -3 * ROWS
        # A plan names the snapshot, and so does any of its parts, in any process.
        for snapshot in (orders, orders.partitions[-1]):
            lines = client.partitions("SELECT * FROM shared_lines", at_most=3, snapshot=snapshot)
            assert (len(orders), len(lines)) == (3, 3)
            assert total(orders) + total(lines) == 0
            lines.release()
        sql = "SELECT sum(amount)::int4 AS amount FROM shared_lines WHERE id > $1"
        with client.partitions(sql, [0], snapshot=orders) as one:
            assert total(one) == -10 * ROWS
        # The later plan outlives the earlier one.
        lines = client.partitions("SELECT * FROM shared_lines", at_most=3, snapshot=orders)
        orders.release()
        again = client.partitions("SELECT * FROM shared_orders", snapshot=lines)
        lines.release()
        assert total(again) == 10 * ROWS
        again.release()
        wait_until(lambda: holders(postgres) == 0)


def test_a_snapshot_that_has_ended(uri: str, postgres: PostgresServer) -> None:
    with dray.connect(uri) as client:
        orders = client.partitions("SELECT * FROM shared_orders")
        part = orders.partitions[0]
        orders.release()
        wait_until(lambda: holders(postgres) == 0)
        short = client.partitions("SELECT * FROM shared_orders", lease=1)
        time.sleep(1.5)
        for snapshot in (orders, part, short):
            error = refusal(
                dray.ExecutionError,
                lambda of=snapshot: client.partitions("SELECT 1 AS one", snapshot=of),
            )
            assert error.sqlstate == "72000" and "the earlier plan's" in error.message
            assert "make all plans anew" in (error.hint or "")
        # The connection is as good as before, and its next plan has no earlier one.
        with client.partitions("SELECT * FROM shared_orders", at_most=3) as plan:
            assert total(plan) == 10 * ROWS
        assert client.query("SELECT 1 AS one").to_arrow().num_rows == 1
        short.release()
        wait_until(lambda: holders(postgres) == 0)


def test_a_table_that_was_emptied(uri: str, postgres: PostgresServer) -> None:
    with dray.connect(uri) as client:
        orders = client.partitions("SELECT * FROM shared_orders")
        postgres.run("TRUNCATE shared_lines")
        for sql in ("SELECT * FROM shared_lines", "SELECT count(*) FROM shared_lines"):
            error = refusal(
                dray.ExecutionError,
                lambda sql=sql: client.partitions(sql, at_most=3, snapshot=orders),
            )
            assert "shared_lines was made, emptied, rewritten or altered after" in error.message
        orders.release()
        wait_until(lambda: holders(postgres) == 0)


def test_mysql_has_none(server: Relay, maria: MariaServer) -> None:
    sql = "SELECT * FROM relayed"
    with dray.connect(server.uri("maria")) as client:
        earlier = client.partitions(sql)
        error = refusal(dray.QueryError, lambda: client.partitions(sql, snapshot=earlier))
        assert error.sqlstate == "0A000"
        assert "can't begin a transaction under the snapshot of another one" in error.message
        with dray.connect(maria.uri()) as direct:
            error = refusal(dray.UsageError, lambda: direct.partitions(sql, snapshot=earlier))
            assert error.sqlstate == "0A000"
            assert "MySQL and MariaDB can't begin a transaction under the snap" in error.message
        earlier.release()


@pytest.mark.parametrize("name", NAMES)
def test_plans_of_something_else(
    postgres: PostgresServer, server: Relay, files: Path, name: str
) -> None:
    other = server.uri("maria" if name == "pg" else "pg")
    with (
        dray.connect(server.uri(name)) as client,
        client.partitions("SELECT * FROM relayed") as earlier,
        dray.connect(other) as another,
        dray.connect(postgres.uri()) as direct,
        dray.connect(server.uri()) as of_files,
    ):
        for wrong in (another, of_files):
            error = refusal(
                dray.UsageError, lambda of=wrong: of.partitions("SELECT 1", snapshot=earlier)
            )
            assert "another source of the Dray server" in error.message
        error = refusal(
            dray.UsageError, lambda: direct.partitions("SELECT 1 AS one", snapshot=earlier)
        )
        assert "of a Dray server, and this is PostgreSQL" in error.message
        with direct.partitions("SELECT 1 AS one") as of_postgres:
            error = refusal(
                dray.UsageError, lambda: client.partitions("SELECT 1", snapshot=of_postgres)
            )
            assert "of PostgreSQL, and this is a Dray server" in error.message
        for nothing in ("no bytes", 7, [], ["text"], b"", b"DRYP"):
            wrong_type: Any = nothing
            refusal(dray.UsageError, lambda of=wrong_type: client.partitions("x", snapshot=of))


def test_tables_of_the_server(server: Relay, files: Path) -> None:
    sql = "SELECT * FROM large_rows"
    with dray.connect(server.uri()) as client, client.partitions(sql) as earlier:
        with client.partitions(sql, snapshot=earlier) as plan:
            count = sum(dray.read_partition(part).to_arrow().num_rows for part in plan)
            assert count == client.query(sql).to_arrow().num_rows > 0
        # The same files at another server may be others.
        with relay(str(files)) as other, dray.connect(other.uri()) as another:
            error = refusal(dray.ExecutionError, lambda: another.partitions(sql, snapshot=earlier))
            assert error.sqlstate == "72000" and "another run of the server" in error.message
            assert another.query(sql).to_arrow().num_rows > 0
        with client.partitions(sql, lease=0.05) as short:
            time.sleep(0.1)
            error = refusal(dray.ExecutionError, lambda: client.partitions(sql, snapshot=short))
            assert error.sqlstate == "72000" and "lease ended" in error.message


def test_a_server_that_restarts(postgres: PostgresServer) -> None:
    postgres.run(TABLES)
    sql = "SELECT * FROM shared_orders"
    served = sources(pg=postgres.uri())
    with relay(*served) as first, dray.connect(first.uri("pg")) as client:
        earlier = client.partitions(sql)
    with relay(*served) as second, dray.connect(second.uri("pg")) as client:
        error = refusal(dray.ExecutionError, lambda: client.partitions(sql, snapshot=earlier))
        assert error.sqlstate == "72000" and "another run of the server" in error.message


def test_asyncio(uri: str, postgres: PostgresServer) -> None:
    async def plan() -> int:
        async with await dray.connect_async(uri) as client:
            async with await client.partitions("SELECT * FROM shared_orders") as orders:
                postgres.run(CHANGE)
                sql = "SELECT * FROM shared_lines"
                async with await client.partitions(sql, snapshot=orders) as lines:
                    return total(orders) + total(lines)

    assert asyncio.run(plan()) == 0
