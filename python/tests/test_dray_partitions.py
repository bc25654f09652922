"""Plans of partitions at a Dray server: parts that other processes read, and the proof of it."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from server import Server

import dray

ROWS = 200_000
TOKEN = "s3cret"
TICKET_BYTES = 116


def rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [None if i % 11 == 0 else f"name {i % 97}" for i in range(ROWS)],
            "x": [i / 8 for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as files of each kind: whole, and some in several files."""
    folder = tmp_path_factory.mktemp("parts")
    table = rows()
    pyarrow.parquet.write_table(table, folder / "groups.parquet", row_group_size=9_000)
    pyarrow.csv.write_csv(table, folder / "text.csv")
    with open(folder / "lines.json", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    with pa.ipc.new_file(folder / "batches.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=7_000)
    for kind in ("pq", "csv"):
        (folder / f"many_{kind}").mkdir()
        for i, start in enumerate(range(0, ROWS, 30_000)):
            some = table.slice(start, 30_000)
            path = folder / f"many_{kind}" / f"part{i}"
            if kind == "csv":
                pyarrow.csv.write_csv(some, path.with_suffix(".csv"))
            else:
                pyarrow.parquet.write_table(some, path.with_suffix(".parquet"))
    return folder


TABLES = ("groups", "text", "lines", "batches", "many_pq", "many_csv")
#: One file of this kind can only be read whole.
WHOLE = ("text",)


@pytest.fixture(scope="module", params=["files", "memory"])
def served(
    data: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Server]:
    more = ["--in-memory"] if request.param == "memory" else []
    os.environ.pop("DRAY_TOKEN", None)
    server = serve(data, tmp_path_factory.mktemp("served"), *more)
    yield server
    server.stop()


def serve(data: Path, folder: Path, *more: str) -> Server:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    server = Server(folder, "--token-file", str(token), *more, str(data))
    server.in_memory = "--in-memory" in more  # type: ignore[attr-defined]
    return server


@pytest.fixture
def client(served: Server) -> Iterator[dray.Connection]:
    with dray.connect(served.tcp, token=TOKEN) as connection:
        yield connection


def read(part: bytes, **options: Any) -> tuple[pa.Table, bytes]:
    with dray.read_partition(part, **options) as result:
        table = result.to_arrow()
        assert result.receipt is not None
        return table, result.receipt


def work(part: bytes) -> tuple[int, int, bytes, int]:
    table, receipt = read(part)
    return table.num_rows, sum(table.column("id").to_pylist()), receipt, os.getpid()


def by_id(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).sort_by("id")


def resealed(part: bytes, old: bytes, new: bytes) -> bytes:
    """A descriptor with other bytes and the seal that they need."""
    assert part.count(old) == 1 and len(old) == len(new)
    body = part[:-32].replace(old, new)
    return body + hashlib.sha256(body).digest()


def ticket_at(part: bytes) -> int:
    """Where the ticket begins: it is the last field."""
    return len(part) - 32 - TICKET_BYTES


@pytest.mark.parametrize("table", TABLES)
def test_each_row_once(client: dray.Connection, served: Server, table: str) -> None:
    whole_of_memory = served.in_memory  # type: ignore[attr-defined]
    for sql, params in (
        (f"SELECT * FROM {table}", None),
        (f"SELECT id, upper(name) AS name FROM {table} WHERE x > $1 AND name IS NOT NULL", [9.5]),
    ):
        expected = client.query(sql, params).to_arrow().sort_by("id")
        with client.partitions(sql, params, at_most=1) as one:
            proof = one.verify([read(part)[1] for part in one])
            assert one.reason is not None and "one part" in one.reason
        for at_most in (2, 5, 64):
            with client.partitions(sql, params, at_most=at_most) as plan:
                if table in WHOLE and not whole_of_memory:
                    assert len(plan) == 1 and "whole" in (plan.reason or "")
                else:
                    assert 2 <= len(plan) <= at_most and plan.reason is None
                parts = [read(part) for part in plan]
                assert by_id([part for part, _ in parts]).equals(expected)
                assert all(part.schema == plan.schema for part, _ in parts)
                found = plan.verify([receipt for _, receipt in parts])
                assert (found.rows, found.digest) == (proof.rows, proof.digest)


def test_several_processes(client: dray.Connection) -> None:
    with client.partitions("SELECT id, name FROM groups", at_most=6) as plan:
        assert len(plan) == 6 and plan.columns == ["id", "name"]
        assert sum(estimate.rows or 0 for estimate in plan.estimates) == pytest.approx(ROWS, abs=9)
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            found = pool.map(work, plan.partitions)
        assert sum(total for _, total, _, _ in found) == ROWS * (ROWS - 1) // 2
        assert max(count for count, _, _, _ in found) < ROWS / 3
        assert os.getpid() not in {process for _, _, _, process in found}
        assert plan.verify([receipt for _, _, receipt, _ in found]).rows == ROWS


def test_statements_of_one_part(client: dray.Connection) -> None:
    for sql, why in (
        ("SELECT count(*) AS id FROM groups", "."),
        ("SELECT name, sum(id) AS id FROM groups GROUP BY name", "aggregates"),
        ("SELECT id FROM groups ORDER BY x", "sorts"),
        ("SELECT id FROM groups LIMIT 5", "LIMIT"),
        ("SELECT a.id FROM groups a JOIN text b ON a.id = b.id WHERE b.x < 5", "joins"),
        ("SELECT id, random() AS r FROM groups", "random"),
        ("SELECT id, now() AS n FROM groups", "now"),
        ("SELECT id FROM groups WHERE id < 0 AND false", "reads no table"),
        ("SELECT 1 AS id", "reads no table"),
    ):
        with client.partitions(sql, at_most=4) as plan:
            assert len(plan) == 1, sql
            assert plan.reason is not None and (why == "." or why in plan.reason), plan.reason
            table, receipt = read(plan.partitions[0])
            assert table.num_rows == client.query(sql).to_arrow().num_rows
            assert plan.verify([receipt]).rows == table.num_rows
    # A union is of partitions of its tables.
    sql = "SELECT id FROM groups UNION ALL SELECT id + 1000000 FROM lines WHERE id < 70000"
    with client.partitions(sql, at_most=3) as plan:
        assert len(plan) == 3
        parts = [read(part) for part in plan]
        assert by_id([part for part, _ in parts]).equals(client.query(sql).to_arrow().sort_by("id"))
        plan.verify([receipt for _, receipt in parts])
    # No row is in any part.
    with client.partitions("SELECT id FROM groups WHERE x < -1", at_most=3) as plan:
        assert plan.verify([read(part)[1] for part in plan]).rows == 0


def test_by_default_a_small_table_is_one_part(client: dray.Connection) -> None:
    with client.partitions("SELECT * FROM groups") as plan:
        assert len(plan) == 1 and "small" in (plan.reason or "")


def test_rows_that_were_not_handed_out_have_no_receipt(client: dray.Connection) -> None:
    with client.partitions("SELECT id FROM groups WHERE id < 50", at_most=1) as plan:
        with dray.read_partition(plan.partitions[0]) as result:
            # The rows of the only batch wait in the iterator.
            next(result.rows())
            assert result.receipt is None
        assert result.receipt is None
        with dray.read_partition(plan.partitions[0]) as result:
            next(result.rows())
            result.cancel()
            assert result.receipt is None
        with dray.read_partition(plan.partitions[0]) as result:
            assert len(list(result.rows())) == 50
            assert result.receipt is not None
            assert plan.verify([result.receipt]).rows == 50


def test_a_part_that_is_read_twice(client: dray.Connection) -> None:
    with client.partitions("SELECT id FROM groups", at_most=3) as plan:
        receipts = [read(part)[1] for part in plan]
        # A reader that gives up, then one that succeeds.
        with dray.read_partition(plan.partitions[1], batch_rows=10) as result:
            next(iter(result))
            assert result.receipt is None
        again = read(plan.partitions[1])[1]
        with pytest.raises(dray.ExecutionError, match="part 1 was read twice, with the same rows"):
            plan.verify([*receipts, again])
        with pytest.raises(dray.ExecutionError, match="1 of 3 parts have no receipt: 1"):
            plan.verify([receipts[0], receipts[2]])
        assert plan.verify([receipts[0], again, receipts[2], again]).rows == ROWS


def test_the_lease_ends(client: dray.Connection, served: Server) -> None:
    sql = "SELECT id FROM groups"
    with client.partitions(sql, at_most=2, lease=60) as longer:
        with client.partitions(sql, at_most=2, lease=0.5) as plan:
            time.sleep(0.6)
            for uri in (None, f"{served.unix}?token={TOKEN}"):
                with pytest.raises(dray.ExecutionError, match="the plan's lease ended"):
                    read(plan.partitions[1], uri=uri)
                read(longer.partitions[1], uri=uri)
    for lease in (0, 90_000.0):
        with pytest.raises(dray.UsageError, match="lease"):
            client.partitions("SELECT id FROM groups", lease=lease)


def test_altered_parts(client: dray.Connection) -> None:
    with client.partitions("SELECT id FROM groups", at_most=2) as plan:
        part = plan.partitions[0]
    start = ticket_at(part)
    with pytest.raises(dray.UsageError, match="was changed or damaged"):
        read(part[:start] + bytes([part[start] ^ 1]) + part[start + 1 :])
    for at in range(start, start + TICKET_BYTES):
        body = part[:at] + bytes([part[at] ^ 1]) + part[at + 1 : -32]
        altered = body + hashlib.sha256(body).digest()
        kind: Any = dray.ExecutionError if at < start + 16 else dray.AuthenticationError
        with pytest.raises(kind, match="another run of the server|ticket was changed"):
            read(altered)
    other = resealed(part, b"SELECT id FROM groups", b"SELECT id FROM lines\n")
    with pytest.raises(dray.AuthenticationError, match="is for another statement"):
        read(other)


def test_a_pass_is_for_its_plan(client: dray.Connection, served: Server) -> None:
    with client.partitions("SELECT id FROM groups", at_most=2) as plan:
        part = plan.partitions[0]
    with client.partitions("SELECT id FROM lines", at_most=2) as plan:
        other = plan.partitions[0]
    assert TOKEN.encode() not in part
    at = part.index(b"pass-")
    token = part[at : at + 5 + 144].decode()
    with pytest.raises(dray.AuthenticationError, match="requires a token"):
        dray.connect(served.tcp)
    for statement in ("query", "partitions"):
        with dray.connect(served.tcp, token=token) as limited:
            with pytest.raises(dray.AuthenticationError, match="only for the parts of one plan"):
                getattr(limited, statement)("SELECT id FROM groups")
    with pytest.raises(dray.AuthenticationError, match="only for the parts of one plan"):
        read(other, uri=f"{served.tcp}&token={token}")
    with pytest.raises(dray.AuthenticationError, match="the pass was changed"):
        dray.connect(served.tcp, token=token[:-1] + ("0" if token[-1] != "0" else "1"))
    # The server's own token reads parts, too, and a uri without one gets the pass.
    for uri in (f"{served.tcp}&token={TOKEN}", served.unix):
        assert read(part, uri=uri)[0].num_rows > 0


def test_a_server_that_restarts(data: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    first = serve(data, tmp_path / "one")
    with dray.connect(first.unix, token=TOKEN) as client:
        parts = client.partitions("SELECT id FROM groups", at_most=2).partitions
        read(parts[0])
    first.stop()
    second = serve(data, tmp_path / "one")
    try:
        for uri in (None, f"{second.unix}?token={TOKEN}"):
            with pytest.raises(dray.ExecutionError, match="the server has restarted since"):
                read(parts[0], uri=uri)
    finally:
        second.stop()


def test_files_that_change(data: Path, tmp_path: Path) -> None:
    table = rows()
    pyarrow.parquet.write_table(table, tmp_path / "mine.parquet", row_group_size=20_000)
    (tmp_path / "run").mkdir()
    server = serve(tmp_path / "mine.parquet", tmp_path / "run")
    try:
        with dray.connect(server.unix, token=TOKEN) as client:
            parts = client.partitions("SELECT id FROM mine", at_most=2).partitions
            read(parts[0])
            pyarrow.parquet.write_table(table.slice(5), tmp_path / "mine.parquet")
            with pytest.raises(dray.ExecutionError, match="its table was opened"):
                read(parts[1])
    finally:
        server.stop()


def test_failures(client: dray.Connection) -> None:
    for sql, kind in (
        ("SELECT nothing FROM groups", dray.QueryError),
        ("SELECT FROM WHERE", dray.QueryError),
        ("DROP TABLE groups", dray.QueryError),
    ):
        with pytest.raises(kind):
            client.partitions(sql)
        assert client.query("SELECT 1 AS one").to_arrow().num_rows == 1
    with pytest.raises(dray.UsageError, match="are for PostgreSQL"):
        client.partitions("SELECT 1", numeric="float64")
    with pytest.raises(dray.UsageError, match="at most 0 parts"):
        client.partitions("SELECT 1", at_most=0)
    with pytest.raises(dray.QueryError, match="parameters"):
        client.partitions("SELECT id FROM groups WHERE id = $1")
    result = client.query("SELECT * FROM groups")
    with pytest.raises(dray.UsageError, match="busy"):
        client.partitions("SELECT 1")
    result.close()
    plan = client.partitions("SELECT id FROM groups", at_most=2)
    assert not plan.released
    plan.release()
    # A Dray server keeps nothing that could be given up.
    assert plan.released and read(plan.partitions[0])[0].num_rows > 0


def test_pages_with_fewer_rows_than_the_footer_says(tmp_path: Path) -> None:
    """A part of a file that contradicts itself is an error, not a short result."""
    folder = tmp_path / "mine"
    folder.mkdir()
    table = pa.table({"id": pa.array(range(1234), pa.int64())})
    for name in ("a", "b"):
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", compression="none")
    # In the footer of one file 1235 rows, as Thrift encodes them.
    whole = (folder / "b.parquet").read_bytes()
    said, other = b"\x16\xa4\x13", b"\x16\xa6\x13"
    assert said in whole
    (folder / "b.parquet").write_bytes(whole.replace(said, other))
    server = Server(tmp_path, f"mine={folder}")
    try:
        with dray.connect(server.unix) as client:
            plan = client.partitions("SELECT id FROM mine", at_most=2)
            assert len(plan) == 2 and read(plan.partitions[0])[0].num_rows == 1234
            with pytest.raises(dray.ExecutionError, match="declare 1235 rows, and their pages"):
                read(plan.partitions[1])
    finally:
        server.stop()


def test_a_server_without_a_token(data: Path, tmp_path: Path) -> None:
    server = Server(tmp_path, str(data))
    try:
        with dray.connect(server.tcp) as client:
            plan = client.partitions("SELECT id FROM many_pq WHERE id % 2 = $1", [1], at_most=3)
            assert all(b"?local_socket=false" in part for part in plan)
            assert plan.verify([read(part)[1] for part in plan]).rows == ROWS // 2
    finally:
        server.stop()


def test_parts_over_tls(data: Path, tmp_path: Path, certificates: dict[str, Path]) -> None:
    keys = ("--tls-cert", str(certificates["chain"]), "--tls-key", str(certificates["key"]))
    server = serve(data, tmp_path, *keys)
    try:
        uri, ca = server.tcp.replace("127.0.0.1", "localhost"), certificates["authority"]
        with dray.connect(uri, token=TOKEN, ca=ca) as connection:
            plan = connection.partitions("SELECT * FROM groups", at_most=3)
            read_all = [read(part, ca=ca) for part in plan.partitions]
            assert by_id([table for table, _ in read_all]) == rows()
            assert plan.verify([receipt for _, receipt in read_all]).rows == ROWS
            for wrong in ({}, {"ca": certificates["stranger"]}):
                with pytest.raises(dray.AuthenticationError, match="certificate"):
                    dray.read_partition(plan.partitions[0], **wrong)
    finally:
        server.stop()
