"""Files by HTTP, in Azure's storage as Azurite has it, in Google's as fake-gcs-server has it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from server import binary
from store_servers import Azurite, GoogleStorage, HttpFiles, Serve
from test_s3_tables import csv, parquet, query, rows

import dray


@pytest.fixture
def azurite(tmp_path: Path) -> Iterator[Azurite]:
    if "DRAY_ALL_VERSIONS" not in os.environ:
        pytest.skip("Azurite is large: DRAY_ALL_VERSIONS brings it")
    server = Azurite(tmp_path)
    yield server
    server.stop()


def test_files_by_http(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "pq.parquet").write_bytes(parquet(rows(5000), row_group_size=500))
    (tmp_path / "text.csv").write_bytes(csv(rows(10)))
    files = HttpFiles(tmp_path)
    server = serve(f"{files.url}/pq.parquet", f"t={files.url}/text.csv")
    assert query(server, "SELECT count(*), max(id) FROM pq WHERE id < 700") == [(700, 699)]
    assert query(server, "SELECT count(*) FROM t WHERE name = 'name 1'") == [(2,)]
    os.utime(tmp_path / "text.csv", (1, 1))
    with pytest.raises(dray.Error, match="'t/text.csv' was replaced"):
        query(server, "SELECT * FROM t")
    files.stop()
    with pytest.raises(dray.Error, match="'pq/pq.parquet' can't be read: .*can't be reached"):
        query(server, "SELECT * FROM pq")


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_a_long_arrow_stream_is_not_read_at_the_start(
    serve: Serve, tmp_path: Path, compression: str | None
) -> None:
    numbers = np.random.default_rng(1).integers(0, 2**63, 6_000_000)
    table = pa.table({"id": numbers})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(tmp_path / "long.arrows", table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1_000_000)
    files = HttpFiles(tmp_path)
    server = serve(f"{files.url}/long.arrows")
    # Its 48 MB are in six messages. The first bytes come with the schema.
    assert files.sent_bytes < 6 << 20
    assert query(server, "SELECT count(*), max(id) FROM long") == [(6_000_000, int(numbers.max()))]
    files.stop()


def refused(*arguments: str) -> str:
    done = subprocess.run(
        [binary(), "serve", "--listen", "tcp://127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_http_servers_that_are_not_enough(tmp_path: Path) -> None:
    (tmp_path / "text.csv").write_bytes(csv(rows(10)))
    files = HttpFiles(tmp_path)
    assert "no file or folder" in refused(f"{files.url}/nothing.csv")
    assert "name a file" in refused(f"{files.url}/")
    files.stop()
    files = HttpFiles(tmp_path, ranges=False)
    assert "does not send ranges" in refused(f"{files.url}/text.csv")
    files.stop()
    files = HttpFiles(tmp_path, modified=False)
    assert "neither ETag nor Last-Modified" in refused(f"{files.url}/text.csv")
    files.stop()


def test_azure(serve: Serve, azurite: Azurite) -> None:
    environment = azurite.environment()
    out = serve("--tpch", "0.01", environment=environment)
    for target in ("az://lake/sales/day=2024-01-01/a.parquet", "az://lake/one.csv"):
        done = subprocess.run(
            [binary(), "export", out.unix, "SELECT * FROM nation", "-o", target],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
    server = serve("az://lake/sales", "abfss://lake/one.csv", environment=environment)
    assert query(server, "SELECT count(*), max(day)::text FROM sales") == [(25, "2024-01-01")]
    assert query(server, "SELECT count(*) FROM one WHERE n_regionkey = 1") == [(5,)]
    azurite.stop()
    with pytest.raises(dray.Error, match="can't be reached"):
        query(server, "SELECT n_name FROM one")


def test_azure_is_asked_before_the_statement_runs(serve: Serve, azurite: Azurite) -> None:
    environment = azurite.environment()
    server = serve("--tpch", "0.01", environment=environment)

    def export(target: str, sql: str, **changes: str) -> tuple[int, str]:
        done = subprocess.run(
            [binary(), "export", server.unix, sql, "-o", target],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment | changes,
        )
        return done.returncode, done.stderr

    # The statement would fail, too, if it ran.
    code, said = export("az://missing/x.csv", "SELECT 1 / 0 AS n")
    assert code != 0 and "no such bucket" in said and "division" not in said, said
    wrong = {"AZURE_STORAGE_ACCOUNT_KEY": "aGlkZGVu"}
    code, said = export("az://lake/x.csv", "SELECT 1 / 0 AS n", **wrong)
    assert code != 0 and "division" not in said and "aGlkZGVu" not in said, said
    # A missing object is fine, and so are an empty one and one with content.
    for sql in ("SELECT 1 AS n WHERE false", "SELECT 2 AS n", "SELECT 3 AS n"):
        code, said = export("az://lake/new.json", sql)
        assert code == 0, said


@pytest.fixture
def google(tmp_path: Path) -> Iterator[GoogleStorage]:
    server = GoogleStorage(tmp_path)
    yield server
    server.stop()


# Nothing is written: the emulator has no uploads by the XML API, which Dray uses.
def test_google(serve: Serve, google: GoogleStorage) -> None:
    for day in (1, 2):
        key = f"sales/day=2024-01-0{day}/a b.parquet"
        google.put(key, parquet(rows(1000 * day), row_group_size=100))
    google.put("one.csv", csv(rows(10)))
    server = serve("gs://lake/sales", "gs://lake/one.csv", environment=google.environment())
    sql = "SELECT day::text, count(*), max(id) FROM sales WHERE id > 500 GROUP BY day ORDER BY day"
    assert query(server, sql) == [("2024-01-01", 499, 999), ("2024-01-02", 1499, 1999)]
    assert query(server, "SELECT count(*) FROM one WHERE name = 'name 1'") == [(2,)]
    google.put("one.csv", csv(rows(11)))
    with pytest.raises(dray.Error, match="'one/one.csv' was replaced"):
        query(server, "SELECT * FROM one")
