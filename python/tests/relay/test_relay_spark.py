"""Spark's Thrift server behind a Dray server, by the protocol of HiveServer2.

Spark has half a gigabyte, so `make test-all` runs this, and `make test` does not.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
import trustme
from hive_servers import PASSWORD, USER, SparkServer
from postgres_server import free_port
from relay_server import Relay, one, relay, sources, wait_until
from server import binary

import dray

pytestmark = pytest.mark.skipif(
    "DRAY_ALL_VERSIONS" not in os.environ, reason="Spark is large: DRAY_ALL_VERSIONS brings it"
)

#: Computes for minutes before its first row, and then has one.
SILENT = "SELECT count(*) FROM range(100000000000) WHERE sha2(CAST(id AS STRING), 256) LIKE 'xyz%'"
#: Has rows forever; each of its parts has 100,000 rows.
FOREVER = "SELECT id, repeat('x', 100) AS t FROM range(0, 10000000000, 1, 100000)"
LONG = "SELECT id, CAST(id AS STRING) AS t, id * 1.5D AS d FROM range(0, {rows}, 1, 20)"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkServer]:
    server = SparkServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def server(spark: SparkServer) -> Iterator[Relay]:
    address = f"127.0.0.1:{spark.port}"
    bare = {"nameless": f"spark://{address}", "unguarded": f"spark://{USER}@{address}/default"}
    uris = sources(lake=spark.uri(), own=spark.uri(), **bare)
    with relay(*uris, "--source-writable", "own") as server:
        yield server


@pytest.fixture
def connection(server: Relay) -> Iterator[dray.Connection]:
    with dray.connect(server.uri("lake")) as connection:
        yield connection


INSTANT = pa.timestamp("us")
#: A type's values as Spark's SQL, the type of their column here, and how Python writes its values
#: as Spark's cast to a string does.
CASES: list[tuple[list[str], pa.DataType, object]] = [
    (["true", "false"], pa.bool_(), lambda v: str(v).lower()),
    (["-128Y", "127Y"], pa.int8(), str),
    (["-32768S", "32767S"], pa.int16(), str),
    (["-2147483648", "2147483647"], pa.int32(), str),
    (["-9223372036854775808L", "9223372036854775807L"], pa.int64(), str),
    (["0.1D", "-1.5D", "123456.789D"], pa.float64(), str),
    (["'ü'", "''", "'a\\0b'", "repeat('x', 100000)"], pa.string(), str),
    (["1.50BD", "-0.05BD", "0.00BD"], pa.decimal128(3, 2), str),
    (
        [f"{'9' * 38}BD", f"-{'9' * 38}BD"],
        pa.decimal128(38, 0),
        str,
    ),
    (["CAST(0 AS DECIMAL(38, 38))"], pa.decimal128(38, 38), lambda v: f"{v:f}"),
    (["DATE'2024-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'"], pa.date32(), str),
    (
        ["TIMESTAMP'2024-02-29 12:34:56.789012'", "TIMESTAMP'1969-12-31 23:59:59'"],
        INSTANT,
        lambda v: str(v),
    ),
    (["TIMESTAMP_NTZ'2024-03-31 02:30:00'"], INSTANT, str),
]


@pytest.mark.parametrize("case", CASES, ids=[str(case[1]) + case[0][0][:12] for case in CASES])
def test_types(connection: dray.Connection, case: tuple[list[str], pa.DataType, object]) -> None:
    values, data_type, text = case
    assert callable(text)
    rows = ", ".join(f"({value})" for value in [*values, "NULL"])
    table = connection.query(f"SELECT v, CAST(v AS STRING) AS t FROM VALUES {rows} AS x(v)").arrow()
    assert table.schema.field("v").type == data_type
    found, expected = (table.column(name).to_pylist() for name in ("v", "t"))
    assert len(found) == len(values) + 1
    for value, spark_text in zip(found, expected, strict=True):
        assert (None if value is None else text(value)) == spark_text


def test_floats(connection: dray.Connection) -> None:
    """Spark sends a float as its shortest text, made a double."""
    sql = (
        "SELECT CAST(v AS FLOAT) AS f, CAST(CAST(v AS FLOAT) AS DOUBLE) AS wide FROM "
        "(SELECT (rand(7) - 0.5D) * pow(10D, rand(8) * 70 - 35) AS v FROM range(20000))"
    )
    table = connection.query(sql).arrow()
    assert table.schema.field("f").type == pa.float32()
    assert table.column("f").cast(pa.float64()).equals(table.column("wide"))
    special = "SELECT CAST('NaN' AS FLOAT), CAST('-inf' AS FLOAT), CAST('NaN' AS DOUBLE), -0.0D"
    ((nan, infinite, double, zero),) = list(connection.query(special).rows())
    assert nan != nan and double != double and infinite == float("-inf")
    assert str(zero) == "-0.0"


def test_binary_and_nested_values(connection: dray.Connection) -> None:
    table = connection.query(
        "SELECT X'00ff' AS b, X'' AS e, CAST(NULL AS BINARY) AS n, array(1, NULL) AS a, "
        "map('k', 1.5BD) AS m, named_struct('x', 1, 'y', 'q') AS s, "
        "INTERVAL '1-2' YEAR TO MONTH AS ym, INTERVAL '1 02:03:04.5' DAY TO SECOND AS ds, NULL AS v"
    ).arrow()
    assert table.to_pylist() == [
        {
            "b": b"\x00\xff",
            "e": b"",
            "n": None,
            "a": "[1,null]",
            "m": '{"k":1.5}',
            "s": '{"x":1,"y":"q"}',
            "ym": "1-2",
            "ds": "1 02:03:04.500000000",
            "v": None,
        }
    ]
    names = {
        field.name: (field.metadata or {}).get(b"dray:hive:type", b"").decode()
        for field in table.schema
    }
    assert names == {
        "b": "",
        "e": "",
        "n": "",
        "a": "array",
        "m": "map",
        "s": "struct",
        "ym": "interval_year_month",
        "ds": "interval_day_time",
        "v": "",
    }
    assert table.schema.field("v").type == pa.null()


def test_timestamps_are_in_utc(connection: dray.Connection) -> None:
    """The server's own zone is another."""
    sql = "SELECT current_timezone(), TIMESTAMP'2024-01-01 00:00:00+02:00'"
    ((zone, value),) = list(connection.query(sql).rows())
    assert (zone, str(value)) == ("UTC", "2023-12-31 22:00:00")
    far = "SELECT DATE'-0044-03-15' AS d, TIMESTAMP'+12345-01-01 00:00:00' AS t"
    table = connection.query(far).arrow()
    assert table.column("d").cast(pa.int32()).to_pylist() == [-735_525]
    assert table.column("t").cast(pa.int64()).to_pylist() == [3_789_391 * 86_400 * 1_000_000]


