"""Random queries over a few tables of many types, from a seed, in SQL that the server and DuckDB
interpret alike.
"""

from __future__ import annotations

import datetime
import decimal
import random

import pyarrow as pa

INTEGERS = ["i8", "i16", "i32", "i64", "k"]
NUMBERS = [*INTEGERS, "d", "f"]
TEXTS = ["s", "c"]
COLUMNS = [*NUMBERS, *TEXTS, "b", "day", "ts"]
FIRST_DAY = datetime.date(2020, 1, 1)
MOMENTS = ["2021-06-12 10:30:00", "9999-12-31 23:59:59", "1066-10-14 00:00:00"]


def table(rng: random.Random, rows: int) -> pa.Table:
    """Columns of many types with missing values; `k` has few distinct values, `id` is unique."""

    def some(make: object, share: float = 0.9) -> list[object]:
        return [make() if rng.random() < share else None for _ in range(rows)]  # type: ignore[operator]

    words = [
        "",
        "a",
        "A",
        "ab",
        "abc",
        "b%",
        "b_c",
        "ä",
        "éclair",
        "zebra",
        "100",
        " pad ",
        "a'b",
        "日本",
    ]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "k": pa.array(some(lambda: rng.randrange(12)), pa.int32()),
            "i8": pa.array(some(lambda: rng.randrange(-128, 128)), pa.int8()),
            "i16": pa.array(some(lambda: rng.randrange(-300, 300)), pa.int16()),
            "i32": pa.array(some(lambda: rng.randrange(-(10**6), 10**6)), pa.int32()),
            "i64": pa.array(
                some(lambda: rng.choice([0, 1, -1, 10**9, rng.randrange(-(10**9), 10**9)])),
                pa.int64(),
            ),
            "d": pa.array(
                some(lambda: decimal.Decimal(rng.randrange(-(10**7), 10**7)).scaleb(-2)),
                pa.decimal128(12, 2),
            ),
            "f": pa.array(some(lambda: rng.randrange(-1000, 1000) / 8), pa.float64()),
            "s": pa.array(some(lambda: rng.choice(words)), pa.string()),
            "c": pa.array(some(lambda: rng.choice("xyz")), pa.string()),
            "b": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
            "day": pa.array(
                some(lambda: FIRST_DAY + datetime.timedelta(rng.randrange(1000))), pa.date32()
            ),
            "ts": pa.array(
                some(
                    lambda: (
                        datetime.datetime(2020, 1, 1)
                        + datetime.timedelta(seconds=rng.randrange(10**8))
                    )
                ),
                pa.timestamp("us"),
            ),
        }
    )


