//! Whether expressions have the same value in another transaction with the same snapshot and
//! settings. The server knows the volatility of what they refer to, and of what they use without
//! naming it: casts, comparisons, input and output functions.
//!
//! Names are looked up where the session finds them: in the schemas of its `search_path`, and in
//! those before a dot.

use dray_postgres::References;

use super::sql::name_array as array;

/// Objects with smaller oids are the server's own.
const FIRST_USER_OID: &str = "'16384'::pg_catalog.oid";
/// The server's stable functions that depend on settings, the role and the snapshot alone, which
/// coordinator and workers have in common. Others depend on the time, the connection or statistics.
const STABLE_ENOUGH: &[&str] = &[
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "convert",
    "convert_from",
    "convert_to",
    "current_database",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "date_part",
    "date_trunc",
    "enum_first",
    "enum_last",
    "enum_range",
    "extract",
    "format",
    "getpgusername",
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_schema_privilege",
    "has_table_privilege",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "pg_has_role",
    "pg_typeof",
    "plainto_tsquery",
    "phraseto_tsquery",
    "quote_literal",
    "quote_nullable",
    "row_security_active",
    "row_to_json",
    "session_user",
    "timezone",
    "to_char",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_tsquery",
    "to_tsvector",
    "websearch_to_tsquery",
];

/// Those of them that a statement may call, too: they depend on the time zone alone.
const OF_TIME_ZONE: &[&str] = &["date_part", "date_trunc", "extract"];

/// The origin of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user's statement, whose functions must be immutable, but for [`OF_TIME_ZONE`].
    Statement,
    /// Row security policies, which ask for the role and settings by [`STABLE_ENOUGH`].
    Policies,
}

/// Names that become string literals. They must have no backslash, which the session may take for
/// an escape.
pub(super) fn names(references: &References) -> impl Iterator<Item = &String> {
    let References { functions, casts, dates, types, schemas, settings, .. } = references;
    [functions, casts, dates, types, schemas, settings].into_iter().flatten()
}

