//! Columns to sort by, as users write them: `day:desc:nulls-last`.

use std::str::FromStr;

use crate::key::SortColumn;

/// A column to sort by: `NAME`, followed by `:asc` or `:desc`, and `:nulls-first` or `:nulls-last`.
///
/// Names may have colons, so the text is split only when the columns are known: the longest prefix
/// that names a column is the name. [`OrderBy::named`] takes a name as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Text(String),
    Named { name: String, descending: bool, nulls_first: bool },
}

impl OrderBy {
    /// The column with exactly this name.
    pub fn named(name: String, descending: bool, nulls_first: bool) -> Self {
        Self(Form::Named { name, descending, nulls_first })
    }

    /// Finds the column among columns with these names.
    ///
    /// # Errors
    /// A message if no column or several columns have the name, or if the direction or the place of
    /// nulls is given twice.
    pub fn resolve<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<SortColumn, String> {
        let names: Vec<&str> = names.collect();
        let text = match &self.0 {
            Form::Text(text) => text.as_str(),
            Form::Named { name, descending, nulls_first } => {
                let column = find(name, &names)?.ok_or_else(|| missing(name, &names))?;
                let (descending, nulls_first) = (*descending, *nulls_first);
                return Ok(SortColumn { column, descending, nulls_first });
            }
        };
        let (mut name, mut descending, mut nulls_first) = (text, None, None);
        loop {
            if let Some(column) = find(name, &names)? {
                // As in SQL, nulls are larger than all values, unless the text says otherwise.
                let descending = descending.unwrap_or(false);
                let nulls_first = nulls_first.unwrap_or(descending);
                return Ok(SortColumn { column, descending, nulls_first });
            }
            let Some((before, word)) = name.rsplit_once(':') else { break };
            let (setting, value) = match word {
                "asc" => (&mut descending, false),
                "desc" => (&mut descending, true),
                "nulls-first" => (&mut nulls_first, true),
                "nulls-last" => (&mut nulls_first, false),
                _ => break,
            };
            if setting.replace(value).is_some() {
                return Err(format!("{text:?} says twice how to sort"));
            }
            name = before;
        }
        Err(missing(name, &names))
    }
}

/// The index of the one column with this name, or None if there is none.
fn find(name: &str, names: &[&str]) -> Result<Option<usize>, String> {
    let mut found = names.iter().enumerate().filter(|(_, known)| **known == name);
    match (found.next(), found.count()) {
        (Some((column, _)), 0) => Ok(Some(column)),
        (Some(_), others) => Err(format!("there are {} columns {name:?}; rename them", others + 1)),
        (None, _) => Ok(None),
    }
}

fn missing(name: &str, names: &[&str]) -> String {
    format!("there is no column {name:?}; there are {}", names.join(", "))
}

impl FromStr for OrderBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("\"\": expected COLUMN, COLUMN:desc or COLUMN:desc:nulls-last".to_owned()),
            text => Ok(Self(Form::Text(text.to_owned()))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by them")]
mod tests {
    use super::OrderBy;
    use crate::SortColumn;

    /// Parses a text and resolves it among columns with these names.
    fn find(text: &str, names: &[&str]) -> Result<SortColumn, String> {
        text.parse::<OrderBy>()?.resolve(names.iter().copied())
    }

    #[test]
    fn columns_to_sort_by() {
        let names = ["a", "x:y", "desc", "b:desc", "c", "c:desc", ":", "twice", "twice"];
        let by =
            |column, descending, nulls_first| Ok(SortColumn { column, descending, nulls_first });
        assert_eq!(find("a", &names), by(0, false, false));
        assert_eq!(find("a:desc", &names), by(0, true, true));
        assert_eq!(find("a:desc:nulls-last", &names), by(0, true, false));
        assert_eq!(find("a:nulls-first", &names), by(0, false, true));
        assert_eq!(find("a:nulls-first:asc", &names), by(0, false, true));
        assert_eq!(find("x:y:desc", &names), by(1, true, true));
        assert_eq!(find("desc", &names), by(2, false, false));
        assert_eq!(find("b:desc", &names), by(3, false, false));
        assert_eq!(find("b:desc:desc", &names), by(3, true, true));
        assert_eq!(find("c:desc", &names), by(5, false, false));
        assert_eq!(find("c:nulls-first:desc", &names), by(4, true, true));
        assert_eq!(find(":", &names), by(6, false, false));
        assert_eq!(find(":desc", &[":desc"]), by(0, false, false));
        for wrong in ["", ":desc", "a:asc:desc", "a:desc:desc", "b", "d:desc", "a:up", "twice:desc"]
        {
            assert!(find(wrong, &names).is_err(), "{wrong}");
        }
        assert_eq!(
            find("d:desc", &["a", "b"]).unwrap_err(),
            "there is no column \"d\"; there are a, b"
        );
    }
    #[test]
    fn columns_by_their_exact_names() {
        let names = ["a", "a:desc", "", "twice", "twice"];
        let find = |name: &str| {
            OrderBy::named(name.to_owned(), true, false).resolve(names.iter().copied())
        };
        for (name, column) in [("a", 0), ("a:desc", 1), ("", 2)] {
            let expected = SortColumn { column, descending: true, nulls_first: false };
            assert_eq!(find(name), Ok(expected), "{name}");
        }
        assert!(find("twice").is_err());
        assert!(find("a:asc").unwrap_err().starts_with("there is no column \"a:asc\""));
    }
}
