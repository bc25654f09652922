"""Where the ADBC driver is, and what its options are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from . import _dray

__all__ = ["database_options", "driver", "has_own_tables", "strip_driver"]

FILE = "libadbc_driver_dray.so"


def _places() -> Iterator[Path]:
    # A wheel has it beside this module, and a conda environment among its libraries.
    yield Path(__file__).parent
    yield Path(sys.prefix) / "lib"


def driver() -> str:
    """Return the path of the driver's library.

    Returns
    -------
    str
        Its path, or the name ``dray`` if this package comes without it: driver managers then look
        for a manifest, which ``dray adbc install`` or a system's package has written.
    """
    for place in _places():
        if (path := place / FILE).is_file():
            return str(path)
    return "dray"


def missing(cause: object) -> str:
    """Return what to say when a driver manager finds no driver by the name ``dray``."""
    return (
        f"this installation of dray {_dray.__version__} has no ADBC driver ({FILE} in "
        f"{Path(__file__).parent}): install a wheel of dray, or build the driver "
        "(cargo build --release -p dray-adbc) and run `dray adbc install --library PATH`. "
        f"The driver manager says: {cause}"
    )


def strip_driver(uri: str) -> str:
    """Return ``uri`` without the name of the driver: ``dray:postgresql://…``."""
    rest = uri.removeprefix("dray:")
    return uri if rest.startswith("//") else rest


def has_own_tables(uri: str) -> bool:
    """Whether ``uri`` is that of a Dray server's own tables, which are only read.

    A database behind the server may be writable.
    """
    server = _dray.server_uri(uri)
    return server is not None and server[0] in (None, "files")


def database_options(
    token: str | None,
    plain_token: bool,
    ca: str | os.PathLike[str] | None,
    timeout: float,
    read_timeout: float | None,
    local_socket: bool,
) -> dict[str, str]:
    """Return the options of :func:`dray.connect` under their names in the driver."""
    options = {"dray.timeout": repr(float(timeout))}
    if token is not None:
        options["dray.token"] = token
    if plain_token:
        options["dray.plain_token"] = "true"
    if ca is not None:
        options["dray.ca"] = os.fspath(ca)
    if read_timeout is not None:
        options["dray.read_timeout"] = repr(float(read_timeout))
    if not local_socket:
        options["dray.local_socket"] = "false"
    return options
