"""Sorting what is larger than memory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from . import _dray
from ._dray import Sorted, SortProgress
from .errors import Error, ExecutionError, UsageError

if TYPE_CHECKING:
    from typing import Literal, Protocol

    from pyarrow import RecordBatch, RecordBatchReader  # type: ignore[import-untyped,unused-ignore]

    class ArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def sort(
    source: ArrowStream,
    by: str | Sequence[str],
    *,
    memory: int | str | None = None,
    spill: str | os.PathLike[str] | None = None,
    distinct: bool | Literal["rows", "keys"] = False,
    limit: int | None = None,
    threads: int | None = None,
    progress: Callable[[SortProgress], object] | None = None,
) -> Sorted:
    """Sort rows, on disk as far as they don't fit into memory.

    Rows that are equal in the columns to sort by stay in their order. The result is an Arrow
    stream, which is read once: ``pyarrow.table(sorted)``,
    ``pyarrow.RecordBatchReader.from_stream(sorted)``, ``polars.DataFrame(sorted)``,
    ``duckdb.sql("SELECT … FROM sorted")``.

    Parameters
    ----------
    source
        Anything with ``__arrow_c_stream__``: a table or a reader of pyarrow, a DataFrame of Polars or pandas, a relation of
        DuckDB, a result of a query. It is read batch by batch.
    by
        The columns to sort by, the first of which decides first: ``"day"``, ``"day:desc"``, ``"day:nulls-first"``,
        ``"day:desc:nulls-last"``. Missing values come last, or first with ``desc``, as in SQL. A text that is the name of a
        column is that column, whatever it ends with. With ``distinct`` there may be none: all columns.
    memory
        What sorting may take before it goes on on disk: bytes, or a text as ``"2GiB"``; half of what is available if nothing is
        said. A source that is in memory is extra.
    spill
        The folder for what does not fit; the system's for temporary files if nothing is said.
    distinct
        Drop rows that are equal in all columns (True, ``"rows"``) or in those to sort by (``"keys"``); the first one stays.
    limit
        Keep only so many rows of the result.
    threads
        That sort; one for each core if nothing is said.
    progress
        Is called now and then with how far the sort is, as long as that takes: ``rows_read`` and ``spilled_bytes``. What it raises
        ends the sort. The result is merged while it is read.

    Raises
    ------
    UsageError
        There is no such column, or the source has types that can't be sorted.
    ExecutionError
        The source failed; its own exception is the cause, where it is one of Python's.
    ResourcesError
        Memory or disk do not suffice.

    Examples
    --------
    >>> import dray, pyarrow
    >>> table = pyarrow.table({"day": [3, 1, None], "name": ["c", "a", "x"]})
    >>> pyarrow.table(dray.sort(table, by="day:desc:nulls-last"))["name"].to_pylist()
    ['c', 'a', 'x']
    """
    if not hasattr(source, "__arrow_c_stream__"):
        raise UsageError(f"can't sort {type(source).__name__}: it has no __arrow_c_stream__")
    columns = [by] if isinstance(by, str) else list(by)
    kept = "rows" if distinct is True else distinct or "no"
    if kept not in ("no", "rows", "keys"):
        raise UsageError(f"distinct={distinct!r}, expected True, False, 'rows' or 'keys'")
    if not columns and kept != "rows":
        raise UsageError("name a column to sort by")
    folder = os.fspath(spill) if spill is not None else tempfile.gettempdir()
    cores = len(os.sched_getaffinity(0))
    memory_text = None if memory is None else str(memory)
    threads = cores if threads is None else threads
    watched = _Watched(source)
    try:
        return _dray.sort(
            watched.source, columns, memory_text, folder, kept, limit, threads, progress
        )
    except Error as error:
        cause = watched.failure
        if cause is None:
            raise
        if not isinstance(cause, Exception):
            raise cause from None
        raise ExecutionError(
            f"the source of the rows failed: {type(cause).__name__}: {cause}"
        ) from cause
    finally:
        watched.forget()


class _Watched:
    """A source, and what it has raised: Arrow's C interface hands on the text of an exception, but
    not itself.
    """

    def __init__(self, source: ArrowStream) -> None:
        self.source = source
        self.failure: BaseException | None = None
        pyarrow = sys.modules.get("pyarrow")
        # Python code can only be behind a reader; all others are read as they are.
        if pyarrow is not None and isinstance(source, pyarrow.RecordBatchReader):
            self.source = pyarrow.RecordBatchReader.from_batches(
                source.schema, self._batches(source)
            )

    def _batches(self, reader: RecordBatchReader) -> Iterator[RecordBatch]:
        try:
            yield from reader
        except GeneratorExit:
            raise
        except BaseException as failure:
            self.failure = failure
            raise

    def forget(self) -> None:
        """Lets go of the failure, which refers to the frames that it came through."""
        self.failure = None
