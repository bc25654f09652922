"""ODBC sources: `dray serve --source NAME=odbc:…` with the drivers that Debian has."""

from __future__ import annotations

import datetime
import decimal
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from mysql_server import DATABASE, PASSWORD, USER, MariaServer
from postgres_server import PostgresServer
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

NAMES = ["maria", "pg"]
#: Sleeps in a statement, and says so in its text.
SLEEP = {"maria": "SELECT sleep(25) AS odbc_sleep", "pg": "SELECT pg_sleep(25) AS odbc_sleep"}
#: Rows of PostgreSQL that take long to send.
FOREVER = "SELECT generate_series(1, 100000000) AS odbc_rows"
MARIA_TABLE = """
CREATE OR REPLACE TABLE odbc_types (
    id int, ti tinyint, tu tinyint unsigned, si smallint, su smallint unsigned, iu int unsigned,
    bi bigint, bu bigint unsigned, f float, d double, dec1 decimal(10,2), dec2 decimal(65,30),
    f2 float, v varchar(20), c char(3), t text, lt longtext, vb varbinary(8), lb longblob, da date,
    dt datetime, dt3 datetime(3), dt6 datetime(6), tm time(6), b1 bit(1), y year, e enum('a','b'))
"""
MARIA_ROWS = """
INSERT INTO odbc_types VALUES
    (1, -128, 255, -32768, 65535, 4294967295, -9223372036854775808, 18446744073709551615, 1.5,
     1e300, -12345678.91, -12345678901234567890123456789012345.123456789012345678901234567890,
     16777216, 'aé語🐎', 'xyz', 'text', repeat('é🐎', 500), x'00ff', x'0102', '2024-02-29',
     '2024-02-29 12:34:56', '2024-02-29 12:34:56.123', '2024-02-29 12:34:56.123456',
     '23:59:59.999999', 1, 2024, 'b'),
    (2, 127, 0, 0, 0, 0, 9223372036854775807, 0, -0.25, -2.5, 0.01, 0, 1.2345678, '', '', '', '',
     '', '', '1000-01-01', '1000-01-01 00:00:00', '9999-12-31 23:59:59.999',
     '1969-12-31 23:59:59.999999', '00:00:00', 0, 1901, 'a'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""
POSTGRES = """
DROP TABLE IF EXISTS odbc_types;
CREATE TABLE odbc_types (
    id integer, s smallint, l bigint, f real, d double precision, n1 numeric(10,2),
    n2 numeric(70,30), v varchar(20), vv varchar, c char(3), t text, b bytea, da date,
    ts timestamp, tm time, u uuid, j jsonb);
INSERT INTO odbc_types VALUES
    (1, -32768, 9223372036854775807, 1.5, 1e300, -12345678.91,
     -1234567890123456789012345678901234567890.123456789012345678901234567890, 'aé語🐎',
     repeat('v🐎', 1000), 'xyz', repeat('é🐎', 500), '\\x00ff', '2024-02-29',
     '2024-02-29 12:34:56.123456', '23:59:59.999999', '00112233-4455-6677-8899-aabbccddeeff',
     '{"a": 1}'),
    (2, 0, 0, -0.25, 'NaN', 0.01, 0, '', '', '', '', '', '0001-01-01', '0001-01-01 00:00:00',
     '00:00:00', '00000000-0000-0000-0000-000000000000', '[]'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL);
