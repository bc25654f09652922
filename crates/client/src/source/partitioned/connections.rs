//! How many connections read a result, and why.

use std::fmt;

/// The connections that read a result. Prints as the end of a sentence.
#[derive(Debug)]
pub(in super::super) enum Connections<R> {
    /// One. The reason is given unless one was asked for.
    One(Option<R>),
    /// Several, some of which may have failed without harm.
    Several { count: usize, failures: Vec<String> },
}

impl<R: fmt::Display> fmt::Display for Connections<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(None) => f.write_str("one connection"),
            Self::One(Some(why)) => write!(f, "one connection: {why}"),
            Self::Several { count, failures } => {
                write!(f, "{count} connections, one snapshot")?;
                // Each is told once.
                for (i, failure) in failures.iter().enumerate() {
                    if !failures[..i].contains(failure) {
                        write!(f, "; one of them failed: {failure}")?;
                    }
                }
                Ok(())
            }
        }
    }
}
