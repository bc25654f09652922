"""Converts tables to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow  # type: ignore[import-untyped,unused-ignore]
import pyarrow.types as types  # type: ignore[import-untyped,unused-ignore]

from . import _dray


def to_numpy(native: _dray.Table) -> dict[str, numpy.ndarray[Any, Any]]:
    """Convert a table to a dict of arrays; see :meth:`dray.Result.numpy`.

    Parameters
    ----------
    native : Table
        No two columns may have the same name.

    Returns
    -------
    dict of str to numpy.ndarray
        An array for each column; a :class:`numpy.ma.MaskedArray` if the column has NULLs.

    Raises
    ------
    UsageError
        A value that becomes an object has nanoseconds or lies outside the range of Python's type.
    """
    table = pyarrow.table(native)
    return {name: _array(native, table, i) for i, name in enumerate(table.column_names)}


def _array(native: _dray.Table, table: pyarrow.Table, i: int) -> numpy.ndarray[Any, Any]:
    column = table.column(i)
    has_dtype = (
        types.is_integer(column.type)
        or types.is_floating(column.type)
        or types.is_boolean(column.type)
        or types.is_timestamp(column.type)
        or types.is_duration(column.type)
        or types.is_date(column.type)
    )
    values: numpy.ndarray[Any, Any]
    if has_dtype:
        # NumPy needs a value under the mask; the first present one fits any type.
        present = column.drop_null() if column.null_count > 0 else column
        if 0 < len(present) < len(column):
            present = column.fill_null(present[0])
        values = present.to_numpy()
        if len(values) < len(column):
            values = numpy.zeros(len(column), values.dtype)
    else:
        values = numpy.empty(len(column), dtype=object)
        # pyarrow's own values of times of day have no nanoseconds.
        values[:] = native.values(i)
    if column.null_count == 0:
        return values
    return numpy.ma.MaskedArray(values, column.is_null().to_numpy())
