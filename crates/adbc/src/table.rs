//! The table of C functions that a driver manager asks for.
//!
//! `adbc_ffi` makes the table from the traits of `adbc_core`. Five of its functions are replaced,
//! and one is added, for what arrow-rs's export of streams and schemas lacks: an SQLSTATE when a
//! result fails in mid-stream, the flag of maps with sorted keys, and no panic at a byte 0. The
//! replacements call the originals, whose traits leave the result behind in this thread
//! (`hand_over_…`), and export it themselves.

#![allow(unsafe_code, reason = "ADBC's C interface")]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::LazyLock;

use adbc_core::constants::ADBC_STATUS_OK;
use adbc_core::error::{AdbcStatusCode, Error, Status};
use adbc_core::options::AdbcVersion;
use adbc_ffi::{
    FFI_AdbcConnection, FFI_AdbcDriver, FFI_AdbcError, FFI_AdbcPartitions, FFI_AdbcStatement,
    FFIDriver, export_error,
};
use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use arrow::record_batch::RecordBatchReader;
use dray_client::export;

use crate::database::DrayDriver;
use crate::error::{bad_data, failed};
use crate::result::ResultReader;
use crate::stream;

thread_local! {
    static RESULT: RefCell<Option<ResultReader>> = const { RefCell::new(None) };
    static SCHEMA: RefCell<Option<SchemaRef>> = const { RefCell::new(None) };
}

/// The table as `adbc_ffi` makes it.
static ORIGINAL: LazyLock<FFI_AdbcDriver> = LazyLock::new(DrayDriver::ffi_driver);

/// Leaves a result to [`execute_query`], which has called, and returns an empty one.
pub(crate) fn hand_over_result(result: ResultReader) -> Box<dyn RecordBatchReader + Send> {
    RESULT.set(Some(result));
    let none: [Result<RecordBatch, ArrowError>; 0] = [];
    Box::new(RecordBatchIterator::new(none, SchemaRef::new(Schema::empty())))
}

/// Leaves a schema to the function that has called, and returns an empty one.
pub(crate) fn hand_over_schema(schema: SchemaRef) -> Schema {
    SCHEMA.set(Some(schema));
    Schema::empty()
}

/// Fills a driver manager's table of functions. The name follows from that of the library.
///
/// # Safety
/// As ADBC demands of managers: `driver` points to memory for a table of the version asked for,
/// `error` is null or points to an error.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "ADBC's name")]
pub unsafe extern "C" fn AdbcDriverDrayInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let refused = match AdbcVersion::try_from(version) {
        _ if driver.is_null() => failed(Status::InvalidArguments, "the table is a null pointer"),
        Ok(AdbcVersion::V110) => {
            let table = FFI_AdbcDriver {
                StatementExecuteQuery: Some(execute_query),
                StatementExecuteSchema: Some(execute_schema),
                ConnectionGetTableSchema: Some(get_table_schema),
                ConnectionReadPartition: Some(read_partition),
                StatementExecutePartitions: Some(execute_partitions),
                ErrorFromArrayStream: Some(stream::error_from_stream),
                ..DrayDriver::ffi_driver()
            };
            // SAFETY: the caller promises memory for a table of version 1.1.0 at `driver`. A
            // table of function pointers needs no release of what was there before.
            unsafe { driver.cast::<FFI_AdbcDriver>().write_unaligned(table) };
            return ADBC_STATUS_OK;
        }
        _ => failed(
            Status::NotImplemented,
            format!("version {version} of ADBC was asked for, this driver has 1.1.0"),
        ),
    };
    // SAFETY: the caller promises a valid pointer or null.
    unsafe { refuse(error, refused) }
}

/// The entry point that managers try if they don't find the one above.
///
/// # Safety
/// As [`AdbcDriverDrayInit`].
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "ADBC's name")]
pub unsafe extern "C" fn AdbcDriverInit(
    version: c_int,
    driver: *mut c_void,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    // SAFETY: the caller promises the same.
    unsafe { AdbcDriverDrayInit(version, driver, error) }
}

/// `AdbcStatementExecuteQuery`.
///
/// # Safety
/// As ADBC demands of managers: `statement` is one of this driver, `out` and `rows_affected` are
/// null or point to memory for a stream and a number, `error` is null or points to an error.
unsafe extern "C" fn execute_query(
    statement: *mut FFI_AdbcStatement,
    out: *mut FFI_ArrowArrayStream,
    rows_affected: *mut i64,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(original) = ORIGINAL.StatementExecuteQuery else { return missing() };
    RESULT.set(None);
    // SAFETY: the caller's promises are those that the original asks for.
    let status = unsafe { original(statement, out, rows_affected, error) };
    let (ADBC_STATUS_OK, Some(result)) = (status, RESULT.take()) else { return status };
    let rows_changed = result.rows_changed().and_then(|rows| i64::try_from(rows).ok());
    // SAFETY: only a call with an `out` leaves a result behind. The original has written its empty
    // stream there, which is replaced and dropped; it may be unaligned, as the original assumes.
    // `rows_affected` is null or may be written.
    unsafe {
        drop(out.read_unaligned());
        out.write_unaligned(stream::export(result));
        if let (false, Some(rows)) = (rows_affected.is_null(), rows_changed) {
            rows_affected.write_unaligned(rows);
        }
    }
    status
}

