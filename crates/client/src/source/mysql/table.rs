//! Whether a table can be read over several connections, and is worth it.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Key, Session, TableScan};

use super::super::partitioned::Distance;
use super::divide::divide;
use super::explain::explain;
use super::keys::{ColumnType, KeySpace};
use super::reason::Reason;
use crate::error::Result;

/// The name of a primary key's index, which needs no quotes.
pub(super) const PRIMARY: &str = "PRIMARY";

/// A table that can be read over several connections.
#[derive(Debug)]
pub(super) struct Table {
    /// A statement for each range of the key, in the order of its index.
    pub(super) ranges: Vec<String>,
    /// Connections to read it with.
    pub(super) workers: usize,
}

/// The ranges that are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranges {
    pub(super) at_most: usize,
    /// Whether rows come in the order of the primary key.
    pub(super) ordered: bool,
}

impl Table {
    /// Divides the table of a scan. `connections` is their number, if the user has asked for one.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn divide(
        session: &mut Session<Socket>,
        scan: &TableScan,
        facts: &Facts,
        sql: &str,
        connections: Option<usize>,
        wanted: Ranges,
        check: SocketCheck<'_>,
    ) -> Result<Result<Self, Reason>> {
        let distance = Distance::of(session.stream().socket());
        let workers = connections.unwrap_or_else(|| facts.workers(distance));
        if workers < 2 {
            return Ok(Err(Reason::Small));
        }
        if wanted.ordered && facts.is_partitioned {
            return Ok(Err(Reason::OrderOfPartitions));
        }
        if let Some(reason) = facts.reason() {
            return Ok(Err(reason));
        }
        if is_temporary(session, &scan.table, check)? {
            return Ok(Err(Reason::Temporary));
        }
        let Some(index) = Index::of(session, scan, facts.named.as_deref(), check)? else {
            return Ok(Err(match &facts.named {
                Some(column) => Reason::NoIndex(column.clone()),
                None => Reason::NoPrimaryKey,
            }));
        };
        if wanted.ordered && index.name != PRIMARY {
            return Ok(Err(Reason::OrderOfKey));
        }
        let data_type = &index.data_type(session, scan, check)?;
        let key = index.key();
        if data_type.name == "timestamp" && !has_fixed_offset(&facts.time_zone) {
            return Ok(Err(Reason::TimeZone(facts.time_zone.clone())));
        }
        let key_type = || Reason::KeyType(data_type.name.clone());
        let Some(ends) = KeySpace::question(&data_type.name, &key.column) else {
            return Ok(Err(key_type()));
        };
        let plan = explain(session, sql, check)?;
        let is_scan = plan.iter().all(|line| match line.access.as_str() {
            "ALL" | "index" => true,
            "range" => line.key.as_deref() == Some(PRIMARY),
            _ => false,
        });
        if plan.len() != 1 || !is_scan {
            return Ok(Err(Reason::IndexIsQuicker));
        }
        let ends = session.ask(&format!("SELECT {ends} FROM {}", scan.table), check)?;
        let mut ends = ends.into_iter().flatten().flatten();
        // No row has a key.
        let (Some(least), Some(greatest)) = (ends.next(), ends.next()) else {
            return Ok(Err(Reason::FewKeys));
        };
        let Some((space, from, to)) = KeySpace::new(data_type, &least, &greatest) else {
            return Ok(Err(key_type()));
        };
        let count = (workers * distance.ranges_per_worker()).min(wanted.at_most);
        let bounds = divide(session, scan, &key, (&space, from, to), count, check)?;
        if bounds.is_empty() {
            return Ok(Err(Reason::FewKeys));
        }
        let mut ranges = ranges(scan, &key, index.is_nullable, bounds, wanted.at_most);
        // The index is read from its beginning, so each range comes in its own order.
        if wanted.ordered && index.is_descending {
            ranges.reverse();
        }
        Ok(Ok(Self { ranges, workers }))
    }
}

/// Bounds of at most `ranges_max` ranges, each of about as many of the given ones.
fn thinned(bounds: Vec<String>, ranges_max: usize) -> Vec<String> {
    let each = (bounds.len() + 1).div_ceil(ranges_max.max(1));
    bounds.into_iter().skip(each - 1).step_by(each).collect()
}

