"""Other encodings, other extensions, and a pooler in between."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from client import Connection, ServerError
from server import Server, free_port


ENCODINGS = ("LATIN1", "SQL_ASCII")


@pytest.fixture(scope="module")
def databases(server):
    """A database for each encoding, named like it."""
    for encoding in ENCODINGS:
        with server.connect() as connection:
            connection.run(
                f"CREATE DATABASE {encoding} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
            )
        with server.connect(database=encoding.lower()) as connection:
            connection.run("CREATE EXTENSION dray")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_databases_of_other_encodings(server, databases, encoding):
    for client_encoding in ("UTF8", "LATIN1"):
        with server.connect(
            database=encoding.lower(), client_encoding=client_encoding
        ) as connection:
            # These bytes are valid in both encodings, with different meanings.
            connection.run(
                "CREATE TEMP TABLE t (v text, w varchar, n name, a text[], j jsonb, i inet)"
            )
            text = (
                "'h' || convert_from('\\xe9', 'LATIN1')" if encoding == "LATIN1" else "U&'h\\00e9'"
            )
            if encoding == "SQL_ASCII":
                text = "convert_from('\\x68c3a9', 'SQL_ASCII')"
            connection.run(
                f"INSERT INTO t SELECT x, x, x, ARRAY[x, NULL], '{{}}', '::1' FROM "
                f"(SELECT {text}) _ (x)"
            )
            found = connection.copy("t").columns()
            assert found == [["hé"], ["hé"], ["hé"], [["hé", None]], ["{}"], ["::1"]]
            # The client's encoding is unchanged.
            assert connection.value("SHOW client_encoding") == client_encoding
            with pytest.raises(ServerError, match="division"):
                connection.copy("(SELECT v, 1 / 0 FROM t)")
            if encoding == "LATIN1":
                connection.run(
                    'ALTER TABLE t RENAME v TO "caf'
                    + ("é" if client_encoding == "UTF8" else "e")
                    + '"'
                )
                assert connection.copy("t").schema()[0].name in ("café", "cafe")


def test_bytes_that_are_not_utf8(server, databases):
    with server.connect(database="sql_ascii") as connection:
        with pytest.raises(ServerError, match="invalid byte sequence") as caught:
            connection.copy("(SELECT convert_from('\\xff', 'SQL_ASCII'))")
        assert caught.value.sqlstate == "22021"


def test_text_that_is_not_utf8_where_text_is(connection):
    """The server does not validate the text that functions return."""
    made = (
        "CREATE FUNCTION pg_temp.as_text(bytea, integer) RETURNS text "
        "LANGUAGE internal IMMUTABLE STRICT AS "
    )
    connection.run(made + "'bytea_substr_no_len'")
    bad = "CASE WHEN i = 90000 THEN pg_temp.as_text('\\x61c3', 1) ELSE 'b' END"
    for value in (bad, f"ARRAY[{bad}]", f"({bad})::name"):
        for compression in ("none", "light", "'zstd:1'"):
            with pytest.raises(ServerError, match='column "v": a string is not UTF-8') as caught:
                connection.copy(
                    f"(SELECT i, {value} AS v FROM generate_series(1, 90001) i)",
                    f"compression {compression}",
                )
            assert caught.value.sqlstate == "22021"
            assert connection.value("SELECT 1") == "1"
    assert connection.copy("(SELECT textsend(pg_temp.as_text('\\x61c3', 1)) AS v)").columns() == [
        ["61c3"]
    ]


def test_conversions_are_not_kept(server, databases):
    with server.connect(database="latin1", client_encoding="LATIN1") as connection:
        used = (
            "SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'"
        )
        sizes = []
        for _ in range(4):
            for _ in range(50):
                connection.copy("(SELECT 1)")
            sizes.append(int(connection.value(used)))
        # Each cached conversion would take over 100 bytes.
        assert sizes[-1] - sizes[1] < 5000, sizes


def test_statistics_and_explain(pg_config):
    libraries = "pg_stat_statements,auto_explain"
    plain = Server(pg_config, features=None)
    if not shutil.os.path.exists(f"{plain.config('--pkglibdir')}/auto_explain.so"):
        # This server was installed without them; Debian's has them.
        return
    # Hooks run in reverse order of loading, so the others see the COPY first.
    settings = {
        "shared_preload_libraries": f"dray,{libraries}",
        "auto_explain.log_min_duration": "0",
    }
    with (
        Server(pg_config, features=None, settings=settings) as server,
        server.connect() as connection,
    ):
        connection.run("CREATE EXTENSION pg_stat_statements; CREATE TABLE counted (a int)")
        connection.run("INSERT INTO counted SELECT generate_series(1, 10)")
        for _ in range(3):
            assert len(connection.copy("(SELECT a FROM counted WHERE a > 0)").columns()[0]) == 10
        rows = connection.rows(
            "SELECT calls, rows FROM pg_stat_statements WHERE query LIKE '%FROM counted WHERE%'"
            " AND query NOT LIKE '%pg_stat%'"
        )
        assert ["3", "30"] in rows
        # The text of the utility statement is counted, too.
        assert (
            connection.value(
                "SELECT calls FROM pg_stat_statements WHERE query LIKE 'COPY%FORMAT dray%'"
            )
            == "3"
        )
        assert "Seq Scan on counted" in server.log.read_text(errors="replace")


def congestion_of(port: int) -> str:
    """The congestion control of the server's end of its only connection."""
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    deadline = time.monotonic() + 10
    while True:
        shown = subprocess.run(
            ["ss", "-Htin", f"sport = :{port}"], capture_output=True, check=True, text=True
        )
        found = [word for word in shown.stdout.split() if word in known]
        # The end of a connection before may still be there.
        if len(found) == 1 or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    (only,) = found
    return only