def test_nulls(connection: dray.Connection) -> None:
    sql = (
        "SELECT id, IF(id % 3 = 0, NULL, id) AS i, IF(id % 7 = 0, NULL, CAST(id AS STRING)) AS s, "
        "IF(id % 5 = 0, NULL, CAST(id AS DECIMAL(9, 1))) AS d FROM range(5000) ORDER BY id"
    )
    for row in connection.query(sql).rows():
        assert isinstance(row, tuple)
        i = row[0]
        expected = (
            None if i % 3 == 0 else i,
            None if i % 7 == 0 else str(i),
            None if i % 5 == 0 else Decimal(i),
        )
        assert row[1:] == expected


def test_results_without_rows(connection: dray.Connection) -> None:
    table = connection.query("SELECT id, 'x' AS t FROM range(9) WHERE id < 0").arrow()
    assert table.num_rows == 0
    assert table.schema.names == ["id", "t"]
    assert table.schema.field("id").type == pa.int64()
    duplicate = connection.query("SELECT 1 AS a, 2 AS a, '' AS ``").arrow()
    assert duplicate.schema.names == ["a", "a", ""]


def test_many_rows_in_little_memory(spark: SparkServer) -> None:
    with relay(*sources(lake=spark.uri())) as server:
        uri = f"{server.uri('lake')}?local_socket=false"
        with dray.connect(uri) as client:
            sums = [0, 0]
            client.query(LONG.format(rows=200_000)).arrow()
            before = server.memory()
            for batch in client.query(LONG.format(rows=3_000_000)).batches():
                sums[0] += batch.num_rows
                sums[1] += pa.compute.sum(batch.column("id")).as_py()
            assert sums == [3_000_000, 2_999_999 * 1_500_000]
            assert server.memory() - before < 64 << 20


def test_long_strings(connection: dray.Connection) -> None:
    sql = "SELECT id, repeat('ü', 4000000) AS t FROM range(0, 40, 1, 10) ORDER BY id"
    with connection.query(sql) as result:
        lengths = [len(row) for batch in result.batches() for row in batch.column("t").to_pylist()]
    assert lengths == [4_000_000] * 40


