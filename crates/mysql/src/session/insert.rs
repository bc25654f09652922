//! Prepared statements that insert several rows, whose values the caller has written already.

use std::io::{Read, Write};

use mysql_common::constants::{ColumnType, Command};

use super::Session;
use super::load::Taken;
use super::next::Next;
use crate::error::{CancelCheck, Error, Result};

/// How the server reads the value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundType {
    /// As text in UTF-8, which it converts.
    Text,
    /// As bytes.
    Bytes,
}

/// The parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The types of a row's values. The statement takes whole rows.
    pub types: &'a [BoundType],
    /// Which parameters are NULL, for all of them.
    pub nulls: &'a [bool],
    /// The others one after the other, each as [`write_string`](super::write_string) writes it.
    pub values: &'a [u8],
}

/// The bytes of an execution besides those of nulls, types and values: its command, the statement,
/// flags, one execution, that types follow.
const FIXED_BYTES: usize = 1 + 4 + 1 + 4 + 1;

impl Bound<'_> {
    /// The bytes of a packet with so many parameters and bytes of values.
    pub fn packet_bytes(parameters: usize, values: usize) -> usize {
        FIXED_BYTES + parameters.div_ceil(8) + 2 * parameters + values
    }

    /// The argument of COM_STMT_EXECUTE.
    fn argument(&self, statement: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::packet_bytes(self.nulls.len(), self.values.len()));
        out.extend(statement.to_le_bytes());
        out.extend([0, 1, 0, 0, 0]);
        for eight in self.nulls.chunks(8) {
            let bits = eight.iter().enumerate().map(|(i, is_null)| u8::from(*is_null) << i);
            out.push(bits.fold(0, |byte, bit| byte | bit));
        }
        out.push(1);
        for bound in self.types.iter().cycle().take(self.nulls.len()) {
            let column_type = match bound {
                BoundType::Text => ColumnType::MYSQL_TYPE_VAR_STRING,
                BoundType::Bytes => ColumnType::MYSQL_TYPE_BLOB,
            };
            out.extend([column_type as u8, 0]);
        }
        out.extend(self.values);
        out
    }
}

impl<S: Read + Write> Session<S> {
    /// Runs an INSERT with these values. It stays prepared for the next time.
    ///
    /// # Errors
    /// When the server does not prepare it, it fails, or the connection breaks.
    pub fn insert(
        &mut self,
        statement: &str,
        bound: Bound<'_>,
        check: CancelCheck<'_>,
    ) -> Result<Taken> {
        self.check_idle()?;
        let prepared = match self.cache.take(statement) {
            Some(prepared) => prepared,
            None => match self.prepare(statement, check)? {
                Some((prepared, _)) => prepared,
                None => {
                    return Err(Error::usage("the server does not prepare statements")
                        .with_hint("allow LOAD DATA LOCAL: SET GLOBAL local_infile = ON"));
                }
            },
        };
        if usize::from(prepared.parameters) != bound.nulls.len() {
            return Err(self.packets.out_of_order("a statement with other parameters"));
        }
        let (argument, age) = (bound.argument(prepared.id), self.cache.age());
        self.command(Command::COM_STMT_EXECUTE, &argument, Next::Result, check)?;
        let taken = self.taken(check);
        self.keep(statement, prepared, age);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let types = [BoundType::Text, BoundType::Bytes];
        let bound =
            Bound { types: &types, nulls: &[false, true, true, false], values: b"\x01a\x01b" };
        let argument = bound.argument(7);
        let expected = b"\x07\0\0\0\0\x01\0\0\0\x06\x01\xfd\0\xfc\0\xfd\0\xfc\0\x01a\x01b";
        assert_eq!(argument, expected);
        assert_eq!(Bound::packet_bytes(4, 4), argument.len() + 1);
    }
}
