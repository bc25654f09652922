"""Tables for tests of reads over several connections, and a function that reads them."""

from __future__ import annotations

import pyarrow as pa

import dray


ROWS = 200_000


DDL = f"""
CREATE TABLE many (id integer NOT NULL, filler text, amount numeric(12,2));
INSERT INTO many SELECT i, repeat('x', i % 50), i / 100.0 FROM generate_series(1, {ROWS}) i;
CREATE TABLE parted (id integer, filler text) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (30000);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (30000) TO (MAXVALUE);
INSERT INTO parted SELECT i, repeat('y', 20) FROM generate_series(1, 100000) i;
CREATE TABLE parent (id integer);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT generate_series(1, 1000);
INSERT INTO child SELECT generate_series(1001, 2000);
CREATE VIEW seen AS SELECT * FROM many;
CREATE FUNCTION wild(integer) RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT $1';
CREATE FUNCTION tame(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE TABLE guarded (id integer, owner name);
INSERT INTO guarded SELECT i, CASE WHEN i % 2 = 0 THEN 'half' ELSE 'other' END
    FROM generate_series(1, 20000) i;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (owner = current_user);
CREATE TABLE guarded_by_time (id integer, until timestamptz);
INSERT INTO guarded_by_time SELECT i, 'infinity' FROM generate_series(1, 20000) i;
ALTER TABLE guarded_by_time ENABLE ROW LEVEL SECURITY;
CREATE POLICY lasts ON guarded_by_time USING (until > now());
CREATE ROLE half LOGIN;
GRANT SELECT ON guarded, guarded_by_time, many TO half;
CREATE TABLE columns_only (id integer, secret integer);
INSERT INTO columns_only SELECT i, i FROM generate_series(1, 10000) i;
GRANT SELECT (id) ON columns_only TO half;
CREATE TABLE empty_table (id integer);
CREATE TABLE words (word text, at timestamptz);
INSERT INTO words SELECT 'now', '2024-01-01'::timestamptz + i * interval '7 minutes'
    FROM generate_series(1, 10000) i;
CREATE DOMAIN a_day AS date;
CREATE TABLE sparse (id integer, filler text);
INSERT INTO sparse SELECT i, repeat('z', 1900) FROM generate_series(1, 320) i;
CREATE FUNCTION slow(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS 'BEGIN PERFORM pg_sleep(0.012); RETURN $1; END';
CREATE FUNCTION tenant(words) RETURNS text LANGUAGE sql
    AS $$ SELECT set_config('shop.tenant', '5', false) $$;
ANALYZE;
"""


def read(
    client: dray.Connection, sql: str, extension: bool, **options: object
) -> tuple[pa.Table, str]:
    result = client.query(sql, extension=extension, **{"partitions": 3, **options})  # type: ignore[arg-type]
    table = result.arrow()
    return table, result.stats.path_reason
