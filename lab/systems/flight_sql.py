"""Arrow Flight SQL: DuckDB behind a server of this file, and the ADBC driver as its client.

`python -m lab.systems.flight_sql serve PARQUET LOCATION`. Servers that others wrote are not in a
package registry. This one answers statements without parameters, and nothing else of the protocol.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

from lab.common.contender import Server, Setting
from lab.common.machine import package_version
from lab.common.program import python
from lab.data.table import ROWS_PER_BATCH
from lab.systems.system import Entry, Program, System

STATEMENT = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"
TICKET = b"type.googleapis.com/arrow.flight.protocol.sql.TicketStatementQuery"


class FlightSqlServer(Server):
    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "flight-sql")
        self.location = f"grpc+tcp://{setting.testbed.address}:{self.port}"

    def command(self) -> list[str]:
        table = self.setting.table
        return python(__name__, "serve", table.name, table.parquet(), self.location)


class Statements(flight.FlightServerBase):
    """Runs statements in DuckDB. A ticket holds the statement."""

    def __init__(self, location: str, database: duckdb.DuckDBPyConnection) -> None:
        super().__init__(location)
        self.location = location
        self.database = database

    def get_flight_info(
        self, _context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        sql = inner(descriptor.command, STATEMENT)
        schema = self.rows(f"FROM ({sql.decode()}) LIMIT 0").schema
        ticket = flight.Ticket(outer(TICKET, sql))
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    def do_get(
        self, _context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        return flight.RecordBatchStream(self.rows(inner(ticket.ticket, TICKET).decode()))

    def rows(self, sql: str) -> pa.RecordBatchReader:
        return self.database.cursor().execute(sql).to_arrow_reader(ROWS_PER_BATCH)


def outer(url: bytes, text: bytes) -> bytes:
    """A `google.protobuf.Any` of a message whose first field is a text."""
    return field(1, url) + field(2, field(1, text))


def inner(packed: bytes, url: bytes) -> bytes:
    """The text in the first field of a message in a `google.protobuf.Any`."""
    fields = dict(texts(packed))
    if fields.get(1) != url:
        raise ValueError(f"expected {url.decode()}, got {fields.get(1)!r}")
    return dict(texts(fields[2]))[1]


def field(number: int, text: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(text)) + text


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def texts(message: bytes) -> list[tuple[int, bytes]]:
    """The fields of a message that has only texts, with their numbers."""
    found = []
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 != 2:
            raise ValueError(f"expected a text, got a field of kind {tag & 7}")
        length = number()
        found.append((tag >> 3, message[at : at + length]))
        at += length
    return found


def serve(name: str, parquet: Path, location: str) -> None:
    database = duckdb.connect()
    database.execute(f"CREATE TABLE {name} AS FROM '{parquet}'")
    Statements(location, database).serve()


def entries(setting: Setting) -> list[Entry]:
    server = FlightSqlServer(setting)
    location = server.location.replace("grpc+tcp", "grpc")
    client = Program(
        "flight-sql",
        "ADBC driver, into an Arrow table",
        server,
        lambda: list(python("lab.systems.client", "flight-sql", location, setting.table.query)),
        into_table=True,
    )
    return [Entry(client, in_figures=True, note="the server is of this benchmark; DuckDB runs it")]


def versions() -> dict[str, str]:
    return {name: package_version(name) for name in ("adbc-driver-flightsql", "duckdb")}


SYSTEM = System("flight-sql", "Arrow Flight SQL", entries, versions)

if __name__ == "__main__":
    _, way, name, parquet, location = sys.argv
    assert way == "serve"
    serve(name, Path(parquet), location)
