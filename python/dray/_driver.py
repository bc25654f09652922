"""Reads on a connection that a PostgreSQL driver opened, inside that connection's transaction.

The query sees the session's temporary tables and uncommitted changes. Data comes by COPY, which is
the only way in which drivers hand on raw bytes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from . import _dray
from .errors import QueryError, UsageError

if TYPE_CHECKING:
    from pyarrow import Table  # type: ignore[import-untyped,unused-ignore]

_NUMERIC = 1700
# OIDs of money and money[]. Only user-defined types can contain money besides these.
_MONEY = (790, 791)
_FIRST_USER_OID = 16384
# libpq's transaction status outside a transaction.
_IDLE = 0
# Every name is qualified: the session's search_path might find another object first.
_EXTENSION = (
    "SELECT 1 FROM pg_catalog.pg_extension"
    " WHERE extname OPERATOR(pg_catalog.=) 'dray'::pg_catalog.name"
)
_FLOAT_DIGITS = "SELECT pg_catalog.current_setting('extra_float_digits')"
_MONEY_SCALE = "SELECT pg_catalog.scale('1'::pg_catalog.money::pg_catalog.numeric)"


class _Driver(Protocol):
    """What this module needs of a driver."""

    def run(self, sql: str) -> None:
        """Run a statement that returns no rows."""

    def fetch(self, sql: str) -> list[list[Any]]:
        """Run a query of this module and return its rows."""

    def columns(self, sql: str) -> list[tuple[str, int, int]]:
        """Run a query and return the name, type OID and type modifier of each column."""

    def with_parameters(self, sql: str, params: Sequence[Any]) -> str:
        """Substitute values for the driver's own placeholders."""

    def copy(self, sql: str, target: _dray.Copy) -> int | None:
        """Run a COPY and write its data to the target.

        Returns
        -------
        int or None
            The number of rows that the server reports, if the driver passes it on.
        """

    def setting(self, name: str) -> str | None:
        """Return a setting that the server reported, or None."""

    def commits_each(self) -> bool:
        """Whether the next statement would run in a transaction of its own."""


class _Psycopg3:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _cursor(self) -> Any:
        # The user may have set another row factory on the connection.
        rows = importlib.import_module("psycopg.rows")
        return self._connection.cursor(row_factory=rows.tuple_row)

    def run(self, sql: str) -> None:
        with self._cursor() as cursor:
            cursor.execute(sql, prepare=False)

    def fetch(self, sql: str) -> list[list[Any]]:
        with self._cursor() as cursor:
            return [list(row) for row in cursor.execute(sql).fetchall()]

    def columns(self, sql: str) -> list[tuple[str, int, int]]:
        with self._cursor() as cursor:
            cursor.execute(sql.encode())
            result = cursor.pgresult
            assert result is not None
            return [
                ((result.fname(i) or b"").decode(), result.ftype(i), result.fmod(i))
                for i in range(result.nfields)
            ]

    def with_parameters(self, sql: str, params: Sequence[Any]) -> str:
        cursor = importlib.import_module("psycopg").ClientCursor(self._connection)
        return str(cursor.mogrify(sql, params))

    def copy(self, sql: str, target: _dray.Copy) -> int | None:
        with self._cursor() as cursor:
            with cursor.copy(sql.encode()) as copy:
                while data := copy.read():
                    target.write(bytes(data) if not isinstance(data, bytes) else data)
            return cursor.rowcount if cursor.rowcount >= 0 else None

    def setting(self, name: str) -> str | None:
        value: str | None = self._connection.info.parameter_status(name)
        return value

    def commits_each(self) -> bool:
        return bool(
            self._connection.autocommit and self._connection.info.transaction_status == _IDLE
        )


class _Psycopg2:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _cursor(self) -> Any:
        return self._connection.cursor(
            cursor_factory=importlib.import_module("psycopg2.extensions").cursor
        )

    def run(self, sql: str) -> None:
        with self._cursor() as cursor:
            cursor.execute(sql)

    def fetch(self, sql: str) -> list[list[Any]]:
        with self._cursor() as cursor:
            cursor.execute(sql)
            return [list(row) for row in cursor.fetchall()]

    def columns(self, sql: str) -> list[tuple[str, int, int]]:
        with self._cursor() as cursor:
            cursor.execute(sql)
            return [
                (column.name, column.type_code, self._modifier(column))
                for column in cursor.description
            ]

    @staticmethod
    def _modifier(column: Any) -> int:
        # psycopg2 splits the modifier into precision and scale; only numeric's matters here. For
        # arrays it drops the modifier, so numeric(9,2)[] is read as numeric[] without a precision.
        if column.type_code != _NUMERIC or column.precision is None or column.precision >= 65535:
            return -1
        return (int(column.precision) << 16 | int(column.scale) & 0x7FF) + 4

    def with_parameters(self, sql: str, params: Sequence[Any]) -> str:
        with self._cursor() as cursor:
            statement: bytes = cursor.mogrify(sql, params)
            return statement.decode()

    def copy(self, sql: str, target: _dray.Copy) -> int | None:
        with self._cursor() as cursor:
            cursor.copy_expert(sql, target, 1 << 20)
            return cursor.rowcount if cursor.rowcount >= 0 else None

    def setting(self, name: str) -> str | None:
        value: str | None = self._connection.info.parameter_status(name)
        return value

    def commits_each(self) -> bool:
        return bool(
            self._connection.autocommit and self._connection.info.transaction_status == _IDLE
        )


