"""A database with tables of the cases of postgres_type_cases.py. It is read twice: as PostgreSQL's
own text, and as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import postgres_text as pt
import psycopg
import pyarrow as pa
import pytest
from postgres_server import PostgresServer
from postgres_text import Shape
from postgres_type_cases import Case

import dray

DATABASE = "types"


@dataclass(frozen=True)
class Types:
    """A database with the types, and a connection for each of the two readings."""

    server: PostgresServer
    oracle: psycopg.Connection[Any]
    connection: dray.Connection
    extension: bool

    @property
    def version(self) -> int:
        return self.server.version

    def has(self, kind: str, name: str) -> bool:
        """Whether a class, type or role of this name exists."""
        return self.oracle.execute(f"SELECT to_reg{kind}(%s)", [name]).fetchone() != (None,)

    def texts(self, sql: str) -> list[str | None]:
        """The first column of a result, as the type's output function writes it."""
        cursor = self.oracle.execute(sql)
        result = cursor.pgresult
        assert result is not None
        found = [result.get_value(row, 0) for row in range(result.ntuples)]
        return [None if text is None else bytes(text).decode() for text in found]

    def query(self, sql: str, **options: Any) -> dray.Result:
        return self.connection.query(sql, extension=self.extension, **options)

    def column(self, sql: str, **options: Any) -> tuple[pa.Field, list[Any]]:
        """The first column of a result, validated."""
        table = self.query(sql, **options).arrow()
        table.validate(full=True)
        return table.schema.field(0), pt.values(table.column(0))

    def check(self, sql: str, shape: Shape) -> None:
        """Check that the first column of a result matches PostgreSQL's text of it, for each choice
        of nonfinite.
        """
        texts = self.texts(sql)
        want = [None if text is None else shape.read(text) for text in texts]
        missing = [row for row, value in enumerate(want, 1) if pt.has_infinity(value)]
        if missing:
            with pytest.raises(
                dray.Error, match=f'column "v", row {missing[0]}: .*nonfinite=null'
            ) as caught:
                self.query(sql).arrow()
            assert caught.value.kind in ("execution", "usage"), caught.value.kind
        for options, like in (
            ({}, shape),
            ({"nonfinite": "null"}, shape),
            ({"nonfinite": "text"}, shape.texts()),
        ):
            if missing and not options:
                continue
            wanted = (
                want
                if like is shape
                else [None if text is None else like.read(text) for text in texts]
            )
            field, got = self.column(sql, **options)
            assert field.type == like.data_type, options
            # Only the extension knows NOT NULL constraints.
            nullable = field.nullable or not self.extension
            assert field.equals(like.field("v", nullable), check_metadata=True), (
                field,
                field.metadata,
                like.field("v").metadata,
            )
            assert got == [pt.without_infinities(value) for value in wanted], options


def fill(types: Types, case: Case) -> None:
    """Create and fill the case's table unless it exists, with a NULL after its values."""
    if types.has("class", case.table):
        return
    last = [] if case.type == "d_twice" else [None]
    with types.oracle.transaction():
        types.oracle.execute(f"CREATE TABLE {case.table} (id integer, v {case.type})")
        rows = list(enumerate([*case.texts, *last]))
        types.oracle.cursor().executemany(f"INSERT INTO {case.table} VALUES (%s, %s)", rows)
