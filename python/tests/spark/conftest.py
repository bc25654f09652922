"""One Spark for all tests of the connector, and databases that it reads.

Spark has half a gigabyte, so `make test-all` runs these tests, and `make test` does not."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hive_servers import SPARK
from mysql_server import MariaServer
from postgres_server import VERSIONS, Installation, PostgresServer
from reading import JAR
from relay_server import Relay, relay, sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "DRAY_ALL_VERSIONS" not in os.environ:
        skip = pytest.mark.skip(reason="Spark is large: DRAY_ALL_VERSIONS brings it")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server without the extension, whose tables are read as rows."""
    # The server's user must get there.
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    folder.chmod(0o755)
    server = PostgresServer(Installation(VERSIONS[0], folder))
    server.run(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders AS SELECT i AS id, 'row ' || i AS name, (i * 1.5)::float8 AS x, "
        "nullif(i % 3, 0) AS third FROM generate_series(1, 100000) i",
        "ANALYZE orders",
    )
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def maria(mariadb: MariaServer) -> MariaServer:
    mariadb.run(
        "CREATE OR REPLACE TABLE orders (id int PRIMARY KEY, name text)",
        "INSERT INTO orders SELECT seq, concat('row ', seq) FROM seq_1_to_100000",
        "ANALYZE TABLE orders",
    )
    return mariadb


@pytest.fixture(scope="session")
def server(postgres: PostgresServer, maria: MariaServer, files: Path) -> Iterator[Relay]:
    """A Dray server with files and the two databases."""
    with relay(str(files), *sources(pg=postgres.uri(), maria=maria.uri())) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    assert SPARK.exists(), f"no Spark at {SPARK}: run scripts/setup with DRAY_ALL_VERSIONS=1"
    assert JAR.exists(), f"no connector at {JAR}: run make spark"
    packages = [str(SPARK.parent), *map(str, SPARK.glob("python/lib/py4j-*.zip"))]
    sys.path[:0] = packages
    os.environ["PYTHONPATH"] = os.pathsep.join([*packages, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.jars": JAR,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.local.dir": folder / "local",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.timeType.enabled": "true",
    }
    # Two threads, and each task is tried three times.
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    # The JVM ends with its standard input.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
