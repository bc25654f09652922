"""Servers at hosts of a cluster. Tests inspect them over Unix sockets, which all hosts share."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from postgres_server import SUPERUSER, Installation, PostgresServer, free_port
from relay_server import Relay, sources

from lab.link.switch import NETWORK, PREFIX_BITS, Host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOKEN = "s3cret"
#: All but the sessions of the tests and of standbys.
SESSIONS = (
    "SELECT host(client_addr), state FROM pg_stat_activity WHERE backend_type = 'client backend' "
    "AND application_name <> 'test'"
)


class Database(PostgresServer):
    """A server at a host, open to the other hosts."""

    def __init__(
        self, host: Host, installation: Installation, settings: Mapping[str, Any] | None = None
    ) -> None:
        self.host = host
        given = {
            "listen_addresses": f"127.0.0.1,{host.address}",
            "statement_timeout": "10min",
            "log_statement": "none",
            "max_connections": 60,
            "shared_buffers": "128MB",
        }
        with host.entered():
            super().__init__(installation, given | dict(settings or {}))

    def _make(self, data: Path) -> None:
        super()._make(data)
        with open(data / "pg_hba.conf", "a") as rules:
            for database in ("all", "replication"):
                rules.write(f"host {database} all {NETWORK}0/{PREFIX_BITS} trust\n")

    def uri(self, database: str = SUPERUSER, user: str = SUPERUSER, options: str = "") -> str:
        return f"postgresql://{user}@{self.host.address}:{self.port}/{database}{options}"

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection[Any]:
        return psycopg.connect(self.unix, dbname=database, autocommit=True, application_name="test")

    def sessions(self) -> list[tuple[str | None, str]]:
        """The addresses and states of all sessions but the tests' own."""
        with self.connect() as connection:
            return connection.execute(SESSIONS).fetchall()


class Standby(Database):
    """A streaming standby of another server."""

    def __init__(self, host: Host, primary: Database, settings: Mapping[str, Any]) -> None:
        self.primary = primary
        super().__init__(host, primary.installation, settings)

    def _make(self, data: Path) -> None:
        where = ("-h", self.primary.host.address, "-p", self.primary.port, "-U", SUPERUSER)
        self._run("pg_basebackup", *where, "-D", data, "-R", "-c", "fast", "--no-sync")

    def catch_up(self) -> None:
        """Wait until what is committed at the primary is here."""
        with self.primary.connect() as primary:
            ((written,),) = primary.execute("SELECT pg_current_wal_lsn()::text").fetchall()
        with self.connect() as standby:
            ask = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while standby.execute(ask, [written]).fetchone() != (True,):
                time.sleep(0.01)


@dataclass(frozen=True)
class Served:
    """A Dray server at a host."""

    server: Relay
    address: str

    def uri(self, source: str) -> str:
        # The network is as private as the machine.
        return f"dray://{TOKEN}@{self.address}/{source}?plain_token=true"


@contextmanager
def served(host: Host, *arguments: str) -> Iterator[Served]:
    """A Dray server at a host, for others to read from."""
    folder = Path(tempfile.mkdtemp(prefix="dray-served-"))
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    try:
        with host.entered():
            address = f"{host.address}:{free_port()}"
            server = Relay(
                folder, "--listen", f"tcp://{address}", "--token-file", str(token), *arguments
            )
        try:
            yield Served(server, address)
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def of_database(database: Database) -> list[str]:
    """The arguments of a Dray server that has the database as its source `pg`."""
    return sources(pg=database.uri())


@dataclass(frozen=True)
class Source:
    """Where the table `accounts` is read from."""

    name: str
    uri: str
    #: The database that the rows are from, and which changes; None if they are a file's.
    database: Database | None

    def load(self, spark: SparkSession, **options: object) -> DataFrame:
        reader = spark.read.format("dray").option("url", self.uri)
        named = {} if "query" in options else {"dbtable": "accounts"}
        for name, value in (named | options).items():
            reader = reader.option(name, str(value))
        return reader.load()
