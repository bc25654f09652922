"""Query results from Dray servers and databases, as Arrow, pandas, Polars, NumPy or rows.

>>> import dray
>>> with dray.connect("dray://localhost") as connection:
...     table = connection.query("SELECT * FROM lineitem WHERE l_quantity > $1", [30]).to_arrow()
"""

from __future__ import annotations

from ._async import AsyncConnection, AsyncResult, connect_async
from ._async_plan import AsyncPlan
from ._connection import Connection, connect, read
from ._dray import Estimate, Nested, Progress, Sorted, SortProgress, __version__
from ._interval import Interval
from ._nest import nest
from ._objects import Objects
from ._pages import (
    ListEditor,
    Object,
    ObjectEditor,
    ObjectList,
    PageFile,
    PageFileEditor,
    PagesWritten,
    PageWriter,
    edit_pages,
    open_pages,
    write_pages,
)
from ._plan import Plan, Proof
from ._read_partition import read_partition
from ._result import Result
from ._scan import scan
from ._sort import SortKey, sort
from ._stats import ColumnStats, ServerStats, Stats
from ._write import Written
from .errors import (
    AuthenticationError,
    Cancelled,
    ConnectionError,
    Error,
    ExecutionError,
    InternalError,
    LimitError,
    ProtocolError,
    QueryError,
    ResourcesError,
    UsageError,
)

__all__ = [
    "AsyncConnection",
    "AsyncPlan",
    "AsyncResult",
    "AuthenticationError",
    "Cancelled",
    "ColumnStats",
    "Connection",
    "ConnectionError",
    "Error",
    "Estimate",
    "ExecutionError",
    "InternalError",
    "Interval",
    "LimitError",
    "ListEditor",
    "Nested",
    "Object",
    "ObjectEditor",
    "ObjectList",
    "Objects",
    "PageFile",
    "PageFileEditor",
    "PageWriter",
    "PagesWritten",
    "Plan",
    "Progress",
    "Proof",
    "ProtocolError",
    "QueryError",
    "ResourcesError",
    "Result",
    "ServerStats",
    "SortKey",
    "SortProgress",
    "Sorted",
    "Stats",
    "UsageError",
    "Written",
    "__version__",
    "connect",
    "connect_async",
    "edit_pages",
    "nest",
    "open_pages",
    "read",
    "read_partition",
    "scan",
    "sort",
    "write_pages",
]
