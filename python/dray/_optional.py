"""Packages that are needed by some methods only."""

from __future__ import annotations

import importlib
import sys
from typing import Any

#: The extra of this package that installs a package, if it has another name.
_EXTRAS = {"pyspark": "spark", "numpy": "pandas"}


def import_optional(name: str) -> Any:
    """Import a package that ``import dray`` does not need.

    Raises
    ------
    ImportError
        It is not there, or too old to have this module. The message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = _EXTRAS.get(package, package)
        newer = "" if sys.modules.get(package) is None else "a newer "
        message = f"this needs {newer}{package}: pip install 'dray[{extra}]'"
        raise ImportError(message, name=package) from error
