"""Tables and queries as Dask DataFrames.

This module needs ``pip install 'dray[dask]'``.

>>> import dray.dask
>>> orders = dray.dask.read("postgresql://me@localhost/shop", table="orders")
>>> orders.groupby("country")["price"].sum().compute()
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._optional import import_optional
from ._relation import Relation, read_part

dask_frames = import_optional("dask.dataframe")
pandas = import_optional("pandas")
pyarrow = import_optional("pyarrow")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EngineOptions, ReaderOptions

__all__ = ["read"]

#: When each relation was read. Its plan is held until the lease ends, since nobody knows for how
#: long a scheduler elsewhere needs it.
_held: list[tuple[float, Relation]] = []


def read(
    uri: str,
    query: str | None = None,
    params: Sequence[Any] | None = None,
    *,
    table: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    **options: Unpack[EngineOptions],
) -> Any:
    """Read a table or a query as a :class:`dask.dataframe.DataFrame`.

    The plan is made at once: the frame is the data of this moment, under one snapshot, however
    often it is computed, until the lease ends. Each part is a partition.

    Parameters
    ----------
    uri : str
        As for :func:`dray.connect`.
    query : str, optional
        One query.
    params : sequence, optional
        The values of ``$1, $2 …`` in ``query``.
    table : str or sequence of str, optional
        A table instead of a query, by its exact name, as for :func:`dray.scan`.
    columns : sequence of str, optional
        The columns of ``table`` to ask for. Columns that Dask finds out later not to need are
        received, and dropped before they become pandas'.
    **options
        As for :func:`dray.connect` (``token``, ``ca`` …), :meth:`dray.Connection.partitions`
        (``at_most``, ``lease``, ``include_password``, ``numeric``, ``nonfinite``) and
        :func:`dray.read_partition` (``compression``, ``extension``, ``row_bytes_max``). With
        ``max_connections`` there are no more parts than that, so no more are read at once.

    Returns
    -------
    dask.dataframe.DataFrame
        Its columns are Arrow's (:class:`pandas.ArrowDtype`), so no type is changed, and NULL stays
        NULL. The divisions are unknown.

    Raises
    ------
    Error
        As :func:`dray.connect` and :meth:`dray.Connection.partitions`. Computing raises those of
        :func:`dray.read_partition`.
    UsageError
        An option or a column does not exist.

    Examples
    --------
    >>> orders = dray.dask.read("dray://localhost", "SELECT * FROM orders WHERE price > 0")
    """
    relation = Relation(uri, query, params, table, options)
    chosen = None if columns is None else relation.checked(columns)
    plan = relation.plan(chosen if relation.pushes else None)
    now = time.monotonic()
    _held[:] = [(end, held) for end, held in _held if now < end]
    _held.append((now + relation.lease, relation))
    schema = plan.schema
    if chosen is not None:
        schema = pyarrow.schema([schema.field(name) for name in chosen])
    reader = _PartReader(relation.reading, schema)
    meta = _frame(schema.empty_table())
    return dask_frames.from_map(reader, plan.partitions, meta=meta, label="dray")


class _PartReader:
    """Reads a part as a frame of pandas, in any process."""

    def __init__(self, reading: ReaderOptions, schema: Any) -> None:
        self._reading = reading
        self._schema = schema
        # Of a plan of its own: Dask takes tasks of the same name for the same.
        self._name = uuid.uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self._name

    def __call__(self, part: bytes, columns: Sequence[str] | None = None) -> Any:
        schema = self._schema
        if columns is not None:
            schema = pyarrow.schema([schema.field(name) for name in columns])
        batches = list(read_part(part, self._reading, schema.names))
        return _frame(pyarrow.Table.from_batches(batches, schema))


def _frame(table: Any) -> Any:
    return table.to_pandas(types_mapper=pandas.ArrowDtype)