/// `AdbcStatementExecuteSchema`.
///
/// # Safety
/// As ADBC demands of managers: `statement` is one of this driver, `out` points to memory for a
/// schema, `error` is null or points to an error.
unsafe extern "C" fn execute_schema(
    statement: *mut FFI_AdbcStatement,
    out: *mut FFI_ArrowSchema,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(original) = ORIGINAL.StatementExecuteSchema else { return missing() };
    SCHEMA.set(None);
    // SAFETY: the caller's promises are those that the original asks for.
    let status = unsafe { original(statement, out, error) };
    // SAFETY: the original has succeeded if it says so, and has written a schema at `out`.
    unsafe { replace_schema(status, out, error) }
}

/// `AdbcConnectionGetTableSchema`.
///
/// # Safety
/// As ADBC demands of managers: `connection` is one of this driver, the names are null or C
/// strings, `out` points to memory for a schema, `error` is null or points to an error.
unsafe extern "C" fn get_table_schema(
    connection: *mut FFI_AdbcConnection,
    catalog: *const c_char,
    db_schema: *const c_char,
    table_name: *const c_char,
    out: *mut FFI_ArrowSchema,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(original) = ORIGINAL.ConnectionGetTableSchema else { return missing() };
    SCHEMA.set(None);
    // SAFETY: the caller's promises are those that the original asks for.
    let status = unsafe { original(connection, catalog, db_schema, table_name, out, error) };
    // SAFETY: the original has succeeded if it says so, and has written a schema at `out`.
    unsafe { replace_schema(status, out, error) }
}

/// `AdbcStatementExecutePartitions`.
///
/// # Safety
/// As ADBC demands of managers: `statement` is one of this driver, `schema` and `partitions` point
/// to memory for them, `rows_affected` is null or points to memory for a number, `error` is null or
/// points to an error.
unsafe extern "C" fn execute_partitions(
    statement: *mut FFI_AdbcStatement,
    schema: *mut FFI_ArrowSchema,
    partitions: *mut FFI_AdbcPartitions,
    rows_affected: *mut i64,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(original) = ORIGINAL.StatementExecutePartitions else { return missing() };
    SCHEMA.set(None);
    // SAFETY: the caller's promises are those that the original asks for.
    let status = unsafe { original(statement, schema, partitions, rows_affected, error) };
    // SAFETY: the original has succeeded if it says so, and has written a schema.
    unsafe { replace_schema(status, schema, error) }
}

/// `AdbcConnectionReadPartition`.
///
/// # Safety
/// As ADBC demands of managers: `connection` is one of this driver, `bytes` points to as many bytes
/// as `length` says, `out` to memory for a stream, `error` is null or points to an error.
unsafe extern "C" fn read_partition(
    connection: *mut FFI_AdbcConnection,
    bytes: *const u8,
    length: usize,
    out: *mut FFI_ArrowArrayStream,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let Some(original) = ORIGINAL.ConnectionReadPartition else { return missing() };
    RESULT.set(None);
    // SAFETY: the caller's promises are those that the original asks for.
    let status = unsafe { original(connection, bytes, length, out, error) };
    if let (ADBC_STATUS_OK, Some(result)) = (status, RESULT.take()) {
        // SAFETY: the original has written its empty stream at `out`, maybe unaligned, which is
        // replaced and dropped.
        unsafe {
            drop(out.read_unaligned());
            out.write_unaligned(stream::export(result));
        }
    }
    status
}

/// Replaces a schema that an original has written by the one that was handed over.
///
/// # Safety
/// If `status` is a success, `out` points to a schema, maybe unaligned. `error` is null or points
/// to an error.
unsafe fn replace_schema(
    status: AdbcStatusCode,
    out: *mut FFI_ArrowSchema,
    error: *mut FFI_AdbcError,
) -> AdbcStatusCode {
    let (ADBC_STATUS_OK, Some(schema)) = (status, SCHEMA.take()) else { return status };
    match export::schema(&schema) {
        Ok(exported) => {
            // SAFETY: the caller promises a schema at `out`.
            unsafe {
                drop(out.read_unaligned());
                out.write_unaligned(exported);
            }
            ADBC_STATUS_OK
        }
        Err(cause) => {
            // SAFETY: the caller promises a schema at `out`, which is no result of a call that
            // fails, and a valid pointer or null for the error.
            unsafe {
                drop(out.read_unaligned());
                out.write_unaligned(FFI_ArrowSchema::empty());
                refuse(error, bad_data(&cause))
            }
        }
    }
}

/// The status of a call without an original, of which `adbc_ffi` has none.
fn missing() -> AdbcStatusCode {
    Status::NotImplemented.into()
}

/// Hands an error over and returns its status.
///
/// # Safety
/// `to` is null or points to an error.
unsafe fn refuse(to: *mut FFI_AdbcError, error: Error) -> AdbcStatusCode {
    let status = error.status.into();
    // SAFETY: the caller promises a valid pointer or null.
    unsafe { export_error(to, error) };
    status
}
