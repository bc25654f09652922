"""A connection that writes into MariaDB, and one that looks at what it wrote."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pytest
from mysql_server import MariaServer

import dray

TABLE = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", None, "ü 🐴\n\t\\"]})
#: The same, as the server's own text.
ROWS = [("1", "a"), ("2", None), (None, "ü 🐴\n\t\\")]


class MysqlTarget:
    """A connection that writes into the database ``w``, and one that looks.

    ``way`` is ``"load"`` for rows by LOAD DATA, ``"insert"`` for prepared statements: a client of
    the second kind finds ``local_infile`` off.
    """

    def __init__(self, server: MariaServer, way: str = "load") -> None:
        self.server = server
        self.way = way
        server.run(f"SET GLOBAL local_infile = {'ON' if way == 'load' else 'OFF'}")
        server.run(
            *(f"DROP DATABASE IF EXISTS {name}" for name in ("w", "other")),
            *(f"CREATE DATABASE {name} CHARACTER SET utf8mb4" for name in ("w", "other")),
        )
        self.dray = dray.connect(server.uri(database="w"))

    def close(self) -> None:
        self.dray.close()
        self.server.run("SET GLOBAL local_infile = ON", "DROP DATABASE w", "DROP DATABASE other")

    def rows(self, table: str = "w.t", columns: str = "*") -> list[tuple[Any, ...]]:
        return self.server.rows(f"SELECT {columns} FROM {table}")

    def tables(self, database: str = "w") -> list[str]:
        return [name for (name,) in self.server.rows(f"SHOW TABLES FROM {database}")]

    def write(self, data: Any, **options: Any) -> dray.Written:
        written = self.dray.write("t", data, **options)
        assert written.format == ("text" if self.way == "load" else "binary")
        return written

    def fails(self, data: Any, match: str, **options: Any) -> dray.Error:
        """A failure after which nothing has changed and the connection can be used."""
        before = self.state()
        with pytest.raises(dray.Error, match=match) as caught:
            self.dray.write("t", data, **options)
        assert self.dray.query("SELECT 1").to_arrow().num_rows == 1
        assert self.state() == before
        return caught.value

    def state(self) -> list[Any]:
        """The rows of all tables, and the transactions that are open."""
        # The server's own threads, such as the one that purges, have the number 0.
        sql = (
            "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx "
            "WHERE trx_mysql_thread_id <> 0"
        )
        found: list[Any] = [self.server.rows(sql)]
        for name in self.tables():
            quoted = name.replace("`", "``")
            with contextlib.suppress(Exception):
                found.append((name, self.server.rows(f"CHECKSUM TABLE w.`{quoted}`")))
        return found

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement over the connection that writes."""
        table = self.dray.query(sql).to_arrow()
        return [tuple(row.values()) for row in table.to_pylist()]
