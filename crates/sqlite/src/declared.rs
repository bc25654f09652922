//! What a column's declared type says of its values (`spec/types.md` section 10).

/// The classes in which SQLite stores values, other than NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Integer,
    Real,
    Text,
    Blob,
}

impl Class {
    /// SQLite's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
        }
    }
}

/// Words of integer types, to which digits may be added.
const INTEGERS: [&str; 8] =
    ["INT", "INTEGER", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT", "UINT", "HUGEINT"];

/// The class that a declared type prefers, by SQLite's rules of affinity (Datatypes In SQLite,
/// section 3.1). None for the affinity NUMERIC, which BOOLEAN, DATE and DECIMAL have, for no type,
/// and for types such as POINT, whose affinity is INTEGER by accident: then the values tell.
pub(crate) fn class_of(declared: Option<&str>) -> Option<Class> {
    let declared = declared?.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    let mut words = declared.split(|c: char| !c.is_alphanumeric());
    let is_integer =
        |word: &str| INTEGERS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()));
    match () {
        () if has(&["INT"]) => words.any(is_integer).then_some(Class::Integer),
        () if has(&["CHAR", "CLOB", "TEXT"]) => Some(Class::Text),
        () if has(&["BLOB"]) => Some(Class::Blob),
        () if has(&["REAL", "FLOA", "DOUB"]) => Some(Class::Real),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinities() {
        for (declared, expected) in [
            ("INTEGER", Some(Class::Integer)),
            ("unsigned big int", Some(Class::Integer)),
            ("int(11) unsigned", Some(Class::Integer)),
            ("INT8", Some(Class::Integer)),
            ("uint64", Some(Class::Integer)),
            ("CHARINT", None),
            ("FLOATING POINT", None),
            ("POINT", None),
            ("multipoint", None),
            ("VARCHAR(10)", Some(Class::Text)),
            ("clob", Some(Class::Text)),
            ("BLOB", Some(Class::Blob)),
            ("double precision", Some(Class::Real)),
            ("DECIMAL(10,5)", None),
            ("BOOLEAN", None),
            ("DATETIME", None),
            ("STRING", None),
        ] {
            assert_eq!(class_of(Some(declared)), expected, "{declared}");
        }
        assert_eq!(class_of(None), None);
    }
}