/// A statement for each of at most `ranges_max` ranges, and at least two. The first and the last
/// are open. Rows without a key come before.
fn ranges(
    scan: &TableScan,
    key: &Key,
    is_nullable: bool,
    bounds: Vec<String>,
    ranges_max: usize,
) -> Vec<String> {
    let bounds = thinned(bounds, ranges_max.saturating_sub(usize::from(is_nullable)).max(2));
    let of_keys = (0..=bounds.len()).map(|i| {
        let from = i.checked_sub(1).and_then(|i| bounds.get(i)).map(String::as_str);
        scan.key_range(key, from, bounds.get(i).map(String::as_str))
    });
    is_nullable.then(|| scan.without_key(key)).into_iter().chain(of_keys).collect()
}

/// What information_schema knows of a table.
#[derive(Debug)]
pub(super) struct Facts {
    /// `BASE TABLE`, `VIEW` …
    kind: String,
    engine: String,
    /// An estimate; None for a view.
    pub(super) rows: Option<u64>,
    bytes: u64,
    is_partitioned: bool,
    /// The column that the table is to be divided by, if the user named one.
    named: Option<String>,
    /// That of the session.
    time_zone: String,
}

impl Facts {
    /// Asks for the table of a scan; None if there is none.
    ///
    /// # Errors
    /// When the connection breaks or the statement is cancelled.
    pub(super) fn of(
        session: &mut Session<Socket>,
        scan: &TableScan,
        named: Option<&str>,
        check: SocketCheck<'_>,
    ) -> Result<Option<Self>> {
        let columns = "TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, CREATE_OPTIONS, @@time_zone";
        let Some(row) = ask_of(session, scan, columns, "TABLES", "", check)? else {
            return Ok(None);
        };
        let mut values = row.into_iter();
        let mut next = || values.next().flatten();
        Ok(Some(Self {
            kind: next().unwrap_or_default(),
            engine: next().unwrap_or_default(),
            rows: next().and_then(|rows| rows.parse().ok()),
            bytes: next().and_then(|bytes| bytes.parse().ok()).unwrap_or_default(),
            is_partitioned: next().is_some_and(|options| options.contains("partitioned")),
            named: named.map(str::to_owned),
            time_zone: next().unwrap_or_default(),
        }))
    }

    fn workers(&self, distance: Distance) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        processors.min(distance.connections_for(self.bytes))
    }

    /// Why no table of this kind is divided.
    fn reason(&self) -> Option<Reason> {
        if self.kind != "BASE TABLE" {
            return Some(Reason::NotATable);
        }
        let is_innodb = self.engine.eq_ignore_ascii_case("innodb");
        (!is_innodb).then(|| Reason::Engine(self.engine.clone()))
    }
}

/// An index, by whose first column a table is divided.
#[derive(Debug)]
struct Index {
    name: String,
    column: String,
    /// Whether it begins with the greatest key.
    is_descending: bool,
    is_nullable: bool,
}

impl Index {
    /// Asks for the primary key, or an index that begins with the column that the user named.
    ///
    /// A named column needs an index that is a tree and has its whole values. A primary key of
    /// prefixes is fine: these are unique, and the server compares the whole value again.
    fn of(
        session: &mut Session<Socket>,
        scan: &TableScan,
        named: Option<&str>,
        check: SocketCheck<'_>,
    ) -> Result<Option<Self>> {
        let index = match named {
            None => format!("Key_name = '{PRIMARY}'"),
            Some(column) => format!(
                "Column_name = {} AND Sub_part IS NULL AND Index_type = 'BTREE'",
                literal(column)
            ),
        };
        let keys = keys(session, scan, &format!("Seq_in_index = 1 AND {index}"), check)?;
        Ok(keys.into_iter().next())
    }

    /// The type of its column.
    fn data_type(
        &self,
        session: &mut Session<Socket>,
        scan: &TableScan,
        check: SocketCheck<'_>,
    ) -> Result<ColumnType> {
        let columns = "DATA_TYPE, CHARACTER_SET_NAME, COLLATION_NAME";
        let column = format!(" AND COLUMN_NAME = {}", literal(&self.column));
        let row = ask_of(session, scan, columns, "COLUMNS", &column, check)?;
        let mut values = row.into_iter().flatten();
        let mut next = || values.next().flatten().unwrap_or_default();
        Ok(ColumnType { name: next(), charset: next(), collation: next() })
    }

    /// Reads a row of `SHOW KEYS`; None for an expression.
    fn from_row(row: &[Option<String>]) -> Option<Self> {
        let value = |i: usize| row.get(i).and_then(|value| value.as_deref());
        Some(Self {
            name: value(2)?.to_owned(),
            column: value(4)?.to_owned(),
            is_descending: value(5) == Some("D"),
            is_nullable: value(9) == Some("YES"),
        })
    }

    fn key(&self) -> Key {
        let name = if self.name == PRIMARY { self.name.clone() } else { quoted(&self.name) };
        Key { index: name, column: quoted(&self.column) }
    }
}

