\echo Use "CREATE EXTENSION dray" to load this file. \quit

-- A call loads the library into the session, and COPY then knows the format. The function is in
-- pg_catalog because clients call it: a schema of its own would belong to the user who installs the
-- extension, and that user could replace the function.
CREATE FUNCTION pg_catalog.dray_load() RETURNS text
    AS 'MODULE_PATHNAME', 'dray_load' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_catalog.dray_load()
    IS 'loads COPY ... (FORMAT dray) into this session, and returns its version';
