//! Types that a server defines itself, from its catalog.

use std::collections::{HashMap, HashSet};

use dray_pgtypes::{Kind, PgType, builtin};

/// Types within types, as deep as they may be described.
const DEPTH_MAX: usize = 64;

/// What is known of the types of one database.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    types: HashMap<u32, Entry>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    name: String,
    extension: String,
    /// `typtype`, or `a` for arrays.
    kind: u8,
    delimiter: u8,
    /// What it is made of: a domain's base type, an array's items, a range's bounds.
    inner: u32,
    inner_typmod: i32,
    attributes: Vec<(String, u32, i32)>,
}

/// Columns of [`query`]'s answer.
pub(crate) const COLUMNS: usize = 10;

/// The statement that describes these types and all that they are made of, a row for each type or attribute.
pub(crate) fn query(oids: &HashSet<u32>, server_version: u32) -> String {
    let oids = oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let multirange =
        if server_version >= 14 { "r.rngtypid = t.oid OR r.rngmultitypid = t.oid" } else { "r.rngtypid = t.oid" };
    format!(
        "WITH RECURSIVE need(oid) AS (
             SELECT unnest('{{{oids}}}'::pg_catalog.oid[])
             UNION
             SELECT edge.oid FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid, LATERAL (
                 SELECT t.typbasetype AS oid
                 UNION ALL SELECT t.typelem
                 UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE {multirange}
                 UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
                     WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
             ) edge WHERE edge.oid <> 0
         )
         SELECT t.oid,
             CASE n.nspname WHEN 'pg_catalog' THEN pg_catalog.format_type(b.oid, NULL)
                 ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(b.typname)
             END || CASE WHEN k.is_array THEN '[]' ELSE '' END,
             coalesce(e.extname, ''), CASE WHEN k.is_array THEN 'a' ELSE t.typtype END,
             coalesce(i.typdelim, ','), coalesce(nullif(t.typbasetype, 0), r.rngsubtype, nullif(t.typelem, 0), 0),
             t.typtypmod, a.attname, a.atttypid, a.atttypmod
         FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid
         CROSS JOIN LATERAL (SELECT t.typelem <> 0 AND t.typlen = -1 AND t.typcategory = 'A' AS is_array) k
         JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN k.is_array THEN t.typelem ELSE t.oid END
         JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace
         LEFT JOIN pg_catalog.pg_type i ON i.oid = t.typelem
         LEFT JOIN pg_catalog.pg_range r ON {multirange}
         LEFT JOIN pg_catalog.pg_attribute a
             ON a.attrelid = t.typrelid AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass
             AND d.objid = t.oid AND d.deptype = 'e'
         LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
         ORDER BY t.oid, a.attnum"
    )
}

impl Catalog {
    /// Whether a type needs to be asked for: it is unknown, or has attributes, which may have changed since.
    pub(crate) fn misses(&self, oid: u32) -> bool {
        !self.is_settled(oid, 0)
    }

    fn is_settled(&self, oid: u32, depth: usize) -> bool {
        if builtin(oid, -1).is_some() {
            return true;
        }
        match self.types.get(&oid) {
            Some(entry) if entry.kind == b'c' => false,
            Some(entry) => entry.inner == 0 || depth < DEPTH_MAX && self.is_settled(entry.inner, depth + 1),
            None => false,
        }
    }

    /// Takes in the answer to [`query`]; false if it is not what was asked for.
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

    /// Forgets everything: a type has changed.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
    }

    /// A type, as far as it is known.
    pub(crate) fn pg_type(&self, oid: u32, typmod: i32) -> PgType {
        self.described(oid, typmod, 0)
    }

    fn described(&self, oid: u32, typmod: i32, depth: usize) -> PgType {
        if let Some(builtin) = builtin(oid, typmod) {
            return builtin;
        }
        let unknown = Entry { name: format!("type {oid}"), ..Entry::default() };
        let entry = self.types.get(&oid).filter(|_| depth < DEPTH_MAX).unwrap_or(&unknown);
        let inner = |typmod| Box::new(self.described(entry.inner, typmod, depth + 1));
        let kind = match entry.kind {
            b'a' => Kind::Array { item: inner(typmod), delimiter: entry.delimiter },
            b'c' => {
                let attributes = entry.attributes.iter();
                let described =
                    |(name, oid, typmod): &(String, u32, i32)| (name.clone(), self.described(*oid, *typmod, depth + 1));
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
