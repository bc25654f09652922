"""Connections and results for programs that run on asyncio.

Each connection has a thread of its own. Python's lock is released while that thread waits for the
server or decodes, so the event loop goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from . import _dray
from ._async_plan import AsyncPlan
from ._connection import Connection, connect_while
from ._result import Result
from ._stats import Stats
from ._worker import Stop, Worker
from ._write import Mode, Written
from .errors import Cancelled

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy import ndarray
    from pandas import DataFrame as PandasFrame  # type: ignore[import-untyped,unused-ignore]
    from polars import DataFrame as PolarsFrame
    from pyarrow import (  # type: ignore[import-untyped,unused-ignore]
        RecordBatch,
        Schema,
        Table,
    )
    from typing_extensions import Unpack

    from ._options import ConnectOptions, PlanOptions, QueryOptions
    from ._plan import Plan

__all__ = ["AsyncConnection", "AsyncResult", "connect_async"]

T = TypeVar("T")


async def connect_async(uri: str, **options: Unpack[ConnectOptions]) -> AsyncConnection:
    """Connect to a server without blocking asyncio's event loop.

    Parameters
    ----------
    uri : str
        As for :func:`connect`.
    **options
        As for :func:`connect`.

    Returns
    -------
    AsyncConnection
        Close it with :meth:`AsyncConnection.close`, or use it in an ``async with`` block.

    Raises
    ------
    Error
        As :func:`connect`.

    Examples
    --------
    >>> async with await dray.connect_async("dray://localhost") as connection:
    ...     result = await connection.query("SELECT * FROM orders")
    ...     table = await result.to_arrow()
    """
    worker = Worker()
    stop = Stop()
    try:
        connection = await worker.run(
            lambda: connect_while(stop.check, uri, **options), stop, _close_returned
        )
    except BaseException:
        worker.abandon()
        raise
    return AsyncConnection(connection, worker)


class AsyncConnection:
    """A connection for asyncio. :func:`connect_async` makes it. It runs one statement at a time.

    Its calls run in a thread that belongs to it, one after the other. Any task may make them.
    Cancelling a task that waits for a statement, or for its rows, cancels the statement at the
    server; the connection stays usable.
    """

    def __init__(self, connection: Connection, worker: Worker) -> None:
        self._connection = connection
        self._worker = worker
        # The statements that are starting, and the last one that has started.
        self._starting: set[Stop] = set()
        self._stop = Stop()

    @property
    def server(self) -> str:
        """The server's name and version."""
        return self._connection.server

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return self._worker.ended or self._connection.closed

    async def query(
        self, sql: str, params: Sequence[Any] | None = None, **options: Unpack[QueryOptions]
    ) -> AsyncResult:
        """Start a statement and return its result, which is not read yet.

        Parameters
        ----------
        sql, params
            As for :meth:`Connection.query`.
        **options
            As for :meth:`Connection.query`. ``progress`` is called in the connection's thread.

        Returns
        -------
        AsyncResult
            The result. Read it to its end or close it before the next query.

        Raises
        ------
        Error
            As :meth:`Connection.query`.
        """
        stop = Stop(options.get("progress"))
        options["progress"] = stop.report

        def start() -> Result:
            return self._connection.query(sql, params, **options)

        result = await self._run(start, stop, _close_returned)
        self._stop = stop
        return AsyncResult(result, self._worker, stop)

    async def write(
        self,
        table: str,
        data: Any,
        *,
        mode: Mode = "create",
        schema: str | None = None,
        temporary: bool = False,
        types: Mapping[str, str] | None = None,
        partitions: int = 1,
        progress: Callable[[_dray.Progress], object] | None = None,
    ) -> Written:
        """Write data into a table of a database, as :meth:`Connection.write` does.

        Cancelling the task undoes everything, unless the rows are there already.

        Parameters
        ----------
        table, mode, schema, temporary, types, partitions
            As for :meth:`Connection.write`.
        data : object
            As for :meth:`Connection.write`, or an :class:`AsyncResult` of another connection. A
            reader that runs Python code does so in a thread.
        progress : callable, optional
            As for :meth:`Connection.write`, called in the connection's thread.

        Returns
        -------
        Written
            The number of rows, and where the time went.

        Raises
        ------
        Error
            As :meth:`Connection.write`.
        """
        stop = Stop(progress)
        source = data._result if isinstance(data, AsyncResult) else data

        def write() -> Written:
            return self._connection.write(
                table,
                source,
                mode=mode,
                schema=schema,
                temporary=temporary,
                types=types,
                partitions=partitions,
                progress=stop.report,
            )

        return await self._run(write, stop, _nothing)

    async def partitions(
        self, sql: str, params: Sequence[Any] | None = None, **options: Unpack[PlanOptions]
    ) -> AsyncPlan:
        """Divide a query into parts, as :meth:`Connection.partitions` does.

        Parameters
        ----------
        sql, params, **options
            As for :meth:`Connection.partitions`.

        Returns
        -------
        AsyncPlan
            Release it with :meth:`AsyncPlan.release`, or use it in an ``async with`` block.

        Raises
        ------
        Error
            As :meth:`Connection.partitions`.
        """
        stop = Stop()

        def plan() -> Plan:
            return self._connection._plan(stop.report, sql, params, **options)

        return AsyncPlan(await self._run(plan, stop, _release_returned))

    async def _run(
        self, call: Callable[[], T], stop: Stop, undo: Callable[[Future[T]], object]
    ) -> T:
        self._starting.add(stop)
        try:
            return await self._worker.run(call, stop, undo)
        finally:
            self._starting.remove(stop)

    async def close(self) -> None:
        """Close the connection. If a result is unread, cancel and close it first."""
        for stop in (self._stop, *self._starting):
            stop.requested = True
        await self._worker.end(lambda: _close(self._connection))

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._connection).replace("dray.Connection", "dray.AsyncConnection", 1)


