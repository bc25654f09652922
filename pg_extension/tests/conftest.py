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


#: Tests of what hardly depends on the server's version. They run on the newest one, and on each
#: with DRAY_ALL_VERSIONS or DRAY_PG_CONFIGS.
ON_ONE_VERSION = {
    "test_allocator",
    "test_interrupts",
    "test_limits",
    "test_memory",
    "test_state",
    "test_threads",
}


def pytest_collection_modifyitems(config, items):
    """Leaves tests to the newest version, and groups them for xdist.

    The groups are the versions, each with a server that is made and started once, and the tests of
    `ON_ONE_VERSION`, with a server of their own.
    """
    on_each = bool(PG_CONFIGS) or "DRAY_ALL_VERSIONS" in os.environ
    kept, left_out = [], []
    for item in items:
        version = item.callspec.params["pg_config"] if "pg_config" in item.fixturenames else None
        is_on_one = item.module.__name__ in ON_ONE_VERSION
        if is_on_one and not on_each and version not in (None, max(VERSIONS)):
            left_out.append(item)
            continue
        kept.append(item)
        if version is not None:
            group = f"{version}-on-one" if is_on_one else str(version)
            item.add_marker(pytest.mark.xdist_group(group))
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


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
