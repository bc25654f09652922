"""Dray's ADBC driver under the name by which Polars and others look for it.

Most programs use :mod:`dray.dbapi`.
"""

from __future__ import annotations

from collections.abc import Mapping

import adbc_driver_manager

from dray import _adbc

__all__ = ["connect"]

# No `__version__`: Polars would compare it with those of the drivers that are released with ADBC.


def connect(
    uri: str, db_kwargs: Mapping[str, str] | None = None
) -> adbc_driver_manager.AdbcDatabase:
    """Create a database of the driver manager's low-level interface.

    Parameters
    ----------
    uri : str
        As for :func:`dray.connect`, or ``dray:`` before such a uri.
    db_kwargs : mapping, optional
        Options of the driver.

    Returns
    -------
    adbc_driver_manager.AdbcDatabase
        Nothing is sent until a connection is made with it.
    """
    options = {**(db_kwargs or {}), "driver": _adbc.driver(), "uri": _adbc.strip_driver(uri)}
    return adbc_driver_manager.AdbcDatabase(**options)
