"""The options of connections and statements, for functions that pass them on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict

from . import _dray

if TYPE_CHECKING:
    from ._async_plan import AsyncPlan
    from ._plan import Plan

__all__ = [
    "ConnectOptions",
    "EngineOptions",
    "PlanOptions",
    "QueryOptions",
    "ReaderOptions",
    "ScanOptions",
]

Extension = Literal["auto", True, False]
Strings = Literal["utf8", "large", "view"]
Checksums = Literal["auto", "on", "off"]
NonFinite = Literal["error", "null", "text"]
Partitions = int | Literal["auto"]


class ConnectOptions(TypedDict, total=False):
    """The options of :func:`dray.connect`, which documents them."""

    token: str | None
    plain_token: bool
    ca: str | os.PathLike[str] | None
    timeout: float
    read_timeout: float | None
    local_socket: bool


class QueryOptions(TypedDict, total=False):
    """The options of :meth:`dray.Connection.query`, which documents them."""

    chunk_bytes_max: int | None
    decoded_bytes_max: int | None
    row_bytes_max: int | None
    batch_rows: int
    batch_bytes: int
    compression: str
    checksums: Checksums
    strings: Strings
    extension: Extension
    numeric: str
    nonfinite: NonFinite
    partitions: Partitions
    partition_by: str | None
    ordered: bool
    progress: Callable[[_dray.Progress], object] | None


class PlanOptions(TypedDict, total=False):
    """The options of :meth:`dray.Connection.partitions`, which documents them."""

    at_most: int | None
    lease: float
    include_password: bool
    strings: Strings
    numeric: str
    nonfinite: NonFinite
    snapshot: Plan | AsyncPlan | bytes | None


class ScanOptions(ConnectOptions, QueryOptions, total=False):
    """The options of :func:`dray.scan`."""


class ReaderOptions(TypedDict, total=False):
    """The options of :func:`dray.read_partition` that engines pass on, which documents them."""

    ca: str | os.PathLike[str] | None
    timeout: float
    read_timeout: float | None
    row_bytes_max: int | None
    compression: str
    extension: Extension


class EngineOptions(ConnectOptions, total=False):
    """The options of ``dray.ray.read``, ``dray.daft.read`` and ``dray.dask.read``.

    Those that are not of :func:`dray.connect` are of :meth:`dray.Connection.partitions` and
    :func:`dray.read_partition`, and ``max_connections``, which each engine documents.
    """

    at_most: int | None
    max_connections: int | None
    lease: float
    include_password: bool
    numeric: str
    nonfinite: NonFinite
    row_bytes_max: int | None
    compression: str
    extension: Extension