/// The columns of a table's primary key in their order, each with `DESC` if it descends; none
/// without one.
///
/// # Errors
/// When there is no such table, the connection breaks or the statement is cancelled.
pub(super) fn primary_key(
    session: &mut Session<Socket>,
    scan: &TableScan,
    check: SocketCheck<'_>,
) -> Result<Vec<String>> {
    let columns = keys(session, scan, &format!("Key_name = '{PRIMARY}'"), check)?;
    let columns = columns.into_iter().map(|Index { column, is_descending, .. }| {
        format!("{}{}", quoted(&column), if is_descending { " DESC" } else { "" })
    });
    Ok(columns.collect())
}

/// Columns of a table's indexes, also of a temporary one, and never of one whose name differs in
/// case.
fn keys(
    session: &mut Session<Socket>,
    scan: &TableScan,
    which: &str,
    check: SocketCheck<'_>,
) -> Result<Vec<Index>> {
    let rows = session.ask(&format!("SHOW KEYS FROM {} WHERE {which}", scan.table), check)?;
    Ok(rows.iter().filter_map(|row| Index::from_row(row)).collect())
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What a table of information_schema has in these columns about the table of a scan; None if that
/// is not there.
fn ask_of(
    session: &mut Session<Socket>,
    scan: &TableScan,
    columns: &str,
    of: &str,
    and: &str,
    check: SocketCheck<'_>,
) -> Result<Option<Vec<Option<String>>>> {
    let question = format!(
        "SELECT TABLE_NAME, {columns} FROM information_schema.{of} WHERE {}{and}",
        is_table(&scan.names)
    );
    let mut rows = session.ask(&question, check)?;
    // Servers whose tables `t` and `T` are two may find both.
    let is_it = |row: &Vec<Option<String>>| row.first() == Some(&Some(scan.names.1.clone()));
    let at = rows.iter().position(is_it).unwrap_or_default();
    Ok((at < rows.len()).then(|| rows.swap_remove(at).split_off(1)))
}

/// The condition for a row of information_schema to be about a table, by its database and its name.
pub(super) fn is_table((database, table): &(Option<String>, String)) -> String {
    let database = database.as_ref().map_or_else(|| "DATABASE()".to_owned(), |name| literal(name));
    format!("TABLE_SCHEMA = {database} AND TABLE_NAME = {}", literal(table))
}

/// Whether a table, as a statement names it, is a temporary one. It hides another of its name, and
/// only from its own session.
///
/// # Errors
/// When there is no such table, the connection breaks or the statement is cancelled.
pub(super) fn is_temporary(
    session: &mut Session<Socket>,
    table: &str,
    check: SocketCheck<'_>,
) -> Result<bool> {
    let created = session.ask(&format!("SHOW CREATE TABLE {table}"), check)?;
    let created = created.into_iter().flatten().flatten().nth(1).unwrap_or_default();
    Ok(created.starts_with("CREATE TEMPORARY TABLE"))
}

/// Whether times of a time zone have the order of UTC, in which an index has them: they have not
/// where clocks are put back.
fn has_fixed_offset(time_zone: &str) -> bool {
    let is_utc = |name: &&str| time_zone.eq_ignore_ascii_case(name);
    time_zone.starts_with(['+', '-']) || ["UTC", "Etc/UTC"].iter().any(is_utc)
}

/// A string, however the session reads backslashes.
pub(super) fn literal(text: &str) -> String {
    let hex = text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    format!("_utf8mb4 x'{hex}'")
}

#[cfg(test)]
mod tests {
    use super::{has_fixed_offset, thinned};

    #[test]
    fn time_zones() {
        for zone in ["+00:00", "-11:30", "UTC", "Etc/utc"] {
            assert!(has_fixed_offset(zone), "{zone}");
        }
        for zone in ["SYSTEM", "Europe/Berlin", "CET", ""] {
            assert!(!has_fixed_offset(zone), "{zone}");
        }
    }

    #[test]
    fn ranges_are_no_more_than_asked() {
        let bounds = (1..8).map(|i| i.to_string()).collect::<Vec<_>>();
        for (ranges_max, expected) in
            [(usize::MAX, 7), (8, 7), (7, 3), (4, 3), (3, 2), (2, 1), (1, 0), (0, 0)]
        {
            let thin = thinned(bounds.clone(), ranges_max);
            assert_eq!(thin.len(), expected, "{ranges_max}");
            assert!(thin.iter().all(|bound| bounds.contains(bound)));
        }
        assert_eq!(thinned(bounds, 4), ["2", "4", "6"]);
    }
}