def test_the_congestion_control_of_a_statement(server):
    with server.connect() as connection:
        own = congestion_of(server.port)
        # The algorithms that any user may select. Linux always includes reno.
        offered = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
        other = next((name for name in offered if name != own), own)
        connection.run("SELECT pg_catalog.dray_load()")
        assert connection.value("SHOW dray.congestion_control") == ""
        # An algorithm that the kernel does not have is ignored.
        for wanted, during in ((other, other), ("none-such", own), ("x" * 5000, own), ("", own)):
            connection.run(f"SET dray.congestion_control = '{wanted}'")
            sql = (
                "COPY (SELECT i, repeat('x', 1000) FROM generate_series(1, 50000) i) "
                "TO STDOUT (FORMAT dray)"
            )
            connection.send(sql)
            # The result exceeds the socket's buffer, so the backend waits.
            assert connection.socket.recv(1, socket.MSG_PEEK)
            assert congestion_of(server.port) == during, wanted
            connection.read_result()
            assert congestion_of(server.port) == own, wanted
        connection.run(f"SET dray.congestion_control = '{other}'")
        with pytest.raises(ServerError, match="division"):
            connection.copy("(SELECT 1 / (i - 40000) FROM generate_series(1, 50000) i)")
        assert congestion_of(server.port) == own


def test_over_tls(server):
    if (
        "--with-openssl" not in (built := server.config("--configure"))
        and "--with-ssl" not in built
    ):
        # This server was built without TLS.
        return
    key, certificate = server.data / "server.key", server.data / "server.crt"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    for file in (key, certificate):
        file.chmod(0o600)
        if shutil.os.geteuid() == 0:
            shutil.chown(file, "postgres", "postgres")
    with server.connect() as connection:
        connection.run("ALTER SYSTEM SET ssl = on")
        connection.run("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 30
    while ssl_of_new_sessions(server) == "off":
        assert time.monotonic() < deadline, "the server does not turn TLS on"
        time.sleep(0.05)
    with Connection(server.port, "postgres", "postgres", tls=True) as connection:
        assert connection.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == "t"
        for compression in ("none", "light"):
            query = (
                "(SELECT i, md5(i::text), repeat('x', i % 300) FROM "
                "(SELECT generate_series(1, 40000) i) s)"
            )
            found = connection.copy(query, f"compression {compression}").columns()
            assert found[0] == list(range(1, 40001)) and found[2] == [
                "x" * (i % 300) for i in range(1, 40001)
            ]
        connection.send(
            f"SELECT pg_catalog.dray_load(); COPY {query.replace('40000', '90000000')} "
            "TO STDOUT (FORMAT dray)"
        )
        connection.read_message()
        time.sleep(0.3)
        pid_query = "SELECT pg_terminate_backend(pid) FROM pg_stat_ssl WHERE ssl"
        with server.connect() as other:
            other.run(pid_query)
            deadline = time.monotonic() + 30
            while other.rows("SELECT 1 FROM pg_stat_ssl WHERE ssl"):
                assert time.monotonic() < deadline, "the backend does not end"
                time.sleep(0.05)


def ssl_of_new_sessions(server) -> str:
    with server.connect() as connection:
        return connection.value("SHOW ssl")


def test_pooled_by_transactions(server, tmp_path_factory):
    """PgBouncer may use another backend for each transaction. Loading and copying are in one."""
    pgbouncer = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    folder, port = server.folder, free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
logfile = {folder}/pgbouncer.log
server_reset_query_always = 0
""".replace("* = host=127.0.0.1", "* = user=postgres host=127.0.0.1")
    )
    user = {"user": "postgres"} if shutil.os.geteuid() == 0 else {}
    proxy = subprocess.Popen([pgbouncer, "-q", str(config)], stderr=subprocess.DEVNULL, **user)
    try:
        for _ in range(100):
            try:
                connections = [Connection(port, "postgres", "postgres") for _ in range(6)]
                break
            except OSError:
                time.sleep(0.05)
        for turn in range(20):
            for connection in connections:
                found = connection.copy(
                    "(SELECT i, i::text FROM generate_series(1, 3000) i)"
                ).columns()
                assert found[0] == list(range(1, 3001))
            connections[turn % 6].send("SELECT pg_sleep(0.02)")
            connections[turn % 6].read_result()
    finally:
        # From version 1.23 on, PgBouncer waits for its clients when it is terminated.
        proxy.kill()
        proxy.wait()
