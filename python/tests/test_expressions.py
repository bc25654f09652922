"""The server's expressions, compared with PostgreSQL's answers, and its integer arithmetic,
compared with Python's, which does not overflow.
"""

from __future__ import annotations

import decimal
import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from postgres_server import VERSIONS, Installation, PostgresServer
from server import Server

import dray

ROUNDS = int(os.environ.get("DRAY_TEST_ROUNDS", "1"))
SEED = int(os.environ.get("DRAY_TEST_SEED", "1"))
# Most random chains of operators are invalid, and both servers refuse them.
CHAINS = 6000 * ROUNDS
CHAINS_MEANT_MIN = 300
SUMS = 400 * ROUNDS

BOOLEANS, NUMBERS, TEXTS = ["p", "q"], ["i", "j", "k"], ["s", "u"]
INFIX = [
    "OR", "AND", "=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "LIKE",
    "NOT LIKE", "ILIKE", "||", "+", "-",
    "*", "/", "%", "&", "|", "<<", ">>", "^", "~", "!~", "SIMILAR TO",
]  # fmt: skip
POSTFIX = [
    "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "ISNULL", "NOTNULL",
    "::text", "IN (p, q)", "NOT IN (i, 2)",
    "BETWEEN i AND j", "NOT BETWEEN p AND q", "IN (s, 'b')",
]  # fmt: skip
PREFIX = ["NOT", "-", "+", "NOT EXISTS (SELECT 1 WHERE p) OR"]
EDGES = {
    bits: [0, 1, -1, 2, 3, 7, 2 ** (bits // 2), most, most - 1, -most, -most - 1]
    for bits, most in ((bits, 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64))
}


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[dict[str, pa.Table]], dray.Connection]]:
    """Serves tables, each set by a server of its own."""
    running: list[tuple[Server, Path]] = []

    def serve(tables: dict[str, pa.Table]) -> dray.Connection:
        folder = Path(tempfile.mkdtemp(prefix="dray"))
        (folder / "files").mkdir()
        for name, table in tables.items():
            pyarrow.parquet.write_table(table, folder / "files" / f"{name}.parquet")
        server = Server(folder, str(folder / "files"))
        running.append((server, folder))
        return dray.connect(server.unix)

    yield serve
    for server, folder in running:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection]:
    folder = Path(tempfile.mkdtemp(prefix="dray-postgresql-"))
    folder.chmod(0o755)
    server = PostgresServer(Installation(VERSIONS[0], folder))
    with server.connect() as connection:
        connection.autocommit = True
        yield connection
    server.stop()
    shutil.rmtree(folder)


def chain(rng: random.Random) -> str:
    """A chain of operators without parentheses."""
    kinds = rng.choice(
        [
            [BOOLEANS],
            [NUMBERS],
            [TEXTS],
            [BOOLEANS, NUMBERS],
            [NUMBERS, TEXTS],
            [BOOLEANS, NUMBERS, TEXTS],
        ]
    )

    def operand() -> str:
        value = rng.choice(rng.choice(kinds))
        value = f"{rng.choice(PREFIX)} {value}" if rng.random() < 0.2 else value
        return f"{value} {rng.choice(POSTFIX)}" if rng.random() < 0.25 else value

    parts = [operand()]
    for _ in range(rng.randrange(1, 4)):
        parts += [rng.choice(INFIX), operand()]
    return " ".join(parts)


def comparable(value: object) -> object:
    match value:
        case bool() | None:
            return value
        case str():
            # As text, floats always have a fraction here, and whole ones have none in PostgreSQL.
            return value.replace(".0", "")
        case int() | float() | decimal.Decimal():
            return float(value)
    raise AssertionError(f"{value!r} is neither boolean, number nor text")


