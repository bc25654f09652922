//! What the server's planner says.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Error as MysqlError, Session};

/// A line of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanLine {
    /// How the table is read: `ALL`, `index`, `range` …
    pub(super) access: String,
    /// The index that it is read by.
    pub(super) key: Option<String>,
    /// The rows to be read.
    pub(super) rows: u64,
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
    let lines = session.ask(&format!("EXPLAIN {sql}"), check)?;
    Ok(lines.iter().map(|line| PlanLine::of(line)).collect())
}

impl PlanLine {
    /// MySQL has two more columns since 5.7, `partitions` and `filtered`.
    fn of(line: &[Option<String>]) -> Self {
        let shift = usize::from(line.len() > 10);
        let text = |i: usize| line.get(i + shift).cloned().flatten();
        Self {
            access: text(3).unwrap_or_default(),
            key: text(5),
            rows: text(8).and_then(|rows| rows.parse().ok()).unwrap_or_default(),
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
        let expected = PlanLine { access: "range".into(), key: Some("PRIMARY".into()), rows: 70 };
        assert_eq!(line("1 SIMPLE t range PRIMARY PRIMARY 8 - 70 where"), expected);
        assert_eq!(line("1 SIMPLE t - range PRIMARY PRIMARY 8 - 70 100.0 where"), expected);
        assert_eq!(line("1 PRIMARY - - - - - - - impossible").rows, 0);
    }
}
