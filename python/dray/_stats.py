"""The statistics of a result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _html

__all__ = ["ColumnStats", "ServerStats", "Stats"]

# The columns that a repr shows.
_COLUMNS_SHOWN = 30
_COLUMN_TITLES = ("column", "type", "received", "decoded", "encodings")


class _Items(Mapping[str, Any]):
    """Lets the attributes of a dataclass be read as items, too: ``stats["rows"]``."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class ColumnStats(_Items):
    """Where the time and the bytes of a column went.

    Attributes
    ----------
    name, type : str
        The column's name and Arrow type.
    wire_bytes : int or None
        Bytes received; None for rows of PostgreSQL, which interleave the columns.
    decoded_bytes : int
        The same as bytes of Arrow data.
    encodings : tuple of str
        How the column was encoded, in order of appearance; ``"binary"`` or ``"text"`` for rows of
        PostgreSQL.
    encode_seconds : float or None
        Encoding, summed over the server's threads; None if unknown.
    decode_seconds : float or None
        Decoding; None for rows of PostgreSQL.
    """

    name: str
    type: str
    wire_bytes: int | None
    decoded_bytes: int
    encodings: tuple[str, ...]
    encode_seconds: float | None
    decode_seconds: float | None


@dataclass(frozen=True)
class ServerStats(_Items):
    """A server's account of its own time for a statement, in seconds.

    Attributes
    ----------
    execute_seconds, encode_seconds, queue_seconds, socket_seconds : float
        Running the query, encoding, waiting for room in the queue, and writing to the socket. The
        first three are summed over the server's threads.
    total_seconds : float
        From the statement's start to its end.
    """

    execute_seconds: float
    encode_seconds: float
    queue_seconds: float
    socket_seconds: float
    total_seconds: float


@dataclass(frozen=True, repr=False)
class Stats(_Items):
    """Where the time and the bytes of a statement went. :attr:`Result.stats` makes it.

    It can be read like a dict as well: ``stats["rows"]``. :func:`dataclasses.asdict` makes a real
    one, which JSON can hold.

    Attributes
    ----------
    path : {"server", "extension", "rows"}
        Where the result came from: a Dray server, PostgreSQL with the extension, or PostgreSQL.
    path_reason : str
        Why it took this path; of a Dray server, over what it came, and how it has read its source.
    rows, chunks, pages : int
        How many were received. Pages, which only :class:`Objects` have, count as chunks, too.
    wire_bytes : int
        Bytes received.
    decoded_bytes : int
        The same as bytes of Arrow data.
    compression : str
        The compression that the server chose.
    checksums : bool
        Whether chunks had checksums.
    connect_seconds : float
        Connecting, once for a connection.
    plan_seconds : float
        Planning at the server.
    first_chunk_seconds, total_seconds : float
        From sending the query to the first chunk, and to the end.
    receive_seconds : float
        Waiting for the server and receiving.
    decode_seconds : float
        Decoding, summed over threads.
    server : ServerStats or None
        The server's account of its own time; None before the end, and from PostgreSQL's rows.
    columns : tuple of ColumnStats
        Each column.
    byte_prices : tuple of (float, float)
        How an adaptive server changed its price of a byte: seconds and nanoseconds.
    """

    path: str
    path_reason: str
    rows: int
    chunks: int
    pages: int
    wire_bytes: int
    decoded_bytes: int
    compression: str
    checksums: bool
    connect_seconds: float
    plan_seconds: float
    first_chunk_seconds: float
    total_seconds: float
    receive_seconds: float
    decode_seconds: float
    server: ServerStats | None
    columns: tuple[ColumnStats, ...]
    byte_prices: tuple[tuple[float, float], ...]

    @classmethod
    def _of(cls, native: dict[str, Any]) -> Stats:
        """The statistics as the native half returns them."""
        server = native.pop("server")
        columns = [
            ColumnStats(encodings=tuple(column.pop("encodings")), **column)
            for column in native.pop("columns")
        ]
        return cls(
            server=None if server is None else ServerStats(**server),
            columns=tuple(columns),
            byte_prices=tuple(native.pop("byte_prices")),
            **native,
        )

    def __repr__(self) -> str:
        lines = ["dray.Stats", *_aligned(self._summary())]
        if self.columns:
            lines += _aligned([_COLUMN_TITLES, *self._column_cells()])
        return "\n".join(lines + self._others())

    def _repr_html_(self) -> str:
        whole = _html.table("dray.Stats", self._summary())
        columns = _html.table("", self._column_cells(), head=_COLUMN_TITLES)
        return "\n".join([whole, columns, *(f"<p>{line.strip()}</p>" for line in self._others())])

    def _summary(self) -> list[tuple[str, str]]:
        checksums = "checksums" if self.checksums else "no checksums"
        times = {name: self[name] for name in self._names() if name.endswith("_seconds")}
        server = {} if self.server is None else dict(self.server)
        summary = [
            ("rows", f"{self.rows:,} in {self.chunks:,} chunks"),
            ("path", f"{self.path}: {self.path_reason}"),
            ("received", f"{_size(self.wire_bytes)}, compression {self.compression}, {checksums}"),
            ("decoded", _size(self.decoded_bytes)),
            ("seconds", _times(times)),
        ]
        return summary + ([("at the server", _times(server))] if server else [])

    def _column_cells(self) -> list[tuple[str, ...]]:
        return [
            (
                column.name,
                column.type,
                "" if column.wire_bytes is None else _size(column.wire_bytes),
                _size(column.decoded_bytes),
                ", ".join(column.encodings),
            )
            for column in self.columns[:_COLUMNS_SHOWN]
        ]

    def _others(self) -> list[str]:
        others = len(self.columns) - _COLUMNS_SHOWN
        return [f"  … and {others:,} more columns"] if others > 0 else []


def _times(seconds: dict[str, float]) -> str:
    names = (name.removesuffix("_seconds").replace("_", " ") for name in seconds)
    return ", ".join(
        f"{name} {time:.3g}" for name, time in zip(names, seconds.values(), strict=True)
    )


def _size(count: int) -> str:
    """A number of bytes for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} bytes"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows of a table as lines, whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
