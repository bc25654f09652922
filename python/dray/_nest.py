"""Whole objects from the rows of several tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import _dray
from ._dray import Nested
from .errors import UsageError

if TYPE_CHECKING:
    from ._connection import Connection

__all__ = ["nest"]


def nest(
    connection: Connection,
    spec: str | os.PathLike[str],
    *,
    memory: int | str | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Nested:
    """Make whole objects of the rows of several statements: customers with their orders, orders
    with their items.

    Each level has a flat statement of its own. Dray sorts the rows of each level by the key of its
    parent, on disk if they don't fit into memory, and merges them: the server neither joins nor
    makes JSON. All statements read one snapshot of a database. One behind a Dray server can't give
    it, so several levels need a connection to the database itself.

    The result is an Arrow stream that can be read once: ``pyarrow.table(nested)``,
    ``polars.DataFrame(nested)``, ``dray.write_pages("customers.pages", nested, key="id")``.

    Parameters
    ----------
    connection : Connection
        An open connection. It is free again when this returns. Several levels get one snapshot
        outside of a transaction; within one, its isolation must be REPEATABLE READ or SERIALIZABLE,
        which MySQL and MariaDB tell only of the session.
    spec : str or path
        What is nested in what, in TOML: the text, or the path of a file. ``many.NAME`` becomes a
        list, and ``one.NAME`` an object, or None. ``on`` says which column of a child equals which
        of its parent; these columns of the child are left out. ``order`` sorts the outermost rows
        and the items of lists. Rows of a list without a parent are an error, unless ``orphans`` is
        ``"drop"``. A key of which any column is missing has neither children nor a parent.
    memory : int or str, optional
        The memory of all sorts before they spill, such as ``"2GiB"``. The default is half of the
        available memory.
    spill : path, optional
        The folder for spilled data. The default is the system's folder for temporary files.

    Raises
    ------
    UsageError
        The specification is wrong, or does not fit what its statements return; or it has several
        levels, and the connection is to a database behind a Dray server, or in a transaction in
        which each statement has a snapshot of its own.
    ExecutionError
        A statement failed, a key is there twice, or a row of a list has no parent. The last two may
        also be errors of the stream.

    Examples
    --------
    >>> customers = dray.nest(connection, '''
    ...     sql = "SELECT c_custkey, c_name FROM customer"
    ...     order = ["c_custkey"]
    ...     [many.orders]
    ...     sql = "SELECT o_orderkey, o_custkey, o_orderdate FROM orders"
    ...     on = { o_custkey = "c_custkey" }
    ...     order = ["o_orderdate:desc"]
    ... ''')
    >>> pyarrow.table(customers)["orders"]
    """
    return _dray.nest(
        connection._native,
        _text(spec),
        None if memory is None else str(memory),
        None if spill is None else os.fspath(spill),
    )


def _text(spec: str | os.PathLike[str]) -> str:
    """The text of a specification: of a file, if there is one of this name or no assignment."""
    if isinstance(spec, str) and "=" in spec and not os.path.isfile(spec):
        return spec
    try:
        return Path(spec).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"can't read the specification {os.fspath(spec)!r}: {error}",
            "give the path of a TOML file, or its text",
        ) from error
