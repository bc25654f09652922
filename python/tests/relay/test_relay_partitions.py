"""Plans of partitions of a source: the server holds one snapshot, and others read the parts."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import adbc_client
import pyarrow as pa
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from relay_server import Relay, one, relay, sources, wait_until

import dray

ROWS = 200_000
TOKEN = "s3cret"
TABLE = f"parted_{os.getpid()}"


@pytest.fixture(scope="module")
def databases(postgres: PostgresServer, maria: MariaServer) -> Iterator[dict[str, str]]:
    """The uris of the databases. Each has a table of rows in pairs, whose amounts sum up to 0."""
    columns = f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, amount bigint NOT NULL, filler text)"
    row = "{0}, CASE WHEN {0} % 2 = 0 THEN {0} ELSE -{0} + 1 END, {1}"
    of_postgres = row.format("i", "repeat('x', i % 70)")
    of_maria = row.format("seq", "repeat('x', seq % 70)")
    last = ROWS - 1
    postgres.run(
        f"{columns}; INSERT INTO {TABLE} SELECT {of_postgres} FROM generate_series(0, {last}) i; "
        f"ANALYZE {TABLE}"
    )
    maria.run(
        columns,
        f"INSERT INTO {TABLE} SELECT {of_maria} FROM seq_0_to_{last}",
        f"ANALYZE TABLE {TABLE}",
    )
    yield {"pg": postgres.uri(), "maria": maria.uri()}
    postgres.run(f"DROP TABLE {TABLE}")
    maria.run(f"DROP TABLE {TABLE}")


@pytest.fixture(scope="module")
def served(databases: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    with serve(databases, tmp_path_factory.mktemp("relayed")) as server:
        yield server


def serve(databases: dict[str, str], folder: Path, *more: str) -> AbstractContextManager[Relay]:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    os.environ.pop("DRAY_TOKEN", None)
    return relay(*sources(**databases), "--token-file", str(token), *more)


@pytest.fixture
def client(served: Relay, name: str) -> Iterator[dray.Connection]:
    with dray.connect(served.uri(name, TOKEN)) as connection:
        yield connection


def read(part: bytes) -> tuple[pa.Table, bytes]:
    with dray.read_partition(part) as result:
        table = result.to_arrow()
        assert result.receipt is not None
        return table, result.receipt


def work(part: bytes) -> tuple[int, int, bytes, int]:
    table, receipt = read(part)
    return table.num_rows, sum(table.column("id").to_pylist()), receipt, os.getpid()


def changes(postgres: PostgresServer, maria: MariaServer, name: str, *statements: str) -> None:
    (postgres if name == "pg" else maria).run(*statements)


def test_several_processes(client: dray.Connection, name: str) -> None:
    sql = f"SELECT id, amount, filler FROM {TABLE}"
    with client.partitions(sql, at_most=4) as plan:
        assert 2 <= len(plan) <= 4 and plan.reason is None
        assert plan.columns == ["id", "amount", "filler"]
        expected = sum(estimate.rows or 0 for estimate in plan.estimates)
        assert ROWS / 3 < expected < ROWS * 3
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            done = pool.map(work, list(plan), chunksize=1)
        assert sum(rows for rows, *_ in done) == ROWS
        assert sum(total for _, total, *_ in done) == ROWS * (ROWS - 1) // 2
        assert one(client, "SELECT 1") == 1, "the connection is free"
        proof = plan.verify([receipt for _, _, receipt, _ in done])
        assert (proof.rows, proof.parts) == (ROWS, len(plan))
    with client.partitions(sql, at_most=1) as plan:
        assert len(plan) == 1 and "one was asked for" in (plan.reason or "")
        table, receipt = read(plan.partitions[0])
        assert table.schema == plan.schema
        assert plan.verify([receipt]).digest == proof.digest


def test_the_snapshot_holds(
    postgres: PostgresServer, maria: MariaServer, client: dray.Connection, name: str
) -> None:
    """Whatever others write, between the plan and the parts, and between the parts."""
    sql = f"SELECT id, amount FROM {TABLE}"
    plan = client.partitions(sql, at_most=5)
    tables, receipts = [], []
    for i, part in enumerate(plan):
        moved = f"UPDATE {TABLE} SET amount = -amount WHERE id % 7 = {i}"
        added = f"INSERT INTO {TABLE} VALUES ({-i - 1}, 1000, 'new')"
        gone = f"DELETE FROM {TABLE} WHERE id = {ROWS + i}"
        changes(postgres, maria, name, moved, added, gone)
        table, receipt = read(part)
        tables.append(table)
        receipts.append(receipt)
    whole = pa.concat_tables(tables).sort_by("id")
    assert whole.column("id").to_pylist() == list(range(ROWS))
    assert sum(whole.column("amount").to_pylist()) == 0
    # A part reads the same again, as long as the plan is held.
    again, _ = read(plan.partitions[0])
    assert again.sort_by("id").equals(tables[0].sort_by("id"))
    assert plan.verify(receipts).rows == ROWS
    restored = f"UPDATE {TABLE} SET amount = CASE WHEN id % 2 = 0 THEN id ELSE 1 - id END"
    changes(postgres, maria, name, f"DELETE FROM {TABLE} WHERE id < 0", restored)


def test_one_part(client: dray.Connection, name: str) -> None:
    for sql in (f"SELECT count(*) AS n FROM {TABLE}", "SELECT 1 AS n", "SELECT 1 AS n WHERE 1 = 0"):
        expected = client.query(sql).to_arrow()
        with client.partitions(sql) as plan:
            assert len(plan) == 1 and plan.reason
            table, receipt = read(plan.partitions[0])
            assert table.to_pydict() == expected.to_pydict()
            assert plan.verify([receipt]).rows == table.num_rows


def test_parts_that_wait(tmp_path: Path) -> None:
    """A part of one connection waits for a lock as long as a statement does: nobody waits behind
    it. No limit of idleness ends what is held.
    """
    maria = MariaServer(idle_readonly_transaction_timeout=2)
    try:
        maria.run(
            "CREATE TABLE waiting (id int PRIMARY KEY, text varchar(40))",
            f"INSERT INTO waiting SELECT seq, 'x' FROM seq_1_to_{ROWS}",
            "ANALYZE TABLE waiting",
        )
        with serve({"maria": maria.uri()}, tmp_path) as served:
            with dray.connect(served.uri("maria", TOKEN)) as client:
                joined = "SELECT count(*) AS n FROM waiting a JOIN waiting b USING (id)"
                with client.partitions(joined) as plan:
                    assert len(plan) == 1
                    with contextlib.closing(maria.connect()) as other:
                        cursor = other.cursor()
                        cursor.execute("LOCK TABLES waiting WRITE")
                        unlock = threading.Timer(3, cursor.execute, ["UNLOCK TABLES"])
                        unlock.start()
                        assert read(plan.partitions[0])[0]["n"].to_pylist() == [ROWS]
                        unlock.join()
                with client.partitions("SELECT id FROM waiting", at_most=3) as plan:
                    assert len(plan) > 1
                    time.sleep(4)
                    assert sum(read(part)[0].num_rows for part in plan) == ROWS
    finally:
        maria.stop()


def test_parameters(client: dray.Connection, name: str) -> None:
    marker = "$1" if name == "pg" else "?"
    sql = f"SELECT id FROM {TABLE} WHERE id < {marker}"
    with client.partitions(sql, [ROWS // 2], at_most=3) as plan:
        parts = [read(part) for part in plan]
        found = sorted(i for table, _ in parts for i in table.column("id").to_pylist())
        assert found == list(range(ROWS // 2))
        plan.verify([receipt for _, receipt in parts])


def test_statements_that_have_no_parts(client: dray.Connection, name: str) -> None:
    for sql in (f"SELECT nothing FROM {TABLE}", "SELECT * FROM nowhere", "SELEC 1"):
        with pytest.raises(dray.Error) as caught:
            client.partitions(sql)
        assert caught.value.sqlstate
    with pytest.raises(dray.QueryError, match="read-only"):
        client.partitions(f"DELETE FROM {TABLE}")
    assert one(client, f"SELECT count(*) FROM {TABLE}") == ROWS


def test_what_only_the_session_has(maria: MariaServer, tmp_path: Path) -> None:
    """Other connections have other variables, tables and numbers: an error, and no other rows."""
    with (
        serve({"maria": maria.uri()}, tmp_path, "--source-writable", "maria") as server,
        dray.connect(server.uri("maria", TOKEN)) as client,
    ):
        assert one(client, "SELECT @x := 5") == 5
        client.query(f"CREATE TEMPORARY TABLE {TABLE} AS SELECT 1 AS id").close()
        for sql, why in [
            (f"SELECT id FROM {TABLE}", "temporary table"),
            (f"SELECT a.id FROM relayed a, shop.`{TABLE}` b WHERE a.id = b.id", "temporary table"),
            (f"SELECT count(*) AS n FROM (SELECT 1 FROM {TABLE}) t", "temporary table"),
            ("SELECT id FROM relayed WHERE id < @x", "variables"),
            ("SELECT @@session.sql_mode AS mode", "variables"),
            ("SELECT last_insert_id() AS i", "last_insert_id"),
            ("SELECT found_rows() AS n", "found_rows"),
            ("SHOW WARNINGS", "not a plain SELECT"),
        ]:
            for at_most in (None, 1):
                with pytest.raises(dray.QueryError, match=f"other connections.*{why}"):
                    client.partitions(sql, at_most=at_most)
        client.query(f"DROP TEMPORARY TABLE {TABLE}").close()
        with client.partitions(f"SELECT count(*) AS n FROM {TABLE}") as plan:
            assert read(plan.partitions[0])[0]["n"].to_pylist() == [ROWS]


def test_limits_of_the_session(maria: MariaServer, tmp_path: Path) -> None:
    """Other connections get them."""
    sql = "SELECT group_concat(name ORDER BY id) AS names FROM relayed"
    with (
        serve({"maria": maria.uri()}, tmp_path, "--source-writable", "maria") as server,
        dray.connect(server.uri("maria", TOKEN)) as client,
    ):
        client.query("SET SESSION group_concat_max_len = 20").close()
        with client.partitions(sql) as plan:
            assert read(plan.partitions[0])[0]["names"].to_pylist() == ["row 1,row 2,row 3,ro"]


def test_estimates_are_of_their_statement(client: dray.Connection, name: str) -> None:
    with client.partitions(f"SELECT id FROM {TABLE}", at_most=3) as plan:
        assert plan.estimates[0].rows
    with client.partitions("SELECT 1 AS n") as plan:
        assert plan.estimates[0].rows in (None, 1)


def test_passes_open_their_plan_alone(served: Relay, client: dray.Connection, name: str) -> None:
    sql = f"SELECT id FROM {TABLE}"
    other = "maria" if name == "pg" else "pg"
    with client.partitions(sql, at_most=2) as plan:
        part = plan.partitions[0]
        assert TOKEN.encode() not in part
        start = part.index(b"pass-")
        length = int.from_bytes(part[start - 4 : start], "little")
        token = part[start : start + length].decode()
        with dray.connect(served.uri(name, token)) as reader:
            with pytest.raises(dray.AuthenticationError, match="only for the parts of one plan"):
                reader.query(sql).to_arrow()
        for elsewhere in ("", other, "none"):
            with pytest.raises(dray.AuthenticationError, match="that you may use|holds no plan"):
                dray.connect(served.uri(elsewhere, token))
        # A part of one source can't be read from another, whoever asks.
        with pytest.raises(dray.ExecutionError, match="of another source"):
            dray.read_partition(part, uri=served.uri(other, TOKEN)).to_arrow()
        read(part)


def sessions(postgres: PostgresServer, maria: MariaServer, name: str) -> set[int]:
    """The sessions of other programs."""
    if name == "maria":
        found = maria.rows(
            "SELECT id FROM information_schema.processlist "
            "WHERE user <> 'system user' AND id <> connection_id()"
        )
    else:
        sql = (
            "SELECT pid FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        with postgres.connect() as oracle:
            found = oracle.execute(sql).fetchall()
    return {int(session) for (session,) in found}


def test_the_lease_ends(
    postgres: PostgresServer, maria: MariaServer, client: dray.Connection, name: str
) -> None:
    assert one(client, "SELECT 1") == 1
    before = sessions(postgres, maria, name)
    plan = client.partitions(f"SELECT id FROM {TABLE}", at_most=3, lease=2)
    held = sessions(postgres, maria, name) - before
    assert held
    time.sleep(2.1)
    wait_until(lambda: not held & sessions(postgres, maria, name))
    with pytest.raises(dray.ExecutionError, match="lease ended"):
        read(plan.partitions[0])


def test_released(
    postgres: PostgresServer, maria: MariaServer, client: dray.Connection, name: str
) -> None:
    """The server holds nothing for a plan that was verified, released or dropped."""
    sql = f"SELECT id FROM {TABLE}"
    assert one(client, "SELECT 1") == 1
    before = sessions(postgres, maria, name)
    plan = client.partitions(sql, at_most=3)
    held = sessions(postgres, maria, name) - before
    assert held
    plan.verify([read(part)[1] for part in plan])
    wait_until(lambda: not held & sessions(postgres, maria, name))
    with pytest.raises(dray.Error, match="holds no plan of this pass"):
        read(plan.partitions[0])
    for _ in range(20):
        with client.partitions(sql, at_most=3) as plan:
            assert len(plan) > 1
    wait_until(lambda: sessions(postgres, maria, name) <= before)


def test_released_where_nobody_needs_a_token(
    postgres: PostgresServer, maria: MariaServer, server: Relay, name: str
) -> None:
    with dray.connect(server.uri(name)) as client:
        assert one(client, "SELECT 1") == 1
        before = sessions(postgres, maria, name)
        for _ in range(3):
            with client.partitions("SELECT 1 AS i") as plan:
                assert len(plan) == 1 and sessions(postgres, maria, name) - before
        wait_until(lambda: sessions(postgres, maria, name) <= before)


def test_connections_are_counted(databases: dict[str, str], tmp_path: Path, name: str) -> None:
    limits = ["--source-connections", f"{name}=4", "--wait-timeout", "1"]
    sql = f"SELECT id FROM {TABLE}"
    with serve(databases, tmp_path, *limits) as server:
        # Until the server has looked, it has a connection of its own.
        wait_until(lambda: server.log().count("the source is there") == 2)
        uri = server.uri(name, TOKEN)
        with dray.connect(uri) as planner, dray.connect(uri) as other, dray.connect(uri) as last:
            plan = planner.partitions(sql, at_most=8)
            assert len(plan) > 1, plan.reason
            # The planner has one, and so has its plan of PostgreSQL; one of MariaDB has two.
            assert one(other, "SELECT 1") == 1
            read(plan.partitions[0])
            if name == "maria":
                with pytest.raises(dray.Error, match="waited 1s for a connection"):
                    one(last, "SELECT 1")
                # Its readers need no others.
                read(plan.partitions[0])
            else:
                assert one(last, "SELECT 1") == 1
                with pytest.raises(dray.Error, match="waited 1s for a connection"):
                    read(plan.partitions[0])
        read(plan.partitions[0])


def test_lost_connections(
    postgres: PostgresServer, maria: MariaServer, client: dray.Connection, name: str
) -> None:
    assert one(client, "SELECT 1") == 1
    before = sessions(postgres, maria, name)
    plan = client.partitions(f"SELECT id FROM {TABLE}", at_most=3)
    lost = sessions(postgres, maria, name) - before
    for session in lost:
        kill = {"pg": f"SELECT pg_terminate_backend({session})", "maria": f"KILL {session}"}
        changes(postgres, maria, name, kill[name])
    wait_until(lambda: not lost & sessions(postgres, maria, name))
    for part in plan:
        with pytest.raises(dray.Error):
            read(part)
    # A connection that is found to be lost is not tried again.
    with pytest.raises(dray.Error, match="lost|gone"):
        read(plan.partitions[0])
    with client.partitions(f"SELECT id FROM {TABLE}", at_most=3) as again:
        again.verify([read(part)[1] for part in again])


def test_adbc(served: Relay, name: str) -> None:
    uri = served.uri(name, TOKEN)
    options = {"dray.at_most": "3"}
    with adbc_client.connect(uri, options) as planner, adbc_client.connect(uri) as reader:
        with planner.cursor() as cursor:
            parts, schema = cursor.adbc_execute_partitions(f"SELECT id FROM {TABLE}")
        assert 2 <= len(parts) <= 3 and schema is not None and schema.names == ["id"]
        rows = 0
        for part in parts:
            with reader.cursor() as cursor:
                cursor.adbc_read_partition(part)
                rows += cursor.fetch_arrow_table().num_rows
        assert rows == ROWS


def test_over_a_unix_socket(served: Relay, name: str) -> None:
    """Descriptors name the source, however the planner has connected."""
    for uri, options in (
        (f"{served.unix}?source={name}", {}),
        (f"{served.unix}?source={name}", {"local_socket": False}),
        (served.uri(name), {"local_socket": False}),
    ):
        with dray.connect(uri, token=TOKEN, **options) as planner:
            with planner.partitions(f"SELECT id FROM {TABLE}", at_most=3) as plan:
                parts = [read(part) for part in plan]
                assert sum(table.num_rows for table, _ in parts) == ROWS
                plan.verify([receipt for _, receipt in parts])
