//! Columns to sort by, as people write them: `day:desc:nulls-last`.

use std::str::FromStr;

use crate::key::SortColumn;

/// A column to sort by: `NAME`, and behind it `:asc`, `:desc`, `:nulls-first` or `:nulls-last`, or two of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Its name, as the files have it.
    pub column: String,
    /// The largest value comes first.
    pub descending: bool,
    /// Missing values come before all others. If nothing is said they do where the largest value comes first, as in SQL.
    pub nulls_first: bool,
}

impl By {
    /// Which of the columns with these names it is; or else a sentence that says which there are.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn find<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<SortColumn, String> {
        let names: Vec<&str> = names.collect();
        let Some(column) = names.iter().position(|name| *name == self.column) else {
            return Err(format!("there is no column {:?}; there are {}", self.column, names.join(", ")));
        };
        Ok(SortColumn { column, descending: self.descending, nulls_first: self.nulls_first })
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut column, mut descending, mut nulls_first) = (text, None, None);
        while let Some((before, word)) = column.rsplit_once(':') {
            let (setting, value) = match word {
                "asc" => (&mut descending, false),
                "desc" => (&mut descending, true),
                "nulls-first" => (&mut nulls_first, true),
                "nulls-last" => (&mut nulls_first, false),
                // A name may have a colon.
                _ => break,
            };
            if setting.replace(value).is_some() {
                return Err(format!("{text:?} says twice how to sort"));
            }
            column = before;
        }
        if column.is_empty() {
            return Err(format!("{text:?}: expected COLUMN, COLUMN:desc or COLUMN:desc:nulls-last"));
        }
        let descending = descending.unwrap_or(false);
        Ok(Self { column: column.to_owned(), descending, nulls_first: nulls_first.unwrap_or(descending) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by them")]
mod tests {
    use super::By;

    #[test]
    fn columns_to_sort_by() {
        let by = |column: &str, descending, nulls_first| Ok(By { column: column.into(), descending, nulls_first });
        assert_eq!("a".parse::<By>(), by("a", false, false));
        assert_eq!("a:desc".parse::<By>(), by("a", true, true));
        assert_eq!("a:desc:nulls-last".parse::<By>(), by("a", true, false));
        assert_eq!("a:nulls-first".parse::<By>(), by("a", false, true));
        assert_eq!("a:nulls-first:asc".parse::<By>(), by("a", false, true));
        assert_eq!("x:y:desc".parse::<By>(), by("x:y", true, true));
        assert_eq!("desc".parse::<By>(), by("desc", false, false));
        for wrong in ["", ":desc", "a:asc:desc", "a:desc:desc"] {
            assert!(wrong.parse::<By>().is_err(), "{wrong}");
        }
    }
}
