"""Real databases and a real Dray server, which engines of several processes read."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest
from engine_tables import DDL, MARIA_DDL, PAIRS, TOKEN, pairs
from mysql_server import MariaServer
from postgres_server import VERSIONS, Installation, PostgresServer
from relay_server import Relay, relay, sources


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A stock server: the extension makes no difference here."""
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    folder.chmod(0o755)
    try:
        server = PostgresServer(Installation(VERSIONS[0], folder / str(VERSIONS[0])))
        try:
            server.run(DDL)
            yield server
            assert not server.crashes()
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def narrow(postgres: PostgresServer) -> str:
    """A database without most of Unicode, whose table ``names`` has the rows (1, ü) and (2, x)."""
    postgres.run("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    postgres.run(
        "CREATE TABLE names (id integer, name text)",
        "INSERT INTO names VALUES (1, 'ü'), (2, 'x')",
        database="narrow",
    )
    return postgres.uri("narrow")


@pytest.fixture(scope="session")
def maria(mariadb: MariaServer) -> MariaServer:
    mariadb.run(*MARIA_DDL)
    return mariadb


@pytest.fixture(scope="session")
def served(
    postgres: PostgresServer, maria: MariaServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Relay]:
    """A server with the rows of ``pairs`` in a file of several row groups.

    Its sources are `pg`, `maria` and `lite`, a file of SQLite with the table ``kinds``.
    """
    folder = tmp_path_factory.mktemp("engines")
    with closing(sqlite3.connect(folder / "kinds.db")) as lite:
        lite.executescript("CREATE TABLE kinds (id integer); INSERT INTO kinds VALUES (1), (2);")
    pyarrow.parquet.write_table(pairs(), folder / "pairs.parquet", row_group_size=PAIRS // 4)
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    behind = sources(pg=postgres.uri(), maria=maria.uri(), lite=f"sqlite://{folder}/kinds.db")
    given = ["--token-file", str(token), *behind]
    with relay(*given, str(folder / "pairs.parquet")) as server:
        yield server
