"""Derby's network server, and the drivers of JDBC that scripts/jdbc fetches."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from postgres_server import CACHE, free_port

JAR = CACHE / "jdbc" / "dray-jdbc.jar"
DRIVERS = CACHE / "jdbc" / "drivers"
USER = "tester"
PASSWORD = "s3cret&word"


class DerbyServer:
    """A server with a home of its own, on a free port of 127.0.0.1, that asks for a password."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dray-derby-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        options = {
            "derby.system.home": str(self.folder),
            "derby.connection.requireAuthentication": "true",
            "derby.authentication.provider": "BUILTIN",
            f"derby.user.{USER}": PASSWORD,
        }
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-noSecurityManager"]
        log = self.folder / "log"
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [
                    *["java", "-Xmx512m", "-cp", f"{DRIVERS}/*"],
                    *[f"-D{name}={value}" for name, value in options.items()],
                    *["org.apache.derby.drda.NetworkServerControl", "start", *where],
                ],
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 60
        while "ready to accept connections" not in log.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)

    def uri(self, password: str = PASSWORD) -> str:
        return f"jdbc:derby://127.0.0.1:{self.port}/shop;user={USER};password={password}"

    def run(self, *statements: str) -> str:
        """Runs statements by Derby's own client, and returns what it prints."""
        script = "".join(
            f"{one};\n" for one in (f"CONNECT '{self.uri()};create=true'", *statements)
        )
        ran = subprocess.run(
            ["java", "-cp", f"{DRIVERS}/*", "org.apache.derby.tools.ij"],
            input=script.encode(),
            capture_output=True,
            timeout=300,
            check=True,
        )
        output = ran.stdout.decode()
        # Errors end neither the program nor its script.
        assert "ERROR" not in output, output
        return output

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)
