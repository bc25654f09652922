"""A connection that writes into PostgreSQL, and one that looks at what it wrote."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from postgres_server import PostgresServer

import dray

TABLE = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", None, "ü 🐴\n\t\\"]})


class Target:
    """A connection that writes, and one that looks."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.dray = dray.connect(server.uri())
        self.oracle = server.connect()
        # Other tests have tables in the schema public.
        self.oracle.execute("DROP SCHEMA IF EXISTS w, other CASCADE")
        self.oracle.execute("CREATE SCHEMA w")
        self.oracle.execute("CREATE SCHEMA other")
        self.dray.query("SET search_path TO w, other").close()

    def rows(self, table: str = "w.t", columns: str = "*") -> list[tuple[Any, ...]]:
        return self.oracle.execute(f"SELECT {columns} FROM {table}").fetchall()

    def write(self, data: Any, **options: Any) -> dray.Written:
        return self.dray.write("t", data, **options)

    def fails(self, data: Any, match: str, **options: Any) -> dray.Error:
        """A failure after which nothing has changed and the connection can be used."""
        with pytest.raises(dray.Error, match=match) as caught:
            self.write(data, **options)
        assert self.dray.query("SELECT 1").to_arrow().num_rows == 1
        (state,) = self.oracle.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' "
            "AND application_name LIKE 'dray%'"
        ).fetchone() or (None,)
        assert state == 0
        return caught.value
