"""Limits of a server's memory that one client's statements may take, while others are served."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from server import Server

import dray

MIB = 1 << 20
# Memory of a server beyond its --memory: the program, tables, threads, and what the allocator
# retains.
BESIDE = 160 * MIB


class Limited(Server):
    """A server whose peak memory can be read."""

    def restart_peak(self) -> int:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.peak()

    def peak(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        raise AssertionError("no VmHWM")

    def serves(self) -> None:
        with dray.connect(self.unix) as connection:
            assert connection.query("SELECT 1 AS x").arrow().num_rows == 1


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    rng = np.random.default_rng(19)
    rows = 1_000_000
    table = pa.table(
        {"n": pa.array(rng.permutation(rows)), "text": pa.array([f"row {n}" for n in range(rows)])}
    )
    with pa.ipc.new_file(folder / "numbers.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=10_000)
    wide = pa.table({f"c{i}": pa.array(rng.random(250_000)) for i in range(60)})
    with pa.ipc.new_file(folder / "wide.arrow", wide.schema) as file:
        file.write_table(wide, max_chunksize=20_000)
    with pa.ipc.new_file(folder / "whole.arrow", wide.schema) as file:
        file.write_table(wide)
    return folder


@pytest.fixture(scope="module")
def limited(files: Path) -> Iterator[Callable[[str], Limited]]:
    servers: dict[str, Limited] = {}
    folders = []

    def start(memory: str) -> Limited:
        if memory not in servers:
            folder = Path(tempfile.mkdtemp(prefix="dray"))
            folders.append(folder)
            servers[memory] = Limited(folder, str(files), "--memory", memory, "--threads", "2")
        return servers[memory]

    yield start
    for server in servers.values():
        server.stop()
    for folder in folders:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT range(0, 2000000000)",
        "SELECT generate_series(1, 1000000000) FROM numbers",
        "SELECT generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2030-01-01', INTERVAL '1 "
        "second')",
        "SELECT array_resize([1], 1500000000, 0)",
        "SELECT array_repeat(text, 1000000) FROM numbers",
        "SELECT rpad(text, 2000000000) FROM numbers",
        "SELECT lpad('x', 500000000, 'ab')",
        "SELECT repeat('x', 100000) FROM numbers",
        "SELECT repeat(text, 1000000) FROM numbers",
        "SELECT replace(repeat(text, 1000), 'row', repeat('y', 10000)) FROM numbers",
        "SELECT regexp_replace(repeat('x', 60000), 'x', repeat('y', 60000), 'g')",
        "SELECT concat(a, a, a, a, a, a, a, a) FROM (SELECT repeat('x', 60000000) AS a)",
        "SELECT a || a || a || a || a || a || a || a FROM (SELECT repeat('x', 60000000) AS a)",
        "SELECT CASE WHEN n > 0 THEN repeat('x', 60000) ELSE text END FROM numbers",
        "SELECT array_agg(repeat(text, 200)) FROM numbers",
        "SELECT string_agg(repeat(text, 200), ',') FROM numbers",
        "SELECT array_to_string(range(0, 1000000), repeat('-', 10000))",
        "SELECT arrow_cast(NULL, 'FixedSizeBinary(2000000000)') FROM numbers",
        "SELECT CAST(NULL AS INT[2000000000]) FROM numbers",
    ],
)
def test_functions_are_bounded(sql: str, limited: Callable[[str], Limited]) -> None:
    server = limited("128MiB")
    before = server.restart_peak()
    with dray.connect(server.unix) as connection:
        with pytest.raises(dray.Error) as refused:
            for batch in connection.query(sql).batches():
                del batch
    assert refused.value.sqlstate in ("53200", "54000", "22003"), refused.value
    assert server.peak() < before + 128 * MIB + BESIDE, (server.peak() - before) / MIB
    server.serves()


def test_functions_work_within_bounds(limited: Callable[[str], Limited]) -> None:
    with dray.connect(limited("128MiB").unix) as connection:
        for sql, expected in [
            ("SELECT length(repeat('ab', 1000000)) AS x", 2_000_000),
            ("SELECT sum(length(rpad(text, 200))) AS x FROM numbers", 200_000_000),
            ("SELECT sum(length(replace(text, 'row', repeat('y', 300)))) AS x FROM numbers", None),
            ("SELECT array_length(range(0, 1000000)) AS x", 1_000_000),
            ("SELECT sum(length(text || '-' || text)) AS x FROM numbers", None),
            ("SELECT count(*) AS x FROM (SELECT unnest(range(0, 3000000)))", 3_000_000),
            (
                "SELECT max(length(regexp_replace(text, 'r', repeat('z', 50)))) AS x FROM numbers",
                59,
            ),
        ]:
            value = connection.query(sql).arrow()["x"][0].as_py()
            assert expected is None or value == expected, sql


def test_an_unread_statement(limited: Callable[[str], Limited]) -> None:
    server = limited("128MiB")
    before = server.restart_peak()
    sql = "SELECT value, repeat('x', 1000) AS text FROM generate_series(1, 10000000)"
    with dray.connect(server.unix) as connection:
        result = connection.query(sql, chunk_bytes_max=0xFFFFFFFF, row_bytes_max=0xFFFFFFFF)
        batches = result.batches()
        next(iter(batches))
        assert server.peak() < before + 128 * MIB + BESIDE, (server.peak() - before) / MIB
        server.serves()


def test_sorts_wait_for_their_share(limited: Callable[[str], Limited]) -> None:
    server = limited("128MiB")
    failures: list[object] = []

    def sort() -> None:
        try:
            with dray.connect(server.unix) as connection:
                rows = sum(
                    batch.num_rows
                    for batch in connection.query(
                        "SELECT * FROM numbers ORDER BY text, n"
                    ).batches()
                )
                assert rows == 1_000_000
        except Exception as cause:
            failures.append(cause)

    threads = [threading.Thread(target=sort) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_unfinished_requests(limited: Callable[[str], Limited]) -> None:
    server = limited("128MiB")
    hello = b"\x11\0\0\0\x01\0\0\0DRAY\x02\0\x02\0\0\0\0\0\x01\0\0\0t"
    before = server.restart_peak()
    clients = []
    for _ in range(40):
        client = socket.socket(socket.AF_UNIX)
        client.connect(server.unix.removeprefix("dray+unix://"))
        client.sendall(hello)
        client.recv(4096)
        client.setblocking(False)
        clients.append(
            (client, bytearray(struct.pack("<IBxxx", 15 << 20, 2) + b"\1\0\0\0" + bytes(14 << 20)))
        )
    # Send as much as each socket accepts.
    for _ in range(200):
        for client, rest in clients:
            try:
                del rest[: client.send(rest)]
            except BlockingIOError:
                pass
    assert server.peak() < before + 64 * MIB + BESIDE, (server.peak() - before) / MIB
    server.serves()
    for client, _ in clients:
        client.close()


def test_arrow_files(limited: Callable[[str], Limited]) -> None:
    server = limited("64MiB")
    before = server.restart_peak()
    with dray.connect(server.unix) as connection:
        total = connection.query(
            "SELECT count(*) AS x FROM wide WHERE c0 + c1 + c2 + c59 > -1"
        ).arrow()
        assert total["x"][0].as_py() == 250_000
        assert (
            sum(batch.num_rows for batch in connection.query("SELECT * FROM wide").batches())
            == 250_000
        )
        assert server.peak() < before + 64 * MIB + BESIDE / 2, (server.peak() - before) / MIB
        with pytest.raises(dray.Error, match="record batches") as refused:
            connection.query("SELECT * FROM whole").arrow()
        assert refused.value.sqlstate == "53200"
