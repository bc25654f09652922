from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import data
import pytest
import trustme

# Explain failed assertions of these modules as in tests.
pytest.register_assert_rewrite("mysql_target", "postgres_client", "postgres_types", "write_target")

import postgres_client
import postgres_parallel
import postgres_type_cases
import postgres_types
import mysql_server
from mysql_server import MariaServer
from mysql_target import MysqlTarget
from postgres_client import Client
from postgres_server import (
    VERSIONS,
    EXTENSION_CHOICES,
    Installation,
    PgBouncer,
    PostgresServer,
    make_locales,
)
from postgres_types import Types
from server import Server
from write_target import Target

import dray


# A shell's background job ignores interrupts, and the programs that tests interrupt would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Files whose tests take long. They come first, so that no worker is left with one at the end.
SLOW_FILES = (
    "test_postgres_ended",
    "test_extension_faults",
    "test_silence",
    "test_types",
    "test_postgres_parallel_failures",
    "test_postgres_parallel",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the slow files to the front. The workers of xdist take files in this order."""
    order = {name: place for place, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    data.write(folder)
    return folder


@pytest.fixture(scope="session")
def server(files: Path) -> Iterator[Server]:
    # Paths of Unix sockets have to be short.
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(folder, str(files))
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A key and its certificates for localhost, their authority, and one that nobody asked."""
    folder = tmp_path_factory.mktemp("certificates")
    paths = {name: folder / f"{name}.pem" for name in ("authority", "chain", "key", "stranger")}
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(str(paths["authority"]))
    trustme.CA().cert_pem.write_to_path(str(paths["stranger"]))
    certificate.private_key_pem.write_to_path(str(paths["key"]))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(paths["chain"]), append=True)
    return paths


@pytest.fixture(params=["unix", "tcp"])
def uri(server: Server, request: pytest.FixtureRequest) -> str:
    return str(getattr(server, request.param))


@pytest.fixture
def connection(server: Server) -> Iterator[dray.Connection]:
    with dray.connect(server.unix) as connection:
        yield connection


@pytest.fixture(scope="session")
def start_postgres() -> Iterator[Callable[[int], PostgresServer]]:
    """Starts one server for each version on first use, with the extension if it was built."""
    servers: dict[int, PostgresServer] = {}
    tried: set[int] = set()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o755)
        locales = folder / "locales"

        def start(version: int) -> PostgresServer:
            if version not in servers:
                # A server that does not start is not tried again for each test.
                assert version not in tried, (
                    f"PostgreSQL {version} did not start, see the first error"
                )
                tried.add(version)
                if not locales.exists():
                    locales.mkdir()
                    make_locales(locales)
                installation = Installation(version, folder / str(version))
                if True in EXTENSION_CHOICES:
                    installation.install_extension(folder)
                server = PostgresServer(installation, locales=locales)
                stack.callback(server.stop)
                if True in EXTENSION_CHOICES:
                    server.run("CREATE EXTENSION dray")
                servers[version] = server
            return servers[version]

        yield start
        # No statement may crash its backend.
        crashes = {version: server.crashes() for version, server in servers.items()}
        assert not any(crashes.values()), crashes


@pytest.fixture(scope="session", params=VERSIONS)
def postgres(
    start_postgres: Callable[[int], PostgresServer], request: pytest.FixtureRequest
) -> PostgresServer:
    return start_postgres(request.param)


@pytest.fixture(
    scope="session", params=EXTENSION_CHOICES, ids=lambda choice: "extension" if choice else "rows"
)
def extension(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="session")
def start_mysql() -> Iterator[Callable[[str], MariaServer]]:
    """Starts one server of MariaDB or MySQL for each version on first use."""
    servers: dict[str, MariaServer] = {}
    with ExitStack() as stack:

        def start(version: str) -> MariaServer:
            if version not in servers:
                servers[version] = MariaServer(version)
                stack.callback(servers[version].stop)
            return servers[version]

        yield start


@pytest.fixture(scope="session", params=mysql_server.VERSIONS)
def mysql(start_mysql: Callable[[str], MariaServer], request: pytest.FixtureRequest) -> MariaServer:
    return start_mysql(request.param)


@pytest.fixture(scope="session")
def mariadb(start_mysql: Callable[[str], MariaServer]) -> MariaServer:
    return start_mysql(mysql_server.DISTRIBUTED)


@pytest.fixture(params=["load", "insert"])
def mysql_target(mariadb: MariaServer, request: pytest.FixtureRequest) -> Iterator[MysqlTarget]:
    """Rows that travel by LOAD DATA, and by prepared statements."""
    target = MysqlTarget(mariadb, request.param)
    yield target
    target.close()


@pytest.fixture
def pgbouncer(postgres: PostgresServer) -> Iterator[PgBouncer]:
    pooler = PgBouncer(postgres)
    yield pooler
    pooler.stop()


@pytest.fixture(scope="session")
def filled(postgres: PostgresServer) -> PostgresServer:
    with postgres.connect() as connection:
        if connection.execute("SELECT to_regclass('numbers')").fetchone() == (None,):
            postgres.run(postgres_client.DDL)
    return postgres


@pytest.fixture(scope="session")
def big(postgres: PostgresServer) -> PostgresServer:
    with postgres.connect() as connection:
        if connection.execute("SELECT to_regclass('many')").fetchone() == (None,):
            postgres.run(postgres_parallel.DDL)
    return postgres


@pytest.fixture
def client(filled: PostgresServer, extension: bool) -> Iterator[Client]:
    client = Client(filled.uri(), extension)
    yield client
    client.connection.close()


@pytest.fixture(scope="session")
def database(postgres: PostgresServer) -> PostgresServer:
    name = postgres_types.DATABASE
    with postgres.connect() as connection:
        if (
            connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
            is None
        ):
            connection.execute(f"CREATE DATABASE {name}")
            postgres.run(
                f"ALTER DATABASE {name} SET timezone = 'UTC'",
                postgres_type_cases.DDL,
                database=name,
            )
            if True in EXTENSION_CHOICES:
                postgres.run("CREATE EXTENSION dray", database=name)
    return postgres


@pytest.fixture
def target(postgres: PostgresServer) -> Iterator[Target]:
    target = Target(postgres)
    yield target
    target.dray.close()
    target.oracle.close()


@pytest.fixture(scope="module")
def types(database: PostgresServer, extension: bool) -> Iterator[Types]:
    with (
        database.connect(postgres_types.DATABASE) as oracle,
        dray.connect(database.uri(postgres_types.DATABASE)) as connection,
    ):
        yield Types(database, oracle, connection, extension)
