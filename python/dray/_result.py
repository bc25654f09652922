"""Results of statements, and the forms in which they can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from . import _dray, _html
from ._optional import import_optional
from ._stats import Stats
from .errors import UsageError

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame as PandasFrame  # type: ignore[import-untyped,unused-ignore]
    from polars import DataFrame as PolarsFrame
    from pyarrow import (  # type: ignore[import-untyped,unused-ignore]
        RecordBatch,
        RecordBatchReader,
        Schema,
        Table,
    )

__all__ = ["Result"]

T = TypeVar("T")
# The columns that a notebook shows.
_COLUMNS_SHOWN = 100


class Result(_dray.Closing):
    """The result of a statement. :meth:`Connection.query` makes it.

    It can be read once, in one of these ways:

    ======================  ==================================================  ===============
    method                  returns                                             needs
    ======================  ==================================================  ===============
    :meth:`to_arrow`        a :class:`pyarrow.Table`, without copying           pyarrow
    :meth:`to_pandas`       a :class:`pandas.DataFrame`                         pandas, pyarrow
    :meth:`to_polars`       a :class:`polars.DataFrame`                         polars
    :meth:`to_numpy`        a dict of arrays                                    numpy, pyarrow
    :meth:`reader`          a :class:`pyarrow.RecordBatchReader`                pyarrow
    :meth:`batches`         record batches                                      pyarrow
    :meth:`rows`, ``iter``  tuples
    ``__arrow_c_stream__``  a stream for any consumer of Arrow's PyCapsules
    ======================  ==================================================  ===============

    The first four read the whole result, the others take bounded memory. ``arrow()``, ``pandas()``,
    ``polars()`` and ``numpy()`` are other names of the first four.

    A result that ends without an exception is complete. Closing or dropping a result before its end
    cancels its statement at the server and frees the connection; leaving a ``with`` block closes
    it.

    One thread at a time may read a result. Meanwhile any thread, and the progress function, may use
    :attr:`progress` and :meth:`cancel`. Ctrl-C while reading cancels the statement and raises
    :class:`KeyboardInterrupt`.
    """

    def __init__(self, native: _dray.Result) -> None:
        self._native = native
        self._reading: str | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def schema(self) -> Schema:
        """The schema as a :class:`pyarrow.Schema`.

        Without pyarrow use :attr:`columns`, or pass the result to a consumer of
        ``__arrow_c_schema__``.
        """
        return import_optional("pyarrow").schema(self._native)

    @property
    def estimate(self) -> _dray.Estimate:
        """The planner's estimate of the result's size."""
        return self._native.estimate

    @property
    def progress(self) -> _dray.Progress:
        """The progress of the statement; up to 50 ms old while another thread reads."""
        return self._native.progress

    @property
    def stats(self) -> Stats:
        """Where time and bytes went. Complete once the result has been read."""
        return Stats._of(self._native.stats())

    @property
    def receipt(self) -> bytes | None:
        """The receipt of a part that was read to its end, for :meth:`Plan.verify`.

        None until reading has come to the end, also while rows of the last batch are not handed
        out, and for results of :meth:`Connection.query`.
        """
        return self._native.receipt

    def to_arrow(self) -> Table:
        """Read the whole result as a table.

        The columns point into the memory that the result was received into, if it was sent
        unencoded.

        Returns
        -------
        pyarrow.Table
            All rows.

        Raises
        ------
        Error
            The statement failed, the connection broke, or the result was read before.
        """
        pyarrow = import_optional("pyarrow")
        # pyarrow.table() would import pandas, to check whether the argument is a DataFrame.
        return pyarrow.RecordBatchReader.from_stream(self._read_all("to_arrow()")).read_all()

    def reader(self) -> RecordBatchReader:
        """Read the result as a stream that pyarrow, DuckDB and others accept, in bounded memory.

        A failure raises this package's exception from the reader's own methods. A consumer in
        another language, such as DuckDB, gets its message and raises an exception of its own.

        Closing the reader does not end the statement: close the result, or drop both.

        Returns
        -------
        pyarrow.RecordBatchReader
            Its batches are those of :meth:`batches`.

        Raises
        ------
        Error
            As :meth:`to_arrow`, from the call or from the reader.

        Examples
        --------
        >>> reader = connection.query("SELECT * FROM lineitem").reader()
        >>> pyarrow.dataset.write_dataset(reader, "lineitem", format="parquet")
        """
        pyarrow = import_optional("pyarrow")
        batches = self._converted("reader()", pyarrow.record_batch)
        return pyarrow.RecordBatchReader.from_batches(self.schema, batches)

    def batches(self) -> Iterator[RecordBatch]:
        """Read the result batch by batch, in bounded memory.

        The memory of a batch is reused once nothing refers to the batch. A loop variable refers to
        its batch while the next one is received, so two batches are in memory; ``del`` the variable
        at the end of the loop's body to keep one.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            Their sizes follow ``batch_rows`` and ``batch_bytes`` of :meth:`Connection.query`.

        Raises
        ------
        Error
            As :meth:`to_arrow`, from the call or from the iterator.

        Examples
        --------
        >>> for batch in connection.query("SELECT * FROM lineitem").batches():
        ...     print(batch.num_rows)
        ...     del batch
        """
        return self._converted("batches()", import_optional("pyarrow").record_batch)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Read the result row by row, in bounded memory. Iterating the result does the same.

        Values are None, bool, int, float, :class:`~decimal.Decimal` (all digits), str, bytes,
        :class:`~datetime.date`, :class:`~datetime.time`, :class:`~datetime.datetime` (aware if the
        column has a zone), :class:`~datetime.timedelta`, :class:`~uuid.UUID`, :class:`Interval`,
        list, dict for a struct, and a list of pairs for a map.

        Returns
        -------
        iterator of tuple
            A tuple for each row.

        Raises
        ------
        UsageError
            A value has nanoseconds or lies outside the range of Python's type.
        Error
            As :meth:`to_arrow`, from the call or from the iterator.
        """
        blocks = self._row_blocks()

        def rows() -> Iterator[tuple[Any, ...]]:
            while (block := blocks()) is not None:
                yield from block

        return rows()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.rows()

    def to_pandas(
        self, *, dates: Literal["datetime64", "arrow", "object"] = "datetime64", **options: Any
    ) -> PandasFrame:
        """Read the whole result as a DataFrame, without losing precision.

        ===========================  ===========================================================
        column                       dtype
        ===========================  ===========================================================
        integer, boolean             NumPy's; with NULLs pandas' nullable one (``Int64``,
                                     ``boolean``)
        float                        NumPy's; NULL becomes NaN
        text                         pandas' ``str``
        timestamp, duration          ``datetime64``, ``timedelta64`` with the column's unit and
                                     zone; NULL becomes NaT
        date                         ``datetime64`` at midnight; NULL becomes NaT; see ``dates``
        dictionary                   category
        decimal, time, binary        :class:`pandas.ArrowDtype`: exact, and compact in memory
        list, struct, map, interval  :class:`pandas.ArrowDtype`
        ===========================  ===========================================================

        Parameters
        ----------
        dates : {"datetime64", "arrow", "object"}
            The dtype of dates. ``"datetime64"`` compares with strings and timestamps and has
            ``.dt`` and NaT, but looks like a timestamp. ``"arrow"`` is :class:`pandas.ArrowDtype`,
            which compares only with dates. ``"object"`` makes each value a :class:`datetime.date`.
        **options
            For :meth:`pyarrow.Table.to_pandas`. With ``types_mapper`` the caller alone chooses the
            types: ``types_mapper=pandas.ArrowDtype`` gives Arrow's types throughout,
            ``types_mapper=None`` pyarrow's defaults, which turn integers with NULLs into floats.

        Returns
        -------
        pandas.DataFrame
            All rows.

        Raises
        ------
        UsageError
            ``dates`` is none of the choices.
        Error
            As :meth:`to_arrow`.
        """
        import_optional("pandas")
        pyarrow = import_optional("pyarrow")
        from ._pandas import to_pandas

        table = pyarrow.table(self._read_all("to_pandas()"))
        return (
            table.to_pandas(**options)
            if "types_mapper" in options
            else to_pandas(table, dates, options)
        )

    def to_polars(self) -> PolarsFrame:
        """Read the whole result as a DataFrame, with the types to which Polars maps Arrow's.

        Integers, decimals of up to 38 digits and timestamps are exact. ``query(…,
        strings="view")`` receives strings in the layout that Polars uses.

        Returns
        -------
        polars.DataFrame
            All rows.

        Raises
        ------
        UsageError
            Polars has no type for a column: an interval, or a decimal of more than 38 digits.
        Error
            As :meth:`to_arrow`.
        """
        polars = import_optional("polars")
        for name, data_type, _ in self._native.fields:
            # Polars has no such types, and panics.
            if "Interval(" in data_type:
                raise UsageError(
                    f"Polars has no type for column {name!r}, an interval",
                    "make it text in SQL: CAST(… AS text)",
                )
            if "Decimal256(" in data_type:
                raise UsageError(
                    f"Polars has no type for column {name!r}, a decimal of more than 38 digits",
                    "make it shorter in SQL, or text: CAST(… AS decimal(38, 2))",
                )
        frame: PolarsFrame = polars.DataFrame(self._read_all("to_polars()"))
        return frame

    def to_numpy(self) -> dict[str, ndarray[Any, Any]]:
        """Read the whole result as a dict with an array for each column.

        A column with NULLs becomes a :class:`numpy.ma.MaskedArray`, so that NULLs don't change its
        dtype. Numbers, booleans, timestamps, dates and durations have NumPy's types; all others are
        arrays of objects, with values as in :meth:`rows`.

        Returns
        -------
        dict of str to numpy.ndarray
            In the order of the columns.

        Raises
        ------
        UsageError
            Two columns have the same name, or a value that becomes an object has nanoseconds or
            lies outside the range of Python's type.
        Error
            As :meth:`to_arrow`.
        """
        import_optional("numpy")
        import_optional("pyarrow")
        from ._numpy import to_numpy

        columns = self.columns
        if len(set(columns)) < len(columns):
            raise UsageError("two columns have the same name", "name them in SQL with AS")
        return to_numpy(self._read_all("to_numpy()"))

    def arrow(self) -> Table:
        """The same as :meth:`to_arrow`."""
        return self.to_arrow()

    def pandas(
        self, *, dates: Literal["datetime64", "arrow", "object"] = "datetime64", **options: Any
    ) -> PandasFrame:
        """The same as :meth:`to_pandas`."""
        return self.to_pandas(dates=dates, **options)

    def polars(self) -> PolarsFrame:
        """The same as :meth:`to_polars`."""
        return self.to_polars()

    def numpy(self) -> dict[str, ndarray[Any, Any]]:
        """The same as :meth:`to_numpy`."""
        return self.to_numpy()

    def cancel(self) -> None:
        """Stop the statement at the server. Any thread may call this.

        The thread that is reading the result gets :class:`Cancelled`.
        """
        self._native.cancel()

    def close(self) -> None:
        """Discard unread rows, cancel the statement if it still runs, and free the connection."""
        self._native.close()

    def __arrow_c_schema__(self) -> object:
        """The schema, for consumers of Arrow's PyCapsule interface."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches, for consumers of Arrow's PyCapsule interface, as they arrive.

        ``requested_schema`` is ignored: use ``query(…, strings=…)`` or SQL to convert. The consumer
        gets the message of a failure and raises its own exception; after Ctrl-C a
        :class:`KeyboardInterrupt` follows that.
        """
        self._begin("__arrow_c_stream__()")
        return self._native.stream()

    def __repr__(self) -> str:
        return f"<dray.Result of {len(self.columns)} columns, {self.progress.rows} rows received>"

    def _repr_html_(self) -> str:
        columns = self._native.fields
        cells = [(name, data_type) for name, data_type, _ in columns[:_COLUMNS_SHOWN]]
        if len(columns) > len(cells):
            cells.append((f"… and {len(columns) - len(cells):,} more", ""))
        read = f", read by {self._reading}" if self._reading else ""
        caption = f"dray.Result: {self.progress.rows:,} rows received{read}"
        return _html.table(caption, cells, head=("column", "type"))

    def _read_all(self, how: str) -> _dray.Table:
        self._begin(how)
        return self._native.read_all()

    def _begin(self, how: str) -> None:
        if self._reading is not None:
            raise UsageError(
                f"the result was already read by {self._reading}",
                "a result can be read once: keep the table, frame or rows, or run the query again",
            )
        self._reading = how

    def _row_blocks(self) -> Callable[[], list[tuple[Any, ...]] | None]:
        """A function that returns the next rows, or None after the last one."""
        self._begin("rows()")
        return self._native.next_rows

    def _converted(self, how: str, convert: Callable[[_dray.Batch], T]) -> Batches[T]:
        """The batches as another library's objects, in bounded memory."""
        self._begin(how)
        return Batches(self._native, convert)


class Batches(Generic[T]):
    """Iterates over batches, each as another library's object.

    A generator would not do: its frame keeps each batch alive while the next one is received.
    """

    def __init__(self, native: _dray.Result, convert: Callable[[_dray.Batch], T]) -> None:
        self._native = native
        self._convert = convert

    def __iter__(self) -> Batches[T]:
        return self

    def __next__(self) -> T:
        batch = self._native.next_batch()
        if batch is None:
            raise StopIteration
        return self._convert(batch)
