//! Native functions for Java: plans of statements, their parts, and results as Arrow; and writing
//! Arrow data.
//!
//! ```text
//!   Java: dray.spark.Native ──▶ natives.rs ──▶ handles.rs: a number ▶ what it stands for
//!            ▲ ArrowSchema,                       └─▶ reading.rs ──▶ dray-client
//!            └ ArrowArray ◀── spark_types.rs: columns as Spark holds them ◀── batches
//!
//!   ArrowArray ──▶ natives_write.rs ──▶ writing.rs ──▶ dray-client: COPY
//! ```
//!
//! Java holds numbers, never pointers: a number that was closed, or never given out, is an error.
//! The exceptions are the addresses of Arrow's C structs, which Java allocates.

mod convert;
mod errors;
mod handles;
mod natives;
mod natives_write;
mod options;
mod reading;
mod spark_types;
mod writing;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
