//! What the server says at a statement's end: `SELECT 5`.

/// How many rows a statement that returns rows has returned by its tag; none where tags do not say,
/// as after `EXPLAIN`.
///
/// Those that change rows count the rows that they changed, and return each of them.
pub(crate) fn rows(tag: &str) -> Option<u64> {
    const COUNTED: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "FETCH", "COPY"];
    let (verb, rest) = tag.split_once(' ')?;
    // INSERT has another number before.
    COUNTED.contains(&verb).then(|| rest.rsplit(' ').next()?.parse().ok())?
}

/// What is wrong with so many rows, if the tag says otherwise.
pub fn miscount(tag: &str, received: u64) -> Option<String> {
    rows(tag)
        .filter(|said| *said != received)
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
        assert_eq!(miscount("SELECT 200", 200), None);
        assert!(miscount("SELECT 200", 199).is_some() && miscount("FETCH 200", 201).is_some());
        assert_eq!(miscount("CALL", 7), None);
    }
}
