"""Packages that are needed by some methods only."""

from __future__ import annotations

import importlib
from typing import Any


def import_optional(name: str) -> Any:
    """Import a package that ``import dray`` does not need.

    Raises
    ------
    ImportError
        It is not there. The message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        extra = name if name in ("pandas", "polars", "pyarrow") else "pandas"
        raise ImportError(f"this needs {name}: pip install 'dray[{extra}]'", name=name) from error
