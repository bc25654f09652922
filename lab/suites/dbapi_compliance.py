"""dbapi-compliance for `dray.dbapi`, on a PostgreSQL server. Its tests are methods of a class."""

from __future__ import annotations

import os

import dbapi20
import dray.dbapi


class TestDray(dbapi20.DatabaseAPI20Test):
    driver = dray.dbapi
    connect_args = (os.environ["DRAY_URI"],)

    def test_nextset(self) -> None:
        """PostgreSQL's prepared statements have one result each."""
        self.skipTest("optional, and not there")

    def test_setoutputsize(self) -> None:
        """The suite has no test of its own."""
        self._connect().cursor().setoutputsize(100)