"""


def maria_string(server: MariaServer, password: str = PASSWORD) -> str:
    return (
        f"odbc:Driver={{MariaDB Unicode}};Server=127.0.0.1;Port={server.port};UID={USER};"
        f"PWD={{{password}}};Database={DATABASE}"
    )


def postgres_string(server: PostgresServer, options: str = "") -> str:
    return (
        f"odbc:Driver={{PostgreSQL Unicode}};Server=127.0.0.1;Port={server.port};UID=postgres;"
        f"Database=postgres;BoolsAsChar=0;UseDeclareFetch=1;Fetch=5000{options}"
    )


@pytest.fixture(scope="session")
def odbc(postgres: PostgresServer, maria: MariaServer, files: Path) -> Iterator[Relay]:
    maria.run(MARIA_TABLE, MARIA_ROWS)
    postgres.run(POSTGRES)
    arguments = sources(maria=maria_string(maria), pg=postgres_string(postgres))
    with relay(str(files), *arguments) as server:
        yield server


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(odbc: Relay, name: str) -> Iterator[dray.Connection]:
    with dray.connect(odbc.uri(name)) as connection:
        yield connection


def plain(value: object) -> object:
    """A value without what types have it in other ways: a duration is a time here."""
    if isinstance(value, datetime.timedelta):
        return (datetime.datetime.min + value).time()
    return value


def test_types_of_mariadb(odbc: Relay, maria: MariaServer) -> None:
    """All values are those of the direct connection, and types its types but for these."""
    sql = "SELECT * FROM odbc_types ORDER BY id"
    with dray.connect(odbc.uri("maria")) as relayed, dray.connect(maria.uri()) as direct:
        found, expected = relayed.query(sql).arrow(), direct.query(sql).arrow()
    assert found.num_rows == 3
    other = {
        "tm": pa.time64("us"),
        "b1": pa.bool_(),
        # The driver says so.
        "y": pa.uint16(),
        "e": pa.string(),
    }
    for field, direct_field in zip(found.schema, expected.schema, strict=True):
        assert field.type == other.get(field.name, direct_field.type), field.name
    for row, direct_row in zip(found.to_pylist(), expected.to_pylist(), strict=True):
        assert row == {key: plain(value) for key, value in direct_row.items()}


def test_types_of_postgresql(odbc: Relay, postgres: PostgresServer) -> None:
    sql = "SELECT * FROM odbc_types ORDER BY id"
    with dray.connect(odbc.uri("pg")) as relayed, dray.connect(postgres.uri()) as direct:
        found, expected = relayed.query(sql).arrow(), direct.query(sql).arrow()
    for field, direct_field in zip(found.schema, expected.schema, strict=True):
        if field.name != "j":
            assert field.type == direct_field.type, field.name
    assert repr(found.to_pylist()) == repr(expected.to_pylist())
    assert found.to_pylist()[0]["u"] == uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def test_no_value_is_changed_silently(odbc: Relay) -> None:
    """What a column's type does not hold is an error that names the column."""
    cases = [
        ("pg", "SELECT '24:00:00'::time AS x", '"x" has the time 24:00:00'),
        ("pg", "SELECT 'NaN'::numeric(5,2) AS x", '"x" has the value NaN'),
        ("maria", "SELECT CAST('-01:00:00' AS time) AS x", '"x" has the time -01:00:00'),
        ("maria", "SELECT CAST('838:59:59' AS time) AS x", '"x" has the time 838:59:59'),
    ]
    for name, sql, message in cases:
        with dray.connect(odbc.uri(name)) as client:
            with pytest.raises(dray.ExecutionError, match=re.escape(message)) as caught:
                client.query(sql).arrow()
            assert str(caught.value.sqlstate).startswith("22")
            assert one(client, "SELECT 1") == 1