def test_operators_bind_as_in_postgresql(
    served: Callable[[dict[str, pa.Table]], dray.Connection], postgresql: psycopg.Connection
) -> None:
    columns = {
        "p": ([True, False, None], pa.bool_(), "boolean"),
        "q": ([False, True], pa.bool_(), "boolean"),
        "i": ([1, 3], pa.int32(), "integer"),
        "j": ([2, None], pa.int32(), "integer"),
        "k": ([0, 5], pa.int32(), "integer"),
        "s": (["a", "1"], pa.string(), "text"),
        "u": (["%", "b"], pa.string(), "text"),
    }
    rows = list(itertools.product(*(values for values, _, _ in columns.values())))
    types = [data_type for _, data_type, _ in columns.values()]
    arrays = [pa.array(values, data_type) for values, data_type in zip(zip(*rows), types)]
    table = pa.table({"id": pa.array(range(len(rows))), **dict(zip(columns, arrays))})
    ours = served({"t": table})
    postgresql.execute(
        "CREATE TABLE t (id bigint, "
        f"{', '.join(f'{name} {theirs}' for name, (_, _, theirs) in columns.items())})"
    )
    with postgresql.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO t VALUES (%s{', %s' * len(columns)})",
            [(number, *row) for number, row in enumerate(rows)],
        )
    rng = random.Random(SEED)
    meant, answered = 0, 0
    for number in range(CHAINS):
        sql = f"SELECT {chain(rng)} AS x FROM t ORDER BY id"
        try:
            expected = [comparable(row[0]) for row in postgresql.execute(sql).fetchall()]
        except psycopg.Error:
            continue
        meant += 1
        try:
            result = [comparable(row[0]) for row in ours.query(sql).rows()]
        except dray.Error:
            # Pairs of types that the engine does not combine.
            continue
        answered += 1
        assert result == expected, f"chain {number} of DRAY_TEST_SEED={SEED}: {sql}"
    assert meant >= CHAINS_MEANT_MIN and answered >= meant // 2, (meant, answered)


