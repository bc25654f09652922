"""Converts tables to DataFrames, with a type for each column that holds it exactly."""

from __future__ import annotations

from typing import Any

import pandas  # type: ignore[import-untyped,unused-ignore]
import pyarrow  # type: ignore[import-untyped,unused-ignore]
import pyarrow.types as types  # type: ignore[import-untyped,unused-ignore]

from .errors import UsageError

# pyarrow 15 has no test for views.
is_binary_view = getattr(types, "is_binary_view", types.is_binary)

# The choices for columns of dates.
DATES = ("datetime64", "arrow", "object")

# pandas types with NULL for Arrow types whose NumPy counterparts have none.
NULLABLE: dict[pyarrow.DataType, Any] = {
    pyarrow.bool_(): pandas.BooleanDtype(),
    pyarrow.int8(): pandas.Int8Dtype(),
    pyarrow.int16(): pandas.Int16Dtype(),
    pyarrow.int32(): pandas.Int32Dtype(),
    pyarrow.int64(): pandas.Int64Dtype(),
    pyarrow.uint8(): pandas.UInt8Dtype(),
    pyarrow.uint16(): pandas.UInt16Dtype(),
    pyarrow.uint32(): pandas.UInt32Dtype(),
    pyarrow.uint64(): pandas.UInt64Dtype(),
}


def to_pandas(table: pyarrow.Table, dates: str, options: dict[str, Any]) -> pandas.DataFrame:
    """Convert a table to a DataFrame; see :meth:`dray.Result.pandas`.

    Parameters
    ----------
    table : pyarrow.Table
        Column names may repeat.
    dates : str
        One of ``DATES``.
    options : dict
        Further arguments for :meth:`pyarrow.Table.to_pandas`.

    Raises
    ------
    UsageError
        ``dates`` is not one of ``DATES``.
    """
    if dates not in DATES:
        raise UsageError(f"dates {dates!r}, expected one of {', '.join(DATES)}")
    options = {"date_as_object": dates == "object", **options}
    exact = _exact_with_dates if dates == "arrow" else _exact
    indexes, names = range(table.num_columns), table.column_names
    given = options.get("categories")
    categories = set() if given is None else set(given)
    nullable = [
        i
        for i in indexes
        if table.field(i).type in NULLABLE
        and table.column(i).null_count > 0
        and names[i] not in categories
    ]
    if not nullable:
        return table.to_pandas(types_mapper=exact, **options)
    # pyarrow maps types, not columns, so columns with NULLs are converted apart. Numbers replace
    # the names meanwhile, since names may repeat.
    table = table.rename_columns([str(i) for i in indexes])
    options["categories"] = [str(i) for i in indexes if names[i] in categories]
    others = [i for i in indexes if i not in set(nullable)]
    parts = [
        table.select(others).to_pandas(types_mapper=exact, **options),
        table.select(nullable).to_pandas(types_mapper=NULLABLE.get, **options),
    ]
    frame = pandas.concat(parts, axis=1)[[str(i) for i in indexes]]
    frame.columns = pandas.Index(names)
    return frame


def _exact(data_type: pyarrow.DataType) -> Any:
    """The pandas type for Arrow types that NumPy holds as objects or not exactly.

    None leaves the choice to pyarrow.
    """
    arrow = (
        types.is_decimal(data_type)
        or types.is_time(data_type)
        or types.is_interval(data_type)
        or types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or is_binary_view(data_type)
        or types.is_fixed_size_binary(data_type)
        or (types.is_nested(data_type) and not types.is_dictionary(data_type))
    )
    return pandas.ArrowDtype(data_type) if arrow else None


def _exact_with_dates(data_type: pyarrow.DataType) -> Any:
    return pandas.ArrowDtype(data_type) if types.is_date(data_type) else _exact(data_type)
