"""Reading parts of plans."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import _dray
from ._connection import _extension_choice, connect
from ._options import Extension, Strings
from ._result import Result

__all__ = ["read_partition"]


def read_partition(
    descriptor: bytes,
    uri: str | None = None,
    *,
    ca: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    read_timeout: float | None = None,
    row_bytes_max: int | None = None,
    batch_rows: int = 65_536,
    batch_bytes: int = 8_388_608,
    compression: str = "auto",
    strings: Strings = "utf8",
    extension: Extension = "auto",
    progress: Callable[[_dray.Progress], object] | None = None,
) -> Result:
    """Read a part of a plan, in any process on any host.

    A part can be read again, for instance after a failure, and has the same rows each time. Keep
    one receipt of a part, the one of the rows that you keep.

    Parameters
    ----------
    descriptor : bytes
        One of :attr:`Plan.partitions`.
    uri : str, optional
        How to connect to the plan's server, as the same user. By default the part says it;
        PostgreSQL's password comes from this process's environment (``PGPASSWORD``, the password
        file). A Dray server gets the part's pass, unless the uri has a token.
    ca, timeout, read_timeout
        As for :func:`connect`.
    row_bytes_max, batch_rows, batch_bytes, compression, strings, extension, progress
        As for :meth:`Connection.query`.

    Returns
    -------
    Result
        Its connection closes with it. At its end :attr:`Result.receipt` is set.

    Raises
    ------
    ExecutionError
        The plan's lease is over, its planner has ended, its tables are not the same any more, or
        the Dray server has restarted since.
    AuthenticationError
        The Dray server refuses the part's ticket or pass, because it was altered.
    UsageError
        The descriptor was altered or is of another version, or this session has other settings
        than the planner's.

    Examples
    --------
    >>> def work(part: bytes) -> bytes:
    ...     with dray.read_partition(part) as result:
    ...         store(result.to_arrow())
    ...         return result.receipt
    """
    descriptor = bytes(descriptor)
    connect_to = _dray.part_uri(descriptor, uri)
    connection = connect(connect_to, ca=ca, timeout=timeout, read_timeout=read_timeout)
    try:
        native = _dray.read_partition(
            connection._native,
            descriptor,
            row_bytes_max,
            batch_rows,
            batch_bytes,
            compression,
            strings,
            _extension_choice(extension),
            progress,
        )
    except BaseException:
        connection.close()
        raise
    return Result(native)