def test_cancelling(spark: SparkServer, server: Relay, connection: dray.Connection) -> None:
    """In mid-result, and before the first row: the server stops, and the session stays."""
    result = connection.query(FOREVER, batch_rows=1000)
    next(result.batches())
    result.cancel()
    wait_until(lambda: not spark.is_busy())
    assert one(connection, "SELECT 3") == 3
    command = [str(binary()), "query", server.uri("lake"), SILENT]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: "sha2" in spark.log() and spark.is_busy())
    time.sleep(1)
    assert spark.is_busy()
    client.terminate()
    client.communicate(timeout=10)
    wait_until(lambda: not spark.is_busy())


def test_a_client_that_vanishes(spark: SparkServer, server: Relay) -> None:
    command = [str(binary()), "query", server.uri("lake"), SILENT]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    wait_until(spark.is_busy)
    client.kill()
    client.communicate()
    wait_until(lambda: not spark.is_busy())


def test_errors(connection: dray.Connection) -> None:
    for sql, sqlstate, expected in [
        ("SELECT nope", "42703", "name `nope` cannot be resolved"),
        ("SELECT * FROM nowhere", "42P01", "`nowhere` cannot be found"),
        ("SELECT (1", "42601", "Syntax error at or near end of input"),
        ("SELECT 1/0", "22012", "Division by zero"),
        ("SELECT raise_error('hm')", "P0001", "hm"),
        ("SELECT 1; SELECT 2", "42601", "extra input 'SELECT'"),
    ]:
        with pytest.raises(dray.Error) as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == sqlstate, sql
        text = str(caught.value)
        assert expected in text
        assert "\tat " not in text and "Exception" not in text and "\n" not in text
    assert one(connection, "SELECT 1") == 1


def test_an_error_in_mid_result(connection: dray.Connection) -> None:
    sql = "SELECT IF(id = 900000, raise_error('too far'), id) AS i FROM range(0, 1000000, 1, 100)"
    rows = 0
    with pytest.raises(dray.Error, match="too far"):
        for batch in connection.query(sql, batch_rows=1000).batches():
            rows += batch.num_rows
    assert 0 < rows <= 900_000
    assert one(connection, "SELECT 2") == 2


def test_what_the_protocol_lacks(connection: dray.Connection) -> None:
    with pytest.raises(dray.QueryError, match="has no parameters") as caught:
        connection.query("SELECT ?", [1]).arrow()
    assert caught.value.sqlstate == "0A000"
    assert one(connection, "SELECT 1") == 1


def test_reading_and_writing(connection: dray.Connection, server: Relay) -> None:
    with dray.connect(server.uri("own")) as own:
        own.query("CREATE TABLE t (i INT, c CHAR(4), v VARCHAR(9)) USING parquet").arrow()
        own.query("INSERT INTO t VALUES (1, 'c', 'v')").arrow()
        own.query("WITH x AS (SELECT 2) INSERT INTO t SELECT *, 'd', NULL FROM x").arrow()
        table = own.query("SELECT * FROM t ORDER BY i").arrow()
        assert table.to_pydict() == {"i": [1, 2], "c": ["c   ", "d   "], "v": ["v", None]}
    for sql in (
        "INSERT INTO t VALUES (3, '', '')",
        "WITH x AS (SELECT 3) INSERT INTO t SELECT *, '', '' FROM x",
        "WITH x AS (SELECT 3) FROM x INSERT INTO t SELECT *, '', ''",
        "FROM t INSERT INTO t SELECT i, c, v",
        "DROP TABLE t",
        "SET x=1",
        "TRUNCATE TABLE t",
    ):
        with pytest.raises(dray.QueryError, match="read-only") as caught:
            connection.query(sql).arrow()
        assert caught.value.sqlstate == "25006"
    for sql in ("SHOW TABLES", "DESCRIBE t", "EXPLAIN SELECT 1", "VALUES (1)", "TABLE t"):
        assert connection.query(sql).arrow().num_rows > 0
    assert one(connection, "SELECT count(*) FROM t") == 2


