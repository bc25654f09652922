"""Statements and tables that several tests use, and a client that uses or avoids the extension."""

from __future__ import annotations

from typing import Any

import dray

# A set-returning function in FROM would be materialized in a tuple store first.
FOREVER = "SELECT generate_series(1, 1000000000000) AS i"
SILENT = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) t"
# The planner expects the second one to end at once, so with the extension its result begins only
# with its first row.
SLEEP = "SELECT pg_sleep(3600) FROM generate_series(1, 1000000)"
CHEAP_SLEEP = "SELECT pg_sleep(3600)"
BIG = 100_000
NUMBERS = "SELECT * FROM numbers ORDER BY id"
DDL = """
CREATE TABLE numbers (id integer NOT NULL, text text, amount numeric(12,2));
INSERT INTO numbers SELECT i, 'row ' || i, i / 100.0 FROM generate_series(0, 99999) i;
CREATE TABLE pets (id serial PRIMARY KEY, name text UNIQUE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO pets (name) VALUES ('cat'), ('dog');
CREATE PROCEDURE add_one(INOUT n integer) LANGUAGE sql AS 'SELECT n + 1';
CREATE FUNCTION noisy(n integer) RETURNS integer LANGUAGE plpgsql
    AS $$ BEGIN RAISE NOTICE 'n is %', n; RETURN n; END $$;
CREATE ROLE reader LOGIN;
GRANT SELECT (id, text) ON numbers TO reader;
CREATE TABLE rows_of (owner name, n integer);
INSERT INTO rows_of VALUES ('reader', 1), ('other', 2);
ALTER TABLE rows_of ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON rows_of USING (owner = current_user);
GRANT SELECT ON rows_of TO reader;
"""


class Client:
    """A connection whose statements use the extension, or don't."""

    def __init__(self, uri: str, extension: bool) -> None:
        self.uri = uri
        self.extension = extension
        self.connection = dray.connect(uri)

    def query(self, sql: str, params: Any = None, **options: Any) -> dray.Result:
        return self.connection.query(
            sql, params, extension="auto" if self.extension else False, **options
        )

    def list(self, sql: str, params: Any = None, **options: Any) -> list[tuple[Any, ...]]:
        return list(self.query(sql, params, **options).rows())

    @property
    def pid(self) -> int:
        return int(self.list("SELECT pg_backend_pid()")[0][0])

    def check_usable(self) -> None:
        assert self.list("SELECT 1, 'x'") == [(1, "x")]
        assert self.list("SELECT $1::integer", [2]) == [(2,)]
