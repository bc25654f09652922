"""Databases that the bridge dray-adbc reads by their ADBC drivers, behind a Dray server."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import adbc_driver_postgresql
import adbc_driver_sqlite
import pyarrow as pa
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

ROWS = 300_000
SQLITE = adbc_driver_sqlite._driver_path()
POSTGRESQL = adbc_driver_postgresql._driver_path()


def adbc(driver: str, **options: str) -> str:
    pairs = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    return f"adbc:{driver}?{pairs}"


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("lite") / "lite.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE numbers (id integer, name text)")
        names = ((i, f"row {i}") for i in range(ROWS))
        database.executemany("INSERT INTO numbers VALUES (?, ?)", names)
        database.execute("CREATE TABLE types (i integer, s text, b blob, r real)")
        database.execute("INSERT INTO types VALUES (-9223372036854775808, 'ü', x'00ff', 1e300)")
        database.execute("INSERT INTO types VALUES (NULL, NULL, NULL, NULL)")
    return adbc(SQLITE, uri=f"file:{path}")


@pytest.fixture(scope="module")
def server(lite: str, postgres: PostgresServer) -> Iterator[Relay]:
    arguments = sources(lite=lite, written=lite, pg=adbc(POSTGRESQL, uri=postgres.uri()))
    with relay(*arguments, "--source-writable", "written") as server:
        yield server


@pytest.fixture
def connection(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("lite")) as connection:
        yield connection


def bridges(server: Relay) -> set[int]:
    """The processes of a server's bridges."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rsplit(")", 1)
        except OSError:
            continue
        if rest.split()[1] == str(server.process.pid) and "dray-adbc" in name:
            found.add(int(stat.parent.name))
    return found


def test_types(connection: dray.Connection) -> None:
    table = connection.query("SELECT * FROM types").arrow()
    assert table.schema.types == [pa.int64(), pa.string(), pa.binary(), pa.float64()]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (-(2**63), "ü", b"\0\xff", 1e300),
        (None, None, None, None),
    ]


def test_rows_and_empty_results(connection: dray.Connection) -> None:
    table = connection.query("SELECT * FROM numbers").arrow()
    assert table["id"].to_pylist() == list(range(ROWS))
    assert table["name"][ROWS - 1].as_py() == f"row {ROWS - 1}"
    empty = connection.query("SELECT id FROM numbers WHERE id < 0").arrow()
    assert empty.num_rows == 0 and empty.schema.names == ["id"]


def test_parameters(connection: dray.Connection) -> None:
    sql = "SELECT name, ? AS t FROM numbers WHERE id = ?"
    assert list(connection.query(sql, ["ü", 7]).rows()) == [("row 7", "ü")]


def test_large_values(connection: dray.Connection) -> None:
    sql = "SELECT hex(zeroblob(?)) AS t"
    assert one(connection, "SELECT length(hex(zeroblob(4000000)))") == 8_000_000
    (row,) = list(connection.query(sql, [4_000_000]).rows())
    assert row == ("0" * 8_000_000,)
    with pytest.raises(dray.LimitError, match="row_bytes_max"):
        connection.query(sql, [4_000_000], row_bytes_max=4 << 20, chunk_bytes_max=1 << 20).arrow()
    assert one(connection, "SELECT 1") == 1


def test_reading_only(server: Relay, connection: dray.Connection) -> None:
    for sql in ("DELETE FROM numbers", "COMMIT", "SELECT 1; DELETE FROM numbers; COMMIT"):
        with pytest.raises(dray.QueryError, match="the source lite is read-only: ") as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == "25006"
    # It begins with a word that reads, and is rolled back.
    connection.query("WITH x AS (SELECT 1) DELETE FROM numbers").arrow()
    assert one(connection, "SELECT count(*) FROM numbers") == ROWS
    with dray.connect(server.uri("written")) as client:
        client.query("CREATE TABLE mine (i integer)").arrow()
        client.query("INSERT INTO mine VALUES (1), (2)").arrow()
    with dray.connect(server.uri("written")) as client:
        assert one(client, "SELECT count(*) FROM mine") == 2


def test_errors(connection: dray.Connection, server: Relay) -> None:
    with pytest.raises(dray.QueryError, match="no such table: nowhere"):
        connection.query("SELECT * FROM nowhere").arrow()
    assert one(connection, "SELECT 1") == 1
    with dray.connect(server.uri("pg")) as client:
        with pytest.raises(dray.QueryError, match="nothing") as caught:
            client.query("SELECT nothing").arrow()
        assert caught.value.sqlstate == "42703"
        with pytest.raises(dray.ExecutionError, match="division by zero"):
            client.query("SELECT 1 / (1000 - i) FROM generate_series(1, 2000) i").arrow()
        assert one(client, "SELECT 1") == 1


