"""Writing every type of spec/types.md: from PostgreSQL through Arrow and back, compared there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from postgres_type_cases import CASES, Case
from postgres_types import Types, fill

import dray

# What the column's type can't hold comes as text, which the server reads again.
BACK = {"nonfinite": "text"}


@pytest.fixture(autouse=True)
def dropped(types: Types) -> Iterator[None]:
    """Other tests look at all tables of the database."""
    yield
    types.oracle.execute("DROP TABLE IF EXISTS appended, created")


def columns_differ(types: Types, one: str, other: str) -> int:
    """The rows whose text differs; lower bounds of arrays are not part of Arrow."""
    text = r"regexp_replace(v::text, '^\[[-0-9:]+\]=', '')"
    sql = (
        f"SELECT count(*)::text FROM {one} a FULL JOIN {other} b USING (id) "
        f"WHERE {text.replace('v::', 'a.v::')} IS DISTINCT FROM {text.replace('v::', 'b.v::')}"
    )
    (count,) = types.texts(sql)
    return int(count or -1)


def created(types: Types, case: Case, table: pa.Table) -> None:
    """A new table has the same types, except composites, which become JSON."""
    # JSON has no NaN, and vectors of integers become arrays, whose text differs.
    if pa.types.is_nested(table["v"].type) and "NaN" in str(case.texts):
        return
    if case.type.endswith("vector"):
        return
    types.connection.write("created", table)
    (kind,) = set(types.texts("SELECT pg_typeof(v)::text FROM created"))
    if kind == "jsonb" and "json" not in case.type:
        assert pa.types.is_nested(table["v"].type)
    elif "char" in case.type and not pa.types.is_nested(table["v"].type):
        # A column of text shows the blanks of char(n).
        assert types.texts("SELECT v FROM created ORDER BY id") == table["v"].to_pylist()
    else:
        assert columns_differ(types, case.table, "created") == 0


@pytest.mark.parametrize(
    ("value", "options", "kind"),
    [
        ("1.5::numeric", {"numeric": "float64"}, "double precision"),
        ("ARRAY[1.5::numeric, NULL]", {"numeric": "float64"}, "double precision[]"),
        ("ROW(1, 'a')", {}, "text"),
        ("ARRAY[ROW(1, 'a')]", {}, "text[]"),
    ],
)
def test_types_that_no_column_of_the_data_has(
    types: Types, value: str, options: dict[str, str], kind: str
) -> None:
    types.connection.write("created", types.query(f"SELECT {value} AS v", **options).arrow())
    assert types.texts("SELECT pg_typeof(v)::text FROM created") == [kind]
    assert types.texts("SELECT v::text FROM created") == types.texts(f"SELECT ({value})::text")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_round_trip(types: Types, case: Case) -> None:
    if types.version < case.since:
        return
    fill(types, case)
    for options in ({}, BACK):
        try:
            table = types.query(f"SELECT * FROM {case.table} ORDER BY id", **options).arrow()
        except dray.Error:
            # Some value is not finite.
            assert not options
            continue
        types.oracle.execute("DROP TABLE IF EXISTS appended, created")
        types.oracle.execute(f"CREATE TABLE appended (LIKE {case.table})")
        written = types.connection.write("appended", table, mode="append")
        assert written.rows == table.num_rows
        assert columns_differ(types, case.table, "appended") == 0, (options, written.format)
        created(types, case, table)
        types.connection.query("SELECT 1").arrow()


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_round_trip_as_text(types: Types, case: Case) -> None:
    """A column of a type that has only text makes all columns text."""
    if types.version < case.since or "money" in case.type or "priced" in case.type:
        return
    fill(types, case)
    try:
        table = types.query(f"SELECT *, '::1'::inet AS i FROM {case.table} ORDER BY id").arrow()
    except dray.Error:
        return
    types.oracle.execute("DROP TABLE IF EXISTS appended")
    types.oracle.execute(f"CREATE TABLE appended (LIKE {case.table}, i inet)")
    written = types.connection.write("appended", table, mode="append")
    assert written.format == "text"
    assert columns_differ(types, case.table, "appended") == 0
