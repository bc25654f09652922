"""Reading on a connection that a PostgreSQL driver has opened: its transaction, its temporary
tables, its authentication.
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
# The type, and arrays of it. Others that may hold it are the users' own.
_MONEY = (790, 791)
_FIRST_OF_USERS = 16384
_IDLE = 0
# All names are qualified: the session's search_path may find others first.
_EXTENSION = "SELECT 1 FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'dray'::pg_catalog.name"
_FLOAT_DIGITS = "SELECT pg_catalog.current_setting('extra_float_digits')"
_MONEY_SCALE = "SELECT pg_catalog.scale('1'::pg_catalog.money::pg_catalog.numeric)"


class _Driver(Protocol):
    """What is asked of a driver."""

    def run(self, sql: str) -> None:
        """Run a statement that returns no rows."""

    def fetch(self, sql: str) -> list[list[Any]]:
        """Run a question of our own and return its rows."""

    def columns(self, sql: str) -> list[tuple[str, int, int]]:
        """Return the name, type and modifier of each column of a query."""

    def with_parameters(self, sql: str, params: Sequence[Any]) -> str:
        """Put values in the places that the driver's own placeholders mark."""

    def copy(self, sql: str, target: _dray.Copy) -> int | None:
        """Run a COPY and write its data to the target; return how many rows the server says to have
        sent, if the driver tells.
        """

    def setting(self, name: str) -> str | None:
        """Return a setting that the server has reported."""

    def commits_each(self) -> bool:
        """Whether the next statement would be a transaction of its own."""


class _Psycopg3:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _cursor(self) -> Any:
        # The row factory of the connection is the user's.
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
        # The driver has taken it apart: numeric's, which is what matters here, is put together
        # again. Of arrays it keeps nothing: numeric(9,2)[] is read as numeric[], which declares no
        # precision.
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
    """The driver of an open connection, or None for what is not one."""
    for module, kind in (("sqlalchemy.engine", "Connection"), ("sqlalchemy.orm", "Session")):
        wrapper = getattr(sys.modules.get(module), kind, None)
        if wrapper is not None and isinstance(source, wrapper):
            connection: Any = source.connection() if kind == "Session" else source
            inner = connection.connection.driver_connection
            driver = driver_of(inner)
            if driver is None:
                what = f"{type(inner).__module__} is not a driver that dray reads from"
                raise UsageError(
                    what, hint="use the dialect postgresql+psycopg or postgresql+psycopg2"
                )
            # Statements that go past SQLAlchemy do not begin its transaction, and without one
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
        # A connection of a driver that was never imported can't be here.
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
    """Run one query on the driver's connection and return its whole result as a
    :class:`pyarrow.Table`.
    """
    if params is not None:
        sql = driver.with_parameters(sql, params)
    escapes = driver.setting("standard_conforming_strings") == "off"
    statement = _dray.enclosable(sql, escapes)
    if statement is None or not _dray.is_query(statement):
        raise UsageError(
            "COPY does not run this statement",
            hint="on a driver's connection dray reads queries only",
        )
    _check_settings(driver)
    pyarrow = importlib.import_module("pyarrow")
    with _transaction(driver):
        # What we ask on our own account must not abort the transaction of the user.
        with _savepoint(driver):
            copy, copy_statement, digits = _prepare(
                driver, statement, escapes, extension, numeric, nonfinite, strings, row_bytes_max
            )
        with _whole_floats(driver, digits):
            counted = driver.copy(copy_statement, copy)
        # The statement may have changed them.
        _check_settings(driver)
        return pyarrow.table(copy.finish(counted))


def _check_settings(driver: _Driver) -> None:
    """Refuse a session whose text is not what is read here."""
    # Types that come as text do so in the session's style.
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
    """Return what takes the data of a COPY, the COPY, and the session's ``extra_float_digits`` if
    its data may depend on them.
    """
    # In a database without it, a function of that name would be somebody else's.
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
            "without the extension dray, a driver's connection reads only SELECT, VALUES, TABLE and WITH, and changes nothing",
            hint="run the statement with the driver",
        )
    columns = driver.columns(f"SELECT * FROM ({statement}\n) AS dray_columns LIMIT 0")
    may_hold_money = any(oid in _MONEY or oid >= _FIRST_OF_USERS for _, oid, _ in columns)
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
    """Load the extension's library; return why it can't be: it is missing, not allowed, not this
    server's or not this client's.
    """
    try:
        with _savepoint(driver):
            answer = str(driver.fetch("SELECT pg_catalog.dray_load()")[0][0])
    except Exception as error:
        sqlstate = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        # Somebody has ended the statement or the session, or the connection has ended by itself.
        if sqlstate is None or sqlstate.startswith("57"):
            raise
        return error
    other = _dray.other_library(answer)
    return None if other is None else UsageError(other)


@contextmanager
def _transaction(driver: _Driver) -> Iterator[None]:
    """Run everything in one transaction: the user's, or where each statement would have its own,
    one of ours.

    A pooler may give each transaction another server process, and a table may change between two.
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
def _whole_floats(driver: _Driver, digits: int) -> Iterator[None]:
    """Have floats written as text with all their digits, and the setting as it was for what the
    user runs next.
    """
    if digits > 0:
        yield
        return

    def set_digits(digits: int) -> None:
        driver.fetch(f"SELECT pg_catalog.set_config('extra_float_digits', '{digits}', true)")

    # Both end with the transaction; so does the first where the second fails.
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
    """Leave the transaction as it was if something fails."""
    driver.run("SAVEPOINT dray")
    try:
        yield
    except BaseException:
        with suppress(Exception):
            driver.run("ROLLBACK TO SAVEPOINT dray")
            driver.run("RELEASE SAVEPOINT dray")
        raise
    driver.run("RELEASE SAVEPOINT dray")