/// The statement whose answer is a reason why expressions over a table may have another value in
/// another transaction. It has no rows if there is none.
pub(super) fn question(references: &References, origin: Origin, table: &str) -> String {
    let equal = "OPERATOR(pg_catalog.=)";
    let different = "OPERATOR(pg_catalog.<>)";
    let own = format!("OPERATOR(pg_catalog.>=) {FIRST_USER_OID}");
    let mutable = format!("p.provolatile {different} 'i'::pg_catalog.\"char\"");
    let none = "'0'::pg_catalog.oid";
    let visible =
        |namespace: &str| format!("{namespace} {equal} ANY (ARRAY(SELECT oid FROM searched))");
    let stable_enough = match origin {
        Origin::Statement => OF_TIME_ZONE,
        Origin::Policies => STABLE_ENOUGH,
    };
    let too_volatile = format!(
        "{mutable} AND (p.provolatile {equal} 'v'::pg_catalog.\"char\" OR p.oid {own} \
         OR p.proname {different} ALL ({}))",
        array(stable_enough)
    );
    let mut reasons = vec![
        format!(
            "SELECT pg_catalog.concat('it calls ', p.proname, ', which is not immutable') \
                 FROM pg_catalog.pg_proc p
             WHERE p.proname {equal} ANY ({functions}) AND {visible}
                 AND ({too_volatile} OR p.prokind {different} 'f'::pg_catalog.\"char\" \
                     OR p.proretset)",
            functions = array(&references.functions),
            visible = visible("p.pronamespace"),
        ),
        // The aggregates of parts can be put together if they are the server's own.
        format!(
            "SELECT pg_catalog.concat('it may call ', p.proname, ', \
                 which is not the server''s own') FROM pg_catalog.pg_proc p
             WHERE p.proname {equal} ANY ({aggregates}) AND {visible} AND (p.oid {own} \
                 OR p.pronamespace {different} \
                     'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid)",
            aggregates = array(&references.aggregates),
            visible = visible("p.pronamespace"),
        ),
        // A type with the name of a function, which may read the present time from a text: a date,
        // a range, an array.
        format!(
            "SELECT pg_catalog.concat('it casts to ', t.typname, ', \
                 which may depend on the time') FROM pg_catalog.pg_type t
             WHERE t.typname {equal} ANY ({casts}) AND {visible} AND t.typrelid {equal} {none}
                 AND t.typcategory {equal} ANY ('{{D,R,A}}'::pg_catalog.\"char\"[])",
            casts = array(&references.casts),
            visible = visible("t.typnamespace"),
        ),
        format!(
            "SELECT 'what it casts to may depend on the time' \
                 FROM pg_catalog.unnest({dates}) d(name) WHERE NOT EXISTS (
                 SELECT FROM pg_catalog.pg_attribute a \
                     JOIN pg_catalog.pg_type t ON t.oid {equal} a.atttypid
                 WHERE a.attrelid {equal} {table} AND a.attname {equal} d.name
                     AND t.typcategory {equal} 'D'::pg_catalog.\"char\")",
            dates = array(&references.dates),
        ),
        // Checks and input functions of user-defined types may do anything.
        format!(
            "SELECT pg_catalog.concat('it may cast to ', t.typname, ', \
                 whose values are checked or read by functions')
             FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_proc p \
                 ON p.oid {equal} t.typinput::pg_catalog.oid
             WHERE t.typname {equal} ANY ({types}) AND {visible} AND t.oid {own}
                 AND NOT (t.typtype {equal} 'e'::pg_catalog.\"char\"
                     OR t.typtype {equal} 'b'::pg_catalog.\"char\" AND NOT ({mutable}))",
            types = array(&references.types),
            visible = visible("t.typnamespace"),
        ),
        // Output functions write the table's rows, whether or not anything is computed.
        format!(
            "SELECT pg_catalog.concat('its type ', t.typname, ' has the function ', p.proname, ', \
                 which is not immutable')
             FROM shown JOIN pg_catalog.pg_type t ON t.oid {equal} shown.oid
             JOIN pg_catalog.pg_proc p ON p.oid {equal} t.typoutput::pg_catalog.oid{input}
             WHERE p.oid {own} AND {mutable}",
            input = match references.computes {
                true => format!(" OR p.oid {equal} t.typinput::pg_catalog.oid"),
                false => String::new(),
            },
        ),
    ];
    if references.computes {
        reasons.push(format!(
            "SELECT pg_catalog.concat('it may use the operator ', o.oprname, ', whose function ', \
                 p.proname, ' is not immutable')
             FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p \
                 ON p.oid {equal} o.oprcode::pg_catalog.oid
             WHERE o.oprname {equal} ANY ({operators}) AND {visible} AND o.oid {own} AND {mutable}",
            operators = array(&references.operators),
            visible = visible("o.oprnamespace"),
        ));
        // The server finds implicit casts by the types alone, whatever their schema.
        let context = match references.has_casts {
            true => String::new(),
            false => format!(" AND c.castcontext {equal} 'i'::pg_catalog.\"char\""),
        };
        reasons.push(format!(
            "SELECT pg_catalog.concat('it may cast ', pg_catalog.format_type(c.castsource, NULL), \
                 ' to ',
                 pg_catalog.format_type(c.casttarget, NULL), ' by ', p.proname, ', \
                     which is not immutable')
             FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid {equal} c.castfunc
             WHERE c.oid {own} AND {mutable}{context}"
        ));
        // Arrays, rows and ranges are compared by the functions that order or hash their items.
        reasons.push(format!(
            "SELECT pg_catalog.concat('its types may be compared by ', p.proname, ', \
                 which is not immutable')
             FROM pg_catalog.pg_am m JOIN (
                 SELECT f.opfmethod, s.amproc::pg_catalog.oid FROM pg_catalog.pg_amproc s
                 JOIN pg_catalog.pg_opfamily f ON f.oid {equal} s.amprocfamily
                 WHERE s.oid {own} AND s.amprocnum {equal} '1'::pg_catalog.int2
                 UNION ALL SELECT s.amopmethod, o.oprcode::pg_catalog.oid FROM pg_catalog.pg_amop s
                 JOIN pg_catalog.pg_operator o ON o.oid {equal} s.amopopr WHERE s.oid {own}
             ) s(method, function) ON s.method {equal} m.oid
             JOIN pg_catalog.pg_proc p ON p.oid {equal} s.function
             WHERE m.amname {equal} ANY ('{{btree,hash}}'::pg_catalog.name[]) AND {mutable}
             UNION ALL SELECT pg_catalog.concat('a range may be made by ', p.proname, ', \
                 which is not immutable')
             FROM pg_catalog.pg_range r JOIN pg_catalog.pg_proc p \
                 ON p.oid {equal} r.rngcanonical::pg_catalog.oid
             WHERE r.rngtypid {own} AND {mutable}"
        ));
    }
    format!(
        "WITH RECURSIVE searched(oid) AS (
             SELECT n.oid FROM pg_catalog.pg_namespace n
             WHERE n.nspname {equal} ANY (pg_catalog.current_schemas(true)) \
                 OR n.nspname {equal} ANY ({schemas})
         ),
         shown(oid) AS (
             SELECT a.atttypid FROM pg_catalog.pg_attribute a
             WHERE a.attrelid {equal} {table} AND a.attnum OPERATOR(pg_catalog.>) \
                 '0'::pg_catalog.int2 AND NOT a.attisdropped
             UNION
             SELECT edge.oid FROM shown JOIN pg_catalog.pg_type t \
                 ON t.oid {equal} shown.oid, LATERAL (
                 SELECT t.typbasetype AS oid
                 UNION ALL SELECT t.typelem
                 UNION ALL SELECT r.rngsubtype \
                     FROM pg_catalog.pg_range r WHERE r.rngtypid {equal} t.oid
                 UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a \
                     WHERE a.attrelid {equal} t.typrelid
             ) edge WHERE edge.oid {different} {none}
         )
         SELECT reason FROM ({reasons}) r(reason) LIMIT 1",
        schemas = array(&references.schemas),
        reasons = reasons.join("\n UNION ALL "),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operator_of_the_query_is_qualified() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let references =
            References { functions: names(&["f"]), computes: true, ..References::default() };
        for origin in [Origin::Statement, Origin::Policies] {
            let sql = question(&references, origin, "'t'::pg_catalog.regclass::pg_catalog.oid");
            let bare = ["=", "<>", ">", ">="]
                .iter()
                .fold(sql, |sql, sign| sql.replace(&format!("OPERATOR(pg_catalog.{sign})"), ""));
            assert!(!bare.contains(['=', '<', '>', '+', '|']), "{bare}");
        }
    }
}
