"""Writing into tables of MariaDB: modes, databases, sources, and transactions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mysql_target import ROWS, TABLE, MysqlTarget

import dray


def test_modes(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    missing = target.fails(TABLE, "table `w`.`t` does not exist.*create_append", mode="append")
    assert missing.sqlstate == "42S02"
    written = target.write(TABLE)
    assert (written.rows, written["rows"]) == (3, 3)
    assert written.bytes > 0 and written.total_seconds > 0
    assert target.rows() == ROWS
    assert target.fails(TABLE, "already exists.*append adds rows").sqlstate == "42S01"
    target.write(TABLE, mode="append")
    target.write(TABLE, mode="create_append")
    assert target.rows() == ROWS * 3
    target.write(TABLE.select(["name"]), mode="replace")
    assert target.rows() == [(name,) for _, name in ROWS]
    target.fails(TABLE, "mode 'bad'|mode \"bad\"", mode="bad")
    # Replacing what does not exist, and creating by appending.
    target.dray.write("u", TABLE, mode="replace")
    target.dray.write("v", TABLE, mode="create_append")
    assert target.rows("w.u") == target.rows("w.v") == ROWS
    assert target.tables() == ["t", "u", "v"]


def test_databases_and_temporary_tables(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.write(TABLE, schema="other")
    target.write(TABLE, schema="other", mode="append")
    assert target.rows("other.t") == ROWS * 2
    target.write(TABLE)
    assert len(target.rows("w.t")) == 3
    assert target.fails(TABLE, "nowhere", schema="nowhere").sqlstate == "42000"
    # A temporary table hides the other one.
    target.write(TABLE, temporary=True)
    target.write(TABLE, temporary=True, mode="append")
    assert target.ask("SELECT count(*) FROM t") == [(6,)]
    target.fails(TABLE, "already exists", temporary=True)
    target.fails(TABLE, "temporary table", mode="replace")
    target.write(TABLE, temporary=True, mode="replace")
    assert target.ask("SELECT count(*) FROM t") == [(3,)]
    assert target.rows("w.t") == ROWS
    with dray.connect(target.server.uri(database="")) as other:
        with pytest.raises(dray.QueryError, match="no database is selected"):
            other.write("t", TABLE)
        other.write("u", TABLE, schema="w")
    assert target.rows("w.u") == ROWS


def test_names(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    names = ["a`b", "select", "Ä \\ '\"?", "x" * 64]
    table = pa.table({name: [i] for i, name in enumerate(names)})
    for name in ("ta`b\\le", "SELECT", "it's; DROP TABLE t", '"q" ? -- '[:-1]):
        for mode in ("replace", "append"):
            target.dray.write(name, table, mode=mode)
        quoted = "`" + name.replace("`", "``") + "`"
        assert target.rows(f"w.{quoted}") == [("0", "1", "2", "3")] * 2
    for name, why in [("", "empty name"), ("x" * 65, "65 characters"), ("a\0", "NUL"),
                      ("a ", "blank")]:  # fmt: skip
        with pytest.raises(dray.UsageError, match=why):
            target.dray.write(name, TABLE)


def test_sources(mysql_target: MysqlTarget, tmp_path: Path) -> None:
    target = mysql_target
    pq.write_table(TABLE, tmp_path / "t.parquet")
    frame = pd.DataFrame({"id": pd.array([1, 2, None], "Int32"), "name": TABLE["name"].to_pylist()})
    for source in (TABLE, TABLE.to_batches()[0], TABLE.to_reader(), pl.from_arrow(TABLE), frame,
                   tmp_path / "t.parquet"):  # fmt: skip
        target.write(source, mode="replace")
        assert target.rows() == ROWS, type(source)
    with dray.connect(target.server.uri(database="w")) as other:
        target.dray.write("copy", other.query("SELECT * FROM t"))
    assert target.rows("w.copy") == ROWS


def test_batches_of_any_size(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    batches = [TABLE.to_batches()[0].slice(0, 0)] * 3 + TABLE.to_batches() * 2
    big = pa.table({"id": pa.array(range(50_000), pa.int32()), "name": ["x" * 40] * 50_000})
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, [*batches, *big.to_batches()])
    assert target.write(reader).rows == 50_006
    (sums,) = target.rows(columns="count(*), sum(id), sum(length(name)), count(DISTINCT id)")
    lengths = sum(len((name or "").encode()) for _, name in ROWS) * 2 + 2_000_000
    assert sums == ("50006", str(sum(range(50_000)) + 6), str(lengths), "50000")
    # Rows that are larger than a block, and slices.
    long = pa.table({"t": ["y" * n for n in (0, 1, 70_000, 20_000_000, 5)]}).slice(1)
    target.write(long, mode="replace")
    assert target.rows(columns="length(t)") == [("1",), ("70000",), ("20000000",), ("5",)]
    assert target.write(TABLE.slice(0, 0), mode="replace").rows == 0
    assert target.rows() == []
    # Empty strings are rows, too.
    assert target.write(pa.table({"t": ["", "", None]}), mode="replace").rows == 3
    assert target.rows() == [("",), ("",), (None,)]


def test_transactions(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.write(TABLE)
    target.dray.query("BEGIN").close()
    target.write(TABLE, mode="append")
    assert len(target.rows()) == 3
    with pytest.raises(dray.Error, match="out of range"):
        target.write(pa.table({"id": [2**40]}), mode="append")
    # The transaction survives, with what was written before.
    with pytest.raises(dray.UsageError, match="a transaction is open.*commit"):
        target.dray.write("u", TABLE)
    target.write(TABLE, mode="append", temporary=False)
    # A table of the session's own is no reason to commit.
    target.dray.write("mine", TABLE, temporary=True)
    assert len(target.rows()) == 3
    target.dray.query("COMMIT").close()
    assert len(target.rows()) == 9
    target.dray.query("BEGIN").close()
    target.write(TABLE, mode="append")
    target.dray.query("ROLLBACK").close()
    assert len(target.rows()) == 9
    # Without autocommit, the user commits.
    target.dray.query("SET autocommit = 0").close()
    target.write(TABLE, mode="append")
    assert len(target.rows()) == 9
    target.dray.query("COMMIT").close()
    assert len(target.rows()) == 12


def test_default_and_generated_columns(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.server.run(
        "CREATE TABLE w.t (id int AUTO_INCREMENT PRIMARY KEY, name text DEFAULT 'x', "
        "at int DEFAULT 7, twice int GENERATED ALWAYS AS (at * 2) STORED)"
    )
    target.write(pa.table({"name": ["b", None]}), mode="append")
    assert target.rows() == [("1", "b", "7", "14"), ("2", None, "7", "14")]
    target.fails(pa.table({"twice": [1]}), "generated", mode="append")
    target.fails(pa.table({"nmae": [1]}), 'no column "nmae".*id, name, at, twice', mode="append")
    # 0 is a value, and NULL does not become the next number.
    target.write(pa.table({"id": [0]}), mode="append")
    assert target.rows(columns="id") == [("0",), ("1",), ("2",)]
    target.fails(pa.table({"id": pa.array([None], pa.int32())}), "NOT NULL", mode="append")
    target.server.run("ALTER TABLE w.t ADD must int NOT NULL")
    target.fails(pa.table({"name": ["x"]}), '"must" has no default', mode="append")


def test_settings_of_the_user(mysql_target: MysqlTarget) -> None:
    """What the user has set has no effect on what is written, and stays."""
    target = mysql_target
    names = ("time_zone", "sql_mode", "character_set_client", "character_set_results",
             "character_set_connection", "collation_connection", "sql_notes",
             "net_read_timeout")  # fmt: skip
    question = "SELECT " + ", ".join(f"CAST(@@{name} AS CHAR)" for name in names)
    target.dray.query(
        "SET NAMES latin1, time_zone = '+05:00', sql_notes = 0, net_read_timeout = 17, "
        "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ORACLE', character_set_results = utf8mb4"
    ).close()
    before = target.ask(question)
    at = pa.array([0, 86_400_000_000], pa.timestamp("us", "Europe/Amsterdam"))
    table = pa.table({"a\\": ["ü", "\\N"], "at": pa.array([None, at[1].as_py()], at.type)})
    target.write(table)
    with pytest.raises(dray.Error, match="'at'|`at`"):
        target.write(pa.table({"at": pa.array([-1], at.type)}), mode="append")
    assert target.ask(question) == before
    assert target.rows() == [("ü", None), ("\\N", "1970-01-02 00:00:00.000000")]


def test_results_without_a_character_set(mysql_target: MysqlTarget) -> None:
    mysql_target.dray.query("SET character_set_results = NULL").close()
    mysql_target.write(TABLE)
    assert mysql_target.rows() == ROWS
    with pytest.raises(dray.Error, match="character_set_results was set"):
        mysql_target.ask("SELECT 1")


def test_replacing_what_others_need(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.server.run(
        "CREATE TABLE w.t (id int PRIMARY KEY)",
        "INSERT INTO w.t VALUES (1)",
        "CREATE TABLE w.child (id int, FOREIGN KEY (id) REFERENCES w.t (id))",
        "CREATE VIEW w.seen AS SELECT * FROM w.t",
    )
    target.fails(TABLE, "foreign key|referenced", mode="replace")
    assert target.tables() == ["child", "seen", "t"]
    target.server.run("INSERT INTO w.child VALUES (1)")
    for mode in ("append", "replace"):
        with pytest.raises(dray.UsageError, match="is a view"):
            target.dray.write("seen", TABLE, mode=mode)


def test_tables_without_transactions(mysql_target: MysqlTarget) -> None:
    target = mysql_target
    target.server.run("CREATE TABLE w.t (id int, name text) ENGINE = MyISAM")
    error = target.fails(TABLE, "MyISAM.*can't take rows back", mode="append")
    assert error.hint and "INSERT … SELECT" in error.hint
    target.fails(TABLE, "MyISAM", mode="create_append")
    # A new one can be dropped.
    target.dray.query("SET default_storage_engine = MyISAM").close()
    target.write(TABLE, mode="replace")
    assert target.rows() == ROWS
    target.fails(pa.table({"id": [1, 2], "x": ["a" * 70_000, "b"]}), "too many bytes",
                 types={"x": "text"}, mode="replace")  # fmt: skip
    assert target.rows() == ROWS and target.tables() == ["t"]
