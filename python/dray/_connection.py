"""Connections to a server."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _dray
from ._driver import driver_of
from ._driver import read as read_from_driver
from ._result import Result
from .errors import UsageError

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Connection", "connect", "read"]


def _when(choice: bool | str) -> str:
    if isinstance(choice, bool):
        return "always" if choice else "never"
    return choice


def connect(
    uri: str,
    *,
    token: str | None = None,
    plain_token: bool = False,
    ca: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    read_timeout: float | None = None,
) -> Connection:
    """Connect to a server.

    Parameters
    ----------
    uri : str
        ``dray://HOST[:PORT]``, ``drays://HOST[:PORT]`` for TLS, or ``dray+unix:///PATH`` for a Unix socket. It may carry
        the token (``dray://TOKEN@HOST``) and the other options (``?ca=FILE&read_timeout=30``). Or PostgreSQL's own, as libpq has them:
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full``, or ``host=… dbname=…``; what they leave out
        comes from the environment (``PGHOST`` …), the service file and the password file.
    token : str, optional
        The server's token. The uri's own comes first, the environment variable ``DRAY_TOKEN`` last.
    plain_token : bool
        Whether a token may travel as it is. It goes over TLS, a Unix socket or loopback only, unless this, or the uri
        (``?plain_token=true``), says that the network is trusted.
    ca : path, optional
        A PEM file with the authority of the server's certificate, instead of the system's.
    timeout : float
        Seconds that connecting may take in all: finding the address, TCP, TLS, the server's greeting or login. PostgreSQL's
        ``connect_timeout``, if the uri or the environment has it, stands instead, for each address on its own.
    read_timeout : float, optional
        Seconds for which the server may send nothing while it is waited for, before a statement ends by a
        :class:`ConnectionError` and its connection with it. A PostgreSQL server sends nothing while it computes. By default
        a silent server is waited for; one that is gone is noticed within about a minute.

    Raises
    ------
    ConnectionError
        Nobody answers there.
    AuthenticationError
        The token or the server's certificate is not accepted.
    UsageError
        The uri is not one.
    """
    ca = None if ca is None else os.fspath(ca)
    return Connection(_dray.connect(uri, token, plain_token, ca, timeout, read_timeout))


def read(
    source: Any,
    sql: str,
    params: Sequence[Any] | None = None,
    *,
    token: str | None = None,
    plain_token: bool = False,
    ca: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    read_timeout: float | None = None,
    **options: Any,
) -> Table:
    """Run one statement and return its whole result as a :class:`pyarrow.Table`.

    Parameters
    ----------
    source : str or connection
        A uri, as :func:`connect` takes it, with the other parameters of it and of :meth:`Connection.query`. Or an open
        connection of psycopg 3, psycopg2 or SQLAlchemy: the query runs in its transaction and sees its temporary tables;
        ``extension``, ``numeric``, ``nonfinite``, ``strings`` and ``row_bytes_max`` can be given.
    sql : str
        One statement.
    params : sequence, optional
        The values of ``$1, $2 …``; on a driver's connection, of the driver's own placeholders (``%s``).
    """
    if (driver := driver_of(source)) is not None:
        return read_from_driver(driver, sql, params, **options)
    if not isinstance(source, str):
        what = f"{type(source).__module__}.{type(source).__qualname__} is no source"
        raise UsageError(
            what, hint="a uri, or an open connection of psycopg, psycopg2 or SQLAlchemy"
        )
    with connect(
        source,
        token=token,
        plain_token=plain_token,
        ca=ca,
        timeout=timeout,
        read_timeout=read_timeout,
    ) as connection:
        return connection.query(sql, params, **options).arrow()


class Connection:
    """A connection to a server, made by :func:`connect`. It runs one statement at a time.

    A connection may be handed from thread to thread. While a result of it is unread, another query
    raises :class:`UsageError`, whichever thread asks; use a connection for each thread. A fork's
    child can't use its parent's connections: it connects again."""

    def __init__(self, native: _dray.Connection) -> None:
        self._native = native
        self._result: weakref.ref[Result] | None = None

    @property
    def server(self) -> str:
        """The server's name and version."""
        return self._native.server

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return self._native.closed

    def query(
        self,
        sql: str,
        params: Sequence[Any] | None = None,
        *,
        chunk_bytes_max: int | None = None,
        decoded_bytes_max: int | None = None,
        row_bytes_max: int | None = None,
        batch_rows: int = 65_536,
        batch_bytes: int = 8_388_608,
        compression: str = "auto",
        checksums: Literal["auto", "on", "off"] = "auto",
        strings: Literal["utf8", "large", "view"] = "utf8",
        extension: Literal["auto", True, False] = "auto",
        numeric: str = "text",
        nonfinite: Literal["error", "null", "text"] = "error",
        partitions: int | Literal["auto"] = "auto",
        ordered: bool = False,
        progress: Callable[[_dray.Progress], object] | None = None,
    ) -> Result:
        """Start a statement and return its result, which has yet to be read.

        Parameters
        ----------
        sql : str
            One statement.
        params : sequence, optional
            The values of ``$1, $2 …``: None, bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID,
            lists of one of these, NumPy and pyarrow scalars, and pyarrow arrays (as a list). Values are sent as they are: a
            float stays a float64, a Decimal a decimal with its own digits and scale, and an int beyond 64 bits becomes a
            decimal. An aware datetime is sent as the same instant in UTC.
        chunk_bytes_max : int, optional
            The largest chunk to accept, in bytes sent; 16 MiB by default, at least 4096.
        decoded_bytes_max : int, optional
            The largest chunk to unpack, in bytes of Arrow data; 64 MiB by default.
        row_bytes_max : int, optional
            The largest single row to accept, where one exceeds the other two limits; 256 MiB by default.
        batch_rows : int
            Batches have at least this many rows, but for the last one, and those with ``batch_bytes``.
        batch_bytes : int
            What has arrived with so many bytes of Arrow data is a batch, however few its rows: to join it with others it would be
            copied. Batches stay below ``decoded_bytes_max`` in any case.
        compression : str
            ``"auto"``, ``"none"``, ``"light"``, ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"`` (-7 to 22).
        checksums : {"auto", "on", "off"}
            Whether chunks carry checksums; ``"auto"`` on plain TCP between hosts only.
        strings : {"utf8", "large", "view"}
            How Arrow holds strings and binary: 32-bit offsets, 64-bit offsets, or views.
        extension : {"auto", True, False}
            PostgreSQL only: whether its extension ``dray`` is used; ``"auto"`` where the database has it, but for statements
            whose last result had few rows.
        numeric : str
            PostgreSQL only: what ``numeric`` without a declared precision becomes, as every sum and average is:
            ``"text"`` (all digits), ``"float64"``, or ``"decimal(PRECISION,SCALE)"``, which fails on a value that does not fit.
        nonfinite : {"error", "null", "text"}
            PostgreSQL only: values that Arrow does not have (infinite dates, NaN among decimals, 24:00) are an error, become
            NULL, or make all columns of such types text.
        partitions : int or "auto"
            PostgreSQL only: over how many connections a table is read, all under one snapshot. ``"auto"`` goes by the table's
            size, this machine's processors and the server's free connections. What can't be split comes over one:
            ``stats["path_reason"]`` says why.
        ordered : bool
            PostgreSQL only: whether rows come in the table's order even over several connections.
        progress : callable, optional
            Called with a :class:`Progress` about twenty times a second while the statement runs, and once at the end. What
            it raises cancels the statement and reaches the caller.

        Raises
        ------
        QueryError
            The statement does not parse or plan.
        UsageError
            An option or parameter can't be used, or another result of this connection is unread.
        """
        native = self._native.query(
            sql,
            params,
            chunk_bytes_max,
            decoded_bytes_max,
            row_bytes_max,
            batch_rows,
            batch_bytes,
            compression,
            checksums,
            strings,
            _when(extension),
            numeric,
            nonfinite,
            str(partitions),
            ordered,
            progress,
        )
        result = Result(native)
        self._result = weakref.ref(result)
        return result

    def close(self) -> None:
        """Close the connection. A result that is still unread is cancelled and closed."""
        result = None if self._result is None else self._result()
        if result is not None:
            result.close()
        self._native.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.server
        return f"<dray.Connection to {self._native.place}: {state}>"
