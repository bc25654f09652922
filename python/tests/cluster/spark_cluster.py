"""A standalone cluster of Spark: a master and two workers, each a process at a host of its own.

driver ──┐
master ──┤ bridge        Each line is a link that a test makes slow, or cuts.
worker-1 ┤
worker-2 ┤
source ──┤ PostgreSQL, and `dray serve` with it as a source and with files
replica ─┘ PostgreSQL's standby
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hive_servers import SPARK
from postgres_server import CACHE

from lab.common.process import Process, memory_bytes
from lab.link.switch import Switch
from lab.spark import standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What `make spark` builds.
JAR = Path(os.environ.get("DRAY_SPARK_JAR") or CACHE / "spark-connector" / "dray-spark.jar")
HOSTS = ("driver", "master", "worker-1", "worker-2", "source", "replica")
WORKERS = ("worker-1", "worker-2")
RATE = "1gbit"
HEAP = "512m"
MASTER_PORT = 7077
#: For all virtual machines, so that they compile less before they begin.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: A machine that others keep busy may take minutes to start a JVM.
PATIENCE_S = 600


class Cluster:
    """The hosts, and Spark's processes at them."""

    def __init__(self, switch: Switch, folder: Path) -> None:
        assert SPARK.exists(), f"no Spark at {SPARK}: run scripts/setup CACHE spark"
        assert JAR.exists(), f"no connector at {JAR}: run make spark"
        os.environ["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS
        self.switch = switch
        self.folder = folder
        self.url = f"spark://{switch['master'].address}:{MASTER_PORT}"
        self.exit = ExitStack()
        try:
            master = self._start("master", standalone.MASTER, "--port", str(MASTER_PORT))
            wait_for(lambda: "New state: ALIVE" in master.output())
            for name in WORKERS:
                work = ("--cores", "1", "--memory", "2g", "--work-dir", str(folder / name))
                self._start(name, standalone.WORKER, *work, self.url)
            wait_for(lambda: master.output().count("Registering worker") == len(WORKERS))
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str, java_class: str, *arguments: str) -> Process:
        host, log = self.switch[name], self.folder / f"{name}.log"
        process = standalone.daemon(
            SPARK, host.address, log, java_class, *arguments, inside=host.inside
        )
        self.exit.callback(process.stop)
        return process

    def settings(self) -> dict[str, object]:
        """Those of every application: an executor of one core at each worker."""
        return {
            "spark.master": self.url,
            # All hosts have the same files.
            "spark.jars": f"local:{JAR}",
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.executor.memory": HEAP,
            "spark.executor.cores": "1",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": self.folder / "warehouse",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": self.folder / "local",
        }

    @contextmanager
    def application(self, settings: Mapping[str, object] | None = None) -> Iterator[SparkSession]:
        """An application whose driver is a JVM of this process, at the driver's host."""
        host = self.switch["driver"]
        given = self.settings() | dict(settings or {})
        with host.entered(), standalone.application(SPARK, host.address, given) as session:
            self.await_executors(session)
            yield session
        wait_for(lambda: not any(self.executor(name) for name in WORKERS))

    @staticmethod
    def await_executors(session: SparkSession) -> None:
        """Wait until there is one at each worker."""
        known = session.sparkContext._jsc.sc().getExecutorMemoryStatus
        # The driver is in the list, too.
        wait_for(lambda: known().size() == len(WORKERS) + 1)

    def executor(self, worker: str) -> int | None:
        """The process of the executor at a worker, if there is one."""
        pids = self.switch[worker].processes()
        return next((pid for pid in pids if standalone.is_executor(pid)), None)

    def executor_peak(self, worker: str) -> int:
        """The most memory that the executor at a worker has had so far, in bytes."""
        executor = self.executor(worker)
        assert executor is not None
        return memory_bytes(executor, "VmHWM") or 0

    def rates(self, **rates: str) -> None:
        """Give some links these rates, as in `worker_1="10mbit"`, and the others the usual one."""
        for name in HOSTS:
            self.switch[name].rate(rates.get(name.replace("-", "_"), RATE))

    def await_bytes(self, worker: str, count: int, is_alive: Callable[[], bool]) -> None:
        """Wait until a worker has received so many more bytes, as long as their reader lives."""
        host = self.switch[worker]
        start = host.received_bytes()
        wait_for(lambda: host.received_bytes() - start >= count or not is_alive())
        assert is_alive(), "what should read has ended"

    def stop(self) -> None:
        self.exit.close()


def wait_for(found: Callable[[], Any]) -> Any:
    """What is found at last."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
    return value
