"""Python's DB-API (PEP 249) for Dray and PostgreSQL servers, with Arrow results.

Connections and cursors are those of ``adbc_driver_manager.dbapi``, so pandas, Polars and whatever
else knows ADBC takes them. This module needs ``pip install dray[dbapi]``.

>>> import dray.dbapi
>>> with dray.dbapi.connect("postgresql://me@localhost/shop") as connection:
...     with connection.cursor() as cursor:
...         cursor.execute("SELECT * FROM orders WHERE day > $1", ("2026-01-31",))
...         table = cursor.fetch_arrow_table()  # or fetchone, fetchmany, fetchall, fetch_df
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from . import _adbc

try:
    from adbc_driver_manager import AdbcStatusCode, dbapi
except ImportError as error:
    raise ImportError(
        "dray.dbapi needs the package adbc-driver-manager: pip install 'dray[dbapi]'"
    ) from error

from adbc_driver_manager.dbapi import (
    Connection,
    Cursor,
    DatabaseError,
    DataError,
    Date,
    DateFromTicks,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    Warning,
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
#: Threads share the module, but no connections.
threadsafety = 1
#: Placeholders are ``$1, $2 …``. PEP 249 has no name for them; this one is SQLAlchemy's. They are
#: the server's own: a statement is sent as it is written.
paramstyle = "numeric_dollar"

Binary = bytes


def _types(known: Any, *names: str) -> Any:
    """A type object of the driver manager's, with more of Arrow's types."""
    if not known:
        return known  # Without pyarrow there is nothing to compare with.
    lib = importlib.import_module("pyarrow").lib
    more = (getattr(lib, f"Type_{name}", None) for name in names)
    # Older versions of pyarrow lack some.
    return type(known)(known | {number for number in more if number is not None})


BINARY = _types(dbapi.BINARY, "BINARY_VIEW", "FIXED_SIZE_BINARY")
DATETIME = _types(dbapi.DATETIME)
NUMBER = _types(dbapi.NUMBER, "HALF_FLOAT", "DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256")
ROWID = _types(dbapi.ROWID)
STRING = _types(dbapi.STRING, "STRING_VIEW")


def connect(
    uri: str,
    *,
    autocommit: bool | None = None,
    token: str | None = None,
    plain_token: bool = False,
    ca: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    read_timeout: float | None = None,
    local_socket: bool = True,
    db_kwargs: Mapping[str, str] | None = None,
    conn_kwargs: Mapping[str, str] | None = None,
) -> Connection:
    """Connect to a server.

    Parameters
    ----------
    uri : str
        As for :func:`dray.connect`. ``dray:postgresql://…`` is the same as ``postgresql://…``.
    autocommit : bool, optional
        Whether each statement is a transaction of its own. The default is what PEP 249 asks for,
        False, except for a Dray server's own tables, which are only read. A database behind a Dray
        server has no transactions here: ``rollback`` undoes nothing, and a warning says so unless
        this is True. With PostgreSQL, a large table comes over several connections only if this is
        True, since others don't see the transaction.
    token, plain_token, ca, timeout, read_timeout, local_socket
        As for :func:`dray.connect`.
    db_kwargs, conn_kwargs : mapping, optional
        More options of the ADBC driver for the database and the connection, such as
        ``{"dray.partitions": "2"}``. The driver's README lists them. Options of statements may
        also be given to ``connection.cursor(adbc_stmt_kwargs=…)``.

    Returns
    -------
    adbc_driver_manager.dbapi.Connection
        Close it with ``close()``, or use it in a ``with`` block.

    Raises
    ------
    Error
        The server can't be reached, or refuses; an option is not valid; the driver is missing.

    Examples
    --------
    >>> with dray.dbapi.connect("dray://localhost") as connection:
    ...     frame = pandas.read_sql("SELECT * FROM orders", connection, dtype_backend="pyarrow")
    """
    uri = _adbc.strip_driver(uri)
    options = _adbc.database_options(token, plain_token, ca, timeout, read_timeout, local_socket)
    driver = _adbc.driver()
    try:
        return dbapi.connect(
            driver,
            uri,
            db_kwargs={**options, **(db_kwargs or {})},
            conn_kwargs=conn_kwargs,
            autocommit=_adbc.has_own_tables(uri) if autocommit is None else autocommit,
        )
    except Error as error:
        if os.path.isabs(driver) or error.status_code != AdbcStatusCode.NOT_FOUND:
            raise
        raise InterfaceError(_adbc.missing(error), status_code=AdbcStatusCode.NOT_FOUND) from error
