"""Spark's standalone cluster: its daemons, its executors, and applications in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lab.common.process import Process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
DRIVER_END_S = 180.0


def packages(spark: Path) -> list[str]:
    """The folders of Python's packages."""
    return [str(spark.parent), *map(str, spark.glob("python/lib/py4j-*.zip"))]


def environment(spark: Path, address: str) -> dict[str, str]:
    """That of Spark's processes at a host. `spark` is the folder of the package `pyspark`."""
    return {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": address,
        "SPARK_PUBLIC_DNS": address,
        "SPARK_LOCAL_HOSTNAME": address,
        "PYSPARK_PYTHON": sys.executable,
    }


def daemon(
    spark: Path,
    address: str,
    log: Path,
    java_class: str,
    *arguments: str,
    inside: Sequence[str] = (),
) -> Process:
    """Start a master or a worker. `inside` is the prefix of a command line at its host."""
    given = environment(spark, address) | {"SPARK_DAEMON_MEMORY": "256m"}
    # Its web page has a port, whichever is free.
    return Process(
        [
            *inside,
            *("env", *(f"{name}={value}" for name, value in given.items())),
            *(str(spark / "bin" / "spark-class"), java_class),
            *("--host", address, "--webui-port", "0", *arguments),
        ],
        log,
    )


def is_executor(pid: int) -> bool:
    with suppress(OSError):  # It may have ended.
        return EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def executors(worker: int) -> list[int]:
    """The executors that a worker has started."""
    children = (
        path.read_text().split() for path in Path(f"/proc/{worker}/task").glob("*/children")
    )
    return [int(pid) for some in children for pid in some if is_executor(int(pid))]


@contextmanager
def application(
    spark: Path, address: str, settings: Mapping[str, object]
) -> Iterator[SparkSession]:
    """An application whose driver is a JVM of this process."""
    sys.path[:0] = [folder for folder in packages(spark) if folder not in sys.path]
    os.environ.update(environment(spark, address))
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    here = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    for name, value in (here | dict(settings)).items():
        builder = builder.config(name, str(value))
    session = builder.getOrCreate()
    try:
        session.sparkContext.setLogLevel("ERROR")
        yield session
    finally:
        gateway = session.sparkContext._gateway
        session.stop()
        gateway.shutdown()
        # The JVM ends with its standard input. Another application has another JVM, since settings
        # stay in this one.
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=DRIVER_END_S)
        SparkContext._gateway = SparkContext._jvm = None
