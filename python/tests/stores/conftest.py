"""Object stores that the tests of this folder read and write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server
from store_servers import S3, Serve


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    server = S3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def own_s3(tmp_path: Path) -> Iterator[S3]:
    """A store that a test may stop."""
    server = S3(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def serve(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers with the store's credentials, and stops them in the end."""
    servers: list[Server] = []

    def start(*arguments: str, environment: dict[str, str] | None = None) -> Server:
        folder = tmp_path_factory.mktemp("served")
        server = Server(folder, *arguments, environment=environment or s3.environment())
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
