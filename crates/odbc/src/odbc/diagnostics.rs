//! What drivers say of a failure.

use std::fmt;

use odbc_sys::{Handle, HandleType, SQLGetDiagRecW, SqlReturn};

use super::narrow;

/// The longest message that a driver can give, in units of UTF-16. A shorter buffer might cut a
/// password, which then nobody recognizes.
const MESSAGE_MAX: usize = i16::MAX as usize;
/// The most records of a call that are looked at.
const RECORDS_MAX: i16 = 32;
/// Fractional truncation: a value lost digits.
const FRACTION_CUT: &str = "01S07";
/// `general_error`.
const GENERAL: &str = "HY000";

/// A record of a driver or of the driver manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
}

impl Diagnostic {
    /// Of a driver that breaks a rule.
    pub(crate) fn driver(message: impl Into<String>) -> Self {
        Self { sqlstate: GENERAL.to_owned(), message: message.into() }
    }

    /// The first record of a call that failed.
    pub(super) fn first(handle: (HandleType, Handle), function: &str) -> Self {
        Self::record(handle, 1).unwrap_or_else(|| {
            Self::driver(format!("the driver's {function} failed and does not say why"))
        })
    }

    /// The warning of a fetch by which a value lost digits.
    pub(super) fn of_cut(handle: (HandleType, Handle)) -> Option<Self> {
        let mut records = (1..=RECORDS_MAX).map_while(|number| Self::record(handle, number));
        records.find(|record| record.sqlstate == FRACTION_CUT)
    }

    fn record((handle_type, handle): (HandleType, Handle), number: i16) -> Option<Self> {
        let mut sqlstate = [0_u16; 16];
        let mut message = vec![0_u16; MESSAGE_MAX * 2];
        let (mut native, mut length) = (0, 0_i16);
        // SAFETY: the handle is valid, as its owner lives. The buffers are at least as long as the
        // driver is told, in units of UTF-16.
        let returned = unsafe {
            SQLGetDiagRecW(
                handle_type,
                handle,
                number,
                sqlstate.as_mut_ptr(),
                &mut native,
                message.as_mut_ptr(),
                MESSAGE_MAX as i16,
                &mut length,
            )
        };
        if !matches!(returned, SqlReturn::SUCCESS | SqlReturn::SUCCESS_WITH_INFO) {
            return None;
        }
        let sqlstate = narrow(&sqlstate, 5);
        let is_sqlstate =
            sqlstate.len() == 5 && sqlstate.bytes().all(|b| b.is_ascii_alphanumeric());
        let sqlstate = if is_sqlstate { sqlstate } else { GENERAL.to_owned() };
        Some(Self { sqlstate, message: narrow(&message, MESSAGE_MAX) })
    }

    /// Whether the driver manager has found no driver, or can't load it.
    pub(crate) fn is_about_drivers(&self) -> bool {
        matches!(self.sqlstate.as_str(), "01000" | "IM002" | "IM003" | "IM004")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
