"""Results, and what they become."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import _dray
from .errors import UsageError

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame as PandasFrame  # type: ignore[import-untyped,unused-ignore]
    from polars import DataFrame as PolarsFrame
    from pyarrow import RecordBatch, Schema, Table  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Result"]


class Result:
    """The result of a statement, made by :meth:`Connection.query`. It is read once, in one of these
    ways:

    ============================  =======================================================
    =================== :meth:`arrow`                 a :class:`pyarrow.Table`, no byte copied
    needs pyarrow :meth:`pandas`                a :class:`pandas.DataFrame`
    pandas, pyarrow :meth:`polars`                a :class:`polars.DataFrame`
    polars :meth:`numpy`                 a dict of arrays
    numpy, pyarrow :meth:`batches`               :class:`pyarrow.RecordBatch` by batch, bounded
    memory    pyarrow :meth:`rows`, iteration       tuples, bounded memory
    nothing ``__arrow_c_stream__``        any consumer of Arrow's PyCapsule protocol
    nothing ============================  =======================================================
    ===================

    A result that ends without an exception is whole. One that is closed or dropped before its end
    is cancelled at the server, and its connection is free again; leaving a ``with`` block closes
    it.

    One thread reads a result at a time; :attr:`progress` and :meth:`cancel` may be used from any
    thread meanwhile, and from the progress function. Ctrl-C while reading cancels the statement and
    raises :class:`KeyboardInterrupt`."""

    def __init__(self, native: _dray.Result) -> None:
        self._native = native
        self._reading: str | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def schema(self) -> Schema:
        """The columns as a :class:`pyarrow.Schema`. Without pyarrow, hand the result itself to a
        consumer of ``__arrow_c_schema__``, or see :attr:`columns`."""
        return _import("pyarrow").schema(self._native)

    @property
    def estimate(self) -> _dray.Estimate:
        """What the planner expected of the result."""
        return self._native.estimate

    @property
    def progress(self) -> _dray.Progress:
        """How far the statement is; while it is read, as of 50 ms ago."""
        return self._native.progress

    @property
    def stats(self) -> dict[str, Any]:
        """Where time and bytes went; complete once the result was read to its end.

        ``path``, which way the result came (``"server"``, ``"extension"``, ``"rows"``), and
        ``path_reason``, why; ``rows``, ``chunks``, ``wire_bytes``, ``decoded_bytes`` (as Arrow
        data), ``compression``, ``checksums``; ``connect_seconds`` (once a connection),
        ``plan_seconds`` (at the server), ``first_chunk_seconds`` and ``total_seconds`` (since the
        query was sent), ``receive_seconds``, ``decode_seconds``; ``server``, None before the end,
        with ``execute_seconds``, ``encode_seconds``, ``queue_seconds``, ``socket_seconds``,
        ``total_seconds``; ``columns``, a list of dicts with ``name``, ``type``, ``wire_bytes``,
        ``decoded_bytes``, ``encodings``, ``encode_seconds`` (all of the server's threads; None if
        it does not say) and ``decode_seconds``. ``byte_prices`` has the price of a byte in
        nanoseconds as a Dray server that adapts set it: pairs of seconds and price. Rows of
        PostgreSQL have ``"binary"`` or ``"text"`` in the place of encodings, and no ``wire_bytes``
        for each column."""
        return self._native.stats()

    def arrow(self) -> Table:
        """Read the whole result as a table. Its columns lie in the memory that the result was
        received into.
        """
        pyarrow = _import("pyarrow")
        # pyarrow.table() would first look whether it is a DataFrame, and import pandas for that.
        return pyarrow.RecordBatchReader.from_stream(self._read_all("arrow()")).read_all()

    def batches(self) -> Iterator[RecordBatch]:
        """Read the result batch by batch, in bounded memory.

        The memory of a batch is received into again once nothing refers to it. A loop's variable
        refers to its batch while the next one is received, so that two are alive; ``del`` it at the
        end of the loop's body for one."""
        pyarrow = _import("pyarrow")
        self._begin("batches()")
        return _Batches(self._native, pyarrow.record_batch)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Read the result row by row, in bounded memory.

        Values are None, bool, int, float, :class:`~decimal.Decimal` (all digits), str, bytes,
        :class:`~datetime.date`, :class:`~datetime.time`, :class:`~datetime.datetime` (aware if the
        column has a zone), :class:`~datetime.timedelta`, :class:`~uuid.UUID`, :class:`Interval`,
        list, dict for a struct, and a list of pairs for a map. Nanoseconds that Python's types do
        not hold raise :class:`UsageError` rather than being cut off."""
        self._begin("rows()")

        def rows() -> Iterator[tuple[Any, ...]]:
            while (block := self._native.next_rows()) is not None:
                yield from block

        return rows()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.rows()

    def pandas(
        self, *, dates: Literal["datetime64", "arrow", "object"] = "datetime64", **options: Any
    ) -> PandasFrame:
        """Read the whole result as a DataFrame, without losing a digit.

        =============================
        ============================================================================ integer,
        boolean               NumPy's type; with NULLs, pandas' nullable one (``Int64``,
        ``boolean``) float                          NumPy's type; NULL becomes NaN text
        pandas' ``str`` timestamp, duration            ``datetime64``, ``timedelta64`` with the
        column's unit and zone; NULL is NaT dictionary                     category date
        ``datetime64``, midnight of the day; NULL is NaT; see ``dates`` decimal, time, binary
        :class:`pandas.ArrowDtype`: exact, and without an object for each value list, struct, map,
        interval    :class:`pandas.ArrowDtype` =============================
        ============================================================================

        Parameters
        ----------
        dates : {"datetime64", "arrow", "object"}
            What dates become. ``datetime64`` compares with text and timestamps, and has ``.dt`` and NaT, but a date can't be
            told from a timestamp. ``"arrow"`` is :class:`pandas.ArrowDtype`, which compares with dates only; ``"object"``
            is a :class:`datetime.date` each.
        **options
            For :meth:`pyarrow.Table.to_pandas`. With ``types_mapper`` the choice of types is the caller's alone
            (``types_mapper=pandas.ArrowDtype`` gives Arrow's types throughout, ``types_mapper=None`` pyarrow's defaults, which
            make floats of integers with NULLs).
        """
        _import("pandas")
        pyarrow = _import("pyarrow")
        from ._pandas import to_pandas

        table = pyarrow.table(self._read_all("pandas()"))
        return (
            table.to_pandas(**options)
            if "types_mapper" in options
            else to_pandas(table, dates, options)
        )

    def polars(self) -> PolarsFrame:
        """Read the whole result as a DataFrame, as Polars maps Arrow's types: all integers,
        decimals up to 38 digits and timestamps are exact. ``query(…, strings="view")`` has strings
        arrive in Polars' own layout."""
        polars = _import("polars")
        frame: PolarsFrame = polars.DataFrame(self._read_all("polars()"))
        return frame

    def numpy(self) -> dict[str, ndarray[Any, Any]]:
        """Read the whole result as an array for each column.

        A column with NULLs becomes a :class:`numpy.ma.MaskedArray`, so that its type is the same
        with and without. Numbers, booleans, timestamps, dates and durations have NumPy's types;
        everything else is an array of objects, as in :meth:`rows`.

        Raises
        ------
        UsageError
            Two columns have the same name.
        """
        _import("numpy")
        pyarrow = _import("pyarrow")
        from ._numpy import to_numpy

        columns = self.columns
        if len(set(columns)) < len(columns):
            raise UsageError("two columns have the same name", "name them in SQL with AS")
        return to_numpy(pyarrow.table(self._read_all("numpy()")))

    def cancel(self) -> None:
        """Stop the statement at the server, from any thread. Who is reading the result gets
        :class:`Cancelled`.
        """
        self._native.cancel()

    def close(self) -> None:
        """Give up what is unread and free the connection; a statement that still runs is cancelled."""
        self._native.close()

    def __enter__(self) -> Result:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __arrow_c_schema__(self) -> object:
        """The schema for consumers of Arrow's PyCapsule protocol."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches for consumers of Arrow's PyCapsule protocol, as they arrive.

        A requested schema is not converted to: choose with ``query(…, strings=…)`` or in SQL.
        Failures reach the consumer as messages and become exceptions of its own kind; after Ctrl-C,
        KeyboardInterrupt follows them."""
        self._begin("__arrow_c_stream__()")
        return self._native.stream()

    def __repr__(self) -> str:
        return f"<dray.Result of {len(self.columns)} columns, {self.progress.rows} rows received>"

    def _read_all(self, how: str) -> _dray.Table:
        self._begin(how)
        return self._native.read_all()

    def _begin(self, how: str) -> None:
        if self._reading is not None:
            raise UsageError(
                f"the result was already read by {self._reading}",
                "a result is read once: keep what it became, or run the query again",
            )
        self._reading = how


class _Batches:
    """Not a generator: its frame would keep each batch alive while the next one is received."""

    def __init__(
        self, native: _dray.Result, record_batch: Callable[[_dray.Batch], RecordBatch]
    ) -> None:
        self._native = native
        self._record_batch = record_batch

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> RecordBatch:
        batch = self._native.next_batch()
        if batch is None:
            raise StopIteration
        return self._record_batch(batch)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = name if name in ("pandas", "polars", "pyarrow") else "pandas"
        raise ImportError(f"this needs {name}: pip install 'dray[{extra}]'", name=name) from error
