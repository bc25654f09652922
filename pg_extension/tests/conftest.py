"""Each test runs on a server of each version named in DRAY_PG_CONFIGS (paths of pg_config, parted by colons)."""

import os

import pytest
from server import Server

PG_CONFIGS = os.environ.get("DRAY_PG_CONFIGS", "pg_config").split(":")


@pytest.fixture(scope="session", params=PG_CONFIGS)
def pg_config(request):
    return request.param


@pytest.fixture(scope="session")
def server(pg_config):
    with Server(pg_config) as server:
        yield server
        assert server.crashes() == []


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection
