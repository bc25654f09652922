"""The contenders of the PostgreSQL benchmark: drivers, connections and rounds."""

from __future__ import annotations

from dataclasses import dataclass

from lab.common.contender import Contender
from lab.common.measurement import Measurement
from lab.common.process import Failure
from lab.common.program import python
from lab.postgres.data import DataSet
from lab.postgres.server import PostgresServer

CLIENT = "lab.postgres.client"
#: Rounds of drivers that take 10 to 30 seconds on lineitem, and of those that take about a minute
#: and have no warm-up.
SLOW_ROUNDS, SLOWEST_ROUNDS = 3, 1
#: Fetches of a client that builds a table or measures a lower bound. The first one waits for
#: memory, and the second one counts.
TABLE_FETCHES = 2
TINY_QUERIES = {"select-1": "SELECT 1", "ten-rows": "SELECT * FROM {table} LIMIT 10"}


@dataclass(frozen=True)
class Group:
    """A group of contenders that are compared with each other."""

    name: str
    heading: str


ARROW = Group("arrow", "Into an Arrow table, one connection")
PARALLEL = Group("parallel", "Into an Arrow table, several connections")
LIMIT = Group("limit", "Lower bounds: data dropped on arrival, or never sent")
ROWS = Group("rows", "Python rows, read one by one and dropped")
FRAME = Group("frame", "Into a pandas DataFrame")
TINY = Group("tiny", "Tiny queries on one open connection, as Python rows unless stated")


class PostgresContender(Contender):
    """One driver on one table.

    Parameters
    ----------
    name, label : str
        A short name for options, and a label for the report.
    driver : str
        A key of `client.DRIVERS`.
    connections : int
        Number of connections; 0 leaves it to the driver.
    extension : bool, optional
        For Dray: True uses the extension, False does not, None leaves the choice to Dray.
    needs : str, optional
        A part of the server that it needs and that may be missing.
    note : str
        A remark for the report.
    """

    def __init__(
        self,
        server: PostgresServer,
        data_set: DataSet,
        group: Group,
        name: str,
        label: str,
        driver: str,
        *,
        connections: int = 1,
        extension: bool | None = False,
        needs: str | None = None,
        rounds_max: int | None = None,
        sql: str | None = None,
        note: str = "–",
    ) -> None:
        super().__init__(name, label, server)
        self.server: PostgresServer = server
        self.data_set = data_set
        self.group = group
        self.driver = driver
        self.connections = connections
        self.extension = extension
        self.needs = needs if extension is False else "extension"
        self.rounds_max = rounds_max
        self.warms_up = rounds_max is None
        self.into_table = group in (ARROW, PARALLEL)
        self.sql = sql
        self.note = note

    def client_command(self) -> list[str]:
        fetches = TABLE_FETCHES if self.group in (ARROW, PARALLEL, LIMIT) else 1
        options = ["--fetches", fetches, "--connections", self.connections]
        options += ["--partition-column", self.data_set.partition_column]
        options += ["--text-bytes-max", self.data_set.text_bytes_max]
        options += ["--extension", {True: "always", False: "never", None: "auto"}[self.extension]]
        return python(
            CLIENT, self.driver, self.server.port, self.sql or self.data_set.query, *options
        )

    def expected_rows(self) -> int:
        return self.server.rows[self.data_set.name]

    def run_client(self) -> Measurement:
        if self.needs in self.server.missing:
            raise Failure(self.server.missing[self.needs])
        measurement = super().run_client()
        path = measurement.details.get("stats", {}).get("path")
        if (
            path is not None
            and self.extension is not None
            and (path == "extension") != self.extension
        ):
            expected = "the extension" if self.extension else "no extension"
            raise Failure(f"expected {expected}, Dray chose the path {path}")
        return measurement


