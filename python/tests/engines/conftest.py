"""A real PostgreSQL and a real Dray server, which engines of several processes read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from engine_tables import DDL, PAIRS, TOKEN, pairs
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
def served(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """A server with the rows of ``pairs`` in a file of several row groups, and the source `pg`."""
    folder = tmp_path_factory.mktemp("engines")
    pyarrow.parquet.write_table(pairs(), folder / "pairs.parquet", row_group_size=PAIRS // 4)
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    given = ["--token-file", str(token), *sources(pg=postgres.uri())]
    with relay(*given, str(folder / "pairs.parquet")) as server:
        yield server