def test_dates_that_the_calendar_lacks(odbc: Relay, maria: MariaServer) -> None:
    """MariaDB's driver makes NULL of some in a structure, and passes others on."""
    with maria.connect() as oracle, oracle.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute("CREATE OR REPLACE TABLE odbc_zero (id int, d date, t datetime(6))")
        for i, date in enumerate(["0000-00-00", "2024-00-10", "2024-02-31"]):
            cursor.execute(f"INSERT INTO odbc_zero VALUES ({i}, '{date}', '{date} 01:02:03.5')")
        cursor.execute("INSERT INTO odbc_zero VALUES (3, 0, 0), (4, NULL, NULL)")
    with dray.connect(odbc.uri("maria")) as client:
        for column, suffix in [("d", ""), ("t", " 01:02:03.500000")]:
            for i, date in enumerate(["0000-00-00", "2024-00-10", "2024-02-31"]):
                sql = f"SELECT {column} FROM odbc_zero WHERE id = "
                expected = f'the column "{column}" has the date {date}{suffix}, which'
                for where, parameters in [(str(i), None), ("?", [i])]:
                    with pytest.raises(dray.ExecutionError, match=re.escape(expected)) as caught:
                        client.query(sql + where, parameters).arrow()
                    assert caught.value.sqlstate == "22008"
        with pytest.raises(dray.ExecutionError, match="has the date 0000-00-00 00:00:00"):
            client.query("SELECT t FROM odbc_zero WHERE id = 3").arrow()
        nulls = client.query("SELECT d, t FROM odbc_zero WHERE id = ?", [4]).arrow()
        assert nulls.to_pylist() == [{"d": None, "t": None}]
        dates = client.query("SELECT da, dt6 FROM odbc_types WHERE id = ?", [1]).arrow()
        at = datetime.datetime(2024, 2, 29, 12, 34, 56, 123456)
        assert dates.to_pylist() == [{"da": at.date(), "dt6": at}]


def test_results_without_rows(odbc: Relay, client: dray.Connection, name: str) -> None:
    empty = client.query("SELECT id, t FROM odbc_types WHERE id < 0").arrow()
    assert empty.num_rows == 0
    assert empty.schema.types == [pa.int32(), pa.string()]
    command = [str(binary()), "explain", odbc.uri(name), "SELECT id, t FROM odbc_types"]
    planned = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert planned.returncode == 0, planned.stderr


LONG = {
    "maria": "SELECT seq AS i, repeat('é', CASE WHEN seq % 500 = 7 THEN 500000 ELSE seq % 10 END) "
    "AS t, repeat(x'00ff', CASE WHEN seq % 500 = 9 THEN 500000 ELSE 1 END) AS b "
    "FROM seq_1_to_2000",
    "pg": "SELECT i, repeat('é', CASE WHEN i % 500 = 7 THEN 500000 ELSE i % 10 END) AS t, "
    "decode(repeat('00ff', CASE WHEN i % 500 = 9 THEN 500000 ELSE 1 END), 'hex') AS b "
    "FROM generate_series(1, 2000) i",
}


def test_long_values_among_short_ones(client: dray.Connection, name: str) -> None:
    table = client.query(LONG[name]).arrow()
    assert table.num_rows == 2000
    for i, t, b in zip(*(table[column].to_pylist() for column in "itb"), strict=True):
        assert t == "é" * (500_000 if i % 500 == 7 else i % 10)
        assert b == b"\0\xff" * (500_000 if i % 500 == 9 else 1)
    with pytest.raises(dray.LimitError, match='the column "t" has a value of') as caught:
        client.query(LONG[name], row_bytes_max=1 << 19, chunk_bytes_max=1 << 18).arrow()
    assert caught.value.sqlstate == "54000"
    assert one(client, "SELECT 1") == 1


def test_values_that_are_longer_than_announced(odbc: Relay) -> None:
    """psqlODBC says that a varchar without a length has 255 characters."""
    sql = "SELECT i, repeat('x', i)::varchar AS v FROM generate_series(1, 2000) i"
    with dray.connect(odbc.uri("pg")) as client:
        lengths = [len(v) for v in client.query(sql).arrow()["v"].to_pylist()]
    assert lengths == list(range(1, 2001))


def test_wide_rows(client: dray.Connection) -> None:
    columns = ", ".join(f"{i} AS c{i}, 'text {i}' AS t{i}" for i in range(300))
    row = client.query(f"SELECT {columns}").arrow().to_pylist()[0]
    assert row == {f"c{i}": i for i in range(300)} | {f"t{i}": f"text {i}" for i in range(300)}


def bridges(server: Relay) -> list[int]:
    """The processes that a server has started."""
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return [int(pid) for path in children for pid in path.read_text().split()]


