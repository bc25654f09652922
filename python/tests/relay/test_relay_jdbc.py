"""Databases that the bridge in Java reads by their JDBC drivers, behind a Dray server."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from jdbc import DRIVERS, JAR, PASSWORD, DerbyServer
from mysql_server import DATABASE, USER, MariaServer
from mysql_server import PASSWORD as PASSWORD_OF_MYSQL
from postgres_server import PostgresServer
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

ROWS = 500_000
TYPES = {
    "a": "smallint",
    "b": "int",
    "c": "bigint",
    "d": "real",
    "e": "double",
    "f": "decimal(31,5)",
    "g": "boolean",
    "h": "char(5)",
    "i": "varchar(100)",
    "j": "clob",
    "k": "varchar(10) for bit data",
    "l": "blob",
    "m": "date",
    "n": "time",
    "o": "timestamp",
}
VALUES = (
    "(-32768, -2147483648, -9223372036854775807 - 1, -1.5, 1e-300, "
    "-12345678901234567890123456.78901, true, 'a', 'ü', 'clob', X'00ff', CAST(X'ff00' AS blob), "
    "'0001-01-01', '23:59:59', '1677-09-22 00:00:00.123456789')",
    "(1, 2, 3, 4, 5, 6.00001, false, 'b', '', '', X'', CAST(X'' AS blob), '1582-10-04', "
    "'00:00:00', '2262-04-11 23:47:16.854775807')",
)


@pytest.fixture(scope="module")
def derby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DerbyServer]:
    server = DerbyServer()
    try:
        numbers = tmp_path_factory.mktemp("derby") / "numbers.csv"
        numbers.write_text(
            "".join(f'{i},{i * 7919 % 1_000_003}.25,"comment number {i}"\n' for i in range(ROWS))
        )
        columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        server.run(
            f"CREATE TABLE types ({columns})",
            *(f"INSERT INTO types VALUES {values}" for values in VALUES),
            "INSERT INTO types (a) VALUES (NULL)",
            "CREATE TABLE numbers (id int, price decimal(15,2), comment varchar(44))",
            "CALL SYSCS_UTIL.SYSCS_IMPORT_TABLE(null, 'NUMBERS', "
            f"'{numbers}', ',', '\"', 'UTF-8', 0)",
            "CREATE TABLE large (id int, c clob, b blob)",
        )
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAY_JDBC_JAR", str(JAR))
        patch.setenv("DRAY_JDBC_CLASSPATH", str(DRIVERS))
        yield


@pytest.fixture(scope="module")
def server(derby: DerbyServer) -> Iterator[Relay]:
    arguments = [*sources(derby=derby.uri(), written=derby.uri()), "--source-writable", "written"]
    with relay(*arguments, "--jdbc-memory", "128MiB") as server:
        yield server


@pytest.fixture
def connection(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("derby")) as connection:
        yield connection


def bridges(server: Relay) -> dict[int, int]:
    """The Java processes of a server, and the most memory of each in bytes."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue
        if int(fields["PPid"]) == server.process.pid and fields["Name"].strip() == "java":
            found[int(fields["Pid"])] = int(fields.get("VmHWM", "0 kB").split()[0]) << 10
    return found


def test_types(connection: dray.Connection) -> None:
    table = connection.query("SELECT * FROM types").arrow()
    assert table.schema.names == [name.upper() for name in TYPES]
    assert table.schema.types == [
        *[pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()],
        *[pa.decimal128(31, 5), pa.bool_(), pa.string(), pa.string(), pa.string()],
        *[pa.binary(), pa.binary(), pa.date32(), pa.time64("us"), pa.timestamp("ns")],
    ]
    first, second, third = (list(row.values()) for row in table.drop(["O"]).to_pylist())
    assert first == [
        *[-(2**15), -(2**31), -(2**63), -1.5, 1e-300],
        *[Decimal("-12345678901234567890123456.78901"), True, "a    ", "ü", "clob"],
        *[b"\0\xff", b"\xff\0", datetime.date(1, 1, 1), datetime.time(23, 59, 59)],
    ]
    assert second[7:] == [
        *["b    ", "", "", b"", b"", datetime.date(1582, 10, 4), datetime.time(0, 0)]
    ]
    assert third == [None] * 14
    assert table["O"].cast(pa.int64()).to_pylist() == [
        -9223286399876543211,
        9223372036854775807,
        None,
    ]