class AsyncResult:
    """The result of a statement, for asyncio. :meth:`AsyncConnection.query` makes it.

    It can be read once, as a :class:`Result`: as a whole by ``await result.to_arrow()``,
    :meth:`to_pandas`, :meth:`to_polars` or :meth:`to_numpy`, or in bounded memory by ``async for
    batch in result`` or ``async for row in result.rows()``. Unlike a :class:`Result`, it iterates
    over batches by itself, since waiting for each row would take longer than the row.

    A result that ends without an exception is complete. Leaving an ``async with`` block closes it;
    closing or dropping it before its end cancels its statement at the server.
    """

    def __init__(self, result: Result, worker: Worker, stop: Stop) -> None:
        self._result = result
        self._worker = worker
        self._stop = stop

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._result.columns

    @property
    def schema(self) -> Schema:
        """The schema as a :class:`pyarrow.Schema`."""
        return self._result.schema

    @property
    def estimate(self) -> _dray.Estimate:
        """The planner's estimate of the result's size."""
        return self._result.estimate

    @property
    def progress(self) -> _dray.Progress:
        """The progress of the statement; up to 50 ms old."""
        return self._result.progress

    @property
    def stats(self) -> Stats:
        """Where time and bytes went. Complete once the result has been read."""
        return self._result.stats

    async def to_arrow(self) -> Table:
        """Read the whole result as :meth:`Result.to_arrow` does."""
        return await self._run(self._result.to_arrow)

    async def to_pandas(
        self, *, dates: Literal["datetime64", "arrow", "object"] = "datetime64", **options: Any
    ) -> PandasFrame:
        """Read the whole result as :meth:`Result.to_pandas` does."""
        return await self._run(lambda: self._result.to_pandas(dates=dates, **options))

    async def to_polars(self) -> PolarsFrame:
        """Read the whole result as :meth:`Result.to_polars` does."""
        return await self._run(self._result.to_polars)

    async def to_numpy(self) -> dict[str, ndarray[Any, Any]]:
        """Read the whole result as :meth:`Result.to_numpy` does."""
        return await self._run(self._result.to_numpy)

    def batches(self) -> AsyncIterator[RecordBatch]:
        """Read the result batch by batch, in bounded memory, as :meth:`Result.batches` does.

        ``async for batch in result`` does the same.
        """
        return _Batches(self)

    def __aiter__(self) -> AsyncIterator[RecordBatch]:
        return self.batches()

    def rows(self) -> AsyncIterator[tuple[Any, ...]]:
        """Read the result row by row, in bounded memory, as :meth:`Result.rows` does."""
        return _Rows(self)

    async def cancel(self) -> None:
        """Stop the statement at the server. A task that is reading gets :class:`Cancelled`."""
        self._stop.requested = True
        await self._worker.finish(lambda: _cancel(self._result))

    async def close(self) -> None:
        """Discard unread rows, cancel the statement if it still runs, and free the connection."""
        self._stop.requested = True
        await self._worker.finish(lambda: _close(self._result))

    async def __aenter__(self) -> AsyncResult:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        # Dropping an unread result waits for the server, which must not happen in the event loop.
        self._worker.drop(self._result.close)

    def __repr__(self) -> str:
        return repr(self._result).replace("dray.Result", "dray.AsyncResult", 1)

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._worker.run(call, self._stop, lambda _: _close(self._result))


class _Batches:
    """Iterates over batches. It keeps the result from being dropped, but no batch."""

    def __init__(self, result: AsyncResult) -> None:
        self._result = result
        self._batches: Iterator[RecordBatch] | None = None

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> RecordBatch:
        batch = await self._result._run(self._next)
        if batch is None:
            raise StopAsyncIteration
        return batch

    def _next(self) -> RecordBatch | None:
        if self._batches is None:
            self._batches = self._result._result.batches()
        return next(self._batches, None)


class _Rows:
    """Iterates over rows, which come from the thread in blocks."""

    def __init__(self, result: AsyncResult) -> None:
        self._result = result
        self._blocks: Callable[[], list[tuple[Any, ...]] | None] | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())

    def __aiter__(self) -> _Rows:
        return self

    async def __anext__(self) -> tuple[Any, ...]:
        while True:
            for row in self._rows:
                return row
            rows = await self._result._run(self._next)
            if rows is None:
                raise StopAsyncIteration
            self._rows = iter(rows)

    def _next(self) -> list[tuple[Any, ...]] | None:
        if self._blocks is None:
            self._blocks = self._result._result._row_blocks()
        return self._blocks()


def _close(closable: Connection | Result) -> None:
    # A statement that was asked to stop may say so here.
    with suppress(Cancelled):
        closable.close()


def _close_returned(call: Future[Connection] | Future[Result]) -> None:
    if not call.cancelled() and call.exception() is None:
        _close(call.result())


def _release_returned(call: Future[Plan]) -> None:
    if not call.cancelled() and call.exception() is None:
        call.result().release()


def _nothing(call: Future[Written]) -> None:
    """Follows a write, which has undone what it has to."""


def _cancel(result: Result) -> None:
    with suppress(Cancelled):
        result.cancel()
