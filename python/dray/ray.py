"""Tables and queries as Datasets of Ray.

This module needs ``pip install 'dray[ray]'``.

>>> import dray.ray
>>> orders = dray.ray.read("postgresql://me@localhost/shop", table="orders")
>>> orders.filter(expr="id < 100").select_columns(["price"]).sum("price")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._optional import import_optional
from ._ray_source import DrayDatasource
from ._relation import Relation

ray_data = import_optional("ray.data")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EngineOptions

__all__ = ["DrayDatasource", "read"]


def read(
    uri: str,
    query: str | None = None,
    params: Sequence[Any] | None = None,
    *,
    table: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    ray_options: dict[str, Any] | None = None,
    **options: Unpack[EngineOptions],
) -> Any:
    """Read a table or a query as a :class:`ray.data.Dataset`.

    It is lazy, but Ray asks for its size at once, so a plan is made. When the Dataset is executed,
    the parts of this plan, or of another one if less is needed, are read under one snapshot, which
    may be as old as half of the lease. Of a table, the source is asked for the columns that are
    needed, and for rows that meet conditions on integers, decimals, dates, booleans and texts
    (``==``, ``is_in``). They are applied again where the rows arrive.

    Parameters
    ----------
    uri : str
        As for :func:`dray.connect`. Workers connect to the same address.
    query : str, optional
        One query. It is sent as it is.
    params : sequence, optional
        The values of ``$1, $2 …`` in ``query``.
    table : str or sequence of str, optional
        A table instead of a query, by its exact name, as for :func:`dray.scan`.
    columns : sequence of str, optional
        The columns of the Dataset; all by default.
    ray_options : dict, optional
        Further arguments for :func:`ray.data.read_datasource`, such as ``num_cpus``.
    **options
        As for :func:`dray.connect` (``token``, ``ca`` …), :meth:`dray.Connection.partitions`
        (``at_most``, ``lease``, ``include_password``, ``numeric``, ``nonfinite``) and
        :func:`dray.read_partition` (``compression``, ``extension``, ``row_bytes_max``). No more
        than ``max_connections`` parts are read at once by one execution of the Dataset.

    Returns
    -------
    ray.data.Dataset
        Its blocks are Arrow's.

    Raises
    ------
    Error
        As :func:`dray.connect` and :meth:`dray.Connection.partitions`. Executing raises those of
        :func:`dray.read_partition`.
    UsageError
        An option or a column does not exist. Executing raises it for a column that is selected, and
        with Ray before 2.56 for a column that is renamed as another one is called.

    Examples
    --------
    >>> orders = dray.ray.read("dray://localhost", "SELECT * FROM orders WHERE price > 0")
    """
    most = options.pop("max_connections", None)
    relation = Relation(uri, query, params, table, options)
    source = DrayDatasource(relation)
    if columns is not None:
        source = source.apply_projection({name: name for name in relation.checked(columns)})
    bound = {} if most is None else {"concurrency": most}
    return ray_data.read_datasource(source, **bound, **(ray_options or {}))