@pytest.mark.parametrize("column", ["a", "b", "c", "f", "g", "h", "m", "n", "o"])
def test_values_are_those_of_derby(connection: dray.Connection, column: str) -> None:
    """As text, beside Derby's own text of the same value."""
    sql = f"SELECT {column}, CAST({column} AS char(40)) FROM types"
    table = connection.query(sql).arrow()
    texts = table.column(0).cast(pa.string()).to_pylist()
    expected = [text and text.rstrip() for text in table.column(1).to_pylist()]
    assert [text and text.rstrip().removesuffix(".000000") for text in texts] == expected
    assert expected[2] is None


def test_empty_results(connection: dray.Connection) -> None:
    table = connection.query("SELECT * FROM types WHERE 1 = 0").arrow()
    assert table.num_rows == 0
    assert table.schema == connection.query("SELECT * FROM types").arrow().schema


def test_parameters(connection: dray.Connection) -> None:
    sql = "SELECT id, comment FROM numbers WHERE id BETWEEN ? AND ? ORDER BY id"
    assert list(connection.query(sql, [7, 8]).rows()) == [
        (7, "comment number 7"),
        (8, "comment number 8"),
    ]
    values = [datetime.date(1, 2, 3), Decimal("12.34"), "ü", b"\0\xff", None, True]
    sql = (
        "VALUES (CAST(? AS date), CAST(? AS decimal(10,2)), CAST(? AS varchar(9)), "
        "CAST(? AS varchar(9) for bit data), CAST(? AS int), CAST(? AS boolean))"
    )
    assert list(connection.query(sql, values).rows()) == [tuple(values)]
    with pytest.raises(dray.Error):
        connection.query(sql, [1]).arrow()
    assert one(connection, "VALUES 1") == 1


def test_large_objects(server: Relay) -> None:
    text, data = "ü" * 500_000, os.urandom(1 << 20)
    with dray.connect(server.uri("written")) as client:
        client.query("INSERT INTO large VALUES (1, ?, ?)", [text, data]).arrow()
        client.query("INSERT INTO large VALUES (2, NULL, NULL)").arrow()
    with dray.connect(server.uri("derby")) as client:
        rows = list(client.query("SELECT * FROM large ORDER BY id").rows())
    assert rows == [(1, text, data), (2, None, None)]


def test_many_rows_in_flat_memory(derby: DerbyServer) -> None:
    """A reader that waits holds the database back, and no process grows."""
    arguments = [*sources(derby=derby.uri()), "--jdbc-memory", "48MiB"]
    with relay(*arguments) as server, dray.connect(server.tcp.replace("?", "/derby?")) as client:
        assert one(client, "VALUES 1") == 1
        before = server.memory()
        wide = "SELECT a.*, CAST(a.comment AS char(254)) AS wide FROM numbers a"
        batches = client.query(f"{wide} UNION ALL {wide}").batches()
        tables = [next(batches)]
        time.sleep(2)
        rows = sum(batch.num_rows for batch in batches) + tables[0].num_rows
        assert rows == 2 * ROWS
        assert server.memory() - before < 250 << 20
        ((_, memory),) = bridges(server).items()
        assert memory < 300 << 20, memory
        table = client.query("SELECT * FROM numbers").arrow()
        assert table["ID"].to_pylist() == list(range(ROWS))
        assert table["PRICE"][7919].as_py() == Decimal(f"{7919 * 7919 % 1_000_003}.25")


def test_cancelling(server: Relay, connection: dray.Connection) -> None:
    forever = "SELECT a.id FROM numbers a, numbers b"
    result = connection.query(forever)
    next(result.batches())
    result.cancel()
    assert one(connection, "VALUES 3") == 3
    # Before its first row. The bridge ends with the client.
    before = set(bridges(server))
    silent = "SELECT sum(a.price + b.price) FROM numbers a, numbers b"
    command = [str(binary()), "query", server.uri("derby"), silent]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(set(bridges(server)) - before) == 1)
    time.sleep(2)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=15)
    assert client.returncode == 130
    wait_until(lambda: set(bridges(server)) <= before)


