"""SQLite files behind a Dray server, beside Python's own sqlite3."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from adbc_client import connect
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {what} FROM n"
ROWS = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sqlite")


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(folder / "notes.db", isolation_level=None)
    connection.executescript(
        """
        CREATE TABLE types (i INTEGER, r REAL, t TEXT, b BLOB, v VARCHAR(9), f DOUBLE PRECISION,
            d DECIMAL(9, 2), day DATE, yes BOOLEAN, any_);
        INSERT INTO types VALUES
            (1, 1.5, 'ü', x'00ff', 'v', 2, 3.25, '2024-02-29', TRUE, 'x'),
            (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
            (-9223372036854775808, -1e308, '', x'', 'w', 0.1, 4, '2024-03-01', 0, 'y'),
            (9223372036854775807, 9e999, 'a' || char(0) || 'b', zeroblob(9), '', -0.0, 0,
                '', 1, '');
        CREATE INDEX types_by_day ON types (day);
        CREATE TABLE mixed (i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC);
        INSERT INTO mixed VALUES (1, 1, 'a', x'01', 1), ('two', 2, x'02', 'b', 2.5);
        CREATE VIRTUAL TABLE words USING fts5(word);
        INSERT INTO words VALUES ('seven seas'), ('of rye');
        CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
        INSERT INTO boxes VALUES (1, 0, 10), (2, 20, 30);
        CREATE VIEW both AS SELECT word, x0 FROM words JOIN boxes ON boxes.id = words.rowid;
        CREATE TABLE many (id INTEGER PRIMARY KEY, name TEXT, score REAL);
        """
    )
    connection.execute(
        f"INSERT INTO many {ENDLESS.format(what='i, printf(?1, i), i * 0.5')} LIMIT {ROWS}",
        ["row %d"],
    )
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def server(folder: Path, oracle: sqlite3.Connection) -> Iterator[Relay]:
    shutil.copy(folder / "notes.db", folder / "own.db")
    uris = sources(notes=f"sqlite://{folder}/notes.db", own=f"sqlite:{folder}/own.db")
    with relay(*uris, "--source-writable", "own") as server:
        yield server


@pytest.fixture
def connection(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("notes")) as connection:
        yield connection


@pytest.fixture
def own(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("own")) as connection:
        yield connection


def rows_of(connection: dray.Connection, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.query(sql).rows()]


def test_parameters_by_adbc(server: Relay) -> None:
    """Those of a statement are known before they have values."""
    with connect(server.uri("notes")) as adbc, adbc.cursor() as cursor:
        for sql, count in [
            ("SELECT name FROM many WHERE id = ? OR name = ? OR name = '?'", 2),
            ("SELECT name FROM many WHERE id = $1", 1),
            ("SELECT name FROM many", 0),
        ]:
            schema = cursor.adbc_prepare(sql)
            assert schema is not None and len(schema) == count
            assert cursor.adbc_execute_schema(sql).names == ["name"]


def test_types(connection: dray.Connection, oracle: sqlite3.Connection) -> None:
    table = connection.query("SELECT * FROM types").arrow()
    types = {field.name: field.type for field in table.schema}
    assert types == {
        "i": pa.int64(),
        "r": pa.float64(),
        "t": pa.string(),
        "b": pa.binary(),
        "v": pa.string(),
        "f": pa.float64(),
        "d": pa.float64(),
        "day": pa.string(),
        "yes": pa.int64(),
        "any_": pa.string(),
    }
    rows = [tuple(row.values()) for row in table.to_pylist()]
    expected = oracle.execute("SELECT * FROM types").fetchall()
    # Repr tells 1 from 1.0 and -0.0 from 0.0. Integers in DECIMAL are floats, as others are.
    i = table.schema.get_field_index("d")

    def shown(row: tuple[object, ...]) -> list[str]:
        decimal = row[i] if row[i] is None else float(str(row[i]))
        return [repr(value) for value in (*row[:i], decimal, *row[i + 1 :])]

    assert [shown(row) for row in rows] == [shown(row) for row in expected]
    names = {f.name: (f.metadata or {}).get(b"dray:sqlite:type") for f in table.schema}
    assert names["d"] == b"DECIMAL(9, 2)" and names["v"] == b"VARCHAR(9)" and names["i"] is None


def test_expressions(connection: dray.Connection, oracle: sqlite3.Connection) -> None:
    for sql, types in [
        ("SELECT 1, 1.5, 'x', x'00', NULL", "int64 double string binary null"),
        ("SELECT count(*), sum(score), max(name) FROM many", "int64 double string"),
        ("SELECT NULL AS a UNION ALL SELECT 7", "int64"),
        ("SELECT 1 AS a UNION ALL SELECT NULL UNION ALL SELECT 2.5", "double"),
        ("SELECT 2.5 AS a UNION ALL SELECT 1", "double"),
        ("SELECT i, n FROM mixed LIMIT 1", "int64 int64"),
        ("SELECT n FROM mixed", "double"),
        ("SELECT id + 1, name || '!' FROM many WHERE id < 0", "null null"),
        ("SELECT id, name FROM many WHERE id < 0", "int64 string"),
        ("SELECT json_extract('[1,\"a\"]', '$[1]')", "string"),
        ("PRAGMA table_info(many)", "int64 string string int64 null int64"),
        ("SELECT name FROM pragma_table_info('many')", "string"),
        ("SELECT rowid, word FROM words WHERE words MATCH 'rye'", "int64 string"),
        ("SELECT id FROM boxes WHERE x0 < 5", "int64"),
        ("SELECT * FROM both ORDER BY x0", "string double"),
        ("SELECT key, value FROM json_each('[1, 2]')", "int64 int64"),
        ("PRAGMA quick_check", "string"),
        ("PRAGMA user_version", "int64"),
        ("EXPLAIN QUERY PLAN SELECT 1", "int64 int64 int64 string"),
    ]:
        table = connection.query(sql).arrow()
        found = " ".join(str(field.type) for field in table.schema)
        assert found == types, sql
        columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
        rows = list(zip(*columns, strict=True))
        if "EXPLAIN" not in sql:
            assert rows == oracle.execute(sql).fetchall(), sql


def test_values_of_other_classes(connection: dray.Connection, oracle: sqlite3.Connection) -> None:
    for sql, expected, cast in [
        ("SELECT i FROM mixed", 'column "i", row 2: two is a TEXT', 'CAST("i" AS TEXT)'),
        ("SELECT t FROM mixed", 'column "t", row 2: \\x02 is a BLOB', 'CAST("t" AS BLOB)'),
        ("SELECT b FROM mixed", 'column "b", row 2: b is a TEXT', 'CAST("b" AS BLOB)'),
        ("SELECT 1 AS x UNION ALL SELECT 'a'", "row 2: a is a TEXT", 'CAST("x" AS TEXT)'),
        ("SELECT 9007199254740993 AS x UNION ALL SELECT 1.5", "row 2: 1.5 is a REAL", "TEXT"),
        ("SELECT 1.5 AS x UNION ALL SELECT 9007199254740993", "row 2: 900719925", "TEXT"),
        ("SELECT CAST(x'ff61' AS TEXT) AS x", "is not UTF-8", 'CAST("x" AS BLOB)'),
    ]:
        with pytest.raises(dray.ExecutionError) as caught:
            connection.query(sql).arrow()
        assert expected in str(caught.value) and cast in str(caught.value), caught.value
        assert caught.value.sqlstate in ("22000", "22021")
    for name in "itb":
        kind = "BLOB" if name in "tb" else "TEXT"
        sql = f"SELECT CAST({name} AS {kind}) AS v FROM mixed"
        assert rows_of(connection, sql) == oracle.execute(sql).fetchall()


def test_a_type_that_changes_late(connection: dray.Connection) -> None:
    """After the first batch has been sent: an error that names the row, and no short result."""
    sql = "SELECT CASE WHEN id = 900000 THEN 'late' ELSE id END AS x FROM many"
    rows = 0
    with pytest.raises(dray.ExecutionError, match=r"row 900000: late .* row 1 made it one"):
        for batch in connection.query(sql).batches():
            rows += batch.num_rows
    assert 0 < rows < 900_000
    nulls = "SELECT CASE WHEN id = 900000 THEN 1 END AS x FROM many"
    with pytest.raises(dray.ExecutionError, match="row 900000: 1 .* the first rows were all NULL"):
        connection.query(nulls).arrow()
    assert one(connection, "SELECT 1") == 1


def test_many_rows(folder: Path, server: Relay, oracle: sqlite3.Connection) -> None:
    with relay(*sources(notes=f"sqlite://{folder}/notes.db")) as own:
        with dray.connect(f"{own.uri('notes')}?local_socket=false") as client:
            # Some 530 MB, several times what a queue that is full takes.
            wide = "SELECT *, printf('%0500d', id) AS wide FROM many"
            client.query(f"{wide} LIMIT 100000").arrow()
            before = own.memory()
            total = 0
            for batch in client.query(wide).batches():
                total += batch.num_rows
            assert total == ROWS
            assert own.memory() - before < 160 << 20
    with dray.connect(server.uri("notes")) as client:
        table = client.query("SELECT * FROM many").arrow()
        assert list(zip(*table.to_pydict().values(), strict=True)) == (
            oracle.execute("SELECT * FROM many").fetchall()
        )


def test_long_values(connection: dray.Connection) -> None:
    sql = "SELECT zeroblob(20000000) AS b, printf('%.*c', 5000000, 'x') AS t FROM many LIMIT 6"
    with connection.query(sql) as result:
        for batch in result.batches():
            assert {len(value) for value in batch.column("b").to_pylist()} == {20_000_000}
            assert {len(value) for value in batch.column("t").to_pylist()} == {5_000_000}
    with pytest.raises(dray.LimitError, match="too big"):
        connection.query("SELECT zeroblob(300000000)").arrow()


def test_parameters(connection: dray.Connection) -> None:
    for sql, values, expected in [
        ("SELECT ?, ?, ?, ?, ?", [1, 2.5, "ü", b"\x00", None], (1, 2.5, "ü", b"\x00", None)),
        ("SELECT ?2, ?1", [1, "a"], ("a", 1)),
        ("SELECT $2, $1, $2", [1, "a"], ("a", 1, "a")),
        ("SELECT name FROM many WHERE id = :1", [7], ("row 7",)),
        ("SELECT typeof(?)", [True], ("integer",)),
    ]:
        assert [tuple(row) for row in connection.query(sql, values).rows()] == [expected], sql
    for sql, values, match in [
        ("SELECT ?", [1, 2], "has 1 parameters, and 2 are given"),
        ("SELECT ?, ?", [1], "has 2 parameters, and 1 are given"),
        ("SELECT :name", [1], "no value for the parameter :name"),
        ("SELECT ?", [float("nan")], "no values of the type"),
    ]:
        with pytest.raises(dray.QueryError, match=match):
            connection.query(sql, values).arrow()


def test_cancelling(connection: dray.Connection, server: Relay) -> None:
    """A statement that never has a row, and one that never ends."""
    result = connection.query(ENDLESS.format(what="i"), batch_rows=1000)
    next(result.batches())
    result.cancel()
    assert one(connection, "SELECT 3") == 3
    command = [str(binary()), "query", server.uri("notes"), ENDLESS.format(what="sum(i)")]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: is_busy(server))
    client.terminate()
    client.communicate(timeout=10)
    wait_until(lambda: not is_busy(server))


def cpu_s(server: Relay) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def is_busy(server: Relay) -> bool:
    before = cpu_s(server)
    time.sleep(0.5)
    return cpu_s(server) - before > 0.1


def test_errors(connection: dray.Connection) -> None:
    for sql, match in [
        ("SELECT nope", "no such column: nope"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELEC 1", "syntax error"),
        ("SELECT 1; SELECT 2", "comes alone"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
        ("", "empty"),
        ("-- nothing", "empty"),
        ("SELECT 1\0", "byte 0"),
    ]:
        with pytest.raises(dray.Error, match=match):
            connection.query(sql).arrow()
    assert one(connection, "SELECT 1;") == 1


def test_only_reading(folder: Path, connection: dray.Connection) -> None:
    before = (folder / "notes.db").read_bytes()
    elsewhere = folder / "elsewhere.db"
    for sql in (
        "INSERT INTO mixed VALUES (1, 1, 1, 1, 1)",
        "WITH x AS (SELECT 1) DELETE FROM mixed",
        "UPDATE mixed SET i = 0",
        "CREATE TABLE x (i)",
        "CREATE TEMP TABLE x (i)",
        "CREATE VIRTUAL TABLE x USING fts5(t)",
        "DROP TABLE mixed",
        "BEGIN IMMEDIATE",
        "SAVEPOINT x",
        "VACUUM",
        f"VACUUM INTO '{elsewhere}'",
        f"ATTACH '{elsewhere}' AS x",
        f"ATTACH '{elsewhere}' || '' AS x",
        "DETACH main",
        "REINDEX",
        "ANALYZE",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL",
        "PRAGMA temp_store_directory = '/tmp'",
    ):
        with pytest.raises(dray.QueryError) as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == "25006", (sql, caught.value)
    with pytest.raises(dray.QueryError, match="not authorized to use function: load_extension"):
        connection.query("SELECT load_extension('x')").arrow()
    assert (folder / "notes.db").read_bytes() == before
    assert not elsewhere.exists()


def test_statements_that_ended_the_server(connection: dray.Connection) -> None:
    """They recurse as deep as they are long, or take memory without end."""
    text, pattern = "replace(hex(zeroblob(25000)), '00', 'a')", "%a" * 25_000
    for sql, sqlstate, match in [
        (f"SELECT {text} LIKE '{pattern}'", "42000", "pattern too complex"),
        ("SELECT 1;" * 50_000, "42601", "comes alone"),
        ("SELECT " + ", ".join(["randomblob(60000000)"] * 5), "54000", "raise row_bytes_max"),
        ("SELECT " + ", ".join(["randomblob(260000000)"] * 100), "53200", "out of memory"),
    ]:
        with pytest.raises(dray.Error, match=match) as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == sqlstate, caught.value
    assert one(connection, "SELECT 1") == 1


def test_a_table_that_another_program_changes(tmp_path: Path) -> None:
    path = tmp_path / "changed.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)")
    with relay(*sources(own=f"sqlite:{path}")) as server, dray.connect(server.uri("own")) as client:
        assert client.query("SELECT * FROM t").arrow().to_pylist() == [{"a": 1, "b": 2}]
        change = "DROP TABLE t; CREATE TABLE t (b, a, c); INSERT INTO t VALUES (3, 4, 5)"
        writer.executescript(change)
        assert client.query("SELECT * FROM t").arrow().to_pylist() == [{"b": 3, "a": 4, "c": 5}]
        writer.execute("ALTER TABLE t ADD COLUMN d DEFAULT 6")
        assert client.query("SELECT * FROM t").arrow().column_names == ["b", "a", "c", "d"]
    writer.close()


def test_writing(folder: Path, own: dray.Connection) -> None:
    own.query("CREATE TABLE w (id INTEGER PRIMARY KEY, t TEXT)").arrow()
    inserted = own.query("INSERT INTO w (t) VALUES ('a'), (?) RETURNING id, t", ["b"]).arrow()
    assert inserted.to_pydict() == {"id": [1, 2], "t": ["a", "b"]}
    own.query("BEGIN").arrow()
    own.query("DELETE FROM w").arrow()
    own.query("ROLLBACK").arrow()
    own.query("VACUUM").arrow()
    with sqlite3.connect(folder / "own.db") as other:
        assert other.execute("SELECT * FROM w").fetchall() == [(1, "a"), (2, "b")]
    with pytest.raises(dray.QueryError) as caught:
        own.query("INSERT INTO w VALUES (1, 'again')").arrow()
    assert caught.value.sqlstate == "23000"
    for sql in (
        f"ATTACH '{folder}/elsewhere.db' AS x",
        f"VACUUM INTO '{folder}/elsewhere.db'",
        "SELECT load_extension('x')",
        "PRAGMA writable_schema = 1",
        "PRAGMA hard_heap_limit = 1",
    ):
        with pytest.raises(dray.QueryError, match="authoriz"):
            own.query(sql).arrow()
    assert not (folder / "elsewhere.db").exists()


def test_a_snapshot(tmp_path: Path) -> None:
    """A result is of one state of the file, whatever others write meanwhile, with a WAL too."""
    path = tmp_path / "wal.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE t (i INTEGER, pad TEXT)")
    writer.execute(
        f"INSERT INTO t {ENDLESS.format(what='1, printf(?1, 200, 0)')} LIMIT 500000", ["%0*d"]
    )
    with relay(*sources(wal=f"sqlite:{path}")) as server, dray.connect(server.uri("wal")) as client:
        batches = client.query("SELECT * FROM t", batch_rows=1000).batches()
        total = sum(next(batches).column("i").to_pylist())
        writer.execute("UPDATE t SET i = 1000")
        total += sum(sum(batch.column("i").to_pylist()) for batch in batches)
        assert total == 500_000
        assert one(client, "SELECT sum(i) FROM t") == 500_000_000
    writer.close()


def test_a_file_that_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE t (i)")
    with relay(*sources(b=f"sqlite:{path}")) as server, dray.connect(server.uri("b")) as client:
        assert client.query("SELECT * FROM t").arrow().num_rows == 0
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(dray.Error, match="locked") as caught:
            client.query("SELECT * FROM t").arrow()
        assert caught.value.sqlstate == "55P03"
        writer.execute("ROLLBACK")
        assert client.query("SELECT * FROM t").arrow().num_rows == 0
    writer.close()


def test_files_that_are_none(tmp_path: Path, folder: Path, oracle: sqlite3.Connection) -> None:
    (tmp_path / "text.db").write_text("nothing of SQLite's, and longer than its header" * 100)
    (tmp_path / "empty.db").touch()
    whole = bytearray((folder / "notes.db").read_bytes())
    # The root page of a table, and pages of many.
    for at in range(4096 * 4, len(whole), 4096):
        whole[at : at + 400] = b"\xa5" * 400
    (tmp_path / "corrupt.db").write_bytes(whole)
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    names = ["text", "empty", "corrupt", "cut", "missing"]
    uris = sources(**{name: f"sqlite:{tmp_path}/{name}.db" for name in names})
    with relay(*uris) as server:
        for name, expected in [
            ("missing", "can't connect to the source missing: its file is not there"),
            ("text", "can't connect to the source text: file is not a database"),
            ("corrupt", "the source corrupt: database disk image is malformed"),
            ("cut", "malformed"),
        ]:
            with (
                pytest.raises(dray.ConnectionError, match=expected),
                dray.connect(server.uri(name)) as client,
            ):
                client.query("SELECT * FROM many").arrow()
        with dray.connect(server.uri("empty")) as client:
            assert one(client, "SELECT count(*) FROM sqlite_schema") == 0
    assert not (tmp_path / "missing.db").exists()
