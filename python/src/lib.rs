//! The compiled half of the Python package: connections, results and their conversions. The public
//! half is Python code in `dray/`.
//!
//! ```text
//! dray.Connection ── _dray.Connection ── ConnectionSlot ──▶ Lease, held by the statement's Results
//! dray.Result     ── _dray.Result ── Reader ──▶ batches ──▶ Arrow capsules, or tuples
//!
//! dray.Plan       ── _dray.Plan: holds a snapshot; _dray.read_partition ──▶ _dray.Result
//!
//! dray.read(a driver's connection) ── _dray.Copy ◀── the driver's COPY
//!
//! dray.Connection.write(any Arrow stream) ── _dray.write ──▶ dray_client::Connection::write
//!
//! dray.nest ── _dray.nest ──▶ dray_nest::nest_from ──▶ _dray.Nested ──▶ an Arrow stream
//!
//! dray.PageFile ── _dray.PageFile ──▶ dray_pagefile::PageFile ──▶ dray.Object, or an Arrow stream
//!
//! dray.edit_pages ── _dray.PageFileEditor ──▶ dray.ObjectEditor, dray.ListEditor ──▶ a new file
//!
//! dray.PageWriter ◀── dicts ── _dray.PageWriter ──▶ dray_pagefile::PageFileWriter
//!
//! dray.sort(any Arrow stream) ── _dray.sort ──▶ _dray.Sorted ──▶ an Arrow stream
//! ```
//!
//! Python's lock is released while a socket is read or a chunk is decoded. At most every 45 ms the
//! statement's monitor acquires it, checks for signals and calls the user's progress function
//! (`monitor`).

#![deny(unsafe_code)]

mod assign;
mod capsule;
mod closing;
mod connection;
mod copy;
mod dictionaries;
mod edit;
mod error;
mod monitor;
mod nest;
mod object;
mod objects;
mod pages;
mod parameters;
mod plan;
mod put;
mod reader;
mod result;
mod rows;
mod sort;
mod write;

use pyo3::prelude::*;

/// Decoded chunks and joined batches are freed batch by batch. The system's allocator would return
/// their pages to the kernel and get zeroed ones for the next batch.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _dray {
    #[pymodule_export]
    use crate::capsule::{Batch, Table};
    #[pymodule_export]
    use crate::closing::Closing;
    #[pymodule_export]
    use crate::connection::{Connection, connect, server_uri};
    #[pymodule_export]
    use crate::copy::{Copy, enclosable, is_query, other_library};
    #[pymodule_export]
    use crate::edit::{ListEditor, ObjectEditor, PageFileEditor};
    #[pymodule_export]
    use crate::monitor::{Estimate, Progress};
    #[pymodule_export]
    use crate::nest::{Nested, nest};
    #[pymodule_export]
    use crate::object::{List, Object};
    #[pymodule_export]
    use crate::objects::Objects;
    #[pymodule_export]
    use crate::pages::{PageFile, PageWriter, write_pages};
    #[pymodule_export]
    use crate::plan::{Plan, part_uri, plan, read_partition};
    #[pymodule_export]
    use crate::result::Result;
    #[pymodule_export]
    use crate::sort::{SortProgress, Sorted, sort};
    #[pymodule_export]
    use crate::write::write;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
