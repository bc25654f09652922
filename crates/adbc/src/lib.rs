//! The ADBC driver: `libadbc_driver_dray.so`, which driver managers of any language load to read
//! from Dray servers, PostgreSQL, MySQL and MariaDB into Arrow.
//!
//! ```text
//!   Python, R, Go, Java, DuckDB … ── driver manager ── AdbcDriverDrayInit: a table of C functions
//!                                                            │ adbc_ffi calls the traits of
//!                                                            │ adbc_core; table.rs changes a few
//!   Database ──▶ Connection ──▶ Statement ──▶ ResultReader ──┴──▶ stream.rs ──▶ C stream
//!   options.rs   session.rs     rows of        result.rs
//!                objects.rs     parameters         │
//!                    └──────── dray-client ────────┘
//! ```
//!
//! It is a library of C functions, not of Rust ones. In Python:
//!
//! ```python
//! from adbc_driver_manager import dbapi
//!
//! driver = "/path/to/libadbc_driver_dray.so"  # or "dray", after `dray adbc install`
//! with dbapi.connect(driver, "postgresql://me@localhost/shop") as connection:
//!     with connection.cursor() as cursor:
//!         cursor.execute("SELECT * FROM orders WHERE id = $1", (5,))
//!         table = cursor.fetch_arrow_table()
//! ```
//!
//! `README.md` beside this folder has the options and more languages.

#![deny(unsafe_code)]

mod cancel;
mod connection;
mod database;
mod error;
mod info;
mod ingest;
mod objects;
mod options;
mod parameters;
mod partitions;
mod result;
mod session;
mod statement;
mod stream;
mod table;

/// Batches are freed one by one. The system's allocator would return their pages to the kernel and
/// get zeroed ones for the next batch.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
