"""Connections to servers, and reading a whole result in one call."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _dray, _html
from ._driver import driver_of
from ._driver import read as read_from_driver
from ._options import (
    Checksums,
    ConnectOptions,
    Extension,
    NonFinite,
    Partitions,
    QueryOptions,
    Strings,
)
from ._objects import Objects
from ._plan import Planning
from ._result import Result
from ._write import Writes
from .errors import UsageError

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped,unused-ignore]
    from typing_extensions import Unpack

__all__ = ["Connection", "connect", "read"]


def connect(
    uri: str,
    *,
    token: str | None = None,
    plain_token: bool = False,
    ca: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    read_timeout: float | None = None,
    local_socket: bool = True,
) -> Connection:
    """Connect to a server.

    Parameters
    ----------
    uri : str
        ``dray://HOST[:PORT]``, ``drays://HOST[:PORT]`` for TLS, or ``dray+unix:///PATH`` for a Unix
        socket. It may contain the token (``dray://TOKEN@HOST``), the name of a database that the
        server passes statements on to (``dray://HOST/NAME``, or ``?source=NAME``), and the other
        options (``?ca=FILE&read_timeout=30``).

        For PostgreSQL a connection string as libpq accepts it:
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`` or
        ``host=… dbname=…``. What it leaves out comes from the environment (``PGHOST`` …), the
        service file and the password file.

        For MySQL and MariaDB ``mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=VERIFY_IDENTITY``
        or ``mariadb://…``. What it leaves out comes from option files such as ``~/.my.cnf`` and
        from the environment (``MYSQL_HOST`` …).
    token : str, optional
        The server's token. A token in the uri takes precedence; without either, the environment
        variable ``DRAY_TOKEN`` is used.
    plain_token : bool
        Whether the token may be sent without encryption. By default it is sent only over TLS, a
        Unix socket or loopback. Set this, or ``?plain_token=true`` in the uri, for a network that
        you trust.
    ca : path, optional
        A PEM file with the authority that signed the server's certificate. The default is the
        system's authorities.
    timeout : float
        Maximum seconds to connect: to resolve the address, and for TCP, TLS and the server's
        greeting or login. If the uri or the environment has PostgreSQL's ``connect_timeout``, that
        replaces this option and applies to each address by itself.
    read_timeout : float, optional
        Maximum seconds to wait for a silent server. After that the statement fails with a
        :class:`ConnectionError`, and the connection is closed. A PostgreSQL server is silent while
        it computes. By default there is no limit; a server that is gone is noticed within about a
        minute.
    local_socket : bool
        Whether a connection over ``dray://`` may move from TCP to a Unix socket, which is faster.
        It does so if the server runs on this host as the same user. Set this, or
        ``?local_socket=false`` in the uri, to stay on TCP.

    Returns
    -------
    Connection
        Close it with :meth:`Connection.close`, or use it in a ``with`` block.

    Raises
    ------
    ConnectionError
        The server can't be reached in time.
    AuthenticationError
        The server refuses the token, or its certificate is not trusted.
    UsageError
        The uri or an option is not valid.

    Examples
    --------
    >>> with dray.connect("dray://localhost") as connection:
    ...     frame = connection.query("SELECT * FROM orders").to_pandas()
    """
    return connect_while(
        None,
        uri,
        token=token,
        plain_token=plain_token,
        ca=ca,
        timeout=timeout,
        read_timeout=read_timeout,
        local_socket=local_socket,
    )


def connect_while(
    check: Callable[[], object] | None, uri: str, **options: Unpack[ConnectOptions]
) -> Connection:
    """Connect to a server as :func:`connect` does, and give up when ``check`` raises.

    It is called about twenty times a second.
    """
    ca = options.get("ca")
    native = _dray.connect(
        uri,
        options.get("token"),
        options.get("plain_token", False),
        None if ca is None else os.fspath(ca),
        options.get("timeout", 10.0),
        options.get("read_timeout"),
        options.get("local_socket", True),
        check,
    )
    return Connection(native)


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
    local_socket: bool = True,
    chunk_bytes_max: int | None = None,
    decoded_bytes_max: int | None = None,
    row_bytes_max: int | None = None,
    batch_rows: int = 65_536,
    batch_bytes: int = 8_388_608,
    compression: str = "auto",
    checksums: Checksums = "auto",
    strings: Strings = "utf8",
    extension: Extension = "auto",
    numeric: str = "text",
    nonfinite: NonFinite = "error",
    partitions: Partitions = "auto",
    partition_by: str | None = None,
    ordered: bool = False,
    progress: Callable[[_dray.Progress], object] | None = None,
) -> Table:
    """Run a statement and return its whole result as a :class:`pyarrow.Table`.

    Parameters
    ----------
    source : str or connection
        A uri as :func:`connect` accepts it. Or an open connection of psycopg 3, psycopg2 or
        SQLAlchemy: the query then runs in its transaction and sees its temporary tables.
    sql : str
        One statement. On a driver's connection it must be a query.
    params : sequence, optional
        The values of ``$1, $2 …``. On a driver's connection, the values of the driver's own
        placeholders (``%s``).
    token, plain_token, ca, timeout, read_timeout, local_socket
        As for :func:`connect`. They do not apply to an open connection.
    chunk_bytes_max, decoded_bytes_max, batch_rows, batch_bytes, compression, checksums
        As for :meth:`Connection.query`. They do not apply to an open connection.
    partitions, partition_by, ordered, progress
        As for :meth:`Connection.query`. They do not apply to an open connection.
    row_bytes_max, strings, extension, numeric, nonfinite
        As for :meth:`Connection.query`.

    Returns
    -------
    pyarrow.Table
        All rows of the result.

    Raises
    ------
    Error
        Whatever :func:`connect`, :meth:`Connection.query` and :meth:`Result.to_arrow` raise.
    UsageError
        The source is neither a uri nor a supported connection, or an option does not apply to it.

    Examples
    --------
    >>> table = dray.read("dray://localhost", "SELECT * FROM orders WHERE o_orderkey = $1", [7])
    """
    connecting = ConnectOptions(
        token=token,
        plain_token=plain_token,
        ca=ca,
        timeout=timeout,
        read_timeout=read_timeout,
        local_socket=local_socket,
    )
    reading = QueryOptions(
        chunk_bytes_max=chunk_bytes_max,
        decoded_bytes_max=decoded_bytes_max,
        row_bytes_max=row_bytes_max,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
        compression=compression,
        checksums=checksums,
        strings=strings,
        extension=extension,
        numeric=numeric,
        nonfinite=nonfinite,
        partitions=partitions,
        partition_by=partition_by,
        ordered=ordered,
        progress=progress,
    )
    if (driver := driver_of(source)) is not None:
        _check_driver_options({**connecting, **reading})
        return read_from_driver(
            driver,
            sql,
            params,
            extension=extension,
            numeric=numeric,
            nonfinite=nonfinite,
            strings=strings,
            row_bytes_max=row_bytes_max,
        )
    if not isinstance(source, str):
        raise UsageError(
            f"can't read from a {type(source).__module__}.{type(source).__qualname__}",
            hint="use a uri, or an open connection of psycopg, psycopg2 or SQLAlchemy",
        )
    with connect(source, **connecting) as connection:
        return connection.query(sql, params, **reading).to_arrow()


# The options of `read` that apply to an open connection of a driver.
_DRIVER_OPTIONS = ("extension", "numeric", "nonfinite", "strings", "row_bytes_max")


def _check_driver_options(options: Mapping[str, object]) -> None:
    """Raise a UsageError for an option that differs from its default and does not apply."""
    defaults = read.__kwdefaults__ or {}
    others = [
        name
        for name, value in options.items()
        if name not in _DRIVER_OPTIONS and value != defaults[name]
    ]
    if others:
        raise UsageError(
            f"{', '.join(others)} can't be used with an open connection",
            hint=f"there, the options are {', '.join(_DRIVER_OPTIONS)}",
        )


class Connection(_dray.Closing, Planning, Writes):
    """A connection to a server. :func:`connect` makes it. It runs one statement at a time.

    Threads may take turns with a connection. While one of its results is unread, another query
    raises :class:`UsageError` in any thread; use a connection for each thread. A forked child can't
    use its parent's connections and must open its own.
    """

    def __init__(self, native: _dray.Connection) -> None:
        self._native = native
        self._result: weakref.ref[Result | Objects] | None = None

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
        checksums: Checksums = "auto",
        strings: Strings = "utf8",
        extension: Extension = "auto",
        numeric: str = "text",
        nonfinite: NonFinite = "error",
        partitions: Partitions = "auto",
        partition_by: str | None = None,
        ordered: bool = False,
        progress: Callable[[_dray.Progress], object] | None = None,
    ) -> Result:
        """Start a statement and return its result, which is not read yet.

        Parameters
        ----------
        sql : str
            One statement.
        params : sequence, optional
            The values of ``$1, $2 …``, or of MySQL's ``?``: None, bool, int, float, str, bytes,
            Decimal, date, datetime, time, timedelta, UUID, lists of one of these, NumPy and pyarrow
            scalars, and pyarrow arrays (as lists). Values are sent exactly: a float as float64, a
            Decimal as a decimal with its own digits and scale, an int beyond 64 bits as a decimal.
            An aware datetime is sent as the same instant in UTC.
        chunk_bytes_max : int, optional
            The largest chunk to accept, in bytes on the wire: at least 4096, by default 16 MiB.
        decoded_bytes_max : int, optional
            The largest chunk to decode, in bytes of Arrow data; by default 64 MiB, or
            ``chunk_bytes_max`` if that is larger.
        row_bytes_max : int, optional
            The largest row to accept if it exceeds the other two limits, in bytes; by default 256
            MiB, or ``chunk_bytes_max`` if that is larger.
        batch_rows : int
            The minimum rows of a batch. The last batch may have fewer, and so may batches that
            reach ``batch_bytes``.
        batch_bytes : int
            Received data of this many bytes of Arrow data becomes a batch of its own, however few
            its rows, because joining it with more would copy it. No batch exceeds
            ``decoded_bytes_max``.
        compression : str
            ``"auto"``, ``"none"``, ``"light"``, ``"lz4"``, ``"zstd"`` or ``"zstd:LEVEL"`` (-7 to
            22).
        checksums : {"auto", "on", "off"}
            Whether chunks carry checksums. ``"auto"`` uses them only on plain TCP between hosts.
        strings : {"utf8", "large", "view"}
            The Arrow layout of strings and binary: 32-bit offsets, 64-bit offsets, or views.
        extension : {"auto", True, False}
            PostgreSQL only. Whether to use the server's extension ``dray``. ``"auto"`` uses it if
            the database has it, except for statements whose last result had few rows.
        numeric : str
            PostgreSQL only. The type for ``numeric`` without a declared precision, which is also
            the type of every sum and average: ``"text"`` (all digits), ``"float64"``, or
            ``"decimal(PRECISION,SCALE)"``, which fails on a value that does not fit.
        nonfinite : {"error", "null", "text"}
            What to do with values that Arrow can't hold (infinite dates, NaN among decimals and
            24:00 of PostgreSQL, ``0000-00-00`` of MySQL): fail, return NULL, or return all columns
            of such types as text.
        partitions : int or "auto"
            PostgreSQL and MySQL only. The number of connections to read a table over, all under one
            snapshot. ``"auto"`` decides by the table's size, the round trip to the server, this
            machine's processors and PostgreSQL's free connections. A statement that can't be split
            uses one connection; ``stats.path_reason`` says why. MySQL and MariaDB need the
            privilege RELOAD, or FLUSH_TABLES since MySQL 8.0.23, and MySQL a number: it holds back
            other sessions for a moment. Older MariaDB with a binary log needs REPLICATION CLIENT,
            too. No warnings and no FOUND_ROWS() are left of a statement that several connections
            have read.
        partition_by : str, optional
            MySQL and MariaDB only. The column by whose values several connections divide a table,
            the first of an index. By default it is that of the primary key.
        ordered : bool
            PostgreSQL and MySQL only. Of a statement that reads one plain table, without ORDER BY,
            GROUP BY or LIMIT: whether rows come in the order of the table (PostgreSQL) or of its
            primary key (MySQL and MariaDB), even over several connections. Other statements, and
            tables of MySQL without such a key, have the order that the server chooses; at MySQL
            and MariaDB ``stats.path_reason`` says so.
        progress : callable, optional
            Called with a :class:`Progress` about twenty times a second while the statement runs,
            and once at the end. An exception that it raises cancels the statement and propagates to
            the caller. MySQL's planner is asked for an estimate of the rows first.

        Returns
        -------
        Result
            The result. Read it to its end or close it before the next query.

        Raises
        ------
        QueryError
            The statement does not parse or plan.
        UsageError
            An option or parameter is not valid, or another result of this connection is unread.

        Examples
        --------
        >>> connection.query("SELECT $1 + 1 AS n", [41]).to_arrow().to_pydict()
        {'n': [42]}
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
            _extension_choice(extension),
            numeric,
            nonfinite,
            str(partitions),
            partition_by,
            ordered,
            progress,
        )
        try:
            result = Result(native)
            self._result = weakref.ref(result)
            return result
        except BaseException:
            # An interrupt, whose traceback would keep the result.
            native.close()
            raise

    def objects(
        self,
        sql: str,
        params: Sequence[Any] | None = None,
        *,
        layout: str = "auto",
        row_bytes_max: int | None = None,
        compression: str = "auto",
        checksums: Checksums = "auto",
        extension: Extension = "auto",
        numeric: str = "text",
        nonfinite: NonFinite = "error",
        partitions: Partitions = "auto",
        partition_by: str | None = None,
        ordered: bool = False,
        progress: Callable[[_dray.Progress], object] | None = None,
    ) -> Objects:
        """Start a statement and return its rows as objects, which are read in place.

        Reading one field of a nested row then costs that field: nothing else is decoded.

        Parameters
        ----------
        sql, params
            As in :meth:`query`.
        layout : {"auto", "pages", "columns"}
            How rows travel from a Dray server: as pages, which need no decoding, or as encoded
            columns, of which this process builds pages. ``"auto"`` is for pages on one host, and
            otherwise for what costs less on this network. PostgreSQL sends no pages.
        row_bytes_max, compression, checksums, extension, numeric, nonfinite, partitions,
        partition_by, ordered, progress
            As in :meth:`query`.

        Returns
        -------
        Objects
            An iterator. Read it to its end or close it before the next query.

        Raises
        ------
        Error
            Those of :meth:`query`.
        UsageError
            An option is not valid, or the server is too old to send pages, and ``layout`` is
            ``"pages"``.

        Examples
        --------
        >>> for customer in connection.objects("SELECT * FROM customers"):
        ...     print(customer.name, len(customer.orders))
        """
        native = self._native.objects(
            sql,
            params,
            layout,
            row_bytes_max,
            compression,
            checksums,
            _extension_choice(extension),
            numeric,
            nonfinite,
            str(partitions),
            partition_by,
            ordered,
            progress,
        )
        try:
            objects = Objects(native)
            self._result = weakref.ref(objects)
            return objects
        except BaseException:
            # As in `query`.
            native.close()
            raise

    def close(self) -> None:
        """Close the connection. If a result is unread, cancel and close it first."""
        result = None if self._result is None else self._result()
        try:
            if result is not None:
                result.close()
        finally:
            # Also after an interrupt, while the server was told to end the statement.
            self._native.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.server
        return f"<dray.Connection to {self._native.address}: {state}>"

    def _repr_html_(self) -> str:
        state = "closed" if self.closed else "open"
        rows = [("address", self._native.address), ("server", self.server), ("state", state)]
        return _html.table("dray.Connection", rows)


def _extension_choice(extension: Extension | str) -> str:
    """The option ``extension`` as the client spells it."""
    if isinstance(extension, bool):
        return "always" if extension else "never"
    return extension
