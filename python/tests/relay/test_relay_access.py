"""Who may use which source, and what for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mysql_server import PASSWORD, MariaServer
from postgres_server import PostgresServer
from relay_server import NAMES, Relay, one, relay, sources, wait_until
from server import binary

import dray


def test_names_and_tokens(
    postgres: PostgresServer, maria: MariaServer, files: Path, tmp_path: Path
) -> None:
    for user, token in (("all", "s-all"), ("alice", "s-alice"), ("bob", "s-bob")):
        (tmp_path / user).write_text(f"{token}\n")
    arguments = [
        *(str(files), *sources(pg=postgres.uri(), maria=maria.uri())),
        *("--token-file", str(tmp_path / "all")),
        *("--grant", f"{tmp_path / 'alice'}=pg,files"),
        *("--grant", f"{tmp_path / 'bob'}=maria"),
    ]
    opens = {
        "s-all": {"", "files", "pg", "maria"},
        "s-alice": {"", "files", "pg"},
        "s-bob": {"maria"},
    }
    with relay(*arguments) as server:
        for token, names in opens.items():
            for name in ("", "files", "pg", "maria"):
                if name in names:
                    with dray.connect(server.uri(name, token)) as connection:
                        assert one(connection, "SELECT 1") == 1
                    continue
                with pytest.raises(dray.AuthenticationError) as caught:
                    dray.connect(server.uri(name, token))
                listed = str(caught.value).partition("(you may use ")[2].partition(", as in")[0]
                assert set(listed.split(", ")) == names - {""}
                assert caught.value.sqlstate == "3D000"
            # A source that others have looks like one that nobody has.
            messages = []
            for name in ("none", "maria" if token == "s-alice" else "nine"):
                with pytest.raises(dray.AuthenticationError) as caught:
                    dray.connect(server.uri(name, token))
                messages.append(str(caught.value).replace(name, "NAME"))
            assert messages[0] == messages[1]
        for token in ("", "wrong", "s-alic", "s-alicee"):
            for name in ("pg", "", "none"):
                with pytest.raises(dray.AuthenticationError, match="token") as caught:
                    dray.connect(server.uri(name, token))
                assert "maria" not in str(caught.value)
        assert server.counter("connections_refused_total") > 0
        assert "s-alice" not in server.log() and "s-bob" not in server.log()


def test_a_server_of_sources_alone(postgres: PostgresServer) -> None:
    with relay(*sources(pg=postgres.uri())) as server:
        with dray.connect(server.uri("pg")) as connection:
            assert one(connection, "SELECT 1") == 1
        with pytest.raises(dray.AuthenticationError, match="no tables of its own.*use pg"):
            dray.connect(server.uri())
        with pytest.raises(dray.AuthenticationError, match="no source shop.*use pg"):
            dray.connect(server.uri("shop"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--source", "pg=oracle://me:geheim@host/x"], "has not the uri of a database"),
        (["--source", "postgresql://me:geheim@host/x"], "a source's name"),
        (["--source", "geheim"], "expected a source's name"),
        (["--source", "files=postgresql://me:geheim@h/x"], "can't have the name"),
        (["--source", "a/b=postgresql://me:geheim@h/x"], "can't have the name"),
        ([*sources(a="mysql://geheim@h/x"), *sources(a="mysql://geheim@h/x")], "two sources"),
        (["--source-writable", "pg"], "no source pg"),
        (["--source-connections", "pg=4"], "no source pg"),
        (["--source-file", "pg=/nowhere/at/all"], "/nowhere/at/all"),
        (["--grant", "/nowhere=pg"], "/nowhere"),
    ],
)
def test_wrong_options(arguments: list[str], expected: str) -> None:
    command = [str(binary()), "serve", "--listen", "127.0.0.1:0", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and expected in ran.stderr
    assert "geheim" not in ran.stdout + ran.stderr


def test_passwords_stay_at_the_server(
    postgres: PostgresServer, maria: MariaServer, tmp_path: Path
) -> None:
    secret = PASSWORD.replace("'", "%27").replace(" ", "%20")
    (tmp_path / "maria.uri").write_text(maria.uri() + "\n")
    wrong = maria.uri().replace(secret, "falsch-geheim")
    arguments = [
        *("--source-file", f"maria={tmp_path / 'maria.uri'}"),
        *sources(
            pg=postgres.uri().replace("postgres@", "postgres:pg-geheim@"),
            wrong=wrong,
            down="postgresql://me:down-geheim@127.0.0.1:1/x",
            nohost="mysql://me:host-geheim@no.such.host.invalid/x",
            odd="postgresql://me:odd-geheim@127.0.0.1:port/x?sslmode=odd-geheim",
        ),
        *("--log", "trace"),
    ]
    texts = []
    with relay(*arguments) as server:
        for name in ("maria", "pg", "wrong", "down", "nohost", "odd"):
            with dray.connect(server.uri(name)) as connection:
                for sql in ("SELECT 1", "SELECT nothing", "SELECT current_user"):
                    try:
                        texts.append(repr(list(connection.query(sql).rows())))
                    except dray.Error as error:
                        assert name in str(error) or sql == "SELECT nothing"
                        texts.append(f"{error!r} {error} {error.__cause__}")
        texts.append(server.log())
    everything = "\n".join(texts)
    assert "geheim" not in everything
    assert PASSWORD not in everything and secret not in everything
    assert "Access denied" in everything and "the source is there" in everything


def test_sessions_are_not_shared(server: Relay, name: str) -> None:
    """What a statement leaves behind in its session, no other client sees."""
    leave, look = {
        "pg": (
            "SELECT set_config('my.secret', 'mine', false), pg_advisory_lock(42)",
            "SELECT coalesce(current_setting('my.secret', true), '') = 'mine'",
        ),
        "maria": ("SELECT @secret := 'mine'", "SELECT coalesce(@secret, '') = 'mine'"),
    }[name]
    with dray.connect(server.uri(name)) as first:
        first.query(leave).arrow()
        assert one(first, look)
        with dray.connect(server.uri(name)) as second:
            assert not one(second, look)
    with dray.connect(server.uri(name)) as third:
        assert not one(third, look)
        if name == "pg":
            wait_until(lambda: bool(one(third, "SELECT pg_try_advisory_lock(42)")))


ATTACKS = {
    "pg": [
        "DELETE FROM relayed",
        "COMMIT",
        "COMMIT; DELETE FROM relayed",
        "SELECT 1; COMMIT; DELETE FROM relayed",
        "SELECT 1) TO STDOUT; COMMIT; DELETE FROM relayed; COPY (SELECT 1",
        "SET TRANSACTION READ WRITE",
        "SET default_transaction_read_only = off",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "WITH x AS (SELECT set_config('transaction_read_only', 'off', true)), "
        "y AS (DELETE FROM relayed RETURNING id) SELECT * FROM x, y",
        "WITH gone AS (DELETE FROM relayed RETURNING id) SELECT * FROM gone",
        "/* SELECT */ DELETE FROM relayed",
        "EXPLAIN ANALYZE DELETE FROM relayed",
        "SELECT * INTO stolen FROM relayed",
        "SELECT delete_all()",
        "DO $$ BEGIN COMMIT; DELETE FROM relayed; END $$",
        "CALL delete_all_and_commit()",
        "COPY relayed TO PROGRAM 'cat > /tmp/stolen'",
        "SELECT id FROM relayed FOR UPDATE",
        "SELECT nextval('relayed_numbers')",
        "CREATE TEMPORARY TABLE t (i integer)",
    ],
    "maria": [
        "DELETE FROM relayed",
        "COMMIT",
        "COMMIT; DELETE FROM relayed",
        "SELECT 1; DELETE FROM relayed",
        "BEGIN NOT ATOMIC COMMIT; DELETE FROM relayed; END",
        "SET STATEMENT tx_read_only = 0 FOR DELETE FROM relayed",
        "/*! DELETE FROM relayed */",
        "/*M! DELETE FROM relayed */",
        "/* /* */ DELETE FROM relayed -- */ SELECT 1",
        "SELECT delete_all()",
        "CALL delete_all_and_commit()",
        "WITH x AS (SELECT 1) DELETE FROM relayed",
        "SELECT NEXT VALUE FOR relayed_numbers",
        "EXECUTE IMMEDIATE 'DELETE FROM relayed'",
        "DROP TABLE relayed",
        "(SELECT 1) UNION (SELECT delete_all())",
        "SELECT id FROM relayed INTO OUTFILE '/nowhere/stolen'",
    ],
}


def test_a_source_is_read_only(
    postgres: PostgresServer, maria: MariaServer, server: Relay, name: str
) -> None:
    postgres.run(
        "CREATE OR REPLACE FUNCTION delete_all() RETURNS integer LANGUAGE plpgsql "
        "AS $$ BEGIN PERFORM set_config('transaction_read_only', 'off', true); "
        "DELETE FROM relayed; RETURN 1; END $$",
        "CREATE OR REPLACE PROCEDURE delete_all_and_commit() LANGUAGE plpgsql "
        "AS $$ BEGIN COMMIT; DELETE FROM relayed; COMMIT; END $$",
        "CREATE SEQUENCE IF NOT EXISTS relayed_numbers",
    )
    maria.run(
        "CREATE OR REPLACE FUNCTION delete_all() RETURNS int BEGIN DELETE FROM relayed; "
        "RETURN 1; END",
        "CREATE OR REPLACE PROCEDURE delete_all_and_commit() BEGIN COMMIT; "
        "DELETE FROM relayed; COMMIT; END",
        "CREATE OR REPLACE SEQUENCE relayed_numbers",
    )
    with dray.connect(server.uri(name)) as client:
        for sql in ATTACKS[name]:
            with pytest.raises(dray.Error) as caught:
                client.query(sql).arrow()
            assert caught.value.kind in ("query", "execution"), (sql, caught.value)
            # The next statement is not out of its transaction either.
            with pytest.raises(dray.Error):
                client.query("SELECT delete_all()").arrow()
            assert one(client, "SELECT count(*) FROM relayed") == 1000, sql


def test_a_source_that_may_write(postgres: PostgresServer, maria: MariaServer, name: str) -> None:
    uris = sources(pg=postgres.uri(), maria=maria.uri())
    with relay(*uris, "--source-writable", name) as server:
        with dray.connect(server.uri(name)) as client:
            for sql in (
                "DROP TABLE IF EXISTS relayed_written",
                "CREATE TABLE relayed_written (i integer)",
                "INSERT INTO relayed_written VALUES (1), (2)",
            ):
                assert client.query(sql).arrow().num_columns == 0
            assert one(client, "SELECT sum(i) FROM relayed_written") == 3
            # Its session is its own, as a connection to the database would be.
            client.query("BEGIN").arrow()
            client.query("DELETE FROM relayed_written").arrow()
            client.query("ROLLBACK").arrow()
            assert one(client, "SELECT count(*) FROM relayed_written") == 2
        other = next(one for one in NAMES if one != name)
        with dray.connect(server.uri(other)) as client, pytest.raises(dray.QueryError) as caught:
            client.query("DROP TABLE relayed").arrow()
        assert caught.value.sqlstate == "25006" and "--source-writable" in str(caught.value)
