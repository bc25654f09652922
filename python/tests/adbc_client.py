"""Connections through the ADBC driver under test, which is beside the `dray` program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from adbc_driver_manager import dbapi
from server import binary


def library() -> Path:
    path = binary().with_name("libadbc_driver_dray.so")
    if not path.exists():
        raise FileNotFoundError(f"no ADBC driver at {path}: build it with the dray program")
    return path


def rows(connection: dbapi.Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        return list(cursor.execute(sql).fetchall())


def table(connection: dbapi.Connection, sql: str) -> pa.Table:
    with connection.cursor() as cursor:
        return cursor.execute(sql).fetch_arrow_table()


def connect(
    uri: str,
    options: dict[str, str] | None = None,
    connection_options: dict[str, str] | None = None,
    *,
    autocommit: bool = True,
) -> dbapi.Connection:
    return dbapi.connect(
        str(library()),
        uri,
        db_kwargs=options,
        conn_kwargs=connection_options,
        autocommit=autocommit,
    )
