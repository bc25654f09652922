"""Servers over one store read the parts of each other's plans."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from server import Server
from store_servers import BUCKET, S3, Serve
from test_s3_tables import csv, parquet, rows

import dray

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return str(path)


def sent_to(part: bytes, maker: Server, reader: Server) -> bytes:
    """The descriptor with another server's address, and the seal that it needs."""
    old, new = maker.address.encode(), reader.address.encode()
    assert part.count(old) == 1 and len(old) == len(new)
    body = part[:-32].replace(old, new)
    return body + hashlib.sha256(body).digest()


def plan(server: Server, sql: str) -> tuple[list[bytes], dray.Partitions]:
    with dray.connect(server.tcp) as connection:
        partitions = connection.partitions(sql, at_most=6)
        return list(partitions), partitions


def read(part: bytes) -> tuple[pa.Table, bytes]:
    with dray.read_partition(part) as result:
        table = result.to_arrow()
        assert result.receipt is not None
        return table, result.receipt


@pytest.mark.parametrize("sql", ["SELECT * FROM t", "SELECT * FROM t ORDER BY id LIMIT 100000"])
def test_two_servers_read_one_plan(s3: S3, serve: Serve, secret: str, sql: str) -> None:
    for i in range(4):
        s3.put(f"planned/{i}.parquet", parquet(rows(40_000).slice(i * 10_000, 10_000)))
    table = f"t=s3://{BUCKET}/planned"
    first, second = serve(table, "--plan-secret", secret), serve(table, "--plan-secret", secret)
    parts, partitions = plan(first, sql)
    assert len(parts) == (1 if "ORDER" in sql else 4)
    results = [
        read(part if i % 2 else sent_to(part, first, second)) for i, part in enumerate(parts)
    ]
    whole = pa.concat_tables([table for table, _ in results]).sort_by("id")
    assert whole.column("id").to_pylist() == list(range(40_000))
    assert partitions.verify([receipt for _, receipt in results]).rows == 40_000
    # A plan outlives the server that made it.
    first.stop()
    again = [read(sent_to(part, first, second))[0].num_rows for part in parts]
    assert sum(again) == 40_000


def test_a_server_without_the_secret_or_with_other_objects(
    s3: S3, serve: Serve, secret: str, tmp_path: Path
) -> None:
    s3.put("other/a.csv", csv(rows(1000)))
    s3.put("other/b.csv", csv(rows(1000)))
    table = f"t=s3://{BUCKET}/other"
    maker = serve(table, "--plan-secret", secret)
    parts, _ = plan(maker, "SELECT * FROM t")
    whole, _ = plan(maker, "SELECT sum(id) AS id FROM t")
    wrong = tmp_path / "wrong"
    wrong.write_text(SECRET[::-1])
    others = {
        "another run": [serve(table)],
        "another secret, or serves other files": [
            serve(table, "--plan-secret", str(wrong)),
            serve(table, "--plan-secret", secret, "--no-header"),
            serve(f"u=s3://{BUCKET}/other", table, "--plan-secret", secret),
        ],
    }
    # Same size, other rows.
    s3.put("other/b.csv", csv(rows(1000)).replace(b"name 1", b"Name 1"))
    others["another secret, or serves other files"].append(serve(table, "--plan-secret", secret))
    for expected, servers in others.items():
        for server in servers:
            for part in (parts[0], whole[0]):
                with pytest.raises(dray.Error, match=expected):
                    read(sent_to(part, maker, server))
    # The maker itself does not read the new object either.
    for part in (parts[-1], whole[0]):
        with pytest.raises(dray.Error, match="was replaced"):
            read(part)
    s3.put("other/b.csv", csv(rows(1000)))
    assert sum(read(part)[0].num_rows for part in parts) == 2000


def test_plans_of_local_files_outlive_a_restart(serve: Serve, secret: str, tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}.csv").write_bytes(csv(rows(100)))
    table = f"t={tmp_path}"
    first, second = serve(table, "--plan-secret", secret), serve(table, "--plan-secret", secret)
    parts, _ = plan(first, "SELECT * FROM t")
    first.stop()
    assert sum(read(sent_to(part, first, second))[0].num_rows for part in parts) == 200


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    from test_outputs import run

    (tmp_path / "short").write_text("guessable")
    done = run("serve", "--tpch", "0.01", "--plan-secret", tmp_path / "short")
    assert done.returncode == 2 and "9 characters, expected 32" in done.stderr
    assert "guessable" not in done.stderr
