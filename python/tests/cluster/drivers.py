"""Drivers that are processes of their own, and die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hive_servers import SPARK
from spark_cluster import WORKERS, Cluster, wait_for

from lab.spark import standalone


@contextmanager
def driver(cluster: Cluster, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program beside this file is a driver, which has executors by now. It is killed at the end,
    unless it has ended.
    """
    host = cluster.switch["driver"]
    words = [*host.inside, sys.executable, str(Path(__file__).with_name(name)), *arguments]
    settings = (f"{name}={value}" for name, value in cluster.settings().items())
    environment = os.environ | standalone.environment(SPARK, host.address)
    environment["PYTHONPATH"] = os.pathsep.join(standalone.packages(SPARK))
    program = subprocess.Popen([*words, *settings], env=environment)
    try:
        wait_for(lambda: all(map(cluster.executor, WORKERS)) or program.poll() is not None)
        yield program
    finally:
        # Python's part of it, and the JVM.
        for pid in host.processes():
            os.kill(pid, signal.SIGKILL)
        program.wait()
        host.mend()
        wait_for(lambda: not any(cluster.executor(worker) for worker in WORKERS))
