//! Command tags, which the server sends at a statement's end: `SELECT 5`.

/// The number of rows that a statement with this tag has returned, if it returns rows. None for
/// tags without a number, such as `EXPLAIN`.
///
/// Statements that change rows count the rows changed, and return each of them.
fn rows(tag: &str) -> Option<u64> {
    const COUNTED: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "FETCH", "COPY"];
    let (verb, rest) = tag.split_once(' ')?;
    // INSERT has another number in front.
    COUNTED.contains(&verb).then(|| rest.rsplit(' ').next()?.parse().ok())?
}

/// The number of rows that a statement with this tag has changed; None if it did something else.
pub(super) fn rows_changed(tag: &str) -> Option<u64> {
    let changes = ["INSERT ", "UPDATE ", "DELETE ", "MERGE "];
    changes.iter().any(|verb| tag.starts_with(verb)).then(|| rows(tag))?
}

/// The contradiction between a tag and the number of rows received, if there is one.
pub fn miscount(tag: &str, received: u64) -> Option<String> {
    rows(tag)
        .filter(|sent| *sent != received)
        .map(|_| format!("it ends with {tag:?}, but {received} rows arrived"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_counts() {
        for (tag, count) in [
            ("SELECT 200", Some(200)),
            ("INSERT 0 3", Some(3)),
            ("MERGE 0", Some(0)),
            ("COPY 18446744073709551615", Some(u64::MAX)),
            ("COPY", None),
            ("EXPLAIN", None),
            ("SHOW", None),
            ("CREATE TABLE", None),
            ("SELECT ", None),
            ("", None),
        ] {
            assert_eq!(rows(tag), count, "{tag}");
        }
        assert_eq!((rows_changed("INSERT 0 3"), rows_changed("SELECT 3")), (Some(3), None));
        assert_eq!(miscount("SELECT 200", 200), None);
        assert!(miscount("SELECT 200", 199).is_some() && miscount("FETCH 200", 201).is_some());
        assert_eq!(miscount("CALL", 7), None);
    }
}
