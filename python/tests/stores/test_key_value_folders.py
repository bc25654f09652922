"""Folders named `key=value`, here and in a store: columns, NULL, escapes and pruning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from server import Server, binary
from store_servers import BUCKET, S3, Serve
from test_s3_tables import csv, parquet, query, rows

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture(params=["local", "s3"])
def base(request: pytest.FixtureRequest, s3: S3, tmp_path: Path) -> str:
    """Where tests write: a path, or the URL of a folder."""
    if request.param == "local":
        return str(tmp_path)
    return f"s3://{BUCKET}/{tmp_path.name}"


def write(s3: S3, base: str, key: str, body: bytes) -> None:
    if base.startswith("s3://"):
        s3.put(f"{base.split('/', 3)[3]}/{key}", body)
    else:
        path = Path(base, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def refused(s3: S3, *arguments: str) -> str:
    done = subprocess.run(
        [binary(), "serve", "--listen", "tcp://127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=s3.environment(),
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def columns(server: Server, table: str) -> str:
    sql = f"SELECT columns FROM dray.tables WHERE table_name = '{table}'"
    return str(query(server, sql)[0][0])


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_and_pruning(s3: S3, serve: Serve, base: str, kind: str) -> None:
    encode = parquet if kind == "parquet" else csv
    for year in (2023, 2024):
        for month in ("01", "02", "12"):
            for i in range(2):
                key = f"sales/year={year}/month={month}/day=2024-02-0{i + 1}/{i}.{kind}"
                write(s3, base, key, encode(rows(100)))
    server = serve(f"{base}/sales")
    assert columns(server, "sales").endswith("year Int64, month Utf8, day Date32")
    assert query(server, "SELECT count(*) FROM sales") == [(1200,)]
    by = "SELECT year, month, count(*) FROM sales WHERE id < 10 GROUP BY 1, 2 ORDER BY 1, 2"
    assert query(server, by) == [
        (year, month, 20) for year in (2023, 2024) for month in ("01", "02", "12")
    ]
    for condition, files in (
        ("year = 2024 AND month = '02'", 2),
        ("year > 2023 AND month < '10' AND day = DATE '2024-02-01'", 2),
        ("year + 1 = 2025 OR month = '12'", 8),
        ("month IN ('01', '12') AND id >= 0", 8),
        ("year = 1999", 0),
    ):
        assert query(server, f"SELECT count(*) FROM sales WHERE {condition}") == [(files * 100,)]
        explained = query(server, f"EXPLAIN SELECT id FROM sales WHERE {condition}")
        assert sum(str(row).count(f".{kind}") for row in explained) == files, explained
    if base.startswith("s3://") and kind == "parquet":
        before = len(s3.requests())
        query(server, "SELECT sum(id) FROM sales WHERE year = 2024 AND month = '02'")
        read = [each for each in s3.requests()[before:] if each.startswith("GET")]
        assert read and all("month%3D02" in each or "month=02" in each for each in read), read


def test_missing_and_escaped_values(s3: S3, serve: Serve, base: str) -> None:
    values = {"1": "a%2Fb", "2": "x%20y%", NULL: "%C3%A9", "4": NULL}
    for i, (number, city) in enumerate(values.items()):
        key = f"places/k={number}/city={city}/f.parquet"
        write(s3, base, key, parquet(rows(i + 1)))
    server = serve(f"{base}/places")
    assert columns(server, "places").endswith("k Int64, city Utf8")
    sql = "SELECT k, city, count(*) FROM places GROUP BY 1, 2 ORDER BY 3"
    expected = [(1, "a/b", 1), (2, "x y%", 2), (None, "é", 3), (4, None, 4)]
    assert query(server, sql) == expected
    for condition, count in (
        ("city = 'a/b'", 1),
        ("city = 'x y%'", 2),
        ("k IS NULL", 3),
        ("k IS NOT NULL", 7),
        ("k <> 1", 6),
        ("k = 0", 0),
        ("NOT (k = 0)", 7),
        ("city IS NULL OR city = 'é'", 7),
        ("k IS NULL AND id = 2", 1),
        ("coalesce(k, 0) = 0", 3),
    ):
        found = query(server, f"SELECT count(*) FROM places WHERE {condition}")
        assert found == [(count,)], condition
    # What is answered from statistics.
    assert query(server, "SELECT count(k), min(k), max(k), count(*) FROM places") == [(7, 1, 4, 10)]
    assert query(server, "SELECT count(DISTINCT city) FROM places") == [(3,)]


def test_types_can_be_named(s3: S3, serve: Serve, base: str) -> None:
    for month in ("01", "1", "12"):
        write(s3, base, f"m/month={month}/day=2024-01-31/f.csv", csv(rows(10)))
    server = serve(f"{base}/m", "--partition-types", "month=int,day=text")
    assert columns(server, "m").endswith("month Int64, day Utf8")
    assert query(server, "SELECT count(*) FROM m WHERE month = 1") == [(20,)]
    assert query(server, "SELECT DISTINCT day FROM m") == [("2024-01-31",)]
    said = refused(s3, f"{base}/m", "--partition-types", "month=date")
    assert "'month=01'" in said and "a date" in said
    assert "expected KEY=int" in refused(s3, f"{base}/m", "--partition-types", "month=float")


def test_what_is_no_table(s3: S3, base: str) -> None:
    body = parquet(rows(3))
    for name, keys in {
        "depth": ["a=1/f.parquet", "a=1/b=2/f.parquet"],
        "missing": ["a=1/f.parquet", "f.parquet"],
        "other": ["a=1/f.parquet", "b=1/f.parquet"],
        "between": ["a=1/x/f.parquet", "a=2/x/f.parquet"],
    }.items():
        for key in keys:
            write(s3, base, f"{name}/{key}", body)
        assert "under different key=value folders" in refused(s3, f"{base}/{name}"), name
    write(s3, base, "twice/id=1/f.parquet", body)
    said = refused(s3, f"{base}/twice")
    assert "have a column 'id', and so have its folders 'id=…'" in said