def driver_of(source: object) -> _Driver | None:
    """Return the driver of an open connection, or None if ``source`` is not one.

    Parameters
    ----------
    source : object
        A connection of psycopg 3 or psycopg2, or a Connection or Session of SQLAlchemy on one.

    Raises
    ------
    UsageError
        A SQLAlchemy connection uses another driver.
    """
    for module, kind in (("sqlalchemy.engine", "Connection"), ("sqlalchemy.orm", "Session")):
        wrapper = getattr(sys.modules.get(module), kind, None)
        if wrapper is not None and isinstance(source, wrapper):
            connection: Any = source.connection() if kind == "Session" else source
            inner = connection.connection.driver_connection
            driver = driver_of(inner)
            if driver is None:
                raise UsageError(
                    f"dray can't read from the driver {type(inner).__module__}",
                    hint="use the dialect postgresql+psycopg or postgresql+psycopg2",
                )
            # Statements that bypass SQLAlchemy don't begin its transaction, and outside one its
            # commit() and rollback() do nothing. Before version 2 a connection has neither.
            if (
                hasattr(connection, "commit")
                and not connection.in_transaction()
                and not inner.autocommit
            ):
                connection.begin()
            return driver
    for module, kind, driver_type in (
        ("psycopg", "Connection", _Psycopg3),
        ("psycopg2.extensions", "connection", _Psycopg2),
    ):
        # If the driver was never imported, this is not its connection.
        connection_type = getattr(sys.modules.get(module), kind, None)
        if connection_type is not None and isinstance(source, connection_type):
            return driver_type(source)
    return None


def read(
    driver: _Driver,
    sql: str,
    params: Sequence[Any] | None,
    *,
    extension: Any = "auto",
    numeric: str = "text",
    nonfinite: str = "error",
    strings: str = "utf8",
    row_bytes_max: int | None = None,
) -> Table:
    """Run a query on the driver's connection and return its whole result.

    Parameters
    ----------
    driver : _Driver
        From :func:`driver_of`.
    sql : str
        One query, with the driver's placeholders if ``params`` is given.
    params : sequence or None
        The values of the placeholders.
    extension, numeric, nonfinite, strings, row_bytes_max
        As for :meth:`dray.Connection.query`.

    Returns
    -------
    pyarrow.Table
        All rows.

    Raises
    ------
    UsageError
        The statement is not a query, or a setting of the session makes its text unreadable.
    QueryError
        Without the extension: the statement may change data.
    """
    if params is not None:
        sql = driver.with_parameters(sql, params)
    escapes = driver.setting("standard_conforming_strings") == "off"
    statement = _dray.enclosable(sql, escapes)
    if statement is None or not _dray.is_query(statement):
        raise UsageError(
            "COPY does not accept this statement",
            hint="on a driver's connection dray runs only queries",
        )
    _check_settings(driver)
    pyarrow = importlib.import_module("pyarrow")
    with _transaction(driver):
        # A failure of this module's own queries must not abort the user's transaction.
        with _savepoint(driver):
            copy, copy_statement, digits = _prepare(
                driver, statement, escapes, extension, numeric, nonfinite, strings, row_bytes_max
            )
        with _full_float_digits(driver, digits):
            counted = driver.copy(copy_statement, copy)
        # The query may have changed the settings while it ran.
        _check_settings(driver)
        return pyarrow.table(copy.finish(counted))


def _check_settings(driver: _Driver) -> None:
    """Raise a UsageError if the session writes text in a form that can't be parsed here."""
    # Values that come as text follow the session's DateStyle.
    if (style := driver.setting("DateStyle")) is not None and not style.startswith("ISO"):
        raise UsageError(f"the connection's DateStyle is {style}", hint="SET DateStyle TO ISO")
    if (encoding := driver.setting("client_encoding")) != "UTF8":
        raise UsageError(
            f"the connection's client_encoding is {encoding}", hint="SET client_encoding TO 'UTF8'"
        )


