//! User-defined types, from the server's catalog.

use std::collections::{HashMap, HashSet};

use dray_pgtypes::{Kind, PgType, builtin};

/// The deepest nesting of types that is described.
const DEPTH_MAX: usize = 64;
/// The most types that one column may consist of, counted as often as they occur: row types that
/// each contain the next one twice double with each level.
const NODES_MAX: usize = 10_000;

/// The known types of one database.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    types: HashMap<u32, Entry>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    name: String,
    extension: String,
    /// `typtype`; `a` for arrays.
    kind: u8,
    delimiter: u8,
    /// The oid of a domain's base type, an array's items or a range's bounds.
    inner: u32,
    inner_typmod: i32,
    attributes: Vec<(String, u32, i32)>,
}

/// The columns of the answer to [`query`].
pub(crate) const COLUMNS: usize = 10;

/// The statement that describes these types and all types in them, with a row for each type or
/// attribute.
///
/// Every function and operator is qualified. In a session whose `search_path` has another schema
/// before `pg_catalog`, or a better match in any schema, an unqualified name may be somebody
/// else's. So there is no `IN`, `NULLIF` or `USING`.
pub(crate) fn query(oids: &HashSet<u32>, server_version: u32) -> String {
    let oids = oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let equal = "OPERATOR(pg_catalog.=)";
    let different = "OPERATOR(pg_catalog.<>)";
    let none = "'0'::pg_catalog.oid";
    let range = match server_version {
        ..14 => format!("r.rngtypid {equal} t.oid"),
        14.. => format!("(r.rngtypid {equal} t.oid OR r.rngmultitypid {equal} t.oid)"),
    };
    let attribute = format!(
        "a.attrelid {equal} t.typrelid AND a.attnum OPERATOR(pg_catalog.>) '0'::pg_catalog.int2 \
             AND NOT a.attisdropped"
    );
    format!(
        "WITH RECURSIVE need(oid) AS (
             SELECT pg_catalog.unnest('{{{oids}}}'::pg_catalog.oid[])
             UNION
             SELECT edge.oid FROM need JOIN pg_catalog.pg_type t \
                 ON t.oid {equal} need.oid, LATERAL (
                 SELECT t.typbasetype AS oid
                 UNION ALL SELECT t.typelem
                 UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE {range}
                 UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE {attribute}
             ) edge WHERE edge.oid {different} {none}
         )
         SELECT t.oid,
             pg_catalog.concat(
                 CASE WHEN n.nspname {equal} 'pg_catalog'::pg_catalog.name
                     THEN pg_catalog.format_type(b.oid, NULL)
                     ELSE pg_catalog.concat(pg_catalog.quote_ident(n.nspname), '.', \
                         pg_catalog.quote_ident(b.typname))
                 END,
                 CASE WHEN k.is_array THEN '[]' END
             ),
             coalesce(e.extname, ''::pg_catalog.name),
             CASE WHEN k.is_array THEN 'a'::pg_catalog.\"char\" ELSE t.typtype END,
             coalesce(i.typdelim, ','::pg_catalog.\"char\"),
             CASE WHEN t.typbasetype {different} {none} THEN t.typbasetype ELSE \
                 coalesce(r.rngsubtype, t.typelem) END,
             t.typtypmod, a.attname, a.atttypid, a.atttypmod
         FROM need JOIN pg_catalog.pg_type t ON t.oid {equal} need.oid
         CROSS JOIN LATERAL (
             SELECT t.typelem {different} {none} AND t.typlen {equal} '-1'::pg_catalog.int2
                 AND t.typcategory {equal} 'A'::pg_catalog.\"char\" AS is_array
         ) k
         JOIN pg_catalog.pg_type b ON b.oid {equal} CASE WHEN k.is_array THEN t.typelem ELSE \
             t.oid END
         JOIN pg_catalog.pg_namespace n ON n.oid {equal} b.typnamespace
         LEFT JOIN pg_catalog.pg_type i ON i.oid {equal} t.typelem
         LEFT JOIN pg_catalog.pg_range r ON {range}
         LEFT JOIN pg_catalog.pg_attribute a ON t.typtype {equal} 'c'::pg_catalog.\"char\" \
             AND {attribute}
         LEFT JOIN pg_catalog.pg_depend d
             ON d.classid {equal} 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
             AND d.objid {equal} t.oid AND d.deptype {equal} 'e'::pg_catalog.\"char\"
         LEFT JOIN pg_catalog.pg_extension e ON e.oid {equal} d.refobjid
         ORDER BY t.oid, a.attnum"
    )
}