def test_two_clients(server: Relay) -> None:
    sql = "SELECT * FROM numbers"
    with dray.connect(server.uri("derby")) as one_client, dray.connect(server.uri("derby")) as two:
        first, second = one_client.query(sql).batches(), two.query(sql).batches()
        rows = [0, 0]
        for mine, other in zip(first, second, strict=False):
            rows[0] += mine.num_rows
            rows[1] += other.num_rows
        rows[0] += sum(batch.num_rows for batch in first)
        rows[1] += sum(batch.num_rows for batch in second)
        assert sum(rows) >= 2 * ROWS - 65_536 and max(rows) == ROWS
        assert len(bridges(server)) >= 2


def test_reading_only(server: Relay, connection: dray.Connection) -> None:
    for sql in ("DELETE FROM numbers", "COMMIT", "SELECT 1 FROM numbers; DELETE FROM numbers"):
        with pytest.raises(dray.QueryError, match="the source derby is read-only: ") as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == "25006"
    assert one(connection, "SELECT count(*) FROM numbers") == ROWS
    with dray.connect(server.uri("written")) as client:
        client.query("CREATE TABLE mine (i int)").arrow()
        client.query("INSERT INTO mine VALUES 1, 2").arrow()
        assert one(client, "SELECT count(*) FROM mine") == 2
        client.query("DROP TABLE mine").arrow()


def test_errors(connection: dray.Connection) -> None:
    with pytest.raises(dray.QueryError, match="NOTHING") as caught:
        connection.query("SELECT nothing FROM numbers").arrow()
    assert caught.value.sqlstate == "42X04"
    with pytest.raises(dray.ExecutionError, match="divide by zero") as caught:
        connection.query("SELECT 1 / (id - 400000) FROM numbers").arrow()
    assert caught.value.sqlstate == "22012"
    assert one(connection, "VALUES 1") == 1


def test_a_wrong_password(derby: DerbyServer) -> None:
    with relay(*sources(derby=derby.uri("wr0ng"))) as server:
        with dray.connect(server.uri("derby")) as client:
            with pytest.raises(dray.Error, match="can't connect to the source derby: ") as caught:
                client.query("VALUES 1").arrow()
            assert caught.value.sqlstate == "08004"
        assert "wr0ng" not in str(caught.value) + server.log()
        assert PASSWORD not in server.log()


