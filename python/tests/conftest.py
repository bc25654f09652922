from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import data
import pytest
from server import Server

import dray


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    data.write(folder)
    return folder


@pytest.fixture(scope="session")
def server(files: Path) -> Iterator[Server]:
    # A Unix socket's path is short.
    folder = Path(tempfile.mkdtemp(prefix="dray"))
    server = Server(folder, str(files))
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["unix", "tcp"])
def uri(server: Server, request: pytest.FixtureRequest) -> str:
    return str(getattr(server, request.param))


@pytest.fixture
def connection(server: Server) -> Iterator[dray.Connection]:
    with dray.connect(server.unix) as connection:
        yield connection