impl Catalog {
    /// Whether the server must be asked about a type: it is unknown, or has attributes, which may
    /// have changed.
    pub(crate) fn misses(&self, oid: u32) -> bool {
        !self.is_settled(oid, 0)
    }

    fn is_settled(&self, oid: u32, depth: usize) -> bool {
        if builtin(oid, -1).is_some() {
            return true;
        }
        match self.types.get(&oid) {
            Some(entry) if entry.kind == b'c' => false,
            Some(entry) => {
                entry.inner == 0 || depth < DEPTH_MAX && self.is_settled(entry.inner, depth + 1)
            }
            None => false,
        }
    }

    /// Learns from the answer to [`query`]. Returns false if it is no such answer.
    pub(crate) fn learn(&mut self, rows: &[[Option<String>; COLUMNS]]) -> bool {
        let mut learnt: HashMap<u32, Entry> = HashMap::new();
        for row in rows {
            let text = |i: usize| row[i].as_deref().unwrap_or_default();
            let Ok(oid) = text(0).parse() else { return false };
            let entry = learnt.entry(oid).or_default();
            entry.name = text(1).to_owned();
            entry.extension = text(2).to_owned();
            entry.kind = text(3).bytes().next().unwrap_or_default();
            entry.delimiter = text(4).bytes().next().unwrap_or(b',');
            entry.inner = text(5).parse().unwrap_or_default();
            entry.inner_typmod = text(6).parse().unwrap_or(-1);
            if let (Some(name), Ok(oid), Ok(typmod)) = (&row[7], text(8).parse(), text(9).parse()) {
                entry.attributes.push((name.clone(), oid, typmod));
            }
        }
        self.types.extend(learnt);
        true
    }

    /// Forgets all types, since one may have changed.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
    }

    /// A type; [`Kind::Base`] if it is not known.
    pub(crate) fn pg_type(&self, oid: u32, typmod: i32) -> PgType {
        self.described(oid, typmod, 0, &mut { NODES_MAX })
    }

    /// `nodes` is the number of types that may still be described. One type too many is a
    /// [`Kind::Base`], which comes as text, and so does each type that contains it.
    fn described(&self, oid: u32, typmod: i32, depth: usize, nodes: &mut usize) -> PgType {
        if let Some(builtin) = builtin(oid, typmod) {
            return builtin;
        }
        let unknown = Entry { name: format!("type {oid}"), ..Entry::default() };
        let entry =
            self.types.get(&oid).filter(|_| depth < DEPTH_MAX && *nodes > 0).unwrap_or(&unknown);
        *nodes = nodes.saturating_sub(1);
        let mut inner = |typmod| Box::new(self.described(entry.inner, typmod, depth + 1, nodes));
        let kind = match entry.kind {
            b'a' => Kind::Array { item: inner(typmod), delimiter: entry.delimiter },
            b'c' => {
                let attributes = entry.attributes.iter();
                let described = |(name, oid, typmod): &(String, u32, i32)| {
                    (name.clone(), self.described(*oid, *typmod, depth + 1, nodes))
                };
                Kind::Composite(attributes.map(described).collect())
            }
            b'd' => Kind::Domain(inner(entry.inner_typmod)),
            b'e' => Kind::Enum,
            b'm' => Kind::Multirange(inner(-1)),
            b'r' => Kind::Range(inner(-1)),
            _ => Kind::Base,
        };
        PgType { oid, typmod, name: entry.name.clone(), extension: entry.extension.clone(), kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_double_with_each_level() {
        let mut catalog = Catalog::default();
        let level = |oid: u32| Entry {
            name: format!("t{oid}"),
            kind: b'c',
            attributes: ["a", "b"].map(|name| (name.to_owned(), oid + 1, -1)).into(),
            ..Entry::default()
        };
        catalog.types.extend((100_000..100_040).map(|oid| (oid, level(oid))));
        fn count(pg_type: &PgType) -> usize {
            match &pg_type.kind {
                Kind::Composite(attributes) => {
                    1 + attributes.iter().map(|(_, inner)| count(inner)).sum::<usize>()
                }
                _ => 1,
            }
        }
        assert!(count(&catalog.pg_type(100_000, -1)) <= 2 * NODES_MAX + 1);
        assert_eq!(count(&catalog.pg_type(100_039, -1)), 3);
    }

    #[test]
    fn every_operator_of_the_query_is_qualified() {
        let sql = query(&HashSet::from([1]), 18);
        let bare = sql.replace("OPERATOR(pg_catalog.=)", "").replace("OPERATOR(pg_catalog.<>)", "");
        let bare = bare.replace("OPERATOR(pg_catalog.>)", "");
        assert!(!bare.contains(['=', '<', '>']), "{bare}");
    }
}
