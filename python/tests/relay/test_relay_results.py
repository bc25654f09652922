"""Statements for `dray://host/NAME` give what the database gives."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import adbc_client
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_server import MariaServer
from postgres_server import PostgresServer
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray
import dray.dbapi


def test_rows(connection: dray.Connection) -> None:
    table = connection.query("SELECT id, name FROM relayed ORDER BY id").arrow()
    assert table.to_pydict() == {
        "id": list(range(1, 1001)),
        "name": [f"row {i}" for i in range(1, 1001)],
    }
    assert one(connection, "SELECT count(*) FROM relayed") == 1000


def test_files_and_sources(server: Relay) -> None:
    for uri in (server.uri(), server.uri("files"), server.unix):
        with dray.connect(uri) as connection:
            assert one(connection, "SELECT count(*) FROM dray.tables") != 0
            with pytest.raises(dray.QueryError, match="relayed"):
                connection.query("SELECT * FROM relayed").arrow()
    with dray.connect(f"{server.unix}?source=maria") as connection:
        assert "MariaDB" in str(one(connection, "SELECT version()"))


def test_parameters(server: Relay) -> None:
    with dray.connect(server.uri("pg")) as connection:
        sql = "SELECT name, $2::text AS t FROM relayed WHERE id = $1"
        assert list(connection.query(sql, [7, "ü"]).rows()) == [("row 7", "ü")]
        with pytest.raises(dray.ExecutionError) as caught:
            connection.query("SELECT $1::integer", ["x"]).arrow()
        assert caught.value.sqlstate == "22P02"
    with dray.connect(server.uri("maria")) as connection:
        sql = "SELECT name, ? AS t FROM relayed WHERE id = ?"
        assert list(connection.query(sql, ["ü", 7]).rows()) == [("row 7", "ü")]
        with pytest.raises(dray.Error, match="1 "):
            connection.query(sql, ["ü"]).arrow()


def test_columns_that_change(server: Relay, postgres: PostgresServer) -> None:
    sql = "SELECT * FROM changing_columns"
    # A statement is prepared once it has run a few times.
    for runs in range(1, 5):
        postgres.run(
            "CREATE TABLE changing_columns (a integer)", "INSERT INTO changing_columns VALUES (1)"
        )
        with dray.connect(server.uri("pg")) as connection:
            for _ in range(runs):
                assert list(connection.query(sql).rows()) == [(1,)]
            postgres.run("ALTER TABLE changing_columns ADD b text DEFAULT 'new'")
            for _ in range(runs):
                assert list(connection.query(sql).rows()) == [(1, "new")]
            postgres.run("DROP TABLE changing_columns")


def test_scans_lose_no_rows(server: Relay, name: str) -> None:
    """A database compares texts and quotes names in its own way, also behind a server."""
    texts = {
        "pg": 'SELECT id, name COLLATE "en-x-icu" AS name',
        "maria": "SELECT id, name COLLATE utf8mb4_general_ci AS name",
    }[name]
    rows = "(SELECT 1 AS id, 'a' AS name UNION SELECT 2, 'B' UNION SELECT 3, 'C') AS v"
    frame = dray.scan(server.uri(name), sql=f"{texts} FROM {rows}")
    assert frame.select("name").collect()["name"].sort().to_list() == ["B", "C", "a"]
    few = frame.filter(polars.col("name") < "b").select("id").collect()
    assert few["id"].sort().to_list() == [1, 2, 3]
    (head,) = frame.filter(polars.col("name") == "C").head(1).collect()["id"]
    assert head == 3


def test_scans_of_tables(server: Relay, name: str) -> None:
    frame = dray.scan(server.uri(name), "relayed")
    last = frame.filter(polars.col("id") > 998).select("name").collect()
    assert last["name"].sort().to_list() == ["row 1000", "row 999"]
    assert frame.head(3).collect().columns == ["id", "name"]


def test_results_without_rows_or_columns(connection: dray.Connection, server: Relay) -> None:
    empty = connection.query("SELECT id, name FROM relayed WHERE id < 0").arrow()
    assert empty.num_rows == 0 and empty.schema.names == ["id", "name"]
    assert empty.schema.field("id").type == pa.int32()
    with dray.connect(server.uri("pg")) as postgres:
        table = postgres.query("SELECT FROM relayed").arrow()
        assert (table.num_rows, table.num_columns) == (1000, 0)


def test_large_strings(connection: dray.Connection) -> None:
    sql = "SELECT id, repeat('ü', 8000000) AS t FROM relayed WHERE id <= 6"
    with connection.query(sql) as result:
        lengths = [len(row) for batch in result.batches() for row in batch.column("t").to_pylist()]
    assert lengths == [8_000_000] * 6
    with pytest.raises(dray.LimitError, match="row_bytes_max"):
        connection.query(sql, row_bytes_max=4 << 20, chunk_bytes_max=1 << 20).arrow()
    assert one(connection, "SELECT 1") == 1


def test_errors_are_those_of_the_source(
    postgres: PostgresServer, maria: MariaServer, server: Relay, name: str
) -> None:
    direct = {"pg": postgres.uri(), "maria": maria.uri()}[name]
    for sql in ("SELEC 1", "SELECT nam FROM relayed", "SELECT * FROM nowhere", "SELECT abs()"):
        if not sql.startswith("SELECT"):
            sql = f"SELECT {sql}"
        found = []
        for uri in (direct, server.uri(name)):
            with dray.connect(uri) as connection, pytest.raises(dray.Error) as caught:
                connection.query(sql).arrow()
            found.append((type(caught.value), caught.value.sqlstate, str(caught.value)))
        assert found[0] == found[1]
        assert found[1][1]


def test_an_error_in_mid_result(server: Relay) -> None:
    failing = {
        "pg": ("SELECT 1 / (400000 - i) FROM generate_series(1, 500000) i", "22012"),
        "maria": (
            "SELECT seq, CASE WHEN seq = 400000 THEN (SELECT 1 UNION SELECT 2) END "
            "FROM seq_1_to_500000",
            "21000",
        ),
    }
    for name, (sql, sqlstate) in failing.items():
        with dray.connect(server.uri(name)) as connection:
            rows = 0
            with pytest.raises(dray.ExecutionError) as caught:
                for batch in connection.query(sql, batch_rows=1000).batches():
                    rows += batch.num_rows
            assert 0 < rows < 400_000
            assert caught.value.sqlstate == sqlstate
            with pytest.raises(dray.ExecutionError):
                connection.query(sql).arrow()
            assert one(connection, "SELECT 2") == 2


def test_estimates_for_those_who_watch(server: Relay, maria: MariaServer) -> None:
    maria.run("ANALYZE TABLE relayed")
    with dray.connect(server.uri("maria")) as connection:
        for sql, rows in (
            ("SELECT id, name FROM relayed", 1000),
            ("SELECT upper(name) AS name FROM relayed ORDER BY id LIMIT 9", 9),
        ):
            with connection.query(sql, progress=lambda progress: None) as result:
                found = result.estimate.rows
                assert found is not None and rows / 3 <= found <= rows * 3, found
                assert not result.estimate.rows_exact
                assert result.arrow().num_rows == rows
            # Nobody watches, so nobody asks.
            with connection.query(sql) as result:
                assert result.estimate.rows is None


def test_the_program(server: Relay, name: str, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        command = [str(binary()), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    uri = server.uri(name)
    tables = [json.loads(line) for line in run("tables", uri, "--format", "json").splitlines()]
    (found,) = (table for table in tables if table["table"].endswith(".relayed"))
    assert found["columns"].startswith("id int")
    sql = "SELECT id, name FROM relayed ORDER BY id"
    assert run("query", uri, sql, "--format", "csv").splitlines()[:2] == ["id,name", "1,row 1"]
    out = tmp_path / "out.parquet"
    run("export", uri, sql, "-o", str(out))
    assert pq.read_table(out).num_rows == 1000
    assert "1,000 rows" in run("explain", uri, sql)
    assert "expected   about " in run("explain", uri, sql, "--plan")


def test_drivers(server: Relay, name: str) -> None:
    sql = "SELECT id, name FROM relayed ORDER BY id"
    with pytest.warns(dray.dbapi.Warning, match="Cannot disable autocommit"):
        connection = dray.dbapi.connect(server.uri(name))
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        assert len(cursor.fetchall()) == 1000
        connection.rollback()
    with dray.dbapi.connect(server.uri(name), autocommit=True) as connection:
        assert pd.read_sql(sql, connection).shape == (1000, 2)
    with adbc_client.connect(server.uri(name)) as adbc:
        assert adbc_client.table(adbc, sql).num_rows == 1000
        objects = adbc.adbc_get_objects(depth="tables", table_name_filter="relayed")
        assert "'relayed'" in str(objects.read_all().to_pylist())
        with pytest.raises(adbc_client.dbapi.NotSupportedError, match="passes statements on"):
            adbc.adbc_get_table_schema("relayed")
        marker = "$1" if name == "pg" else "?"
        with adbc.cursor() as cursor:
            cursor.execute(f"SELECT name FROM relayed WHERE id = {marker}", (5,))
            assert cursor.fetchall() == [("row 5",)]


def test_a_plan_alone(server: Relay, name: str) -> None:
    with adbc_client.connect(server.uri(name)) as adbc, adbc.cursor() as cursor:
        schema = cursor.adbc_execute_schema("SELECT id, name FROM relayed")
        assert schema.names == ["id", "name"] and schema.field("id").type == pa.int32()


def test_levels_of_a_nest_need_one_snapshot(connection: dray.Connection) -> None:
    outer = 'sql = "SELECT id FROM relayed"\norder = ["id"]\n'
    inner = '[many.names]\nsql = "SELECT id AS of, name FROM relayed"\non = { of = "id" }\n'
    with pytest.raises(dray.UsageError, match="connect to the database itself"):
        dray.nest(connection, outer + inner)
    assert pa.table(dray.nest(connection, outer)).num_rows == 1000


def test_metrics(postgres: PostgresServer, maria: MariaServer, name: str) -> None:
    counter = f'source_statements_total{{source="{name}"}}'
    failures = f'source_statements_failed_total{{source="{name}"}}'

    # Statements of other tests may end at any time, so this server has none.
    with relay(*sources(pg=postgres.uri(), maria=maria.uri())) as server:

        def count(what: str) -> int:
            return server.counter(what.replace("{", r"\{").replace("}", r"\}"))

        assert (count(counter), count(failures)) == (0, 0)
        with dray.connect(server.uri(name)) as client:
            assert one(client, "SELECT 1") == 1
            with pytest.raises(dray.Error):
                client.query("SELECT nothing").arrow()
        # A client has its result before the statement is counted.
        wait_until(lambda: (count(counter), count(failures)) == (2, 1))
        assert f'source="{name}"' in server.log()
