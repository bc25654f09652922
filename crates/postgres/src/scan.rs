//! Which statements several connections can share: what a statement reads, refers to and changes.

mod aggregate;
mod effects;
mod literals;
mod plan;
mod references;
mod table_scan;

pub(crate) use self::effects::{attribute_names, controls_transaction, preserves_session};
pub(crate) use self::literals::has_unstable_literal;
pub use self::references::{References, Unreadable};
pub use self::table_scan::{NotSplittable, TableScan};
