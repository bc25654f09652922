//! Prepared statements that are kept for their next run.

use std::io::{Read, Write};

use mysql_common::constants::Command;

use crate::answer::OK;
use crate::error::{CancelCheck, Result};
use crate::fields::{Fields, malformed};
use crate::packets::PacketStream;

/// The most statements that are kept. A server has 16 382 for all of its sessions by default.
const STATEMENTS_MAX: usize = 32;
/// The longest statement that is kept. Longer ones, with values in them, hardly run twice.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A statement that the server has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) id: u32,
    pub(super) parameters: u16,
    pub(super) columns: u16,
}

impl Prepared {
    /// Reads the answer to COM_STMT_PREPARE.
    pub(super) fn parse(payload: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(payload);
        if fields.u8("header")? != OK {
            return Err(malformed("neither a prepared statement nor an error"));
        }
        let id = fields.u32("statement's number")?;
        let columns = fields.u16("number of columns")?;
        let parameters = fields.u16("number of parameters")?;
        Ok(Self { id, parameters, columns })
    }
}

/// Prepared statements by their text.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    /// In the order of their last run.
    statements: Vec<(String, Prepared)>,
    /// Those that the server can forget.
    forgotten: Vec<u32>,
    /// How often all of them were forgotten.
    age: u64,
}

impl StatementCache {
    /// Takes a statement out, if it was run before.
    pub(super) fn take(&mut self, statement: &str) -> Option<Prepared> {
        let at = self.statements.iter().position(|(text, _)| text == statement)?;
        Some(self.statements.remove(at).1)
    }

    /// Adds the statement that was run last, unless it is too long.
    pub(super) fn push(&mut self, statement: &str, prepared: Prepared) {
        if statement.len() > TEXT_BYTES_MAX {
            return self.forget(prepared.id);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            let (_, oldest) = self.statements.remove(0);
            self.forget(oldest.id);
        }
        self.statements.push((statement.to_owned(), prepared));
    }

    /// Has the server forget a statement before the next command.
    pub(super) fn forget(&mut self, id: u32) {
        self.forgotten.push(id);
    }

    /// Forgets all statements: the session has changed, and the server would go on reading them as
    /// it did when it prepared them, in another database or by other rules.
    pub(super) fn forget_all(&mut self) {
        self.forgotten.extend(self.statements.drain(..).map(|(_, prepared)| prepared.id));
        self.age += 1;
    }

    /// How often all statements were forgotten so far. What was prepared before the last time must
    /// not be kept.
    pub(super) fn age(&self) -> u64 {
        self.age
    }

    /// Sends what there is to forget. The server does not answer.
    pub(super) fn close_forgotten<S: Read + Write>(
        &mut self,
        packets: &mut PacketStream<S>,
        check: CancelCheck<'_>,
    ) -> Result<()> {
        for id in self.forgotten.drain(..) {
            let [a, b, c, d] = id.to_le_bytes();
            packets.command(&[Command::COM_STMT_CLOSE as u8, a, b, c, d], check)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept() {
        let mut cache = StatementCache::default();
        let prepared = |id| Prepared { id, parameters: 0, columns: 1 };
        let long = "x".repeat(TEXT_BYTES_MAX);
        cache.push(&long, prepared(1));
        assert_eq!(cache.take(&long), Some(prepared(1)));
        let longer = long + "x";
        cache.push(&longer, prepared(2));
        assert_eq!((cache.take(&longer), &*cache.forgotten), (None, &[2][..]));
        for id in 10..11 + STATEMENTS_MAX as u32 {
            cache.push(&id.to_string(), prepared(id));
        }
        assert_eq!((cache.take("10"), &*cache.forgotten), (None, &[2, 10][..]));
        cache.forgotten.clear();
        cache.forget_all();
        assert_eq!((cache.take("11"), cache.forgotten.len()), (None, STATEMENTS_MAX));
    }
}
