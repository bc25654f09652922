"""Tables as NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow  # type: ignore[import-untyped,unused-ignore]
import pyarrow.types as types  # type: ignore[import-untyped,unused-ignore]


def to_numpy(table: pyarrow.Table) -> dict[str, numpy.ndarray[Any, Any]]:
    """Convert a table whose columns have different names; see :meth:`dray.Result.numpy`."""
    return {name: _array(table.column(i)) for i, name in enumerate(table.column_names)}


def _array(column: pyarrow.ChunkedArray) -> numpy.ndarray[Any, Any]:
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
        # The first value that there is stands under the missing ones, whatever the type.
        present = column.drop_null() if column.null_count > 0 else column
        values = (
            column.fill_null(present[0]) if 0 < len(present) < len(column) else column
        ).to_numpy()
    else:
        values = numpy.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
    if column.null_count == 0:
        return values
    return numpy.ma.MaskedArray(values, column.is_null().to_numpy())
