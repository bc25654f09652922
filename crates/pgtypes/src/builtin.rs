//! The types that every server has, by oid (`pg_type.dat` of PostgreSQL's source).

use crate::{Kind, PgType};

/// The oid, the oid of its arrays, the name.
const BASES: &[(u32, u32, &str)] = &[
    (16, 1000, "boolean"),
    (17, 1001, "bytea"),
    (18, 1002, "\"char\""),
    (19, 1003, "name"),
    (20, 1016, "bigint"),
    (21, 1005, "smallint"),
    (23, 1007, "integer"),
    (24, 1008, "regproc"),
    (25, 1009, "text"),
    (26, 1028, "oid"),
    (27, 1010, "tid"),
    (28, 1011, "xid"),
    (29, 1012, "cid"),
    (114, 199, "json"),
    (142, 143, "xml"),
    (600, 1017, "point"),
    (601, 1018, "lseg"),
    (602, 1019, "path"),
    (603, 1020, "box"),
    (604, 1027, "polygon"),
    (628, 629, "line"),
    (650, 651, "cidr"),
    (700, 1021, "real"),
    (701, 1022, "double precision"),
    (705, 0, "unknown"),
    (718, 719, "circle"),
    (790, 791, "money"),
    (829, 1040, "macaddr"),
    (774, 775, "macaddr8"),
    (869, 1041, "inet"),
    (1033, 1034, "aclitem"),
    (1042, 1014, "character"),
    (1043, 1015, "character varying"),
    (1082, 1182, "date"),
    (1083, 1183, "time without time zone"),
    (1114, 1115, "timestamp without time zone"),
    (1184, 1185, "timestamp with time zone"),
    (1186, 1187, "interval"),
    (1266, 1270, "time with time zone"),
    (1560, 1561, "bit"),
    (1562, 1563, "bit varying"),
    (1700, 1231, "numeric"),
    (1790, 2201, "refcursor"),
    (2202, 2207, "regprocedure"),
    (2203, 2208, "regoper"),
    (2204, 2209, "regoperator"),
    (2205, 2210, "regclass"),
    (2206, 2211, "regtype"),
    (2249, 2287, "record"),
    (2275, 1263, "cstring"),
    (2278, 0, "void"),
    (2950, 2951, "uuid"),
    (2970, 2949, "txid_snapshot"),
    (3220, 3221, "pg_lsn"),
    (3614, 3643, "tsvector"),
    (3615, 3645, "tsquery"),
    (3734, 3735, "regconfig"),
    (3769, 3770, "regdictionary"),
    (3802, 3807, "jsonb"),
    (4072, 4073, "jsonpath"),
    (4089, 4090, "regnamespace"),
    (4096, 4097, "regrole"),
    (4191, 4192, "regcollation"),
    (5038, 5039, "pg_snapshot"),
    (5069, 271, "xid8"),
];

/// Arrays that have types of their own: oid, oid of their arrays, name, oid of their items.
const VECTORS: &[(u32, u32, &str, u32)] =
    &[(22, 1006, "int2vector", 21), (30, 1013, "oidvector", 26)];

/// The oid of a range type, that of its arrays, its name; the same of its multirange type; the oid
/// of the type of its bounds.
type RangeRow = (u32, u32, &'static str, u32, u32, &'static str, u32);

const RANGES: &[RangeRow] = &[
    (3904, 3905, "int4range", 4451, 6150, "int4multirange", 23),
    (3906, 3907, "numrange", 4532, 6151, "nummultirange", 1700),
    (3908, 3909, "tsrange", 4533, 6152, "tsmultirange", 1114),
    (3910, 3911, "tstzrange", 4534, 6153, "tstzmultirange", 1184),
    (3912, 3913, "daterange", 4535, 6155, "datemultirange", 1082),
    (3926, 3927, "int8range", 4536, 6157, "int8multirange", 20),
];

/// The type with this oid, if every server has it.
pub fn builtin(oid: u32, typmod: i32) -> Option<PgType> {
    // 0 stands for a type without arrays.
    if oid == 0 {
        return None;
    }
    if let Some(found) = scalar(oid, typmod) {
        return Some(found);
    }
    let item = BASES.iter().find(|row| row.1 == oid).map(|row| row.0);
    let item = item.or_else(|| VECTORS.iter().find(|row| row.1 == oid).map(|row| row.0));
    let item = item.or_else(|| RANGES.iter().find(|row| row.1 == oid).map(|row| row.0));
    let item = item.or_else(|| RANGES.iter().find(|row| row.4 == oid).map(|row| row.3))?;
    // The type modifier of the column applies to the items.
    let item = scalar(item, typmod)?;
    let delimiter = if item.oid == 603 { b';' } else { b',' };
    let name = format!("{}[]", item.name);
    Some(of(oid, typmod, &name, Kind::Array { item: Box::new(item), delimiter }))
}

fn scalar(oid: u32, typmod: i32) -> Option<PgType> {
    if let Some((oid, _, name)) = BASES.iter().find(|row| row.0 == oid) {
        return Some(of(*oid, typmod, name, Kind::Base));
    }
    if let Some((oid, _, name, item)) = VECTORS.iter().find(|row| row.0 == oid) {
        let item = Box::new(scalar(*item, -1)?);
        return Some(of(*oid, typmod, name, Kind::Array { item, delimiter: b' ' }));
    }
    let row = RANGES.iter().find(|row| row.0 == oid || row.3 == oid)?;
    let subtype = Box::new(scalar(row.6, -1)?);
    Some(match row.0 == oid {
        true => of(oid, typmod, row.2, Kind::Range(subtype)),
        false => of(oid, typmod, row.5, Kind::Multirange(subtype)),
    })
}

fn of(oid: u32, typmod: i32, name: &str, kind: Kind) -> PgType {
    PgType { oid, typmod, name: name.to_owned(), extension: String::new(), kind }
}