def memory(pid: int) -> int:
    """The most memory that a process had so far, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) << 10


def test_a_million_rows(postgres: PostgresServer) -> None:
    """With a driver that fetches rows a few at a time, memory stays flat at both ends."""
    sql = "SELECT i, i * 1.5::float8 AS f, 'row number ' || i AS t FROM generate_series(1, {}) i"
    with relay(*sources(pg=postgres_string(postgres))) as server:
        with dray.connect(server.uri("pg")) as client:
            client.query(sql.format(100_000)).arrow()
            (bridge,) = bridges(server)
            before = memory(bridge), server.memory()
            rows, total = 0, 0
            for batch in client.query(sql.format(1_000_000)).batches():
                rows += batch.num_rows
                total += sum(batch.column("i").to_pylist())
            assert (rows, total) == (1_000_000, 500_000_500_000)
            assert memory(bridge) - before[0] < 16 << 20
            assert server.memory() - before[1] < 150 << 20


def test_a_slow_reader_holds_the_bridge_back(postgres: PostgresServer) -> None:
    sql = "SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 200000) i"
    with relay(*sources(pg=postgres_string(postgres))) as server:
        with dray.connect(f"{server.uri('pg')}?local_socket=false") as client:
            batches = client.query(sql).batches()
            rows = next(batches).num_rows
            time.sleep(2)
            (bridge,) = bridges(server)
            assert memory(bridge) < 150 << 20 and server.memory() < 300 << 20
            assert rows + sum(batch.num_rows for batch in batches) == 200_000


def test_parameters(client: dray.Connection, name: str) -> None:
    cast = {"maria": "CAST(? AS {})", "pg": "CAST(? AS {})"}[name]
    values = [
        (5, "decimal(10,0)", decimal.Decimal(5)),
        (-(2**63), "decimal(20,0)", decimal.Decimal(-(2**63))),
        ("ü語🐎", "char(10)", "ü語🐎"),
        ("x" * 10_000, "char(10000)", "x" * 10_000),
        (1.5, "decimal(5,2)", decimal.Decimal("1.50")),
        (datetime.date(2024, 2, 29), "date", datetime.date(2024, 2, 29)),
        (decimal.Decimal("-12345.678"), "decimal(20,3)", decimal.Decimal("-12345.678")),
        (None, "char(3)", None),
    ]
    for value, sql_type, expected in values:
        found = list(client.query(f"SELECT {cast.format(sql_type)} AS x", [value]).rows())[0][0]
        assert (found.rstrip() if isinstance(found, str) else found) == expected
    at = datetime.datetime(2024, 2, 29, 12, 34, 56, 123456)
    moment = {"maria": "datetime(6)", "pg": "timestamp"}[name]
    assert one_of(client, f"SELECT CAST(? AS {moment}) AS x", at) == at
    binary = {"maria": "SELECT CAST(? AS binary(4)) AS x", "pg": "SELECT CAST(? AS bytea) AS x"}
    assert one_of(client, binary[name], b"\0\1\xfe\xff") == b"\0\1\xfe\xff"
    sql = "SELECT id FROM odbc_types WHERE id = ? AND v = ?"
    assert list(client.query(sql, [1, "aé語🐎"]).rows()) == [(1,)]
    with pytest.raises(dray.QueryError, match="the parameter 2 has the type") as caught:
        client.query(sql, [1, datetime.time(1, 2)]).arrow()
    assert caught.value.sqlstate == "0A000"
    with pytest.raises(dray.Error):
        client.query(sql, [1]).arrow()
    assert one(client, "SELECT 1") == 1


def one_of(client: dray.Connection, sql: str, parameter: object) -> object:
    return list(client.query(sql, [parameter]).rows())[0][0]


def test_errors_are_those_of_the_driver(client: dray.Connection, name: str) -> None:
    with pytest.raises(dray.QueryError, match="nope") as caught:
        client.query("SELECT nope FROM odbc_types").arrow()
    assert caught.value.sqlstate == {"maria": "42S22", "pg": "42703"}[name]
    failing = {
        "maria": (
            "SELECT CASE WHEN seq = 400000 THEN (SELECT 1 UNION SELECT 2) END AS x "
            "FROM seq_1_to_500000"
        ),
        "pg": "SELECT 1 / (400000 - i) FROM generate_series(1, 500000) i",
    }
    with pytest.raises(dray.Error):
        client.query(failing[name]).arrow()
    assert one(client, "SELECT 1") == 1


def test_only_reading(odbc: Relay, client: dray.Connection, name: str) -> None:
    for sql in (
        "DELETE FROM odbc_types",
        "COMMIT",
        "SET x = 1",
        "/* */ SELECT 1",
        "EXPLAIN SELECT 1",
    ):
        with pytest.raises(dray.QueryError, match="is read-only: a statement must begin") as caught:
            client.query(sql).arrow()
        assert caught.value.sqlstate == "25006"
    with pytest.raises(dray.Error):
        client.query("SELECT 1; SELECT 2").arrow()
    assert one(client, "SELECT count(*) FROM odbc_types") == 3


def test_what_a_reading_statement_writes_is_rolled_back(postgres: PostgresServer) -> None:
    postgres.run("DROP TABLE IF EXISTS written", "CREATE TABLE written (i integer)")
    sql = "WITH w AS (INSERT INTO written VALUES (1) RETURNING i) SELECT i FROM w"
    with relay(*sources(pg=postgres_string(postgres, ";UseDeclareFetch=0"))) as server:
        with dray.connect(server.uri("pg")) as client:
            assert one(client, sql) == 1
            assert one(client, "SELECT count(*) FROM written") == 0
    with postgres.connect() as oracle:
        assert oracle.execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_writable(maria: MariaServer) -> None:
    arguments = [*sources(maria=maria_string(maria)), "--source-writable", "maria"]
    with relay(*arguments) as server, dray.connect(server.uri("maria")) as client:
        client.query("CREATE OR REPLACE TABLE odbc_written (i int)").arrow()
        client.query("INSERT INTO odbc_written VALUES (?)", [7]).arrow()
        assert one(client, "SELECT i FROM odbc_written") == 7
    assert maria.rows("SELECT i FROM odbc_written") == [("7",)]


def runs(postgres: PostgresServer, maria: MariaServer, name: str, text: str) -> bool:
    if name == "maria":
        sql = "SELECT info FROM information_schema.processlist WHERE id <> connection_id()"
        return any(text in (info or "") for (info,) in maria.rows(sql))
    with postgres.connect() as oracle:
        sql = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
            "AND pid <> pg_backend_pid() AND strpos(query, %s) > 0"
        )
        return oracle.execute(sql, [text]).fetchone() != (0,)


def test_cancelling(
    postgres: PostgresServer, maria: MariaServer, odbc: Relay, client: dray.Connection, name: str
) -> None:
    """Among the rows, and before the first. MariaDB's driver gives none before it has all."""
    if name == "pg":
        result = client.query(FOREVER, batch_rows=1000)
        next(result.batches())
        result.cancel()
        wait_until(lambda: not runs(postgres, maria, name, FOREVER))
        assert one(client, "SELECT 3") == 3
    command = [str(binary()), "query", odbc.uri(name), SLEEP[name]]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: runs(postgres, maria, name, SLEEP[name]))
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=10)
    assert program.returncode == 130
    wait_until(lambda: not runs(postgres, maria, name, SLEEP[name]))


