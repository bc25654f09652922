"""Rows read where they lie on their page, against the same rows after the executor has taken them
apart.

A query for all columns in their order gets the table's own tuples; one for the columns in another
order gets arrays of values, which is how every other query gets them."""

import random

import pytest

# Types, and expressions over i, g (another integer) and a text s of any length.
COLUMNS = [
    ("boolean", "i % 3 = 0"),
    ('"char"', 'chr(65 + i % 20)::"char"'),
    ("smallint", "(i - 100)::smallint"),
    ("integer", "i * 7 - 1000"),
    ("bigint", "i::bigint << 33"),
    ("real", "i / 3.0::real"),
    ("double precision", "i / 7.0::float8"),
    ("date", "date '1900-01-01' + i"),
    ("time", "time '00:00' + i * interval '1 second'"),
    ("timestamptz", "timestamptz '2000-01-01 00:00+00' - i * interval '1 hour'"),
    ("numeric(12,3)", "i * 1.001 - 100"),
    ("numeric(30,10)", "i * 12345678901.0000000001"),
    ("numeric(60,2)", "i::numeric ^ 9"),
    ("numeric", "i * 10::numeric ^ (i % 40 - 20)"),
    ("money", "(i * 0.37)::numeric::money"),
    ("uuid", "md5(i::text)::uuid"),
    ("name", "left(s, 40)::name"),
    ("text", "s"),
    ("text", "left(s, i % 40)"),
    ("varchar(100)", "left(s, i % 100)"),
    ("character(7)", "left(s, i % 8)"),
    ("bytea", "convert_to(left(s, i % 300), 'UTF8')"),
    ("timetz", "timetz '01:00+02' + i * interval '1 second'"),
    ("integer[]", "ARRAY[i, NULL]"),
    ("jsonb", "jsonb_build_object('i', i)"),
    ("interval", "i * interval '1 minute'"),
]
# Text from none to what is compressed and what is moved out of the table.
TEXT = (
    "left(repeat(md5(i::text), CASE i % 50 WHEN 0 THEN 2000 WHEN 1 THEN 100 "
    "ELSE 3 END), i % 97 * (i % 50 + 1))"
)


def make_table(connection, chosen: list[tuple[str, str]], nulls: int):
    """A table of 300 rows; of `nulls` in 100 values are NULL."""
    types = ", ".join(f"c{n} {pg_type}" for n, (pg_type, _) in enumerate(chosen))
    values = ", ".join(
        f"CASE WHEN (i * {n + 7} + {n}) % 100 >= {nulls} THEN {expression} END"
        for n, (_, expression) in enumerate(chosen)
    )
    connection.run(f"CREATE TABLE r ({types})")
    connection.run(
        f"INSERT INTO r SELECT {values} FROM (SELECT i, {TEXT} AS s "
        "FROM generate_series(1, 300) i) x"
    )


def check(connection, names: list[str], options: str = ""):
    """The columns of table r, which both ways agree on."""
    backwards = connection.copy(f"(SELECT {', '.join(reversed(names))} FROM r)", options).columns()
    for where in ("", f" WHERE {names[0]} IS NULL OR {names[0]} IS NOT NULL"):
        assert connection.copy(f"(SELECT * FROM r{where})", options).columns() == backwards[::-1]
    assert connection.copy("r", options).columns() == backwards[::-1]
    return backwards[::-1]


@pytest.fixture
def table(connection):
    yield connection
    connection.run("DROP TABLE r")


@pytest.mark.parametrize("seed", range(12))
def test_random_tables(table, seed):
    chance = random.Random(seed)
    chosen = chance.choices(COLUMNS, k=chance.choice([1, 2, 9, 17, 60]))
    make_table(table, chosen, chance.choice([0, 10, 90]))
    options = chance.choice(["", "chunk_bytes_max 4096", "compression 'light'"])
    columns = check(table, [f"c{n}" for n in range(len(chosen))], options)
    assert all(len(column) == 300 for column in columns)


@pytest.mark.parametrize("pg_type", sorted({pg_type for pg_type, _ in COLUMNS}))
def test_each_type_after_a_byte(table, pg_type):
    # What is aligned begins in its place after any number of bytes.
    chosen = [one for one in COLUMNS if one[0] == pg_type]
    between = [
        part
        for one in chosen
        for part in (("boolean", "i % 2 = 0"), one, ("text", "left(s, i % 5)"), one)
    ]
    make_table(table, between, 5)
    check(table, [f"c{n}" for n in range(len(between))])


def test_columns_that_were_added_and_dropped(table):
    make_table(table, [("integer", "i"), ("text", "s"), ("smallint", "i % 9")], 20)
    before = check(table, ["c0", "c1", "c2"])
    # The rows that are there have neither column; one has a value that the table knows.
    table.run("ALTER TABLE r ADD COLUMN c3 text DEFAULT 'new', ADD COLUMN c4 bigint")
    table.run("INSERT INTO r SELECT 1, 'x', 2, NULL, 5")
    columns = check(table, ["c0", "c1", "c2", "c3", "c4"])
    assert columns[1] == before[1] + ["x"]
    assert columns[3] == ["new"] * 300 + [None] and columns[4] == [None] * 300 + [5]
    table.run("ALTER TABLE r DROP COLUMN c1")
    table.run("INSERT INTO r SELECT 3, 4, 'y', 6")
    columns = check(table, ["c0", "c2", "c3", "c4"])
    assert columns[0] == before[0] + [1, 3] and columns[3] == [None] * 300 + [5, 6]


def test_rows_of_other_scans(table):
    make_table(table, [("integer", "i"), ("text", "s"), ("numeric(9,2)", "i / 3.0")], 0)
    expected = check(table, ["c0", "c1", "c2"])
    table.run("CREATE INDEX ON r (c0)")
    for settings in ("enable_seqscan = off", "enable_seqscan = off; SET enable_indexscan = off"):
        table.run(f"SET {settings}")
        assert table.copy("(SELECT * FROM r WHERE c0 > 0)").columns() == expected
        table.run("RESET ALL")
    assert table.copy("(SELECT * FROM r ORDER BY c0)").columns() == expected
    assert table.copy("(SELECT * FROM r FOR UPDATE)").columns() == expected
    assert table.copy("(SELECT * FROM r TABLESAMPLE BERNOULLI (100))").columns() == expected
    assert table.copy("(SELECT * FROM r WHERE ctid < '(1000,0)')").columns() == expected
    assert table.copy("(UPDATE r SET c0 = c0 RETURNING *)").columns() == expected
    # The update has moved rows.
    deleted = table.copy("(DELETE FROM r RETURNING *)").columns()
    assert sorted(zip(*deleted)) == sorted(zip(*expected))


def test_parent_and_children(table):
    make_table(table, [("integer", "i"), ("text", "s")], 10)
    table.run("CREATE TABLE child (c1 text, extra bigint, c0 integer); ALTER TABLE child INHERIT r")
    table.run("INSERT INTO child SELECT i::text, i, i FROM generate_series(1, 50) i")
    columns = table.copy("(SELECT * FROM r)").columns()
    assert [len(column) for column in columns] == [350, 350]
    assert columns[0][300:] == list(range(1, 51)) and columns[1][300:] == [
        str(i) for i in range(1, 51)
    ]
    table.run("DROP TABLE child")
