"""The planner's estimate of a statement's rows, for those who watch its progress."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mysql_server import MariaServer, sequence

import dray

ROWS = 4000
#: A function with an effect that the server does not know of.
FUNCTION = """
CREATE FUNCTION est_noted(i int) RETURNS int DETERMINISTIC
BEGIN INSERT INTO est_notes VALUES (i); RETURN i; END
"""


@pytest.fixture(scope="module")
def server(mysql: MariaServer) -> Iterator[MariaServer]:
    mysql.run(
        "CREATE TABLE est_a (id int PRIMARY KEY, b int, KEY (b))",
        f"INSERT INTO est_a SELECT seq, seq DIV 4 FROM ({sequence(ROWS)}) s",
        "CREATE TABLE est_b (id int PRIMARY KEY, t varchar(20))",
        f"INSERT INTO est_b SELECT seq, concat('t', seq) FROM ({sequence(ROWS // 4)}) s",
        "CREATE TABLE est_notes (i int) ENGINE = MyISAM",
        "ANALYZE TABLE est_a, est_b",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        FUNCTION,
        "CREATE VIEW est_view AS SELECT id FROM est_a WHERE b = est_noted(7)",
        "CREATE VIEW est_plain AS SELECT * FROM est_b",
    )
    yield mysql
    mysql.run(
        "DROP VIEW est_view, est_plain",
        "DROP FUNCTION est_noted",
        "DROP TABLE est_a, est_b, est_notes",
    )


@pytest.fixture
def connection(server: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(server.uri()) as connection:
        yield connection


def estimate(connection: dray.Connection, sql: str, *params: object) -> int | None:
    given = {"params": list(params)} if params else {}
    with connection.query(sql, progress=lambda progress: None, **given) as result:
        assert not result.estimate.rows_exact
        rows = result.estimate.rows
        result.arrow()
    return rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT a.id, t FROM est_a a JOIN est_b b ON a.b = b.id", ROWS),
        ("SELECT * FROM est_b b, est_a WHERE est_a.b = b.id ORDER BY t DESC;", ROWS),
        ("SELECT id FROM est_a WHERE id < 1000", 1000),
        ("SELECT upper(t) FROM est_b WHERE id BETWEEN 100 AND 299 ORDER BY 1", 200),
        ("SELECT * FROM est_a WHERE id = 5", 1),
        ("SELECT a.id FROM est_a a LEFT JOIN shop.est_b b USING (id) LIMIT 9", 9),
    ],
)
def test_estimates(connection: dray.Connection, sql: str, rows: int) -> None:
    found = estimate(connection, sql)
    assert found is not None and rows / 3 <= found <= rows * 3, found
    # Nobody watches, so nobody asks.
    assert connection.query(sql).estimate.rows is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM est_a",
        "SELECT b, max(id) FROM est_a GROUP BY b",
        "SELECT DISTINCT b FROM est_a",
        "SELECT id FROM est_a UNION SELECT id FROM est_b",
        "SELECT * FROM est_a WHERE b = (SELECT max(id) FROM est_b)",
        "SELECT * FROM (SELECT * FROM est_a) x JOIN est_b USING (id)",
        "SELECT p.id FROM est_plain p JOIN est_a USING (id)",
        "SHOW TABLES LIKE 'est%'",
        "SELECT 1",
    ],
)
def test_what_is_not_estimated(connection: dray.Connection, sql: str) -> None:
    assert estimate(connection, sql) is None


def test_nothing_runs_for_an_estimate(server: MariaServer, connection: dray.Connection) -> None:
    """Planning would call the function: an EXPLAIN of the same statement does."""

    def notes() -> int:
        ((count,),) = server.rows("SELECT count(*) FROM est_notes")
        server.run("TRUNCATE TABLE est_notes")
        return int(count)

    for sql in (
        "SELECT id FROM est_view",
        "SELECT a.id FROM est_a a JOIN est_view v USING (id)",
        "SELECT id FROM est_a WHERE b = est_noted(7)",
        "SELECT id FROM est_a WHERE b = shop.est_noted(7)",
    ):
        connection.query(sql).arrow()
        alone = notes()
        assert estimate(connection, sql) is None
        assert notes() == alone > 0, sql
        server.rows(f"EXPLAIN {sql}")
        assert notes() > 0 or not server.is_mariadb, sql


def test_statements_that_fail(connection: dray.Connection) -> None:
    for sql, match in [
        ("SELECT nope FROM est_a JOIN est_b USING (id)", "nope"),
        ("SELECT * FROM est_a JOIN nowhere USING (id)", "nowhere"),
        ("SELECT * FROM est_a WHERE", "syntax"),
    ]:
        with pytest.raises(dray.QueryError, match=match):
            estimate(connection, sql)
    assert estimate(connection, "SELECT id FROM est_a WHERE id < ?", 100) is None


def test_transactions(server: MariaServer, connection: dray.Connection) -> None:
    sql = "SELECT a.id, t FROM est_a a JOIN est_b b ON a.b = b.id"
    connection.query("BEGIN").close()
    assert estimate(connection, sql) is not None
    connection.query("COMMIT").close()
    # A question would begin one.
    connection.query("SET autocommit = 0").close()
    assert estimate(connection, sql) is None


def test_a_user_with_few_rights(server: MariaServer) -> None:
    """A user who may not read a table gets the server's own error."""
    native = "WITH mysql_native_password " if server.version.startswith("mysql-8") else ""
    server.run(
        f"CREATE USER est_few IDENTIFIED {native}BY 'x'", "GRANT SELECT ON shop.est_a TO est_few"
    )
    try:
        with dray.connect(f"mysql://est_few:x@127.0.0.1:{server.port}/shop") as connection:
            assert estimate(connection, "SELECT id FROM est_a WHERE id < 100") is not None
            with pytest.raises(dray.Error, match="denied"):
                estimate(connection, "SELECT * FROM est_a JOIN est_b USING (id)")
    finally:
        server.run("DROP USER est_few")