def _prepare(
    driver: _Driver,
    statement: str,
    escapes: bool,
    extension: Any,
    numeric: str,
    nonfinite: str,
    strings: str,
    row_bytes_max: int | None,
) -> tuple[_dray.Copy, str, int]:
    """Choose between extension and rows.

    Returns
    -------
    copy : _dray.Copy
        Receives the data.
    statement : str
        The COPY to run.
    float_digits : int
        The session's ``extra_float_digits``, or 1 if the data does not depend on it.
    """
    # Without the extension, a function named dray_load would be somebody else's.
    has_extension = extension is not False and bool(driver.fetch(_EXTENSION))
    if extension is True and not has_extension:
        raise UsageError("the extension can't be used: the database has no extension dray")
    if has_extension and (failure := _load(driver)) is None:
        copy = _dray.Copy(numeric, nonfinite, None, strings, row_bytes_max)
        return copy, copy.frames(statement), int(driver.fetch(_FLOAT_DIGITS)[0][0])
    if has_extension and extension is True:
        raise UsageError(f"the extension can't be used: {failure}") from failure
    if not _dray.Copy.is_describable(statement, escapes):
        raise QueryError(
            "without the extension dray, a driver's connection runs only SELECT, VALUES, TABLE and "
            "WITH statements that change nothing",
            hint="run the statement with the driver",
        )
    columns = driver.columns(f"SELECT * FROM ({statement}\n) AS dray_columns LIMIT 0")
    may_hold_money = any(oid in _MONEY or oid >= _FIRST_USER_OID for _, oid, _ in columns)
    money_scale = int(driver.fetch(_MONEY_SCALE)[0][0]) if may_hold_money else None
    copy = _dray.Copy(numeric, nonfinite, money_scale, strings, row_bytes_max)
    version = int(
        (driver.setting("server_version") or "0")
        .split(".")[0]
        .split("beta")[0]
        .split("rc")[0]
        .split("devel")[0]
    )
    if question := copy.describe(columns, version):
        copy.learn(
            [
                [None if value is None else str(value) for value in row]
                for row in driver.fetch(question)
            ]
        )
    copy_statement, has_text = copy.rows(statement)
    return copy, copy_statement, int(driver.fetch(_FLOAT_DIGITS)[0][0]) if has_text else 1


def _load(driver: _Driver) -> Exception | None:
    """Load the extension's library into the session.

    Returns
    -------
    Exception or None
        Why it can't be used: it is missing, not permitted, or built for another server or client.
    """
    try:
        with _savepoint(driver):
            answer = str(driver.fetch("SELECT pg_catalog.dray_load()")[0][0])
    except Exception as error:
        sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        # Class 57 is a cancel or shutdown; without a SQLSTATE the connection broke.
        if sqlstate is None or sqlstate.startswith("57"):
            raise
        return error
    other = _dray.other_library(answer)
    return None if other is None else UsageError(other)


@contextmanager
def _transaction(driver: _Driver) -> Iterator[None]:
    """Run the block in one transaction: the user's, or a new one in autocommit mode.

    Between transactions a pooler may switch to another server process, and tables may change.
    """
    if not driver.commits_each():
        yield
        return
    driver.run("BEGIN")
    try:
        yield
    except BaseException:
        with suppress(Exception):
            driver.run("ROLLBACK")
        raise
    driver.run("COMMIT")


@contextmanager
def _full_float_digits(driver: _Driver, digits: int) -> Iterator[None]:
    """Let the server write floats with all their digits, and restore the setting afterwards.

    ``digits`` is the session's ``extra_float_digits``; above 0 it already writes all.
    """
    if digits > 0:
        yield
        return

    def set_digits(digits: int) -> None:
        driver.fetch(f"SELECT pg_catalog.set_config('extra_float_digits', '{digits}', true)")

    # set_config(…, true) lasts until the end of the transaction, also if restoring it fails.
    set_digits(3)
    try:
        yield
    except BaseException:
        with suppress(Exception):
            set_digits(digits)
        raise
    set_digits(digits)


@contextmanager
def _savepoint(driver: _Driver) -> Iterator[None]:
    """Roll the transaction back to its state before the block if the block fails."""
    driver.run("SAVEPOINT dray")
    try:
        yield
    except BaseException:
        with suppress(Exception):
            driver.run("ROLLBACK TO SAVEPOINT dray")
            driver.run("RELEASE SAVEPOINT dray")
        raise
    driver.run("RELEASE SAVEPOINT dray")
