"""A cluster of Spark, and what it reads. `make test-cluster` runs these tests; they need root."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# The laboratory has the hosts and links.
sys.path.insert(0, str(Path(__file__).parents[3]))

import accounts
from hosted import Database, Served, Source, of_database, served
from postgres_server import VERSIONS, Installation
from spark_cluster import HOSTS, RATE, Cluster

from lab.link.switch import Switch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def switch() -> Iterator[Switch]:
    with Switch(*HOSTS, rate=RATE) as switch:
        yield switch


@pytest.fixture(scope="session")
def started(switch: Switch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(switch, tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def application(started: Cluster, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """An application for the tests of a file, with the settings of Spark that it asks for."""
    with started.application(getattr(request.module, "SETTINGS", {})) as session:
        yield session


@pytest.fixture
def spark(cluster: Cluster, application: SparkSession) -> SparkSession:
    """The application, with an executor at each worker."""
    cluster.await_executors(application)
    return application


@pytest.fixture
def cluster(started: Cluster) -> Iterator[Cluster]:
    """The cluster with all links whole and fast, also after the test."""
    yield started
    for name in HOSTS:
        started.switch[name].mend()
    started.rates()


@pytest.fixture(scope="session")
def postgres(switch: Switch) -> Iterator[Database]:
    """A stock server: its rows take longer than what the extension sends."""
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    # The server's user must get there.
    folder.chmod(0o755)
    server = Database(switch["source"], Installation(VERSIONS[0], folder))
    yield server
    crashes = server.crashes()
    server.stop()
    shutil.rmtree(folder)
    assert not crashes, crashes


@pytest.fixture(scope="session")
def dray_server(
    switch: Switch, postgres: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A Dray server with the file `accounts.parquet` and the database."""
    path = tmp_path_factory.mktemp("files") / "accounts.parquet"
    accounts.write(path)
    with served(switch["source"], *of_database(postgres), str(path)) as server:
        yield server


@pytest.fixture(params=["postgres", "served", "files"])
def source(request: pytest.FixtureRequest, postgres: Database, dray_server: Served) -> Source:
    """Each of the sources, with a new table."""
    return the_source(request.param, postgres, dray_server)


@pytest.fixture(params=["postgres", "served"])
def database(request: pytest.FixtureRequest, postgres: Database, dray_server: Served) -> Source:
    """Each of the sources whose rows change, with a new table."""
    return the_source(request.param, postgres, dray_server)


@pytest.fixture
def postgres_source(postgres: Database, dray_server: Served) -> Source:
    return the_source("postgres", postgres, dray_server)


@pytest.fixture
def served_source(postgres: Database, dray_server: Served) -> Source:
    return the_source("served", postgres, dray_server)


def the_source(name: str, postgres: Database, dray_server: Served) -> Source:
    if name == "files":
        return Source(name, dray_server.uri("files"), None)
    postgres.run(accounts.DDL)
    uri = postgres.uri() if name == "postgres" else dray_server.uri("pg")
    return Source(name, uri, postgres)
