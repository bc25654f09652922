"""Real servers of HiveServer2's protocol, Spark's and Hive's own, as processes of the test's own.

`scripts/setup` unpacks them with DRAY_ALL_VERSIONS: each has some hundred megabytes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from postgres_server import CACHE, free_port

USER = "tester"
PASSWORD = "it's a secret"
#: PyPI's pyspark.
SPARK = CACHE / "spark" / "pyspark"
SPARK_MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
#: The jars of `hive/pom.xml`.
HIVE = CACHE / "hive"
HIVE_MAIN = "org.apache.hive.service.server.HiveServer2"
#: What Hive opens by reflection.
OPENED = [
    *("lang", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic"),
    *("util.regex", "net", "io", "nio", "text", "time"),
]
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


class ThriftServer:
    """A server on a free port of 127.0.0.1, whose tables are in a temporary folder."""

    scheme: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dray-hive-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        try:
            command = self.command()
            with open(self.folder / "log", "w") as log:
                self.process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    stdout=log,
                    stderr=log,
                    env={
                        **os.environ,
                        "SPARK_HOME": str(SPARK),
                        "SPARK_LOCAL_IP": "127.0.0.1",
                        # Sessions must choose the zone by themselves.
                        "TZ": "Asia/Tokyo",
                    },
                )
            deadline = time.monotonic() + 120
            while not self.has_started():
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, f"the server did not start: {self.log()}"
                time.sleep(0.2)
        except BaseException:
            self.stop()
            raise

    def command(self) -> list[str | Path]:
        raise NotImplementedError

    def has_started(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def uri(self, password: str = "anything", options: str = "") -> str:
        return f"{self.scheme}://{USER}:{password}@127.0.0.1:{self.port}/default{options}"

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
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class SparkServer(ThriftServer):
    """Spark's. ``hive`` are settings as HiveServer2 names them, such as ``authentication``."""

    scheme = "spark"

    def __init__(self, **hive: str) -> None:
        assert SPARK.exists(), f"no Spark at {SPARK}: run scripts/setup with DRAY_ALL_VERSIONS=1"
        self._hive = {name.replace("_", "."): value for name, value in hive.items()}
        super().__init__()

    def command(self) -> list[str | Path]:
        if self._hive.get("authentication") == "CUSTOM":
            (self.folder / "OnePassword.java").write_text(AUTHENTICATION)
            jars = f"{SPARK}/jars/*"
            compile_ = ["javac", "-cp", jars, "-d", str(self.folder), "OnePassword.java"]
            subprocess.run(compile_, cwd=self.folder, check=True)
            self._hive["custom.authentication.class"] = "OnePassword"
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
        hive = {
            "thrift.port": str(self.port),
            "thrift.bind.host": "127.0.0.1",
            **self._hive,
        }
        return [
            # The script becomes the server.
            SPARK / "bin" / "spark-submit",
            *("--master", "local[2]", "--class", SPARK_MAIN, "--driver-class-path", self.folder),
            *(word for pair in settings.items() for word in ("--conf", "=".join(map(str, pair)))),
            "spark-internal",
            *(word for pair in hive.items() for word in ("--hiveconf", setting(*pair))),
        ]

    def has_started(self) -> bool:
        return "ThriftBinaryCLIService on port" in self.log()


def setting(name: str, value: str) -> str:
    return f"hive.server2.{name}={value}"


class HiveServer(ThriftServer):
    """Hive's own, with its metastore in the same process."""

    scheme = "hive"

    def command(self) -> list[str | Path]:
        assert HIVE.exists(), f"no Hive at {HIVE}: run scripts/setup with DRAY_ALL_VERSIONS=1"
        database = f"jdbc:derby:;databaseName={self.folder}/metastore;create=true"
        settings = {
            "javax.jdo.option.ConnectionURL": database,
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": self.folder / "warehouse",
            "hive.server2.thrift.port": self.port,
            "hive.server2.thrift.bind.host": "127.0.0.1",
            "hive.server2.enable.doAs": "false",
            "hive.server2.webui.port": 0,
            "hive.server2.materializedviews.registry.impl": "DUMMY",
            "hive.execution.engine": "mr",
            "hive.support.concurrency": "false",
            "hive.exec.scratchdir": self.folder / "scratch",
            "hive.exec.local.scratchdir": self.folder / "local",
            "mapreduce.framework.name": "local",
            "fs.defaultFS": "file:///",
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>\n"
            for name, value in settings.items()
        )
        (self.folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
        opened = (f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED)
        return ["java", "-Xmx1500m", *opened, "-cp", f"{self.folder}:{HIVE}/*", HIVE_MAIN]
