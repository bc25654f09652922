"""What Spark's connector pushes down means in each database what it means in Spark.

A Java program plans conditions and statements in a local Spark over a source that pushes them to a
real database, and compares the rows with Spark's own over the same values. Spark has half a
gigabyte, so `make test-all` runs this, and `make test` does so if Spark is there.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mysql_server import PASSWORD, USER, DATABASE, MariaServer
from postgres_server import CACHE, REPOSITORY, VERSIONS, Installation, PostgresServer
from server import binary

JARS = CACHE / "spark" / "pyspark" / "jars"
DRIVERS = CACHE / "jdbc" / "drivers"
SOURCES = REPOSITORY / "java" / "spark" / "src"
PACKAGE = "java/dray/spark/pushdown"
#: Random conditions for each database. `make test-all` has many more.
CONDITIONS = 200 * (20 if "DRAY_ALL_VERSIONS" in os.environ else 1)
#: What Spark needs of newer JVMs.
OPENED = ["lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"]

pytestmark = pytest.mark.skipif(
    not JARS.exists() and "DRAY_ALL_VERSIONS" not in os.environ,
    reason="Spark is large: DRAY_ALL_VERSIONS brings it",
)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    sources = [
        path
        for part in ("main", "test")
        for path in (SOURCES / part / PACKAGE).glob("*.java")
        if not path.name.endswith("Test.java")
    ]
    subprocess.run(
        ["javac", "--release", "17", "-nowarn", "-cp", f"{JARS}/*", "-d", folder, *sources],
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    folder = tmp_path_factory.mktemp("postgres")
    for parent in folder.parents[:2]:
        parent.chmod(0o755)
    folder.chmod(0o755)
    server = PostgresServer(Installation(VERSIONS[0], folder))
    yield server
    server.stop()


def compare(classes: Path, folder: Path, *databases: str) -> str:
    seed = int(os.environ.get("DRAY_SEED") or random.randrange(1 << 30))
    command = [
        "java",
        "-Xmx1g",
        "-Duser.timezone=UTC",
        "-Djdk.reflect.useDirectMethodHandle=false",
        *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
        "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
        f"-Dlog4j2.configurationFile={SOURCES / 'test' / 'resources' / 'log4j2.properties'}",
        "-cp",
        f"{classes}:{JARS}/*:{DRIVERS}/*",
        "dray.spark.pushdown.Semantics",
        str(folder),
        str(seed),
        str(CONDITIONS),
        *databases,
    ]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"seed {seed}\n{ran.stdout}")
    assert ran.returncode == 0, f"DRAY_SEED={seed}\n{ran.stdout[-20000:]}"
    return ran.stdout


def test_same_rows(classes: Path, postgres: PostgresServer, tmp_path: Path) -> None:
    maria = MariaServer()
    try:
        address = f"127.0.0.1:{maria.port}/{DATABASE}?user={USER}&password={PASSWORD}"
        compare(
            classes,
            tmp_path,
            f"postgresql=jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?user=postgres",
            f"mariadb=jdbc:mariadb://{address}&useServerPrepStmts=true",
            f"dray={binary()}",
        )
    finally:
        maria.stop()
