"""What Spark's connector pushes down means in each database what it means in Spark.

A Java program plans conditions and statements in a local Spark over a source that pushes them to a
real database, and compares the rows with Spark's own over the same values.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mysql_server import DATABASE, PASSWORD, USER, MariaServer
from postgres_server import CACHE, REPOSITORY, VERSIONS, Installation, PostgresServer
from server import binary

JARS = CACHE / "spark" / "pyspark" / "jars"
DRIVERS = CACHE / "jdbc" / "drivers"
TRANSLATION = (
    REPOSITORY / "java" / "spark" / "src" / "main" / "java" / "dray" / "spark" / "pushdown"
)
#: The program that compares.
COMPARISON = Path(__file__).parent / "pushdown"
#: Random conditions for each database, and for every fourth of them a statement.
CONDITIONS = 20 * int(os.environ.get("DRAY_TEST_ROUNDS", "10"))
#: What Spark needs of the JVM.
OPENED = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    sources = [*TRANSLATION.glob("*.java"), *COMPARISON.glob("*.java")]
    subprocess.run(
        ["javac", "--release", "17", "-nowarn", "-cp", f"{JARS}/*", "-d", folder, *sources],
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def plain_postgres() -> Iterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    folder.chmod(0o755)
    try:
        server = PostgresServer(Installation(VERSIONS[0], folder))
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)


def compare(classes: Path, folder: Path, database: str) -> None:
    seed = int(os.environ.get("DRAY_SEED") or random.randrange(1 << 30))
    command = [
        "java",
        "-Xmx1g",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={COMPARISON / 'log4j2.properties'}",
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
        "-cp",
        f"{classes}:{JARS}/*:{DRIVERS}/*",
        "dray.spark.pushdown.Semantics",
        str(folder),
        str(seed),
        str(CONDITIONS),
        database,
    ]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 0, f"DRAY_SEED={seed}\n{ran.stdout[-20000:]}"
    print(ran.stdout)


def test_postgres(classes: Path, plain_postgres: PostgresServer, tmp_path: Path) -> None:
    address = f"127.0.0.1:{plain_postgres.port}/postgres?user=postgres"
    compare(classes, tmp_path, f"postgresql=jdbc:postgresql://{address}")


def test_mariadb(classes: Path, mariadb: MariaServer, tmp_path: Path) -> None:
    address = f"127.0.0.1:{mariadb.port}/{DATABASE}?user={USER}&password={PASSWORD}"
    compare(classes, tmp_path, f"mariadb=jdbc:mariadb://{address}&useServerPrepStmts=true")


def test_mysql(classes: Path, start_mysql: Callable[[str], MariaServer], tmp_path: Path) -> None:
    server = start_mysql("mysql-8.0")
    options = "sslMode=DISABLED&useServerPrepStmts=true&connectionTimeZone=UTC"
    address = f"127.0.0.1:{server.port}/{DATABASE}?user={USER}&password={PASSWORD}"
    compare(classes, tmp_path, f"mysql=jdbc:mysql://{address}&{options}")


def test_files(classes: Path, tmp_path: Path) -> None:
    compare(classes, tmp_path, f"dray={binary()}")
