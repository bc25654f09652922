\echo Use "CREATE EXTENSION dray" to load this file. \quit

-- The call loads the library into the session, and so makes COPY know the format.
CREATE FUNCTION @extschema@.load() RETURNS text
    AS 'MODULE_PATHNAME', 'dray_load' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION @extschema@.load() IS 'loads COPY ... (FORMAT dray) into this session, and says which version it is';

GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
