"""The statements by which engines read a table, and whose SQL they are."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
import pytest
from engine_tables import PAIRS, ROWS, TOKEN, pairs
from relay_server import Relay, relay

import dray
from dray._conditions import Condition, Conditions
from dray._relation import Relation, read_part

KIND = 'a `"kind"'
ID = 'the `"id"'


def relation(served: Relay, source: str, table: str) -> Relation:
    return Relation(served.uri(source), None, None, [table], {"token": TOKEN, "at_most": 3})


def rows(
    found: Relation, columns: list[str] | None = None, condition: Condition | None = None
) -> list[dict[str, object]]:
    parts = found.plan(columns, condition)
    batches = [batch for part in parts for batch in read_part(part, found.reading)]
    return pa.Table.from_batches(batches, parts.schema).to_pylist()


def test_names_of_mysql(served: Relay) -> None:
    kinds = relation(served, "maria", KIND)
    assert kinds.dialect == "mysql"
    assert kinds.schema.names == [ID, "small", "price", "made", "name", "doc", "day"]
    assert sorted(row[ID] for row in rows(kinds, [ID])) == [-2, 1]
    condition = kinds.conditions.compare(ID, "<", 0)
    assert kinds.statement([ID], condition, 5) == (
        'SELECT `the ``"id"` FROM `a ``"kind"` WHERE `the ``"id"` < 0 LIMIT 5'
    )
    assert rows(kinds, [ID], condition) == [{ID: -2}]


def test_conditions_of_mysql(served: Relay) -> None:
    kinds = relation(served, "maria", KIND)
    conditions = kinds.conditions
    for condition, ids in [
        (conditions.compare("small", "<=", -7), [1]),
        (conditions.compare("price", "=", Decimal("1.5")), [1]),
        (conditions.one_of("price", [Decimal("-99.99"), Decimal(7)]), [-2]),
        (conditions.compare("day", ">", datetime.date(2000, 1, 1)), [1]),
        (conditions.is_null("small"), [-2]),
        (conditions.is_not_null("small"), [1]),
        # IS NULL would find 0000-00-00.
        (conditions.is_null("day"), []),
    ]:
        assert condition is not None and condition.exact
        assert [row[ID] for row in rows(kinds, [ID], condition)] == ids, condition
    # MySQL takes the year 70 for 1970, a text for no JSON, and "a" for "A".
    assert conditions.compare("made", ">", 70) is None
    assert conditions.compare("doc", "=", '{"a": 1}') is None
    assert conditions.compare("name", "=", "a") is None
    assert conditions.is_null("doc") is None


def test_parts_of_mysql(served: Relay) -> None:
    table = relation(served, "maria", "pairs")
    condition = table.conditions.compare("id", ">=", PAIRS)
    plan = table.plan(["id", "amount"], condition)
    assert 2 <= len(plan) <= 3
    found = rows(table, ["id", "amount"], condition)
    assert sorted(row["id"] for row in found) == list(range(PAIRS, 2 * PAIRS))
    assert sum(row["amount"] for row in found) == 0


@pytest.mark.parametrize(("source", "dialect"), [("", "dray"), ("pg", "postgresql")])
def test_known_dialects(served: Relay, source: str, dialect: str) -> None:
    table = relation(served, source, "pairs")
    assert table.dialect == dialect
    condition = table.conditions.compare("filler", "=", "xxx")
    assert condition == Condition("\"filler\" = 'xxx'", exact=False)
    assert table.statement(["id"], condition) == (
        'SELECT "id" FROM "pairs" WHERE "filler" = \'xxx\''
    )


def test_readers_have_the_options_of_the_uri(certificates: dict[str, Path], tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pairs(), tmp_path / "pairs.parquet", row_group_size=PAIRS // 4)
    authority = tmp_path / "an authority.pem"
    authority.write_bytes(certificates["authority"].read_bytes())
    chain, key = certificates["chain"], certificates["key"]
    tls = ["--tls-cert", str(chain), "--tls-key", str(key)]
    with relay(*tls, str(tmp_path / "pairs.parquet")) as server:
        uri = server.tcp.replace("127.0.0.1", "localhost")
        uri = f"{uri}?ca={quote(str(authority))}&read_timeout=600"
        table = Relation(uri, None, None, ["pairs"], {"at_most": 3})
        assert table.reading == {"ca": str(authority), "read_timeout": 600.0}
        assert len(rows(table)) == ROWS
        table = Relation(uri, None, None, ["pairs"], {"ca": "/nowhere.pem", "timeout": 5})
        assert table.reading == {"ca": "/nowhere.pem", "timeout": 5, "read_timeout": 600.0}
        table = Relation(f"{uri}&read_timeout=soon", None, None, ["pairs"], {})
        with pytest.raises(dray.UsageError, match="read_timeout is not a time"):
            table.plan()
    other = Relation("postgresql://localhost/d?ca=x", None, None, ["pairs"], {})
    assert other.reading == {}


def test_unknown_dialects(served: Relay) -> None:
    kinds = relation(served, "lite", "kinds")
    assert kinds.dialect == "other"
    with pytest.raises(dray.QueryError, match="lite can't be divided into parts"):
        kinds.plan()
    conditions = Conditions(pairs().schema, kinds.dialect)
    assert conditions.compare("id", "=", 1) is None
    assert conditions.is_null("id") is None
