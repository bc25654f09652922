"""Two real databases behind one Dray server: the sources `pg` and `maria`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mysql_server import MariaServer
from postgres_server import VERSIONS, PostgresServer
from relay_server import NAMES, Relay, relay, sources

import dray

DDL = """
DROP TABLE IF EXISTS relayed;
CREATE TABLE relayed (id integer, name text);
INSERT INTO relayed SELECT i, 'row ' || i FROM generate_series(1, 1000) i;
"""


@pytest.fixture(scope="session")
def postgres(start_postgres: Callable[[int], PostgresServer]) -> PostgresServer:
    server = start_postgres(VERSIONS[0])
    server.run(DDL)
    return server


@pytest.fixture(scope="session")
def maria(mariadb: MariaServer) -> MariaServer:
    mariadb.run(
        "CREATE OR REPLACE TABLE relayed (id int, name text)",
        "INSERT INTO relayed SELECT seq, concat('row ', seq) FROM seq_1_to_1000",
    )
    return mariadb


@pytest.fixture(scope="session")
def server(postgres: PostgresServer, maria: MariaServer, files: Path) -> Iterator[Relay]:
    with relay(str(files), *sources(pg=postgres.uri(), maria=maria.uri())) as server:
        yield server


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connection(server: Relay, name: str) -> Iterator[dray.Connection]:
    with dray.connect(server.uri(name)) as connection:
        yield connection
