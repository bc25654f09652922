"""Sorts Arrow data that may be larger than memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import _dray
from ._dray import Sorted, SortProgress
from ._source import SourceRecorder
from .errors import UsageError

if TYPE_CHECKING:
    from typing import Literal

    from ._source import ArrowStream


@dataclass(frozen=True)
class SortKey:
    """A column to sort by, named exactly: for :func:`sort`.

    Attributes
    ----------
    column : str
        The name of a column, whatever characters it has.
    descending : bool
        Whether the largest value comes first.
    nulls_first : bool or None
        Whether missing values come first. By default they come last, and first if ``descending``,
        as in SQL.

    Examples
    --------
    >>> dray.sort(table, by=[dray.SortKey("day", descending=True, nulls_first=False), "name"])
    """

    column: str
    descending: bool = False
    nulls_first: bool | None = None


def sort(
    source: ArrowStream,
    by: str | SortKey | Sequence[str | SortKey],
    *,
    memory: int | str | None = None,
    spill: str | os.PathLike[str] | None = None,
    distinct: bool | Literal["rows", "keys"] = False,
    limit: int | None = None,
    threads: int | None = None,
    progress: Callable[[SortProgress], object] | None = None,
) -> Sorted:
    """Sort the rows of an Arrow stream. What does not fit into memory is spilled to disk.

    The sort is stable: rows with equal keys keep their order. The result is an Arrow stream that
    can be read once: ``pyarrow.table(sorted)``, ``pyarrow.RecordBatchReader.from_stream(sorted)``,
    ``polars.DataFrame(sorted)``, ``duckdb.sql("SELECT … FROM sorted")``.

    Parameters
    ----------
    source : object with ``__arrow_c_stream__``
        A table or reader of pyarrow, a DataFrame of Polars or pandas, a relation of DuckDB, a
        :class:`Result`. It is read batch by batch.
    by : str, SortKey or sequence of these
        The columns to sort by, most significant first: ``"day"``, ``"day:desc"``,
        ``"day:nulls-first"``, ``"day:desc:nulls-last"``, or a :class:`SortKey`. As in SQL, missing
        values come last, and first with ``desc``. A string that is the exact name of a column means
        that column, whatever its ending; a :class:`SortKey` always has the exact name. May be empty
        with ``distinct=True``, which then compares all columns. Strings compare by their bytes,
        dictionaries and categoricals as their values; -0.0 comes before 0.0, and NaN after all
        numbers (negative NaN before). ``distinct`` takes -0.0 and 0.0, and all NaNs, as equal.
    memory : int or str, optional
        The memory to use before spilling: bytes, or a string such as ``"2GiB"``. The default is
        half of the available memory. The memory of a source that is itself in memory is not
        counted.
    spill : path, optional
        The folder for spilled data. The default is the system's folder for temporary files.
    distinct : bool or {"rows", "keys"}
        Drop duplicates, keeping the first row: rows that are equal in all columns (True,
        ``"rows"``), or rows with equal keys (``"keys"``).
    limit : int, optional
        Maximum rows to return; None is unlimited.
    threads : int, optional
        The number of threads that sort. The default is one for each available processor.
    progress : callable, optional
        Called now and then with a :class:`SortProgress` until this function returns. An exception
        that it raises ends the sort. The final merge runs while the result is read and is not
        reported.

    Returns
    -------
    Sorted
        The sorted rows, with the schema of the source. But a dictionary is no longer ``ordered``,
        and has indexes of at least 32 bits, if it is inside another column, or batches of the
        source have different ones.

    Raises
    ------
    UsageError
        There is no such column, an option is not valid, or a type can't be sorted.
    ExecutionError
        The source failed. If it raised a Python exception, that is the ``__cause__``.
    ResourcesError
        There is not enough memory or disk.

    Examples
    --------
    >>> import dray, pyarrow
    >>> table = pyarrow.table({"day": [3, 1, None], "name": ["c", "a", "x"]})
    >>> pyarrow.table(dray.sort(table, by="day:desc:nulls-last"))["name"].to_pylist()
    ['c', 'a', 'x']
    """
    if not hasattr(source, "__arrow_c_stream__"):
        raise UsageError(f"can't sort {type(source).__name__}: it has no __arrow_c_stream__")
    columns = [_native_key(key) for key in ([by] if isinstance(by, str | SortKey) else by)]
    duplicates = "rows" if distinct is True else distinct or "no"
    if duplicates not in ("no", "rows", "keys"):
        raise UsageError(f"distinct={distinct!r}, expected True, False, 'rows' or 'keys'")
    if not columns and duplicates != "rows":
        raise UsageError("name a column to sort by")
    folder = os.fspath(spill) if spill is not None else tempfile.gettempdir()
    memory_text = None if memory is None else str(memory)
    threads = _cores() if threads is None else threads
    with SourceRecorder(source) as recorder:
        return _dray.sort(
            recorder.source, columns, memory_text, folder, duplicates, limit, threads, progress
        )


def _cores() -> int:
    # macOS does not tell which of them are available.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _native_key(key: str | SortKey) -> str | tuple[str, bool, bool]:
    if isinstance(key, SortKey):
        nulls_first = key.descending if key.nulls_first is None else key.nulls_first
        return key.column, key.descending, nulls_first
    if isinstance(key, str):
        return key
    raise UsageError(f"can't sort by {key!r}, expected a column's name or a SortKey")