def test_two_clients(server: Relay) -> None:
    """At the same time, each with a session of its own."""
    done: list[int] = []

    def run(client: dray.Connection, i: int) -> None:
        sql = f"SELECT id FROM range({i}, {i + 200_000})"
        done.append(client.query(sql).arrow().column("id")[0].as_py())

    with (
        dray.connect(server.uri("own")) as first,
        dray.connect(server.uri("own")) as second,
    ):
        first.query("SET dray.test = one").arrow()
        ((_, unset),) = list(second.query("SET dray.test").rows())
        assert unset == "<undefined>"
        threads = [
            threading.Thread(target=run, args=(client, i))
            for client, i in ((first, 0), (second, 1_000_000))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(done) == [0, 1_000_000]


def test_a_server_that_dies(tmp_path: Path) -> None:
    """In mid-result: an error, never a short result."""
    own = SparkServer()
    try:
        with relay(*sources(own=own.uri())) as server, dray.connect(server.uri("own")) as client:
            batches = client.query(FOREVER, batch_rows=1000).batches()
            next(batches)
            own.kill()
            with pytest.raises(dray.ConnectionError, match="the source own: "):
                for _ in batches:
                    pass
            with pytest.raises(dray.ConnectionError, match="can't connect to the source own: "):
                client.query("SELECT 1").arrow()
    finally:
        own.stop()


def test_a_session_that_expires() -> None:
    own = SparkServer(idle_session_timeout="3000", session_check_interval="3000")
    try:
        with relay(*sources(own=own.uri())) as server, dray.connect(server.uri("own")) as client:
            assert one(client, "SELECT 1") == 1
            wait_until(lambda: "Timed-out" in own.log())
            time.sleep(1)
            with pytest.raises(dray.ConnectionError, match="the source own: the server"):
                client.query("SELECT 2").arrow()
            assert one(client, "SELECT 3") == 3
    finally:
        own.stop()


@pytest.mark.parametrize("name", ["nameless", "unguarded"])
def test_a_login_without_a_password(server: Relay, name: str) -> None:
    with dray.connect(server.uri(name)) as client:
        assert one(client, "SELECT 1") == 1


def test_logins(tmp_path: Path) -> None:
    """With TLS and a password, which no error shows."""
    ca = trustme.CA()
    certificate = ca.issue_cert("localhost")
    (tmp_path / "cert.pem").write_bytes(certificate.private_key_and_cert_chain_pem.bytes())
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    store = tmp_path / "keys.p12"
    convert = ["openssl", "pkcs12", "-export", "-in", str(tmp_path / "cert.pem")]
    subprocess.run([*convert, "-out", str(store), "-passout", "pass:secret"], check=True)
    own = SparkServer(
        authentication="CUSTOM",
        use_SSL="true",
        keystore_path=str(store),
        keystore_password="secret",
    )

    def uri(password: str, options: str = f"?ssl-ca={tmp_path / 'ca.pem'}") -> str:
        return f"hive://{USER}:{quote(password, safe='')}@localhost:{own.port}/{options}"

    try:
        uris = {
            "good": uri(PASSWORD),
            "wrong": uri("wr0ng"),
            "untrusted": uri(PASSWORD, "?ssl=true"),
            "plain": uri(PASSWORD, "?connect-timeout=3"),
            "nobody": f"hive://u:wr0ng@127.0.0.1:{free_port()}",
        }
        with relay(*sources(**uris)) as server:
            with dray.connect(server.uri("good")) as client:
                assert one(client, "SELECT 1") == 1
            for name, expected in {
                "wrong": "does not let the user 'tester' in|\"tester\" in: .*",
                "untrusted": "TLS handshake failed",
                "plain": "does not log in by SASL",
                "nobody": "refused",
            }.items():
                with (
                    pytest.raises(dray.ConnectionError, match=expected) as caught,
                    dray.connect(server.uri(name)) as client,
                ):
                    client.query("SELECT 1").arrow()
                text = str(caught.value)
                assert f"can't connect to the source {name}: " in text
                assert "wr0ng" not in text and "secret" not in text
            assert "wr0ng" not in server.log() and "secret" not in server.log()
    finally:
        own.stop()


def test_without_sasl() -> None:
    own = SparkServer(authentication="NOSASL")
    try:
        options = {"bare": "?auth=nosasl", "small": "?auth=nosasl&rows=7", "sasl": ""}
        uris = {name: own.uri(options=text) for name, text in options.items()}
        uris["sasl"] += "?connect-timeout=3"
        with relay(*sources(**uris)) as server:
            for name in ("bare", "small"):
                with dray.connect(server.uri(name)) as client:
                    table = client.query(
                        "SELECT id, repeat('x', 300) AS t FROM range(1000)"
                    ).arrow()
                    assert table.column("id").to_pylist() == list(range(1000))
            with (
                pytest.raises(dray.ConnectionError, match="SASL"),
                dray.connect(server.uri("sasl")) as client,
            ):
                client.query("SELECT 1").arrow()
    finally:
        own.stop()