def contenders(server: PostgresServer, data_set: DataSet) -> list[PostgresContender]:
    """All contenders on one table, in the order of the report."""

    def each(
        group: Group, name: str, label: str, driver: str, **options: object
    ) -> PostgresContender:
        return PostgresContender(server, data_set, group, name, label, driver, **options)

    slow, slowest = {"rounds_max": SLOW_ROUNDS}, {"rounds_max": SLOWEST_ROUNDS}
    as_floats = {"note": "decimals as float64", **slow}
    as_text = {"note": "decimals as text", **slow}
    found = [
        each(ARROW, "dray-extension", "Dray, extension", "dray-arrow", extension=True),
        each(ARROW, "dray-stock", "Dray, stock server", "dray-arrow"),
        each(ARROW, "duckdb-1", "DuckDB scanner, 1 thread", "duckdb"),
        each(ARROW, "connectorx-1", "ConnectorX", "connectorx", **as_floats),
        each(ARROW, "adbc", "ADBC", "adbc", **as_text),
        each(ARROW, "arrow-odbc", "arrow-odbc", "arrow-odbc", **slow),
    ]
    for number in (2, 4):
        parts = {"connections": number}
        extension = {"extension": True, **parts}
        found += [
            each(
                PARALLEL,
                f"dray-extension-{number}",
                f"Dray, extension, {number} parts",
                "dray-arrow",
                **extension,
            ),
            each(
                PARALLEL,
                f"dray-stock-{number}",
                f"Dray, stock server, {number} parts",
                "dray-arrow",
                **parts,
            ),
            each(
                PARALLEL, f"duckdb-{number}", f"DuckDB scanner, {number} threads", "duckdb", **parts
            ),
            each(
                PARALLEL,
                f"connectorx-{number}",
                f"ConnectorX, {number} parts",
                "connectorx",
                **parts,
                **as_floats,
            ),
        ]
    return [
        *found,
        each(PARALLEL, "duckdb-default", "DuckDB scanner, its own choice", "duckdb", connections=0),
        each(
            LIMIT,
            "scan-append",
            "backend scans and appends, sends nothing",
            "scan-append",
            needs="scan_append",
        ),
        each(LIMIT, "copy-socket", "COPY binary, drained from the socket", "copy-socket"),
        each(LIMIT, "copy-binary", "COPY binary, drained by psycopg", "copy-binary"),
        each(LIMIT, "copy-csv", "COPY CSV, drained by psycopg", "copy-csv"),
        each(
            ROWS,
            "dray-extension-rows",
            "Dray, extension, rows()",
            "dray-rows",
            extension=True,
            **slow,
        ),
        each(ROWS, "dray-stock-rows", "Dray, stock server, rows()", "dray-rows", **slow),
        each(ROWS, "psycopg", "psycopg 3, server cursor", "psycopg", **slow),
        each(ROWS, "psycopg2", "psycopg2, named cursor", "psycopg2", **slow),
        each(ROWS, "pyodbc", "pyodbc", "pyodbc", **slowest),
        each(
            FRAME,
            "dray-extension-pandas",
            "Dray, extension, pandas()",
            "dray-pandas",
            extension=True,
            **slow,
        ),
        each(FRAME, "dray-stock-pandas", "Dray, stock server, pandas()", "dray-pandas", **slow),
        each(FRAME, "pandas", "pandas.read_sql, psycopg2", "pandas", **slowest),
    ]


def tiny_contenders(server: PostgresServer, data_set: DataSet) -> list[PostgresContender]:
    """All contenders of the tiny queries."""
    drivers = [
        ("libpq", "libpq, PQexec", "libpq-latency", False),
        ("psycopg", "psycopg 3, execute and fetchall", "psycopg-latency", False),
        ("dray-auto", "Dray, as it chooses", "dray-latency", None),
        ("dray-extension", "Dray, always by the extension", "dray-latency", True),
        ("dray-stock", "Dray, stock server", "dray-latency", False),
        ("dray-auto-arrow", "Dray, as it chooses, into Arrow", "dray-arrow-latency", None),
        (
            "dray-extension-arrow",
            "Dray, always by the extension, into Arrow",
            "dray-arrow-latency",
            True,
        ),
        ("dray-stock-arrow", "Dray, stock server, into Arrow", "dray-arrow-latency", False),
    ]
    return [
        PostgresContender(
            server,
            data_set,
            TINY,
            f"{name}-{query}",
            f"{label}: {sql.format(table=data_set.name)}",
            driver,
            extension=extension,
            sql=sql.format(table=data_set.name),
        )
        for query, sql in TINY_QUERIES.items()
        for name, label, driver, extension in drivers
    ]