def test_two_clients(odbc: Relay, name: str) -> None:
    session = {"maria": "SELECT connection_id()", "pg": "SELECT pg_backend_pid()"}[name]
    with dray.connect(odbc.uri(name)) as first, dray.connect(odbc.uri(name)) as second:
        ids = [one(first, session), one(second, session)]
        assert ids[0] != ids[1]
        assert ids == [one(first, session), one(second, session)]


def test_bridges_end_with_their_clients(maria: MariaServer) -> None:
    with relay(*sources(maria=maria_string(maria))) as server:
        wait_until(lambda: "the source is there" in server.log())
        for _ in range(3):
            with dray.connect(server.uri("maria")) as client:
                assert one(client, "SELECT 1") == 1
                assert len(bridges(server)) == 1
            wait_until(lambda: not bridges(server))


def test_a_bridge_that_is_killed(odbc: Relay, name: str) -> None:
    """Never a short result; and the next statement has a new session."""
    with dray.connect(odbc.uri(name)) as client:
        before = set(bridges(odbc))
        batches = client.query(FOREVER if name == "pg" else LONG[name]).batches()
        (bridge,) = set(bridges(odbc)) - before
        os.kill(bridge, signal.SIGKILL)
        with pytest.raises(dray.ConnectionError, match="its bridge ended .signal: 9"):
            for _ in batches:
                pass
        assert one(client, "SELECT 1") == 1


