"""A minimal client of PostgreSQL's protocol for COPY. The decoder of the specification reads the
frames.
"""

import socket
import ssl
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "spec" / "decoder"))

import protocol  # noqa: E402
from chunk import receive_state  # noqa: E402
from header import Limits  # noqa: E402
from tables import Tables  # noqa: E402
from values import column_values  # noqa: E402

# The decoder checks whole connections, which begin with a welcome. COPY data has none, so this one
# names the newest version, no server and no instance.
WELCOME_PAYLOAD = (
    struct.pack("<HI", protocol.VERSION, 0)
    + bytes(protocol.INSTANCE_BYTES)
    # Neither a source nor its dialect.
    + struct.pack("<II", 0, 0)
)
WELCOME = struct.pack("<IB3x", len(WELCOME_PAYLOAD), protocol.WELCOME) + WELCOME_PAYLOAD


class ServerError(Exception):
    def __init__(self, fields: dict):
        super().__init__(f"{fields['C']}: {fields['M']}")
        self.sqlstate, self.message, self.hint = fields["C"], fields["M"], fields.get("H", "")


@dataclass
class Result:
    """The answer to one query message."""

    rows: list = field(default_factory=list)
    tags: list = field(default_factory=list)
    copied: bytes = b""
    copy_out: tuple | None = None

    def messages(self, limits: Limits = Limits()) -> list:
        return protocol.check_server_session(
            WELCOME + self.copied, lambda _: protocol.Asked(limits=limits)
        )[1:]

    def frames(self) -> list[tuple[int, bytes]]:
        """The kind and payload of each frame."""
        found, at = [], 0
        while at < len(self.copied):
            payload_bytes, kind = struct.unpack_from("<IB", self.copied, at)
            at += protocol.FRAME_HEADER_BYTES
            found.append((kind, self.copied[at : at + payload_bytes]))
            at += payload_bytes
        return found

    def state_frames(self) -> list[bytes]:
        return [payload for kind, payload in self.frames() if kind == protocol.STATE]

    def tables(self, limits: Limits = Limits()) -> Tables:
        """The live tables at the end of the stream."""
        tables = Tables()
        for payload in self.state_frames():
            receive_state(payload, tables, limits)
        return tables

    def schema(self) -> list:
        return self.messages()[0].fields["schema"]

    def chunks(self, limits: Limits = Limits()) -> list:
        return [message for message in self.messages(limits) if message.name == "chunk"]

    def columns(self, limits: Limits = Limits()) -> list[list]:
        """The values of each column. Checks that all rows arrived."""
        started, *between, finished = self.messages(limits)
        assert started.name == "started" and finished.name == "finished"
        columns = [[] for _ in started.fields["schema"]]
        for chunk in between:
            # State frames have no columns.
            for column, part in zip(columns, chunk.fields.get("columns", [])):
                column.extend(column_values(part))
        assert all(len(column) == finished.fields["rows"] for column in columns)
        assert self.tags[-1] == f"COPY {finished.fields['rows']}"
        return columns


class Connection:
    def __init__(
        self,
        port: int,
        user: str,
        database: str,
        tls: bool = False,
        address: str = "127.0.0.1",
        **parameters,
    ):
        """With another loopback address, the server treats the client as one on another host."""
        self.socket = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket.sendall(struct.pack("!ii", 8, 80877103))
            assert self.socket.recv(1) == b"S"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.buffer = bytearray()
        pairs = {"user": user, "database": database} | parameters
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in pairs.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 196608) + body)
        self.port = port
        self.read_result()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, sql: str):
        self.socket.sendall(message(b"Q", sql.encode() + b"\0"))

    def run(self, sql: str) -> Result:
        self.send(sql)
        return self.read_result()

    def rows(self, sql: str) -> list[list]:
        return self.run(sql).rows

    def value(self, sql: str):
        return self.rows(sql)[0][0]

    def copy(self, what: str, options: str = "") -> Result:
        """Runs COPY as clients do, loading the library in the same message."""
        options = f", {options}" if options else ""
        return self.run(
            f"SELECT pg_catalog.dray_load(); COPY {what} TO STDOUT (FORMAT dray{options})"
        )

    def copy_bound(
        self, what: str, parameters: list[tuple[int, str | bytes | None]], options: str = ""
    ) -> Result:
        """Runs COPY with bound parameters, given as type OIDs and texts: Parse, Bind, Execute."""
        sql = f"COPY {what} TO STDOUT (FORMAT dray{', ' if options else ''}{options})"
        self.send_bound("SELECT pg_catalog.dray_load()", [])
        self.send_bound(sql, parameters)
        self.socket.sendall(message(b"S", b""))
        return self.read_result()

    def send_bound(self, sql: str, parameters: list[tuple[int, str | bytes | None]]):
        oids = b"".join(struct.pack("!I", oid) for oid, _ in parameters)
        texts = [text.encode() if isinstance(text, str) else text for _, text in parameters]
        values = b"".join(
            b"\xff" * 4 if text is None else struct.pack("!i", len(text)) + text for text in texts
        )
        count = struct.pack("!H", len(parameters))
        self.socket.sendall(
            message(b"P", b"\0" + sql.encode() + b"\0" + count + oids)
            + message(b"B", bytes(4) + count + values + bytes(2))
            + message(b"E", bytes(5))
        )

    def cancel(self):
        with socket.create_connection(("127.0.0.1", self.port)) as other:
            other.sendall(struct.pack("!iiII", 16, 80877102, *self.key))
            other.recv(1)

    def read(self, count: int) -> bytes:
        while len(self.buffer) < count:
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("the server closed the connection")
            self.buffer += received
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def read_message(self) -> tuple[bytes, bytes]:
        head = self.read(5)
        return head[:1], self.read(struct.unpack("!i", head[1:])[0] - 4)

    def read_result(self) -> Result:
        """Reads up to ReadyForQuery, then raises the error, if there was one."""
        result, error, copied = Result(), None, []
        while True:
            kind, body = self.read_message()
            if kind == b"D":
                result.rows.append(data_row(body))
            elif kind == b"d":
                copied.append(body)
            elif kind == b"H":
                result.copy_out = struct.unpack(f"!bh{(len(body) - 3) // 2}h", body)
            elif kind == b"C":
                result.tags.append(body[:-1].decode())
            elif kind == b"K":
                self.key = struct.unpack("!II", body)
            elif kind == b"E":
                error = ServerError(
                    {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}
                )
            elif kind == b"Z":
                self.status = body.decode()
                result.copied = b"".join(copied)
                if error:
                    error.result = result
                    raise error
                return result


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def data_row(body: bytes) -> list:
    (count,) = struct.unpack_from("!h", body)
    values, at = [], 2
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return values