class Queries:
    """Queries over tables `t`, `u` and `v` that `table` made."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def query(self) -> str:
        kind = self.rng.choice(
            [
                self.plain,
                self.grouped,
                self.joined,
                self.windowed,
                self.united,
                self.nested,
                self.sorted,
            ]
        )
        return kind()

    # Expressions. `q` is the qualifier before a column's name.

    def number(self, q: str, depth: int = 2) -> str:
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            return q + r.choice(INTEGERS) if r.random() < 0.75 else str(r.randrange(-20, 20))

        def a() -> str:
            return self.number(q, depth - 1)

        return r.choice(
            [
                lambda: f"(CAST({a()} AS bigint) + CAST({a()} AS bigint))",
                lambda: f"(CAST({a()} AS bigint) - CAST({a()} AS bigint))",
                lambda: f"(CAST({q}i16 AS bigint) * CAST({q}i8 AS bigint))",
                lambda: f"coalesce({a()}, {a()})",
                lambda: f"nullif({a()}, {a()})",
                lambda: f"abs(CAST({a()} AS bigint))",
                lambda: f"CASE WHEN {self.condition(q, depth - 1)} THEN {a()} ELSE {a()} END",
                lambda: f"CASE {q}k WHEN 1 THEN {a()} WHEN 5 THEN {a()} END",
                lambda: f"(CAST({a()} AS bigint) % 7)",
                lambda: f"length({self.text(q, depth - 1)})",
                lambda: f"extract({r.choice(['year', 'month', 'day'])} FROM {q}day)",
                lambda: f"greatest({a()}, {a()})",
                lambda: f"least({a()}, {a()})",
            ]
        )()

    def text(self, q: str, depth: int = 2) -> str:
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            return (
                q + r.choice(TEXTS) if r.random() < 0.8 else r.choice(["'a'", "'B'", "''", "'x y'"])
            )

        def a() -> str:
            return self.text(q, depth - 1)

        return r.choice(
            [
                lambda: f"({a()} || {a()})",
                lambda: f"coalesce({a()}, {a()})",
                lambda: f"upper({q}c)",
                lambda: f"lower({a()})",
                lambda: f"trim({a()})",
                lambda: f"substring({a()}, {r.randrange(1, 4)}, {r.randrange(0, 3)})",
                lambda: f"replace({a()}, 'a', 'bb')",
                lambda: f"CAST({q}{r.choice(INTEGERS)} AS varchar)",
                lambda: f"CASE WHEN {self.condition(q, depth - 1)} THEN {a()} ELSE {a()} END",
                lambda: f"left({a()}, 2)",
                lambda: f"reverse({q}c)",
            ]
        )()

    def condition(self, q: str, depth: int = 2) -> str:
        r = self.rng
        if depth > 0 and r.random() < 0.4:
            a, b = (self.condition(q, depth - 1) for _ in range(2))
            return r.choice([f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})", f"(({a}) IS NULL)"])
        column = q + r.choice(COLUMNS)
        compare = r.choice(["=", "<>", "<", "<=", ">", ">="])
        return r.choice(
            [
                lambda: f"{column} IS {r.choice(['', 'NOT '])}NULL",
                lambda: f"{self.number(q, 1)} {compare} {self.number(q, 1)}",
                lambda: f"{q}d {compare} {r.randrange(-9999, 9999) / 4}",
                lambda: f"{q}f {compare} {q}{r.choice(['f', 'i16'])}",
                lambda: f"{self.text(q, 1)} {compare} {self.text(q, 1)}",
                lambda: f"{q}s {r.choice(['', 'NOT '])}LIKE {r.choice(PATTERNS)}",
                lambda: f"{q}b",
                lambda: (
                    f"{q}k {r.choice(['', 'NOT '])}IN "
                    f"({', '.join(r.sample(['0', '3', '4', '7', '11'], 3))})"
                ),
                lambda: (
                    f"{q}i32 {r.choice(['', 'NOT '])}BETWEEN {r.randrange(-9000, 0)} "
                    f"AND {r.randrange(900000)}"
                ),
                lambda: f"{q}day {compare} DATE '2021-06-{r.randrange(10, 30)}'",
                lambda: f"{q}ts {compare} TIMESTAMP '{r.choice(MOMENTS)}'",
                lambda: f"{q}k IS {r.choice(['', 'NOT '])}DISTINCT FROM {q}i8",
            ]
        )()

    def value(self, q: str) -> str:
        r = self.rng
        return r.choice([self.number, self.text, self.condition, lambda q: q + r.choice(COLUMNS)])(
            q
        )

    def aggregate(self, q: str) -> str:
        r = self.rng
        exact = r.choice([f"CAST({self.number(q, 1)} AS bigint)", f"{q}d", f"{q}f"])
        return r.choice(
            [
                lambda: "count(*)",
                lambda: f"count({self.value(q)})",
                lambda: f"count(DISTINCT {q}{r.choice(['k', 'c', 's', 'b'])})",
                lambda: f"sum({exact})",
                lambda: f"avg({q}{r.choice(['f', 'i32', 'k'])})",
                lambda: f"min({self.value(q)})".replace("min(b)", "min(k)"),
                lambda: f"max({self.text(q)})",
                lambda: f"sum({q}k) FILTER (WHERE {self.condition(q, 1)})",
                lambda: f"bool_and({self.condition(q, 1)})",
                lambda: f"stddev({q}f)",
            ]
        )()

    # Statements.

    def columns(self, make: object, q: str, most: int = 4) -> str:
        count = self.rng.randrange(1, most + 1)
        return ", ".join(f"{make(q)} AS x{i}" for i in range(count))  # type: ignore[operator]

    def plain(self) -> str:
        distinct = self.rng.choice(["", "", "DISTINCT "])
        return f"SELECT {distinct}{self.columns(self.value, '')} FROM t WHERE {self.condition('')}"

    def grouped(self) -> str:
        keys = self.rng.sample(["k", "c", "b", "s", "i8 % 5"], self.rng.randrange(1, 3))
        having = self.rng.choice(["", " HAVING count(*) > 3"])
        named = ", ".join(f"{key} AS g{i}" for i, key in enumerate(keys))
        where = self.rng.choice(["", f" WHERE {self.condition('')}"])
        return (
            f"SELECT {named}, {self.columns(self.aggregate, '')} FROM t{where} "
            f"GROUP BY {', '.join(keys)}{having}"
        )

    def joined(self) -> str:
        r = self.rng
        join = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = r.choice(
            [
                "t.id = u.i16",
                "t.k = u.id",
                "t.i8 = u.i8 AND t.c = u.c",
                "t.s = u.s AND t.k = u.k",
                "t.day = u.day",
            ]
        )
        if join in ("JOIN", "LEFT JOIN") and r.random() < 0.3:
            on += " AND t.i16 < u.i16"
        columns = ", ".join(f"{self.value(q)} AS x{i}" for i, q in enumerate(["t.", "u.", "t."]))
        return (
            f"SELECT {columns} FROM t {join} u ON {on} "
            f"WHERE {self.condition(r.choice(['t.', 'u.']), 1)}"
        )

    def windowed(self) -> str:
        r = self.rng
        order = (
            f"ORDER BY {r.choice(['k', 'i16', 'c'])} {r.choice(['ASC', 'DESC'])} NULLS "
            f"{r.choice(['FIRST', 'LAST'])}, id"
        )
        function = r.choice(
            [
                "row_number()",
                "rank()",
                "sum(k)",
                "count(*)",
                "lag(i16)",
                "lead(i16, 2)",
                "first_value(s)",
                "max(i32)",
                "ntile(3)",
            ]
        )
        frame = ""
        if function in ("sum(k)", "count(*)", "max(i32)"):
            frame = r.choice(["", " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"])
        window = f"(PARTITION BY {r.choice(['c', 'b', 'k'])} {order}{frame})"
        return f"SELECT id, {function} OVER {window} AS w FROM t WHERE {self.condition('', 1)}"

    def united(self) -> str:
        operator = self.rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
        columns = self.rng.sample(["k", "c", "b", "s"], 2)
        sides = (
            f"SELECT {', '.join(columns)} FROM {t} WHERE {self.condition('', 1)}"
            for t in ("t", "u")
        )
        return f" {operator} ".join(sides)

    def nested(self) -> str:
        r = self.rng
        where = r.choice(
            [
                f"k IN (SELECT k FROM u WHERE {self.condition('u.', 1)})",
                f"k NOT IN (SELECT k FROM u WHERE k IS NOT NULL AND {self.condition('u.', 1)})",
                f"EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {self.condition('u.', 1)})",
                "NOT EXISTS (SELECT 1 FROM u WHERE u.c = t.c AND u.i8 = t.i8)",
                "i16 > (SELECT avg(i16) FROM u WHERE u.k = t.k)",
                "i32 = (SELECT max(i32) FROM t)",
            ]
        )
        return (
            f"WITH w AS (SELECT * FROM t WHERE {where}) "
            f"SELECT {self.columns(self.value, '')} FROM w"
        )

    def sorted(self) -> str:
        r = self.rng
        keys = r.sample(["k", "i16", "d", "f", "s", "c", "day", "ts", "b"], 2)
        order = ", ".join(
            f"{key} {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for key in keys
        )
        limit = r.choice(
            [
                "",
                f" LIMIT {r.randrange(1, 50)}",
                f" LIMIT {r.randrange(1, 50)} OFFSET {r.randrange(50)}",
            ]
        )
        return (
            f"SELECT {', '.join(keys)}, id FROM t WHERE {self.condition('', 1)} "
            f"ORDER BY {order}, id{limit}"
        )


PATTERNS = ["'a%'", "'%b'", "'_'", "'%!%%' ESCAPE '!'", "'b#_c' ESCAPE '#'", "'%é%'", "'A'", "'%'"]