def test_a_server_that_goes_and_comes_back() -> None:
    own = MariaServer()
    try:
        with relay(*sources(own=maria_string(own))) as server:
            with dray.connect(server.uri("own")) as client:
                assert one(client, "SELECT 1") == 1
                failures = []

                def read() -> None:
                    try:
                        client.query(SLEEP["maria"]).arrow()
                    except dray.Error as error:
                        failures.append(error)

                thread = threading.Thread(target=read)
                thread.start()
                time.sleep(1)
                own.kill()
                thread.join(20)
                assert isinstance(failures[0], dray.Error)
                with pytest.raises(dray.ConnectionError, match="can't connect to the source own: "):
                    for _ in range(2):
                        client.query("SELECT 1").arrow()
                own.start()
                assert one(client, "SELECT 2") == 2
    finally:
        own.stop()


def test_passwords_are_not_shown(maria: MariaServer) -> None:
    wrong = "it's the wrong; secret"
    string = maria_string(maria, wrong)
    missing = "odbc:Driver={No Such Driver};UID=me;PWD=hunter2"
    with relay(*sources(maria=string, missing=missing), "--log", "debug") as server:
        with dray.connect(server.uri("maria")) as client:
            with pytest.raises(dray.ConnectionError, match="Access denied") as caught:
                client.query("SELECT 1").arrow()
            assert caught.value.sqlstate == "28000"
        with dray.connect(server.uri("missing")) as client:
            with pytest.raises(
                dray.ConnectionError, match="No Such Driver.*odbcinst -q -d"
            ) as other:
                client.query("SELECT 1").arrow()
        shown = server.log() + str(caught.value) + str(other.value)
        assert wrong not in shown and "hunter2" not in shown
        assert string not in Path(f"/proc/{server.process.pid}/environ").read_text()


def test_without_the_program(maria: MariaServer, tmp_path: Path) -> None:
    """The server says what to install."""
    alone = tmp_path / "dray"
    shutil.copy(binary(), alone)
    previous = os.environ.get("DRAY_BINARY")
    os.environ["DRAY_BINARY"] = str(alone)
    try:
        with relay(*sources(maria=maria_string(maria))) as server:
            with dray.connect(server.uri("maria")) as client:
                with pytest.raises(dray.ConnectionError, match="there is no program dray-odbc"):
                    client.query("SELECT 1").arrow()
            assert "there is no program dray-odbc" in server.log()
    finally:
        if previous is None:
            del os.environ["DRAY_BINARY"]
        else:
            os.environ["DRAY_BINARY"] = previous


def test_sqlite_is_refused(tmp_path: Path) -> None:
    """Its driver changes values without a warning, whatever they are bound as."""
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (i integer)")
        database.execute("INSERT INTO t VALUES (3000000000)")
    odbc = f"odbc:Driver={{SQLite3}};Database={path}"
    with relay(*sources(lite=odbc, own=f"sqlite:{path}")) as server:
        with dray.connect(server.uri("lite")) as client:
            for _ in range(2):
                with pytest.raises(dray.ConnectionError, match="sqlite:PATH reads") as caught:
                    client.query("SELECT i FROM t").arrow()
                assert caught.value.sqlstate == "0A000"
        with dray.connect(server.uri("own")) as client:
            assert one(client, "SELECT i FROM t") == 3_000_000_000
