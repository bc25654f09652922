"""dbapi-compliance for `dray.dbapi`, on a PostgreSQL server. Its tests are methods of a class.

The suite knows the parameter styles of PEP 249, which has none for PostgreSQL's `$1`. So it gets
the driver as one of the style `numeric`, whose cursors turn the suite's own `:1` into `$1`.
"""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import Any

import dbapi20
import dray.dbapi

# The suite has parameters after a parenthesis, and the same characters in strings.
PARAMETER = r"(?<=\():(\d)"

numeric = ModuleType("numeric")
numeric.__dict__.update(vars(dray.dbapi), paramstyle="numeric")


class Wrapped:
    """A connection or cursor with parameters `:1`."""

    def __init__(self, wrapped: Any) -> None:
        self.__dict__["wrapped"] = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.wrapped, name, value)

    def cursor(self) -> Wrapped:
        return Wrapped(self.wrapped.cursor())

    def execute(self, sql: str, *values: Any) -> Any:
        return self.wrapped.execute(re.sub(PARAMETER, r"$\1", sql), *values)

    def executemany(self, sql: str, rows: Any) -> Any:
        return self.wrapped.executemany(re.sub(PARAMETER, r"$\1", sql), rows)


class TestDray(dbapi20.DatabaseAPI20Test):
    driver = numeric
    connect_args = (os.environ["DRAY_URI"],)

    def _connect(self) -> Any:
        return Wrapped(super()._connect())

    def test_paramstyle(self) -> None:
        """PEP 249 has no name for `$1`; `numeric_dollar` is what others call it, too."""
        assert dray.dbapi.paramstyle == "numeric_dollar"
        self.skipTest("PostgreSQL's style has no name in PEP 249")

    def test_nextset(self) -> None:
        """PostgreSQL's prepared statements have one result each."""
        self.skipTest("optional, and not there")

    def test_setoutputsize(self) -> None:
        """The suite has no test of its own."""
        self._connect().cursor().setoutputsize(100)