def test_postgresql(server: Relay, postgres: PostgresServer) -> None:
    sql = (
        "SELECT i, i::bigint * i AS b, 'row ' || i AS t, '2024-02-29'::date AS d, "
        "0.1::float8 AS f, timestamptz '2024-02-29 12:00+02' AS tz, i % 2 = 0 AS bool "
        "FROM generate_series(1, 200000) i"
    )
    with dray.connect(server.uri("pg")) as client, dray.connect(postgres.uri()) as direct:
        table, expected = client.query(sql).arrow(), direct.query(sql).arrow()
        assert table.to_pydict() == expected.to_pydict()
        assert list(client.query("SELECT $1::int + 1 AS i", [5]).rows()) == [(6,)]
        with pytest.raises(dray.Error):
            client.query("SELECT 1; DELETE FROM relayed; COMMIT").arrow()
        client.query("WITH x AS (DELETE FROM relayed RETURNING 1) SELECT count(*) FROM x").arrow()
        assert one(client, "SELECT count(*) FROM relayed") == 1000
        # Rows that flow are cancelled between them.
        result = client.query("SELECT generate_series(1, 100000000000) AS i")
        next(result.batches())
        result.cancel()
        assert one(client, "SELECT 1") == 1


def test_cancelling_a_driver_that_cannot(server: Relay) -> None:
    """SQLite's driver has no cancel: the session ends, and its process with it."""
    forever = (
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c"
    )
    command = [str(binary()), "query", server.uri("lite"), forever]
    before = bridges(server)
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(bridges(server) - before) == 1)
    time.sleep(0.5)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=15)
    assert client.returncode == 130
    wait_until(lambda: bridges(server) <= before)


def test_a_crash_ends_one_session(server: Relay) -> None:
    with dray.connect(server.uri("lite")) as first:
        before = bridges(server)
        assert one(first, "SELECT 1") == 1
        (mine,) = bridges(server) - before
        with dray.connect(server.uri("lite")) as second:
            assert one(second, "SELECT 2") == 2
            os.kill(mine, signal.SIGABRT)
            with pytest.raises(dray.ConnectionError, match="the source lite: its bridge ended"):
                first.query("SELECT 3").arrow()
            assert one(second, "SELECT 4") == 4
            assert one(first, "SELECT 5") == 5


def test_what_is_missing(tmp_path: Path) -> None:
    password = "s3cret"
    uris = {
        "name": "adbc:nowhere?uri=x",
        "path": f"adbc:{tmp_path}/nowhere.so?uri=x&password={password}",
        "form": "adbc:?uri",
        "down": adbc(POSTGRESQL, uri=f"postgresql://u:{password}@127.0.0.1:1/x"),
    }
    with relay(*sources(**uris)) as server:
        for name, what in {
            "name": "can't load the ADBC driver nowhere: ",
            "path": f"can't load the ADBC driver {tmp_path}/nowhere.so: ",
            "form": "the uri is not of the form adbc:DRIVER",
            "down": "127.0.0.1",
        }.items():
            with dray.connect(server.uri(name)) as client, pytest.raises(dray.Error) as caught:
                client.query("SELECT 1").arrow()
            text = str(caught.value)
            assert text.startswith(f"can't connect to the source {name}: ") and what in text
            assert password not in text
        assert password not in server.log()


def test_a_driver_by_name(lite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mylite.toml").write_text(
        f"manifest_version = 1\nname = 'SQLite'\n[Driver]\nshared = '{SQLITE}'\n"
    )
    monkeypatch.setenv("ADBC_DRIVER_PATH", str(tmp_path))
    with relay(*sources(lite=lite.replace(SQLITE, "mylite"))) as server:
        with dray.connect(server.uri("lite")) as client:
            assert one(client, "SELECT count(*) FROM numbers") == ROWS


def test_drays_own_driver(maria: MariaServer) -> None:
    """A Dray server whose source is another database, by Dray's driver for ADBC."""
    driver = binary().parent / "libadbc_driver_dray.so"
    uri = adbc(str(driver), uri=maria.uri())
    with relay(*sources(own=uri)) as server, dray.connect(server.uri("own")) as client:
        table = client.query("SELECT id, name FROM relayed ORDER BY id").arrow()
        assert table["name"].to_pylist() == [f"row {i}" for i in range(1, 1001)]
        assert list(client.query("SELECT ? + 1 AS i", [5]).rows()) == [(6,)]
