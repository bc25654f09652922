"""Exports to an object store: whole objects or none, and no parts left behind."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from server import Server, binary
from store_servers import BUCKET, S3, Serve

#: More than two parts of 16 MiB as CSV, in the order of n.
MANY = "SELECT value AS n, repeat('x', 80) AS t FROM generate_series(1, 600000)"
MANY_ROWS = 600_000


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve("--tpch", "0.01")


def export(s3: S3, server: Server, sql: str, target: str, **changes: str | None) -> tuple[int, str]:
    done = subprocess.run(
        [binary(), "export", server.unix, sql, "-o", target],
        capture_output=True,
        text=True,
        timeout=120,
        env=s3.environment(**changes),
    )
    assert "hidden" not in done.stdout + done.stderr
    return done.returncode, done.stderr


def test_every_format(s3: S3, server: Server, tmp_path: Path) -> None:
    sql = "SELECT * FROM nation ORDER BY n_nationkey"
    for ending in ("parquet", "arrow", "feather", "arrows", "csv", "json", "ndjson", "pages"):
        code, said = export(s3, server, sql, f"s3://{BUCKET}/out/nation.{ending}")
        assert code == 0 and f"s3://{BUCKET}/out/nation.{ending}: 25 rows" in said, said
        local = tmp_path / f"nation.{ending}"
        assert export(s3, server, sql, str(local))[0] == 0
        if ending != "pages":
            assert s3.get(f"out/nation.{ending}") == local.read_bytes(), ending
        else:
            assert len(s3.get(f"out/nation.{ending}")) == local.stat().st_size
    assert s3.uploads() == []


def test_several_parts(s3: S3, server: Server) -> None:
    code, said = export(s3, server, MANY, f"s3://{BUCKET}/out/many.csv")
    assert code == 0, said
    table = pyarrow.csv.read_csv(io.BytesIO(s3.get("out/many.csv")))
    assert table.column("n").to_pylist() == list(range(1, MANY_ROWS + 1))
    parts = [each for each in s3.requests() if "many.csv?partNumber=" in each]
    assert len(parts) == 4, parts
    assert s3.uploads() == []


def test_an_object_is_replaced_as_a_whole(s3: S3, server: Server) -> None:
    s3.put("out/kept.json", b"before")
    broken = "SELECT 1 / (500000 - value) AS n, repeat('x', 99) FROM generate_series(1, 600000)"
    code, said = export(s3, server, broken, f"s3://{BUCKET}/out/kept.json")
    assert code == 1, said
    assert any("kept.json?partNumber=1" in each for each in s3.requests())
    assert s3.get("out/kept.json") == b"before" and s3.uploads() == []
    code, said = export(s3, server, "SELECT 1 AS n", f"s3://{BUCKET}/out/kept.json")
    assert code == 0 and json.loads(s3.get("out/kept.json")) == {"n": 1}
    empty = export(s3, server, "SELECT 1 AS n WHERE false", f"s3://{BUCKET}/out/kept.json")
    assert empty[0] == 0 and s3.get("out/kept.json") == b""


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_the_parts(s3: S3, server: Server, kind: signal.Signals) -> None:
    key = f"out/interrupted-{kind.name}.csv"
    forever = MANY.replace("600000", "1000000000")
    process = subprocess.Popen(
        [binary(), "export", server.unix, forever, "-q", "-o", f"s3://{BUCKET}/{key}"],
        stderr=subprocess.PIPE,
        text=True,
        env=s3.environment(),
    )
    deadline = time.monotonic() + 60
    while not any(f"{key}?partNumber=2" in each for each in s3.requests()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    assert len(s3.uploads()) == 1
    process.send_signal(kind)
    assert process.wait(30) == 130
    assert process.stderr is not None
    process.stderr.close()
    assert s3.uploads() == [] and key not in s3.keys("out/")


@pytest.mark.parametrize(
    ("target", "changes", "expected"),
    [
        ("s3://absent/x.csv", {}, "no such bucket"),
        (f"s3://{BUCKET}/x.csv", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "can't be reached"),
        ("http://127.0.0.1:1/x.csv", {}, "can't be written by HTTP"),
        (f"s3://{BUCKET}/x.csv?sig=hidden", {}, "can't write s3://lake/x.csv: it has a '?'"),
        (
            f"s3://{BUCKET}/x.csv",
            {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None},
            "no credentials: set AWS_ACCESS_KEY_ID",
        ),
    ],
)
def test_failures_come_before_the_query(
    s3: S3, server: Server, target: str, changes: dict[str, str | None], expected: str
) -> None:
    code, said = export(s3, server, "SELECT 1 AS n", target, **changes)
    assert code == 4 and expected in said, said


def test_a_store_that_stops_answering(own_s3: S3, server: Server) -> None:
    process = subprocess.Popen(
        [
            binary(), "export", server.unix, MANY.replace("600000", "1000000000"), "-q",
            "-o", f"s3://{BUCKET}/lost.csv",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=own_s3.environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not any("lost.csv?partNumber=1" in each for each in own_s3.requests()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    own_s3.stop()
    assert process.stderr is not None
    assert "can't write s3://lake/lost.csv: the store can't be reached" in process.stderr.read()
    assert process.wait(60) == 4
    process.stderr.close()


def test_what_is_exported_can_be_served(s3: S3, server: Server, serve: Serve) -> None:
    from test_s3_tables import query

    sql = "SELECT * FROM orders"
    code, said = export(s3, server, sql, f"s3://{BUCKET}/round/orders.parquet")
    assert code == 0, said
    again = serve(f"s3://{BUCKET}/round/orders.parquet")
    total = "SELECT count(*), sum(o_totalprice), max(o_comment) FROM orders"
    assert query(again, total) == query(server, total)
