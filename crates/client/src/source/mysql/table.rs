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
        let (key, data_type) = match facts.key() {
            Ok(key) => key,
            Err(reason) => return Ok(Err(reason)),
        };
        if wanted.ordered && key.index != PRIMARY {
            return Ok(Err(Reason::OrderOfKey));
        }
        if data_type.name == "timestamp" && !has_fixed_offset(&facts.time_zone) {
            return Ok(Err(Reason::TimeZone(facts.time_zone.clone())));
        }
        let key_type = || Reason::KeyType(data_type.name.clone());
        let Some(ends) = KeySpace::question(&data_type.name, &key.column) else {
            return Ok(Err(key_type()));
        };
        if is_temporary(session, scan, check)? {
            return Ok(Err(Reason::Temporary));
        }
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
        let (Some(least), Some(greatest)) = (ends.next(), ends.next()) else {
            return Ok(Err(Reason::Small));
        };
        let Some((space, from, to)) = KeySpace::new(data_type, &least, &greatest) else {
            return Ok(Err(key_type()));
        };
        let count = (workers * distance.ranges_per_worker()).min(wanted.at_most);
        let bounds = divide(session, scan, &key, (&space, from, to), count, check)?;
        if bounds.is_empty() {
            return Ok(Err(Reason::FewKeys));
        }
        let mut ranges = ranges(scan, &key, facts.is_nullable, bounds, wanted.at_most);
        // The index is read from its beginning, so each range comes in its own order.
        if wanted.ordered && facts.is_descending {
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
    /// An index that begins with this column, or else the primary key, and its first column.
    index: Option<String>,
    column: Option<String>,
    /// Whether the index begins with the greatest key.
    is_descending: bool,
    is_nullable: bool,
    data_type: ColumnType,
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
        let row = session.ask(&question(scan, named), check)?.into_iter().next();
        Ok(row.map(|row| Self::from_row(row, named)))
    }

    fn from_row(row: Vec<Option<String>>, named: Option<&str>) -> Self {
        let mut values = row.into_iter();
        let mut next = || values.next().flatten();
        Self {
            kind: next().unwrap_or_default(),
            engine: next().unwrap_or_default(),
            rows: next().and_then(|rows| rows.parse().ok()),
            bytes: next().and_then(|bytes| bytes.parse().ok()).unwrap_or_default(),
            is_partitioned: next().is_some_and(|options| options.contains("partitioned")),
            named: named.map(str::to_owned),
            index: next(),
            column: next(),
            is_descending: next().is_some_and(|collation| collation == "D"),
            is_nullable: next().is_some_and(|nullable| nullable == "YES"),
            data_type: ColumnType {
                name: next().unwrap_or_default(),
                charset: next().unwrap_or_default(),
                collation: next().unwrap_or_default(),
            },
            time_zone: next().unwrap_or_default(),
        }
    }

    fn workers(&self, distance: Distance) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        processors.min(distance.connections_for(self.bytes))
    }

    /// What the table is divided by, and the type of its column.
    fn key(&self) -> Result<(Key, &ColumnType), Reason> {
        if self.kind != "BASE TABLE" {
            return Err(Reason::NotATable);
        }
        if !self.engine.eq_ignore_ascii_case("innodb") {
            return Err(Reason::Engine(self.engine.clone()));
        }
        let (Some(index), Some(column)) = (&self.index, &self.column) else {
            return Err(match &self.named {
                Some(column) => Reason::NoIndex(column.clone()),
                None => Reason::NoPrimaryKey,
            });
        };
        let index = if index == PRIMARY { index.clone() } else { quoted(index) };
        Ok((Key { index, column: quoted(column) }, &self.data_type))
    }
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Asks for [`Facts`]. An index of a prefix, or one that is no tree, does not divide a table.
fn question(scan: &TableScan, named: Option<&str>) -> String {
    let index = match named {
        None => format!("s.INDEX_NAME = '{PRIMARY}'"),
        Some(column) => format!(
            "s.COLUMN_NAME = {} AND s.SUB_PART IS NULL AND s.INDEX_TYPE = 'BTREE'",
            literal(column)
        ),
    };
    let is_table = |of: &str| is_table(scan, of);
    format!(
        "SELECT t.TABLE_TYPE, t.ENGINE, t.TABLE_ROWS, t.DATA_LENGTH, t.CREATE_OPTIONS, \
             s.INDEX_NAME, s.COLUMN_NAME, s.COLLATION, c.IS_NULLABLE, c.DATA_TYPE, \
             c.CHARACTER_SET_NAME, c.COLLATION_NAME, @@time_zone \
         FROM information_schema.TABLES t \
         LEFT JOIN information_schema.STATISTICS s \
             ON {} AND {index} AND s.SEQ_IN_INDEX = 1 \
         LEFT JOIN information_schema.COLUMNS c ON {} AND c.COLUMN_NAME = s.COLUMN_NAME \
         WHERE {} ORDER BY s.INDEX_NAME <> '{PRIMARY}', s.INDEX_NAME LIMIT 1",
        is_table("s"),
        is_table("c"),
        is_table("t"),
    )
}

/// The condition for a table of information_schema to be about the table of a scan.
pub(super) fn is_table(scan: &TableScan, of: &str) -> String {
    let (database, table) = &scan.names;
    let database = database.as_ref().map_or_else(|| "DATABASE()".to_owned(), |name| literal(name));
    format!("{of}.TABLE_SCHEMA = {database} AND {of}.TABLE_NAME = {}", literal(table))
}

/// Whether the table of a scan is a temporary one. It hides another of its name, and only from
/// other sessions.
///
/// # Errors
/// When there is no such table, the connection breaks or the statement is cancelled.
pub(super) fn is_temporary(
    session: &mut Session<Socket>,
    scan: &TableScan,
    check: SocketCheck<'_>,
) -> Result<bool> {
    let created = session.ask(&format!("SHOW CREATE TABLE {}", scan.table), check)?;
    let created = created.into_iter().flatten().flatten().nth(1).unwrap_or_default();
    Ok(!created.starts_with("CREATE TABLE"))
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
