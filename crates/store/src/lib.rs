//! Object stores by URL: S3, Google Cloud Storage, Azure Blob Storage and plain HTTP.
//!
//! ```text
//!   s3://bucket/key ─ Location ─▶ Store ─┬─ head, list ─▶ Object ─┬─ ranges  (async, Parquet)
//!      (credentials: environment)        │   size, ETag, version  └─ reader  (blocking, text)
//!                                        └─ upload ─▶ Upload: Write ─▶ finish, or abort
//! ```
//!
//! - **An object is one version.** Each read asks for the version that was found at first, by its
//!   ETag, and checks the answer. If the object was replaced, the read fails.
//! - **No upload is half visible.** An [`Upload`] appears as a whole when it is finished. If it is
//!   not, its parts are removed.
//! - **Errors have no credentials.** What a server answers is not repeated, but for its code.
//! - All I/O runs on threads of this crate, so callers need no runtime.

#![forbid(unsafe_code)]

mod aws_profile;
mod check;
mod error;
mod location;
mod object;
mod open;
mod reader;
mod runtime;
mod upload;

pub use error::{StoreError, StoreErrorKind};
pub use location::{Location, is_url, shown};
pub use object::{Found, Object, Store};
pub use reader::ObjectReader;
pub use upload::{Upload, Uploading};