def test_a_database_that_goes_away(tmp_path: Path) -> None:
    derby = DerbyServer()
    try:
        derby.run(
            "CREATE TABLE t (i int, c char(254) default 'x')",
            "INSERT INTO t (i) VALUES 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        )
        with relay(*sources(derby=derby.uri())) as server:
            with dray.connect(server.uri("derby")) as client:
                tables = ", ".join(f"t t{i}" for i in range(7))
                batches = client.query(f"SELECT t0.* FROM {tables}").batches()
                next(batches)
                derby.kill()
                with pytest.raises(dray.ConnectionError, match="the source derby: "):
                    for _ in batches:
                        pass
                with pytest.raises(dray.ConnectionError, match="can't connect to the source"):
                    client.query("VALUES 1").arrow()
                derby.start()
                assert one(client, "VALUES 2") == 2
    finally:
        derby.stop()


def failure(arguments: list[str], **environment: str) -> str:
    """What a server that does not start says."""
    ran = subprocess.run(
        [str(binary()), "serve", "--listen", "tcp://127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 2
    return ran.stderr


def test_what_is_missing(derby: DerbyServer, tmp_path: Path) -> None:
    source = sources(derby=derby.uri())
    missing = failure(source, DRAY_JDBC_JAR=str(tmp_path / "a.jar"))
    assert f"DRAY_JDBC_JAR: there is no file {tmp_path}/a.jar" in missing
    missing = failure(source, DRAY_JDBC_JAR="")
    assert "sources of JDBC need dray-jdbc.jar in " in missing
    missing = failure([*source, "--jdbc-classpath", "/nowhere/derby.jar"])
    assert "--jdbc-classpath: there is no /nowhere/derby.jar" in missing
    assert PASSWORD not in missing
    with relay(*source, "--jdbc-classpath", "") as server:
        with dray.connect(server.uri("derby")) as client, pytest.raises(dray.Error) as caught:
            client.query("VALUES 1").arrow()
        assert "no JDBC driver takes this uri, and these are known: none" in str(caught.value)
        assert "--jdbc-classpath" in str(caught.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        patch.delenv("JAVA_HOME", raising=False)
        with relay(*source) as server, dray.connect(server.uri("derby")) as client:
            with pytest.raises(dray.Error, match="there is no program java") as caught:
                client.query("VALUES 1").arrow()
            assert caught.value.hint is not None and "Java 17" in caught.value.hint


def test_postgresql(postgres: PostgresServer) -> None:
    """Rows come as they are made, and types are those of a direct connection but for names."""
    uri = f"jdbc:postgresql://127.0.0.1:{postgres.port}/{jdbc_database(postgres)}"
    with relay(*sources(pg=uri), "--jdbc-memory", "48MiB") as server:
        with dray.connect(server.uri("pg")) as client, dray.connect(postgres.uri()) as direct:
            sql = (
                "SELECT i, i::bigint * i AS b, (i / 7.0)::numeric(20,5) AS n, 'row ' || i AS t, "
                "'2024-02-29'::date + i % 1000 AS d, timestamp '0001-01-01' + i * interval '1 s' "
                "AS ts, timestamptz '2024-02-29 12:00+02' AS tz, time '12:34:56.789' AS ti, "
                "i % 2 = 0 AS bool, '\\x00ff'::bytea AS y, 1.5::real AS r, 0.1::float8 AS f "
                "FROM generate_series(1, 300000) i"
            )
            assert client.query(sql).arrow().equals(direct.query(sql).arrow())
            others = (
                "SELECT 'NaN'::numeric AS n, 1e100::numeric AS g, gen_random_uuid() AS u, "
                "'{\"a\": 1}'::jsonb AS j, '1.50'::money AS m, '12:00+02'::timetz AS z, "
                "B'101' AS v, '1 day'::interval AS iv"
            )
            table = client.query(others).arrow()
            assert set(table.schema.types) == {pa.string()}
            assert table["n"].to_pylist() == ["NaN"] and table["v"].to_pylist() == ["101"]
            assert table["z"].to_pylist() == ["12:00:00+02"]
            assert table["g"].to_pylist() == ["1" + "0" * 100]
            for sql, what in (
                ("SELECT ARRAY[1, 2] AS a", "column a: the type _int4"),
                ("SELECT 'infinity'::date AS a", "column a: "),
                ("SELECT 'NaN'::numeric(5,2) AS a", "NaN"),
            ):
                with pytest.raises(dray.Error, match=what):
                    client.query(sql).arrow()
            with pytest.raises(dray.Error, match="read-only transaction") as caught:
                client.query("WITH x AS (DELETE FROM relayed RETURNING 1) SELECT 1").arrow()
            assert caught.value.sqlstate == "25006"
            result = client.query("SELECT generate_series(1, 1000000000000) AS i")
            next(result.batches())
            result.cancel()
            assert one(client, "SELECT 1") == 1


def test_postgresql_that_is_writable(postgres: PostgresServer) -> None:
    """Behind a comment, too, rows come as they are made, and those of changed rows."""
    uri = f"jdbc:postgresql://127.0.0.1:{postgres.port}/{jdbc_database(postgres)}"
    postgres.run("DROP TABLE IF EXISTS jdbc_wide", "CREATE TABLE jdbc_wide (i integer, t text)")
    wide = "SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 300000) i"
    arguments = [*sources(pg=uri), "--source-writable", "pg", "--jdbc-memory", "48MiB"]
    with relay(*arguments) as server, dray.connect(server.uri("pg")) as client:
        for sql in (
            f"/* a /* b */ */ -- c\n{wide}",
            f"INSERT INTO jdbc_wide {wide} RETURNING *",
            "TABLE jdbc_wide",
        ):
            rows = sum(batch.num_rows for batch in client.query(sql).batches())
            assert rows == 300_000, sql
        client.query("VACUUM jdbc_wide").arrow()
    with postgres.connect() as oracle:
        assert oracle.execute("SELECT count(*) FROM jdbc_wide").fetchone() == (300_000,)
        oracle.execute("DROP TABLE jdbc_wide")


def jdbc_database(postgres: PostgresServer) -> str:
    """The database and the user of a server, as its JDBC driver takes them."""
    with postgres.connect() as oracle:
        row = oracle.execute("SELECT current_database(), current_user").fetchone()
    assert row is not None
    return f"{row[0]}?user={row[1]}"


@pytest.mark.parametrize("driver", ["mysql", "mariadb"])
def test_mysql(maria: MariaServer, driver: str) -> None:
    """By MySQL's own driver, which streams only if it is asked for in its own way, and MariaDB's,
    which would make other values of some."""
    password = PASSWORD_OF_MYSQL
    if driver == "mysql":
        password = quote(password)
    uri = f"jdbc:{driver}://127.0.0.1:{maria.port}/{DATABASE}?user={USER}&password={password}"
    with relay(*sources(my=uri), "--jdbc-memory", "48MiB") as server:
        with dray.connect(server.uri("my")) as client:
            sql = "SELECT seq, repeat('x', 500) AS t FROM seq_1_to_300000"
            rows = sum(batch.num_rows for batch in client.query(sql).batches())
            assert rows == 300_000
            maria.run(
                "SET sql_mode = ''",
                "CREATE OR REPLACE TABLE jdbc_types (a tinyint(1), b bigint unsigned, c year, "
                "d bit(9), e datetime(6), f decimal(65,30), g date, h time, i float, j float, "
                "k double(10,2))",
                "INSERT INTO jdbc_types VALUES (2, 18446744073709551615, 2024, b'100000001', "
                "'9999-12-31 23:59:59.999999', 1.5, '0001-01-01', '12:34:56', 16777216, "
                "1.2345678, 12345678.9), "
                "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
                "CREATE OR REPLACE TABLE jdbc_strange (d date, e datetime, t time, u time, "
                "v time(6))",
                "INSERT INTO jdbc_strange VALUES ('0000-00-00', '0000-00-00 00:00:00', "
                "'-12:00:00', '100:00:00', '-00:00:00.000001')",
            )
            table = client.query("SELECT * FROM jdbc_types").arrow()
            assert table.schema.field("b").type == pa.uint64()
            first, second = (tuple(row.values()) for row in table.to_pylist())
            assert first == (
                *(2, 2**64 - 1, 2024, b"\1\1"),
                datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
                *(Decimal("1.5"), datetime.date(1, 1, 1), datetime.time(12, 34, 56)),
                *(16777216.0, 1.2345677614212036, 12345678.9),
            )
            assert second == (None,) * 11
            for column in "detuv":
                with pytest.raises(dray.ExecutionError):
                    client.query(f"SELECT {column} FROM jdbc_strange").arrow()
            result = client.query("SELECT a.seq AS i FROM seq_1_to_1000000000 a")
            next(result.batches())
            result.cancel()
            assert one(client, "SELECT 1") == 1
            # An error does not wait for the rest of the rows, and the session goes on.
            session = one(client, "SELECT connection_id()")
            rest = "FROM seq_1_to_1000000000"
            start = time.monotonic()
            with pytest.raises(dray.LimitError, match="row_bytes_max"):
                sql = f"SELECT IF(seq = 5, repeat('x', 2000000), 'x') AS t {rest}"
                client.query(sql, row_bytes_max=1 << 20, chunk_bytes_max=1 << 19).arrow()
            with pytest.raises(dray.ExecutionError):
                sql = f"SELECT CAST(IF(seq = 5, '100:00:00', '1:00:00') AS time) AS t {rest}"
                client.query(sql).arrow()
            assert one(client, "SELECT connection_id()") == session
            # To read all rows takes many minutes.
            assert time.monotonic() - start < 120


def test_floats_that_come_as_text(maria: MariaServer) -> None:
    """MariaDB gives six digits of them then. MySQL's driver takes no such setting from the uri."""
    maria.run(
        "CREATE OR REPLACE TABLE jdbc_float (f float)", "INSERT INTO jdbc_float VALUES (16777216)"
    )
    place = f"127.0.0.1:{maria.port}/{DATABASE}?user={USER}&useServerPrepStmts=false"
    mysql = f"jdbc:mysql://{place}&password={quote(PASSWORD_OF_MYSQL)}"
    mariadb = f"jdbc:mariadb://{place}&password={PASSWORD_OF_MYSQL}"
    with relay(*sources(mysql=mysql, mariadb=mariadb)) as server:
        with dray.connect(server.uri("mysql")) as client:
            assert one(client, "SELECT f FROM jdbc_float") == 16777216
        with dray.connect(server.uri("mariadb")) as client:
            with pytest.raises(dray.ExecutionError, match="column f: .* six digits of a float"):
                client.query("SELECT f FROM jdbc_float").arrow()
            assert one(client, "SELECT CAST(f AS double) FROM jdbc_float") == 16777216
