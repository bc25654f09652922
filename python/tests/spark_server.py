"""A real Thrift server of Spark, as a process of the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from postgres_server import CACHE, free_port

USER = "tester"
PASSWORD = "it's a secret"
#: PyPI's pyspark, which `scripts/setup` unpacks with DRAY_ALL_VERSIONS: half a gigabyte.
HOME = CACHE / "spark" / "pyspark"
MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
#: Lets in whoever knows the password.
AUTHENTICATION = """
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

public class OnePassword implements PasswdAuthenticationProvider {
    public void Authenticate(String user, String password) throws AuthenticationException {
        if (!user.equals("USER") || !password.equals("PASSWORD"))
            throw new AuthenticationException("wrong password");
    }
}
""".replace("USER", USER).replace("PASSWORD", PASSWORD)


class SparkServer:
    """A server on a free port of 127.0.0.1, whose tables are in a temporary folder.

    ``hive`` are settings as HiveServer2 names them, such as ``authentication``.
    """

    def __init__(self, **hive: str) -> None:
        assert HOME.exists(), f"no Spark at {HOME}: run scripts/setup with DRAY_ALL_VERSIONS=1"
        self.folder = Path(tempfile.mkdtemp(prefix="dray-spark-"))
        self.port = free_port()
        self._hive = {
            "thrift.port": str(self.port),
            "thrift.bind.host": "127.0.0.1",
            **{name.replace("_", "."): value for name, value in hive.items()},
        }
        try:
            if hive.get("authentication") == "CUSTOM":
                self._compile_authentication()
            self._start()
        except BaseException:
            self.stop()
            raise

    def _compile_authentication(self) -> None:
        (self.folder / "OnePassword.java").write_text(AUTHENTICATION)
        compile_ = ["javac", "-cp", f"{HOME}/jars/*", "-d", str(self.folder), "OnePassword.java"]
        subprocess.run(compile_, cwd=self.folder, check=True)
        self._hive["custom.authentication.class"] = "OnePassword"

    def _start(self) -> None:
        settings = {
            "spark.sql.catalogImplementation": "in-memory",
            # Rows are sent while they are made.
            "spark.sql.thriftServer.incrementalCollect": "true",
            "spark.driver.memory": "2g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.local.dir": self.folder / "local",
            "spark.sql.warehouse.dir": self.folder / "warehouse",
        }
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        hive = [
            word
            for name, value in self._hive.items()
            for word in ("--hiveconf", f"hive.server2.{name}={value}")
        ]
        with open(self.folder / "log", "w") as log:
            # The script becomes the server.
            self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [
                    HOME / "bin" / "spark-submit",
                    *("--master", "local[2]", "--class", MAIN),
                    *("--driver-class-path", self.folder),
                    *words,
                    "spark-internal",
                    *hive,
                ],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "SPARK_HOME": str(HOME),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    # Sessions must choose the zone by themselves.
                    "TZ": "Asia/Tokyo",
                },
            )
        deadline = time.monotonic() + 120
        while "ThriftBinaryCLIService on port" not in self.log():
            running = self.process.poll() is None and time.monotonic() < deadline
            assert running, f"Spark did not start: {self.log()}"
            time.sleep(0.2)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def uri(self, password: str = "anything", options: str = "") -> str:
        return f"spark://{USER}:{password}@127.0.0.1:{self.port}/default{options}"

    def cpu_s(self) -> float:
        """The processor time that the server has used."""
        assert self.process is not None
        # Behind the name, which may have blanks: user and system time are the 12th and 13th.
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_busy(self) -> bool:
        """Whether it computes: over a fifth of a processor in half a second."""
        before = self.cpu_s()
        time.sleep(0.5)
        return self.cpu_s() - before > 0.1

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        process = getattr(self, "process", None)
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
