//! The session's own statements, whose rows it reads as text.

use std::io::{Read, Write};

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::messages::server_error;
use super::parameter::bind;
use super::tag::miscount;
use super::{BOUND, CLOSED, PARSED, STEP_MISSING, Session, invalid};
use crate::error::{CancelCheck, Result};

/// The name under which these are prepared. The user's statement has no name, and must not be
/// replaced.
const OWN_STATEMENT: &str = "dray_types";

/// The rows of an answer: a value for each column, None for NULL.
type TextRows = Vec<Vec<Option<String>>>;

/// Whether the server describes the rows of a statement before it sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Description {
    Sent,
    Skipped,
}

impl<S: Read + Write> Session<S> {
    /// Runs one statement or several, and returns their rows as text.
    ///
    /// # Errors
    /// When one fails, or the connection breaks.
    pub fn ask(&mut self, statement: &str, check: CancelCheck<'_>) -> Result<TextRows> {
        self.check_sendable(statement)?;
        (self.statement, self.sent_before) = (statement.to_owned(), 0);
        frontend::query(statement, self.messages.out()).map_err(invalid)?;
        self.messages.send(check)?;
        // The text may be several statements.
        let mut rows = Vec::new();
        let outcome = loop {
            match self.text_rows(Description::Sent, check) {
                Ok(more) => rows.extend(more),
                Err(error) => break Err(error),
            }
            if matches!(self.messages.next_tag(check)?, b'Z' | b'E') {
                break Ok(rows);
            }
        };
        self.wait_ready(outcome, check)
    }

    /// The planner's estimate for a query: the number of rows, and the bytes of one.
    ///
    /// # Errors
    /// When it does not plan, or the connection breaks.
    pub fn estimate(
        &mut self,
        statement: &str,
        check: CancelCheck<'_>,
    ) -> Result<Option<(u64, u64)>> {
        let Some(statement) = self.enclosable(statement) else { return Ok(None) };
        let plan = self.ask(&format!("EXPLAIN {statement}"), check)?;
        let first = plan.into_iter().flatten().flatten().next().unwrap_or_default();
        // Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4)
        let number = |key: &str| {
            let (_, after) = first.rsplit_once(key)?;
            after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Ok(number("rows=").zip(number("width=")))
    }

    /// Runs a statement while the user's is being prepared, in the same transaction.
    pub(super) fn ask_within(
        &mut self,
        statement: &str,
        check: CancelCheck<'_>,
    ) -> Result<TextRows> {
        let out = self.messages.out();
        // An error may have left the last one behind.
        frontend::close(b'S', OWN_STATEMENT, out).map_err(invalid)?;
        frontend::parse(OWN_STATEMENT, statement, [], out).map_err(invalid)?;
        bind(OWN_STATEMENT, [], &[], out)?;
        frontend::execute("", 0, out).map_err(invalid)?;
        frontend::close(b'S', OWN_STATEMENT, out).map_err(invalid)?;
        frontend::flush(out);
        self.messages.send(check)?;
        for step in [CLOSED, PARSED, BOUND] {
            self.done(step, check)?;
        }
        let rows = self.text_rows(Description::Skipped, check)?;
        self.done(CLOSED, check)?;
        Ok(rows)
    }

    /// Waits until the server reports a step as done. If a report is missing, what follows belongs
    /// to another statement.
    pub(super) fn done(&mut self, step: u8, check: CancelCheck<'_>) -> Result<()> {
        let found = self.messages.next_tag(check)?;
        match self.messages.message(check)? {
            _ if found == step => Ok(()),
            Message::ErrorResponse(error) => {
                Err(server_error(error.fields(), &self.statement, self.sent_before))
            }
            _ => Err(self.messages.out_of_order(STEP_MISSING)),
        }
    }

    /// The rows of a statement up to its end.
    fn text_rows(&mut self, description: Description, check: CancelCheck<'_>) -> Result<TextRows> {
        let mut rows = Vec::new();
        let mut returns_rows = description == Description::Skipped;
        loop {
            match self.messages.message(check)? {
                Message::DataRow(row) if returns_rows => {
                    let text = |range: std::ops::Range<usize>| {
                        String::from_utf8_lossy(&row.buffer()[range]).into_owned()
                    };
                    rows.push(
                        row.ranges().map(|range| Ok(range.map(text))).collect().map_err(invalid)?,
                    );
                }
                Message::CommandComplete(body) => {
                    let miscount = miscount(body.tag().unwrap_or_default(), rows.len() as u64)
                        .filter(|_| returns_rows);
                    return miscount
                        .map_or(Ok(rows), |miscount| Err(self.messages.out_of_order(&miscount)));
                }
                Message::EmptyQueryResponse => return Ok(rows),
                Message::ErrorResponse(error) => {
                    return Err(server_error(error.fields(), &self.statement, self.sent_before));
                }
                Message::RowDescription(_) => returns_rows = true,
                _ => return Err(self.messages.out_of_order("not a row")),
            }
        }
    }
}
