//! Tables and columns as the views of `information_schema` list them.

use super::{Catalog, Column, Filter, Schema, Table};
use crate::session::TextRows;

/// The schema of the views that describe the others. It is listed when it is named.
const DESCRIBING: &str = "information_schema";

/// Lists what a server has: of each table the catalog, the schema, the name and the type, and of
/// each column also its name, its type, and whether it is nullable (`YES`), both in the order of
/// these names. Constraints are left empty.
pub(super) fn list(tables: &TextRows, mut columns: TextRows, filter: &Filter<'_>) -> Vec<Catalog> {
    let mut catalogs = Vec::new();
    for row in tables {
        let [catalog, schema, name, kind] = texts(row);
        let is_hidden = schema == DESCRIBING && filter.db_schema != Some(DESCRIBING);
        if is_hidden || !is_match(filter.catalog, catalog) {
            continue;
        }
        let listed = last_named(
            &mut catalogs,
            catalog,
            |of: &Catalog| &of.name,
            |name| Catalog { name, schemas: filter.has_schemas().then(Vec::new) },
        );
        let Some(schemas) = listed.and_then(|catalog| catalog.schemas.as_mut()) else { continue };
        if !is_match(filter.db_schema, schema) {
            continue;
        }
        let listed = last_named(
            schemas,
            schema,
            |of: &Schema| &of.name,
            |name| Schema { name, tables: filter.has_tables().then(Vec::new) },
        );
        let Some(tables) = listed.and_then(|schema| schema.tables.as_mut()) else { continue };
        let table_type = if kind.ends_with("VIEW") { "view" } else { "table" };
        let is_asked = filter.table_type.as_ref().is_none_or(|types| types.contains(&table_type));
        if is_asked && is_match(filter.table_name, name) {
            tables.push(Table {
                name: name.to_owned(),
                table_type: table_type.to_owned(),
                columns: filter
                    .has_columns()
                    .then(|| columns_of(&mut columns, [catalog, schema, name], filter.column_name)),
                constraints: filter.has_columns().then(Vec::new),
            });
        }
    }
    catalogs
}

/// The last item, if it has this name, or else a new one. The rows are sorted by names.
fn last_named<'a, T>(
    items: &'a mut Vec<T>,
    name: &str,
    name_of: impl Fn(&T) -> &String,
    new: impl Fn(String) -> T,
) -> Option<&'a mut T> {
    if items.last().is_none_or(|item| name_of(item) != name) {
        items.push(new(name.to_owned()));
    }
    items.last_mut()
}

/// Takes the columns of a table out of the sorted rows of all columns.
fn columns_of(rows: &mut TextRows, table: [&str; 3], pattern: Option<&str>) -> Vec<Column> {
    let is_of_table = |row: &Vec<Option<String>>| {
        let [catalog, schema, name] = texts(row);
        [catalog, schema, name] == table
    };
    let Some(start) = rows.iter().position(is_of_table) else { return Vec::new() };
    let end = start + rows[start..].iter().take_while(|row| is_of_table(row)).count();
    let columns = rows.drain(start..end).zip(1..);
    columns
        .map(|(row, position)| {
            let [_, _, _, name, type_name, nullable] = texts(&row);
            Column {
                name: name.to_owned(),
                position,
                type_name: Some(type_name.to_owned()),
                nullable: nullable == "YES",
                ..Column::default()
            }
        })
        .filter(|column| is_match(pattern, &column.name))
        .collect()
}

/// The first values of a row; empty for NULL.
pub(super) fn texts<const N: usize>(row: &[Option<String>]) -> [&str; N] {
    std::array::from_fn(|i| row.get(i).and_then(Option::as_deref).unwrap_or_default())
}

/// Whether a name matches a pattern of `LIKE`: `%` is any text, `_` any character, and a backslash
/// takes the next character as it is. None matches all names.
pub(super) fn is_match(pattern: Option<&str>, name: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Where the last % was, and where the name continued after it.
    let (mut p, mut n, mut retry) = (0, 0, None);
    loop {
        let step = match pattern.get(p) {
            Some('%') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('_') if n < name.len() => Some(1),
            Some('\\') if p + 1 < pattern.len() => (name.get(n) == pattern.get(p + 1)).then_some(2),
            Some(c) => (name.get(n) == Some(c)).then_some(1),
            None if n == name.len() => return true,
            None => None,
        };
        match (step, retry) {
            (Some(step), _) => (p, n) = (p + step, n + 1),
            (None, Some((after, at))) if at < name.len() => {
                (p, n) = (after, at + 1);
                retry = Some((after, at + 1));
            }
            (None, _) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("orders", "orders", true),
            ("orders", "order", false),
            ("%", "", true),
            ("o%s", "orders", true),
            ("o%x", "orders", false),
            ("%de%", "orders", true),
            ("%r%r%", "orders", true),
            ("_rders", "orders", true),
            ("_", "", false),
            ("", "a", false),
            ("a\\_b", "a_b", true),
            ("a\\_b", "axb", false),
            ("%é", "café", true),
        ] {
            assert_eq!(is_match(Some(pattern), name), expected, "{pattern} {name}");
        }
        assert!(is_match(None, "x"));
    }

    #[test]
    fn columns_are_taken_by_table() {
        let row = |values: [&str; 6]| values.map(|value| Some(value.to_owned())).to_vec();
        let mut rows = vec![
            row(["c", "s", "a", "x", "Int64", "NO"]),
            row(["c", "s", "b", "y", "Utf8", "YES"]),
            row(["c", "s", "b", "z", "Utf8", "NO"]),
        ];
        let columns = columns_of(&mut rows, ["c", "s", "b"], Some("z"));
        assert_eq!((columns.len(), columns[0].position, columns[0].nullable), (1, 2, false));
        assert_eq!(rows.len(), 1);
    }
}
