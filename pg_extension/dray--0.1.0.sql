\echo Use "CREATE EXTENSION dray" to load this file. \quit

-- The call loads the library into the session, and so makes COPY know the format. It is in pg_catalog because clients call it:
-- a schema of its own would belong to whoever installs the extension, who could put another function there.
CREATE FUNCTION pg_catalog.dray_load() RETURNS text
    AS 'MODULE_PATHNAME', 'dray_load' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_catalog.dray_load() IS 'loads COPY ... (FORMAT dray) into this session, and says which version it is';
