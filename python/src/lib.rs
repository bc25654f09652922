//! The compiled half of the Python package: connections, results and their conversions. What users
//! see is in `dray/`.
//!
//! ```text
//!   dray.Connection ── _dray.Connection ── Home ──lends──▶ Loan, within the Results of one statement
//!   dray.Result     ── _dray.Result ── Reader ──▶ batches ──▶ Arrow capsules, or tuples
//! ```
//!   dray.read(a driver's connection) ── _dray.Copy ◀── the driver's COPY
//!
//!   dray.sort(any Arrow stream) ── _dray.sort ──▶ _dray.Sorted ──▶ an Arrow stream
//! ```
//!
//! Python's lock is released wherever a socket is read or a chunk decoded. At most every 45 ms the statement's watch takes
//! it, looks for signals and calls the user's progress function (`watch`).

#![deny(unsafe_code)]

mod capsule;
mod connection;
mod copy;
mod error;
mod export;
mod home;
mod parameters;
mod reader;
mod result;
mod rows;
mod sort;
mod watch;

use pyo3::prelude::*;

/// What chunks decode to and are joined in is freed batch by batch; the system's allocator would
/// hand the pages back and clear new ones each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _dray {
    #[pymodule_export]
    use crate::capsule::{Batch, Table};
    #[pymodule_export]
    use crate::connection::{Connection, connect};
    #[pymodule_export]
    use crate::copy::{Copy, enclosable, is_query, other_library};
    #[pymodule_export]
    use crate::result::Result;
    #[pymodule_export]
    use crate::sort::{SortProgress, Sorted, sort};
    #[pymodule_export]
    use crate::watch::{Estimate, Progress};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