def calculation(
    rng: random.Random, depth: int
) -> tuple[str, Callable[[dict[str, int]], int | None]]:
    """SQL over columns of edge cases, and its value for a row; None if it divides by zero."""
    if depth == 0 or rng.random() < 0.2:
        name = rng.choice("abcdefgh")
        return name, lambda row: row[name]
    left_sql, left = calculation(rng, depth - 1)
    if rng.random() < 0.2:
        operator = rng.choice(["-", "abs"])

        def unary(row: dict[str, int]) -> int | None:
            value = left(row)
            return None if value is None else -value if operator == "-" else abs(value)

        return f"{operator}({left_sql})", unary
    right_sql, right = calculation(rng, depth - 1)
    operator = rng.choice("+-*/%")

    def binary(row: dict[str, int]) -> int | None:
        a, b = left(row), right(row)
        if a is None or b is None or (b == 0 and operator in "/%"):
            return None
        quotient = (abs(a) // abs(b) if b else 0) * (1 if (a < 0) == (b < 0) else -1)
        return {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - quotient * b}[operator]

    return f"({left_sql} {operator} {right_sql})", binary


def test_integers_are_exact_or_out_of_range(
    served: Callable[[dict[str, pa.Table]], dray.Connection],
) -> None:
    rng = random.Random(SEED)
    types = [("a", 8), ("b", 16), ("c", 32), ("d", 64), ("e", 64), ("f", 32), ("g", 16), ("h", 8)]
    rows = [{name: rng.choice(EDGES[bits]) for name, bits in types} for _ in range(300)]
    arrow = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
    columns = {name: pa.array([row[name] for row in rows], arrow[bits]) for name, bits in types}
    ours = served({"t": pa.table({"id": pa.array(range(len(rows))), **columns})})
    answered = 0
    for number in range(SUMS):
        sql, exact = calculation(rng, 2)
        id = rng.randrange(len(rows))
        # As a column's value, and as a constant that the optimizer evaluates.
        constant = (
            "(SELECT "
            + ", ".join(
                f"arrow_cast({rows[id][name]}, '{str(arrow[bits]).capitalize()}') AS {name}"
                for name, bits in types
            )
            + ") AS t"
        )
        for source in (f"t WHERE id = {id}", f"t WHERE id + 0 = {id}", constant):
            statement = f"SELECT {sql} FROM {source}"
            expected = exact(rows[id])
            try:
                [(result,)] = ours.query(statement).rows()
            except dray.Error as error:
                allowed = {"22003"} if expected is not None else {"22003", "22012"}
                assert error.sqlstate in allowed, (
                    f"{number} of DRAY_TEST_SEED={SEED}: {statement}: {error}"
                )
                continue
            answered += 1
            assert result == expected, f"{number} of DRAY_TEST_SEED={SEED}: {statement}"
    assert answered > SUMS // 2, answered


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_sums_are_exact_or_out_of_range(
    bits: int, served: Callable[[dict[str, pa.Table]], dray.Connection]
) -> None:
    rng = random.Random(SEED)
    rows = [(rng.randrange(40), rng.choice([*EDGES[bits], None])) for _ in range(600)]
    column = pa.array(
        [value for _, value in rows], {8: pa.int8(), 32: pa.int32(), 64: pa.int64()}[bits]
    )
    ours = served(
        {
            "t": pa.table(
                {
                    "id": pa.array(range(len(rows))),
                    "k": pa.array([key for key, _ in rows]),
                    "n": column,
                }
            )
        }
    )

    def check(sql: str, expected: list[int | None]) -> None:
        fits = all(value is None or -(2**63) <= value < 2**63 for value in expected)
        try:
            result = [row[0] for row in ours.query(sql).rows()]
        except dray.Error as error:
            assert error.sqlstate == "22003" and not fits, f"{sql}: {error}"
        else:
            assert result == expected, sql

    def added(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    for key in range(40):
        of_key = [value for other, value in rows if other == key]
        check(f"SELECT sum(n) FROM t WHERE k = {key}", [added(of_key)])
        check(f"SELECT sum(n) FROM t WHERE k = {key} GROUP BY k", [added(of_key)])
        positive = added([n for n in of_key if n and n > 0])
        check(f"SELECT sum(n) FILTER (WHERE n > 0) FROM t WHERE k = {key} GROUP BY k", [positive])
        different = added(list(set(of_key)))
        check(f"SELECT sum(DISTINCT n) FROM t WHERE k = {key}", [different])
        check(
            "SELECT x FROM (SELECT sum(DISTINCT n) AS x, count(DISTINCT id) FROM t "
            f"WHERE k = {key}) AS s",
            [different],
        )
        running = [added(of_key[: end + 1]) for end in range(len(of_key))]
        check(f"SELECT sum(n) OVER (ORDER BY id) FROM t WHERE k = {key} ORDER BY id", running)
        frames = [added(of_key[max(0, end - 1) : end + 1]) for end in range(len(of_key))]
        over = "OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        check(f"SELECT sum(n) {over} FROM t WHERE k = {key} ORDER BY id", frames)
        distinct = [
            added(list(set(of_key[max(0, end - 1) : end + 1]))) for end in range(len(of_key))
        ]
        check(f"SELECT sum(DISTINCT n) {over} FROM t WHERE k = {key} ORDER BY id", distinct)
    groups = [added([value for other, value in rows if other == key]) for key in range(40)]
    keys = [key for key in range(40) if any(other == key for other, _ in rows)]
    check("SELECT sum(n) FROM t GROUP BY k ORDER BY k", [groups[key] for key in keys])


def test_casts_of_one_column_are_told_apart(
    served: Callable[[dict[str, pa.Table]], dray.Connection],
) -> None:
    ours = served({"t": pa.table({"n": [10, 9, 8], "g": [1, 1, 2]})})
    casts = "min(CAST(n AS text)) AS a, min(n) AS b, min(CAST(n AS double)) AS c, min(n)"
    grouped = (
        f"SELECT g, {casts} FROM t GROUP BY g HAVING min(CAST(n AS text)) < '9' "
        "ORDER BY min(CAST(n AS text)), g"
    )
    result = ours.query(grouped).arrow()
    assert result.column_names == ["g", "a", "b", "c", "min(n)"]
    assert [tuple(row.values()) for row in result.to_pylist()] == [
        (1, "10", 9, 9.0, 9),
        (2, "8", 8, 8.0, 8),
    ]
    result = ours.query(
        "SELECT CAST(n AS text), n, CAST(n AS text) || 'x' FROM t GROUP BY n, CAST(n "
        "AS text) ORDER BY n LIMIT 1"
    ).arrow()
    assert [tuple(row.values()) for row in result.to_pylist()] == [("8", 8, "8x")]
