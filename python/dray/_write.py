"""Writes Arrow data into a table of PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _dray
from ._source import SourceRecorder
from ._stats import _Items
from .errors import UsageError

if TYPE_CHECKING:
    from ._dray import Progress

__all__ = ["Mode", "Writes", "Written"]

Mode = Literal["create", "append", "replace", "create_append"]


@dataclass(frozen=True)
class Written(_Items):
    """What :meth:`Connection.write` has written, and where the time went.

    Attributes
    ----------
    rows : int
        The rows that the server has counted. A trigger may have left rows out.
    bytes : int
        Bytes of the rows as they were sent.
    format : {"binary", "text"}
        How the rows were sent. To PostgreSQL as text if the table has a column of a type whose
        binary form is not known here, such as ``inet``. To MySQL as text by ``LOAD DATA``, and as
        parameters of prepared statements, in binary, if the server does not take files.
    prepare_seconds : float
        Creating the table, and finding out its columns.
    read_seconds : float
        Waiting for the source of the data. This and the next two are sums over all connections.
    encode_seconds : float
        Turning columns into rows.
    send_seconds : float
        Waiting for the server to take them.
    total_seconds : float
        Everything, with the commit.
    """

    rows: int
    bytes: int
    format: str
    prepare_seconds: float
    read_seconds: float
    encode_seconds: float
    send_seconds: float
    total_seconds: float


class Writes:
    """A connection that writes."""

    _native: _dray.Connection

    def write(
        self,
        table: str,
        data: Any,
        *,
        mode: Mode = "create",
        schema: str | None = None,
        temporary: bool = False,
        types: Mapping[str, str] | None = None,
        partitions: int = 1,
        progress: Callable[[Progress], object] | None = None,
    ) -> Written:
        """Write data into a table of PostgreSQL, MySQL or MariaDB: all rows, or none if anything
        fails.

        The rows travel as ``COPY … FROM STDIN`` or ``LOAD DATA LOCAL INFILE``. Columns are matched
        by name; columns of the table that the data lacks get their defaults. Each value is written
        exactly, or it is an error that names the column, the row (counted from 1) and the value. An
        open transaction takes the rows, and survives a failure.

        MySQL and MariaDB create tables outside of transactions: that is refused while one is open.
        A table that is created or replaced gets its name once all rows are there; a program that is
        killed leaves one named ``dray_unfinished_…``. Rows are not appended to a table whose engine
        has no transactions, such as MyISAM: they could not be taken back. If a temporary table is
        replaced, the server copies the rows once all of them are there.

        Parameters
        ----------
        table : str
            The name of the table, exactly: ``"Orders"`` is another one than ``"orders"``.
        data : object with ``__arrow_c_stream__``, or path
            A table, record batch or reader of pyarrow, a DataFrame of pandas or Polars, a relation
            of DuckDB, a :class:`Result` of another connection, the capsule of a stream, or the path
            of a Parquet file (which needs pyarrow). A reader is read batch by batch, in bounded
            memory.
        mode : {"create", "append", "replace", "create_append"}
            ``"create"`` fails if the table exists, ``"append"`` if it does not. ``"replace"``
            replaces it if it exists, and ``"create_append"`` creates it unless it does.
        schema : str, optional
            The table's schema. By default a table is created in the session's current schema, and
            rows are appended to the first table of this name in its ``search_path``. In MySQL it is
            the database, by default the session's.
        temporary : bool
            Whether the table belongs to the session and disappears with it.
        types : mapping, optional
            Types of columns of a new table by name, as SQL writes them: ``{"tags": "jsonb"}``,
            ``{"price": "numeric(10,2)"}``, or a composite type for a column of structs. By default
            each column gets the type that holds all values of its Arrow type, and nested data other
            than lists of simple values becomes ``jsonb``.
        partitions : int
            The number of connections that write, up to 64. Several are faster where the server has
            processors to spare. They fill a table of another name, ``dray_unfinished_…``, that is
            renamed at the end; so still all rows appear at once, or none. The rows are in no
            particular order, and a program that is killed leaves the unfinished table. Only for
            ``"create"`` and ``"replace"``, outside a transaction. The other connections have the
            settings of the uri, not those that this session has made by ``SET``.
        progress : callable, optional
            Called with a :class:`Progress` about twenty times a second, and once at the end. Its
            ``rows`` and ``bytes`` are those sent. An exception that it raises undoes everything and
            propagates to the caller.

        Returns
        -------
        Written
            The number of rows, and where the time went.

        Raises
        ------
        QueryError
            The types of data and table don't match, there is no such table or column, or the table
            exists.
        ExecutionError
            A value does not fit its column, a constraint fails, or the source of the data failed.
        UsageError
            The data can't be written, two of its columns have the same name, or the server is a
            Dray server, which only reads.

        Examples
        --------
        >>> connection.write("orders", table).rows
        15000
        >>> connection.write("orders", "today.parquet", mode="append", schema="shop")
        """
        return _write(
            self._native, table, data, mode, schema, temporary, types, partitions, progress
        )


def _write(
    connection: _dray.Connection,
    table: str,
    data: Any,
    mode: Mode | str,
    schema: str | None,
    temporary: bool,
    types: Mapping[str, str] | None,
    partitions: int,
    progress: Callable[[Progress], object] | None,
) -> Written:
    """Write data; :meth:`Writes.write` documents the parameters."""
    with SourceRecorder(_source(data)) as recorder:
        rows, size, as_text, seconds = _dray.write(
            connection,
            table,
            recorder.source,
            mode,
            schema,
            temporary,
            list((types or {}).items()),
            partitions,
            progress,
        )
    return Written(rows, size, "text" if as_text else "binary", *seconds)


class _Capsule:
    """Wraps the capsule of a stream."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._capsule


def _source(data: Any) -> Any:
    """An object with one of Arrow's methods for the data."""
    if isinstance(data, str | os.PathLike):
        return _parquet(Path(data))
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    kind = type(data)
    if kind.__name__ == "PyCapsule":
        return _Capsule(data)
    if kind.__module__.startswith("pandas.") and kind.__name__ == "DataFrame":
        # Before version 2.2 it has no such method.
        import pyarrow  # type: ignore[import-untyped,unused-ignore]

        return pyarrow.Table.from_pandas(data)
    raise UsageError(
        f"can't write {kind.__module__}.{kind.__qualname__}: it has no __arrow_c_stream__",
        "give a table or reader of pyarrow, a DataFrame of pandas or Polars, or the path of a "
        "Parquet file",
    )


def _parquet(path: Path) -> Any:
    """A reader of a Parquet file, batch by batch."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "reading a Parquet file needs pyarrow",
            "pip install pyarrow, or use the program: dray load",
        ) from error
    try:
        file = parquet.ParquetFile(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(
            f"can't read {str(path)!r} as a Parquet file: {error}",
            "dray load reads CSV, JSON and Arrow files",
        ) from error
    return pyarrow.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
