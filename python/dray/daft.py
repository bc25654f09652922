"""Tables and queries as DataFrames of Daft.

This module needs ``pip install 'dray[daft]'``.

>>> import dray.daft
>>> orders = dray.daft.read("postgresql://me@localhost/shop", table="orders")
>>> orders.where(daft.col("id") < 100).select("price").sum().show()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._daft_source import DraySource
from ._relation import Relation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EngineOptions

__all__ = ["DraySource", "read"]


def read(
    uri: str,
    query: str | None = None,
    params: Sequence[Any] | None = None,
    *,
    table: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    **options: Unpack[EngineOptions],
) -> Any:
    """Read a table or a query as a :class:`daft.DataFrame`.

    It is lazy. When the frame is computed, a plan is made, and its parts are read under one
    snapshot. Of a table, the source is asked for the columns that are needed, for rows that meet
    conditions on integers, decimals, dates, booleans and texts (``==``, ``is_in``), and for the
    first rows (``limit``). Daft applies all conditions again.

    Parameters
    ----------
    uri : str
        As for :func:`dray.connect`.
    query : str, optional
        One query. It is sent as it is.
    params : sequence, optional
        The values of ``$1, $2 …`` in ``query``.
    table : str or sequence of str, optional
        A table instead of a query, by its exact name, as for :func:`dray.scan`.
    columns : sequence of str, optional
        The columns of the frame; all by default.
    **options
        As for :func:`dray.connect` (``token``, ``ca`` …), :meth:`dray.Connection.partitions`
        (``at_most``, ``lease``, ``include_password``, ``numeric``, ``nonfinite``) and
        :func:`dray.read_partition` (``compression``, ``extension``, ``row_bytes_max``). With
        ``max_connections`` there are no more parts than that, so no more are read at once.

    Returns
    -------
    daft.DataFrame
        Its schema is read at once.

    Raises
    ------
    Error
        As :func:`dray.connect` and :meth:`dray.Connection.partitions`. Computing raises those of
        :func:`dray.read_partition`.
    UsageError
        An option or a column does not exist, or Daft has no type for a column.

    Examples
    --------
    >>> orders = dray.daft.read("dray://localhost", "SELECT * FROM orders WHERE price > 0")
    """
    frame = DraySource(Relation(uri, query, params, table, options)).read()
    return frame if columns is None else frame.select(*columns)
