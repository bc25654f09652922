//! Statements that were run before, whose columns are known.

use std::io::{Read, Write};

use dray_pgtypes::Options as TypeOptions;
use postgres_protocol::message::frontend;

use super::{BOUND, Columns, Described, Session, State, invalid};
use crate::error::{Error, ErrorKind, Result};
use crate::parameter::Parameter;
use crate::split::{controls_transaction, leaves_session_alone};
use crate::wire::Patience;

/// So many statements' columns are remembered.
const KNOWN_MAX: usize = 64;

/// A statement that was run before: what its columns were.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) statement: String,
    pub(super) oids: Vec<u32>,
    pub(super) types: TypeOptions,
    pub(super) described: Described,
    pub(super) columns: Columns,
    /// The name under which the server has it prepared, once it was run twice.
    pub(super) prepared: Option<String>,
}

impl<S: Read + Write> Session<S> {
    /// Runs a statement whose columns are known, if nobody has changed them. In its second run it
    /// is prepared under a name, which those after it use: they spare the server parsing, planning
    /// and describing it. Returns its columns, and whether the server has said that it is bound;
    /// none if it has to be begun anew.
    pub(super) fn start_known(
        &mut self,
        mut known: Known,
        parameters: &[Parameter],
        patience: Patience<'_>,
    ) -> Result<Option<(Columns, bool)>> {
        if let Some(name) = &known.prepared {
            self.execute(name, &known.columns.columns, parameters, patience)?;
            return match self.done(BOUND, patience) {
                Ok(()) => Ok(Some((self.remember(known), true))),
                Err(error) => {
                    self.unwanted.extend(known.prepared);
                    // It is gone, or its columns have changed.
                    let is_stale =
                        matches!(error.sqlstate(), "26000" | "0A000") && !self.is_in_transaction();
                    if is_stale {
                        self.wait_ready(Ok(None), patience)
                    } else {
                        self.wait_ready(Err(error), patience)
                    }
                }
            };
        }
        self.close_unwanted()?;
        known.prepared = self.names.as_ref().map(|names| format!("{names}_{}", self.names_given));
        self.names_given += 1;
        let name = known.prepared.clone().unwrap_or_default();
        let out = self.wire.out();
        frontend::parse(&name, &known.statement, known.oids.iter().copied(), out)
            .map_err(invalid)?;
        frontend::describe(b'S', &name, out).map_err(invalid)?;
        self.execute(&name, &known.columns.columns, parameters, patience)?;
        let described = self.described(parameters, patience);
        if described.as_ref().is_ok_and(|described| *described == known.described) {
            return Ok(Some((self.remember(known), false)));
        }
        self.unwanted.extend(known.prepared);
        match described {
            Ok(_) => {
                self.state = State::Unwanted;
                let what = "the columns of this statement have changed since it was run last";
                Err(Error::new(ErrorKind::Server, what).with_sqlstate("0A000").hint("run it again"))
            }
            Err(error) => self.wait_ready(Err(error), patience),
        }
    }

    /// Remembers a statement, and returns its columns.
    pub(super) fn remember(&mut self, known: Known) -> Columns {
        if self.known.len() >= KNOWN_MAX {
            self.unwanted.extend(self.known.remove(0).prepared);
        }
        let columns = known.columns.clone();
        self.known.push(known);
        columns
    }

    /// Forgets what statements that were run before meant, if this one may change it without the
    /// server's taking notice: it may be DEALLOCATE, or make a temporary table of another's name.
    pub(super) fn mind(&mut self, statement: &str) {
        let escapes = self.escapes();
        let changes_nothing =
            || leaves_session_alone(statement, escapes) || controls_transaction(statement, escapes);
        if !self.known.is_empty() && !changes_nothing() {
            self.forget_statements();
        }
    }

    pub(super) fn forget_statements(&mut self) {
        self.unwanted.extend(self.known.drain(..).filter_map(|known| known.prepared));
    }

    /// Has the server forget what is not wanted, with whatever is sent next. Names that are gone do
    /// no harm.
    pub(super) fn close_unwanted(&mut self) -> Result<()> {
        let out = self.wire.out();
        self.unwanted
            .drain(..)
            .try_for_each(|name| frontend::close(b'S', &name, out).map_err(invalid))
    }
}
