"""Every test runs on a server of each version.

The servers are copies of those that python/tests finds, or those whose pg_config is named in
DRAY_PG_CONFIGS (separated by colons). The extension is installed into them.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from server import Server

sys.path.append(str(Path(__file__).parents[2] / "python" / "tests"))
from postgres_server import VERSIONS, Installation  # noqa: E402

PG_CONFIGS = [path for path in os.environ.get("DRAY_PG_CONFIGS", "").split(":") if path]


def pytest_collection_modifyitems(items):
    """Groups the tests by version for xdist, so that each server is made and started once."""
    for item in items:
        if "pg_config" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(str(item.callspec.params["pg_config"])))


@pytest.fixture(scope="session", params=PG_CONFIGS or VERSIONS)
def pg_config(request):
    if PG_CONFIGS:
        yield request.param
        return
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    # Servers run as a user without access to root's files.
    folder.chmod(0o755)
    yield str(Installation(request.param, folder / str(request.param)).bin / "pg_config")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server(pg_config):
    with Server(pg_config) as server:
        yield server
        assert server.crashes() == []


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection
