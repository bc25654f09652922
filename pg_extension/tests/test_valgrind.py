"""A whole backend under valgrind: uses of uninitialized bytes, and accesses beyond a block.

To valgrind, PostgreSQL's memory contexts are a few large blocks, so it finds more mistakes of the
Rust code than of the C code. PostgreSQL has some errors of its own. Those with the extension on the
stack count, and uninitialized bytes that are sent to a client.
"""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from client import ServerError
from postgres_server import VERSIONS
from server import USER, Server
from test_interrupts import begin
from test_memory import TABLES, TURNS
from test_values import CASES, TYPES

LONG = "(SELECT i, md5(i::text) FROM (SELECT generate_series(1, 50000000) i) s)"


class Watched(Server):
    """A server that runs under valgrind once its data directory exists."""

    def __enter__(self):
        super().__enter__()
        self.run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")
        valgrind = ["valgrind", "--trace-children=yes", "--error-limit=no", "--num-callers=30"]
        user = {"user": USER} if os.geteuid() == 0 else {}
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [
                    *valgrind,
                    f"--log-file={self.folder}/valgrind.%p",
                    self.bin / "postgres",
                    "-D",
                    self.data,
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **user,
            )
        deadline = time.monotonic() + 120
        while True:
            try:
                self.connect().socket.close()
                return self
            except (OSError, ServerError):
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, self.log.read_text(errors="replace")
                time.sleep(0.2)

    def stop(self):
        """Stops the server. A process writes its report when it exits."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=120) == 0

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=120)
        shutil.rmtree(self.folder)

    def errors(self) -> list[str]:
        """Valgrind's errors, each with its stack."""
        found = []
        for path in self.folder.glob("valgrind.*"):
            text = re.sub(r"^==\d+== ?", "", path.read_text(errors="replace"), flags=re.MULTILINE)
            assert "ERROR SUMMARY" in text, text
            found += [part for part in text.split("\n\n") if "   at 0x" in part]
        return found


# The versions differ only in PostgreSQL's own code, and each takes a while.
@pytest.mark.parametrize("pg_config", VERSIONS[:1], indirect=True)
def test_nothing_unset_is_used_or_sent(server):
    with Watched(server.pg_config, features=None, settings={"jit": "off"}) as watched:
        with watched.connect() as connection:
            connection.run(TYPES + TABLES)
            for compression in ("none", "light", "zstd"):
                for i, (pg_type, literals, *_) in enumerate(CASES):
                    if pg_type == "xml":
                        continue
                    rows = ", ".join(
                        "(NULL), ('{}')".format(literal.replace("'", "''")) for literal in literals
                    )
                    if compression == "none":
                        connection.run(
                            f"CREATE TABLE case_{i} (v {pg_type}); INSERT INTO case_{i} "
                            f"VALUES {rows}"
                        )
                    connection.copy(
                        f"case_{i}", f"compression {compression}, checksums on"
                    ).columns()
            for turn in TURNS:
                turn(connection)
            with watched.connect() as victim:
                begin(victim, LONG, "compression light")
                victim.read_message()
                connection.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE query LIKE '%50000000%' AND pid <> pg_backend_pid()"
                )
                with pytest.raises((ServerError, ConnectionError)):
                    victim.read_result()
            with watched.connect() as victim:
                begin(victim, LONG)
                victim.read_message()
            connection.run("CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        with watched.connect(database="latin1", client_encoding="LATIN1") as connection:
            connection.run("CREATE EXTENSION dray; CREATE TABLE t (v text, n name, a text[])")
            connection.run("INSERT INTO t SELECT convert_from('\\xe9', 'LATIN1'), 'x', ARRAY['y']")
            assert connection.copy("t").columns() == [["é"], ["x"], [["y"]]]
        watched.stop()
        errors = watched.errors()
        print(len(errors), "errors, PostgreSQL's own among them")
        ours = [
            error
            for error in errors
            if "dray.so" in error or re.search(r"param (socketcall\.)?send|param writev?\(", error)
        ]
        # PostgreSQL writes padding bytes to files.
        ours = [error for error in ours if "_IO_file_write" not in error]
        assert not ours, ours[0]
        assert watched.crashes() == []
