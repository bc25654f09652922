//! What the server's planner says.

use dray_mysql::{
    CancelCheck as SocketCheck, Connection as Socket, Error as MysqlError, Joined, Session,
};

use super::table::is_table;

/// A line of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanLine {
    /// How the table is read: `ALL`, `index`, `range` …
    pub(super) access: String,
    /// The index that it is read by.
    pub(super) key: Option<String>,
    /// The rows to be read.
    pub(super) rows: u64,
    /// How many of a hundred of them are left after the conditions.
    filtered: Option<f64>,
    /// The part of the query that it belongs to: 1 for its tables, if it has no others.
    part: String,
}

/// Asks for the plan of a query.
///
/// # Errors
/// When the query does not plan, or the connection breaks.
pub(super) fn explain(
    session: &mut Session<Socket>,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<Vec<PlanLine>, MysqlError> {
    // Without one of these words, some servers tell no `filtered`, and others may answer as a tree.
    let server = session.server();
    let form = match server.is_mariadb() || server.number() < (5, 7, 0) {
        true => "EXTENDED",
        false => "FORMAT=TRADITIONAL",
    };
    let lines = session.ask(&format!("EXPLAIN {form} {sql}"), check)?;
    Ok(lines.iter().map(|line| PlanLine::of(line)).collect())
}

/// The planner's estimate of a query's rows; None if it can't be had without running parts of it.
///
/// # Errors
/// When the query does not plan, or the connection breaks.
pub(super) fn estimate(
    session: &mut Session<Socket>,
    sql: &str,
    check: SocketCheck<'_>,
) -> Result<Option<u64>, MysqlError> {
    let Some(joined) = Joined::parse(sql, session.escapes()) else { return Ok(None) };
    // A view may call functions.
    let mut tables = joined.tables;
    tables.sort();
    tables.dedup();
    // An OR would find names that differ in case.
    let types = tables.iter().map(|names| {
        format!("SELECT TABLE_TYPE FROM information_schema.TABLES WHERE {}", is_table(names))
    });
    let types = session.ask(&types.collect::<Vec<_>>().join(" UNION ALL "), check)?;
    let types = types.into_iter().flatten().flatten().collect::<Vec<_>>();
    if types.len() != tables.len() || types.iter().any(|found| found != "BASE TABLE") {
        return Ok(None);
    }
    let lines = explain(session, sql, check)?;
    Ok(rows_of(&lines).map(|rows| joined.limit.map_or(rows, |limit| rows.min(limit))))
}

/// The rows of the tables of a plan, joined.
fn rows_of(lines: &[PlanLine]) -> Option<u64> {
    let rows = |line: &PlanLine| {
        let filtered = line.filtered.filter(|_| line.part == "1" && !line.access.is_empty())?;
        Some(line.rows as f64 * filtered / 100.0)
    };
    let product = lines.iter().map(rows).product::<Option<f64>>()?;
    // An estimate of no rows would be exceeded at once.
    (!lines.is_empty()).then_some(product.round().max(1.0) as u64)
}

impl PlanLine {
    /// Most servers have ten columns, and `filtered` before the last one if that was asked for.
    /// MySQL since 5.7 has it always, and `partitions` before the type of access.
    fn of(line: &[Option<String>]) -> Self {
        let shift = usize::from(line.len() > 11);
        let text = |i: usize| line.get(i + shift).cloned().flatten();
        Self {
            access: text(3).unwrap_or_default(),
            key: text(5),
            rows: text(8).and_then(|rows| rows.parse().ok()).unwrap_or_default(),
            filtered: text(9).filter(|_| line.len() > 10).and_then(|part| part.parse().ok()),
            part: line.first().cloned().flatten().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_servers() {
        let line = |text: &str| {
            let values = text.split(' ').map(|value| (value != "-").then(|| value.to_owned()));
            PlanLine::of(&values.collect::<Vec<_>>())
        };
        let plain = line("1 SIMPLE t range PRIMARY PRIMARY 8 - 70 where");
        let expected = PlanLine {
            access: "range".into(),
            key: Some("PRIMARY".into()),
            rows: 70,
            filtered: None,
            part: "1".into(),
        };
        assert_eq!(plain, expected);
        let expected = PlanLine { filtered: Some(50.0), ..expected };
        assert_eq!(line("1 SIMPLE t range PRIMARY PRIMARY 8 - 70 50.00 where"), expected);
        assert_eq!(line("1 SIMPLE t - range PRIMARY PRIMARY 8 - 70 50.00 where"), expected);
        let nothing = line("1 PRIMARY - - - - - - - - impossible");
        assert_eq!((nothing.rows, rows_of(&[nothing])), (0, None));
        let other = line("1 SIMPLE u ref x x 8 t.i 3 10.00 -");
        assert_eq!(rows_of(&[expected.clone(), other.clone()]), Some(11));
        assert_eq!(rows_of(std::slice::from_ref(&other)), Some(1));
        // Parts of a query, and nothing known of a filter.
        let part = line("2 DERIVED u ALL - - - - 3 10.00 -");
        assert_eq!(rows_of(&[other.clone(), part]), None);
        assert_eq!(rows_of(&[other, plain]), None);
        assert_eq!(rows_of(&[]), None);
    }
}
